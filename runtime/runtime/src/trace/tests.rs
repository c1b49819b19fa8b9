//! Probes on several threads, read back from memory: the part of the tracer that Miri can run, which is all except the
//! file.

use super::probe::{self, SESSION};
use super::session::Session;
use super::{Config, Modes, Region, WhenFull};
use lineup_trace::{Kind, Trace};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

static OUTER: Region = Region::new(c"outer");
static INNER: Region = Region::new(c"inner");
static VALUE: Region = Region::mark(c"value");
static LOCK: Region = Region::lock(c"lock");

const THREADS: u32 = 3;
const CALLS: u64 = 20;

/// Sessions are one for the process: tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn session(change: impl FnOnce(&mut Config)) -> (tempfile::TempDir, &'static Session) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(&folder.path().join("run.trace"));
    config.threads = THREADS;
    config.names = 4;
    config.ring_records = 16;
    config.high_water_records = 16;
    change(&mut config);
    (folder, Box::leak(Box::new(Session::create(&config).unwrap())))
}

/// Runs `work`, which gets its thread's number, on every thread at once, and reads their records.
fn traced(session: &'static Session, threads: u32, work: impl Fn(u64) + Sync) -> Trace {
    SESSION.set(&raw const *session as u64).unwrap();
    let start = Barrier::new(threads as usize);
    std::thread::scope(|scope| {
        for number in 0..u64::from(threads) {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                start.wait();
                work(number);
            });
        }
    });
    SESSION.set(0).unwrap();
    Trace::parse(session.bytes()).unwrap()
}

fn call(n: u64) {
    probe::begin(&OUTER);
    probe::mark(&VALUE, n);
    probe::begin(&INNER);
    let now_ns = crate::clock::now_ns();
    probe::lock_taken(&LOCK, 64, now_ns, now_ns + 5);
    probe::lock_released(64, now_ns + 9);
    probe::end(&INNER);
    probe::end(&OUTER);
}

#[test]
fn every_thread_fills_its_own_ring_and_all_agree_on_the_names() {
    let _turn = turn();
    let (_folder, session) = session(|_| ());
    let trace = traced(session, THREADS, |number| (0..CALLS).for_each(|n| call(number << 32 | n)));
    assert_eq!((trace.threads.len(), trace.names.len()), (THREADS as usize, 4));
    let name = |index: u16| trace.name(index).unwrap().text.as_str();
    for thread in &trace.threads {
        let seen: Vec<(&str, Kind)> =
            thread.events.iter().map(|event| (name(event.name), event.kind)).collect();
        let one =
            [("value", Kind::Mark), ("lock", Kind::Lock), ("inner", Kind::Region), ("outer", Kind::Region)];
        assert_eq!(seen, one.repeat(4));
        let marks = thread.events.iter().filter(|event| event.kind == Kind::Mark);
        let marks: Vec<u64> = marks.map(|event| event.argument).collect();
        let first = marks[0] & !0xffff_ffff | (CALLS - 4);
        assert_eq!(marks, (first..first + 4).collect::<Vec<_>>());
        assert!(thread.events.iter().all(|event| event.kind != Kind::Region || event.lock_wait_ns == 5));
    }
    assert_eq!(trace.losses().overwritten, u64::from(THREADS) * (CALLS * 4 - 16));
}

#[test]
fn each_thread_keeps_its_own_maxima() {
    let _turn = turn();
    let (_folder, session) = session(|config| {
        config.modes = Modes { events: false, high_water: true, histograms: false };
        // Room for all: where the first call is the longest, maxima of inner regions would push it out.
        config.high_water_records = 1024;
    });
    let trace = traced(session, 2, |_| (0..CALLS).for_each(call));
    assert_eq!(trace.threads.len(), 2);
    for thread in &trace.threads {
        let of_outer = thread.high_water.iter().filter(|entry| entry.inner.len() == 3);
        assert!(of_outer.count() > 0, "{:?}", thread.high_water);
    }
}

