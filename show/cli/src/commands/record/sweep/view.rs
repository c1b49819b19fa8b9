//! A sweep as text: a table per region, a line per variant.

use super::report::Sweep;
use crate::kernels::summary::shown;
use std::fmt::Write;

pub(crate) fn text(sweep: &Sweep) -> String {
    let mut out = String::new();
    let names = sweep.variants.first().map(|first| &first.report.regions);
    let width = sweep.variants.iter().map(|variant| variant.variant.len()).max().unwrap_or(0).max(7);
    for (index, region) in names.into_iter().flatten().enumerate() {
        let _ = writeln!(out, "{}", region.name);
        let _ = writeln!(
            out,
            "  {:width$} {:>7} {:>27} {:>19} {:>19} {:>29}",
            "variant", "calls", "instructions", "L1I misses", "L1D misses", "modelled cycles"
        );
        for variant in &sweep.variants {
            let Some(region) = variant.report.regions.get(index) else { continue };
            let _ = writeln!(
                out,
                "  {:width$} {:>7} {:>27} {:>19} {:>19} {:>29}",
                variant.variant,
                region.calls,
                shown(region.instructions),
                shown(region.code_l1_misses),
                shown(region.data_l1_misses),
                shown(region.cycles)
            );
        }
        out.push('\n');
    }
    out.push_str("figures are min/median/p99/max over calls; each variant is a boot of the same guest\n");
    out
}
