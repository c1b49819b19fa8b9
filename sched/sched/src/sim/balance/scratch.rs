//! Memory that passes use again.

use super::decide::GroupCount;

/// Room for a pass's counts and candidates, kept so that passes do not allocate.
#[derive(Default)]
pub(in crate::sim) struct Scratch {
    pub(super) counts: Vec<GroupCount>,
    pub(super) candidates: Vec<u32>,
}
