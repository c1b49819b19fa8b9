//! The heap's other placements, the memory of allocation sites, and the functions that wait for pages.

use super::rows::write_table;
use super::words;
use crate::text::{Align, Table, TextStyle};
use crate::visible::{one_line, shortened};
use lineup_find::{AllocationStalls, Findings, FunctionStalls};
use lineup_model::figure;
use lineup_model::figure::whole;
use std::fmt::Write;

/// Sites with fewer objects have no row.
const FEWEST_OBJECTS: u64 = 100;
/// Functions with a smaller share of the stalls for pages have no row.
const LEAST_OF_PAGES: f64 = 0.01;
/// Characters shown of a name.
const NAME: usize = 80;

/// Writes the finding on the heap's placement, if there is one.
pub(super) fn placements_text(out: &mut String, findings: &Findings) {
    for (index, line) in words::placement(findings).into_iter().enumerate() {
        let _ = writeln!(out, "{}{}", if index == 0 { "" } else { "    " }, one_line(&line));
    }
}

/// Writes the memory of the places that allocate most of what stalls, at most `top` rows.
pub(super) fn memory_text(out: &mut String, findings: &Findings, top: usize, style: TextStyle) {
    let all = findings.allocation_sites.iter().flatten();
    let sites: Vec<&AllocationStalls> =
        all.filter(|site| site.objects >= FEWEST_OBJECTS && site.live_bytes_per_line.is_some()).collect();
    let columns = ["objects", "asked", "taken", "live", "first touches", "dTLB misses", "walks", "in order"];
    let columns = columns.into_iter().map(|name| (name, Align::Right));
    let mut table = Table::new(columns.chain([("allocated by", Align::Left)]));
    for site in sites.iter().take(top) {
        let each = |bytes: u64| format!("{} B", figure::grouped(bytes as f64 / site.objects as f64, 0));
        let pages = site.pages.unwrap_or_default();
        let line = site.line.as_ref().map_or_else(String::new, |line| format!(" {line}"));
        table.row([
            whole(site.objects),
            each(site.bytes),
            site.taken_bytes.map_or_else(String::new, each),
            site.live_bytes_per_line.map_or_else(String::new, |bytes| format!("{bytes:.0} B")),
            whole(pages.first_touches),
            whole(pages.dtlb_l1_misses),
            whole(pages.dtlb_l2_misses),
            site.visits_in_order.map_or_else(String::new, figure::share),
            one_line(&format!("{}{line}", site.function)).into_owned(),
        ]);
    }
    write_table(out, &table, sites.len(), top, style);
}

/// Writes the functions that wait most for pages, at most `top` rows.
pub(super) fn pages_text(out: &mut String, findings: &Findings, top: usize, style: TextStyle) {
    let all = findings.pages.unwrap_or_default().stall_cycles;
    let share_of = |function: &FunctionStalls| {
        function.pages.unwrap_or_default().stall_cycles as f64 / all.max(1) as f64
    };
    let mut functions: Vec<(f64, &FunctionStalls)> =
        findings.functions.iter().map(|function| (share_of(function), function)).collect();
    functions.retain(|(share, _)| *share >= LEAST_OF_PAGES);
    functions.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let columns = ["for pages", "first touches", "dTLB misses", "walks"];
    let columns = columns.into_iter().map(|name| (name, Align::Right));
    let mut table = Table::new(columns.chain([("function", Align::Left), ("file", Align::Left)]));
    for (share, function) in functions.iter().take(top) {
        let pages = function.pages.unwrap_or_default();
        table.row([
            figure::share(*share),
            whole(pages.first_touches),
            whole(pages.dtlb_l1_misses),
            whole(pages.dtlb_l2_misses),
            shortened(&function.name, NAME),
            shortened(&function.image, NAME),
        ]);
    }
    write_table(out, &table, functions.len(), top, style);
}
