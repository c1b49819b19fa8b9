//! The lines of a plan that concern a whole system.

use crate::system::{Arm, SystemPlan};
use lineup_model::region::RegionId;
use std::ops::Range;

/// What every key here begins with.
const PREFIX: &str = "system.";

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

fn range(text: &str) -> Option<Range<u64>> {
    let (start, end) = text.split_once('-')?;
    Some(hex(start)?..hex(end)?)
}

impl SystemPlan {
    /// Calls `put` with every key and value.
    pub(crate) fn lines(&self, mut put: impl FnMut(&str, String)) {
        let mut put = |key: &str, value: String| put(&format!("{PREFIX}{key}"), value);
        put("marker", format!("{:x}", self.marker));
        put("kernel-start", format!("{:x}", self.kernel_start));
        put("stack-bytes", self.stack_bytes.to_string());
        for (key, entries) in [
            ("interrupt", &self.interrupts),
            ("exception", &self.exceptions),
            ("system-call", &self.system_calls),
        ] {
            entries.iter().for_each(|entry| put(key, format!("{entry:x}")));
        }
        put("task-switch", format!("{:x}-{:x}", self.task_switch.start, self.task_switch.end));
        self.flag_saves.iter().for_each(|(read, mask)| put("flag-save", format!("{read:x}-{mask:x}")));
        self.spins.iter().for_each(|spin| put("spin", format!("{:x}-{:x}", spin.start, spin.end)));
        put("cpus", self.cpus.to_string());
        put("time-shift", self.time_shift.to_string());
        put("l2-cycles", self.latency.l2_cycles.to_string());
        put("memory-cycles", self.latency.memory_cycles.to_string());
        self.arms.iter().for_each(|arm| put("arm", arm.name().to_owned()));
        put("stream-steps", self.stream_steps.to_string());
        self.interrupts_off.iter().for_each(|region| put("interrupts-off", region.0.to_string()));
    }

    /// Takes a line in; `None` when it is not one.
    pub(crate) fn accept(&mut self, key: &str, value: &str) -> Option<()> {
        match key.strip_prefix(PREFIX)? {
            "marker" => self.marker = hex(value)?,
            "kernel-start" => self.kernel_start = hex(value)?,
            "stack-bytes" => {
                self.stack_bytes = value.parse().ok().filter(|bytes: &u64| bytes.is_power_of_two())?
            }
            "interrupt" => self.interrupts.push(hex(value)?),
            "exception" => self.exceptions.push(hex(value)?),
            "system-call" => self.system_calls.push(hex(value)?),
            "task-switch" => self.task_switch = range(value)?,
            "flag-save" => {
                let Range { start, end } = range(value)?;
                self.flag_saves.push((start, end));
            }
            "spin" => self.spins.push(range(value)?),
            "cpus" => self.cpus = value.parse().ok()?,
            "time-shift" => self.time_shift = value.parse().ok()?,
            "l2-cycles" => self.latency.l2_cycles = value.parse().ok()?,
            "memory-cycles" => self.latency.memory_cycles = value.parse().ok()?,
            "arm" => self.arms.push(Arm::named(value)?),
            "stream-steps" => self.stream_steps = value.parse().ok()?,
            "interrupts-off" => self.interrupts_off = Some(RegionId(value.parse().ok()?)),
            _ => return None,
        }
        Some(())
    }

    /// True for a key that belongs here.
    pub(crate) fn has(key: &str) -> bool {
        key.starts_with(PREFIX)
    }
}
