//! The places where a program runs at its own speed. Samples are taken by the processor's cycles, or by its tasks'
//! clock, which needs no counters.

use crate::error::{Doing, Result};
use crate::process::child::{Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::Run;
use lineup_model::sampling::ClockEvent;
use perf_event::data::Record;
use perf_event::events::{Event, Hardware, Software};
use perf_event::{Builder, SampleFlag, Sampler};
use rustix::process::Pid;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Samples a second of each task.
const SAMPLES_PER_SECOND: u64 = 2000;

/// Bytes of samples that the kernel holds for each processor until they are read, which is done many times a second.
const BUFFER_BYTES: usize = 1 << 18;

/// The number of samples at each place of a program.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ClockSamples {
    /// The event that triggered the samples.
    pub event: ClockEvent,
    /// By file and offset in it.
    pub places: BTreeMap<(PathBuf, u64), u64>,
    /// In code of no file.
    pub outside: u64,
    /// Taken and not kept.
    pub lost: u64,
    /// Processor time of the whole run, the system's for it included.
    pub cpu_ns: u64,
    /// Page faults that needed no disk.
    pub page_faults: u64,
    /// True when the last that the program printed ends no line.
    pub prints_open_line: bool,
}

impl ClockSamples {
    /// All that were kept.
    pub fn all(&self) -> u64 {
        self.places.values().sum::<u64>() + self.outside
    }
}

/// Runs a program at its own speed and samples it and its children, in user mode.
///
/// # Errors
/// When it cannot be started, or the kernel takes no samples.
pub fn sample(run: &Run, interrupts: &Interrupts) -> Result<ClockSamples> {
    let waiting = Waiting::start(run, Streams::Captured, interrupts)?;
    let (samplers, event) = best_samplers(waiting.pid()).doing("sampling the program by the clock")?;
    let samples = ClockSamples { event, ..ClockSamples::default() };
    let reading = RefCell::new(Reading { samplers, samples, ..Reading::default() });
    let finished = waiting.run_until(&|| {
        reading.borrow_mut().read();
        false
    })?;
    let mut reading = reading.into_inner();
    reading.read();
    let usage = finished.usage;
    Ok(ClockSamples {
        cpu_ns: usage.user_ns + usage.system_ns,
        page_faults: usage.minor_faults,
        prints_open_line: finished.stdout.ends_amid_line,
        ..reading.samples
    })
}

/// Samplers by the processor's cycles where it counts them, else by the tasks' clock.
fn best_samplers(child: Pid) -> io::Result<(Vec<Sampler>, ClockEvent)> {
    if let Ok(samplers) = samplers(child, Hardware::CPU_CYCLES) {
        return Ok((samplers, ClockEvent::Cycles));
    }
    Ok((samplers(child, Software::TASK_CLOCK)?, ClockEvent::TaskClock))
}

/// A sampler for each processor: a single one cannot follow a task and its children.
fn samplers(child: Pid, event: impl Event + Clone) -> io::Result<Vec<Sampler>> {
    let processors = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    let each = processors_in(processors.trim()).into_iter().map(|processor| {
        let mut builder = Builder::new(event.clone());
        builder
            .observe_pid(child.as_raw_nonzero().get())
            .one_cpu(processor)
            .inherit(true)
            .enable_on_exec(true)
            .exclude_kernel(true)
            .exclude_hv(true)
            .sample_frequency(SAMPLES_PER_SECOND)
            .sample(SampleFlag::IP | SampleFlag::TID)
            .mmap(true)
            .mmap2(true);
        builder.build()?.sampled(BUFFER_BYTES)
    });
    each.collect()
}

/// `0-3,5` in single numbers.
pub(crate) fn processors_in(list: &str) -> Vec<usize> {
    let ranges = list.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// Samples under way.
#[derive(Default)]
struct Reading {
    samplers: Vec<Sampler>,
    /// Code that processes have mapped: by process, from its start to its end, its offset in its file, and that.
    mapped: HashMap<u32, BTreeMap<u64, (u64, u64, PathBuf)>>,
    /// Samples of processes whose records have not arrived yet.
    early: Vec<(u32, u64)>,
    samples: ClockSamples,
}

impl Reading {
    /// Reads the records that the kernel has gathered.
    fn read(&mut self) {
        let mut samplers = std::mem::take(&mut self.samplers);
        for sampler in &mut samplers {
            while let Some(record) = sampler.next_record() {
                if let Ok(record) = record.parse_record() {
                    self.take(&record);
                }
            }
        }
        self.samplers = samplers;
        // Another processor's records may have announced the file since.
        for (process, address) in std::mem::take(&mut self.early) {
            self.count(process, address);
        }
    }

    fn take(&mut self, record: &Record<'_>) {
        match record {
            Record::Mmap2(mapped) => {
                let file = PathBuf::from(OsStr::from_bytes(mapped.filename_os().as_bytes()));
                let of_process = self.mapped.entry(mapped.pid).or_default();
                of_process.insert(mapped.addr, (mapped.addr.saturating_add(mapped.len), mapped.pgoff, file));
            }
            Record::Fork(forked) => {
                if let Some(known) = self.mapped.get(&forked.ppid).cloned() {
                    self.mapped.entry(forked.pid).or_insert(known);
                }
            }
            Record::Sample(sample) => {
                if let (Some(process), Some(address)) = (sample.pid(), sample.ip()) {
                    self.early.push((process, address));
                }
            }
            Record::Lost(lost) => self.samples.lost += lost.lost,
            _ => {}
        }
    }

    fn count(&mut self, process: u32, address: u64) {
        let of_process = self.mapped.get(&process);
        let below = of_process.and_then(|mapped| mapped.range(..=address).next_back());
        match below.filter(|(_, (end, ..))| address < *end) {
            Some((start, (_, offset, file))) if file.is_absolute() => {
                let place = (file.clone(), address - start + offset);
                *self.samples.places.entry(place).or_default() += 1;
            }
            _ => self.samples.outside += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(processors_in("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(processors_in("0"), [0]);
        assert_eq!(processors_in(""), [0usize; 0]);
    }

    #[test]
    fn samples_have_the_file_that_lay_there() {
        let mut reading = Reading::default();
        let file = PathBuf::from("/bin/program");
        reading.mapped.entry(7).or_default().insert(0x5000, (0x7000, 0x1000, file.clone()));
        reading.mapped.entry(7).or_default().insert(0x9000, (0xa000, 0, "[vdso]".into()));
        [(7, 0x5010), (7, 0x6fff), (7, 0x7000), (7, 0x9010), (8, 0x5010)]
            .into_iter()
            .for_each(|(process, address)| reading.count(process, address));
        let expected = [((file.clone(), 0x1010), 1), ((file, 0x2fff), 1)];
        assert_eq!((reading.samples.places, reading.samples.outside), (expected.into(), 3));
    }
}
