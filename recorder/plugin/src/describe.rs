//! The meaning of the emulator's descriptions of accesses. There are few, and asking the emulator costs two
//! calls.

use crate::ffi::Api;

/// Descriptions kept: as many as [`place_of`] distinguishes.
const KEPT: usize = 1024;

/// One description of an access.
#[derive(Clone, Copy)]
pub(crate) struct Description {
    info: u32,
    /// The size is two to this power.
    pub(crate) size_shift: u8,
    pub(crate) is_store: bool,
}

impl Description {
    fn new(api: &Api, info: u32) -> Self {
        // SAFETY: the emulator decodes the numbers, for any value.
        let (is_store, shift) = unsafe { ((api.mem_is_store)(info), (api.mem_size_shift)(info)) };
        Description::told(info, shift.min(12) as u8, is_store)
    }

    pub(crate) const fn told(info: u32, size_shift: u8, is_store: bool) -> Self {
        Description { info, size_shift, is_store }
    }

    #[inline]
    pub(crate) fn is_of(&self, info: u32) -> bool {
        self.info == info
    }

    #[inline]
    pub(crate) fn size_bytes(&self) -> u32 {
        1 << self.size_shift
    }
}

/// The descriptions met so far.
pub(crate) struct Descriptions {
    kept: [Description; KEPT],
    api: Api,
}

impl Descriptions {
    pub(crate) fn new(api: Api) -> Self {
        // The meaning of 0 is correct in every place.
        Descriptions { kept: [Description::new(&api, 0); KEPT], api }
    }

    /// The description kept in the place of `info`: its meaning, when [`Description::is_of`] it.
    #[inline]
    pub(crate) fn kept(&self, info: u32) -> &Description {
        &self.kept[place_of(info)]
    }

    /// The meaning of `info`, as the emulator passed it to a callback.
    #[inline]
    pub(crate) fn of(&mut self, info: u32) -> Description {
        let kept = *self.kept(info);
        if kept.is_of(info) { kept } else { self.ask(info) }
    }

    #[cold]
    fn ask(&mut self, info: u32) -> Description {
        let description = Description::new(&self.api, info);
        self.kept[place_of(info)] = description;
        description
    }
}

/// The place of a description. Sizes and kinds differ in eight bits from the fifth on, loads and stores in
/// the seventeenth and eighteenth.
#[inline]
fn place_of(info: u32) -> usize {
    (info >> 4 & 0xff | (info >> 16 & 3) << 8) as usize % KEPT
}
