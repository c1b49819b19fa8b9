//! The clock against counters that the test drives, and against the system's clock.

use lineup_runtime::clock::{
    self, Clock, Fitness, Maintained, Source, SourceError, best_source, system_reference,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A counter and a reference of the test's own, in a module each, because counters are plain functions.
macro_rules! counter {
    ($name:ident) => {
        mod $name {
            use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
            pub(crate) static CYCLES: AtomicU64 = AtomicU64::new(0);
            pub(crate) static TRUE_NS: AtomicU64 = AtomicU64::new(0);
            pub(crate) extern "C" fn read() -> u64 {
                CYCLES.load(SeqCst)
            }
            pub(crate) extern "C" fn reference() -> u64 {
                TRUE_NS.load(SeqCst)
            }
            /// Lets `ns` pass on a counter of `hz`.
            #[allow(dead_code, reason = "not every counter is advanced by time")]
            pub(crate) fn pass(ns: u64, hz: f64) {
                TRUE_NS.fetch_add(ns, SeqCst);
                CYCLES.fetch_add((ns as f64 * hz / 1e9).round() as u64, SeqCst);
            }
        }
    };
}

#[test]
fn the_hot_data_is_one_line() {
    static CLOCK: Clock = Clock::system();
    assert_eq!(CLOCK.hot_line() as usize % 64, 0);
}

#[test]
fn time_is_cycles_scaled() {
    counter!(plain);
    plain::TRUE_NS.store(5_000, SeqCst);
    let clock = Clock::on(Source { read: plain::read, hz: Some(1e9), bits: 64, reference: plain::reference });
    assert_eq!(clock.now_ns(), 5_000);
    plain::CYCLES.fetch_add(123, SeqCst);
    assert_eq!(clock.now_ns(), 5_123);
    assert!(clock.uses_counter());
}

#[test]
fn a_counter_read_before_the_epoch_gives_an_earlier_time_not_centuries() {
    counter!(late);
    late::CYCLES.store(1_000_000, SeqCst);
    late::TRUE_NS.store(1_000_000, SeqCst);
    let clock = Clock::on(Source { read: late::read, hz: Some(1e9), bits: 64, reference: late::reference });
    late::CYCLES.store(999_990, SeqCst);
    assert_eq!(clock.now_ns(), 999_990);
}

#[test]
fn far_from_the_epoch_nothing_overflows() {
    counter!(far);
    let clock = Clock::on(Source { read: far::read, hz: Some(2e9), bits: 64, reference: far::reference });
    const YEAR_SECONDS: u64 = 31_556_952;
    far::CYCLES.store(YEAR_SECONDS * 2_000_000_000, SeqCst);
    assert_eq!(clock.now_ns(), YEAR_SECONDS * 1_000_000_000);
}

#[test]
fn a_narrow_counter_wraps_without_a_step() {
    counter!(narrow);
    const HZ: f64 = 1e6;
    narrow::CYCLES.store(0xfff0, SeqCst);
    let clock =
        Clock::on(Source { read: narrow::read, hz: Some(HZ), bits: 16, reference: narrow::reference });
    let within = clock.maintain().next_within_ns;
    assert!(within <= (1 << 16) * 1_000 / 4);
    let mut last = clock.now_ns();
    for _ in 0..5_000 {
        narrow::TRUE_NS.fetch_add(within, SeqCst);
        let cycles = narrow::CYCLES.load(SeqCst) + within / 1_000;
        narrow::CYCLES.store(cycles & 0xffff, SeqCst);
        let now = clock.now_ns();
        assert!(now > last, "{now} after {last}");
        assert_eq!(clock.maintain().did, Maintained::Slewed);
        last = now;
    }
    assert!(clock.now_ns().abs_diff(narrow::TRUE_NS.load(SeqCst)) < 2_000);
}

#[test]
fn a_counter_that_is_off_its_nominal_rate_is_reined_in_without_a_step() {
    counter!(fast);
    const NOMINAL_HZ: f64 = 1e9;
    let clock =
        Clock::on(Source { read: fast::read, hz: Some(NOMINAL_HZ), bits: 64, reference: fast::reference });
    let mut last = clock.now_ns();
    let mut errors = Vec::new();
    for _ in 0..50 {
        for _ in 0..10 {
            fast::pass(100_000_000, NOMINAL_HZ * (1.0 + 100e-6));
            let now = clock.now_ns();
            assert!(now > last);
            last = now;
        }
        let before = clock.now_ns();
        let report = clock.maintain();
        assert_eq!(report.did, Maintained::Slewed);
        assert!((before..=before + 21).contains(&clock.now_ns()), "an update stepped time");
        errors.push(report.error_ns);
    }
    // 100 ppm over the first second; afterwards the measured rate holds.
    assert!((90_000..110_000).contains(&errors[0]), "{errors:?}");
    assert!(errors[5..].iter().all(|error| error.abs() < 1_000), "{errors:?}");
}

#[test]
fn a_better_counter_takes_over_without_a_step() {
    counter!(coarse);
    counter!(fine);
    let clock =
        Clock::on(Source { read: coarse::read, hz: Some(1e6), bits: 32, reference: coarse::reference });
    coarse::CYCLES.store(77, SeqCst);
    fine::CYCLES.store(1 << 60, SeqCst);
    let before = clock.now_ns();
    clock
        .try_register(Source { read: fine::read, hz: Some(4e9), bits: 64, reference: fine::reference })
        .unwrap();
    assert_eq!(clock.now_ns(), before);
    fine::CYCLES.fetch_add(4_000, SeqCst);
    assert_eq!(clock.now_ns(), before + 1_000);
}

#[test]
fn suspended_time_stands_and_goes_on_from_there() {
    counter!(sleepy);
    let clock =
        Clock::on(Source { read: sleepy::read, hz: Some(1e9), bits: 64, reference: sleepy::reference });
    sleepy::pass(1_000, 1e9);
    clock.suspend();
    sleepy::CYCLES.store(3, SeqCst);
    assert_eq!(clock.now_ns(), 1_000);
    clock.resume();
    assert_eq!(clock.now_ns(), 1_000);
    sleepy::CYCLES.fetch_add(50, SeqCst);
    assert_eq!(clock.now_ns(), 1_050);
}

#[test]
fn a_counter_that_stopped_during_a_sleep_is_noticed() {
    counter!(stopped);
    let clock =
        Clock::on(Source { read: stopped::read, hz: Some(1e9), bits: 64, reference: stopped::reference });
    stopped::pass(1_000_000_000, 1e9);
    assert_eq!(clock.maintain().did, Maintained::Slewed);
    stopped::TRUE_NS.fetch_add(3_600_000_000_000, SeqCst);
    stopped::CYCLES.fetch_add(10, SeqCst);
    assert_eq!(clock.maintain().did, Maintained::Resumed);
    assert_eq!(clock.now_ns(), stopped::TRUE_NS.load(SeqCst));
}

#[test]
fn unsupported_counters_are_refused_and_change_nothing() {
    counter!(bad);
    let clock = Clock::system();
    let source = Source { read: bad::read, hz: Some(1e9), bits: 4, reference: bad::reference };
    assert_eq!(clock.try_register(source), Err(SourceError::Width { bits: 4 }));
    assert_eq!(
        clock.try_register(Source { bits: 64, hz: Some(10.0), ..source }),
        Err(SourceError::Rate { hz: 10 })
    );
    assert!(!clock.uses_counter());
    assert_eq!(clock.maintain().did, Maintained::Nothing);
}

#[test]
fn a_signal_handler_inside_an_update_reads_a_valid_time() {
    counter!(struck);
    static CLOCK: Clock = Clock::system();
    static READS: AtomicU64 = AtomicU64::new(0);
    static WORST: AtomicI64 = AtomicI64::new(0);
    fn strike() {
        let error = CLOCK.now_ns() as i64 - struck::TRUE_NS.load(SeqCst) as i64;
        WORST.fetch_max(error.abs(), SeqCst);
        READS.fetch_add(1, SeqCst);
    }
    assert!(CLOCK.register(Source {
        read: struck::read,
        hz: Some(3e9),
        bits: 64,
        reference: struck::reference
    }));
    CLOCK.interrupt_updates_with(Some(strike));
    for _ in 0..1_000 {
        struck::pass(700_000_000, 3e9);
        CLOCK.maintain();
    }
    assert_eq!(READS.load(SeqCst), 5_000);
    assert!(WORST.load(SeqCst) < 1_000, "{} ns off", WORST.load(SeqCst));
}

#[test]
#[cfg_attr(miri, ignore = "reads the machine's counter")]
fn the_process_clock_follows_the_system_clock() {
    let fitness = clock::start();
    assert_eq!(clock::CLOCK.uses_counter(), matches!(fitness, Fitness::Fit(_)));
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(20));
        clock::CLOCK.maintain();
    }
    // Between the three reads any amount of time may pass on a busy machine; order alone is certain.
    let (before, own, after) = (system_reference(), clock::now_ns(), system_reference());
    let slack = 100_000;
    assert!(own + slack >= before && own <= after + slack, "{before} {own} {after}");
}

