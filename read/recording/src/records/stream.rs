//! The stream of fetches and accesses that a cache replay needs: a later replay gives the same misses, for any layout
//! of some objects.

use crate::varint::{Cursor, put, put_delta};

/// One step of the stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Code was fetched.
    Fetch {
        /// First byte.
        address: u64,
        /// Bytes, all on one line.
        size_bytes: u32,
    },
    /// Data was loaded or stored.
    Data {
        /// First byte.
        address: u64,
        /// Bytes.
        size_bytes: u32,
        /// A store that takes the line from other CPUs. Recorded only with several CPUs: with one, always false.
        takes_line: bool,
    },
    /// The following steps are this CPU's. The stream of several CPUs begins every part with it; the stream of one
    /// never has it.
    Cpu(u16),
    /// From here on, calls of these regions whose accesses are kept are open on this CPU. Interrupts and other tasks
    /// are not part of them.
    Inside(Vec<u16>),
}

const FETCH: u8 = 0;
const DATA: u8 = 1;
const INSIDE: u8 = 2;
const CPU: u8 = 3;
const TAKING_DATA: u8 = 4;

/// CPUs that a stream can be of.
pub const MOST_CPUS: u16 = 64;

/// Packs steps one after the other. Each fetch and each access is stored as the difference to the one before.
#[derive(Clone, Default, Debug)]
pub struct StreamEncoder {
    out: Vec<u8>,
    last_code: u64,
    last_data: u64,
}

impl StreamEncoder {
    /// Packs a step.
    pub fn step(&mut self, step: &Step) {
        let out = &mut self.out;
        match step {
            Step::Fetch { address, size_bytes } => {
                out.push(FETCH);
                put_delta(out, self.last_code, *address);
                put(out, u64::from(*size_bytes));
                self.last_code = *address;
            }
            Step::Data { address, size_bytes, takes_line } => {
                out.push(if *takes_line { TAKING_DATA } else { DATA });
                put_delta(out, self.last_data, *address);
                put(out, u64::from(*size_bytes));
                self.last_data = *address;
            }
            Step::Cpu(cpu) => {
                out.push(CPU);
                put(out, u64::from(*cpu));
            }
            Step::Inside(regions) => {
                out.push(INSIDE);
                put(out, regions.len() as u64);
                regions.iter().for_each(|region| put(out, u64::from(*region)));
            }
        }
    }

    /// Bytes packed since the last [`StreamEncoder::take`].
    pub fn packed_bytes(&self) -> usize {
        self.out.len()
    }

    /// The packed steps; the next step starts afresh, so that each part can be read alone.
    pub fn take(&mut self) -> Vec<u8> {
        (self.last_code, self.last_data) = (0, 0);
        std::mem::take(&mut self.out)
    }
}

/// The steps of one packed part; `None` when it is malformed.
pub fn steps(packed: &[u8]) -> Option<Vec<Step>> {
    let mut cursor = Cursor::new(packed);
    let (mut last_code, mut last_data) = (0, 0);
    let mut steps = Vec::new();
    while cursor.left() > 0 {
        steps.push(match cursor.byte()? {
            FETCH => {
                last_code = cursor.delta(last_code)?;
                Step::Fetch { address: last_code, size_bytes: u32::try_from(cursor.int()?).ok()? }
            }
            kind @ (DATA | TAKING_DATA) => {
                last_data = cursor.delta(last_data)?;
                let size_bytes = u32::try_from(cursor.int()?).ok()?;
                Step::Data { address: last_data, size_bytes, takes_line: kind == TAKING_DATA }
            }
            CPU => Step::Cpu(u16::try_from(cursor.int()?).ok().filter(|cpu| *cpu < MOST_CPUS)?),
            INSIDE => {
                let count = cursor.count(1)?;
                let regions = (0..count).map(|_| u16::try_from(cursor.int()?).ok()).collect::<Option<_>>()?;
                Step::Inside(regions)
            }
            _ => return None,
        });
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_read_back_and_parts_stand_alone() {
        let first = vec![
            Step::Fetch { address: 0xffff_ffff_8100_0000, size_bytes: 12 },
            Step::Inside(vec![3, 700]),
            Step::Data { address: 0x10, size_bytes: 8, takes_line: false },
        ];
        let second = vec![
            Step::Cpu(63),
            Step::Data { address: u64::MAX, size_bytes: 1, takes_line: true },
            Step::Inside(Vec::new()),
        ];
        let mut encoder = StreamEncoder::default();
        first.iter().for_each(|step| encoder.step(step));
        let one = encoder.take();
        second.iter().for_each(|step| encoder.step(step));
        assert_eq!(steps(&one), Some(first));
        assert_eq!(steps(&encoder.take()), Some(second));
        assert_eq!(steps(&one[..one.len() - 1]), None);
        assert_eq!(steps(&[9]), None);
        assert_eq!(steps(&[CPU, 64]), None, "more CPUs than are recorded");
    }
}
