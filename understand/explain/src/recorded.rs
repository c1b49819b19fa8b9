//! A recording as a source of evidence: the parts that are read from it once, and its calls anew for each pass.

use crate::error::ExplainError;
use crate::evidence_source::{EvidenceSource, Tells, explain};
use crate::explainer::Options;
use crate::explanation::Explanation;
use crate::images::image::Placed;
use crate::images::kernel_files::KernelFiles;
use crate::summary::stalls::Stalls;
use crate::threads::{Of, Tasks};
use lineup_debuginfo::DebugInfo;
use lineup_model::access::{Call, CallEnd, MemoryEvent, StackRange};
use lineup_model::image::LoadedImage;
use lineup_model::process::{AddressSpace, Process};
use lineup_model::region::{RegionId, Regions};
use lineup_recording::{
    Arm, Damage, Ending, Event, Header, KernelTask, Mode, Reach, Reader, RecordingError, Summary, Turn,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// Everything in a recording but its calls.
#[derive(Clone, PartialEq, Debug)]
pub struct Survey {
    /// The recording's header.
    pub header: Header,
    /// Its processes, in order of their start.
    pub processes: Vec<Process>,
    /// Files mapped into the processes that made calls, each once, where the first had it.
    pub images: Vec<LoadedImage>,
    /// The places of other processes' images.
    pub places: Vec<Placed>,
    /// The addresses to which a kernel loaded the sections of its modules, by the modules' positions among the images,
    /// and by the address that a section has when the file is read by itself. All addresses in such an image are those
    /// at which it ran.
    pub modules: BTreeMap<usize, BTreeMap<u64, u64>>,
    /// Stacks of its threads.
    pub stacks: Vec<StackRange>,
    /// Base addresses of its threads, as far as system calls gave them.
    pub thread_bases: Vec<u64>,
    /// When memory began and ended its life.
    pub memory: Vec<MemoryEvent>,
    /// Runtime addresses of the instructions that accessed data in any call, and at which calls with arguments began.
    pub pcs: BTreeSet<u64>,
    /// The recorder's counts; `None` when it did not get to write them.
    pub summary: Option<Summary>,
    /// The ending of the program; `None` when that was not written.
    pub ending: Option<Ending>,
    /// The place where the file stops being readable, if it does.
    pub damage: Option<Damage>,
    /// Calls in the recording.
    pub calls: u64,
    /// True when it holds the values of registers at the beginning of calls.
    pub has_arguments: bool,
    /// The stalls in the recorder's processor model.
    pub stalls: Stalls,
    /// The tasks of a whole system.
    pub tasks: Vec<KernelTask>,
    /// The tasks that its CPUs worked for, with the times.
    pub turns: Vec<Turn>,
    /// The places of its calls in the order of all CPUs.
    pub reaches: Vec<Reach>,
    /// Instructions of each of its measured calls that returned and before which nothing was done.
    pub instructions: BTreeMap<RegionId, Vec<u64>>,
}

impl Survey {
    /// Reads a recording through.
    pub fn read<R: Read>(mut reader: Reader<R>) -> Survey {
        let mut survey = Survey {
            header: reader.header().clone(),
            processes: Vec::new(),
            images: Vec::new(),
            places: Vec::new(),
            modules: BTreeMap::new(),
            stacks: Vec::new(),
            thread_bases: Vec::new(),
            memory: Vec::new(),
            pcs: BTreeSet::new(),
            summary: None,
            ending: None,
            damage: None,
            calls: 0,
            has_arguments: false,
            stalls: Stalls::default(),
            tasks: Vec::new(),
            turns: Vec::new(),
            reaches: Vec::new(),
            instructions: BTreeMap::new(),
        };
        let mut spaces = BTreeSet::new();
        let models = !survey.header.caches.is_empty();
        for event in reader.by_ref() {
            match event {
                Event::Process(process) => survey.processes.push(process),
                Event::Image(image) => survey.images.push(image),
                Event::Stack(stack) => survey.stacks.push(stack),
                Event::ThreadBase(base) => survey.thread_bases.push(base),
                Event::Call(call) => {
                    survey.calls += 1;
                    survey.has_arguments |= call.arguments.is_some();
                    spaces.extend(call.code_granules.first().map(|granule| AddressSpace::of(*granule)));
                    survey.pcs.extend(call.pcs());
                }
                Event::Memory(event) => survey.memory.push(event),
                Event::Summary(summary) => Summary::add_to(&mut survey.summary, summary),
                Event::Ending(ending) => survey.ending = Some(ending),
                Event::Task(task) => survey.tasks.push(task),
                Event::Turn(turn) => survey.turns.push(turn),
                Event::Reach(reach) => survey.reaches.push(reach),
                Event::Measured(call) => {
                    if models {
                        survey.stalls.add(&call);
                    }
                    if call.end == CallEnd::Returned && call.arm == Arm::Untouched {
                        survey.instructions.entry(call.region).or_default().push(call.own.instructions);
                    }
                }
                Event::System(last_words) if models => survey.stalls.set_all(&last_words),
                Event::System(_)
                | Event::Profile(_)
                | Event::Instruction(_)
                | Event::Window(_)
                | Event::AllocationSite(_)
                | Event::Placement(_)
                | Event::Context(_)
                | Event::Stream(_)
                | Event::LogBlock(_)
                | Event::LogPart(_) => {}
            }
        }
        survey.damage = reader.damage().cloned();
        survey.processes.sort_by_key(|process| process.id);
        if survey.header.mode != Mode::System {
            survey
                .images
                .retain(|image| spaces.is_empty() || spaces.contains(&AddressSpace::of(image.start)));
            survey.part_places();
        } else {
            let files = KernelFiles::of(std::mem::take(&mut survey.images));
            (survey.images, survey.places, survey.modules) = (files.images, files.places, files.sections);
        }
        survey
    }

    /// Keeps each file once, and where it was besides.
    fn part_places(&mut self) {
        let mut files: Vec<LoadedImage> = Vec::new();
        for loaded in self.images.drain(..) {
            let is_same = |file: &LoadedImage| file.path == loaded.path && file.build_id == loaded.build_id;
            match files.iter().position(is_same) {
                Some(image) => self.places.push(Placed { image, loaded }),
                None => files.push(loaded),
            }
        }
        self.images = files;
    }

    /// Explains the calls. `debug` holds the debug info of each image, in the order of
    /// [`Survey::images`]; `open` opens the recording anew, once for each of two passes.
    ///
    /// # Errors
    /// When the recording cannot be opened again or the disassembler fails.
    pub fn explain<'s, R: Read + 's>(
        &'s self,
        debug: &[Option<DebugInfo>],
        options: Options,
        open: impl Fn() -> Result<Reader<R>, RecordingError>,
    ) -> Result<Explanation, ExplainError> {
        explain(&Recording { survey: self, open }, debug, options)
    }
}

/// A recording as a source: the parts that were read from it once, and the way to open it anew for its calls.
struct Recording<'s, Open> {
    survey: &'s Survey,
    open: Open,
}

