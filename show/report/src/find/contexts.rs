//! The contexts of a kernel's stalls: CPUs, interrupts and tasks.

use super::rows::write_table;
use crate::text::{Align, Table, TextStyle};
use crate::visible::one_line;
use lineup_find::{ContextStalls, Findings};
use lineup_model::figure;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Functions shown of each.
const FUNCTIONS: usize = 3;

/// Writes shares by CPU, then the tasks and interrupts that stall most, at most `top` rows, where that was recorded.
pub(super) fn contexts_text(out: &mut String, findings: &Findings, top: usize, style: TextStyle) {
    let Some(all) = &findings.contexts else { return };
    let mut cpus: BTreeMap<u32, (f64, f64, usize)> = BTreeMap::new();
    for one in all {
        let sums = cpus.entry(one.cpu).or_default();
        sums.0 += one.share;
        sums.1 += if one.is_interrupt { one.share } else { 0.0 };
        sums.2 += usize::from(!one.is_interrupt);
    }
    out.push('\n');
    for (cpu, (share, in_interrupts, tasks)) in cpus {
        let _ = writeln!(
            out,
            "CPU {cpu}: {} of modelled stalls, {} in interrupts and {} in {tasks} tasks",
            figure::share(share),
            figure::share(in_interrupts),
            figure::share(share - in_interrupts)
        );
    }
    let columns = ["stalls", "for data", "for code", "CPU"].map(|name| (name, Align::Right));
    let texts = [("for", Align::Left), ("functions", Align::Left)];
    let mut table = Table::new(columns.into_iter().chain(texts));
    for one in all.iter().take(top) {
        let of = |cycles: u64| figure::share(one.share * cycles as f64 / one.stalls.cycles().max(1) as f64);
        let functions = one.functions.iter().take(FUNCTIONS);
        let functions =
            functions.map(|(name, share)| format!("{} {}", one_line(name), figure::share(*share)));
        table.row([
            figure::share(one.share),
            of(one.stalls.data_cycles),
            of(one.stalls.code_cycles),
            one.cpu.to_string(),
            whom(one),
            functions.collect::<Vec<_>>().join(", "),
        ]);
    }
    write_table(out, &table, all.len(), top, style);
}

fn whom(one: &ContextStalls) -> String {
    match &one.stack {
        _ if one.is_interrupt => "interrupts".to_owned(),
        _ if one.task.is_some() => {
            let name = one.task.as_deref().map(one_line).unwrap_or_default();
            format!("{name}{}", one.pid.map_or(String::new(), |pid| format!(" ({pid})")))
        }
        Some(stack) => format!("task at {stack}"),
        None => "task before the first switch".to_owned(),
    }
}
