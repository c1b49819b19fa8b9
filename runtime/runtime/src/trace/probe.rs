//! The work of an active probe.

use super::buffer::{Buffer, DEPTH, HeldLock, Open, RecordContents};
use super::intervene;
use super::region::Region;
use super::session::Session;
use crate::cancel::NotCancelled;
use lineup_trace::layout::COUNTERS;
use lineup_trace::{Arm, Kind};
use std::cell::Cell;
use std::sync::atomic::{Ordering::SeqCst, compiler_fence};

crate::define_imv! {
    /// Address of the session that probes record into; 0 without a session.
    pub(super) static SESSION: u64 = 0;
}

thread_local! {
    static STATE: State = const {
        State { busy: Cell::new(false), buffer: Cell::new(std::ptr::null_mut()), refused_by: Cell::new(0) }
    };
    static AT_END: AtEnd = const { AtEnd };
}

/// A thread's state between probes.
struct State {
    /// A probe is running. One in a signal handler that interrupts it is counted as lost, and changes nothing else.
    busy: Cell<bool>,
    /// From `Box::into_raw`, or null: the thread's buffer in the session that it entered last.
    buffer: Cell<*mut Buffer>,
    /// The last session that had no room for this thread.
    refused_by: Cell<u64>,
}

/// Frees the buffer at the thread's end.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        STATE.with(|state| {
            // Probes in later destructors of this thread are counted as lost.
            state.busy.set(true);
            state.own(std::ptr::null_mut());
        });
    }
}

impl State {
    /// Takes `buffer`, after which no signal handler finds the old one, and frees that.
    fn own(&self, buffer: *mut Buffer) {
        let old = self.buffer.replace(buffer);
        if !old.is_null() {
            let _whole = NotCancelled::begin();
            // SAFETY: from `Box::into_raw`. Probes that use it run with `busy` set, and so does this.
            drop(unsafe { Box::from_raw(old) });
        }
    }

    /// The thread's buffer, if it is one of `session`.
    #[inline(always)]
    fn buffer_in(&self, session: &Session) -> Option<&Buffer> {
        // SAFETY: null, or owned by this thread; `own` alone frees it.
        let buffer = unsafe { self.buffer.get().as_ref() };
        buffer.filter(|buffer| std::ptr::eq(buffer.session, session))
    }
}

/// The session that records now.
pub(super) fn session() -> Option<&'static Session> {
    let address = crate::imv_read!(SESSION);
    // SAFETY: zero, or the address of a session that `start` leaked.
    unsafe { (address as *const Session).as_ref() }
}

/// Runs `work` with this thread's buffer, unless a probe of this thread is already running below.
#[inline(always)]
pub(super) fn with_buffer<R>(work: impl FnOnce(&Buffer) -> R) -> Option<R> {
    // A closure with the whole of it would not be inlined, and the thread's state be found through a pointer.
    let state = STATE.with(|state| &raw const *state);
    // SAFETY: this thread's own and without a destructor, so it outlives this call.
    let state = unsafe { &*state };
    if state.busy.replace(true) {
        count_interrupting(state);
        return None;
    }
    // The flag is for signal handlers on this very thread: order against the compiler is all that is needed.
    compiler_fence(SeqCst);
    let _busy = Busy(&state.busy);
    session().and_then(|session| state.buffer_in(session).or_else(|| enter(session, state))).map(work)
}

/// Marks the thread as out of the probe again, also when the probe panics.
struct Busy<'a>(&'a Cell<bool>);

impl Drop for Busy<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        self.0.set(false);
    }
}

#[cold]
#[inline(never)]
fn count_interrupting(state: &State) {
    let Some(session) = session() else { return };
    match state.buffer_in(session) {
        Some(buffer) => buffer.count_nested(),
        None => session.count_without_area(),
    }
}

/// Gives this thread a buffer in `session`. A thread for which it has no room keeps its present buffer.
#[cold]
#[inline(never)]
fn enter<'a>(session: &'static Session, state: &'a State) -> Option<&'a Buffer> {
    let _whole = NotCancelled::begin();
    let is_allowed = state.refused_by.get() != session.number && AT_END.try_with(|_| ()).is_ok();
    match is_allowed.then(|| Buffer::claim(session)).flatten() {
        Some(buffer) => state.own(Box::into_raw(Box::new(buffer))),
        None => {
            state.refused_by.set(session.number);
            session.count_without_area();
        }
    }
    state.buffer_in(session)
}

/// The fast path: runs `work` with this thread's buffer when no probe of the thread is interrupted and it recorded in
/// this session before. Otherwise `None`, with nothing changed; also when `work` returns `None`.
///
/// A function without calls saves few registers: that was a third of a region's cost without the counter.
#[inline(always)]
fn usually<R>(region: &Region, work: impl FnOnce(&Buffer, u16) -> Option<R>) -> Option<R> {
    let state = STATE.with(|state| &raw const *state);
    // SAFETY: as in `with_buffer`.
    let state = unsafe { &*state };
    if state.busy.replace(true) {
        return None;
    }
    compiler_fence(SeqCst);
    let done = session().and_then(|session| {
        let buffer = state.buffer_in(session)?;
        work(buffer, session.known_index_of(region)?)
    });
    compiler_fence(SeqCst);
    state.busy.set(false);
    done
}

