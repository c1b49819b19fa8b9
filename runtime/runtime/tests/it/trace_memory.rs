//! The tracer's table of names on modelled memory: the data that two threads share when they meet regions for the first
//! time.

#[path = "../../src/trace/names.rs"]
mod names;
/// The types that the table uses.
mod sync {
    pub(super) use loom::sync::{Mutex, atomic};
    pub(super) use std::sync::PoisonError;
}

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use names::Names;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two sessions, one of which follows the other while threads may still be in the first; two regions.
struct Shared {
    sessions: [Names<&'static str>; 2],
    /// The number of names that each has entered.
    entered: [AtomicU64; 2],
    cached: [AtomicU64; 2],
}

const REGIONS: [&str; 2] = ["a", "b"];

impl Shared {
    fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self { sessions: [Names::new(1), Names::new(2)], entered: [zero(), zero()], cached: [zero(), zero()] }
    }

    fn index(&self, session: usize, region: usize) -> Option<u16> {
        let enter = |_: &&str| {
            let index = self.entered[session].fetch_add(1, Relaxed);
            (index < 2).then_some(index as u16)
        };
        self.sessions[session].index_of(&self.cached[region], || REGIONS[region], enter)
    }
}

#[test]
fn threads_agree_on_every_index_and_enter_each_name_once() {
    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::new(Shared::new());
        let other = Arc::clone(&shared);
        // One thread finishes a probe of the old session late and continues in the new one, where the other already is.
        let late = loom::thread::spawn(move || [other.index(0, 0), other.index(1, 0), other.index(1, 1)]);
        let early = [shared.index(1, 1), shared.index(1, 0), shared.index(1, 1)];
        let late = late.join().unwrap();
        assert_eq!(late[0], Some(0), "alone in the old session");
        assert_eq!((early[0], early[1]), (late[2], late[1]), "one index for one name");
        assert_eq!(early[0], early[2], "an index stays");
        assert_ne!(early[0], early[1], "one name for one index");
        let entered = shared.entered.each_ref().map(|entered| entered.load(Relaxed));
        assert_eq!(entered, [1, 2]);
    });
    let executions = executions.load(Ordering::Relaxed);
    println!("{executions} executions");
    assert!(executions > 100, "{executions}");
}
