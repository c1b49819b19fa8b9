//! Readers on every core against a patcher at full rate, all sizes, both modes; signals and forks in the middle.
//!
//! Each case runs `LINEUP_TORTURE_SECONDS` (default 0.3) and prints its counts.

use lineup_runtime::imv::{self, Fallback, Mode, WritePath};
use lineup_runtime::{define_imv, imv_cond, imv_read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

define_imv! {
    static R8: u8 = 0;
    static R16: u16 = 0;
    static R32: u32 = 0;
    static R64: u64 = 0;
    static GATE: u64 = 0;
    static FROM_SIGNAL: u32 = 0;
    static FORKED: u64 = 0;
}

static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn duration() -> Duration {
    let seconds = std::env::var("LINEUP_TORTURE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(0.3))
}

/// Odd while a set is in progress; half of it is the number of sets done.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// The value of every variable after set number `n`: one byte, repeated.
fn pattern(n: u64) -> u64 {
    (n & 0xff) * 0x0101_0101_0101_0101
}

#[derive(Default, Debug)]
struct Counts {
    reads: u64,
    /// Reads with no set in progress, whose exact value is known.
    settled: u64,
    /// Reads while a set was in progress.
    during: u64,
    changes: u64,
    torn: u64,
    stale: u64,
}

/// Reads every size through several sites.
#[inline(always)]
fn read_all() -> ([u64; 4], bool) {
    let values =
        [u64::from(imv_read!(R8)), u64::from(imv_read!(R16)), u64::from(imv_read!(R32)), imv_read!(R64)];
    (values, imv_cond!(GATE))
}

fn is_torn(values: &[u64; 4]) -> bool {
    const MASKS: [u64; 4] = [0xff, 0xffff, 0xffff_ffff, u64::MAX];
    values.iter().zip(MASKS).any(|(value, mask)| *value != pattern(*value) & mask)
}

fn read_until(stop: &AtomicBool) -> Counts {
    let mut counts = Counts::default();
    let mut last = 0;
    while !stop.load(SeqCst) {
        for _ in 0..8 {
            let before = SEQUENCE.load(SeqCst);
            let (values, gate) = read_all();
            let after = SEQUENCE.load(SeqCst);
            counts.reads += 5;
            counts.torn += u64::from(is_torn(&values));
            counts.changes += u64::from(values[3] != last);
            last = values[3];
            if before == after && before.is_multiple_of(2) {
                counts.settled += 5;
                let byte = (before / 2) & 0xff;
                let is_stale = values.iter().any(|value| value & 0xff != byte) || gate != (byte % 2 == 1);
                counts.stale += u64::from(is_stale);
            } else {
                counts.during += 5;
            }
        }
    }
    counts
}

fn set_all(n: u64) {
    let value = pattern(n);
    imv::Batch::new()
        .with(&R8, value as u8)
        .with(&R16, value as u16)
        .with(&R32, value as u32)
        .with(&R64, value)
        .with(&GATE, n % 2)
        .apply()
        .unwrap();
}

/// True when this system does not offer the requested way to write: then there is nothing to torture.
fn is_missing(path: WritePath) -> bool {
    let writing = imv::status().writing;
    let is_missing = writing != Ok(path) && writing != Err(Fallback::Architecture);
    if is_missing {
        let why = format!("{path:?} is skipped: code cannot be written that way here ({})", imv::status());
        assert!(std::env::var_os("CI").is_none(), "{why}");
        println!("{why}");
    }
    is_missing
}

fn readers_against_patcher(path: WritePath, mode: Mode) {
    imv::set_mode(mode);
    imv::set_write_path(path);
    let writing = imv::status().writing;
    if is_missing(path) {
        return;
    }
    SEQUENCE.store(0, SeqCst);
    set_all(0);
    let stop = AtomicBool::new(false);
    let readers = std::thread::available_parallelism().map_or(2, usize::from);
    let traps_before = imv::status().traps_taken;
    let total = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..readers).map(|_| scope.spawn(|| read_until(&stop))).collect();
        let end = Instant::now() + duration();
        let mut n = 0;
        while Instant::now() < end {
            n += 1;
            SEQUENCE.fetch_add(1, SeqCst);
            set_all(n);
            SEQUENCE.fetch_add(1, SeqCst);
            (0..500).for_each(|_| std::hint::spin_loop());
        }
        stop.store(true, SeqCst);
        let mut total = Counts::default();
        for counts in handles.into_iter().map(|handle| handle.join().unwrap()) {
            total.reads += counts.reads;
            total.settled += counts.settled;
            total.during += counts.during;
            total.changes += counts.changes;
            total.torn += counts.torn;
            total.stale += counts.stale;
        }
        println!(
            "{writing:?} {mode:?}: {n} sets, {total:?}, {} traps, {readers} readers",
            imv::status().traps_taken - traps_before
        );
        total
    });
    assert_eq!((total.torn, total.stale), (0, 0));
    assert!(total.during > 0 && total.settled > 0 && total.changes > 0);
}

