//! From calls to accesses of threads in an order, two passes.

use crate::error::ExplainError;
use crate::naming::access_context::AccessContext;
use crate::naming::name::Name;
use crate::naming::namer::Namer;
use crate::naming::owner::{OwnerKey, Part, parts};
use crate::threads::access_log::{Log, Use};
use crate::threads::access_times::{is_store_of, times};
use crate::threads::locks::Locks;
use crate::threads::report::Of;
use crate::threads::sharing::LineThreads;
use crate::threads::tasks::{Tasks, Whom};
use crate::threads::windowed_calls::{Reaches, Within};
use lineup_coherence::{Access, Kind, Span, Timed};
use lineup_model::access::{self, AccessKind, Call, ProcessId, ThreadId};
use std::collections::{BTreeMap, HashMap};

/// The distance within which bytes count as one line when lines of one thread alone are dropped. Other line sizes and
/// places can then be tried.
const GRANULE_BYTES: u64 = 256;

/// The largest number of kept accesses to shared lines of all threads, and of their bytes: the cost of the later steps
/// grows with both.
const MOST_ACCESSES: usize = 1 << 21;
/// See [`MOST_ACCESSES`].
const MOST_BYTES: u64 = 1 << 24;

/// The collected accesses of all calls.
pub struct Collector {
    lines: LineThreads,
    pub(super) logs: BTreeMap<ProcessId, BTreeMap<ThreadId, Log>>,
    pub(super) uses: Vec<Use>,
    known: HashMap<Use, u32>,
    pub(super) locks: Locks,
    pub(super) calls_without_times: u64,
    pub(super) of: Of,
    pub(super) tasks: Tasks,
    pub(super) reaches: Reaches,
    /// Accesses that are kept in all logs, and their bytes.
    kept: (usize, u64),
}

/// The circumstances of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Cause {
    /// The lock under which it is done.
    under: Option<u32>,
    whom: Option<Whom>,
    within: Option<Within>,
}

/// The key under which an access is named once in a call: pc, address, size and kind, and its circumstances.
type NamedAccesses = HashMap<((u64, u64, u32, AccessKind), Cause), Vec<(u64, u32, u32)>>;

impl Collector {
    /// Nothing yet.
    pub(crate) fn new(of: Of, tasks: Tasks, reaches: Reaches) -> Collector {
        Collector {
            lines: LineThreads::default(),
            logs: BTreeMap::new(),
            uses: Vec::new(),
            known: HashMap::new(),
            locks: Locks::new(of),
            calls_without_times: 0,
            of,
            tasks,
            reaches,
            kept: (0, 0),
        }
    }

    /// First pass: learns which lines several threads use.
    pub(crate) fn observe(&mut self, call: &Call, namer: &Namer<'_>) {
        if call.times.is_empty() {
            self.calls_without_times += 1;
            return;
        }
        self.locks.observe(call, self.task_of(call), namer);
        if self.of == Of::Cpus {
            self.reaches.see_window(call.sequence);
        }
        let mut last = None;
        for access in &call.accesses {
            let is_store = access.kind == AccessKind::Store;
            for granule in granules(access) {
                if last != Some((granule, is_store)) {
                    self.lines.add((call.process, granule), call.thread, is_store);
                    last = Some((granule, is_store));
                }
            }
        }
    }

    /// Between the passes.
    pub fn settle(&mut self) {
        self.lines.settle();
        self.locks.settle();
        self.reaches.settle();
    }

