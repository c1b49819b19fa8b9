//! Bursts of a running process: when they begin, and their log → windows of the recording.
//!
//! The command takes a burst at random times, as often as the allowed share of the process's processor time permits.
//! Each burst becomes a window with every fetch and access, whose caches begin unknown.

use super::attach::{Attached, Attempt, BurstStarter};
use super::output::Output;
use super::process_files::ProcessFiles;
use super::requirements::refuse;
use super::task::{NativeRecording, Task, left};
use crate::error::{Error, Result, in_full};
use crate::process::interrupt::Interrupts;
use crate::recorder::native::heartbeat;
use crate::recorder::native::shared_memory::{Chunk, Memory};
use crate::recorder::request::{BurstCost, BurstCounts};
use crate::recorder::runs::Recorded;
use lineup_model::access::{ProcessId, StackRange, ThreadId};
use lineup_model::process::Origin;
use lineup_recording::journal::Journal;
use lineup_recording::native::repeated_lines::RepeatedLines;
use lineup_recording::native::{Definition, Form, chunk, each_piece, record, state};
use lineup_recording::plan::Plan;
use lineup_recording::{Misses, ProfileRun, ProgramExit, Summary, Window, WindowStep};
use lineup_stats::random::Seed;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Chunks of the log that a burst fills: some 50,000 instructions.
const BURST_CHUNKS: u64 = 6;
/// The longest burst.
const MOST_BURST: Duration = Duration::from_millis(5);
/// The expected cost of the first burst.
const FIRST_COST: Duration = Duration::from_millis(3);
/// The pause when no thread runs, and the longest one before a budget that is used up is looked at again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));
/// The shortest time from one burst to the next on average.
const SHORTEST: Duration = Duration::from_millis(2);
/// The pause after a look that found nothing in the log.
const LOOK: Duration = Duration::from_millis(1);
/// Bytes of the wished memory for a step of a window, as it is packed.
const STEP_BYTES: u64 = 4;

/// Takes bursts of a running process, and writes them.
pub(super) fn record(task: &Task<'_>, process: u32, interrupts: &Interrupts) -> Result<NativeRecording> {
    let Some(overhead) = task.request.bursts else {
        return refuse("a whole program is counted from its beginning on");
    };
    let memory = Arc::new(Memory::new()?);
    memory.control().burst_chunks.store(BURST_CHUNKS, Release);
    memory.control().burst_most_ns.store(MOST_BURST.as_nanos() as u64, Release);
    memory.control().is_attached.store(1, Release);
    let mut reader = BurstReader::new(&memory, task.plan, task.output);
    reader.know(process)?;
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    let (watched, followed) = std::thread::scope(|scope| {
        let following = scope.spawn(|| {
            let followed = reader.follow(&is_over);
            memory.control().is_gone.store(1, Release);
            followed
        });
        let watched = task.take_bursts(process, &memory, overhead, interrupts);
        is_over.store(true, Ordering::Release);
        let failed = |_| Err(Error::Start("reading the engine's log failed".into()));
        (watched, following.join().unwrap_or_else(failed))
    });
    let (cost, notes) = watched?;
    let counts = reader.finish(notes, &cost, followed.as_ref().err().map(in_full))?;
    let journal = Journal { threads: counts.threads, processes: 1, ..Journal::default() };
    let finished = Some(left(begun));
    let exit = ProgramExit::Left;
    let failure = followed.err().map(|error| in_full(&error));
    let recorded = Recorded { exit, elapsed: begun.elapsed(), journal, failure, finished };
    Ok(NativeRecording { recorded, lacks: None, bursts: Some((counts, cost)) })
}

/// The time until the next event of a process without memory, with this mean.
fn interval(random: &mut ChaCha8Rng, mean: Duration) -> Duration {
    mean.mul_f64(-(1.0 - random.random::<f64>()).ln())
}

/// Other numbers in each run.
fn seed() -> Seed {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Seed(now.map_or(1, |now| now.as_nanos() as u64))
}

