//! Counts of allocations by site, written when the process ends.

use crate::distances::{self, Chain};
use crate::lock::Lock;
use crate::memory;
use crate::message::say;
use crate::modules::{self, Module};
use crate::thread_word;
use libc::c_void;
use lineup_heap_plan::{Frame, LARGEST, PROFILE_HEADER};
use std::ffi::CStr;
use std::fmt::{self, Write};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};

/// Taken while counts change.
pub(crate) static COUNTS: Lock = Lock::new();

static IS_ON: AtomicBool = AtomicBool::new(false);
static STATE: AtomicPtr<State> = AtomicPtr::new(ptr::null_mut());

/// The thread's word while it counts: unwinding may allocate.
const COUNTING: usize = 1;

/// Places for sites, a power of two. Once they are crowded, sites have fewer callers.
const SITES: usize = 1 << 16;

/// Classes of sizes, in steps of what `malloc` aligns to.
const STEP: usize = 16;
const CLASSES: usize = LARGEST / STEP + 1;

/// The most modules that are named.
const MODULES: usize = 1024;

#[derive(Clone, Copy)]
struct Counts {
    chain: Chain,
    objects: u64,
    bytes: u64,
    frees: u64,
    live: Live,
    smallest: usize,
    largest: usize,
}

#[derive(Clone, Copy)]
struct Live {
    objects: u64,
    bytes: u64,
    most_objects: u64,
    most_bytes: u64,
}

impl Live {
    fn add(&mut self, size: usize) {
        self.objects += 1;
        self.bytes += size as u64;
        self.most_objects = self.most_objects.max(self.objects);
        self.most_bytes = self.most_bytes.max(self.bytes);
    }

    fn remove(&mut self, size: usize) {
        self.objects = self.objects.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(size as u64);
    }
}

#[derive(Clone, Copy)]
struct Class {
    objects: u64,
    bytes: u64,
    live: Live,
}

/// An object that is live.
#[derive(Clone, Copy)]
struct Object {
    /// Zero in an empty place.
    address: usize,
    site: u32,
    size: u32,
}

/// All counts; its memory begins as zeros.
struct State {
    file: *const libc::c_char,
    sites: [Counts; SITES],
    site_count: usize,
    classes: [Class; CLASSES],
    objects: *mut Object,
    /// A power of two less one.
    mask: usize,
    used: usize,
    modules: [Option<Module>; MODULES],
    module_count: usize,
}

#[inline(always)]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Counts from now on, for a file whose name stays.
pub(crate) fn begin(file: &'static CStr) {
    const FIRST_OBJECTS: usize = 1 << 16;
    let (Some(state), Some(objects), true) = (
        memory::zeroed(size_of::<State>()),
        memory::zeroed(FIRST_OBJECTS * size_of::<Object>()),
        distances::begin(),
    ) else {
        return say(format_args!("nothing is counted: the system gives no memory"));
    };
    let state = state as *mut State;
    // SAFETY: new zeroed memory; all fields may be zero, and an option of a module is none then or is written before
    // it is read.
    unsafe {
        (&raw mut (*state).file).write(file.as_ptr());
        (&raw mut (*state).objects).write(objects as *mut Object);
        (&raw mut (*state).mask).write(FIRST_OBJECTS - 1);
    }
    STATE.store(state, Release);
    // SAFETY: the function takes nothing.
    unsafe { libc::atexit(write_at_exit) };
    IS_ON.store(true, Release);
}

/// Runs `body` with the counts.
fn counting(body: impl FnOnce(&mut State)) {
    COUNTS.with(|| {
        // SAFETY: made before counting was on; the lock keeps others out.
        body(unsafe { &mut *STATE.load(Acquire) });
    });
}

/// Counts a new object.
#[cold]
#[inline(never)]
pub(crate) fn note(slot: *const usize, object: *mut c_void, size: usize) {
    if object.is_null() || slot.is_null() || thread_word::get() == COUNTING {
        return;
    }
    thread_word::set(COUNTING);
    let keeping = memory::Errno::keep();
    // SAFETY: the lock is taken; the slot is that of the call.
    let known = COUNTS.with(|| unsafe { distances::known(slot) });
    let mut chain = known.unwrap_or_else(|| distances::unwound(slot));
    counting(|state| {
        if known.is_none() {
            // SAFETY: the lock is taken.
            unsafe { distances::learn(&mut chain) };
        }
        state.add(&chain, object as usize, size);
    });
    drop(keeping);
    thread_word::set(0);
}

