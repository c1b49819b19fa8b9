//! Lanes: the runs that one thread at a time takes objects from. A lane outlives its thread and serves a later one.

use crate::fork_gate;
use crate::lock::Lock;
use crate::memory;
use crate::message;
use crate::pools::{self, MOST_POOLS};
use crate::run::{Bit, Fault, RUN, Run, Standing};
use crate::segments;
use crate::thread_word;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

/// The thread's word before its first object.
const NONE_YET: usize = 0;

/// The word of a thread that has given its lane back: it takes no objects from pools any more.
const OVER: usize = 1;

/// No thread has the lane.
const IDLE: u32 = 0;
/// One has.
const HELD: u32 = 1;
/// Its thread is in the process that forked this one, and may have been in the middle of a change. What is freed in its
/// runs stays.
const LOST: u32 = 2;

/// A lane; its memory begins as zeros.
#[repr(C)]
pub(crate) struct Lane {
    state: AtomicU32,
    /// Of runs in which other threads freed objects: the number of the first one, plus one.
    inbox: AtomicU32,
    /// The lane that was made before this one.
    older: AtomicPtr<Lane>,
    pools: [Shelf; MOST_POOLS],
}

/// A lane's runs of one pool.
struct Shelf {
    current: AtomicPtr<Run>,
    /// Of further runs with free objects: the number of the first one, plus one.
    partial: AtomicU32,
}

/// Taken while a lane changes its thread, or one without a thread changes.
pub(crate) static LANES: Lock = Lock::new();

static NEWEST: AtomicPtr<Lane> = AtomicPtr::new(ptr::null_mut());

/// The key whose destructor sees threads end, plus one.
static KEY: AtomicU64 = AtomicU64::new(0);

/// An object of a pool; `None` where the pool has no memory, or this thread no lane.
#[inline(always)]
pub(crate) fn take(pool: u32) -> Option<usize> {
    let word = thread_word::get();
    if word > OVER {
        // SAFETY: a word beyond `OVER` is the address of this thread's lane; lanes stay.
        let lane = unsafe { &*(word as *const Lane) };
        let current = lane.pools[pool as usize % MOST_POOLS].current.load(Relaxed);
        // SAFETY: null, or a run, which stays.
        if let Some(object) = unsafe { current.as_ref() }.and_then(Run::take) {
            return Some(object);
        }
    }
    take_from_other_run(word, pool)
}

#[cold]
#[inline(never)]
fn take_from_other_run(word: usize, pool: u32) -> Option<usize> {
    let lane = match word {
        OVER => return None,
        NONE_YET => begin()?,
        // SAFETY: as above.
        address => unsafe { &*(address as *const Lane) },
    };
    lane.collect();
    let shelf = &lane.pools[pool as usize];
    // SAFETY: null, or a run, which stays.
    if let Some(current) = unsafe { shelf.current.load(Relaxed).as_ref() } {
        if let Some(object) = current.take() {
            return Some(object);
        }
        current.stand(Standing::Full);
        shelf.current.store(ptr::null_mut(), Relaxed);
    }
    let run = match shelf.partial.load(Relaxed) {
        0 => segments::take_run(pool, lane.address() as usize)?,
        first => {
            let run = segments::run(first as usize - 1);
            shelf.unlink(run);
            run
        }
    };
    run.stand(Standing::Current);
    shelf.current.store(ptr::from_ref(run).cast_mut(), Relaxed);
    run.take()
}

/// Frees an object at an offset in the range.
#[inline(always)]
pub(crate) fn give(address: usize, offset: usize) {
    let run = segments::run_at(offset);
    let lane = run.lane.load(Relaxed);
    if lane != thread_word::get() {
        return give_from_elsewhere(run, address, offset);
    }
    if run.give(live(run, address, offset)) {
        // SAFETY: it is the address of this thread's lane: a run with a live object has one, which is not null.
        unsafe { &*(lane as *const Lane) }.put_away(run);
    }
}

