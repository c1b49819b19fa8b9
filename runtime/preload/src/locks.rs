//! Names for locks by their address.

use lineup_runtime::trace::Region;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};

/// Locks that get names of their own.
pub(crate) const ROOM: usize = 510;
const SLOTS: usize = 1024;

struct Slot {
    address: AtomicUsize,
    region: AtomicPtr<Region>,
}

static TABLE: [Slot; SLOTS] =
    [const { Slot { address: AtomicUsize::new(0), region: AtomicPtr::new(std::ptr::null_mut()) } }; SLOTS];
static NAMED: AtomicUsize = AtomicUsize::new(0);
static OTHERS: Region = Region::lock(c"other locks");

/// The name of the lock at `address`; created if it is new.
pub(crate) fn name(kind: &CStr, address: usize) -> *const Region {
    let start = (address >> 3).wrapping_mul(0x9e37_79b9) % SLOTS;
    for slot in (0..SLOTS).map(|step| &TABLE[(start + step) % SLOTS]) {
        let found = slot.address.load(Acquire);
        if found == address {
            return known(slot);
        }
        if found == 0 {
            if NAMED.load(Acquire) >= ROOM {
                return &raw const OTHERS;
            }
            match slot.address.compare_exchange(0, address, AcqRel, Acquire) {
                Ok(_) => return make(slot, kind, address),
                Err(other) if other == address => return known(slot),
                Err(_) => {}
            }
        }
    }
    &raw const OTHERS
}

/// The name in `slot`, or the shared one while another thread is making it.
fn known(slot: &Slot) -> *const Region {
    let region = slot.region.load(Acquire);
    if region.is_null() { &raw const OTHERS } else { region }
}

/// Names live as long as the process: a trace refers to them.
fn make(slot: &Slot, kind: &CStr, address: usize) -> *const Region {
    NAMED.fetch_add(1, AcqRel);
    let text = format!("{} {address:#x}", kind.to_string_lossy());
    let Ok(text) = CString::new(text) else { return &raw const OTHERS };
    let region = Box::leak(Box::new(Region::lock(Box::leak(text.into_boxed_c_str()))));
    slot.region.store(region, Release);
    region
}