#[test]
fn histograms_count_each_region_apart() {
    let _turn = turn();
    let (_folder, session) = session(|config| {
        config.modes = Modes { events: false, high_water: false, histograms: true };
        // A reader looks at every bucket, which Miri does slowly.
        (config.threads, config.names) = (1, 2);
    });
    let trace = traced(session, 1, |_| {
        for n in 0..CALLS {
            probe::begin(&OUTER);
            if n % 2 == 0 {
                probe::begin(&INNER);
                probe::end(&INNER);
            }
            probe::end(&OUTER);
        }
    });
    let total = |region| trace.histogram(trace.region(region).unwrap().index, 0).total();
    assert_eq!((total("outer"), total("inner")), (CALLS, CALLS / 2));
}

#[test]
fn losses_of_all_threads_add_up() {
    let _turn = turn();
    let (_folder, session) = session(|config| config.when_full = WhenFull::Stop);
    let refused = 2;
    let trace = traced(session, THREADS + refused, |_| (0..CALLS).for_each(|n| probe::mark(&VALUE, n)));
    let losses = trace.losses();
    assert_eq!(losses.full, u64::from(THREADS) * (CALLS - 16));
    assert_eq!(losses.without_area, u64::from(refused) * CALLS);
    assert_eq!(trace.threads_refused, refused);
}

#[test]
fn threads_move_on_to_the_next_session() {
    let _turn = turn();
    let ((_first_folder, first), (_second_folder, second)) = (session(|_| ()), session(|_| ()));
    let both = Barrier::new(3);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..2 {
                    both.wait();
                    call(7);
                    both.wait();
                }
            });
        }
        for session in [first, second] {
            SESSION.set(&raw const *session as u64).unwrap();
            both.wait();
            both.wait();
        }
        SESSION.set(0).unwrap();
    });
    for session in [first, second] {
        let trace = Trace::parse(session.bytes()).unwrap();
        assert_eq!((trace.threads.len(), trace.names.len()), (2, 4));
        assert!(trace.threads.iter().all(|thread| thread.events.len() == 4));
        assert_eq!(trace.losses(), Default::default());
    }
}

#[test]
fn a_thread_that_the_next_session_refuses_keeps_nothing_that_was_freed() {
    let _turn = turn();
    let (_first_folder, first) = session(|_| ());
    let (_second_folder, second) = session(|config| config.threads = 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            SESSION.set(&raw const *first as u64).unwrap();
            call(1);
            SESSION.set(&raw const *second as u64).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| call(2)).join().unwrap();
            });
            (0..5).for_each(|n| probe::mark(&VALUE, n));
            SESSION.set(&raw const *first as u64).unwrap();
            call(3);
            SESSION.set(0).unwrap();
        });
    });
    assert_eq!(Trace::parse(second.bytes()).unwrap().losses().without_area, 5);
    let trace = Trace::parse(first.bytes()).unwrap();
    assert_eq!(trace.threads.iter().map(|thread| thread.events.len()).collect::<Vec<_>>(), [8]);
}

/// A signal handler's probe in a new session, while a probe of the old one is under way below it on the same thread.
#[test]
fn a_probe_inside_one_of_the_session_before_is_lost_and_frees_nothing() {
    let _turn = turn();
    let ((_first_folder, first), (_second_folder, second)) = (session(|_| ()), session(|_| ()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            SESSION.set(&raw const *first as u64).unwrap();
            call(1);
            probe::with_buffer(|buffer| {
                SESSION.set(&raw const *second as u64).unwrap();
                probe::mark(&VALUE, 2);
                assert_eq!(buffer.next_number(), 4);
            })
            .unwrap();
            SESSION.set(0).unwrap();
        });
    });
    assert_eq!(Trace::parse(first.bytes()).unwrap().losses(), Default::default());
    assert_eq!(Trace::parse(second.bytes()).unwrap().losses().without_area, 1);
}
