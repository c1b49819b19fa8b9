//! What the emulator's descriptions of accesses mean. There are few, and asking the emulator costs two calls.

use crate::ffi::Api;

/// Descriptions kept; a power of two.
const KEPT: usize = 64;

/// One description of an access.
#[derive(Clone, Copy)]
pub(crate) struct Description {
    /// `None` while the place is free: any number may be a description.
    info: Option<u32>,
    pub(crate) size_bytes: u32,
    pub(crate) is_store: bool,
}

/// Those met so far.
pub(crate) struct Descriptions {
    kept: [Description; KEPT],
    api: Api,
}

impl Descriptions {
    pub(crate) fn new(api: Api) -> Self {
        Descriptions { kept: [Description { info: None, size_bytes: 0, is_store: false }; KEPT], api }
    }

    /// What `info`, as the emulator passed it to a callback, means.
    #[inline]
    pub(crate) fn of(&mut self, info: u32) -> Description {
        let place = &mut self.kept[(info ^ info >> 10) as usize % KEPT];
        if place.info != Some(info) {
            // SAFETY: `info` comes from the emulator.
            let (is_store, shift) =
                unsafe { ((self.api.mem_is_store)(info), (self.api.mem_size_shift)(info)) };
            *place = Description { info: Some(info), size_bytes: 1 << shift.min(12), is_store };
        }
        *place
    }
}
