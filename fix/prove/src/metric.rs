//! Quantities observed on runs: elapsed time, accounts of the kernel, counters, numbers that the
//! program prints.

/// The unit of a quantity.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Unit {
    /// Time in nanoseconds.
    Nanoseconds,
    /// Memory in bytes.
    Bytes,
    /// Plain counts.
    Events,
    /// The program's own name for it.
    Named(String),
}

impl Unit {
    /// The unit as written behind a number.
    pub fn symbol(&self) -> &str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Bytes => "bytes",
            Unit::Events => "",
            Unit::Named(name) => name,
        }
    }
}

/// One run's observation of a quantity.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Observed {
    /// Its value.
    Value(f64),
    /// Its value, extrapolated because the counter was running only this share of the time.
    Scaled {
        /// The extrapolated value.
        value: f64,
        /// Share of the time that the counter ran, above 0 and below 1.
        share: f64,
    },
    /// It was not seen.
    Absent(Absence),
}

/// The reason why a quantity was not observed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Absence {
    /// The machine has no such counter.
    NotSupported,
    /// The kernel does not allow it.
    NotPermitted,
    /// The counter never got its turn on the hardware.
    NotCounted,
    /// The program did not print it.
    NotPrinted,
}

impl Absence {
    /// The absence in the words that `perf stat` uses where it has them.
    pub fn words(self) -> &'static str {
        match self {
            Absence::NotSupported => "<not supported>",
            Absence::NotPermitted => "<not permitted>",
            Absence::NotCounted => "<not counted>",
            Absence::NotPrinted => "<not printed>",
        }
    }
}

impl Observed {
    /// The value, extrapolated or not.
    pub fn value(self) -> Result<f64, Absence> {
        match self {
            Observed::Value(value) | Observed::Scaled { value, .. } => Ok(value),
            Observed::Absent(absence) => Err(absence),
        }
    }
}

/// One quantity of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// The quantity's name: `elapsed`, `page-faults`, an event's name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// The observation.
    pub observed: Observed,
}

/// One quantity over all runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Metric {
    /// The quantity's name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// The observations, run by run.
    pub per_run: Vec<Observed>,
}

impl Metric {
    /// The values of all runs.
    ///
    /// # Errors
    /// With the reason when one run or more did not show it.
    pub fn values(&self) -> Result<Vec<f64>, Absence> {
        self.per_run.iter().map(|observed| observed.value()).collect()
    }

    /// The smallest share of the time that the counter ran; `None` when it always ran.
    pub fn smallest_share(&self) -> Option<f64> {
        let shares = self.per_run.iter().filter_map(|observed| match observed {
            Observed::Scaled { share, .. } => Some(*share),
            _ => None,
        });
        shares.min_by(f64::total_cmp)
    }
}

/// The name of elapsed time among the metrics.
pub const ELAPSED: &str = "elapsed";
/// The name of the largest resident set among the metrics.
pub const PEAK_MEMORY: &str = "peak-memory";

/// Readings run by run as metrics over runs, in order of first appearance. A metric that a run lacks
/// was not printed by it.
pub fn over_runs(runs: &[Vec<Reading>]) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for (index, readings) in runs.iter().enumerate() {
        for reading in readings {
            let known = metrics.iter().position(|metric| metric.name == reading.name);
            let at = known.unwrap_or_else(|| {
                metrics.push(Metric {
                    name: reading.name.clone(),
                    unit: reading.unit.clone(),
                    per_run: Vec::new(),
                });
                metrics.len() - 1
            });
            if let Some(metric) = metrics.get_mut(at) {
                metric.per_run.resize(index, Observed::Absent(Absence::NotPrinted));
                metric.per_run.push(reading.observed);
            }
        }
    }
    for metric in &mut metrics {
        metric.per_run.resize(runs.len(), Observed::Absent(Absence::NotPrinted));
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_lacks_a_metric_makes_it_absent_not_zero() {
        let printed = |name: &str| Reading {
            name: name.into(),
            unit: Unit::Named("requests".into()),
            observed: Observed::Value(1.0),
        };
        let metrics = over_runs(&[vec![printed("a")], vec![printed("a"), printed("b")], vec![printed("a")]]);
        assert_eq!(metrics[0].values(), Ok(vec![1.0, 1.0, 1.0]));
        assert_eq!(metrics[1].per_run.len(), 3);
        assert_eq!(metrics[1].values(), Err(Absence::NotPrinted));
    }

    #[test]
    fn the_smallest_share_is_that_of_the_run_that_counted_least() {
        let metric = |shares: &[f64]| Metric {
            name: "cycles".into(),
            unit: Unit::Events,
            per_run: std::iter::once(Observed::Value(7.0))
                .chain(shares.iter().map(|share| Observed::Scaled { value: 1.0, share: *share }))
                .collect(),
        };
        assert_eq!(metric(&[0.9, 0.25, 0.5]).smallest_share(), Some(0.25));
        assert_eq!(metric(&[]).smallest_share(), None);
    }
}
