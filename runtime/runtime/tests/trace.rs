//! The tracer from Rust: records match the execution, losses are exact, a kill loses nothing.

use lineup_runtime::trace::{self, Config, CounterChoice, Modes, Region, TracedMutex, WhenFull};
use lineup_trace::{Kind, Rung, Trace};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static OUTER: Region = Region::new(c"outer");
static INNER: Region = Region::new(c"inner");
static VALUE: Region = Region::mark(c"value");

/// Tracing is one for the process: tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Traces `work` on a thread of its own and reads the file.
fn traced(change: impl FnOnce(&mut Config), work: impl FnOnce() + Send) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(&folder.path().join("run.trace"));
    config.threads = 4;
    change(&mut config);
    trace::start(&config).unwrap();
    std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    trace::stop();
    Trace::parse(&std::fs::read(&config.path).unwrap()).unwrap()
}

#[test]
fn what_is_no_plain_file_is_left_as_it_is() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.trace");
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let said = trace::start(&Config::new(&path)).unwrap_err().to_string();
    assert!(said.contains("no plain file"), "{said}");
    assert!(path.exists());
}

fn nested(n: u64) {
    let _outer = trace::region(&OUTER);
    trace::mark(&VALUE, n);
    let _inner = trace::region(&INNER);
    std::hint::black_box(n);
}

#[test]
fn events_are_recorded_in_order_of_their_ends_with_their_depth() {
    let _turn = turn();
    let trace = traced(|_| (), || (0..3).for_each(nested));
    let [thread] = &trace.threads[..] else { panic!("{} threads", trace.threads.len()) };
    let name = |index: u16| trace.name(index).unwrap().text.clone();
    let seen: Vec<(String, Kind, u8, u64)> =
        thread.events.iter().map(|e| (name(e.name), e.kind, e.depth, e.argument)).collect();
    let round = |n| {
        [
            ("value".to_owned(), Kind::Mark, 1, n),
            ("inner".to_owned(), Kind::Region, 1, 0),
            ("outer".to_owned(), Kind::Region, 0, 0),
        ]
    };
    assert_eq!(seen, (0..3).flat_map(round).collect::<Vec<_>>());
    let outer = &thread.events[2];
    let inner = &thread.events[1];
    assert!(outer.start_ns <= inner.start_ns && inner.end_ns() <= outer.end_ns());
    assert!(outer.start_ns >= trace.start_ns);
    assert!(outer.cpu.is_some());
    assert_eq!(trace.losses(), Default::default());
    assert_eq!((trace.pid, trace.rung), (std::process::id(), Rung::TimeOnly));
}

#[test]
fn dormant_probes_record_nothing_and_a_second_session_starts_afresh() {
    let _turn = turn();
    nested(1);
    let trace = traced(|_| (), || nested(2));
    assert_eq!(trace.threads[0].events.len(), 3);
    nested(3);
    let trace = traced(|_| (), || nested(4));
    assert_eq!(trace.threads[0].events[0].argument, 4);
    assert_eq!(trace.threads[0].events.len(), 3);
}

#[test]
fn overwritten_events_are_counted_exactly() {
    let _turn = turn();
    let trace = traced(|config| config.ring_records = 64, || (0..1_000).for_each(|n| trace::mark(&VALUE, n)));
    let kept: Vec<u64> = trace.threads[0].events.iter().map(|event| event.argument).collect();
    assert_eq!(kept, (936..1_000).collect::<Vec<_>>());
    assert_eq!(trace.losses().overwritten, 936);
}

#[test]
fn a_ring_that_stops_when_full_keeps_the_oldest_and_counts_the_rest() {
    let _turn = turn();
    let stop = |config: &mut Config| {
        config.ring_records = 64;
        config.when_full = WhenFull::Stop;
    };
    let trace = traced(stop, || (0..1_000).for_each(|n| trace::mark(&VALUE, n)));
    let kept: Vec<u64> = trace.threads[0].events.iter().map(|event| event.argument).collect();
    assert_eq!(kept, (0..64).collect::<Vec<_>>());
    assert_eq!((trace.losses().full, trace.losses().overwritten), (936, 0));
}

