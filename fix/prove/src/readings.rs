//! The readings of one run.

use crate::metric::{Absence, ELAPSED, Observed, PEAK_MEMORY, Reading, Unit};
use crate::run::RunResult;

/// Every reading of one run: elapsed time, the counters, the kernel's accounting (except values that a counter of the
/// same name already gives), and the numbers that the program printed.
pub fn readings(run: &RunResult) -> Vec<Reading> {
    let reading =
        |name: &str, unit, value: f64| Reading { name: name.into(), unit, observed: Observed::Value(value) };
    let mut all = vec![reading(ELAPSED, Unit::Nanoseconds, run.wall_ns as f64)];
    all.extend(run.counters.iter().cloned());
    if let Some(usage) = &run.usage {
        let faults = usage.minor_faults.saturating_add(usage.major_faults);
        let switches = usage.voluntary_switches.saturating_add(usage.involuntary_switches);
        let accounts = [
            reading("user", Unit::Nanoseconds, usage.user_ns as f64),
            reading("sys", Unit::Nanoseconds, usage.system_ns as f64),
            reading("page-faults", Unit::Events, faults as f64),
            reading("context-switches", Unit::Events, switches as f64),
            Reading {
                name: PEAK_MEMORY.into(),
                unit: Unit::Bytes,
                observed: match usage.peak_memory_bytes {
                    Some(bytes) => Observed::Value(bytes as f64),
                    None => Observed::Absent(Absence::NotCounted),
                },
            },
        ];
        for account in accounts {
            if !all.iter().any(|seen| seen.name == account.name) {
                all.push(account);
            }
        }
    }
    all.extend(run.printed.iter().cloned());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Usage;

    #[test]
    fn a_counter_takes_precedence_over_the_account_of_the_same_name() {
        let mut run = RunResult::finished(0, b"", b"", 5);
        run.usage = Some(Usage { minor_faults: 7, major_faults: 1, ..Usage::default() });
        let faults = |run: &RunResult| {
            let all = readings(run);
            let mut found = all.into_iter().filter(|reading| reading.name == "page-faults");
            (found.next().map(|reading| reading.observed), found.next())
        };
        assert_eq!(faults(&run), (Some(Observed::Value(8.0)), None));
        run.counters =
            vec![Reading { name: "page-faults".into(), unit: Unit::Events, observed: Observed::Value(3.0) }];
        assert_eq!(faults(&run), (Some(Observed::Value(3.0)), None));
    }
}
