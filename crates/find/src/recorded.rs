//! What is read from the recording of a whole program.

use lineup_model::access::StackRange;
use lineup_model::image::LoadedImage;
use lineup_recording::{
    AllocationSite, Context, Damage, Ending, Event, Header, KernelTask, ProfileInstruction, ProfileRun,
    Reader, Summary, Window,
};
use std::collections::BTreeMap;
use std::io::Read;

/// A recording of a whole program, with windows of its run.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// What was recorded, and how.
    pub header: Header,
    /// Files mapped into the program.
    pub images: Vec<LoadedImage>,
    /// Stacks that the recorder told of.
    pub stacks: Vec<StackRange>,
    /// Bases that threads were given, as far as it told.
    pub thread_bases: Vec<u64>,
    /// Counts of runs of instructions.
    pub runs: Vec<ProfileRun>,
    /// Counts of instructions that access data.
    pub instructions: Vec<ProfileInstruction>,
    /// Where it allocated memory, as far as that was seen.
    pub sites: Vec<AllocationSite>,
    /// What a kernel missed, by what it worked for.
    pub contexts: Vec<Context>,
    /// Its tasks.
    pub tasks: Vec<KernelTask>,
    /// Windows of the run, whole, by when they began.
    pub windows: Vec<Window>,
    /// The recorder's counts.
    pub summary: Option<Summary>,
    /// How the program ended.
    pub ending: Option<Ending>,
    /// Where the file stopped being readable, when it did.
    pub damage: Option<Damage>,
}

impl Recorded {
    /// Leaves out the counts of code below an address, as that of a guest's programs; gives its share of all instructions.
    /// Windows stay whole, since such code uses the caches as well.
    pub fn leave_out_below(&mut self, start: u64) -> f64 {
        let sum = |runs: &[ProfileRun]| runs.iter().map(|run| run.instructions).sum::<u64>();
        let all = sum(&self.runs);
        self.runs.retain(|run| run.pc >= start);
        self.instructions.retain(|counts| counts.pc >= start);
        (all - sum(&self.runs)) as f64 / all.max(1) as f64
    }

    /// Reads a recording through.
    pub fn read<R: Read>(mut reader: Reader<R>) -> Recorded {
        let mut recorded = Recorded {
            header: reader.header().clone(),
            images: Vec::new(),
            stacks: Vec::new(),
            thread_bases: Vec::new(),
            runs: Vec::new(),
            instructions: Vec::new(),
            sites: Vec::new(),
            contexts: Vec::new(),
            tasks: Vec::new(),
            windows: Vec::new(),
            summary: None,
            ending: None,
            damage: None,
        };
        let mut windows: BTreeMap<u64, Window> = BTreeMap::new();
        for event in reader.by_ref() {
            match event {
                Event::Image(image) => recorded.images.push(image),
                Event::Stack(stack) => recorded.stacks.push(stack),
                Event::ThreadBase(base) => recorded.thread_bases.push(base),
                Event::Profile(run) => recorded.runs.push(run),
                Event::Instruction(counts) => recorded.instructions.push(counts),
                Event::Window(part) => {
                    let Window { number, thread, .. } = part;
                    let empty = Window { number, thread, ..Window::default() };
                    let window = windows.entry(number).or_insert(empty);
                    window.resident = window.resident.take().or(part.resident);
                    window.steps.extend(part.steps);
                    window.sites.extend(part.sites);
                }
                Event::Context(context) => recorded.contexts.push(context),
                Event::Task(task) => recorded.tasks.push(task),
                Event::AllocationSite(site) => recorded.sites.push(site),
                Event::Summary(summary) => Summary::add_to(&mut recorded.summary, summary),
                Event::Ending(ending) => recorded.ending = Some(ending),
                _ => {}
            }
        }
        recorded.windows = windows.into_values().collect();
        recorded.damage = reader.damage().cloned();
        recorded
    }
}
