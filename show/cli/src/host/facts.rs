//! The machine of a study.

use lineup_report::study::Fact;
use std::fs;

/// Facts about this machine that a reader needs to judge the timing.
pub(crate) fn of_this_machine() -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push(Fact { name: name.into(), value });
        }
    };
    add("processor", processor());
    add("CPUs", std::thread::available_parallelism().ok().map(|count| count.to_string()));
    add("kernel", read_line("/proc/sys/kernel/osrelease"));
    add("frequency governor", read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    facts
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name") || line.starts_with("Hardware"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn read_line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}