#[test]
fn readers_never_see_a_torn_or_stale_value() {
    let _turn = turn();
    for path in [WritePath::ProcMem, WritePath::Alias, WritePath::Swap] {
        for mode in [Mode::Direct, Mode::Conservative] {
            readers_against_patcher(path, mode);
        }
    }
    imv::set_mode(Mode::Direct);
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);
static TORN_IN_SIGNAL: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: libc::c_int) {
    let (values, _) = read_all();
    TORN_IN_SIGNAL.fetch_add(u64::from(is_torn(&values)), SeqCst);
    let n = SIGNALS.fetch_add(1, SeqCst) as u32;
    if FROM_SIGNAL.set(n).is_err() || imv_read!(FROM_SIGNAL) != n {
        TORN_IN_SIGNAL.fetch_add(1, SeqCst);
    }
}

/// A handler that reads and sets values interrupts the setter itself, at any instruction.
#[test]
fn a_signal_handler_may_read_and_set_inside_a_set() {
    let _turn = turn();
    // SAFETY: a handler that takes locks only with its own signal blocked, as `set` does.
    unsafe { libc::signal(libc::SIGUSR1, on_signal as *const () as usize) };
    // SAFETY: names this thread, which outlives the scope below.
    let setter = unsafe { libc::pthread_self() };
    for mode in [Mode::Direct, Mode::Conservative] {
        imv::set_mode(mode);
        let stop = AtomicBool::new(false);
        let sets = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    // SAFETY: the thread named is alive: it waits for this one.
                    unsafe { libc::pthread_kill(setter, libc::SIGUSR1) };
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
            let end = Instant::now() + duration();
            let mut n = 0;
            let mut wrong = 0;
            while Instant::now() < end {
                n += 1;
                set_all(n);
                let (values, gate) = read_all();
                let is_right = !is_torn(&values) && values[3] == pattern(n) && gate == (n % 2 == 1);
                wrong += u64::from(!is_right);
            }
            stop.store(true, SeqCst);
            assert_eq!(wrong, 0);
            n
        });
        println!("{mode:?}: {sets} sets, {} signals so far", SIGNALS.load(SeqCst));
        assert!(SIGNALS.load(SeqCst) > 0);
        assert_eq!(TORN_IN_SIGNAL.load(SeqCst), 0);
    }
    imv::set_mode(Mode::Direct);
}

/// The child's part: its values are its own, independently of the parent. Returns its exit status.
fn child(inherited: &mut dyn FnMut() -> bool) -> libc::c_int {
    if !inherited() {
        return 2;
    }
    for n in 0..20u64 {
        if FORKED.set(1 << 40 | n).is_err() || imv_read!(FORKED) != 1 << 40 | n {
            return 3;
        }
        std::thread::yield_now();
    }
    0
}

/// A thread sets at full rate while another forks: the child never starts inside a change, and from then on parent
/// and child do not see each other's values.
#[test]
fn a_forked_child_is_independent() {
    let _turn = turn();
    for path in [WritePath::ProcMem, WritePath::Alias, WritePath::Swap] {
        imv::set_write_path(path);
        if is_missing(path) {
            continue;
        }
        FORKED.set(0).unwrap();
        let stop = AtomicBool::new(false);
        let forks = std::thread::scope(|scope| {
            let setter = scope.spawn(|| {
                let mut n = 0;
                while !stop.load(SeqCst) {
                    n += 1;
                    FORKED.set(n).unwrap();
                    assert_eq!(imv_read!(FORKED), n, "a child's value reached its parent");
                }
            });
            let end = Instant::now() + duration();
            let mut forks = 0;
            while Instant::now() < end && !setter.is_finished() {
                // SAFETY: the child runs code that allocates and locks nothing except data that fork handlers have made
                // usable, and leaves by `_exit`.
                unsafe {
                    let pid = libc::fork();
                    if pid == 0 {
                        let mut inherited = || imv_read!(FORKED) == FORKED.load();
                        libc::_exit(child(&mut inherited));
                    }
                    let mut status = 0;
                    assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
                    assert_eq!(status, 0, "child of {path:?}");
                }
                forks += 1;
            }
            stop.store(true, SeqCst);
            forks
        });
        println!("{path:?}: {forks} forks");
        assert!(forks > 0);
    }
}
