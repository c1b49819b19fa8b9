//! What passes between the command and the recorder inside the emulator: the [`Plan`] it is given, and
//! the [`Discovery`] that a first run hands to the second. Both are lines of text, `key value`.

use crate::header::{Header, Mode, Selection, Unfollowed};
use crate::sizes::CallSizes;
use crate::system::SystemPlan;
use lineup_model::abi::{Abi, Machine};
use lineup_model::access::ProcessId;
use lineup_model::region::Region;
use std::collections::BTreeMap;

/// What the recorder is to do in one run.
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
    /// What to do.
    pub task: Task,
    /// What stands in the recording's header.
    pub header: Header,
    /// Where to write: a recording, or a discovery.
    pub output: String,
    /// The program's file, as the emulator opens it.
    pub program: String,
    /// How the emulator is started for programs that a recorded process becomes by `exec`; `None` when they are not
    /// followed.
    pub follow: Option<Follow>,
    /// The [`crate::journal`]; empty when there is none.
    pub journal: String,
    /// Where [`Task::Record`] in [`Mode::TwoPass`] writes what it met and did not watch, as a [`Discovery`].
    pub unwatched_output: String,
    /// Whether control is followed through every block, and not only through those to be watched: slower, but nothing
    /// that is met inside a region goes unnoticed.
    pub follows_all: bool,
    /// What earlier runs found; empty for every other mode than [`Mode::TwoPass`].
    pub discovery: Discovery,
    /// Bytes that windows of a whole program's run may take in the recorder's memory; 0 when none are kept, nor counts of
    /// each instruction.
    pub window_bytes: u64,
    /// Whether of a long call in a program with several threads windows of time are kept, the same in all threads, and not its
    /// first accesses.
    pub keeps_windows: bool,
    /// What the recorder must know of a kernel, in [`Mode::System`].
    pub system: Option<SystemPlan>,
}

/// How the emulator is started with the recorder in it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Follow {
    /// Its file.
    pub emulator: String,
    /// The recorder's file.
    pub recorder: String,
    /// Its other options.
    pub options: Vec<String>,
}

/// What a run found out for the next. Every process of a run writes one: the first to the path it was given, another to
/// that path with its number, as [`Discovery::path_of`] makes it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Discovery {
    /// Block starts by the path of their image and their link address, with what is known of them.
    pub blocks: BTreeMap<String, BTreeMap<u64, BlockRoles>>,
    /// Entries found by symbol for regions that had none: region, image, link address.
    pub entries: Vec<(u16, String, u64)>,
    /// Calls seen, by region.
    pub calls: Vec<u64>,
    /// Sizes of the calls that ended, by region.
    pub sizes: Vec<CallSizes>,
    /// Times that control could not be followed, because blocks ran that were not watched.
    pub gaps: u64,
    /// Programs that were started by `exec` and not recorded.
    pub unfollowed: Vec<Unfollowed>,
    /// Files mapped, in order of appearance.
    pub images: Vec<String>,
    /// Instructions the whole program executed.
    pub instructions: u64,
    /// Threads it had.
    pub threads: u64,
    /// Processes it forked off.
    pub forks: u64,
    /// What the recorder could not do.
    pub notes: Vec<String>,
    /// True when the run came to its end: the list is then whole.
    pub complete: bool,
}

/// Why the second run must watch a block: a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord, Debug)]
pub struct BlockRoles(pub u8);

impl BlockRoles {
    /// Executed inside a region.
    pub const INSIDE: BlockRoles = BlockRoles(1);
    /// Leads from a call instruction to a region's entry.
    pub const APPROACH: BlockRoles = BlockRoles(2);
    /// A call of a region returns here.
    pub const RETURN: BlockRoles = BlockRoles(4);
    /// Control came here out of a call of a region that did not return.
    pub const LANDING: BlockRoles = BlockRoles(8);
    /// True when it has all of `other`.
    pub fn has(self, other: BlockRoles) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub fn with(self, other: BlockRoles) -> BlockRoles {
        BlockRoles(self.0 | other.0)
    }
}

/// A line of a plan or discovery that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line} of the recorder's {what} cannot be read: {text:?}")]
pub struct PlanError {
    /// Counted from 1; 0 when a needed line is missing.
    pub line: usize,
    /// `plan` or `discovery`.
    pub what: &'static str,
    /// The line.
    pub text: String,
}

