//! From the return address of a call, and those of its callers, to the pools of a site.

use crate::lock::Lock;
use crate::memory;
use crate::modules::{self, Module};
use crate::pools::Sizes;
use lineup_heap_plan::{Frame, lines};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
use std::{ptr, slice, str};

/// A return address behind another one; its memory begins as zeros.
#[repr(C)]
struct Node {
    /// Zero while this place is empty; written last.
    address: AtomicUsize,
    /// The number of the node before it, 0 for a site's first.
    parent: AtomicU32,
    /// Bytes on the stack to the caller's return address; 0 where no site has a caller.
    distance: AtomicU32,
    /// The pools where a site ends here.
    sizes: AtomicPtr<Sizes>,
}

/// Taken while sites are added.
pub(crate) static LOADING: Lock = Lock::new();

static NODES: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());
/// The number of places less one: a power of two less one.
static MASK: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);

/// The plan: its text, and the pools of each of its lines.
static TEXT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static SIZES: AtomicPtr<AtomicPtr<Sizes>> = AtomicPtr::new(ptr::null_mut());

/// The number of modules ever loaded when sites were added last; 0 where none is missing.
static LOADED: AtomicU64 = AtomicU64::new(0);
/// Calls since then that no site was found for, and after how many it is worth to look for new modules.
static MISSES: AtomicU32 = AtomicU32::new(0);
static PATIENCE: AtomicU32 = AtomicU32::new(256);
const MOST_PATIENCE: u32 = 1 << 16;

/// Makes room for a plan's sites. `text` stays, and `sizes` has the pools of each line, null for those of all sites.
pub(crate) fn begin(text: &'static str, sizes: *mut AtomicPtr<Sizes>) -> bool {
    let frames: usize =
        lines(text).flatten().map(|line| line.sites().map(Iterator::count).sum::<usize>()).sum();
    if frames == 0 {
        return true;
    }
    let places = (frames * 4).next_power_of_two();
    let Some(nodes) = memory::zeroed(places * size_of::<Node>()) else { return false };
    TEXT.store(text.as_ptr().cast_mut(), Relaxed);
    LENGTH.store(text.len(), Relaxed);
    SIZES.store(sizes, Relaxed);
    MASK.store(places - 1, Relaxed);
    NODES.store(nodes as *mut Node, Release);
    LOADING.with(add_all);
    true
}

/// The pools of the site of a call whose return address lies at `slot`.
#[inline(always)]
pub(crate) fn sizes(slot: *const usize) -> Option<&'static Sizes> {
    let nodes = NODES.load(Relaxed);
    match nodes.is_null() || slot.is_null() {
        true => None,
        false => among(nodes, slot),
    }
}

#[inline(never)]
fn among(nodes: *const Node, mut slot: *const usize) -> Option<&'static Sizes> {
    let (mut parent, mut found) = (0, ptr::null_mut());
    loop {
        // SAFETY: a return address on this thread's stack: that of the call, or one as far from it as the code has it
        // whose build id is the plan's.
        let address = unsafe { slot.read() };
        let Some((number, node)) = find(nodes, parent, address) else { break };
        found = node.sizes.load(Relaxed);
        let distance = node.distance.load(Relaxed);
        if distance == 0 {
            break;
        }
        slot = slot.wrapping_byte_add(distance as usize);
        parent = number;
    }
    if found.is_null() {
        missed();
    }
    // SAFETY: null, or pools of a line, which stay.
    unsafe { found.as_ref() }
}

