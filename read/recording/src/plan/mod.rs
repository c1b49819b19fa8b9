//! Messages between the command and the recorder inside the emulator: the recorder's [`Plan`], and the [`Discovery`]
//! that a first run hands to the second. Both are lines of text, `key value`.

mod discovery;
mod lines;
pub(crate) mod system;

pub use discovery::{BlockRoles, Discovery};
pub use lines::PlanError;

pub(crate) use lines::{escape, hex, unescape};

use crate::records::header::{Header, Mode, Selection};
use crate::records::system::SystemPlan;
use lines::{Lines, each_line};
use lineup_model::abi::{Abi, Machine};
use lineup_model::region::Region;

/// The recorder's task in one run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Task {
    /// Find the blocks executed inside regions; write a [`Discovery`].
    Discover,
    /// Record calls.
    Record,
}

/// One run of the recorder.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The task.
    pub task: Task,
    /// The recording's header.
    pub header: Header,
    /// The output file: a recording, or a discovery.
    pub output: String,
    /// The program's file, as the emulator opens it.
    pub program: String,
    /// The way to start the emulator for programs that a recorded process becomes by `exec`; `None` when they are not
    /// followed.
    pub follow: Option<Follow>,
    /// The [`crate::journal`]; empty when the run has none.
    pub journal: String,
    /// The file to which [`Task::Record`] in [`Mode::TwoPass`] writes the blocks it met and did not watch, as a
    /// [`Discovery`].
    pub unwatched_output: String,
    /// True when control is followed through every block, and not only through watched ones. That is slower, but
    /// notices everything executed inside a region.
    pub follows_all: bool,
    /// The findings of earlier runs; empty for every other mode than [`Mode::TwoPass`].
    pub discovery: Discovery,
    /// Bytes that windows of a whole program's run may take in the recorder's memory; 0 when none are kept, nor counts
    /// of each instruction.
    pub window_bytes: u64,
    /// True when a long call in a program with several threads keeps windows of time, the same in all threads, and not
    /// its first accesses.
    pub keeps_windows: bool,
    /// The facts about a kernel that the recorder needs, in [`Mode::System`].
    pub system: Option<SystemPlan>,
}

/// The way to start the emulator with the recorder in it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Follow {
    /// Its file.
    pub emulator: String,
    /// The recorder's file.
    pub recorder: String,
    /// Its other options.
    pub options: Vec<String>,
}

impl Plan {
    /// A plan of which only this is known.
    pub fn new(task: Task, header: Header) -> Plan {
        Plan {
            task,
            header,
            output: String::new(),
            program: String::new(),
            follow: None,
            journal: String::new(),
            unwatched_output: String::new(),
            follows_all: false,
            discovery: Discovery::default(),
            window_bytes: 0,
            keeps_windows: false,
            system: None,
        }
    }

    /// The plan as text.
    pub fn to_text(&self) -> String {
        let mut lines = Lines::default();
        lines.put("task", if self.task == Task::Discover { "discover" } else { "record" });
        lines.text("output", &self.output);
        lines.text("program", &self.program);
        if let Some(follow) = &self.follow {
            lines.text("emulate", &follow.emulator);
            lines.text("recorder", &follow.recorder);
            follow.options.iter().for_each(|option| lines.text("option", option));
        }
        lines.text("journal", &self.journal);
        lines.text("unwatched", &self.unwatched_output);
        lines.put("follows-all", self.follows_all);
        lines.put("windows", self.window_bytes);
        lines.put("keeps-windows", self.keeps_windows);
        let header = &self.header;
        lines.put("machine", header.abi.machine);
        lines.put("pointer", header.abi.pointer_bytes);
        header.command.iter().for_each(|word| lines.text("command", word));
        lines.text("emulator", &header.emulator);
        lines.put("mode", mode_name(header.mode));
        lines.put("warmup", header.warmup_calls);
        header.max_calls.iter().for_each(|calls| lines.put("calls", calls));
        lines.put("first", header.selection == Selection::First);
        lines.put("runs", header.selection == Selection::Runs);
        lines.put("accesses", header.max_accesses);
        header.caches.iter().for_each(|spec| lines.text("cache", spec));
        for (_, region) in header.regions.iter() {
            lines.text("region", &region.name);
            lines.put("weight", format!("{:x}", region.weight.to_bits()));
            lines.text("in", &region.image);
            region.entries.iter().for_each(|entry| lines.put("entry", format!("{entry:x}")));
        }
        if let Some(system) = &self.system {
            system.lines(|key, value| lines.put(key, value));
        }
        lines.0.push_str(&self.discovery.to_text());
        lines.0
    }

    /// Reads [`Plan::to_text`] back.
    ///
    /// # Errors
    /// At the first line that is not one.
    pub fn parse(text: &str) -> Result<Plan, PlanError> {
        let mut plan = Plan::new(Task::Record, Header::new(Abi::X86_64, Vec::new()));
        let mut image = None;
        each_line(text, "plan", |key, value| plan.accept(key, value, &mut image))?;
        if plan.output.is_empty() {
            return Err(PlanError { line: 0, what: "plan", text: "no output".into() });
        }
        Ok(plan)
    }

