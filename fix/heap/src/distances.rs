//! The return addresses of a call's callers. Unwinding finds them, and teaches how far apart they lie on the stack;
//! after enough calls that agree, that alone finds them.

use crate::memory;
use lineup_heap_plan::CALLERS;
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// A chain of return addresses; each with the bytes to the next one, 0 in the last.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) frames: [(usize, u32); CALLERS],
    pub(crate) length: usize,
}

impl Chain {
    /// Leaves out callers.
    pub(crate) fn cut(&mut self, length: usize) {
        self.length = length;
        self.frames[length..].fill((0, 0));
        self.frames[length - 1].1 = 0;
    }
}

/// The caller of a return address, as earlier calls had it.
#[derive(Clone, Copy)]
#[repr(C)]
struct Taught {
    address: usize,
    /// Bytes to the caller's return address; `VARIES` where calls did not agree.
    distance: u32,
    /// Calls that agreed.
    calls: u32,
}

const VARIES: u32 = u32::MAX;

/// Calls that must agree before unwinding is left out.
const ENOUGH: u32 = 8;

/// Distances beyond this are not believed.
const FARTHEST: usize = 1 << 20;

/// Places of the table, a power of two; what does not fit is unwound each time.
const PLACES: usize = 1 << 15;

static TABLE: AtomicUsize = AtomicUsize::new(0);

/// Makes the table.
pub(crate) fn begin() -> bool {
    let Some(at) = memory::zeroed(PLACES * size_of::<Taught>()) else { return false };
    TABLE.store(at, Relaxed);
    true
}

/// The entry of a return address, or a free place for it; `None` where the table is full there.
///
/// # Safety
/// The lock of counts is taken, and the table was made.
unsafe fn entry(address: usize) -> Option<&'static mut Taught> {
    let table = TABLE.load(Relaxed) as *mut Taught;
    let first = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (0..16).find_map(|step| {
        // SAFETY: inside the table, whose memory stays; the lock keeps others out.
        let one = unsafe { &mut *table.add((first + step) % PLACES) };
        (one.address == address || one.address == 0).then_some(one)
    })
}

/// The chain of a call by what was taught; `None` where that is not enough.
///
/// # Safety
/// As for [`entry`]; `slot` is the place of a return address on this thread's stack.
pub(crate) unsafe fn known(mut slot: *const usize) -> Option<Chain> {
    let mut chain = Chain::default();
    for at in 0..CALLERS {
        // SAFETY: the place of a return address, by the caller or by calls that agreed.
        let address = unsafe { slot.read() };
        chain.frames[at].0 = address;
        chain.length = at + 1;
        if at + 1 == CALLERS {
            break;
        }
        // SAFETY: the caller's promise.
        let taught = unsafe { entry(address)? };
        if taught.address != address || taught.distance != VARIES && taught.calls < ENOUGH {
            return None;
        }
        if taught.distance == VARIES || taught.distance == 0 {
            break;
        }
        chain.frames[at].1 = taught.distance;
        slot = slot.wrapping_byte_add(taught.distance as usize);
    }
    Some(chain)
}

/// Learns from a chain that was unwound, and cuts it where calls did not agree.
///
/// # Safety
/// As for [`entry`].
pub(crate) unsafe fn learn(chain: &mut Chain) {
    for at in 0..chain.length {
        let (address, distance) = chain.frames[at];
        let is_last = at + 1 == CALLERS;
        // SAFETY: the caller's promise.
        let Some(taught) = (unsafe { entry(address) }).filter(|_| !is_last) else { continue };
        if taught.address == 0 {
            *taught = Taught { address, distance, calls: 0 };
        }
        match taught.distance == distance {
            true => taught.calls = taught.calls.saturating_add(1),
            false => taught.distance = VARIES,
        }
        if taught.distance == VARIES {
            return chain.cut(at + 1);
        }
    }
}

/// The unwinder's frame, as `unwind.h` has it.
#[repr(C)]
struct Context([u8; 0]);

unsafe extern "C" {
    fn _Unwind_Backtrace(visit: extern "C" fn(*mut Context, *mut c_void) -> c_int, of: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
    fn _Unwind_GetCFA(context: *mut Context) -> usize;
    fn _Unwind_FindEnclosingFunction(address: *mut c_void) -> *mut c_void;
}

/// The begin of the function that a return address lies in, by its unwind information.
pub(crate) fn function(address: usize) -> Option<usize> {
    // SAFETY: looks the address up in tables; a call at a function's end returns behind it.
    let start = unsafe { _Unwind_FindEnclosingFunction((address - 1) as *mut c_void) };
    (!start.is_null()).then_some(start as usize)
}

/// `_URC_NO_REASON` and `_URC_END_OF_STACK`.
const GO_ON: c_int = 0;
const ENOUGH_SEEN: c_int = 5;

/// The result of one unwinding.
struct Unwound {
    /// The place of the call's return address.
    slot: usize,
    chain: Chain,
    /// The place of the last return address in the chain.
    last: usize,
}

/// The chain of a call by unwinding. Takes no lock of this library, since it may allocate.
pub(crate) fn unwound(slot: *const usize) -> Chain {
    let mut found = Unwound { slot: slot as usize, chain: Chain::default(), last: 0 };
    // SAFETY: the function gets what it expects, which outlives the call.
    unsafe { _Unwind_Backtrace(visit, (&raw mut found).cast()) };
    if found.chain.length == 0 {
        // SAFETY: the place of the call's return address.
        found.chain.frames[0].0 = unsafe { slot.read() };
        found.chain.length = 1;
    }
    found.chain
}

extern "C" fn visit(context: *mut Context, found: *mut c_void) -> c_int {
    // SAFETY: the unwinder's frame, and what `unwound` gave.
    let (found, address, slot) = unsafe {
        let slot = _Unwind_GetCFA(context).wrapping_sub(size_of::<usize>());
        (&mut *found.cast::<Unwound>(), _Unwind_GetIP(context), slot)
    };
    let chain = &mut found.chain;
    if chain.length == 0 && slot != found.slot {
        return GO_ON;
    }
    // Where the unwinder is wrong, the word there is another.
    // SAFETY: the unwinder read the return address at this place, at or above the call's.
    if slot < found.slot || unsafe { (slot as *const usize).read() } != address || address == 0 {
        return ENOUGH_SEEN;
    }
    if let Some(last) = chain.length.checked_sub(1) {
        let distance = slot.wrapping_sub(found.last);
        if distance == 0 || distance > FARTHEST {
            return ENOUGH_SEEN;
        }
        chain.frames[last].1 = distance as u32;
    }
    chain.frames[chain.length] = (address, 0);
    chain.length += 1;
    found.last = slot;
    match chain.length == CALLERS {
        true => ENOUGH_SEEN,
        false => GO_ON,
    }
}
