//! Perf's description of a trace, before the trace: its source, its processors, and the rate of their timer.

use crate::bytes::{Fields, u64_at};
use crate::header::words;

/// The number of Arm's traces among perf's kinds of traces.
pub(crate) const ARM_SPE: u32 = 4;
/// Words of the first version, which has no number.
const FIRST_VERSION_WORDS: usize = 2;
const SECOND_VERSION: u64 = 2;
/// The number of a processor's words before its parameters.
const CPU_HEAD_WORDS: usize = 3;

/// The source of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Info {
    /// The kind of the event that made it.
    pub(crate) kind: u64,
    cpus: Vec<Cpu>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cpu {
    number: u64,
    /// The processor's identity (its `MIDR_EL1`).
    processor: u64,
    /// The kind of its event: processors of two kinds have two.
    kind: u64,
}

impl Info {
    /// From the record's body; `None` when the trace is of another kind.
    pub(crate) fn parse(body: &[u8]) -> Option<Info> {
        if Fields::new(body).u32()? != ARM_SPE {
            return None;
        }
        let all = words(body.get(8..)?);
        if all.len() == FIRST_VERSION_WORDS {
            return Some(Info { kind: *all.first()?, cpus: Vec::new() });
        }
        let [SECOND_VERSION, head_words, kind, count, ..] = *all.as_slice() else { return None };
        let mut rest = all.get(usize::try_from(head_words).ok()?..)?;
        let mut cpus = Vec::new();
        while (cpus.len() as u64) < count
            && let [_, number, parameters, processor, kind, ..] = *rest
        {
            cpus.push(Cpu { number, processor, kind });
            let own = usize::try_from(parameters).unwrap_or(usize::MAX).saturating_add(CPU_HEAD_WORDS);
            rest = rest.get(own..).unwrap_or_default();
        }
        Some(Info { kind, cpus })
    }

    fn cpu(&self, cpu: Option<u32>) -> Option<&Cpu> {
        let is = |own: &&Cpu, cpu: u32| own.number == u64::from(cpu);
        match cpu {
            // Most often they stand in their order.
            Some(cpu) => {
                let there = self.cpus.get(cpu as usize).filter(|own| is(own, cpu));
                there.or_else(|| self.cpus.iter().find(|own| is(own, cpu)))
            }
            // It ran on any processor: the identity is known only where all are the same.
            None => {
                self.cpus.first().filter(|first| self.cpus.iter().all(|own| own.processor == first.processor))
            }
        }
    }

    /// The identity of the processor with this number. `machines` is the file's identity for the whole machine, for
    /// traces that give none for each processor.
    pub(crate) fn processor(&self, cpu: Option<u32>, machines: Option<u64>) -> Option<u64> {
        if self.cpus.is_empty() { machines } else { Some(self.cpu(cpu)?.processor) }
    }

    /// The kind of the event that made the trace of this processor.
    pub(crate) fn kind_of(&self, cpu: Option<u32>) -> u64 {
        self.cpu(cpu).map_or(self.kind, |own| own.kind)
    }

    /// True when the event of this kind makes traces.
    pub(crate) fn has_kind(&self, kind: u64) -> bool {
        self.kind == kind || self.cpus.iter().any(|own| own.kind == kind)
    }
}

/// The conversion of ticks of the machine's timer to the time of perf's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Clock {
    shift: u32,
    factor: u64,
    zero: u64,
    /// For a timer with fewer bits than a word: ticks at some time, and the bits that count.
    short: Option<(u64, u64)>,
}

impl Clock {
    pub(crate) fn parse(body: &[u8]) -> Option<Clock> {
        let word = |number: usize| u64_at(body, 8 * number);
        let (shift, factor, zero) = (u32::try_from(word(0)?).ok()?, word(1)?, word(2)?);
        let is_short = body.get(41).is_some_and(|is_short| *is_short != 0);
        let short = if is_short { Some((word(3)?, word(4)?)) } else { None };
        (shift < 64 && factor != 0).then_some(Clock { shift, factor, zero, short })
    }

    pub(crate) fn time_ns(&self, ticks: u64) -> u64 {
        let ticks = match self.short {
            Some((then, mask)) => then.wrapping_add(ticks.wrapping_sub(then) & mask),
            None => ticks,
        };
        let passed = (u128::from(ticks) * u128::from(self.factor)) >> self.shift;
        self.zero.wrapping_add(passed as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn both_versions_of_what_perf_writes_are_read() {
        let first = Info::parse(&bytes(&[4, 9, 1])).unwrap();
        assert_eq!((first.kind, first.processor(Some(0), Some(5)), first.kind_of(Some(0))), (9, Some(5), 9));
        let cpus = [0x1010, 0, 3, 0x410f_d0c0, 9, 0, 0x1010, 1, 4, 0x410f_d4f0, 10, 0, 0];
        let second = Info::parse(&bytes(&[&[4, 2, 4, 9, 2][..], &cpus].concat())).unwrap();
        assert_eq!((second.processor(Some(0), Some(5)), second.kind_of(Some(0))), (Some(0x410f_d0c0), 9));
        assert_eq!((second.processor(Some(1), Some(5)), second.kind_of(Some(1))), (Some(0x410f_d4f0), 10));
        assert_eq!(
            (second.processor(Some(2), Some(5)), second.processor(None, Some(5))),
            (None, None),
            "two kinds"
        );
        assert!(second.has_kind(10) && !second.has_kind(11));
        assert_eq!(Info::parse(&bytes(&[1, 9, 1])), None, "Intel's");
        assert_eq!(Info::parse(&bytes(&[4, 7, 1, 1])), None, "a version that is not known");
        assert!(Info::parse(&bytes(&[4, 2, 4, 9, u64::MAX, 1, 2, u64::MAX, 3, 4])).is_some());
    }

    #[test]
    fn ticks_become_times_also_of_a_short_timer() {
        let clock = Clock::parse(&bytes(&[10, 40_960, 1_000])).unwrap();
        assert_eq!((clock.time_ns(0), clock.time_ns(25)), (1_000, 2_000));
        assert_eq!(clock.time_ns(u64::MAX), 1_000u64.wrapping_add((u128::from(u64::MAX) * 40) as u64));
        let short = bytes(&[0, 1, 5, 0x1_0000_00f0, 0xff, 1 << 8 | 1]);
        assert_eq!(Clock::parse(&short).unwrap().time_ns(0x10), 5 + 0x1_0000_0110);
        assert_eq!(Clock::parse(&bytes(&[0, 0, 0])), None);
    }
}
