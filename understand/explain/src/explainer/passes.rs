//! From calls to an explanation, in two passes.

use super::aligned_parts::{AlignedParts, AskedAlignment, is_of_c_library};
use crate::error::ExplainError;
use crate::explanation::{
    CodeLine, Coverage, ExpectedMisses, Explanation, Lack, RegionExplanation, SharedLine, Tells, UnnamedIn,
};
use crate::images::image::{Image, Placed};
use crate::memory::mappings::Mappings;
use crate::naming::access_context::AccessContext;
use crate::naming::namer::Namer;
use crate::naming::owner::{OwnerKey, Part, part_name, parts, variable_ref};
use crate::summary::line_map::{THREAD_LOCAL, block_lines, object_lines, variable_lines};
use crate::summary::quantiles::Quantiles;
use crate::summary::tally::{CallTally, RegionTally};
use crate::threads::sharing::{LineThreads, Shared, SharedUse, share};
use crate::threads::{Collector, Of, Owned, Reaches, Tasks};
use lineup_cache::{CacheLevel, CacheSpec, expected_misses};
use lineup_debuginfo::spelled;
use lineup_model::access::{
    Access, AccessKind, CODE_GRANULE_BYTES, Call, CallEnd, MemoryEvent, StackRange, ThreadId,
};
use lineup_model::line::LineSize;
use lineup_model::process::Process;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_recording::Reach;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The options of an explanation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Line size of the maps.
    pub line_size: LineSize,
    /// Caches for which misses are expected.
    pub caches: Vec<CacheSpec>,
    /// Bytes of other data between two calls, for each of which misses are expected.
    pub pressure_bytes: Vec<u64>,
    /// The program's own run time in seconds, for calls per second.
    pub program_seconds: Option<f64>,
    /// The number of listed functions with unnamed accesses.
    pub unnamed_functions: usize,
    /// For each region of a kernel, the count of instructions beyond which a call is of its tail. Waits of the tail are
    /// listed separately.
    pub unusual: BTreeMap<RegionId, f64>,
    /// Only the accesses between threads are explained.
    pub only_threads: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            line_size: LineSize::B64,
            caches: Vec::new(),
            pressure_bytes: Vec::new(),
            program_seconds: None,
            unnamed_functions: 10,
            unusual: BTreeMap::new(),
            only_threads: false,
        }
    }
}

/// Explains a recording: give every call to [`Explainer::observe`], call [`Explainer::settle`], give
/// every call to [`Explainer::explain`], then [`Explainer::finish`].
pub struct Explainer<'a> {
    pub(super) namer: Namer<'a>,
    regions: Regions,
    pub(super) tells: Tells,
    /// Calls that the program made of each region, when counted.
    calls_made: Vec<u64>,
    tallies: BTreeMap<RegionId, RegionTally>,
    threads: BTreeSet<ThreadId>,
    lines: LineThreads,
    shared: Vec<SharedUse>,
    between: Collector,
    pub(super) owned: Owned,
    /// Bytes of objects that instructions ask to be aligned.
    pub(super) aligned: AlignedParts,
    /// The alignments that instructions require, by program counter.
    asked: HashMap<u64, Option<AskedAlignment>>,
    pub(super) mappings: Mappings,
    options: Options,
}

/// From this size on instructions ask for alignment.
const VECTOR_BYTES: u32 = 16;

