//! Progress and interrupts of a review.

use crate::terminal::progress::Stages;
use lineup_study::interrupt::Interrupts;

/// The progress and the interrupts of the command.
pub(crate) struct Around<'a> {
    pub(crate) stages: &'a Stages,
    pub(crate) interrupts: &'a Interrupts,
}