#[test]
fn a_writer_held_up_at_the_switch_does_not_turn_time_back() {
    counter!(held);
    const HZ: f64 = 1e9;
    const HELD_UP_NS: u64 = 1_000_000;
    static CLOCK: Clock = Clock::system();
    static LAST: AtomicU64 = AtomicU64::new(0);
    static STEPS: AtomicU64 = AtomicU64::new(0);
    fn hold_up() {
        for passed_ns in [0, HELD_UP_NS] {
            held::pass(passed_ns, HZ * (1.0 + 5e-6));
            let now = CLOCK.now_ns();
            let last = LAST.swap(now, SeqCst);
            assert!(now >= last, "{now} after {last}");
        }
        STEPS.fetch_add(1, SeqCst);
    }
    // The counter runs 5 ppm fast, so the first updates slow the clock.
    assert!(CLOCK.register(Source { read: held::read, hz: Some(HZ), bits: 64, reference: held::reference }));
    CLOCK.interrupt_updates_with(Some(hold_up));
    for _ in 0..20 {
        held::pass(1_000_000_000, HZ * (1.0 + 5e-6));
        CLOCK.maintain();
    }
    assert_eq!(STEPS.load(SeqCst), 20 * 5);
}

#[test]
fn a_pair_read_slowly_does_not_change_the_rate() {
    mod slow {
        use super::*;
        pub(crate) static NS: AtomicU64 = AtomicU64::new(0);
        /// The counter shows each tenth microsecond only, so every pair is uncertain by about as much.
        pub(crate) extern "C" fn read() -> u64 {
            NS.fetch_add(7_000, SeqCst) / 10_000 * 10_000
        }
        pub(crate) extern "C" fn reference() -> u64 {
            NS.fetch_add(7_000, SeqCst)
        }
    }
    let clock = Clock::on(Source { read: slow::read, hz: Some(1e9), bits: 64, reference: slow::reference });
    for _ in 0..100 {
        slow::NS.fetch_add(3_333_333, SeqCst);
        let report = clock.maintain();
        assert_eq!(report.did, Maintained::Slewed);
        assert!(report.slew_ppm.abs() < 5.0, "{report:?}");
    }
}

