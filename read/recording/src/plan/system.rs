//! The lines of a plan that concern a whole system.

use super::{escape, hex, unescape};
use crate::records::system::{Arm, SystemPlan};
use lineup_model::entry_points::TaskStruct;
use lineup_model::image::LoadedImage;
use lineup_model::region::RegionId;
use std::ops::Range;

/// The prefix of every key here.
const PREFIX: &str = "system.";

fn range(text: &str) -> Option<Range<u64>> {
    let (start, end) = text.split_once('-')?;
    Some(hex(start)?..hex(end)?)
}

/// A section of a module.
fn module(text: &str) -> Option<LoadedImage> {
    let (place, rest) = text.split_once(' ')?;
    let (bias, path) = rest.split_once(' ')?;
    let Range { start, end } = range(place)?;
    Some(LoadedImage { path: unescape(path)?, start, end, bias: hex(bias)?, build_id: None })
}

impl SystemPlan {
    /// Calls `put` with every key and value.
    pub(crate) fn lines(&self, mut put: impl FnMut(&str, String)) {
        let mut put = |key: &str, value: String| put(&format!("{PREFIX}{key}"), value);
        put("marker", format!("{:x}", self.entries.marker));
        put("kernel-start", format!("{:x}", self.entries.kernel_start));
        put("stack-bytes", self.entries.stack_bytes.to_string());
        for (key, entries) in [
            ("interrupt", &self.entries.interrupts),
            ("exception", &self.entries.exceptions),
            ("system-call", &self.entries.system_calls),
        ] {
            entries.iter().for_each(|entry| put(key, format!("{entry:x}")));
        }
        put(
            "task-switch",
            format!("{:x}-{:x}", self.entries.task_switch.start, self.entries.task_switch.end),
        );
        self.flag_saves.iter().for_each(|(read, mask)| put("flag-save", format!("{read:x}-{mask:x}")));
        self.entries.spins.iter().for_each(|spin| put("spin", format!("{:x}-{:x}", spin.start, spin.end)));
        if let Some(task) = &self.task_struct {
            put("task-memory", format!("{:x}-{:x}", task.memory.start, task.memory.end));
            put("task-stack-pointer", task.stack_pointer.to_string());
            put("task-pid", task.pid.to_string());
            put("task-name", task.name.to_string());
        }
        put("cpus", self.cpus.to_string());
        put("time-shift", self.time_shift.to_string());
        put("l2-cycles", self.latency.l2_cycles.to_string());
        put("memory-cycles", self.latency.memory_cycles.to_string());
        self.arms.iter().for_each(|arm| put("arm", arm.name().to_owned()));
        put("stream-steps", self.stream_steps.to_string());
        self.interrupts_off.iter().for_each(|region| put("interrupts-off", region.0.to_string()));
        for LoadedImage { path, start, end, bias, .. } in &self.modules {
            put("module", format!("{start:x}-{end:x} {bias:x} {}", escape(path)));
        }
        self.windows.iter().for_each(|region| put("windows", region.0.to_string()));
    }

    /// Takes a line in; `None` when it is not one.
    pub(crate) fn accept(&mut self, key: &str, value: &str) -> Option<()> {
        match key.strip_prefix(PREFIX)? {
            "marker" => self.entries.marker = hex(value)?,
            "kernel-start" => self.entries.kernel_start = hex(value)?,
            "stack-bytes" => {
                self.entries.stack_bytes = value.parse().ok().filter(|bytes: &u64| bytes.is_power_of_two())?
            }
            "interrupt" => self.entries.interrupts.push(hex(value)?),
            "exception" => self.entries.exceptions.push(hex(value)?),
            "system-call" => self.entries.system_calls.push(hex(value)?),
            "task-switch" => self.entries.task_switch = range(value)?,
            "flag-save" => {
                let Range { start, end } = range(value)?;
                self.flag_saves.push((start, end));
            }
            "spin" => self.entries.spins.push(range(value)?),
            "task-memory" => self.task().memory = range(value)?,
            "task-stack-pointer" => self.task().stack_pointer = value.parse().ok()?,
            "task-pid" => self.task().pid = value.parse().ok()?,
            "task-name" => self.task().name = value.parse().ok()?,
            "cpus" => self.cpus = value.parse().ok()?,
            "time-shift" => self.time_shift = value.parse().ok()?,
            "l2-cycles" => self.latency.l2_cycles = value.parse().ok()?,
            "memory-cycles" => self.latency.memory_cycles = value.parse().ok()?,
            "arm" => self.arms.push(Arm::named(value)?),
            "stream-steps" => self.stream_steps = value.parse().ok()?,
            "interrupts-off" => self.interrupts_off = Some(RegionId(value.parse().ok()?)),
            "module" => self.modules.push(module(value)?),
            "windows" => self.windows = Some(RegionId(value.parse().ok()?)),
            _ => return None,
        }
        Some(())
    }

    fn task(&mut self) -> &mut TaskStruct {
        self.task_struct.get_or_insert_default()
    }

    /// True for a key that belongs here.
    pub(crate) fn has(key: &str) -> bool {
        key.starts_with(PREFIX)
    }
}