#[test]
fn threads_without_room_are_counted() {
    let _turn = turn();
    let one_thread = |config: &mut Config| config.threads = 1;
    let trace = traced(one_thread, || {
        nested(0);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..5).for_each(|n| trace::mark(&VALUE, n)));
        });
    });
    assert_eq!((trace.threads.len(), trace.threads_refused), (1, 1));
    assert_eq!(trace.losses().without_area, 5);
}

#[test]
fn unbalanced_probes_are_counted_and_do_no_harm() {
    let _turn = turn();
    let trace = traced(
        |_| (),
        || {
            let left_open = trace::region(&OUTER);
            let inner = trace::region(&INNER);
            drop(left_open);
            drop(inner);
            nested(0);
        },
    );
    assert_eq!(trace.losses().unbalanced, 2);
    assert_eq!(trace.threads[0].events.len(), 4);
}

#[test]
fn each_new_maximum_is_kept_with_what_happened_inside() {
    let _turn = turn();
    let modes = |config: &mut Config| {
        config.modes = Modes { events: false, high_water: true, histograms: false };
        config.ring_records = 64;
    };
    // On a busy machine a pause takes longer than asked: which calls are maxima is seen from outside.
    let mut maxima: Vec<(u64, Duration)> = Vec::new();
    let trace = traced(modes, || {
        for (marks, ms) in [(1, 1), (5, 100), (2, 1), (40, 500)] {
            let begun = Instant::now();
            {
                let _outer = trace::region(&OUTER);
                (0..marks).for_each(|n| trace::mark(&VALUE, n));
                std::thread::sleep(Duration::from_millis(ms));
            }
            let took = begun.elapsed();
            if maxima.last().is_none_or(|(_, longest)| took > *longest) {
                maxima.push((marks, took));
            }
        }
    });
    let entries = &trace.threads[0].high_water;
    let inner: Vec<u64> = entries.iter().map(|entry| entry.inner.len() as u64).collect();
    assert_eq!(inner, maxima.iter().map(|(marks, _)| *marks).collect::<Vec<_>>());
    assert!(entries.windows(2).all(|pair| pair[0].event.duration_ns < pair[1].event.duration_ns));
    assert!(entries.iter().flat_map(|entry| &entry.inner).all(|event| event.kind == Kind::Mark));
}

#[test]
fn histograms_count_every_call_and_merge_over_threads() {
    let _turn = turn();
    let modes =
        |config: &mut Config| config.modes = Modes { events: false, high_water: false, histograms: true };
    let trace = traced(modes, || {
        std::thread::scope(|scope| {
            scope.spawn(|| (0..500).for_each(nested));
        });
        (0..700).for_each(nested);
    });
    let outer = trace.region("outer").unwrap().index;
    assert_eq!(trace.histogram(outer, 0).total(), 1_200);
    assert!(trace.threads.iter().all(|thread| thread.events.is_empty()));
}

static LOCK: TracedMutex<u64> = TracedMutex::new(Region::lock(c"lock"), 0);

/// True when a thread, by its folder in /proc, waits for something.
fn is_asleep(thread: &Path) -> bool {
    let text = std::fs::read_to_string(thread.join("stat")).unwrap();
    // The state follows the name, which is in parentheses and may hold any character.
    text.rsplit_once(") ").unwrap().1.starts_with('S')
}

#[test]
fn locks_tell_wait_and_hold_and_the_region_knows_its_wait() {
    let _turn = turn();
    let trace = traced(
        |_| (),
        || {
            std::thread::scope(|scope| {
                let held = LOCK.lock().unwrap();
                let (about_to_lock, is_about_to) = std::sync::mpsc::channel();
                scope.spawn(move || {
                    let _outer = trace::region(&OUTER);
                    let _inner = trace::region(&INNER);
                    about_to_lock.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
                    *LOCK.lock().unwrap() += 1;
                });
                let thread = Path::new("/proc").join(is_about_to.recv().unwrap());
                while !is_asleep(&thread) {
                    std::thread::yield_now();
                }
                drop(held);
            });
        },
    );
    let lock = trace.names.iter().find(|name| name.text == "lock").unwrap().index;
    let mut events: Vec<_> = trace.events_of(lock, Kind::Lock).collect();
    events.sort_by_key(|event| event.lock_wait_ns);
    assert_eq!(events.len(), 2);
    assert!(events[0].lock_wait_ns < events[0].duration_ns);
    assert!(events[1].lock_wait_ns > 0);
    let outer = trace.region("outer").unwrap().index;
    let region = trace.events_of(outer, Kind::Region).next().unwrap();
    assert_eq!(region.lock_wait_ns, events[1].lock_wait_ns);
}

