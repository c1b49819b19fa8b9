//! Events that are open on a program, with the buffers that the kernel writes their records into.

use crate::perf::clock;
use crate::perf::events::{MemoryEvent, Numbers};
use crate::perf::redirect;
use lineup_samples::container::{ATTRIBUTE_BYTES, Description};
use lineup_samples::synthetic_records::Maker;
use perf_event::events::Software;
use perf_event::{Builder, Counter, ReadFormat, SampleFlag, Sampler};
use rustix::process::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Sizes of a CPU's buffer: the first that the kernel allows. The first is all that it allows who is not the superuser.
const BUFFER_BYTES: [usize; 3] = [512 << 10, 128 << 10, 32 << 10];
/// Numbers of the events that every machine has: cycles, and the clock of CPUs.
const CYCLES: Numbers = Numbers { kind: 0, configs: [0; 3] };
const CPU_CLOCK: Numbers = Numbers { kind: 1, configs: [0; 3] };
/// Registers of 64-bit programs, as the kernel numbers them: all but segments.
const REGISTERS: u64 = if cfg!(target_arch = "x86_64") {
    0xff_0fff
} else if cfg!(target_arch = "aarch64") {
    0x1_ffff_ffff
} else {
    0
};

/// The basis of samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// Accesses to memory, with their addresses.
    Memory,
    /// The processor's cycles.
    Cycles,
    /// The clock of CPUs, which every machine has.
    Clock,
}

/// An event or a kind of events that was not available.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnavailableEvent {
    /// The event, or the kind of events.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// The processes to sample.
pub(super) enum Target {
    /// A child that has not yet become the program, and its descendants.
    Child(Pid),
    /// Threads that run, and their descendants.
    Threads(Vec<Pid>),
}

/// The rate, the CPUs, and this kernel's abilities.
pub(super) struct Terms {
    pub(super) samples_per_second: u64,
    pub(super) cpus: Vec<usize>,
    tells_lost: bool,
    tells_build_ids: bool,
}

impl Terms {
    pub(super) fn new(samples_per_second: u64, cpus: Vec<usize>) -> Terms {
        let works = |set: &dyn Fn(&mut Builder<'_>)| {
            let mut builder = Builder::new(Software::DUMMY);
            set(&mut builder);
            builder.build().is_ok()
        };
        Terms {
            samples_per_second,
            cpus,
            tells_lost: works(&|builder| {
                builder.read_format(ReadFormat::LOST);
            }),
            tells_build_ids: works(&|builder| {
                builder.mmap(true).mmap2(true).build_id(true);
            }),
        }
    }
}

/// An event to open.
struct EventRequest {
    name: String,
    basis: Basis,
    numbers: Numbers,
    beside: Option<Numbers>,
    cpus: Vec<usize>,
    precise: &'static [u32],
}

/// A way to open an event; when the kernel refuses one, the next asks for less.
#[derive(Clone, Copy)]
struct Manner {
    precise: u32,
    sees_kernel: bool,
    has_registers: bool,
    has_weight_parts: bool,
}

/// An event that is open.
pub(super) struct OpenEvent {
    pub(super) basis: Basis,
    pub(super) description: Description,
    pub(super) sees_kernel: bool,
    pub(super) has_registers: bool,
    sample_type: u64,
}

/// All that is open.
#[derive(Default)]
pub(super) struct OpenEvents {
    pub(super) events: Vec<OpenEvent>,
    /// A buffer for each CPU, with one event that is open there.
    pub(super) buffers: BTreeMap<usize, Sampler>,
    /// All others, and the events counted with them.
    others: Vec<Counter>,
    /// CPUs on which an event reports mappings, names and forks.
    told: BTreeSet<usize>,
}

/// Opens events that sample memory, else cycles, else the clock. `tried` gets the events that were not available.
pub(super) fn open(
    memory: Result<Vec<MemoryEvent>, String>,
    target: &Target,
    terms: &Terms,
    tried: &mut Vec<UnavailableEvent>,
) -> io::Result<OpenEvents> {
    let of_memory = match memory {
        Ok(events) => events.into_iter().map(|event| EventRequest::of_memory(event, terms)).collect(),
        Err(why) => {
            tried.push(UnavailableEvent { what: "memory sampling".to_owned(), why });
            Vec::new()
        }
    };
    let plain = |name: &str, basis, numbers, precise| EventRequest {
        name: name.to_owned(),
        basis,
        numbers,
        beside: None,
        cpus: terms.cpus.clone(),
        precise,
    };
    let ways = [
        of_memory,
        vec![plain("cycles", Basis::Cycles, CYCLES, &[3, 2, 1, 0])],
        vec![plain("cpu-clock", Basis::Clock, CPU_CLOCK, &[0])],
    ];
    let mut last = io::Error::from(io::ErrorKind::Unsupported);
    for way in ways {
        let mut opened = OpenEvents::default();
        for wanted in way {
            if let Err(error) = opened.add(&wanted, target, terms) {
                tried.push(UnavailableEvent { what: wanted.name, why: in_words(&error) });
                last = error;
            }
        }
        if !opened.events.is_empty() {
            return Ok(opened);
        }
    }
    Err(last)
}

