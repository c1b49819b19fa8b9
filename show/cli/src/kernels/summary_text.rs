//! A recorded kernel as text.

use crate::kernels::summary::{RegionSummary, Report, shown};
use lineup_kernel::region_sets::sets;
use std::fmt::Write;

/// The sets of regions, for help.
pub(crate) fn help_on_sets() -> String {
    let lines = sets().map(|(name, about)| format!("  {name:<14} {about}"));
    format!("Sets of regions for --kernel:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

pub(crate) fn text(report: &Report) -> String {
    let mut out = String::new();
    let guest = &report.guest;
    let _ = writeln!(
        out,
        "recorded {} under {}, workload {}: {}",
        guest.release.as_deref().unwrap_or("a kernel that did not boot"),
        report.emulator,
        guest.workload,
        report.file
    );
    let _ = writeln!(
        out,
        "  {} instructions, {} interrupts, {} exceptions, {} task switches",
        report.total_instructions, report.interrupts, report.exceptions, report.switches
    );
    let _ = writeln!(out, "  command line: {}", guest.cmdline);
    let _ = writeln!(out, "  {}", flag(report));
    let _ = writeln!(out, "  {}", modelled(report));
    let _ = writeln!(
        out,
        "  {:.1} s in all{}",
        guest.total_seconds,
        guest.boot_seconds.map(|boot| format!(", {boot:.1} s of it to boot")).unwrap_or_default()
    );
    table(&mut out, &report.regions);
    report.notes.iter().for_each(|note| {
        let _ = writeln!(out, "note: {note}");
    });
    out
}

/// The caches, and the cost of a miss.
fn modelled(report: &Report) -> String {
    match (report.l2_cycles, report.memory_cycles) {
        (Some(l2), Some(memory)) => format!(
            "modelled: {}; a miss stalls {l2} cycles to the second level, {memory} to memory",
            report.caches.join(" ")
        ),
        _ => "no caches were modelled: misses and stalls are not observed".to_owned(),
    }
}

/// The accuracy of the tracked interrupt flag.
fn flag(report: &Report) -> String {
    let mut line = format!("{} interrupts came while the tracked flag said off", report.interrupts_while_off);
    if let (Some(checks), Some(failed)) = (report.flag_checks, report.failed_flag_checks) {
        let _ = write!(line, "; the kernel showed its flag {checks} times, {failed} times another");
    }
    if report.flag_lost > 0 {
        let _ = write!(line, "; the flag was unknown {} times", report.flag_lost);
    }
    line
}

fn table(out: &mut String, regions: &[RegionSummary]) {
    let width = regions.iter().map(|region| region.name.len()).max().unwrap_or(0).max(6);
    let _ = writeln!(
        out,
        "\n{:width$} {:>7} {:>5} {:>27} {:>19} {:>19} {:>27}",
        "region", "calls", "kept", "instructions", "L1I misses", "L1D misses", "modelled cycles"
    );
    let _ = writeln!(
        out,
        "{:width$} {:>7} {:>5} {:>27} {:>19} {:>19} {:>27}",
        "", "", "", "min/median/p99/max", "", "", ""
    );
    for region in regions {
        let _ = writeln!(
            out,
            "{:width$} {:>7} {:>5} {:>27} {:>19} {:>19} {:>27}",
            region.name,
            region.calls,
            region.kept,
            shown(region.instructions),
            shown(region.code_l1_misses),
            shown(region.data_l1_misses),
            shown(region.cycles)
        );
    }
}
