//! Other work on the processors of timed runs.

use lineup_model::figure;

/// A smaller part of the processors is not worth a word.
const LEAST_TO_SAY: f64 = 0.02;
/// A shorter wait is not worth a word either.
const LEAST_WAITED_NS: u64 = 500_000_000;

/// Time that a run's CPUs spent on other work.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Disturbance {
    /// The time of the run on all its CPUs.
    pub cpus_ns: u64,
    /// Time that other programs had them. The system counts in steps that are longer than short runs, so that that of one
    /// run may be below zero.
    pub others_ns: i64,
    /// Time that the machine below this one had them.
    pub stolen_ns: u64,
    /// Time that the comparison waited until others were done.
    pub waited_ns: u64,
}

impl Disturbance {
    /// That of both runs.
    pub fn plus(self, other: Disturbance) -> Disturbance {
        Disturbance {
            cpus_ns: self.cpus_ns + other.cpus_ns,
            others_ns: self.others_ns + other.others_ns,
            stolen_ns: self.stolen_ns + other.stolen_ns,
            waited_ns: self.waited_ns + other.waited_ns,
        }
    }

    /// The part of the CPUs that other programs had.
    pub fn others(self) -> f64 {
        self.others_ns.max(0) as f64 / self.cpus_ns.max(1) as f64
    }

    /// The part of the CPUs that the machine below had.
    pub fn stolen(self) -> f64 {
        self.stolen_ns as f64 / self.cpus_ns.max(1) as f64
    }

    /// All in words, where they are worth it.
    ///
    /// ```
    /// use lineup_prove::disturbance::Disturbance;
    /// let busy = Disturbance { cpus_ns: 1_000, others_ns: 370, stolen_ns: 10, waited_ns: 0 };
    /// assert_eq!(busy.in_words().as_deref(), Some("other programs had 37.0 % of its CPUs"));
    /// assert_eq!(Disturbance { others_ns: 3, ..busy }.in_words(), None);
    /// ```
    pub fn in_words(self) -> Option<String> {
        let part = |part: f64, who: &str| {
            (part >= LEAST_TO_SAY).then(|| format!("{who} had {} of its CPUs", figure::share(part)))
        };
        let waited =
            is_long(self.waited_ns).then(|| format!("the runs waited {} for them", seconds(self.waited_ns)));
        let others = part(self.others(), "other programs");
        let parts = [others, part(self.stolen(), "the host of this machine"), waited];
        let said: Vec<String> = parts.into_iter().flatten().collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

/// The time that runs waited until other programs left their CPUs alone, in words, where it is worth it.
///
/// ```
/// use lineup_prove::disturbance::waited_in_words;
/// let waited = waited_in_words(6_400_000_000);
/// assert_eq!(waited.as_deref(), Some("runs waited 6 s for other programs to leave the CPUs"));
/// assert_eq!(waited_in_words(1_000_000), None);
/// ```
pub fn waited_in_words(waited_ns: u64) -> Option<String> {
    is_long(waited_ns)
        .then(|| format!("runs waited {} for other programs to leave the CPUs", seconds(waited_ns)))
}

fn is_long(waited_ns: u64) -> bool {
    waited_ns >= LEAST_WAITED_NS
}

fn seconds(waited_ns: u64) -> String {
    format!("{:.0} s", waited_ns as f64 / 1e9)
}
