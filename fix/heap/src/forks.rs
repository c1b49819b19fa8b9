//! `fork`: what a child finds must be whole.
//!
//! The kernel copies memory while other threads run, page after page. So the locks are taken beforehand, and no other
//! thread frees in runs that the child will use: those of the thread that forks, and of lanes without a thread. The
//! child does not use the lanes of other threads.

use crate::fork_gate::{GATE, IS_NEAR};
use crate::{counting, lane, pools, segments, sites};
use std::hint;
use std::sync::atomic::Ordering::SeqCst;

pub(crate) fn watch() {
    // SAFETY: the functions take nothing, and stay for as long as the process lives.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
}

extern "C" fn before() {
    GATE.take();
    IS_NEAR.store(true, SeqCst);
    // Whoever began before this is seen in the run; whoever begins later sees the mark.
    for run in segments::runs() {
        while run.is_freeing() {
            hint::spin_loop();
        }
    }
    sites::LOADING.take();
    lane::LANES.take();
    pools::locks().for_each(|lock| lock.take());
    segments::SEGMENTS.take();
    counting::COUNTS.take();
}

extern "C" fn after() {
    counting::COUNTS.give();
    segments::SEGMENTS.give();
    pools::locks().for_each(|lock| lock.give());
    lane::LANES.give();
    sites::LOADING.give();
    IS_NEAR.store(false, SeqCst);
    GATE.give();
}

extern "C" fn in_child() {
    lane::lose_others();
    after();
}
