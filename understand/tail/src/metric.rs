//! The counts of a call, by name.

use lineup_recording::MeasuredCall;
use serde::Serialize;

/// A count of the processor model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Instructions executed, callees included, nested interrupts excluded.
    Instructions,
    /// Code fetches that missed the first level.
    CodeMissesL1,
    /// Code fetches that missed the second level too.
    CodeMissesL2,
    /// Data accesses that missed the first level.
    DataMissesL1,
    /// Data accesses that missed the second level too.
    DataMissesL2,
    /// Accesses to lines that another CPU had changed, or stores to lines that it had read.
    SharedMisses,
    /// Modelled cycles stalled for code.
    CodeStallCycles,
    /// Modelled cycles stalled for data.
    DataStallCycles,
    /// Modelled cycles: one an instruction, and both stalls.
    Cycles,
    /// Instructions spent waiting for locks.
    SpinInstructions,
}

impl Metric {
    /// All, in the order of reports.
    pub const ALL: [Metric; 10] = [
        Metric::Instructions,
        Metric::CodeMissesL1,
        Metric::CodeMissesL2,
        Metric::DataMissesL1,
        Metric::DataMissesL2,
        Metric::SharedMisses,
        Metric::CodeStallCycles,
        Metric::DataStallCycles,
        Metric::Cycles,
        Metric::SpinInstructions,
    ];

    /// Its name, in words.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Instructions => "instructions",
            Metric::CodeMissesL1 => "L1I misses",
            Metric::CodeMissesL2 => "L2 misses for code",
            Metric::DataMissesL1 => "L1D misses",
            Metric::DataMissesL2 => "L2 misses for data",
            Metric::SharedMisses => "misses on shared lines",
            Metric::CodeStallCycles => "I-stall cycles",
            Metric::DataStallCycles => "D-stall cycles",
            Metric::Cycles => "cycles",
            Metric::SpinInstructions => "spin instructions",
        }
    }

    /// The name of its column in CSV and of its key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Metric::Instructions => "instructions",
            Metric::CodeMissesL1 => "code_misses_l1",
            Metric::CodeMissesL2 => "code_misses_l2",
            Metric::DataMissesL1 => "data_misses_l1",
            Metric::DataMissesL2 => "data_misses_l2",
            Metric::SharedMisses => "shared_misses",
            Metric::CodeStallCycles => "code_stall_cycles",
            Metric::DataStallCycles => "data_stall_cycles",
            Metric::Cycles => "cycles",
            Metric::SpinInstructions => "spin_instructions",
        }
    }

    /// Its value for a call.
    pub fn of(self, call: &MeasuredCall) -> u64 {
        let own = &call.own;
        match self {
            Metric::Instructions => own.instructions,
            Metric::CodeMissesL1 => own.code_misses.l1,
            Metric::CodeMissesL2 => own.code_misses.l2,
            Metric::DataMissesL1 => own.data_misses.l1,
            Metric::DataMissesL2 => own.data_misses.l2,
            Metric::SharedMisses => own.shared_misses,
            Metric::CodeStallCycles => own.code_stall_cycles,
            Metric::DataStallCycles => own.data_stall_cycles,
            Metric::Cycles => {
                own.instructions.saturating_add(own.code_stall_cycles).saturating_add(own.data_stall_cycles)
            }
            Metric::SpinInstructions => own.spin_instructions,
        }
    }
}

/// The cost of a call or span: the counts in lists of single ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Cost {
    /// Modelled cycles.
    pub cycles: u64,
    /// The part of these that stalled for code.
    pub code_stall_cycles: u64,
    /// The part of these that stalled for data.
    pub data_stall_cycles: u64,
    /// Instructions.
    pub instructions: u64,
}

impl Cost {
    /// The cost of a call or span.
    pub fn of(call: &MeasuredCall) -> Self {
        Cost {
            cycles: Metric::Cycles.of(call),
            code_stall_cycles: Metric::CodeStallCycles.of(call),
            data_stall_cycles: Metric::DataStallCycles.of(call),
            instructions: Metric::Instructions.of(call),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_json_are_those_of_csv() {
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.key());
        }
    }
}