/// Opens `region`.
#[inline(always)]
pub(super) fn begin(region: &Region) {
    if begin_usually(region).is_none() {
        begin_anyhow(region);
    }
}

#[inline(always)]
fn begin_usually(region: &Region) -> Option<()> {
    usually(region, |buffer, name| {
        if region.arms != 0 || buffer.counters.is_some() {
            return None;
        }
        let start_ns = crate::clock::CLOCK.read_usual()?.ns;
        let depth = buffer.depth.get();
        let slot = buffer.open.get(depth)?;
        let first_inner = buffer.next_number();
        slot.set(Open { name, arm: 0, first_inner, lock_wait_ns: 0, give_up_ns: None, start_ns });
        buffer.depth.set(depth + 1);
        Some(())
    })
}

#[cold]
#[inline(never)]
fn begin_anyhow(region: &Region) {
    with_buffer(|buffer| {
        let depth = buffer.depth.get();
        let (Some(name), Some(slot)) = (buffer.session.index_of(region), buffer.open.get(depth)) else {
            buffer.count_unbalanced();
            return;
        };
        buffer.depth.set(depth + 1);
        let (arm, give_up_ns) = if region.arms == 0 { (0, None) } else { intervene(buffer, region) };
        if let (Some(group), Some(at_begin)) = (&buffer.counters, buffer.counters_at_begin.get(depth)) {
            at_begin.set(group.read());
        }
        let first_inner = buffer.next_number();
        slot.set(Open {
            name,
            arm,
            first_inner,
            lock_wait_ns: 0,
            give_up_ns,
            start_ns: crate::clock::now_ns(),
        });
    });
}

fn gives_up_locks(arm: u8, region: &Region) -> bool {
    let is_declared = region.arms >> Arm::GiveUpLock.number() & 1 == 1;
    is_declared && Arm::from_number(arm).is_some_and(Arm::gives_up_locks)
}

/// Assigns an arm to the call that begins, and applies it.
#[inline(never)]
fn intervene(buffer: &Buffer, region: &Region) -> (u8, Option<u64>) {
    let (state, random) = intervene::next_random(buffer.random.get());
    buffer.random.set(state);
    let arm = intervene::assign(region.arms, random);
    if arm != 0 {
        intervene::apply(arm, region);
    }
    (arm, gives_up_locks(arm, region).then_some(region.give_up_ns))
}

/// Closes `region`, and regions left open inside it.
#[inline(always)]
pub(super) fn end(region: &Region) {
    let Some(now) = crate::clock::CLOCK.read_usual() else { return end_anyhow(region, None) };
    if end_usually(region, now.ns).is_none() {
        end_anyhow(region, Some(now.ns));
    }
}

#[inline(always)]
fn end_usually(region: &Region, now_ns: u64) -> Option<()> {
    usually(region, |buffer, name| {
        let at = buffer.depth.get().checked_sub(1)?;
        let open = buffer.open.get(at)?.get();
        if open.name != name
            || open.lock_wait_ns != 0
            || buffer.counters.is_some()
            || !buffer.keeps_events_alone()
        {
            return None;
        }
        let entry = RecordContents {
            cpu: super::cpu::by_load()?,
            kind: Kind::Region,
            name,
            start_ns: open.start_ns,
            duration_ns: now_ns.saturating_sub(open.start_ns),
            lock_wait_ns: 0,
            argument: 0,
            arm: open.arm,
            depth: at as u8,
            counters: [0; COUNTERS],
        };
        buffer.depth.set(at);
        buffer.push(&entry);
        Some(())
    })
}

#[cold]
#[inline(never)]
fn end_anyhow(region: &Region, now_ns: Option<u64>) {
    let now_ns = now_ns.unwrap_or_else(crate::clock::now_ns);
    with_buffer(|buffer| {
        let Some(name) = buffer.session.index_of(region) else { return };
        let depth = buffer.depth.get();
        let is_top = |at: usize| buffer.open.get(at).is_some_and(|open| open.get().name == name);
        let top = depth.checked_sub(1).filter(|at| is_top(*at));
        let Some(at) = top.or_else(|| find_below(buffer, depth, name)) else {
            return;
        };
        buffer.depth.set(at);
        let open = buffer.open[at].get();
        if let Some(outer) =
            at.checked_sub(1).filter(|_| open.lock_wait_ns > 0).map(|outer| &buffer.open[outer])
        {
            let wait = outer.get().lock_wait_ns + open.lock_wait_ns;
            outer.set(Open { lock_wait_ns: wait, ..outer.get() });
        }
        let counters = match &buffer.counters {
            None => [0; COUNTERS],
            Some(group) => group.since(&buffer.counters_at_begin[at].get()),
        };
        let entry = RecordContents {
            cpu: super::cpu::current(),
            kind: Kind::Region,
            name,
            start_ns: open.start_ns,
            duration_ns: now_ns.saturating_sub(open.start_ns),
            lock_wait_ns: open.lock_wait_ns,
            argument: 0,
            arm: open.arm,
            depth: at as u8,
            counters,
        };
        buffer.record(&entry, open.first_inner);
    });
}