/// The reason why an event cannot be opened, and the remedy.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "the kernel does not permit it; sysctl kernel.perf_event_paranoid=1, or `lineup` with sudo"
                .to_owned()
        }
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => "the machine does not have it".to_owned(),
        _ if error.raw_os_error() == Some(libc::ENODEV) => "the machine does not have it".to_owned(),
        io::ErrorKind::InvalidInput => format!(
            "the kernel refuses it of single programs: {error}; of whole processors `perf mem record -a` may get it"
        ),
        _ => format!("the kernel refuses it: {error}"),
    }
}

impl EventRequest {
    fn of_memory(event: MemoryEvent, terms: &Terms) -> EventRequest {
        let own = event.cpus.map(|list| clock::processors_in(&list));
        let cpus = terms.cpus.iter().copied().filter(|cpu| own.as_ref().is_none_or(|own| own.contains(cpu)));
        EventRequest {
            name: event.name,
            basis: Basis::Memory,
            numbers: event.numbers,
            beside: event.beside,
            cpus: cpus.collect(),
            precise: event.precise,
        }
    }

    /// From the most informative to the least demanding.
    fn manners(&self) -> Vec<Manner> {
        let mut all = Vec::new();
        for sees_kernel in [true, false] {
            for precise in self.precise {
                for (has_registers, has_weight_parts) in
                    [(true, true), (true, false), (false, true), (false, false)]
                {
                    let is_of_use = self.basis == Basis::Memory || has_weight_parts;
                    if is_of_use && (!has_registers || REGISTERS != 0) {
                        all.push(Manner { precise: *precise, sees_kernel, has_registers, has_weight_parts });
                    }
                }
            }
        }
        all
    }

    fn carries(&self, manner: Manner) -> SampleFlag {
        let all = SampleFlag::IDENTIFIER | SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME;
        let all = all | SampleFlag::CPU | SampleFlag::PERIOD;
        let weight = if manner.has_weight_parts { SampleFlag::WEIGHT_STRUCT } else { SampleFlag::WEIGHT };
        let own = match self.basis {
            Basis::Memory => SampleFlag::ADDR | SampleFlag::DATA_SRC | weight,
            Basis::Cycles | Basis::Clock => SampleFlag::CALLCHAIN,
        };
        let registers = if manner.has_registers { SampleFlag::REGS_INTR } else { SampleFlag::empty() };
        all | own | registers
    }

    fn builder(&self, manner: Manner, terms: &Terms, tells: bool) -> Builder<'static> {
        let mut builder = basic(&self.numbers, manner, terms);
        builder.sample(self.carries(manner)).sample_frequency(terms.samples_per_second).sample_id_all(true);
        if tells {
            builder.mmap(true).mmap2(true).comm(true).comm_exec(true).task(true);
            builder
                .mmap_data(self.basis == Basis::Memory || manner.has_registers)
                .build_id(terms.tells_build_ids);
        }
        let attributes = builder.attrs_mut();
        attributes.set_precise_ip(manner.precise.into());
        attributes.sample_regs_intr = if manner.has_registers { REGISTERS } else { 0 };
        builder
    }
}

/// The settings common to a sampling event and the event counted with it.
fn basic(numbers: &Numbers, manner: Manner, terms: &Terms) -> Builder<'static> {
    let mut builder = Builder::new(Software::DUMMY);
    let lost = if terms.tells_lost { ReadFormat::LOST } else { ReadFormat::empty() };
    // An event that cannot tell the kernel from programs refuses to exclude either, and has no samples of it.
    builder
        .inherit(true)
        .exclude_kernel(!manner.sees_kernel)
        .exclude_hv(!manner.sees_kernel)
        .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING | lost);
    let attributes = builder.attrs_mut();
    attributes.type_ = numbers.kind;
    [attributes.config, attributes.config1, attributes.config2] = numbers.configs;
    builder
}

/// An event on its way to threads and CPUs.
struct Placing<'a> {
    wanted: &'a EventRequest,
    manner: Manner,
    terms: &'a Terms,
    target: &'a Target,
    /// CPUs on which an event already reports mappings: one event of each task is enough.
    told: &'a BTreeSet<usize>,
}

