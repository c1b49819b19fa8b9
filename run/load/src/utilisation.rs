//! Each CPU's time by kind of work, as mpstat shows it.

use crate::error::LoadError;

/// The columns in the order of `/proc/stat`.
pub const COLUMNS: [&str; 10] =
    ["usr", "nice", "sys", "idle", "iowait", "irq", "soft", "steal", "guest", "gnice"];

/// The columns in the order mpstat prints them, as positions in [`COLUMNS`].
const SHOWN: [usize; 10] = [0, 1, 2, 4, 5, 6, 7, 8, 9, 3];

/// The position of idle time in [`COLUMNS`].
const IDLE: usize = 3;

/// The counters of `/proc/stat` at one moment, in clock ticks since boot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// All CPUs together.
    all: [u64; 10],
    /// Each CPU with its number.
    cpus: Vec<(u32, [u64; 10])>,
    /// Interrupts served.
    interrupts: u64,
}

impl Snapshot {
    /// Reads the text of `/proc/stat`.
    ///
    /// # Errors
    /// With the line that was not understood.
    pub fn parse(text: &str) -> Result<Self, LoadError> {
        let mut snapshot = Self { all: [0; 10], cpus: Vec::new(), interrupts: 0 };
        for (index, line) in text.lines().enumerate() {
            let complaint = || LoadError::Statistics { line: index + 1, text: line.into() };
            let mut words = line.split_whitespace();
            match words.next() {
                Some("cpu") => snapshot.all = ticks(words).ok_or_else(complaint)?,
                Some("intr") => {
                    let total = words.next().and_then(|word| word.parse().ok());
                    snapshot.interrupts = total.ok_or_else(complaint)?;
                }
                Some(word) if word.starts_with("cpu") => {
                    let number = word.trim_start_matches("cpu").parse().map_err(|_| complaint())?;
                    snapshot.cpus.push((number, ticks(words).ok_or_else(complaint)?));
                }
                _ => {}
            }
        }
        Ok(snapshot)
    }

    /// The time spent between an earlier snapshot and this one.
    pub fn since(&self, earlier: &Snapshot) -> Utilisation {
        let cpus = self.cpus.iter().filter_map(|(number, now)| {
            let (_, then) = earlier.cpus.iter().find(|(cpu, _)| cpu == number)?;
            Some((*number, shares(now, then)))
        });
        Utilisation {
            all: shares(&self.all, &earlier.all),
            cpus: cpus.collect(),
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
        }
    }
}

/// Up to ten counters; older kernels print fewer.
fn ticks<'t>(words: impl Iterator<Item = &'t str>) -> Option<[u64; 10]> {
    let mut ticks = [0u64; 10];
    let mut count = 0;
    for (slot, word) in ticks.iter_mut().zip(words) {
        *slot = word.parse().ok()?;
        count += 1;
    }
    // Guest time is also counted as user time; it is shown apart, as mpstat does.
    ticks[0] = ticks[0].saturating_sub(ticks[8]);
    ticks[1] = ticks[1].saturating_sub(ticks[9]);
    (count >= 4).then_some(ticks)
}

/// Shares of the time in per cent; `None` when no time passed.
fn shares(now: &[u64; 10], then: &[u64; 10]) -> Option<[f64; 10]> {
    let mut spent = [0.0; 10];
    for ((slot, now), then) in spent.iter_mut().zip(now).zip(then) {
        *slot = now.saturating_sub(*then) as f64;
    }
    let total: f64 = spent.iter().sum();
    (total > 0.0).then(|| spent.map(|ticks| 100.0 * ticks / total))
}

/// Shares of the time of an interval.
#[derive(Clone, PartialEq, Debug)]
pub struct Utilisation {
    /// All CPUs together, in per cent per entry of [`COLUMNS`]; `None` when no tick passed.
    pub all: Option<[f64; 10]>,
    /// Each CPU with its number.
    pub cpus: Vec<(u32, Option<[f64; 10]>)>,
    /// Interrupts served.
    pub interrupts: u64,
}

impl Utilisation {
    /// The share of idle time over all CPUs in per cent; `None` when no tick passed.
    pub fn idle_percent(&self) -> Option<f64> {
        self.all.map(|shares| shares[IDLE])
    }

    /// The table's head, with mpstat's columns.
    pub fn header() -> String {
        let columns: Vec<String> =
            SHOWN.iter().map(|at| format!("{:>7}", format!("%{}", COLUMNS[*at]))).collect();
        format!("{:>4} {}", "CPU", columns.join(" "))
    }

    /// One line for all CPUs together and one for each.
    pub fn lines(&self) -> Vec<String> {
        let each = self.cpus.iter().map(|(number, shares)| (number.to_string(), *shares));
        std::iter::once(("all".to_owned(), self.all))
            .chain(each)
            .map(|(cpu, shares)| line(&cpu, shares))
            .collect()
    }
}

fn line(cpu: &str, shares: Option<[f64; 10]>) -> String {
    let cells: Vec<String> = SHOWN
        .iter()
        .map(|at| shares.map_or_else(|| format!("{:>7}", "-"), |shares| format!("{:>7.2}", shares[*at])))
        .collect();
    format!("{cpu:>4} {}", cells.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  100 0 50 800 0 0 0 0 0 0\ncpu0 60 0 20 400 0 0 0 0 0 0\n\
                          cpu1 40 0 30 400 0 0 0 0 0 0\nintr 1000 1 2 3\nctxt 5\n";
    const AFTER: &str = "cpu  190 0 60 900 0 0 0 0 0 0\ncpu0 150 0 20 410 0 0 0 0 0 0\n\
                         cpu1 40 0 40 490 0 0 0 0 0 0\nintr 1500 1 2 3\nctxt 5\n";

    #[test]
    fn shares_are_those_of_the_interval() {
        let now = Snapshot::parse(AFTER).unwrap();
        let used = now.since(&Snapshot::parse(BEFORE).unwrap());
        assert_eq!(used.idle_percent(), Some(50.0));
        assert_eq!(used.cpus[0].1.unwrap()[0], 90.0);
        assert_eq!(used.interrupts, 500);
        assert_eq!(used.lines()[0].split_whitespace().last(), Some("50.00"));
        assert_eq!(Utilisation::header().split_whitespace().count(), 11);
    }

    #[test]
    fn an_interval_without_a_tick_is_shown_as_unknown() {
        let now = Snapshot::parse(BEFORE).unwrap();
        let used = now.since(&now);
        assert_eq!(used.idle_percent(), None);
        assert!(used.lines()[1].contains('-'));
    }

    #[test]
    fn text_that_is_not_understood_is_named() {
        for bad in ["cpu  1 2 x 4\n", "cpu0\n", "cpux 1 2 3 4\n", "intr\n"] {
            assert!(matches!(Snapshot::parse(bad), Err(LoadError::Statistics { line: 1, .. })), "{bad}");
        }
    }
}