impl<'a> Explainer<'a> {
    /// An explainer of calls of these regions. `places` are where images were mapped besides.
    pub fn new(
        (images, places): (Vec<Image<'a>>, &[Placed]),
        memory: &[MemoryEvent],
        stacks: &[StackRange],
        regions: Regions,
        tells: Tells,
        options: Options,
    ) -> Self {
        // The first image of a whole system is the kernel.
        let kernel = images.first().filter(|_| tells.of == Of::Cpus).map(|kernel| kernel.loaded.start);
        let mut namer = Namer::new(images, places, memory, stacks);
        kernel.into_iter().for_each(|start| namer.see_kernel(start));
        Explainer {
            namer,
            regions,
            tells,
            calls_made: Vec::new(),
            tallies: BTreeMap::new(),
            threads: BTreeSet::new(),
            lines: LineThreads::default(),
            shared: Vec::new(),
            between: Collector::new(tells.of, Tasks::default(), Reaches::default()),
            owned: Owned::default(),
            aligned: AlignedParts::default(),
            asked: HashMap::new(),
            mappings: Mappings::new(memory),
            options,
        }
    }

    /// Takes the number of calls the program made of each region, recorded or not, in the order of their ids.
    pub fn see_calls_made(&mut self, calls: impl IntoIterator<Item = u64>) {
        self.calls_made = calls.into_iter().collect();
    }

    /// Before the first pass: the processes of the recording. A forked process has its parent's memory.
    pub fn see_processes(&mut self, processes: &[Process]) {
        self.namer.see_processes(processes);
    }

    /// Before the first pass: bases that threads were given. Others are learned from the code.
    pub fn see_thread_bases(&mut self, bases: &[u64]) {
        self.namer.see_thread_bases(bases);
    }

    /// Before the first pass: for which tasks a kernel's CPUs worked when, and where its calls lie in the order of all.
    pub fn see_tasks(&mut self, tasks: Tasks, reaches: Vec<Reach>) {
        let reaches = Reaches::new(reaches, self.options.unusual.clone());
        self.between = Collector::new(self.tells.of, tasks, reaches);
    }

    /// First pass: learns which objects lay where.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub fn observe(&mut self, call: &Call) -> Result<(), ExplainError> {
        self.threads.insert(call.thread);
        self.between.observe(call, &self.namer);
        self.namer.observe_arguments(call);
        let mut context = AccessContext::of(call.process);
        let mut last_line = None;
        for access in &call.accesses {
            self.namer.observe(access, &mut context, call.entered_at)?;
            let is_store = access.kind == AccessKind::Store;
            for line in self.options.line_size.lines(access.address, u64::from(access.size_bytes)) {
                if last_line != Some((line, is_store)) {
                    self.lines.add((call.process, line), call.thread, is_store);
                    last_line = Some((line, is_store));
                }
            }
        }
        Ok(())
    }

    /// Between the passes.
    pub fn settle(&mut self) {
        self.namer.settle();
        self.lines.settle();
        self.between.settle();
    }

