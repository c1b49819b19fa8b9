//! Other work on the CPUs of timed runs: it is counted, and blocks wait for its end for a while.

use crate::process::interrupt::Interrupts;
use lineup_prove::disturbance::Disturbance;
use lineup_prove::run::{Slot, Usage};
use std::time::{Duration, Instant};

/// From this part of its CPUs on that others had in a block, the next block waits.
const BUSY: f64 = 0.1;
/// The unit of `/proc/stat`: `USER_HZ` is 100 on every machine that Lineup runs on.
const TICK_NS: u64 = 10_000_000;
/// The time between two looks at what others do.
const LOOK: Duration = Duration::from_millis(100);
/// All blocks of a comparison together wait for this long at most.
const PATIENCE: Duration = Duration::from_secs(6);

/// Time that CPUs were busy since the machine's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CpuTimes {
    at: Instant,
    busy_ns: u64,
    stolen_ns: u64,
    cpus: u64,
}

impl CpuTimes {
    /// The times of these CPUs; `None` where the system does not count them.
    pub(super) fn now(cpus: &[u32]) -> Option<CpuTimes> {
        CpuTimes::read(&std::fs::read_to_string("/proc/stat").ok()?, cpus)
    }

    /// `/proc/stat`: of each CPU its ticks as user, nice, system, idle, waiting, in interrupts, in soft interrupts and stolen.
    fn read(text: &str, cpus: &[u32]) -> Option<CpuTimes> {
        let mut sum = CpuTimes { at: Instant::now(), busy_ns: 0, stolen_ns: 0, cpus: 0 };
        for line in text.lines() {
            let Some((name, ticks)) = line.split_once(' ') else { continue };
            let number = name.strip_prefix("cpu").and_then(|number| number.parse::<u32>().ok());
            if number.is_none_or(|number| !cpus.contains(&number)) {
                continue;
            }
            let ticks: Vec<u64> = ticks.split_whitespace().map_while(|tick| tick.parse().ok()).collect();
            let [user, nice, system, _, _, interrupts, soft, stolen, ..] = ticks[..] else { return None };
            sum.busy_ns += (user + nice + system + interrupts + soft) * TICK_NS;
            sum.stolen_ns += stolen * TICK_NS;
            sum.cpus += 1;
        }
        (sum.cpus > 0).then_some(sum)
    }

    /// Others' part of the time since, of which a run had this much.
    fn others(self, now: CpuTimes, own_ns: u64) -> Disturbance {
        let wall_ns = u64::try_from(now.at.duration_since(self.at).as_nanos()).unwrap_or(u64::MAX);
        let busy_ns = now.busy_ns.saturating_sub(self.busy_ns);
        Disturbance {
            cpus_ns: wall_ns * self.cpus,
            others_ns: i64::try_from(busy_ns).unwrap_or(i64::MAX) - i64::try_from(own_ns).unwrap_or(i64::MAX),
            stolen_ns: now.stolen_ns.saturating_sub(self.stolen_ns),
            waited_ns: 0,
        }
    }
}

/// The disturbance of the runs of a comparison.
#[derive(Debug)]
pub(super) struct Watch {
    /// The block of the last run.
    block: Option<u64>,
    /// The sum over its runs.
    of_block: Disturbance,
    /// The time that blocks may still wait.
    left: Duration,
    /// The wait before the run that is next.
    waited_ns: u64,
}

impl Default for Watch {
    fn default() -> Self {
        Watch { block: None, of_block: Disturbance::default(), left: PATIENCE, waited_ns: 0 }
    }
}

impl Watch {
    /// Before a run: the first of a block waits while others are busy on its CPUs, where they were in the last block.
    pub(super) fn begin(&mut self, slot: &Slot, cpus: &[u32], interrupts: &Interrupts) -> Option<CpuTimes> {
        let was_busy = self.of_block.others() >= BUSY;
        if slot.block != self.block {
            self.block = slot.block;
            self.of_block = Disturbance::default();
            if slot.block.is_some() && was_busy {
                self.waited_ns = self.wait(cpus, interrupts);
            }
        }
        CpuTimes::now(cpus)
    }

    /// After a run that used this much.
    pub(super) fn end(&mut self, begun: CpuTimes, cpus: &[u32], usage: &Usage) -> Option<Disturbance> {
        let now = CpuTimes::now(cpus)?;
        let others = begun.others(now, usage.user_ns.saturating_add(usage.system_ns));
        self.of_block = self.of_block.plus(others);
        Some(Disturbance { waited_ns: std::mem::take(&mut self.waited_ns), ..others })
    }

    /// Waits until others leave the CPUs alone, or the patience is at its end.
    fn wait(&mut self, cpus: &[u32], interrupts: &Interrupts) -> u64 {
        let begun = Instant::now();
        while begun.elapsed() < self.left && interrupts.check().is_ok() {
            let Some(before) = CpuTimes::now(cpus) else { break };
            std::thread::sleep(LOOK);
            let is_quiet = |now: CpuTimes| before.others(now, 0).others() < BUSY;
            if CpuTimes::now(cpus).is_none_or(is_quiet) {
                break;
            }
        }
        let waited = begun.elapsed();
        self.left = self.left.saturating_sub(waited);
        u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  60 3 30 900 9 1 2 7 0 0\ncpu0 10 1 5 400 2 0 1 4 0 0\ncpu1 50 2 25 500 7 1 1 3 0 0\nintr 1 2\n";

    #[test]
    fn times_are_those_of_the_cpus_that_are_asked_for() {
        let times = |cpus: &[u32]| {
            CpuTimes::read(STAT, cpus)
                .map(|times| (times.busy_ns / TICK_NS, times.stolen_ns / TICK_NS, times.cpus))
        };
        assert_eq!(times(&[1]), Some((79, 3, 1)));
        assert_eq!(times(&[0, 1]), Some((96, 7, 2)));
        assert_eq!(times(&[7]), None);
        assert!(CpuTimes::read("cpu0 1 2 3\n", &[0]).is_none());
    }

    #[test]
    fn others_have_what_the_run_did_not_use() {
        let before = CpuTimes { at: Instant::now(), busy_ns: 1_000, stolen_ns: 10, cpus: 2 };
        let at = before.at + Duration::from_nanos(500);
        let others = before.others(CpuTimes { at, busy_ns: 1_900, stolen_ns: 60, ..before }, 400);
        let expected = Disturbance { cpus_ns: 1_000, others_ns: 500, stolen_ns: 50, waited_ns: 0 };
        assert_eq!(others, expected);
        // A run that is shorter than a tick may seem to have used more than the CPUs were busy for.
        assert_eq!(before.others(CpuTimes { at, ..before }, 400).plus(others).others_ns, 100);
    }

    /// A block after a busy one waits while there is patience; here none is left.
    #[test]
    fn a_block_waits_for_others_that_were_busy_and_not_for_ever() {
        let busy = Disturbance { cpus_ns: 100, others_ns: 50, ..Disturbance::default() };
        let none = Duration::ZERO;
        let mut watch = Watch { block: Some(3), of_block: busy, left: none, waited_ns: 0 };
        let slot = |block| Slot { variant: lineup_prove::Variant::BEFORE, number: 0, block: Some(block) };
        let cpus = crate::process::cpus::allowed_cpus().expect("CPUs");
        let begun = watch.begin(&slot(4), &cpus, &Interrupts::watch().expect("signals"));
        assert!(begun.is_some() && watch.of_block == Disturbance::default() && watch.left == none);
    }
}
