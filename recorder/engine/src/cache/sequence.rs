//! The descriptor of a restartable sequence, and the stores that may begin one.

use std::ops::Range;

/// The content of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sequence {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// Address where an aborted thread continues.
    pub(crate) abort: u64,
    /// The first word: the version, which is 0, and flags.
    pub(crate) head: u64,
}

impl Sequence {
    /// From the words of a descriptor. `None` when the kernel would not take them.
    pub(crate) fn of(words: [u64; 4]) -> Option<Sequence> {
        let [head, start, bytes, abort] = words;
        let end = start.checked_add(bytes)?;
        let is_one = head as u32 == 0 && start != 0 && bytes != 0 && abort != 0;
        (is_one && !(start..end).contains(&abort)).then_some(Sequence { start, bytes, abort, head })
    }

    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start + self.bytes
    }

    pub(super) fn words(&self) -> [u64; 4] {
        [self.head, self.start, self.bytes, self.abort]
    }

    /// Address of the signature.
    pub(super) fn signature_at(&self) -> u64 {
        self.abort - 4
    }
}

/// Places of stores that may begin a sequence.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Zones {
    pub(super) known: Vec<Sequence>,
    /// Code of files with unknown sequences.
    pub(super) unknown: Vec<Range<u64>>,
}

impl Zones {
    #[cfg(test)]
    pub(crate) fn with(known: &[Sequence]) -> Zones {
        Zones { known: known.to_vec(), unknown: Vec::new() }
    }

    /// Whether the engine looks at a store that is followed by the instruction at `next`.
    pub(crate) fn may_begin(&self, next: u64) -> bool {
        self.known.iter().any(|one| one.range().contains(&next))
            || self.unknown.iter().any(|code| code.contains(&next))
    }

    /// Whether code there may have unknown sequences.
    pub(crate) fn are_unknown_at(&self, pc: u64) -> bool {
        self.unknown.iter().any(|code| code.contains(&pc))
    }

    /// Whether a known sequence begins there.
    pub(crate) fn begin_at(&self, pc: u64) -> bool {
        self.known.iter().any(|one| one.start == pc)
    }

    /// Whether an instruction cannot be executed elsewhere, since it is part of a known sequence, or begins it.
    pub(crate) fn hold(&self, instruction: &Range<u64>) -> bool {
        self.known
            .iter()
            .any(|one| one.range().contains(&instruction.start) || one.range().contains(&instruction.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_what_the_kernel_takes() {
        let one = Sequence::of([0, 0x1000, 0x20, 0x2000]).unwrap();
        assert_eq!((one.range(), one.signature_at()), (0x1000..0x1020, 0x1ffc));
        assert!(Sequence::of([1 << 32, 0x1000, 0x20, 0x2000]).is_some(), "flags");
        assert_eq!(Sequence::of([1, 0x1000, 0x20, 0x2000]), None, "another version");
        assert_eq!(Sequence::of([0, 0x1000, 0x20, 0x1010]), None, "it is aborted to itself");
        assert_eq!(Sequence::of([0, 0x1000, u64::MAX, 0x2000]), None);
    }

    #[test]
    fn stores_before_and_in_a_sequence_may_begin_it() {
        let known = vec![Sequence { start: 0x1000, bytes: 0x20, abort: 0x2000, head: 0 }];
        let unknown = std::iter::once(0x8000..0x9000).collect();
        let zones = Zones { known, unknown };
        assert!(zones.may_begin(0x1000) && zones.may_begin(0x101f) && zones.may_begin(0x8800));
        assert!(!zones.may_begin(0xfff) && !zones.may_begin(0x1020) && !zones.may_begin(0x9000));
        assert!(zones.hold(&(0xff9..0x1000)) && zones.hold(&(0x101c..0x1020)));
        assert!(!zones.hold(&(0xff0..0xff9)) && !zones.hold(&(0x1020..0x1025)));
    }
}
