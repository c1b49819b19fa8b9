//! Whole-program mode: passes the emulator's callbacks on to the counts of their thread.

use crate::describe::{Description, Descriptions};
use crate::ffi::Api;
use crate::limits::MAX_THREADS;
use lineup_profile::{Kind, ThreadProfile};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A thread's counts, and the meaning of the emulator's descriptions of accesses.
pub(crate) struct Profiled {
    pub(crate) counts: Box<ThreadProfile>,
    descriptions: Descriptions,
}

impl Profiled {
    pub(crate) fn new(counts: Box<ThreadProfile>, api: Api) -> Box<Profiled> {
        Box::new(Profiled { counts, descriptions: Descriptions::new(api) })
    }

    /// Whether the emulator's `info` describes a store.
    #[inline]
    pub(crate) fn is_store(&mut self, info: u32) -> bool {
        self.descriptions.of(info).is_store
    }

    /// Accesses data from the instruction with these counters, as the emulator's `info` describes it; false when
    /// that needs [`Self::access_slowly`].
    #[inline]
    pub(crate) fn access(&mut self, counter: u32, address: u64, info: u32) -> bool {
        let what = self.descriptions.kept(info);
        what.is_of(info) && self.counts.access(counter, address, kind(what))
    }

    /// Accesses data when the block or the description is new, or with a new batch.
    pub(crate) fn access_slowly(&mut self, counter: u32, address: u64, info: u32) {
        let what = self.descriptions.of(info);
        self.counts.access_slowly(counter, address, kind(&what));
    }
}

#[inline]
fn kind(what: &Description) -> Kind {
    Kind { size_shift: what.size_shift, is_store: what.is_store, counts: true }
}

/// The profile of the thread on each virtual CPU, where callbacks find it with one load.
static CURRENT: [AtomicPtr<Profiled>; MAX_THREADS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_THREADS];

/// Says which profile belongs to a virtual CPU; `None` when its thread has ended.
pub(crate) fn set_current(vcpu: u32, profile: Option<&mut Profiled>) {
    if let Some(slot) = CURRENT.get(vcpu as usize) {
        slot.store(profile.map_or(std::ptr::null_mut(), std::ptr::from_mut), Ordering::Release);
    }
}

/// Hands a virtual CPU of a whole system its profile, which stays where it is until [`take_current`].
pub(crate) fn give_current(vcpu: u32, profile: Box<Profiled>) {
    set_current(vcpu, Some(Box::leak(profile)));
}

/// Takes from a virtual CPU the counts that [`give_current`] gave it: from `Box::leak`, or null.
pub(crate) fn take_current(vcpu: u32) -> *mut Profiled {
    let slot = CURRENT.get(vcpu as usize);
    slot.map_or(std::ptr::null_mut(), |slot| slot.swap(std::ptr::null_mut(), Ordering::AcqRel))
}

/// The profile of the thread on a virtual CPU.
///
/// # Safety
/// Only for callbacks of that virtual CPU, and only one reference at a time.
#[inline]
pub(crate) unsafe fn current<'a>(vcpu: u32) -> Option<&'a mut Profiled> {
    let slot = CURRENT.get(vcpu as usize)?;
    // SAFETY: null, or the box that the thread's state holds: it is taken out with `set_current` before the box is
    // dropped. Callbacks of one virtual CPU run on one host thread, one after the other, so the reference is unique.
    unsafe { slot.load(Ordering::Relaxed).as_mut() }
}
