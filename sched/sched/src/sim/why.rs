//! Reasons why CPUs stayed idle although a task waited: the step of balancing that lost the load.

use serde::Serialize;

macro_rules! causes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $text:literal;)+) => {
        /// The reason why the last balancing pass of an idle CPU left it idle.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Cause { $($(#[doc = $doc])+ $variant,)+ }

        impl Cause {
            /// Every cause.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// A short name, as in JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// One line that says what happened.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

causes! {
    /// No pass looked at a domain with a waiting task.
    NotTried = "not-tried", "no pass has looked at a domain with a waiting task yet";
    /// The gate on newly-idle balancing was shut.
    Gated = "gated", "idle spans are short on average, so falling idle triggers no pass";
    /// Another CPU of the local group balances for it.
    OtherBalances = "other-balances", "another CPU of its group balances this domain";
    /// No group was over capacity or imbalanced.
    NoBusiest = "no-busiest", "no other group exceeds its capacity or counts as imbalanced";
    /// This group's load was not below the greatest or the average.
    BelowAverage = "below-average", "this group is no less loaded than the busiest or the average";
    /// As before, but only because a division dropped the difference.
    AverageTruncated = "average-truncated", "this group seems as loaded as the average, once both are truncated";
    /// The rule for idle CPUs held the groups balanced.
    IdleRule = "idle-rule", "nearly as many CPUs idle there and no more tasks than CPUs";
    /// The imbalance stayed within the tolerated percentage.
    WithinPercent = "within-percent", "the imbalance is within the tolerated percentage";
    /// The computed imbalance was zero.
    ImbalanceZero = "imbalance-zero", "the imbalance to move came out as zero";
    /// No queue qualified.
    QueuesSkipped = "queues-skipped", "every queue there has one task that weighs more than the imbalance";
    /// All tasks there weigh more than twice the load that may be moved.
    TaskTooHeavy = "task-too-heavy", "half of every waiting task exceeds what may be moved";
    /// All that might move had run a moment ago.
    CacheHot = "cache-hot", "every task that might be moved ran a moment ago";
    /// No task waited on the chosen queue.
    NothingWaits = "nothing-waits", "the queue chosen had no waiting task";
    /// No reason: a task was moved, and the CPU has not started it.
    Pulled = "pulled", "a task was pulled";
}

/// The number of times an integer step of balancing lost a difference that its rational counterpart keeps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Steps {
    /// A group's weight on a CPU with load came out below the floor and was raised to it.
    pub weight_floored: u64,
    /// The average load per task of the busiest group came out as zero though it had load.
    pub load_per_task_zero: u64,
    /// The system's average came out no greater than the local group's, though it was greater.
    pub average_truncated: u64,
    /// The imbalance came out as zero although the rational one is positive.
    pub imbalance_zero: u64,
    /// A queue's part of its CPU's load came out as zero though it had load.
    pub hierarchical_load_zero: u64,
    /// A task was moved and credited as nothing, so that the pass counts as failed.
    pub credit_zero: u64,
}

impl Steps {
    /// Both counts together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            weight_floored: self.weight_floored + other.weight_floored,
            load_per_task_zero: self.load_per_task_zero + other.load_per_task_zero,
            average_truncated: self.average_truncated + other.average_truncated,
            imbalance_zero: self.imbalance_zero + other.imbalance_zero,
            hierarchical_load_zero: self.hierarchical_load_zero + other.hierarchical_load_zero,
            credit_zero: self.credit_zero + other.credit_zero,
        }
    }
}

/// Idle time while some task waited, by cause, and the steps that lost load.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Why {
    /// CPU time idle while some task waited, and passes that ended so, by [`Cause`] in its order.
    pub causes: Vec<(Cause, u64, u64)>,
    /// Lossy steps in passes of idle CPUs, except the floor, which counts every update of a weight.
    pub steps: Steps,
    idle_ns: [u64; Cause::ALL.len()],
    passes: [u64; Cause::ALL.len()],
    spans: Vec<Span>,
}

/// An idle CPU's present cause, and since when, on the clock that runs while some task waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    cause: Cause,
    since_ns: u64,
}

impl Why {
    pub(super) fn new(cpus: usize) -> Self {
        Self { spans: vec![Span { cause: Cause::NotTried, since_ns: 0 }; cpus], ..Self::default() }
    }

    pub(super) fn start_over(&mut self) {
        *self = Self::new(self.spans.len());
    }

    /// The table that outcomes hold.
    pub(super) fn finished(mut self) -> Self {
        self.causes = Cause::ALL
            .iter()
            .map(|&cause| (cause, self.idle_ns[cause as usize], self.passes[cause as usize]))
            .collect();
        self
    }

    /// Books the time of `cpu` up to now under its present cause, if it is idle. `waited_ns` is the clock that runs
    /// while some task waits.
    pub(super) fn attribute(&mut self, cpu: usize, idle: bool, waited_ns: u64) {
        let span = &mut self.spans[cpu];
        if idle {
            self.idle_ns[span.cause as usize] += waited_ns - span.since_ns;
        }
        span.since_ns = waited_ns;
    }

    /// `cpu` has just stopped running: nothing has been tried yet.
    pub(super) fn start_span(&mut self, cpu: usize, waited_ns: u64) {
        self.spans[cpu] = Span { cause: Cause::NotTried, since_ns: waited_ns };
    }

    /// Sets the reason why `cpu` is idle from here on.
    pub(super) fn set_cause(&mut self, cpu: usize, cause: Cause) {
        self.spans[cpu].cause = cause;
        self.passes[cause as usize] += 1;
    }
}
