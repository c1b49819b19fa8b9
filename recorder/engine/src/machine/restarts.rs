//! Restartable sequences in the program's code, see [`crate::cache::sequences`].

use super::HostRegisters;
use crate::cache::sequence::Sequence;

/// The part of a machine that finds the beginnings of sequences, and copies sequences.
pub(crate) trait Restarts {
    /// Offsets of a signature in code outside of an instruction's number: before the place that a sequence is aborted
    /// to.
    fn signatures(code: &[u8], signature: u32) -> Vec<usize>;

    /// The word that the instruction at the beginning of this code, which lies at `pc`, stores, and the address after
    /// it. `None` when it stores no such word.
    fn stored(code: &[u8], pc: u64, registers: &HostRegisters) -> Option<(u64, u64)>;

    /// A copy of a sequence, preceded by the instruction that begins it. `None` when it cannot be moved.
    fn copy_sequence(
        task: &SequenceTask<'_>,
        way_in: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<SequenceCopy>;
}

/// The input of a copy of a sequence.
pub(crate) struct SequenceTask<'a> {
    /// The instruction that stores the address of the sequence's descriptor, and its address.
    pub(crate) store: (&'a [u8], u64),
    pub(crate) sequence: Sequence,
    /// The program's code of the sequence.
    pub(crate) code: &'a [u8],
    /// The signature before the place that it is aborted to.
    pub(crate) signature: u32,
    /// Address of the copy.
    pub(crate) at: u64,
    /// The address of the copy's own descriptor, which is stored instead.
    pub(crate) descriptor: u32,
}

/// A copy of a sequence. Its exits lead to the code of `way_in`.
pub(crate) struct SequenceCopy {
    /// Its code, which begins with the store.
    pub(crate) code: Vec<u8>,
    /// Content of the copy's own descriptor.
    pub(crate) sequence: Sequence,
    /// Places in the code, in order, and the program's address at each.
    pub(crate) places: Vec<(usize, u64)>,
    /// Instructions of the sequence.
    pub(crate) instructions: u64,
}
