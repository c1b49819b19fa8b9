//! The report for a person.

use super::report::{Boot, Report};

/// One fact per line.
pub(crate) fn plain(report: &Report) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    let compression = report.compression.as_deref().unwrap_or("not compressed");
    lines.push(("image", format!("{} for {}, {compression}", report.form, report.machine)));
    lines.push(("kernel", report.banner.clone()));
    lines.push(("build id", report.build_id.clone().unwrap_or_else(|| "none".into())));
    lines.push(("unpacked", format!("{:.1} MiB", mebibytes(report.unpacked_bytes))));
    let symbols =
        format!("{}, {} of them functions; {}", report.symbols, report.functions, report.symbol_source);
    lines.push(("symbols", symbols));
    let btf = report.btf_bytes.map_or("none".into(), |bytes| format!("{:.1} MiB", mebibytes(bytes)));
    lines.push(("BTF", btf));
    if let (Some(types), Some(source)) = (report.types, report.type_source) {
        lines.push(("types", format!("{types}; {source}")));
    }
    if let Some(boot) = &report.boot {
        booted(boot, &mut lines);
    }
    lines.iter().map(|(name, value)| format!("{name:<12}{value}\n")).collect()
}

fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn booted(boot: &Boot, lines: &mut Vec<(&'static str, String)>) {
    lines.push(("emulator", boot.emulator.clone()));
    lines.push(("command", boot.cmdline.clone()));
    if let Some(seconds) = boot.boot_seconds {
        let release = boot.release.as_deref().unwrap_or("a kernel without a name");
        let clocksource = boot.clocksource.as_deref().unwrap_or("an unknown clock");
        lines.push(("booted", format!("{release} in {seconds:.1} s, time from {clocksource}")));
    }
    if let (Some(seconds), Some(status)) = (boot.workload_seconds, boot.status) {
        lines.push(("workload", format!("{seconds:.1} s, status {status}")));
    }
    lines.push(("in all", format!("{:.1} s", boot.total_seconds)));
    lines.extend(boot.troubles.iter().map(|line| ("trouble", line.clone())));
    if let Some(check) = &boot.symbols {
        let (equal, listed, different) = (check.equal, check.listed, check.different);
        lines
            .push(("compared", format!("{equal} of the guest's {listed} symbols equal, {different} differ")));
    }
}