/// The bytes that an object at an offset in the range may use.
pub(crate) fn usable(address: usize, offset: usize) -> usize {
    let run = segments::run_at(offset);
    if !is_lost(run) {
        live(run, address, offset);
    }
    run.stride()
}

/// True for a run whose bitmaps do not count: `fork` may have copied them before or after other memory.
fn is_lost(run: &Run) -> bool {
    // SAFETY: null, or a lane, which stays.
    let lane = unsafe { (run.lane.load(Acquire) as *const Lane).as_ref() };
    lane.is_some_and(|lane| lane.state.load(Relaxed) == LOST)
}

/// The bit of a live object; ends the program where there is none.
#[inline(always)]
fn live(run: &Run, address: usize, offset: usize) -> Bit {
    let bit = run.object(offset % RUN);
    match bit.and_then(|bit| run.check_live(bit).map(|()| bit)) {
        Ok(bit) => bit,
        Err(fault) => end(fault, address),
    }
}

#[cold]
fn end(fault: Fault, address: usize) -> ! {
    match fault {
        Fault::IsFree => message::end("double free, or use of a freed object", address),
        Fault::NoObject => message::end("free of an address that is no object, or no longer", address),
    }
}

#[inline(never)]
fn give_from_elsewhere(run: &Run, address: usize, offset: usize) {
    if is_lost(run) {
        return;
    }
    let bit = live(run, address, offset);
    // Read first: afterwards the run may leave its lane.
    let lane = run.lane.load(Acquire);
    loop {
        fork_gate::wait();
        run.begin_freeing();
        if !fork_gate::is_near() {
            break;
        }
        run.end_freeing();
    }
    match run.give_from_elsewhere(bit) {
        Err(fault) => end(fault, address),
        Ok(false) => {}
        Ok(true) => {
            // SAFETY: the run had a live object, so it had a lane, and lanes stay.
            let lane = unsafe { &*(lane as *const Lane) };
            lane.put_into_inbox(run);
            run.end_freeing();
            lane.collect_if_idle();
        }
    }
}

impl Shelf {
    fn link(&self, run: &Run) {
        let number = segments::number(run) + 1;
        let first = self.partial.load(Relaxed);
        run.next.store(first, Relaxed);
        run.previous.store(0, Relaxed);
        if first != 0 {
            segments::run(first as usize - 1).previous.store(number, Relaxed);
        }
        self.partial.store(number, Relaxed);
        run.stand(Standing::Partial);
    }

    fn unlink(&self, run: &Run) {
        let (next, previous) = (run.next.load(Relaxed), run.previous.load(Relaxed));
        match previous {
            0 => self.partial.store(next, Relaxed),
            previous => segments::run(previous as usize - 1).next.store(next, Relaxed),
        }
        if next != 0 {
            segments::run(next as usize - 1).previous.store(previous, Relaxed);
        }
    }
}

impl Lane {
    fn address(&self) -> *mut Lane {
        ptr::from_ref(self).cast_mut()
    }

    /// Lists a full run of this lane again when enough of it is free, or gives it back when no object is live.
    #[cold]
    #[inline(never)]
    fn put_away(&self, run: &Run) {
        let shelf = &self.pools[run.pool() as usize];
        if run.stands(Standing::Full) && run.is_awake() {
            shelf.link(run);
        }
        // The current one stays: the next object may come at once.
        if run.stands(Standing::Partial) && run.can_leave() {
            shelf.unlink(run);
            segments::give_run(run);
        }
    }

