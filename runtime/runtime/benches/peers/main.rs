//! The runtime compared with its peers, in one run: `cargo bench -p lineup-runtime`.
//!
//! Medians of interleaved batches, with the empty loop taken off. Compare the ratios: the machine's noise is in both
//! sides. Peers that are not installed are shown as not measured, with the package that brings them.

mod cold;
mod lttng;

use lineup_runtime::trace::{self, Config, Region};
use lineup_runtime::{clock, define_imv, imv_cond, imv_read};
use std::hint::black_box;
use std::time::Instant;

/// Many short batches: most fit between two turns of the scheduler, and the median is then the program's own.
const BATCHES: usize = 401;
const PER_BATCH: u32 = 5_000;

define_imv! {
    static NUMBER: u32 = 5;
    static OFF: u8 = 0;
}
static REGION: Region = Region::new(c"bench");
static_keys::define_static_key_false!(PEER_KEY);

fn batch(mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..PER_BATCH {
        work();
        black_box(());
    }
    start.elapsed().as_nanos() as f64 / f64::from(PER_BATCH)
}

/// A name, and the function that runs one batch of it and returns nanoseconds per call.
type Work = (&'static str, Box<dyn FnMut() -> f64>);

/// Nanoseconds per call of each, medians over batches taken in turn, less the empty loop.
fn measure(works: &mut [Work]) -> Vec<(&'static str, f64)> {
    let mut samples: Vec<Vec<f64>> = works.iter().map(|_| Vec::new()).collect();
    for _ in 0..BATCHES {
        let empty = batch(|| ());
        for (index, (_, work)) in works.iter_mut().enumerate() {
            samples[index].push(work() - empty);
        }
    }
    works.iter().zip(samples).map(|((name, _), values)| (*name, median(values))).collect()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

macro_rules! works {
    ($($name:literal => $work:expr;)*) => {
        vec![$(($name, Box::new(|| batch(|| { let _ = black_box($work); })) as Box<dyn FnMut() -> f64>)),*]
    };
}

fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has this counter.
    let value = unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    let value = clock::now_ns();
    value
}

fn system_ns() -> u64 {
    clock::system_reference()
}

fn print(title: &str, rows: &[(&str, f64)]) {
    println!("\n{title}");
    for (name, ns) in rows {
        println!("  {name:<34} {ns:>9.2} ns");
    }
}

fn of(rows: &[(&str, f64)], name: &str) -> f64 {
    rows.iter().find(|(row, _)| *row == name).map_or(f64::NAN, |(_, ns)| *ns)
}

fn goal(what: &str, value: f64, limit: f64, at_most: bool) {
    let met = if at_most { value <= limit } else { value >= limit };
    let sign = if at_most { "at most" } else { "at least" };
    println!("  {what:<62} {value:>8.2}  (goal: {sign} {limit}) {}", if met { "met" } else { "MISSED" });
}

fn clocks() {
    let quanta = quanta::Clock::new();
    let raw = quanta.clone();
    let mut works: Vec<Work> = works! {
        "bare counter read" => counter();
        "lineup clock" => clock::now_ns();
        "clock_gettime" => system_ns();
        "minstant" => minstant::Instant::now();
        "fastant" => fastant::Instant::now();
    };
    works.push((
        "quanta raw",
        Box::new(move || {
            batch(|| {
                black_box(raw.raw());
            })
        }),
    ));
    works.push((
        "quanta now",
        Box::new(move || {
            batch(|| {
                black_box(quanta.now());
            })
        }),
    ));
    let rows = measure(&mut works);
    print("clocks, per call", &rows);
    goal(
        "lineup clock / bare counter read",
        of(&rows, "lineup clock") / of(&rows, "bare counter read"),
        1.15,
        true,
    );
    goal("lineup clock / clock_gettime", of(&rows, "lineup clock") / of(&rows, "clock_gettime"), 0.6, true);
}

fn dormant() {
    let mut works = works! {
        "lineup region, dormant" => trace::region(&REGION);
        "lineup imv_cond" => imv_cond!(OFF);
        "lineup imv_read" => imv_read!(NUMBER);
        "static-keys branch" => static_keys::static_branch_unlikely!(PEER_KEY);
        "fastrace span, no root" => fastrace::local::LocalSpan::enter_with_local_parent("bench");
    };
    let mut rows = measure(&mut works);
    let lttng = lttng::measure();
    if let Ok((off, _)) = &lttng {
        rows.push(("LTTng-UST tracepoint, off", *off));
    }
    print("dormant, per probe", &rows);
    recorded(lttng.as_ref().ok().map(|(_, on)| *on));
    match lttng {
        Ok((off, _)) => goal(
            "dormant lineup region - LTTng-UST off, ns",
            of(&rows, "lineup region, dormant") - off,
            0.0,
            true,
        ),
        Err(why) => println!("  LTTng-UST not measured: {why}"),
    }
}

fn recorded(lttng_on: Option<f64>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    trace::start(&Config::new(&folder.path().join("bench.trace"))).expect("tracing");
    let reporter = fastrace::collector::Config::default();
    fastrace::set_reporter(Discard, reporter);
    let mut works = works! {
        "two counter reads" => (counter(), counter());
        "lineup region, recorded" => trace::region(&REGION);
    };
    works.push((
        "fastrace span under a root",
        Box::new(|| {
            let root = fastrace::Span::root("root", fastrace::collector::SpanContext::random());
            let _guard = root.set_local_parent();
            batch(|| {
                let _ = black_box(fastrace::local::LocalSpan::enter_with_local_parent("bench"));
            })
        }),
    ));
    let mut rows = measure(&mut works);
    trace::stop();
    if let Some(on) = lttng_on {
        rows.push(("LTTng-UST tracepoint, on", on));
        rows.push(("LTTng-UST region (two of them)", 2.0 * on));
    }
    print("recorded, per region", &rows);
    let ours = of(&rows, "lineup region, recorded");
    goal("lineup region - two counter reads, ns", ours - of(&rows, "two counter reads"), 10.0, true);
    if let Some(on) = lttng_on {
        println!("  LTTng-UST tracepoint / lineup region {:.2}: it stamps once, a region twice", on / ours);
        goal("LTTng-UST begin and end / lineup region", 2.0 * on / ours, 4.0, false);
    }
}

struct Discard;

impl fastrace::collector::Reporter for Discard {
    fn report(&mut self, spans: Vec<fastrace::collector::SpanRecord>) {
        black_box(spans);
    }
}

fn main() {
    if let lineup_runtime::clock::Fitness::Unfit(why) = clock::start() {
        println!("no fit counter ({why}): the clock reads the system's");
    }
    println!("{}", lineup_runtime::imv::status());
    clocks();
    dormant();
    cold::run();
}
