//! The stalls in the recorder's processor model. It runs over whole systems only, and measures every call.

use lineup_recording::{Counts, MeasuredCall, SystemSummary};

/// Modelled stalls of a recording; empty where none were modelled.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Stalls {
    /// By number of the region: its calls, and their total counts.
    regions: Vec<(u64, Counts)>,
    /// The stalls of everything that ran, in cycles; `None` when the recorder could not report them.
    all_cycles: Option<u64>,
}

/// Modelled stalls of one region.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RegionStalls {
    /// Mean cycles that a call stalls for data.
    pub data_cycles_per_call: f64,
    /// Mean cycles that a call stalls for data and code.
    pub cycles_per_call: f64,
    /// The share of the region's calls in the stalls of everything that ran.
    pub of_program: Option<f64>,
}

impl Stalls {
    /// Adds a call.
    pub(crate) fn add(&mut self, call: &MeasuredCall) {
        let region = usize::from(call.region.0);
        if self.regions.len() <= region {
            self.regions.resize(region + 1, (0, Counts::default()));
        }
        let (calls, counts) = &mut self.regions[region];
        *calls += 1;
        *counts = counts.plus(&call.own);
    }

    /// Takes the recorder's totals.
    pub(crate) fn set_all(&mut self, summary: &SystemSummary) {
        let all = summary.cpus.iter().fold(Counts::default(), |sum, cpu| sum.plus(cpu));
        self.all_cycles = Some(cycles(&all)).filter(|all| *all > 0);
    }

    /// The stalls of one region, by its number; `None` if nothing was modelled.
    pub fn of_region(&self, region: usize) -> Option<RegionStalls> {
        let (calls, counts) = self.regions.get(region).filter(|(calls, _)| *calls > 0)?;
        let per_call = |cycles: u64| cycles as f64 / *calls as f64;
        Some(RegionStalls {
            data_cycles_per_call: per_call(counts.data_stall_cycles),
            cycles_per_call: per_call(cycles(counts)),
            of_program: self.all_cycles.map(|all| cycles(counts) as f64 / all as f64),
        })
    }
}

fn cycles(counts: &Counts) -> u64 {
    counts.code_stall_cycles + counts.data_stall_cycles
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::access::CallEnd;
    use lineup_model::region::RegionId;
    use lineup_recording::Arm;

    fn call(region: u16, code_stall_cycles: u64, data_stall_cycles: u64) -> MeasuredCall {
        let own = Counts { code_stall_cycles, data_stall_cycles, ..Counts::default() };
        MeasuredCall {
            region: RegionId(region),
            cpu: 0,
            sequence: 0,
            begun_at: 1,
            ended_at: 2,
            from_pc: 0x10,
            to_pc: 0x10,
            end: CallEnd::Returned,
            arm: Arm::Untouched,
            own,
            interrupts: 0,
            interrupt_instructions: 0,
            switches: 0,
        }
    }

    #[test]
    fn stalls_are_means_over_a_regions_calls_and_a_share_of_all() {
        let mut stalls = Stalls::default();
        [call(1, 100, 20), call(1, 0, 40)].iter().for_each(|call| stalls.add(call));
        assert_eq!(stalls.of_region(0), None, "no call");
        assert_eq!(stalls.of_region(7), None, "no such region");
        let found = stalls.of_region(1).expect("two calls");
        assert_eq!((found.data_cycles_per_call, found.cycles_per_call), (30.0, 80.0));
        assert_eq!(found.of_program, None, "the recorder did not get to say");
        stalls.all_cycles = Some(640);
        assert_eq!(stalls.of_region(1).and_then(|found| found.of_program), Some(0.25));
    }
}