impl Placing<'_> {
    fn on<'b>(&self, mut builder: Builder<'b>, thread: Pid, cpu: usize) -> Builder<'b> {
        builder.observe_pid(thread.as_raw_nonzero().get()).one_cpu(cpu);
        builder
    }

    /// The event on a thread and a CPU, with the event that must be counted with it.
    fn open(&self, thread: Pid, cpu: usize) -> io::Result<(Counter, Option<Counter>)> {
        let tells = !self.told.contains(&cpu);
        let mut own = self.on(self.wanted.builder(self.manner, self.terms, tells), thread, cpu);
        let begin = |builder: &mut Builder<'_>| {
            let waits = matches!(self.target, Target::Child(_));
            builder.enabled(!waits).enable_on_exec(waits);
        };
        let Some(beside) = &self.wanted.beside else {
            begin(&mut own);
            return Ok((own.build()?, None));
        };
        let mut leader = self.on(basic(beside, self.manner, self.terms), thread, cpu);
        begin(&mut leader);
        let mut leader = leader.build()?;
        // It counts whenever its leader does.
        let own = own.enabled(true).build_with_group(&mut leader)?;
        Ok((own, Some(leader)))
    }

    /// The same, with a buffer.
    fn open_buffer(&self, thread: Pid, cpu: usize) -> io::Result<(Sampler, Option<Counter>)> {
        let mut refused = io::Error::from(io::ErrorKind::Unsupported);
        for size in BUFFER_BYTES {
            let (counter, beside) = self.open(thread, cpu)?;
            match counter.sampled(size) {
                Ok(buffer) => return Ok((buffer, beside)),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// The event's description in a file's head, without identities.
    fn description(&self) -> Description {
        let tells = self.wanted.cpus.iter().any(|cpu| !self.told.contains(cpu));
        let builder = self.wanted.builder(self.manner, self.terms, tells);
        let set = builder.attrs();
        let words = [
            u64::from(set.type_) | (ATTRIBUTE_BYTES as u64) << 32,
            set.config,
            self.terms.samples_per_second,
            set.sample_type,
            set.read_format,
            set._bitfield_1.get(0, 64),
            0,
            set.config1,
            set.config2,
            set.branch_sample_type,
            set.sample_regs_user,
            0,
            set.sample_regs_intr,
        ];
        let mut attribute: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        attribute.resize(ATTRIBUTE_BYTES, 0);
        Description { name: self.wanted.name.clone(), attribute, ids: Vec::new() }
    }
}

impl OpenEvents {
    fn add(&mut self, wanted: &EventRequest, target: &Target, terms: &Terms) -> io::Result<()> {
        let threads = match target {
            Target::Child(child) => std::slice::from_ref(child),
            Target::Threads(threads) => threads.as_slice(),
        };
        let (Some(cpu), Some(thread)) = (wanted.cpus.first(), threads.first()) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut refused = io::Error::from(io::ErrorKind::Unsupported);
        let works = |manner: &Manner| {
            let placing = Placing { wanted, manner: *manner, terms, target, told: &self.told };
            placing.open(*thread, *cpu).map_err(|error| refused = error).is_ok()
        };
        let Some(manner) = wanted.manners().into_iter().find(works) else { return Err(refused) };
        let placing = Placing { wanted, manner, terms, target, told: &self.told };
        let mut placed = Placed::default();
        for thread in threads {
            for cpu in &wanted.cpus {
                match placed.put(&placing, (*thread, *cpu), &self.buffers) {
                    // A thread may have ended since it was listed.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => break,
                    done => done?,
                }
            }
        }
        if placed.ids.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        let description = Description { ids: placed.ids, ..placing.description() };
        self.told.extend(&wanted.cpus);
        self.buffers.append(&mut placed.buffers);
        self.others.append(&mut placed.others);
        self.events.push(OpenEvent {
            basis: wanted.basis,
            description,
            sees_kernel: manner.sees_kernel,
            has_registers: manner.has_registers,
            sample_type: wanted.carries(manner).bits(),
        });
        Ok(())
    }

    /// Makes records that are not the kernel's, for the first event.
    pub(super) fn maker(&self) -> Maker {
        let first = self.events.first();
        Maker {
            sample_type: first.map_or(0, |event| event.sample_type),
            id: first.and_then(|event| event.description.ids.first().copied()).unwrap_or_default(),
        }
    }

    /// Records lost for lack of room, when this kernel counts them.
    pub(super) fn lost(&mut self) -> u64 {
        let own = self.buffers.values_mut().map(Sampler::as_counter_mut).chain(&mut self.others);
        own.filter_map(|counter| counter.read_full().ok()?.lost()).sum()
    }
}

/// One event's open counters.
#[derive(Default)]
struct Placed {
    ids: Vec<u64>,
    buffers: BTreeMap<usize, Sampler>,
    others: Vec<Counter>,
}

impl Placed {
    /// Opens it on a thread and a CPU. The first that is opened on a CPU has a buffer, which the others write into.
    fn put(
        &mut self,
        placing: &Placing<'_>,
        (thread, cpu): (Pid, usize),
        known: &BTreeMap<usize, Sampler>,
    ) -> io::Result<()> {
        let Some(buffer) = known.get(&cpu).or_else(|| self.buffers.get(&cpu)) else {
            let (buffer, beside) = placing.open_buffer(thread, cpu)?;
            self.ids.push(buffer.as_counter().id());
            self.buffers.insert(cpu, buffer);
            self.others.extend(beside);
            return Ok(());
        };
        let (counter, beside) = placing.open(thread, cpu)?;
        redirect::into_buffer_of(&counter, buffer)?;
        self.ids.push(counter.id());
        self.others.extend(beside.into_iter().chain([counter]));
        Ok(())
    }
}
