//! Hands a trap that is not ours to the handler that was installed before ours, also when that handler hands it back.
//!
//! A library that put its handler in front of ours keeps ours as the one behind it. When we go in front again, each of
//! the two has the other behind it, and a trap that neither knows would go round until the stack ends. So every handler
//! that ours ever replaced is remembered, and a trap that comes back goes to the one before.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A handler as one word: its address, `SIG_DFL` or `SIG_IGN`, and whether it takes three arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Behind(usize);

/// No address of user code has this bit.
const TAKES_INFO: usize = 1 << (usize::BITS - 1);

impl Behind {
    const NOBODY: Self = Self(libc::SIG_DFL);

    fn from_action(action: &libc::sigaction) -> Self {
        let takes_info = if action.sa_flags & libc::SA_SIGINFO != 0 { TAKES_INFO } else { 0 };
        Self(action.sa_sigaction | takes_info)
    }
}

/// The number of handlers remembered.
const REMEMBERED: usize = 8;
/// The number of times that a trap may come back before no handler is held to know it.
const ROUNDS: usize = 2 * REMEMBERED;

/// The handlers that ours replaced, each once, in the order of their last replacement. A handler that reads while this
/// changes finds one of them in any case.
static REPLACED: [AtomicUsize; REMEMBERED] = [const { AtomicUsize::new(Behind::NOBODY.0) }; REMEMBERED];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Notes the action that our handler is about to replace. Callers are serialised by the registry's lock.
pub(super) fn note(replaced: &libc::sigaction) {
    let behind = Behind::from_action(replaced).0;
    let mut count = COUNT.load(SeqCst);
    // When all places are taken the first handler stays, since it cannot have us behind it.
    let known = REPLACED[..count].iter().position(|known| known.load(SeqCst) == behind);
    if let Some(gap) = known.or((count == REMEMBERED).then_some(1)) {
        for place in gap + 1..count {
            REPLACED[place - 1].store(REPLACED[place].load(SeqCst), SeqCst);
        }
        count -= 1;
    }
    REPLACED[count].store(behind, SeqCst);
    COUNT.store(count + 1, SeqCst);
}

/// The handler for a trap that came back `rounds` times. A handler may have to be asked again, for the one behind it.
fn behind(rounds: usize) -> Behind {
    match COUNT.load(SeqCst).checked_sub(1) {
        Some(last) if rounds < ROUNDS => Behind(REPLACED[last.saturating_sub(rounds)].load(SeqCst)),
        _ => Behind::NOBODY,
    }
}

/// A trap being handed on: where the kernel put its context, and how deep in the stack we handed it on.
struct UnderWay {
    context: AtomicUsize,
    frame: AtomicUsize,
}

/// Room for this many traps that are handed on at one time; beyond that the oldest entries are overwritten.
static UNDER_WAY: [UnderWay; 64] =
    [const { UnderWay { context: AtomicUsize::new(0), frame: AtomicUsize::new(0) } }; 64];

/// The number of frames, among those that called this one, that are already handing on the trap of `context`. An entry
/// whose handler jumped out is no deeper than a new trap with a context at the same place, and does not count.
fn times_under_way(context: usize, frame: usize) -> usize {
    let is_above =
        |entry: &&UnderWay| entry.context.load(SeqCst) == context && entry.frame.load(SeqCst) > frame;
    UNDER_WAY.iter().filter(is_above).count()
}

/// Marks the trap as handed on from `frame`, and frees the entries that handlers which jumped out left of a trap at
/// this place.
fn mark(context: usize, frame: usize) -> &'static UnderWay {
    for entry in &UNDER_WAY {
        if entry.context.load(SeqCst) == context && entry.frame.load(SeqCst) <= frame {
            let _ = entry.context.compare_exchange(context, 0, SeqCst, SeqCst);
        }
    }
    let is_claimed = |entry: &&UnderWay| entry.context.compare_exchange(0, context, SeqCst, SeqCst).is_ok();
    let entry = UNDER_WAY.iter().find(is_claimed).unwrap_or(&UNDER_WAY[frame / 64 % UNDER_WAY.len()]);
    entry.context.store(context, SeqCst);
    entry.frame.store(frame, SeqCst);
    entry
}

/// Hands on a trap that is not ours. Called in the signal handler: takes no lock, allocates nothing.
pub(super) fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let mut here = 0u8;
    let (place, frame) = (context as usize, &raw mut here as usize);
    let behind = behind(times_under_way(place, frame));
    let entry = mark(place, frame);
    call(behind, signal, info, context);
    let _ = entry.context.compare_exchange(place, 0, SeqCst, SeqCst);
}

fn call(behind: Behind, signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the address is that of a handler which was installed, with the arguments that its flag announces.
    unsafe {
        match behind.0 & !TAKES_INFO {
            libc::SIG_IGN => {}
            libc::SIG_DFL => {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
            function if behind.0 & TAKES_INFO != 0 => {
                let function: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(function);
                function(signal, info, context);
            }
            function => {
                let function: extern "C" fn(libc::c_int) = std::mem::transmute(function);
                function(signal);
            }
        }
    }
}
