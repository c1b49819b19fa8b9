//! The clock's two copies on modelled memory: every interleaving of a reader with a writer, and every value that weakly
//! ordered memory may hand out, up to a bound on preemptions.

#[path = "../../src/clock/two_copies.rs"]
mod two_copies;

use loom::sync::Arc;
use loom::sync::atomic::{self as atomics, AtomicU64, Ordering::Relaxed};
use std::sync::atomic::{AtomicUsize, Ordering};
use two_copies::{Bank, TwoCopies};

/// Two words that a writer always makes equal.
struct Pair([AtomicU64; 2]);

impl Bank for Pair {
    type Value = [u64; 2];

    fn load(&self) -> [u64; 2] {
        self.0.each_ref().map(|word| word.load(Relaxed))
    }

    fn store(&self, value: &[u64; 2]) {
        self.0.iter().zip(value).for_each(|(word, value)| word.store(*value, Relaxed));
    }
}

fn pair() -> Pair {
    Pair([AtomicU64::new(0), AtomicU64::new(0)])
}

fn copies() -> TwoCopies<Pair> {
    TwoCopies { sequence: AtomicU64::new(0), banks: [pair(), pair()] }
}

fn publish(copies: &TwoCopies<Pair>, value: u64, between: &mut dyn FnMut()) {
    let fill = |bank: &Pair| {
        bank.store(&[value; 2]);
        [value; 2]
    };
    copies.publish(fill, between);
}

fn whole(copies: &TwoCopies<Pair>) -> u64 {
    let [first, second] = copies.read(|value| value);
    assert_eq!(first, second, "torn");
    first
}

/// Runs the model; how many executions there were.
fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) -> usize {
    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    executions.load(Ordering::Relaxed)
}

#[test]
fn a_reader_beside_two_updates_sees_whole_values_that_never_go_back() {
    let executions = explore(2, || {
        let shared = Arc::new(copies());
        let writer = Arc::clone(&shared);
        let writing =
            loom::thread::spawn(move || (1..=2).for_each(|value| publish(&writer, value, &mut || {})));
        let first = whole(&shared);
        let second = whole(&shared);
        assert!(first <= second, "{first} then {second}");
        writing.join().unwrap();
        assert_eq!(whole(&shared), 2);
    });
    println!("{executions} executions");
    assert!(executions > 100, "{executions}");
}

#[test]
fn a_handler_between_any_two_steps_of_an_update_reads_at_once() {
    let executions = explore(2, || {
        let copies = copies();
        let mut seen = vec![whole(&copies)];
        (1..=2).for_each(|value| publish(&copies, value, &mut || seen.push(whole(&copies))));
        assert!(seen.is_sorted(), "{seen:?}");
        assert_eq!((seen.len(), seen.last()), (11, Some(&2)));
    });
    assert!(executions >= 1);
}