impl Task<'_> {
    /// Attaches, takes bursts and leaves: the cost, and notes for the user.
    fn take_bursts(
        &self,
        process: u32,
        memory: &Memory,
        overhead: f64,
        interrupts: &Interrupts,
    ) -> Result<(BurstCost, Vec<String>)> {
        let Some(attached) = Attached::new(process, self.engine, memory)? else {
            let why = memory.told().into_iter().map(|(_, text)| text).next();
            return Err(Error::Start(
                why.unwrap_or_else(|| "the engine does not start in the process".into()),
            ));
        };
        let begun = Instant::now();
        let is_late = || self.request.run.max_time.is_some_and(|most| begun.elapsed() >= most);
        let mut starter = BurstStarter::new(&attached)?;
        let (used_before, engine_thread) = (starter.used(), starter.engine_thread());
        let mut budget = Budget { overhead, random: seed().generator(), attempts: BTreeMap::new() };
        let cost_now = |starter: &BurstStarter<'_>| {
            let used = starter.used().saturating_sub(used_before);
            cost_of(memory, starter, begun.elapsed(), used)
        };
        let mut cost = BurstCost::default();
        while attached.is_running() && engine_thread.exists() && !is_late() && !interrupts.take() {
            cost = cost_now(&starter);
            // A burst that finds no room for its log costs a stop, and shows nothing.
            let is_behind = memory.chunks(false).len() > chunk::COUNT / 2;
            let pause = match budget.pause(&cost) {
                Some(pause) => pause,
                None if is_behind => PAUSES.0,
                None => {
                    let attempt = starter.begin(&mut |end| budget.random.random_range(0..end));
                    *budget.attempts.entry(attempt).or_default() += 1;
                    if matches!(attempt, Attempt::InNoFile | Attempt::Gone) {
                        starter.look();
                    }
                    budget.pause_after(attempt, &cost)
                }
            };
            let left = self.request.run.max_time.map(|most| most.saturating_sub(begun.elapsed()));
            std::thread::sleep(left.map_or(pause, |left| pause.min(left)));
        }
        let mut notes = Vec::new();
        let is_same = || engine_thread.exists();
        let became = "the process became another program (exec) while it was watched: it was left as that";
        match (attached.is_running(), is_same()) {
            (false, _) => notes.push("the process ended while it was watched".into()),
            (true, false) => notes.push(became.into()),
            (true, true) => {
                cost = cost_now(&starter);
                match attached.leave() {
                    Ok(left) => notes.extend(left.notes()),
                    Err(_) if !is_same() => notes.push(became.into()),
                    Err(error) => return Err(error),
                }
            }
        }
        let attempts = budget.attempts;
        cost.not_begun = not_begun(&attempts, memory);
        Ok((cost, notes))
    }
}

/// When bursts begin.
struct Budget {
    /// The allowed share of the process's processor time.
    overhead: f64,
    random: ChaCha8Rng,
    attempts: BTreeMap<Attempt, u64>,
}

impl Budget {
    /// The time until the budget allows one more burst; `None` when it does now.
    fn pause(&self, cost: &BurstCost) -> Option<Duration> {
        let allowed = cost.process_time.mul_f64(self.overhead);
        let lacks = (cost.spent() + each(cost)).checked_sub(allowed).filter(|lacks| !lacks.is_zero())?;
        Some(self.earns(lacks, cost).clamp(PAUSES.0, PAUSES.1))
    }

    /// The time in which the process uses enough for this much.
    fn earns(&self, time: Duration, cost: &BurstCost) -> Duration {
        let rate = cost.process_time.as_secs_f64() / cost.watched.as_secs_f64().max(1e-3);
        let seconds = time.as_secs_f64() / (self.overhead * rate).max(1e-6);
        Duration::from_secs_f64(seconds.min(PAUSES.1.as_secs_f64()))
    }

    /// The time from an attempt to the next: random, since the program's own work may have a period.
    fn pause_after(&mut self, attempt: Attempt, cost: &BurstCost) -> Duration {
        let mean = match attempt {
            Attempt::Begun => self.earns(each(cost), cost).max(SHORTEST),
            Attempt::AllWait | Attempt::InNoFile | Attempt::Gone => PAUSES.0,
            Attempt::InKernel | Attempt::InSequence | Attempt::InEngine => SHORTEST,
        };
        interval(&mut self.random, mean)
    }
}

/// The expected cost of the next burst.
fn each(cost: &BurstCost) -> Duration {
    match u32::try_from(cost.ended) {
        Ok(ended @ 1..) => cost.spent() / ended,
        _ => FIRST_COST,
    }
}

fn cost_of(
    memory: &Memory,
    starter: &BurstStarter<'_>,
    watched: Duration,
    process_time: Duration,
) -> BurstCost {
    BurstCost {
        begun: memory.control().bursts.load(Acquire),
        ended: memory.control().bursts_ended.load(Acquire),
        lost: memory.control().bursts_lost.load(Acquire),
        cut: memory.control().bursts_cut.load(Acquire),
        in_bursts: Duration::from_nanos(memory.control().burst_ns.load(Acquire)),
        longest_burst: Duration::from_nanos(memory.control().longest_burst_ns.load(Acquire)),
        stopped: starter.stood,
        longest_stop: starter.longest,
        process_time,
        watched,
        not_begun: Vec::new(),
    }
}