    /// Second pass: names and counts.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub fn explain(&mut self, call: &Call) -> Result<(), ExplainError> {
        if self.threads.len() > 1 {
            self.between.add(call, &mut self.namer)?;
        }
        if self.options.only_threads {
            return Ok(());
        }
        if call.end == CallEnd::Unfinished {
            self.tallies.entry(call.region).or_default().unfinished += 1;
            return Ok(());
        }
        let mut context = AccessContext::of(call.process);
        let mut tally = CallTally::default();
        let mut shared: BTreeMap<(Part, u64), (bool, bool)> = BTreeMap::new();
        for access in &call.accesses {
            let ranges = self.namer.name_ranges(access, &mut context, call.entered_at)?;
            self.tallies.entry(call.region).or_default().name(access, &ranges);
            for range in ranges {
                let size_bytes = u64::from(range.size_bytes);
                let touched = parts(&mut self.namer, range.named.name, range.address, size_bytes);
                tally.add(access.kind, (range.address, size_bytes), &touched);
                self.note_alignment(access, &touched);
                if self.threads.len() > 1 {
                    let user = (call.process, call.thread);
                    touched.iter().for_each(|part| self.owned.add(user, part, access.kind));
                }
                let line = (call.process, self.options.line_size.line_of(range.address));
                if self.threads.len() > 1 && self.lines.is_shared(line) {
                    for part in touched {
                        let (read, written) = shared.entry((part, range.address)).or_default();
                        *(if access.kind == AccessKind::Store { written } else { read }) = true;
                    }
                }
            }
        }
        if !shared.is_empty() {
            let parts = shared.into_iter().map(|((part, at), (read, written))| (part, at, read, written));
            self.shared.push(SharedUse {
                entered_at: call.entered_at,
                process: call.process,
                thread: call.thread,
                parts: parts.collect(),
            });
        }
        let catalog = self.namer.catalog();
        self.tallies.entry(call.region).or_default().end(call, tally, &|ty| catalog.size_bytes(ty));
        Ok(())
    }

    /// Notes which bytes of objects an instruction asks to be aligned.
    fn note_alignment(&mut self, access: &Access, touched: &[Part]) {
        if access.size_bytes < VECTOR_BYTES || self.namer.is_on_stack(access.address) {
            return;
        }
        let namer = &self.namer;
        let asked = *self.asked.entry(access.pc).or_insert_with(|| {
            let bytes = namer.asked_alignment_at(access.pc)?;
            let is_atomic = namer.atomic_at(access.pc).is_some();
            let image = namer.image_at(access.pc);
            let (function, path) = namer.function_at(access.pc);
            (is_atomic || !is_of_c_library(&function, &path)).then_some(AskedAlignment {
                bytes,
                is_atomic,
                image,
            })
        });
        let Some(asked) = asked else { return };
        for part in touched.iter().filter(|part| !part.is_in_variable) {
            if let OwnerKey::Object(ty, start) = part.owner {
                self.aligned.note((ty, start), (part.offset, part.size_bytes), asked);
            }
        }
    }

    /// The explanation, and the namer for further questions.
    pub fn finish(mut self) -> Explanation {
        let shared = share(std::mem::take(&mut self.shared), self.options.line_size);
        let tallies = std::mem::take(&mut self.tallies);
        let mut coverage = Coverage::default();
        for tally in tallies.values() {
            coverage.merge(&tally.coverage);
        }
        let none = RegionTally::default();
        let table = std::mem::take(&mut self.regions);
        let between = std::mem::replace(
            &mut self.between,
            Collector::new(self.tells.of, Tasks::default(), Reaches::default()),
        );
        let between = between.work_out(&mut self.namer, &table, self.options.line_size);
        let (between, replay) = between.unzip();
        let regions = table
            .iter()
            .map(|(id, region)| self.region(id, region, tallies.get(&id).unwrap_or(&none), &shared));
        let regions = regions.collect();
        Explanation {
            schema: "lineup.explain/1",
            tells: self.tells,
            line_bytes: self.options.line_size.bytes(),
            coverage: coverage.settle(),
            regions,
            shared_lines: self.shared_lines(&shared),
            threads: self.threads.len() as u64,
            // Advice on the data that a call uses together needs all the data that it uses.
            usage: if self.tells.whole_calls {
                self.usage(&tallies, &shared, between.as_ref().zip(replay))
            } else {
                Vec::new()
            },
            between,
        }
    }

    fn region(
        &mut self,
        id: RegionId,
        region: &Region,
        tally: &RegionTally,
        shared: &Shared,
    ) -> RegionExplanation {
        let line = self.options.line_size;
        let mut map = object_lines(&mut self.namer, tally, line);
        map.extend(variable_lines(&mut self.namer, tally, line));
        map.extend(block_lines(&mut self.namer, tally, line));
        mark_shared(&mut self.namer, &mut map, shared);
        map.sort_by(|a, b| {
            let order = b.needed_per_call.total_cmp(&a.needed_per_call);
            order.then_with(|| {
                (&a.type_name, a.base_in_line, a.line).cmp(&(&b.type_name, b.base_in_line, b.line))
            })
        });
        let seen = self.calls_made.get(usize::from(id.0)).copied().filter(|seen| *seen > 0);
        RegionExplanation {
            id,
            name: spelled(&region.name),
            weight: region.weight,
            calls: tally.calls,
            unfinished: tally.unfinished,
            abandoned: tally.abandoned,
            missed_blocks: tally.missed_blocks,
            calls_per_second: seen
                .zip(self.options.program_seconds)
                .map(|(seen, seconds)| seen as f64 / seconds),
            instructions: Quantiles::of(&tally.instructions).filter(|_| self.tells.whole_calls),
            lines: if self.tells.whole_calls { tally.lines() } else { Vec::new() },
            coverage: tally.coverage.clone().settle(),
            unnamed: self.unnamed(tally),
            map,
            code: self.code(tally),
            misses: if self.tells.whole_calls { self.misses(tally) } else { Vec::new() },
            folded_patterns: tally.objects.folded()
                + tally.objects_in_variables.folded()
                + tally.blocks.folded()
                + tally.folded_together,
        }
    }

    /// Lines of code with their functions. Of two granules on one line the one that more calls fetched counts.
    fn code(&self, tally: &RegionTally) -> Vec<CodeLine> {
        let line = self.options.line_size.bytes();
        let mut lines: BTreeMap<u64, (BTreeSet<String>, u64)> = BTreeMap::new();
        for (granule, calls) in &tally.code {
            let (functions, most) = lines.entry(granule / line * line).or_default();
            let ends = [*granule, granule + CODE_GRANULE_BYTES - 1];
            functions.extend(ends.map(|pc| self.namer.function_at(pc).0));
            *most = (*most).max(*calls);
        }
        let named = |(address, (functions, calls)): (u64, (BTreeSet<String>, u64))| CodeLine {
            address,
            function: functions.into_iter().collect::<Vec<_>>().join(" | "),
            calls,
        };
        lines.into_iter().map(named).collect()
    }

    fn unnamed(&self, tally: &RegionTally) -> Vec<UnnamedIn> {
        let mut by_function: HashMap<(String, String), (u64, Option<Lack>)> = HashMap::new();
        for (pc, accesses) in &tally.unnamed {
            let (sum, lacks) = by_function.entry(self.namer.function_at(*pc)).or_default();
            *sum += accesses;
            *lacks = lacks.or_else(|| self.namer.lack_at(*pc));
        }
        let mut all: Vec<UnnamedIn> = by_function
            .into_iter()
            .map(|((function, image), (accesses, lacks))| UnnamedIn { function, image, accesses, lacks })
            .collect();
        all.sort_by(|a, b| b.accesses.cmp(&a.accesses).then_with(|| a.function.cmp(&b.function)));
        all.truncate(self.options.unnamed_functions);
        all
    }

    fn misses(&self, tally: &RegionTally) -> Vec<ExpectedMisses> {
        let calls: u64 = tally.footprints.values().sum();
        let mut all = Vec::new();
        for cache in self.options.caches.iter().filter(|_| calls > 0) {
            let granules_per_line = (cache.line().bytes() / LineSize::B32.bytes()).max(1);
            for pressure_bytes in &self.options.pressure_bytes {
                let total: f64 = tally
                    .footprints
                    .iter()
                    .map(|(footprint, calls)| {
                        let (data, code) = match cache.level() {
                            CacheLevel::L1d => (&footprint.data[..], &[][..]),
                            CacheLevel::L1i => (&[][..], &footprint.code[..]),
                            CacheLevel::L2 => (&footprint.data[..], &footprint.code[..]),
                        };
                        let lines = data.iter().chain(code).map(|granule| granule / granules_per_line);
                        expected_misses(cache, lines, *pressure_bytes) * *calls as f64
                    })
                    .sum();
                let misses_per_call = total / calls as f64;
                all.push(ExpectedMisses {
                    cache: cache.to_string(),
                    pressure_bytes: *pressure_bytes,
                    misses_per_call,
                    calls,
                });
            }
        }
        all
    }

    fn shared_lines(&mut self, shared: &Shared) -> Vec<SharedLine> {
        let line = self.options.line_size;
        let mut out: Vec<SharedLine> = Vec::new();
        for (number, of_line) in &shared.lines {
            let parts = of_line.parts.iter().map(|(owner, offset, size, is_written)| {
                let mark = if *is_written { "*" } else { "" };
                format!("{}{mark}", part_name(&mut self.namer, *owner, *offset, *size))
            });
            out.push(SharedLine {
                address: number * line.bytes(),
                parts: parts.collect::<BTreeSet<String>>().into_iter().collect(),
                readers: of_line.readers.iter().map(|thread| thread.0).collect(),
                writers: of_line.writers.iter().map(|thread| thread.0).collect(),
                true_handovers: of_line.true_handovers,
                false_handovers: of_line.false_handovers,
            });
        }
        out.sort_by_key(|line| std::cmp::Reverse((line.true_handovers + line.false_handovers, line.address)));
        out
    }
}

/// Marks the lines on which one thread writes data that another uses, or writes next to it.
fn mark_shared(namer: &mut Namer<'_>, map: &mut [crate::explanation::LineUse], shared: &Shared) {
    let mut objects: BTreeSet<(String, u64)> = BTreeSet::new();
    let mut variables: BTreeSet<u64> = BTreeSet::new();
    for of_line in shared.lines.values().filter(|line| line.true_handovers + line.false_handovers > 0) {
        for (owner, offset, _, _) in &of_line.parts {
            match owner {
                OwnerKey::Object(ty, _) => {
                    objects.insert((namer.catalog().name(*ty), *offset));
                }
                OwnerKey::Block(..) => {
                    objects.insert((THREAD_LOCAL.to_owned(), *offset));
                }
                OwnerKey::Variable(image, variable) => {
                    variables.extend(
                        variable_ref(namer, *image, *variable).map(|(found, _)| found.address + offset),
                    );
                }
            }
        }
    }
    for line in map {
        line.is_shared = line.parts.iter().any(|part| match &line.type_name {
            Some(name) => objects.contains(&(name.clone(), part.offset)),
            None => variables.contains(&part.offset),
        });
    }
}
