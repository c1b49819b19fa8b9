//! The cost of a read or a probe whose lines are not in the cache: no peer prints this about itself.

use crate::median;
use lineup_runtime::trace::{self, Config, Region};
use lineup_runtime::{define_imv, imv_read};
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const ROUNDS: usize = 61;
/// More than any cache private to this thread on the machine, and than most shared ones.
const WALK_BYTES: usize = 64 << 20;

define_imv! {
    static NUMBER: u32 = 5;
}
static GLOBAL: AtomicU32 = AtomicU32::new(5);
static REGION: Region = Region::new(c"cold");

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn run() {
    println!("\ncold costs: not measured on this architecture");
}

#[cfg(target_arch = "x86_64")]
fn cycles(work: impl FnOnce()) -> f64 {
    use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
    let mut cpu = 0;
    // SAFETY: every x86-64 that Linux runs on has these.
    unsafe {
        _mm_lfence();
        let start = _rdtsc();
        _mm_lfence();
        work();
        let end = __rdtscp(&mut cpu);
        _mm_lfence();
        end.wrapping_sub(start) as f64
    }
}

/// A random walk over more memory than the caches hold: the linear one is seen through by prefetchers.
#[cfg(target_arch = "x86_64")]
struct Walk {
    next: Vec<u32>,
}

#[cfg(target_arch = "x86_64")]
impl Walk {
    fn new() -> Self {
        let lines = WALK_BYTES / 64;
        let mut order: Vec<u32> = (0..lines as u32).collect();
        let mut state = 1u64;
        for at in (1..lines).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            order.swap(at, (state >> 33) as usize % at);
        }
        let mut next = vec![0; WALK_BYTES / 4];
        for pair in order.windows(2) {
            next[pair[0] as usize * 16] = pair[1] * 16;
        }
        next[order[lines - 1] as usize * 16] = order[0] * 16;
        Self { next }
    }

    /// A quarter of the walk at a time keeps a round short and still pushes everything small out.
    fn thrash(&self, at: &mut u32) {
        for _ in 0..WALK_BYTES / 64 / 4 {
            *at = self.next[*at as usize];
        }
        black_box(*at);
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn run() {
    let walk = Walk::new();
    // Written through an address that the compiler cannot follow: it would take the value for a constant.
    black_box(&GLOBAL).store(5, Relaxed);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dormant = after_walk(&walk, || drop(black_box(trace::region(&REGION))));
    trace::start(&Config::new(&folder.path().join("cold.trace"))).expect("tracing");
    drop(trace::region(&REGION));
    let recorded = after_walk(&walk, || drop(black_box(trace::region(&REGION))));
    trace::stop();
    let rows = [
        ("nothing (the timer itself)", after_walk(&walk, || ())),
        (
            "a constant",
            after_walk(&walk, || {
                black_box(5u32);
            }),
        ),
        (
            "lineup imv_read",
            after_walk(&walk, || {
                black_box(imv_read!(NUMBER));
            }),
        ),
        (
            "a global variable",
            after_walk(&walk, || {
                black_box(GLOBAL.load(Relaxed));
            }),
        ),
        (
            "lineup clock",
            after_walk(&walk, || {
                black_box(lineup_runtime::clock::now_ns());
            }),
        ),
        ("lineup region, dormant", dormant),
        ("lineup region, recorded", recorded),
    ];
    println!(
        "\nafter a random walk over 64 MiB, cycles of the counter, median of {ROUNDS} (the code is warm but for the walk)"
    );
    for (name, value) in &rows {
        println!("  {name:<34} {value:>9.0} cycles");
    }
    let at = |name: &str| rows.iter().find(|(row, _)| *row == name).map_or(f64::NAN, |(_, value)| *value);
    println!("  immediate / constant: {:.3} (goal: at most 1.05)", at("lineup imv_read") / at("a constant"));
    println!(
        "  global - constant: {:.0} cycles (goal: hundreds)",
        at("a global variable") - at("a constant")
    );
}

/// Median cycles of `work` with the data caches full of something else. The code that measures is warmed by a first
/// call with the result thrown away, and `work`'s own data is then pushed out.
#[cfg(target_arch = "x86_64")]
fn after_walk(walk: &Walk, work: impl Fn()) -> f64 {
    let mut at = 0;
    let samples = (0..ROUNDS).map(|_| {
        walk.thrash(&mut at);
        cycles(&work)
    });
    median(samples.collect())
}
