//! What an active probe does.

use super::buffer::{Buffer, DEPTH, Entry, Held, Open};
use super::intervene;
use super::region::Region;
use super::session::Session;
use lineup_trace::layout::COUNTERS;
use lineup_trace::{Arm, Kind};
use std::cell::Cell;

crate::define_imv! {
    /// Address of the session that probes record into; 0 when there is none.
    pub(super) static SESSION: u64 = 0;
}

thread_local! {
    static BUFFER: Cell<*const Buffer> = const { Cell::new(std::ptr::null()) };
    /// Frees the buffer at the thread's end.
    static OWNER: Owner = const { Owner(Cell::new(None)) };
}

struct Owner(Cell<Option<Box<Buffer>>>);

impl Drop for Owner {
    fn drop(&mut self) {
        // Probes in later destructors of this thread find no buffer, cannot enter one, and are counted.
        let _ = BUFFER.try_with(|buffer| buffer.set(std::ptr::null()));
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
fn with_buffer<R>(work: impl FnOnce(&Buffer) -> R) -> Option<R> {
    let session = session()?;
    let buffer = BUFFER.try_with(Cell::get).unwrap_or(std::ptr::null());
    // SAFETY: null, or this thread's own buffer, which lives until the thread ends or enters another session.
    let buffer = match unsafe { buffer.as_ref() } {
        Some(buffer) if std::ptr::eq(buffer.session, session) => buffer,
        old => enter(session, old)?,
    };
    if buffer.busy.replace(true) {
        buffer.count_nested();
        return None;
    }
    // The flag is for signal handlers on this very thread: order against the compiler is all that is needed.
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    let result = work(buffer);
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    buffer.busy.set(false);
    Some(result)
}

/// Gives this thread a buffer in `session`.
#[cold]
#[inline(never)]
fn enter(session: &'static Session, old: Option<&Buffer>) -> Option<&'static Buffer> {
    thread_local! {
        static ENTERING: Cell<bool> = const { Cell::new(false) };
        /// The last session that had no room for this thread.
        static REFUSED: Cell<u64> = const { Cell::new(0) };
    }
    let is_usable = old.is_none_or(|old| !old.busy.get())
        && REFUSED.try_with(Cell::get) != Ok(session.number)
        && !ENTERING.try_with(|entering| entering.replace(true)).unwrap_or(true);
    let entered = is_usable.then(|| Buffer::claim(session)).flatten().map(Box::new);
    let pointer = entered.as_deref().map(|buffer| &raw const *buffer);
    let is_owned = OWNER.try_with(|owner| owner.0.set(entered)).is_ok();
    if is_usable {
        let _ = ENTERING.try_with(|entering| entering.set(false));
    }
    match pointer.filter(|_| is_owned) {
        Some(pointer) => {
            let _ = BUFFER.try_with(|buffer| buffer.set(pointer));
            // SAFETY: the box was just put where it lives until the thread ends or enters another session, which
            // no caller of this function outlives.
            unsafe { pointer.as_ref() }
        }
        None => {
            let _ = REFUSED.try_with(|refused| refused.set(session.number));
            session.count_without_area();
            None
        }
    }
}

/// Opens `region`.
#[inline(always)]
pub(super) fn begin(region: &Region) {
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

/// Assigns an arm to the call that begins, and does what it says.
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
    let now_ns = crate::clock::now_ns();
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
        let entry = Entry {
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

/// Where below the top a region is open; counts what was left open above it, or that it is not open at all.
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
        let entry = Entry { start_ns, argument: value, ..plain(Kind::Mark, name, buffer) };
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
        slot.set(Held { name, address, start_ns, wait_ns, taken_ns });
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
        let entry = Entry {
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
        let entry = Entry {
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

/// Whether lock records are kept now: always, or while the region they are limited to is open.
fn locks_count_here(buffer: &Buffer) -> bool {
    let Some(limit) = buffer.session.locks_inside_index() else { return true };
    buffer.open[..buffer.depth.get().min(DEPTH)].iter().any(|open| Some(open.get().name) == limit)
}

fn plain(kind: Kind, name: u16, buffer: &Buffer) -> Entry {
    Entry {
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