/// Counts an object that is about to be freed.
#[cold]
#[inline(never)]
pub(crate) fn forget(object: *mut c_void) {
    if !object.is_null() && thread_word::get() != COUNTING {
        counting(|state| state.remove(object as usize));
    }
}

impl State {
    fn add(&mut self, chain: &Chain, object: usize, size: usize) {
        let site = self.site(chain);
        let counts = &mut self.sites[site];
        counts.smallest = if counts.objects == 0 { size } else { counts.smallest.min(size) };
        counts.largest = counts.largest.max(size);
        counts.objects += 1;
        counts.bytes += size as u64;
        counts.live.add(size);
        if let Some(class) = self.classes.get_mut(class(size)) {
            class.objects += 1;
            class.bytes += size as u64;
            class.live.add(size);
        }
        self.put(Object {
            address: object,
            site: site as u32,
            size: u32::try_from(size).unwrap_or(u32::MAX),
        });
    }

    /// The place of a site's counts.
    fn site(&mut self, chain: &Chain) -> usize {
        let mut chain = *chain;
        loop {
            if let Some(at) = self.site_of(&chain) {
                return at;
            }
            match chain.length {
                // Sites without callers share what is left.
                0 | 1 => return 0,
                length => chain.cut(length / 2),
            }
        }
    }

