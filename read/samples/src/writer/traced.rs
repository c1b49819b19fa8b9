//! Traces of Arm's processors in the files that are made.

use super::Writer;
use crate::numbers::{AUXILIARY, TIMER, TRACE_INFO};
use crate::record::{AUXILIARY_WRITTEN, AWAY, STARTED, SWITCHED_BETWEEN};
use crate::spe::ARM_SPE;
use crate::synthetic_records::{pair, words};
use std::io::{self, Write};

/// The mark before the parameters of each processor.
const CPU_MARK: u64 = 0x1010_1010_1010_1010;

/// A part of a trace, as the kernel announces it.
#[derive(Clone, Copy, Default, Debug)]
pub struct PartSpec {
    /// Its position in the trace.
    pub position: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// `PERF_AUX_FLAG_…`.
    pub flags: u64,
    /// The CPU.
    pub cpu: u32,
    /// The process that ran.
    pub process: u32,
    /// The thread that ran.
    pub thread: u32,
    /// The time at which it was written.
    pub time_ns: u64,
}

/// The owner of the buffer that a trace was written into.
#[derive(Clone, Copy, Debug)]
pub enum BufferOf {
    /// A CPU's.
    Cpu(u32),
    /// A thread's.
    Thread(u32),
}

impl<W: Write> Writer<W> {
    /// Announces traces of the event of this kind, in the form of perf up to 6.12.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn trace_info(&mut self, kind: u32) -> io::Result<()> {
        self.container.record(TRACE_INFO, 0, &words(&[u64::from(ARM_SPE), u64::from(kind), 1]))
    }

    /// Announces the same in the form of newer versions, with the identity of each CPU's processor.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn trace_info_of(&mut self, kind: u32, processors: &[u64]) -> io::Result<()> {
        let mut info = vec![u64::from(ARM_SPE), 2, 4, u64::from(kind), processors.len() as u64];
        for (cpu, processor) in processors.iter().enumerate() {
            info.extend([CPU_MARK, cpu as u64, 4, *processor, u64::from(kind), 1024, 0]);
        }
        self.container.record(TRACE_INFO, 0, &words(&info))
    }

    /// Writes the conversion of the timer's ticks to times: multiply, shift right, add the time of tick zero.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn timer(&mut self, shift: u64, factor: u64, zero_ns: u64) -> io::Result<()> {
        self.container.record(TIMER, 0, &words(&[shift, factor, zero_ns, 0, u64::MAX, 1]))
    }

    /// Announces a part of a trace.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn part(&mut self, part: &PartSpec) -> io::Result<()> {
        let body = words(&[part.position, part.size_bytes, part.flags]);
        self.traced(AUXILIARY_WRITTEN, 0, body, part)
    }

    /// Writes that the trace of a thread begins on a CPU.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn started(&mut self, at: &PartSpec) -> io::Result<()> {
        self.traced(STARTED, 0, words(&[pair(at.process, at.thread)]), at)
    }

    /// Writes that a CPU switched from the thread of `at` to another.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn switched(&mut self, at: &PartSpec, process: u32, thread: u32) -> io::Result<()> {
        self.traced(SWITCHED_BETWEEN, AWAY, words(&[pair(process, thread)]), at)
    }

    fn traced(&mut self, number: u32, misc: u16, body: Vec<u8>, of: &PartSpec) -> io::Result<()> {
        let made = self.maker().on_cpu(number, misc, body, (of.process, of.thread), of.cpu, of.time_ns);
        self.made(&made)
    }

    /// Writes a chunk of a trace that begins at this position of it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn chunk(&mut self, of: BufferOf, position: u64, trace: &[u8]) -> io::Result<()> {
        const NONE: u32 = u32::MAX;
        // Perf keeps traces apart by the buffer's number.
        let (buffer, thread, cpu) = match of {
            BufferOf::Cpu(cpu) => (cpu, NONE, cpu),
            BufferOf::Thread(thread) => (0, thread, NONE),
        };
        let mut padded = trace.to_vec();
        padded.resize(trace.len().next_multiple_of(8), 0);
        let announced = [padded.len() as u64, position, 0, pair(buffer, thread), pair(cpu, 0)];
        self.container.record_with(AUXILIARY, &words(&announced), &padded)
    }

    /// The processor's identity, behind the records: `MIDR_EL1` for Arm.
    pub fn processor(&mut self, name: &str) {
        self.about.processor = Some(name.to_owned());
    }
}
