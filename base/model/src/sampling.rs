//! Samples of a run at its own speed.

/// The event that triggers samples.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ClockEvent {
    /// The cycles that the processor counts.
    Cycles,
    /// The time that tasks have a processor, which needs no counters.
    #[default]
    TaskClock,
}

impl ClockEvent {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ClockEvent::Cycles => "cycles",
            ClockEvent::TaskClock => "task_clock",
        }
    }
}
