//! References between entries.

/// A debugging information entry: unit and offset in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Die {
    pub(crate) unit: u32,
    pub(crate) offset: u32,
}

/// The target of an entry's reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ref {
    Nothing,
    /// A type in the same unit: its offset while units are read, then its index in `Linked::types`.
    Local(u32),
    Elsewhere(Die),
    /// A reference that leads nowhere.
    Broken,
}

impl Ref {
    /// The index of a type, once references are linked.
    #[inline]
    pub(crate) fn index(self) -> Option<usize> {
        match self {
            Ref::Local(index) => Some(index as usize),
            _ => None,
        }
    }
}

/// A [`Ref`] in eight bytes: millions are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedRef {
    /// The unit of a type elsewhere, or one of the numbers below, which no unit has.
    unit: u32,
    at: u32,
}

impl PackedRef {
    const NOTHING: u32 = u32::MAX;
    const LOCAL: u32 = u32::MAX - 1;
    const BROKEN: u32 = u32::MAX - 2;

    #[inline]
    pub(crate) fn get(self) -> Ref {
        match self.unit {
            PackedRef::NOTHING => Ref::Nothing,
            PackedRef::LOCAL => Ref::Local(self.at),
            PackedRef::BROKEN => Ref::Broken,
            unit => Ref::Elsewhere(Die { unit, offset: self.at }),
        }
    }

    /// The index of a type, once references are linked.
    #[inline]
    pub(crate) fn index(self) -> Option<usize> {
        (self.unit == PackedRef::LOCAL).then_some(self.at as usize)
    }
}

impl From<Ref> for PackedRef {
    #[inline]
    fn from(reference: Ref) -> Self {
        match reference {
            Ref::Nothing => PackedRef { unit: PackedRef::NOTHING, at: 0 },
            Ref::Local(at) => PackedRef { unit: PackedRef::LOCAL, at },
            Ref::Broken => PackedRef { unit: PackedRef::BROKEN, at: 0 },
            Ref::Elsewhere(Die { unit, offset }) => PackedRef { unit, at: offset },
        }
    }
}