    fn accept(&mut self, key: &str, value: &str, image: &mut Option<String>) -> Option<()> {
        let header = &mut self.header;
        match key {
            "task" => self.task = if value == "discover" { Task::Discover } else { Task::Record },
            "output" => self.output = unescape(value)?,
            "program" => self.program = unescape(value)?,
            "emulate" => self.follow = Some(Follow { emulator: unescape(value)?, ..Follow::default() }),
            "recorder" => self.follow.as_mut()?.recorder = unescape(value)?,
            "option" => self.follow.as_mut()?.options.push(unescape(value)?),
            "journal" => self.journal = unescape(value)?,
            "unwatched" => self.unwatched_output = unescape(value)?,
            "follows-all" => self.follows_all = value.parse().ok()?,
            "windows" => self.window_bytes = value.parse().ok()?,
            "keeps-windows" => self.keeps_windows = value.parse().ok()?,
            "machine" => header.abi.machine = Machine::named(value)?,
            "pointer" => header.abi.pointer_bytes = value.parse().ok()?,
            "command" => header.command.push(unescape(value)?),
            "emulator" => header.emulator = unescape(value)?,
            "mode" => header.mode = mode_named(value)?,
            "warmup" => header.warmup_calls = value.parse().ok()?,
            "calls" => header.max_calls = Some(value.parse().ok()?),
            "first" if value.parse().ok()? => header.selection = Selection::First,
            "runs" if value.parse().ok()? => header.selection = Selection::Runs,
            "first" | "runs" => {}
            "accesses" => header.max_accesses = value.parse().ok()?,
            "cache" => header.caches.push(unescape(value)?),
            "region" => header.regions.push(Region::named(unescape(value)?)),
            "weight" => header.regions.last_mut()?.weight = f64::from_bits(hex(value)?),
            "in" => header.regions.last_mut()?.image = unescape(value)?,
            "entry" => header.regions.last_mut()?.entries.push(hex(value)?),
            _ if SystemPlan::has(key) => {
                self.system.get_or_insert_with(SystemPlan::default).accept(key, value)?;
            }
            _ => return self.discovery.accept(key, value, image),
        }
        Some(())
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::TwoPass => "two-pass",
        Mode::OnePass => "one-pass",
        Mode::WholeProgram => "whole-program",
        Mode::System => "system",
    }
}

fn mode_named(name: &str) -> Option<Mode> {
    [Mode::TwoPass, Mode::OnePass, Mode::WholeProgram, Mode::System]
        .into_iter()
        .find(|mode| mode_name(*mode) == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::system::Arm;
    use lineup_model::entry_points::EntryPoints;
    use lineup_model::image::LoadedImage;
    use lineup_model::region::{RegionId, Regions};

    #[test]
    fn a_plan_reads_back() {
        let mut header = Header::new(Abi::ARM, vec!["./a b".into(), "".into(), "new\nline".into()]);
        header.mode = Mode::OnePass;
        header.max_calls = Some(5);
        header.warmup_calls = 2;
        header.selection = Selection::First;
        header.regions = Regions::from_iter([
            Region { name: "f(int, char)".into(), weight: 0.1, image: "/bin/x".into(), entries: vec![1, 2] },
            Region::named("g"),
        ]);
        let plan = Plan {
            task: Task::Discover,
            header,
            output: "/tmp/o\\ut".into(),
            program: "./a b".into(),
            follow: Some(Follow {
                emulator: "/usr/bin/qemu-arm".into(),
                recorder: "/lib/a.so".into(),
                options: vec!["-L".into(), "/a b".into()],
            }),
            journal: "/proc/1/fd/9".into(),
            unwatched_output: "/tmp/met".into(),
            follows_all: true,
            window_bytes: 1 << 25,
            keeps_windows: true,
            discovery: discovery::tests::discovery(),
            system: Some(SystemPlan {
                entries: EntryPoints {
                    marker: 0xffff_ffff_8100_0000,
                    stack_bytes: 16 << 10,
                    interrupts: vec![1, 2],
                    task_switch: 0x10..0x40,
                    spins: vec![5..9, 12..20],
                    ..EntryPoints::default()
                },
                flag_saves: vec![(0x10, 0x18), (0x40, 0x20)],
                cpus: 2,
                arms: vec![Arm::Untouched, Arm::PrefetchedCode],
                interrupts_off: Some(RegionId(3)),
                windows: Some(RegionId(4)),
                modules: vec![LoadedImage {
                    path: "/lib/modules/a b.ko".into(),
                    start: 0xffff_ffff_c000_0000,
                    end: 0xffff_ffff_c000_1000,
                    bias: 0xffff_ffff_bfff_0000,
                    build_id: None,
                }],
                ..SystemPlan::default()
            }),
        };
        assert_eq!(Plan::parse(&plan.to_text()), Ok(plan));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        assert!(Plan::parse("weight 0\n").is_err());
        assert!(Plan::parse("task record\n").is_err());
    }
}