/// The position below the top at which a region is open. Counts regions left open above it, or a region that is not
/// open at all.
#[cold]
fn find_below(buffer: &Buffer, depth: usize, name: u16) -> Option<usize> {
    let found = (0..depth.min(DEPTH)).rev().find(|at| buffer.open[*at].get().name == name);
    let unbalanced = found.map_or(1, |at| depth - at - 1);
    (0..unbalanced).for_each(|_| buffer.count_unbalanced());
    found
}

/// Records a mark.
pub(super) fn mark(region: &Region, value: u64) {
    let start_ns = crate::clock::now_ns();
    with_buffer(|buffer| {
        let Some(name) = buffer.session.index_of(region) else { return };
        let entry = RecordContents { start_ns, argument: value, ..plain(Kind::Mark, name, buffer) };
        buffer.record(&entry, buffer.next_number());
    });
}

/// Notes that a lock was taken: waiting began at `start_ns` and ended at `taken_ns`.
pub(super) fn lock_taken(lock: &Region, address: usize, start_ns: u64, taken_ns: u64) {
    with_buffer(|buffer| {
        let wait_ns = taken_ns.saturating_sub(start_ns);
        add_wait(buffer, wait_ns);
        let (Some(name), Some(slot)) = (buffer.session.index_of(lock), buffer.held.get(buffer.locks.get()))
        else {
            return;
        };
        slot.set(HeldLock { name, address, start_ns, wait_ns, taken_ns });
        buffer.locks.set(buffer.locks.get() + 1);
    });
}

/// Records a lock that is released at `now_ns`.
pub(super) fn lock_released(address: usize, now_ns: u64) {
    with_buffer(|buffer| {
        let count = buffer.locks.get();
        let Some(at) = (0..count).rev().find(|at| buffer.held[*at].get().address == address) else { return };
        let held = buffer.held[at].get();
        (at + 1..count).for_each(|later| buffer.held[later - 1].set(buffer.held[later].get()));
        buffer.locks.set(count - 1);
        if !locks_count_here(buffer) {
            return;
        }
        let entry = RecordContents {
            start_ns: held.start_ns,
            duration_ns: now_ns.saturating_sub(held.taken_ns),
            lock_wait_ns: held.wait_ns,
            argument: address as u64,
            ..plain(Kind::Lock, held.name, buffer)
        };
        buffer.record(&entry, buffer.next_number());
    });
}

/// Records a lock that was given up.
pub(super) fn lock_given_up(lock: &Region, address: usize, start_ns: u64, now_ns: u64) {
    with_buffer(|buffer| {
        let wait_ns = now_ns.saturating_sub(start_ns);
        add_wait(buffer, wait_ns);
        let Some(name) = buffer.session.index_of(lock).filter(|_| locks_count_here(buffer)) else { return };
        let entry = RecordContents {
            start_ns,
            lock_wait_ns: wait_ns,
            argument: address as u64,
            ..plain(Kind::LockGivenUp, name, buffer)
        };
        buffer.record(&entry, buffer.next_number());
    });
}

/// Nanoseconds after which a lock is to be given up in the regions now open, if one was assigned that arm.
pub(super) fn give_up_bound_ns() -> Option<u64> {
    with_buffer(|buffer| {
        let open = &buffer.open[..buffer.depth.get().min(DEPTH)];
        open.iter().rev().find_map(|open| open.get().give_up_ns)
    })
    .flatten()
}

fn add_wait(buffer: &Buffer, wait_ns: u64) {
    if let Some(open) = buffer.depth.get().checked_sub(1).and_then(|top| buffer.open.get(top)) {
        open.set(Open { lock_wait_ns: open.get().lock_wait_ns + wait_ns, ..open.get() });
    }
}

/// True when lock records are kept now: always, or while the region they are limited to is open.
fn locks_count_here(buffer: &Buffer) -> bool {
    let Some(limit) = buffer.session.locks_inside_index() else { return true };
    buffer.open[..buffer.depth.get().min(DEPTH)].iter().any(|open| Some(open.get().name) == limit)
}

fn plain(kind: Kind, name: u16, buffer: &Buffer) -> RecordContents {
    RecordContents {
        cpu: super::cpu::current(),
        kind,
        name,
        start_ns: 0,
        duration_ns: 0,
        lock_wait_ns: 0,
        argument: 0,
        arm: 0,
        depth: buffer.depth.get() as u8,
        counters: [0; COUNTERS],
    }
}
