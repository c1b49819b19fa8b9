//! Effects as text.

use super::{CallsReport, ConnectionReport, EffectsCheck, EffectsReport, ProcessReport};
use crate::text::{Align, Table, TextStyle};
use crate::visible::{one_line, shortened};
use lineup_model::figure::whole;
use lineup_prove::effects::EffectDifference;

/// The most characters of a request that a row shows.
const SHOWN_CHARACTERS: usize = 60;

/// All effects of a run.
pub fn effects_text(report: &EffectsReport, style: TextStyle) -> String {
    let mut text = String::new();
    for process in &report.processes {
        text += &heading(process);
        text += &left_process(process).render(style);
        text.push('\n');
    }
    if !report.files.is_empty() {
        text += "left in the file system\n";
        let columns = [
            ("path", Align::Left),
            ("kind", Align::Left),
            ("permissions", Align::Right),
            ("bytes", Align::Right),
            ("SHA-256", Align::Left),
            ("changed by", Align::Left),
        ];
        let mut table = Table::new(columns);
        for file in &report.files {
            let fingerprint = short(&file.sha256);
            let by = file.changed_by.join(", ");
            table.row([&file.path, file.kind, &file.permissions, &whole(file.size_bytes), fingerprint, &by]);
        }
        text += &table.render(style);
    }
    if !report.connections.is_empty() {
        let total = |of: fn(&ConnectionReport) -> u64| whole(report.connections.iter().map(of).sum());
        text += &format!(
            "{} connections from clients: {} exchanges, {} bytes in, {} bytes out\n",
            whole(report.connections.len() as u64),
            total(|one| one.exchanges),
            total(|one| one.received_bytes),
            total(|one| one.sent_bytes)
        );
    }
    for one in &report.not_observed {
        text += &format!("not observed: {}\n", one_line(one));
    }
    text
}

fn heading(process: &ProcessReport) -> String {
    let end = match (process.exit_status, process.signal) {
        (Some(status), _) => format!("exit status {status}"),
        (None, Some(signal)) => format!("ended by {}", lineup_model::signal_name(signal)),
        (None, None) => "stopped from outside, or still running at the end".to_owned(),
    };
    format!("process {}: {end}\n", process.process)
}

fn left_process(process: &ProcessReport) -> Table {
    let columns = [
        ("call", Align::Left),
        ("to", Align::Left),
        ("count", Align::Right),
        ("bytes", Align::Right),
        ("SHA-256", Align::Left),
        ("what", Align::Left),
    ];
    let mut table = Table::new(columns);
    for stream in &process.streams {
        let by = stream.written_by.join(", ");
        table.row([&by, &stream.target, "", &whole(stream.size_bytes), short(&stream.sha256), ""]);
    }
    for calls in &process.calls {
        calls_rows(calls, &mut table);
    }
    table
}

/// The first calls of a site, one a row.
fn calls_rows(calls: &CallsReport, table: &mut Table) {
    const ROWS: usize = 4;
    for call in calls.calls.iter().take(ROWS) {
        let what = shortened(&call.what, SHOWN_CHARACTERS);
        let fingerprint = if call.size_bytes == 0 { "" } else { short(&call.sha256) };
        let bytes = if call.size_bytes == 0 { String::new() } else { whole(call.size_bytes) };
        table.row([&calls.name, &calls.target, "1", &bytes, fingerprint, &what]);
    }
    let further = calls.count.saturating_sub(ROWS as u64);
    if further > 0 {
        table.row([&calls.name, &calls.target, &whole(further), "", "", "further calls"]);
    }
}

fn short(fingerprint: &str) -> &str {
    fingerprint.get(..12).unwrap_or(fingerprint)
}

/// The comparison of two programs' effects, and the effects that were not compared.
pub fn agreement_text(check: &EffectsCheck) -> String {
    let sentence = check.sentence();
    let runs = check.runs;
    format!("equal as far as effects can be compared, in {runs} observed runs\n{}\n", one_line(&sentence))
}

/// The first difference between two programs.
pub fn difference_text(difference: &EffectDifference) -> String {
    format!("different: {}\n", one_line(&difference.to_string()))
}