    fn site_of(&mut self, chain: &Chain) -> Option<usize> {
        let frames = &chain.frames[..chain.length];
        let mixed = frames.iter().fold(0_usize, |mixed, (address, _)| {
            (mixed.rotate_left(7) ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        // Half of the places are kept for sites without callers, so that searches stay short.
        let has_room = chain.length == 1 || self.site_count < SITES / 2;
        for step in 0..SITES {
            let at = (mixed >> 40).wrapping_add(step) % SITES;
            let counts = &mut self.sites[at];
            if counts.chain.length == 0 {
                if !has_room {
                    return None;
                }
                counts.chain = *chain;
                self.site_count += 1;
            }
            if counts.chain == *chain {
                return Some(at);
            }
        }
        None
    }

    fn put(&mut self, object: Object) {
        if self.used * 2 > self.mask && !self.grow() {
            return;
        }
        let mut at = place(object.address) & self.mask;
        // SAFETY: the mask keeps it inside the table.
        unsafe {
            while (*self.objects.add(at)).address != 0 {
                if (*self.objects.add(at)).address == object.address {
                    // It was freed by a way that is not seen.
                    break;
                }
                at = (at + 1) & self.mask;
            }
            self.used += usize::from((*self.objects.add(at)).address == 0);
            self.objects.add(at).write(object);
        }
    }

    fn grow(&mut self) -> bool {
        let (old, places) = (self.objects, self.mask + 1);
        let Some(room) = memory::zeroed(2 * places * size_of::<Object>()) else { return false };
        (self.objects, self.mask, self.used) = (room as *mut Object, 2 * places - 1, 0);
        for at in 0..places {
            // SAFETY: inside the old table.
            let object = unsafe { old.add(at).read() };
            if object.address != 0 {
                self.put(object);
            }
        }
        // SAFETY: nothing refers to the old table any more.
        unsafe { memory::unmap(old as usize, places * size_of::<Object>()) };
        true
    }

    fn remove(&mut self, address: usize) {
        let mut at = place(address) & self.mask;
        // SAFETY: the mask keeps all places inside the table.
        let object = unsafe {
            loop {
                let object = self.objects.add(at).read();
                match object.address {
                    0 => return,
                    there if there == address => break object,
                    _ => at = (at + 1) & self.mask,
                }
            }
        };
        self.close_gap(at);
        self.used -= 1;
        let size = object.size as usize;
        let counts = &mut self.sites[object.site as usize];
        counts.frees += 1;
        counts.live.remove(size);
        if let Some(class) = self.classes.get_mut(class(size)) {
            class.live.remove(size);
        }
    }

    /// Empties a place, and moves objects behind it that a search would not find any more.
    fn close_gap(&mut self, mut gap: usize) {
        let mut at = gap;
        // SAFETY: the mask keeps all places inside the table.
        unsafe {
            loop {
                at = (at + 1) & self.mask;
                let object = self.objects.add(at).read();
                if object.address == 0 {
                    break;
                }
                let wanted = place(object.address) & self.mask;
                if (at.wrapping_sub(wanted) & self.mask) >= (at.wrapping_sub(gap) & self.mask) {
                    self.objects.add(gap).write(object);
                    gap = at;
                }
            }
            (*self.objects.add(gap)).address = 0;
        }
    }

    /// Notes the modules that are loaded.
    fn note_modules(&mut self) {
        self.module_count = 0;
        modules::each(&mut |module| {
            if self.module_count < MODULES {
                self.modules[self.module_count] = Some(module);
                self.module_count += 1;
            }
            true
        });
    }

    fn module(&self, address: usize) -> Option<&Module> {
        let modules = self.modules[..self.module_count].iter().flatten();
        modules.into_iter().find(|module| (module.first..module.end).contains(&address))
    }

    fn frame(&self, (address, distance): (usize, u32), is_last: bool) -> Option<Frame> {
        let module = self.module(address)?;
        Some(Frame {
            module: module.build_id?,
            offset: address.wrapping_sub(module.bias) as u64,
            distance: (!is_last).then_some(distance),
        })
    }

    fn write(&self, out: &mut impl Write) -> fmt::Result {
        writeln!(out, "{PROFILE_HEADER}")?;
        for (at, class) in self.classes.iter().enumerate().filter(|(_, class)| class.objects > 0) {
            let (size, live) = (at * STEP, class.live.most_bytes);
            writeln!(out, "size {size} objects {} bytes {} live {live}", class.objects, class.bytes)?;
        }
        for counts in self.sites.iter().filter(|counts| counts.objects > 0) {
            self.write_site(out, counts)?;
        }
        Ok(())
    }

    fn write_site(&self, out: &mut impl Write, counts: &Counts) -> fmt::Result {
        let frames = &counts.chain.frames[..counts.chain.length];
        // Callers in modules without a build id are left out, with those behind them.
        let named = frames.iter().take_while(|frame| self.frame(**frame, true).is_some()).count();
        if named == 0 {
            return Ok(());
        }
        let Counts { objects, bytes, frees, live, smallest, largest, .. } = counts;
        write!(
            out,
            "site objects {objects} bytes {bytes} frees {frees} live-objects {} live-bytes {} sizes {smallest}-{largest} at",
            live.most_objects, live.most_bytes
        )?;
        for (at, frame) in frames[..named].iter().enumerate() {
            if let Some(frame) = self.frame(*frame, at + 1 == named) {
                write!(out, " {frame}")?;
            }
        }
        out.write_str(" in")?;
        for (address, _) in &frames[..named] {
            let start = distances::function(*address).unwrap_or(*address);
            let bias = self.module(*address).map_or(0, |module| module.bias);
            write!(out, " {:#x}", start.wrapping_sub(bias))?;
        }
        writeln!(out)
    }
}

fn place(address: usize) -> usize {
    (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

fn class(size: usize) -> usize {
    size.max(1).div_ceil(STEP)
}

extern "C" fn write_at_exit() {
    thread_word::set(COUNTING);
    counting(|state| {
        state.note_modules();
        let mut name = Name { bytes: [0; 4096], length: 0 };
        // SAFETY: the name of the environment, which ends with a zero.
        let file = unsafe { CStr::from_ptr(state.file) }.to_str().unwrap_or_default();
        // SAFETY: asks for a number.
        let process = unsafe { libc::getpid() };
        if write!(name, "{file}.{process}\0").is_err() {
            return say(format_args!("no profile is written: its name is too long"));
        }
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
        // SAFETY: the name ends with a zero.
        let descriptor = unsafe { libc::open(name.bytes.as_ptr().cast(), flags, 0o644) };
        if descriptor < 0 {
            return say(format_args!("no profile is written: {file}.{process} cannot be made"));
        }
        let mut out = Out { descriptor, bytes: [0; 8192], length: 0 };
        if state.write(&mut out).is_err() || out.flush().is_err() {
            say(format_args!("the profile {file}.{process} is not whole: it cannot be written"));
        }
        // SAFETY: opened above.
        unsafe { libc::close(descriptor) };
    });
    thread_word::set(0);
}

struct Name {
    bytes: [u8; 4096],
    length: usize,
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

/// A file that is written in large parts.
struct Out {
    descriptor: i32,
    bytes: [u8; 8192],
    length: usize,
}

impl Out {
    fn flush(&mut self) -> fmt::Result {
        let mut at = 0;
        while at < self.length {
            // SAFETY: the part lies inside the buffer.
            let written =
                unsafe { libc::write(self.descriptor, self.bytes.as_ptr().add(at).cast(), self.length - at) };
            at += usize::try_from(written).map_err(|_| fmt::Error)?;
        }
        self.length = 0;
        Ok(())
    }
}

impl Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.as_bytes().chunks(self.bytes.len()) {
            if self.length + part.len() > self.bytes.len() {
                self.flush()?;
            }
            self.bytes[self.length..self.length + part.len()].copy_from_slice(part);
            self.length += part.len();
        }
        Ok(())
    }
}