    /// Second pass: keeps and names accesses to these lines.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub fn add(&mut self, call: &Call, namer: &mut Namer<'_>) -> Result<(), ExplainError> {
        let Some((times, ended_at)) = times(&call.times, &call.accesses) else { return Ok(()) };
        let began_at = call.times.first().map_or(0, |mark| mark.cycles);
        let under = self.locks.see(call, &times, self.task_of(call), namer);
        let mut log = self.take_log(call);
        let first = log.accesses.len();
        let thread = 0;
        let cpu = call.thread.0;
        let whom = self.tasks.at(cpu, began_at).filter(|_| self.of == Of::Cpus);
        let (mut context, mut known) = (AccessContext::of(call.process), NamedAccesses::new());
        let mut all = call.accesses.iter().zip(times.iter().zip(&under)).peekable();
        while let Some((access, (at, under))) = all.next() {
            let is_shared = granules(access).any(|granule| self.lines.is_shared((call.process, granule)));
            if !is_shared {
                context.next(call.entered_at);
                continue;
            }
            let is_updated = all.next_if(|(next, _)| is_store_of(access, next)).is_some();
            if is_full(self.kept) {
                // Naming takes far longer than counting.
                log.left_out += 1;
                context.next(call.entered_at);
                if is_updated {
                    context.next(call.entered_at);
                }
                continue;
            }
            let at_moment = (&mut context, call.entered_at);
            let within = self.reaches.at(cpu, call.depth, *at);
            let cause = Cause { under: *under, whom, within };
            let named = self.named((access, cause), at_moment, &mut known, namer)?;
            if is_updated {
                context.next(call.entered_at);
            }
            let kind = match access.kind {
                AccessKind::Store => Kind::Store,
                AccessKind::Load if is_updated => Kind::Update,
                AccessKind::Load => Kind::Load,
            };
            let (mut accesses, mut bytes) = self.kept;
            for (address, size_bytes, tag) in self.on_shared_lines(call.process, &named) {
                if is_full((accesses, bytes)) {
                    log.left_out += 1;
                    break;
                }
                (accesses, bytes) = (accesses + 1, bytes + u64::from(size_bytes));
                let access = Access { thread, address, size_bytes, kind, tag };
                log.accesses.push(Timed { access, at: *at });
            }
            self.kept = (accesses, bytes);
        }
        log.spans.push(Span { thread, first, end: log.accesses.len(), began_at, ended_at });
        log.all_accesses += call.accesses.len() as u64;
        log.time += ended_at.saturating_sub(began_at);
        *log.regions.entry(call.region).or_default() += 1;
        self.logs.entry(call.process).or_default().insert(call.thread, log);
        Ok(())
    }

    /// The touched parts that lie on lines of several threads: a string instruction may touch megabytes.
    fn on_shared_lines<'n>(
        &'n self,
        process: ProcessId,
        named: &'n [(u64, u32, u32)],
    ) -> impl Iterator<Item = (u64, u32, u32)> + 'n {
        named.iter().flat_map(move |&(address, size_bytes, tag)| {
            let end = address.saturating_add(u64::from(size_bytes));
            let granules = (address / GRANULE_BYTES..=end.saturating_sub(1).max(address) / GRANULE_BYTES)
                .filter(move |granule| self.lines.is_shared((process, *granule)));
            granules.map(move |granule| {
                let from = address.max(granule * GRANULE_BYTES);
                let to = end.min((granule + 1).saturating_mul(GRANULE_BYTES));
                (from, to.saturating_sub(from) as u32, tag)
            })
        })
    }

    /// The task that a CPU works for in a piece, no interrupt.
    fn task_of(&self, call: &Call) -> Option<u32> {
        match self.tasks.at(call.thread.0, call.times.first()?.cycles)? {
            Whom::Task(number) if self.of == Of::Cpus => Some(number),
            _ => None,
        }
    }

    fn take_log(&mut self, call: &Call) -> Log {
        let of_process = self.logs.entry(call.process).or_default();
        of_process.get_mut(&call.thread).map(std::mem::take).unwrap_or_default()
    }

    /// The ranges that an access touched, with their tags. Accesses of one instruction at the same place in the same
    /// call have the same name.
    fn named(
        &mut self,
        (access, cause): (&access::Access, Cause),
        (context, entered_at): (&mut AccessContext, u64),
        known: &mut NamedAccesses,
        namer: &mut Namer<'_>,
    ) -> Result<Vec<(u64, u32, u32)>, ExplainError> {
        let key = ((access.pc, access.address, access.size_bytes, access.kind), cause);
        if let Some(named) = known.get(&key) {
            context.next(entered_at);
            return Ok(named.clone());
        }
        let mut named = Vec::new();
        for range in namer.name_ranges(access, context, entered_at)? {
            let touched = parts(namer, range.named.name, range.address, u64::from(range.size_bytes));
            let (inside, own): (Vec<Part>, Vec<Part>) =
                touched.into_iter().partition(|part| part.is_in_variable);
            let part = own.first().copied();
            let is_object = |part: &Part| matches!(part.owner, OwnerKey::Object(..));
            let object = inside.first().copied().or(part.filter(is_object));
            let label = if part.is_none() { Some(label(range.named.name)) } else { None };
            let Cause { under, whom, within } = cause;
            let tag = self.tag(Use { pc: access.pc, part, object, label, under, whom, within });
            named.push((range.address, range.size_bytes, tag));
        }
        known.insert(key, named.clone());
        Ok(named)
    }

    fn tag(&mut self, used: Use) -> u32 {
        let uses = &mut self.uses;
        *self.known.entry(used).or_insert_with_key(|used| {
            uses.push(used.clone());
            uses.len() as u32 - 1
        })
    }
}

/// Whether no more of this many accesses and bytes are kept.
fn is_full((accesses, bytes): (usize, u64)) -> bool {
    accesses >= MOST_ACCESSES || bytes >= MOST_BYTES
}

fn granules(access: &access::Access) -> std::ops::RangeInclusive<u64> {
    let last = access.address.saturating_add(u64::from(access.size_bytes.max(1)) - 1);
    access.address / GRANULE_BYTES..=last / GRANULE_BYTES
}

fn label(name: Name) -> &'static str {
    match name {
        Name::Stack { .. } => "(stack)",
        Name::Buffer { .. } => "(array behind a pointer)",
        Name::Constant { .. } => "(constant)",
        Name::ThreadHead { .. } | Name::ThreadLocal { .. } => "(thread-local)",
        Name::Library { .. } => "(library's data)",
        Name::Copied => "(copied for programs)",
        Name::Heap => "(heap)",
        Name::Variable { .. } | Name::Symbol { .. } | Name::Member { .. } | Name::Unknown => "(unnamed)",
    }
}