/// Text whose lines are `key value`.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn put(&mut self, key: &str, value: impl std::fmt::Display) {
        self.0.push_str(&format!("{key} {value}\n"));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.put(key, escape(value));
    }
}

/// Keeps a value on one line.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}

/// A number as plans and tables spell addresses.
pub(crate) fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Feeds every line to `accept`; the first it refuses is the error.
fn each_line(
    text: &str,
    what: &'static str,
    mut accept: impl FnMut(&str, &str) -> Option<()>,
) -> Result<(), PlanError> {
    for (index, line) in text.split('\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        accept(key, value).ok_or_else(|| PlanError { line: index + 1, what, text: line.to_owned() })?;
    }
    Ok(())
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
            "first" => {
                header.selection = if value.parse().ok()? { Selection::First } else { Selection::Spread }
            }
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

impl Discovery {
    /// The discovery as text.
    pub fn to_text(&self) -> String {
        let mut lines = Lines::default();
        for (image, blocks) in &self.blocks {
            lines.text("image", image);
            blocks.iter().for_each(|(link, roles)| lines.put("block", format!("{link:x} {}", roles.0)));
        }
        for (region, image, link) in &self.entries {
            lines.put("found", format!("{region} {link:x} {}", escape(image)));
        }
        self.calls.iter().for_each(|calls| lines.put("seen", calls));
        self.sizes.iter().for_each(|sizes| lines.put("sizes", sizes_text(sizes)));
        lines.put("gaps", self.gaps);
        for Unfollowed { program, why } in &self.unfollowed {
            lines.text("unfollowed", program);
            lines.text("why", why);
        }
        self.images.iter().for_each(|image| lines.text("mapped", image));
        lines.put("forks", self.forks);
        lines.put("instructions", self.instructions);
        lines.put("threads", self.threads);
        self.notes.iter().for_each(|note| lines.text("note", note));
        lines.put("complete", self.complete);
        lines.0
    }

    /// Reads [`Discovery::to_text`] back.
    ///
    /// # Errors
    /// At the first line that is not one.
    pub fn parse(text: &str) -> Result<Discovery, PlanError> {
        let mut discovery = Discovery::default();
        let mut image = None;
        each_line(text, "discovery", |key, value| discovery.accept(key, value, &mut image))?;
        Ok(discovery)
    }

    /// Where a process of this number writes what the first writes to `path`.
    pub fn path_of(path: &str, process: ProcessId) -> String {
        match process.0 {
            0 => path.to_owned(),
            number => format!("{path}.{number}"),
        }
    }

    /// Takes in the blocks that another run or process found; how many of them are new.
    pub fn add_blocks(&mut self, other: &Discovery) -> u64 {
        let mut new = 0;
        for (image, blocks) in &other.blocks {
            let known = self.blocks.entry(image.clone()).or_default();
            for (link, roles) in blocks {
                let all = known.entry(*link).or_default();
                new += u64::from(!all.has(*roles));
                *all = all.with(*roles);
            }
        }
        new
    }

    /// Takes in what another process of the same run found.
    pub fn add_process(&mut self, other: &Discovery) {
        self.add_blocks(other);
        let entries: Vec<_> =
            other.entries.iter().filter(|entry| !self.entries.contains(entry)).cloned().collect();
        self.entries.extend(entries);
        self.calls.resize(self.calls.len().max(other.calls.len()), 0);
        self.calls.iter_mut().zip(&other.calls).for_each(|(sum, own)| *sum += own);
        self.sizes.resize_with(self.sizes.len().max(other.sizes.len()), CallSizes::default);
        self.sizes.iter_mut().zip(&other.sizes).for_each(|(sum, own)| sum.add_all(own));
        self.gaps += other.gaps;
        self.unfollowed.extend(other.unfollowed.iter().cloned());
        let images: Vec<_> =
            other.images.iter().filter(|image| !self.images.contains(image)).cloned().collect();
        self.images.extend(images);
        self.instructions += other.instructions;
        self.threads += other.threads;
        self.forks += other.forks;
        self.notes.extend(other.notes.iter().cloned());
    }

    fn accept(&mut self, key: &str, value: &str, image: &mut Option<String>) -> Option<()> {
        match key {
            "image" => *image = Some(unescape(value)?),
            "block" => {
                let (link, roles) = value.split_once(' ')?;
                let blocks = self.blocks.entry(image.clone()?).or_default();
                blocks.insert(hex(link)?, BlockRoles(roles.parse().ok()?));
            }
            "found" => {
                let mut parts = value.splitn(3, ' ');
                let region = parts.next()?.parse().ok()?;
                let link = hex(parts.next()?)?;
                self.entries.push((region, unescape(parts.next()?)?, link));
            }
            "seen" => self.calls.push(value.parse().ok()?),
            "sizes" => self.sizes.push(sizes_of(value)?),
            "gaps" => self.gaps = value.parse().ok()?,
            "unfollowed" => {
                self.unfollowed.push(Unfollowed { program: unescape(value)?, why: String::new() });
            }
            "why" => self.unfollowed.last_mut()?.why = unescape(value)?,
            "forks" => self.forks = value.parse().ok()?,
            "mapped" => self.images.push(unescape(value)?),
            "instructions" => self.instructions = value.parse().ok()?,
            "threads" => self.threads = value.parse().ok()?,
            "note" => self.notes.push(unescape(value)?),
            "complete" => self.complete = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }
}

/// Instructions in all, and then a size and a number of calls in turn.
fn sizes_text(sizes: &CallSizes) -> String {
    let pairs = sizes.calls_by_size.iter().map(|(size, calls)| format!(" {size} {calls}"));
    sizes.instructions.to_string() + &pairs.collect::<String>()
}

fn sizes_of(text: &str) -> Option<CallSizes> {
    let mut numbers = text.split(' ').map(|number| number.parse::<u64>().ok());
    let mut sizes = CallSizes { instructions: numbers.next()??, ..CallSizes::default() };
    while let Some(size) = numbers.next() {
        sizes.calls_by_size.insert(size?, numbers.next()??);
    }
    Some(sizes)
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
    use crate::system::Arm;
    use lineup_model::entry_points::EntryPoints;
    use lineup_model::region::{RegionId, Regions};

    fn discovery() -> Discovery {
        let mut sizes = CallSizes::default();
        [7, 7, 100_000].iter().for_each(|size| sizes.add(*size));
        let mut discovery = Discovery {
            entries: vec![(1, "/lib/a b.so".into(), 0x1234)],
            calls: vec![3, 0],
            images: vec!["/bin/x".into(), "/lib/a b.so".into()],
            instructions: 1 << 40,
            sizes: vec![CallSizes::default(), sizes],
            gaps: 4,
            unfollowed: vec![Unfollowed { program: "/bin/a b".into(), why: "is\nforeign".into() }],
            forks: 1,
            threads: 2,
            notes: vec!["two\nlines \\".into()],
            complete: true,
            ..Discovery::default()
        };
        let roles = BlockRoles::INSIDE.with(BlockRoles::RETURN);
        discovery.blocks.entry("/lib/a b.so".into()).or_default().insert(0xffff_ffff_0000_0010, roles);
        discovery
    }

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
            discovery: discovery(),
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
                ..SystemPlan::default()
            }),
        };
        assert_eq!(Plan::parse(&plan.to_text()), Ok(plan));
    }

    #[test]
    fn a_discovery_reads_back() {
        assert_eq!(Discovery::parse(&discovery().to_text()), Ok(discovery()));
    }

    #[test]
    fn blocks_of_another_run_are_added_and_the_new_ones_counted() {
        let mut all = discovery();
        let mut more = Discovery::default();
        let library = more.blocks.entry("/lib/a b.so".into()).or_default();
        library.insert(0xffff_ffff_0000_0010, BlockRoles::INSIDE);
        library.insert(0x20, BlockRoles::INSIDE);
        assert_eq!((all.add_blocks(&more), all.add_blocks(&more)), (1, 0));
        assert_eq!(all.blocks["/lib/a b.so"].len(), 2);
    }

    #[test]
    fn processes_of_a_run_add_up() {
        let mut all = discovery();
        all.add_process(&discovery());
        assert_eq!((all.calls.clone(), all.threads, all.forks), (vec![6, 0], 4, 2));
        assert_eq!((all.entries.len(), all.images.len(), all.sizes[1].calls()), (1, 2, 6));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let error = Discovery::parse("threads 1\nblock 12 1\n").unwrap_err();
        assert_eq!(error.line, 2);
        assert!(Plan::parse("weight 0\n").is_err());
        assert!(Plan::parse("task record\n").is_err());
    }
}