impl<'s, R: Read + 's, Open: Fn() -> Result<Reader<R>, RecordingError>> EvidenceSource
    for Recording<'s, Open>
{
    /// Calls are recorded from entry to return. In a whole system no plugin sees values, nor who allocates.
    fn tells(&self) -> Tells {
        let is_program = self.survey.header.mode != Mode::System;
        let of = if is_program { Of::Threads } else { Of::Cpus };
        let registers = self.survey.has_arguments;
        Tells { whole_calls: true, values: is_program, memory: is_program, registers, of }
    }

    fn regions(&self) -> &Regions {
        &self.survey.header.regions
    }

    fn images(&self) -> &[LoadedImage] {
        &self.survey.images
    }

    fn places(&self) -> &[Placed] {
        &self.survey.places
    }

    fn processes(&self) -> &[Process] {
        &self.survey.processes
    }

    fn stacks(&self) -> &[StackRange] {
        &self.survey.stacks
    }

    fn calls(&self) -> Result<Box<dyn Iterator<Item = Call> + '_>, ExplainError> {
        let reader = (self.open)()?;
        Ok(Box::new(reader.filter_map(|event| match event {
            Event::Call(call) => Some(call),
            _ => None,
        })))
    }

    fn memory(&self) -> &[MemoryEvent] {
        &self.survey.memory
    }

    fn thread_bases(&self) -> &[u64] {
        &self.survey.thread_bases
    }

    fn order(&self) -> (Tasks, Vec<Reach>) {
        let Survey { tasks, turns, reaches, .. } = self.survey;
        (Tasks::new(tasks.iter().cloned(), turns.clone()), reaches.clone())
    }

    fn calls_made(&self) -> Vec<u64> {
        self.survey.summary.iter().flat_map(|summary| &summary.regions).map(|counts| counts.seen).collect()
    }

    fn pcs(&self) -> Result<BTreeSet<u64>, ExplainError> {
        Ok(self.survey.pcs.clone())
    }
}