/// Readers in a tight loop against a writer that updates at full rate: time never goes back on any thread.
#[test]
fn time_never_goes_back_under_a_contended_update() {
    static CLOCK: Clock = Clock::system();
    let system = Source { read: system_reference, hz: Some(1e9), bits: 64, reference: system_reference };
    let source = match cfg!(miri) {
        // It has no counter to read.
        true => system,
        false => match best_source() {
            Fitness::Fit(source) => source,
            Fitness::Unfit(_) => system,
        },
    };
    assert!(CLOCK.register(source));
    let seconds =
        std::env::var("LINEUP_TORTURE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let stop = AtomicBool::new(false);
    let back = Mutex::new(Vec::new());
    let reads = AtomicU64::new(0);
    let updates = std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                let mut last = CLOCK.now_ns();
                let mut count = 0;
                while !stop.load(SeqCst) {
                    for _ in 0..1_000 {
                        let now = CLOCK.now_ns();
                        if now < last {
                            back.lock().unwrap().push(last - now);
                        }
                        last = now;
                    }
                    count += 1_000;
                }
                reads.fetch_add(count, SeqCst);
            });
        }
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let mut updates = 0u64;
        while Instant::now() < end {
            CLOCK.maintain();
            updates += 1;
        }
        stop.store(true, SeqCst);
        updates
    });
    let back = back.into_inner().unwrap();
    println!("{} reads against {updates} updates, {} went back", reads.load(SeqCst), back.len());
    assert!(back.is_empty(), "{:?}", &back[..back.len().min(10)]);
    assert!(updates > 0 && reads.load(SeqCst) > 0);
}
