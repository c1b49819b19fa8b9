//! The table of places where the program allocates.

use super::rows::write_table;
use crate::text::{Align, Table, TextStyle};
use crate::visible::one_line;
use lineup_find::{AllocationStalls, Findings};
use lineup_model::figure;

/// Writes the places whose objects stall most, at most `top` rows, where allocations were observed.
pub(super) fn allocations_text(out: &mut String, findings: &Findings, top: usize, style: TextStyle) {
    let Some(all) = &findings.allocation_sites else { return };
    let stalling: Vec<&AllocationStalls> = all.iter().filter(|site| site.stall_cycles > 0).collect();
    let columns = ["stalls", "accesses", "L1 misses", "L2 misses", "used", "objects", "bytes"];
    let columns = columns.into_iter().map(|name| (name, Align::Right));
    let texts = [("allocated by", Align::Left), ("for", Align::Left), ("used as", Align::Left)];
    let mut table = Table::new(columns.chain(texts));
    for site in stalling.iter().take(top) {
        let line = site.line.as_ref().map_or_else(String::new, |line| format!(" {line}"));
        let types =
            site.types.iter().map(|(name, share)| format!("{} {}", one_line(name), figure::share(*share)));
        table.row([
            figure::share(site.share),
            figure::grouped(site.accesses, 0),
            figure::grouped(site.l1_misses as f64, 0),
            figure::grouped(site.l2_misses as f64, 0),
            site.used_bytes_per_line.map_or_else(String::new, |bytes| format!("{bytes:.0} B")),
            figure::grouped(site.objects as f64, 0),
            figure::grouped(site.bytes as f64, 0),
            one_line(&format!("{}{line}", site.function)).into_owned(),
            one_line(site.caller.as_deref().unwrap_or_default()).into_owned(),
            types.collect::<Vec<_>>().join(", "),
        ]);
    }
    write_table(out, &table, stalling.len(), top, style);
}