/// Bursts that were not begun, by reason.
fn not_begun(attempts: &BTreeMap<Attempt, u64>, memory: &Memory) -> Vec<(String, u64)> {
    let in_words = |attempt| match attempt {
        Attempt::Begun => None,
        Attempt::AllWait => Some("no thread ran"),
        Attempt::InKernel => Some("the thread was in a system call"),
        Attempt::InSequence => Some("the thread was in a restartable sequence"),
        Attempt::InNoFile => Some("the thread ran code of no file"),
        Attempt::InEngine => Some("the thread was in a burst or a signal handler"),
        Attempt::Gone => Some("the thread ended, or did not stop"),
    };
    let given = attempts.iter().filter_map(|(attempt, times)| Some((in_words(*attempt)?.to_owned(), *times)));
    let refused = memory.control().bursts_refused.load(Acquire);
    let full = (refused > 0).then(|| ("the log was full".to_owned(), refused));
    given.chain(full).collect()
}

/// The data that reading a block's record needs.
struct KnownBlock {
    definition: Definition,
    /// Address of each instruction.
    pcs: Vec<u64>,
    /// Its code by lines: the first address, the bytes, and the instructions that begin there.
    fetches: Vec<(u64, u32, u64)>,
}

/// A thread's burst under way.
struct OpenBurst {
    number: u64,
    steps: Vec<WindowStep>,
    instructions: u64,
}

/// A thread whose log is read.
#[derive(Default)]
struct BurstThread {
    open: Option<OpenBurst>,
    bursts: u64,
    is_noted: bool,
}

/// Reads the log of bursts.
struct BurstReader<'a> {
    memory: Arc<Memory>,
    process: ProcessFiles<'a>,
    known: HashMap<u32, KnownBlock>,
    threads: BTreeMap<u64, BurstThread>,
    /// Bursts whose accesses are kept, by number.
    windows: BTreeMap<u64, Window>,
    /// Steps that may be kept, and are.
    most_steps: u64,
    steps: u64,
    /// The number of times that every second burst was dropped.
    halvings: u32,
    read: u64,
    instructions: u64,
    accesses: u64,
    line_bytes: u64,
    began: Instant,
}

impl<'a> BurstReader<'a> {
    fn new(memory: &Arc<Memory>, plan: &'a Plan, output: &'a Path) -> Self {
        let output = Arc::new(Mutex::new(Output::new(output, &plan.header)));
        let process = ProcessFiles::new(memory.clone(), plan, output, (ProcessId(0), Origin::Started));
        let specs = plan.header.caches.iter().filter_map(|text| text.parse::<lineup_cache::CacheSpec>().ok());
        BurstReader {
            memory: memory.clone(),
            process,
            known: HashMap::new(),
            threads: BTreeMap::new(),
            windows: BTreeMap::new(),
            most_steps: plan.window_bytes / STEP_BYTES,
            steps: 0,
            halvings: 0,
            read: 0,
            instructions: 0,
            accesses: 0,
            line_bytes: specs.map(|spec| spec.line().bytes()).min().unwrap_or(64),
            began: Instant::now(),
        }
    }

    /// Looks at a process before the engine is in it.
    fn know(&mut self, process: u32) -> Result<()> {
        self.memory.control().process.store(u64::from(process), Release);
        self.process.note_process()?;
        self.process.look_at_images()?;
        Ok(())
    }

    fn follow(&mut self, is_over: &AtomicBool) -> Result<()> {
        let memory = self.memory.clone();
        heartbeat::beat_during(
            |number| memory.control().heartbeat.store(number, Release),
            || self.read_all(is_over),
        )
    }