fn place(parent: u32, address: usize) -> usize {
    let mixed = (address ^ (parent as usize) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed >> 32
}

#[inline(always)]
fn find(nodes: *const Node, parent: u32, address: usize) -> Option<(u32, &'static Node)> {
    let mask = MASK.load(Relaxed);
    let mut at = place(parent, address) & mask;
    loop {
        // SAFETY: the mask keeps it inside the table, whose memory stays; all fields are atomic.
        let node = unsafe { &*nodes.add(at) };
        match node.address.load(Acquire) {
            0 => return None,
            there if there == address && node.parent.load(Relaxed) == parent => {
                return Some((at as u32 + 1, node));
            }
            _ => at = (at + 1) & mask,
        }
    }
}

/// The node of a return address, made where it is missing. The lock is taken.
fn node(parent: u32, address: usize) -> Option<(u32, &'static Node)> {
    let nodes = NODES.load(Relaxed);
    if let Some(found) = find(nodes, parent, address) {
        return Some(found);
    }
    let mask = MASK.load(Relaxed);
    // Modules that are loaded again elsewhere need places of their own.
    if USED.load(Relaxed) * 2 > mask {
        return None;
    }
    USED.fetch_add(1, Relaxed);
    let mut at = place(parent, address) & mask;
    loop {
        // SAFETY: as above.
        let node = unsafe { &*nodes.add(at) };
        if node.address.load(Relaxed) == 0 {
            node.parent.store(parent, Relaxed);
            node.address.store(address, Release);
            return Some((at as u32 + 1, node));
        }
        at = (at + 1) & mask;
    }
}

/// Now and then, looks for modules that were loaded since.
fn missed() {
    if LOADED.load(Relaxed) == 0 {
        return;
    }
    let misses = MISSES.load(Relaxed) + 1;
    MISSES.store(misses, Relaxed);
    let patience = PATIENCE.load(Relaxed);
    if misses < patience {
        return;
    }
    MISSES.store(0, Relaxed);
    PATIENCE.store((patience * 2).min(MOST_PATIENCE), Relaxed);
    // Not waited for: the loader itself may be allocating.
    LOADING.try_with(|| {
        if modules::ever_loaded() != LOADED.load(Relaxed) {
            PATIENCE.store(256, Relaxed);
            add_all();
        }
    });
}

/// The most modules that are looked at.
const MOST_MODULES: usize = 512;

/// Adds all sites whose modules are loaded. The lock is taken.
fn add_all() {
    // SAFETY: the text that `begin` got, which stays.
    let text = unsafe { slice::from_raw_parts(TEXT.load(Relaxed), LENGTH.load(Relaxed)) };
    let Ok(text) = str::from_utf8(text) else { return };
    let loaded = modules::ever_loaded();
    let room = MOST_MODULES * size_of::<Module>();
    let Some(at) = memory::zeroed(room) else { return };
    let (list, mut count) = (at as *mut Module, 0);
    modules::each(&mut |module| {
        if module.build_id.is_some() && count < MOST_MODULES {
            // SAFETY: there is room for this many.
            unsafe { list.add(count).write(module) };
            count += 1;
        }
        true
    });
    // SAFETY: the first `count` were written.
    let modules = unsafe { slice::from_raw_parts(list, count) };
    let mut is_missing = false;
    for (at, line) in lines(text).flatten().enumerate() {
        // SAFETY: `begin` got the pools of every line.
        let sizes = unsafe { &*SIZES.load(Relaxed).add(at) }.load(Relaxed);
        for site in line.sites() {
            is_missing |= !add(site, sizes, modules);
        }
    }
    // SAFETY: only this function used it.
    unsafe { memory::unmap(at, room) };
    LOADED.store(if is_missing { loaded } else { 0 }, Relaxed);
}

/// Adds a site; false where a module is missing.
fn add(site: impl Iterator<Item = Frame>, sizes: *mut Sizes, modules: &[Module]) -> bool {
    let (mut parent, mut last) = (0, None);
    for frame in site {
        let Some(module) = modules.iter().find(|module| module.build_id == Some(frame.module)) else {
            return false;
        };
        let Some((number, node)) = node(parent, module.bias.wrapping_add(frame.offset as usize)) else {
            return true;
        };
        if let Some(distance) = frame.distance {
            node.distance.store(distance, Relaxed);
        }
        (parent, last) = (number, Some(node));
    }
    if let Some(node) = last.filter(|node| node.sizes.load(Relaxed).is_null()) {
        node.sizes.store(sizes, Relaxed);
    }
    true
}