    fn put_into_inbox(&self, run: &Run) {
        let number = segments::number(run) + 1;
        let mut first = self.inbox.load(Relaxed);
        loop {
            run.next_in_inbox.store(first, Relaxed);
            match self.inbox.compare_exchange_weak(first, number, SeqCst, Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Frees what other threads freed, for the thread that has this lane.
    fn collect(&self) {
        if self.inbox.load(Relaxed) == 0 {
            return;
        }
        let mut next = self.inbox.swap(0, AcqRel);
        while next != 0 {
            let run = segments::run(next as usize - 1);
            next = run.next_in_inbox.load(Relaxed);
            if let Err((fault, address)) = run.collect() {
                end(fault, address);
            }
            self.put_away(run);
        }
    }

    /// Does it for a lane without a thread.
    fn collect_if_idle(&self) {
        // Who leaves the lane looks into the inbox afterwards, so one of both sees the other.
        while self.inbox.load(SeqCst) != 0 && self.state.load(SeqCst) == IDLE {
            LANES.with(|| {
                if self.state.load(Relaxed) == IDLE {
                    self.collect();
                    self.give_current_runs();
                }
            });
        }
    }

    /// Gives back current runs without a live object.
    fn give_current_runs(&self) {
        for pool in pools::all() {
            let shelf = &self.pools[pool as usize];
            // SAFETY: null, or a run, which stays.
            let current = unsafe { shelf.current.load(Relaxed).as_ref() };
            if let Some(run) = current.filter(|run| run.can_leave()) {
                shelf.current.store(ptr::null_mut(), Relaxed);
                segments::give_run(run);
            }
        }
    }
}

/// A lane for this thread: an idle one, else a new one.
fn begin() -> Option<&'static Lane> {
    let lane = LANES.with(|| {
        let lane = match all().find(|lane| lane.state.load(Relaxed) == IDLE) {
            Some(lane) => lane,
            None => new()?,
        };
        lane.state.store(HELD, SeqCst);
        Some(lane)
    })?;
    // Before what follows, which may allocate.
    thread_word::set(ptr::from_ref(lane) as usize);
    if let Some(key) = KEY.load(Relaxed).checked_sub(1) {
        // SAFETY: the key was made.
        unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, lane.address().cast()) };
    }
    Some(lane)
}

fn all() -> impl Iterator<Item = &'static Lane> {
    // SAFETY: lanes stay.
    let of = |lane: *mut Lane| unsafe { lane.as_ref() };
    std::iter::successors(of(NEWEST.load(Acquire)), move |lane| of(lane.older.load(Relaxed)))
}

fn new() -> Option<&'static Lane> {
    let at = memory::zeroed(size_of::<Lane>())?;
    // SAFETY: new zeroed memory of this size, never given back; all fields are atomic and may be zero.
    let lane = unsafe { &*(at as *const Lane) };
    lane.older.store(NEWEST.load(Relaxed), Relaxed);
    NEWEST.store(lane.address(), Release);
    Some(lane)
}

/// Prepares for threads that end.
pub(crate) fn watch_threads() {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: the destructor takes what `begin` stores.
    if unsafe { libc::pthread_key_create(&mut key, Some(thread_ends)) } == 0 {
        KEY.store(u64::from(key) + 1, Relaxed);
    }
}

extern "C" fn thread_ends(lane: *mut libc::c_void) {
    thread_word::set(OVER);
    // SAFETY: the value is this thread's lane.
    let lane = unsafe { &*lane.cast::<Lane>() };
    lane.collect();
    lane.give_current_runs();
    LANES.with(|| lane.state.store(IDLE, SeqCst));
    lane.collect_if_idle();
}

/// Gives pages of free runs back.
pub(crate) fn trim() {
    let word = thread_word::get();
    if word > OVER {
        // SAFETY: this thread's lane.
        let lane = unsafe { &*(word as *const Lane) };
        lane.collect();
        lane.give_current_runs();
    }
    pools::all().for_each(segments::trim);
}

/// In a child of `fork`, where this thread is the only one.
pub(crate) fn lose_others() {
    let own = thread_word::get();
    for lane in all() {
        if ptr::from_ref(lane) as usize != own && lane.state.load(Relaxed) == HELD {
            lane.state.store(LOST, Relaxed);
        }
    }
}