    fn read_all(&mut self, is_over: &AtomicBool) -> Result<()> {
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            if matches!(self.memory.control().state.load(Acquire), state::ASKS | state::ASKS_AGAIN) {
                self.memory.control().state.store(state::ANSWERED, Release);
            }
            self.process.look_if_mapped()?;
            let chunks = self.memory.chunks(was_over);
            for chunk in &chunks {
                self.chunk(chunk)?;
            }
            if was_over && chunks.is_empty() {
                return Ok(());
            }
            if chunks.is_empty() {
                std::thread::sleep(LOOK);
            }
        }
    }

    fn chunk(&mut self, chunk: &Chunk) -> Result<()> {
        let words = self.memory.take(chunk);
        let mut thread = self.threads.remove(&chunk.thread).unwrap_or_default();
        let mut rest = words.as_slice();
        while let Some(used) = self.record(chunk.thread, &mut thread, rest)? {
            rest = rest.get(used..).unwrap_or_default();
        }
        self.threads.insert(chunk.thread, thread);
        Ok(())
    }

    /// Takes in the record at the beginning; returns its number of words, `None` at the end.
    fn record(&mut self, id: u64, thread: &mut BurstThread, words: &[u64]) -> Result<Option<usize>> {
        let Some(head) = words.first() else { return Ok(None) };
        if *head as u32 != 0 {
            return self.block(thread, *head as u32, &words[1..]);
        }
        Ok(match ((head >> 32) as u32, words) {
            (record::BURST, [_, stack, base, ..]) => {
                self.end(id, thread);
                self.note_places(id, thread, *stack, *base)?;
                thread.bursts += 1;
                // By thread, and in each by time: the analysis continues each thread's caches from burst to burst.
                let number = id << 32 | thread.bursts;
                thread.open = Some(OpenBurst { number, steps: Vec::new(), instructions: 0 });
                Some(record::BURST_WORDS)
            }
            (record::LEAVE | record::LOST, _) => {
                self.end(id, thread);
                Some(record::LEAVE_WORDS)
            }
            (record::TIME, _) => Some(record::TIME_WORDS),
            (record::SYSTEM_CALL, _) => Some(record::SYSTEM_CALL_WORDS),
            (record::MAPPING, _) => Some(record::MAPPING_WORDS),
            _ => None,
        })
    }

    /// Notes where a thread's stack and its variables are, once.
    fn note_places(&mut self, id: u64, thread: &mut BurstThread, stack: u64, base: u64) -> Result<()> {
        if std::mem::replace(&mut thread.is_noted, true) {
            return Ok(());
        }
        let mut encoder = self.process.encoder();
        encoder.thread_base(base);
        if let Some((start, end)) = self.process.stack_around(stack) {
            encoder.stack(&StackRange { thread: ThreadId(id as u32), start, end });
        }
        self.process.write(&mut encoder)
    }

    /// The thread's burst has ended.
    fn end(&mut self, id: u64, thread: &mut BurstThread) {
        let Some(open) = thread.open.take().filter(|open| !open.steps.is_empty()) else { return };
        self.read += 1;
        self.instructions += open.instructions;
        self.accesses +=
            open.steps.iter().filter(|step| matches!(step, WindowStep::Access { .. })).count() as u64;
        if !is_kept(open.number, self.halvings) {
            return;
        }
        self.steps += open.steps.len() as u64;
        let window =
            Window { number: open.number, thread: id as u32, steps: open.steps, ..Window::default() };
        self.windows.insert(open.number, window);
        while self.steps > self.most_steps && self.windows.len() > 1 {
            self.halvings += 1;
            let halvings = self.halvings;
            self.windows.retain(|number, _| is_kept(*number, halvings));
            self.steps = self.windows.values().map(|window| window.steps.len() as u64).sum();
        }
    }

    /// A block was executed; how many words its record has.
    fn block(&mut self, thread: &mut BurstThread, number: u32, words: &[u64]) -> Result<Option<usize>> {
        if !self.known.contains_key(&number) {
            let Some(definition) = self.memory.definition(number) else { return Ok(None) };
            self.process.look_for(definition.start)?;
            self.known.insert(number, KnownBlock::new(definition, self.line_bytes));
        }
        let (Some(known), Some(open)) = (self.known.get(&number), thread.open.as_mut()) else {
            return Ok(None);
        };
        open.instructions += known.pcs.len() as u64;
        open.steps.extend(
            known
                .fetches
                .iter()
                .map(|(pc, size_bytes, _)| WindowStep::Fetch { pc: *pc, size_bytes: *size_bytes }),
        );
        Ok(known.accesses(words, &mut open.steps))
    }

    /// Writes all: the counts of what was read.
    fn finish(
        mut self,
        notes: Vec<String>,
        cost: &BurstCost,
        failure: Option<String>,
    ) -> Result<BurstCounts> {
        for (id, mut thread) in std::mem::take(&mut self.threads) {
            self.end(id, &mut thread);
            self.threads.insert(id, thread);
        }
        self.process.output().start()?;
        let mut encoder = self.process.encoder();
        let instructions: HashMap<(u64, u32), u64> = self
            .known
            .values()
            .flat_map(|known| known.fetches.iter().map(|(pc, bytes, count)| ((*pc, *bytes), *count)))
            .collect();
        let mut executions: BTreeMap<(u64, u32), u64> = BTreeMap::new();
        for window in self.windows.values() {
            for step in &window.steps {
                if let WindowStep::Fetch { pc, size_bytes } = *step {
                    *executions.entry((pc, size_bytes)).or_default() += 1;
                }
            }
        }
        for ((pc, size_bytes), executions) in executions {
            let own = instructions.get(&(pc, size_bytes)).copied().unwrap_or_default();
            let instructions = executions * own;
            encoder.profile(&ProfileRun {
                pc,
                size_bytes,
                executions,
                instructions,
                fetch_misses: Misses::default(),
                loads: 0,
                load_misses: Misses::default(),
                stores: 0,
                store_misses: Misses::default(),
            });
        }
        self.process.write(&mut encoder)?;
        let kept = self.windows.len() as u64;
        for window in std::mem::take(&mut self.windows).into_values() {
            encoder.window(&window);
            self.process.write(&mut encoder)?;
        }
        let threads = self.threads.values().filter(|thread| thread.bursts > 0).count() as u64;
        let all_notes: Vec<String> = notes.into_iter().chain(self.process.notes()).chain(failure).collect();
        encoder.summary(&Summary {
            process: self.process.id,
            total_instructions: Some(self.instructions),
            elapsed_ns: u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            threads,
            forks: self.memory.control().forked.load(Acquire),
            unfollowed: self.process.unfollowed(),
            notes: all_notes,
            ..Summary::default()
        });
        self.process.write(&mut encoder)?;
        let (instructions, accesses) = (self.instructions, self.accesses);
        Ok(BurstCounts {
            bursts: self.read,
            kept,
            unended: cost.begun - cost.ended,
            instructions,
            accesses,
            threads,
        })
    }
}