#[test]
fn lock_records_can_be_limited_to_a_region() {
    let _turn = turn();
    let trace = traced(
        |config| config.locks_inside = Some("outer".to_owned()),
        || {
            *LOCK.lock().unwrap() += 1;
            let _outer = trace::region(&OUTER);
            *LOCK.lock().unwrap() += 1;
            let _inner = trace::region(&INNER);
            *LOCK.lock().unwrap() += 1;
        },
    );
    let lock = trace.names.iter().find(|name| name.text == "lock").unwrap().index;
    assert_eq!(trace.events_of(lock, Kind::Lock).count(), 2);
}

#[test]
fn the_rung_of_counters_is_recorded_and_never_above_what_was_asked() {
    let _turn = turn();
    let trace = traced(
        |config| config.counters = CounterChoice::Software,
        || {
            let _outer = trace::region(&OUTER);
            let fresh = vec![1u8; 64 << 20];
            std::hint::black_box(fresh.iter().step_by(4096).count());
        },
    );
    assert!(matches!(trace.rung, Rung::SoftwareEvents | Rung::TimeOnly));
    let faults = trace.threads[0].events[0].counters[0];
    if trace.rung == Rung::SoftwareEvents {
        assert_eq!(trace.counters[0].as_deref(), Some("page_faults"));
        assert!(faults > 0);
    } else {
        assert_eq!((trace.counters[0].as_deref(), faults), (None, 0));
    }
    let trace = traced(|config| config.counters = CounterChoice::Hardware, || nested(0));
    assert_eq!(trace.counters[0].is_some(), trace.rung != Rung::TimeOnly);
}

static ARMED: Region = Region::new(c"armed").with_data(&TABLE).with_give_up(1_000);
static TABLE: [u64; 64] = [7; 64];

#[test]
fn arms_are_assigned_at_random_and_recorded() {
    let _turn = turn();
    let trace = traced(
        |_| (),
        || {
            for _ in 0..5_000 {
                let _armed = trace::region(&ARMED);
                std::hint::black_box(TABLE.iter().sum::<u64>());
            }
        },
    );
    let armed = trace.region("armed").unwrap();
    assert_eq!(
        (armed.arms_mask, armed.data.map(|(_, bytes)| bytes), armed.give_up_ns),
        (0b111_1001, Some(512), 1_000)
    );
    let mut counts = [0; 7];
    trace.events_of(armed.index, Kind::Region).for_each(|event| counts[usize::from(event.arm.number())] += 1);
    assert!([0, 3, 4, 5, 6].iter().all(|arm| (800..1_200).contains(&counts[*arm])), "{counts:?}");
    assert_eq!((counts[1], counts[2]), (0, 0));
}

#[test]
fn a_forked_child_does_not_write_into_its_parents_trace() {
    let _turn = turn();
    let trace = traced(
        |_| (),
        || {
            trace::mark(&VALUE, 1);
            // SAFETY: the child passes one probe and leaves by `_exit`.
            unsafe {
                let pid = libc::fork();
                if pid == 0 {
                    trace::mark(&VALUE, 99);
                    libc::_exit(i32::from(trace::is_on()));
                }
                let mut status = 0;
                libc::waitpid(pid, &mut status, 0);
                assert_eq!(status, 0);
            }
            trace::mark(&VALUE, 2);
        },
    );
    let kept: Vec<u64> = trace.threads[0].events.iter().map(|event| event.argument).collect();
    assert_eq!(kept, [1, 2]);
}

#[test]
fn what_cannot_start_says_why() {
    let _turn = turn();
    let missing = std::path::Path::new("/nonexistent/run.trace");
    let error = trace::start(&Config::new(missing)).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/run.trace"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(&folder.path().join("run.trace"));
    config.threads = 0;
    assert!(trace::start(&config).unwrap_err().to_string().contains("threads"));
    assert!(!trace::is_on());
}
