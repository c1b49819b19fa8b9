//! The mechanisms that can be switched off one by one, to measure the effect of each.

use crate::error::Error;

macro_rules! mechanisms {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// A part of the scheduler that can be switched off.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Mechanism {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Mechanism {
            /// Every mechanism.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its name on the command line and in scenario files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

mechanisms! {
    /// A group's weight on one CPU never falls below 2 stored units.
    Floor = "floor",
    /// A group's weight on one CPU never exceeds its shares.
    Cap = "cap",
    /// CPUs balance at intervals.
    Periodic = "periodic",
    /// Idle CPUs take part in periodic balancing.
    IdlePull = "idle-pull",
    /// A CPU that falls idle tries to pull at once.
    NewlyIdle = "newly-idle",
    /// It does not try while its idle spans are short on average.
    NewlyIdleGate = "newly-idle-gate",
    /// After repeated failures a running task is moved.
    Active = "active",
    /// A woken task looks for an idle CPU in the smallest domain.
    WakeIdle = "wake-idle",
    /// A woken task that lags far enough behind takes over at once.
    WakePreempt = "wake-preempt",
    /// A woken task is placed half a period before the others.
    SleeperCredit = "sleeper-credit",
    /// Tasks that ran a moment ago are not moved.
    CacheHot = "cache-hot",
    /// Balancing looks at a CPU's load over the last ticks, and errs on the side of staying.
    History = "history",
    /// Idle CPUs have no tick: a busy one kicks one of them to balance for all.
    Nohz = "nohz",
    /// A smaller domain with spare capacity takes all tasks but one from elsewhere.
    PreferSibling = "prefer-sibling",
}

impl std::str::FromStr for Mechanism {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.iter().copied().find(|mechanism| mechanism.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|mechanism| mechanism.name()).collect();
            Error::text(text, format!("no such mechanism; there are {}", names.join(", ")))
        })
    }
}

/// A set of mechanisms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mechanisms(u32);

impl Mechanisms {
    /// Whether `mechanism` is on.
    pub const fn has(self, mechanism: Mechanism) -> bool {
        self.0 >> mechanism as u32 & 1 == 1
    }

    /// The set with `mechanism` on.
    #[must_use]
    pub const fn with(self, mechanism: Mechanism) -> Self {
        Self(self.0 | 1 << mechanism as u32)
    }

    /// The set with `mechanism` off.
    #[must_use]
    pub const fn without(self, mechanism: Mechanism) -> Self {
        Self(self.0 & !(1 << mechanism as u32))
    }
}

impl Default for Mechanisms {
    /// All but [`Mechanism::PreferSibling`].
    fn default() -> Self {
        Mechanism::ALL
            .iter()
            .fold(Self(0), |set, mechanism| set.with(*mechanism))
            .without(Mechanism::PreferSibling)
    }
}