/// Whether a burst is kept after every second was dropped this often: bursts of one thread alternate.
fn is_kept(number: u64, halvings: u32) -> bool {
    (number & 0xffff_ffff).is_multiple_of(1 << halvings.min(31))
}

impl KnownBlock {
    fn new(definition: Definition, line_bytes: u64) -> KnownBlock {
        let mut pc = definition.start;
        let pcs: Vec<u64> = definition
            .lengths
            .iter()
            .map(|length| {
                let own = pc;
                pc += u64::from(*length);
                own
            })
            .collect();
        let (mut fetches, mut start) = (Vec::new(), definition.start);
        while start < pc {
            let end = pc.min((start / line_bytes + 1) * line_bytes);
            let begun = pcs.iter().filter(|pc| (start..end).contains(*pc)).count() as u64;
            fetches.push((start, (end - start) as u32, begun));
            start = end;
        }
        KnownBlock { definition, pcs, fetches }
    }

    /// Adds the accesses of one execution; how many words its record has, `None` when it is cut off.
    fn accesses(&self, words: &[u64], steps: &mut Vec<WindowStep>) -> Option<usize> {
        let (mut used, mut last_address) = (1, 0);
        for access in &self.definition.accesses {
            let own = words.get(used - 1..used - 1 + access.words())?;
            used += access.words();
            let own = if access.is_timed { &own[1..] } else { own };
            let Some(pc) = self.pcs.get(usize::from(access.instruction)).copied() else { continue };
            let is_store = access.is_store;
            let mut add = |address: u64, bytes: u32| {
                each_piece(address, bytes, |address, bytes| {
                    let size_shift = bytes.max(1).ilog2() as u8;
                    steps.push(WindowStep::Access { pc, address, size_shift, is_store });
                });
            };
            if access.has_elements() {
                access.each_element(own, &mut add);
                continue;
            }
            let address = match (access.form, own) {
                (Form::Repeated, [from, to]) => {
                    let lines = RepeatedLines::new(*from, *to, access.size_bytes);
                    lines.for_each(|(address, bytes)| add(address, bytes));
                    *from
                }
                (Form::Valued, [address, _]) | (Form::Address, [address]) => *address,
                _ => last_address,
            };
            last_address = address;
            if access.form != Form::Repeated && access.size_bytes > 0 {
                add(address, access.size_bytes);
            }
        }
        Some(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_used_up_waits() {
        let budget = Budget { overhead: 0.01, random: Seed(1).generator(), attempts: BTreeMap::new() };
        let cost = |ended, ms| BurstCost {
            ended,
            in_bursts: Duration::from_millis(ms),
            process_time: Duration::from_secs(10),
            watched: Duration::from_secs(10),
            ..BurstCost::default()
        };
        assert_eq!(budget.pause(&cost(0, 0)), None);
        assert_eq!(budget.pause(&cost(98, 98)), None);
        // One millisecond is 1 % of a tenth of a second.
        let pause = budget.pause(&cost(100, 100)).expect("a pause");
        assert!((99..=101).contains(&pause.as_millis()), "{pause:?}");
    }
}
