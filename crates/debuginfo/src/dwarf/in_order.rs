//! Work on all threads whose results are taken in order.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, PoisonError};

/// What the threads agree on.
struct State<T, M> {
    /// The next item for which a thread is to do the work.
    begun: usize,
    /// The next item whose result is to be taken.
    taken: usize,
    ready: BTreeMap<usize, T>,
    /// Missing while a thread takes results.
    take: Option<M>,
    is_over: bool,
}

/// Runs `work` for the numbers of some items on all threads, and `take` with each result in the order of
/// the items, one at a time, until it breaks off. No thread waits for another, but that none begins an
/// item of which `costs` says that, with those before it whose results are not taken, it costs more than
/// `limit`; the first of those is always begun.
pub(super) fn in_order<T: Send, M: FnMut(usize, T) -> ControlFlow<()> + Send>(
    costs: &[u64],
    limit: u64,
    work: impl Fn(usize) -> T + Sync,
    take: M,
) {
    let ends: Vec<u64> = costs.iter().scan(0, |sum, cost| Some(add(sum, *cost))).collect();
    let waiting = |from: usize, to: usize| ends[to] - if from == 0 { 0 } else { ends[from - 1] };
    let first = State { begun: 0, taken: 0, ready: BTreeMap::new(), take: Some(take), is_over: false };
    let state = Mutex::new(first);
    let progress = Condvar::new();
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let run = || {
        let _alarm = OnPanic(|| {
            lock().is_over = true;
            progress.notify_all();
        });
        let mut now = lock();
        while now.begun < costs.len() && !now.is_over {
            if now.begun > now.taken && waiting(now.taken, now.begun) > limit {
                now = progress.wait(now).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let item = now.begun;
            now.begun += 1;
            drop(now);
            let result = work(item);
            now = lock();
            now.ready.insert(item, result);
            let Some(mut take) = now.take.take() else { continue };
            while let Some((item, result)) = next(&mut now) {
                drop(now);
                let flow = take(item, result);
                now = lock();
                now.taken = item + 1;
                now.is_over |= flow.is_break();
                progress.notify_all();
            }
            now.take = Some(take);
        }
        progress.notify_all();
    };
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads() {
            scope.spawn(|_| run());
        }
    });
}

/// Does something when its thread panics: others must not wait for it.
struct OnPanic<F: Fn()>(F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

fn add(sum: &mut u64, cost: u64) -> u64 {
    *sum = sum.saturating_add(cost);
    *sum
}

/// The result to be taken next, when it is ready.
fn next<T, M>(state: &mut State<T, M>) -> Option<(usize, T)> {
    let item = state.taken;
    if state.is_over { None } else { Some((item, state.ready.remove(&item)?)) }
}

#[cfg(test)]
mod tests {
    use super::in_order;
    use std::ops::ControlFlow;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_result_is_taken_once_and_in_order() {
        for limit in [0, 3, 1000] {
            let mut taken = Vec::new();
            let work = |item: usize| {
                if item.is_multiple_of(7) {
                    std::thread::yield_now();
                }
                item * 2
            };
            in_order(&[1; 500], limit, work, |item, result| {
                taken.push((item, result));
                ControlFlow::Continue(())
            });
            let expected: Vec<(usize, usize)> = (0..500).map(|item| (item, item * 2)).collect();
            assert_eq!(taken, expected);
        }
    }

    #[test]
    fn nothing_is_taken_after_the_end() {
        let mut taken = 0;
        in_order(
            &[1; 500],
            10,
            |item| item,
            |item, _| {
                taken += 1;
                if item == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!(taken, 21);
    }

    #[test]
    fn a_panic_ends_all() {
        let run = || {
            let work = |item: usize| assert!(item != 50, "fails");
            in_order(&[1; 500], 4, work, |_, ()| ControlFlow::Continue(()));
        };
        assert!(std::panic::catch_unwind(run).is_err());
    }

    #[test]
    fn work_does_not_run_ahead_further_than_allowed() {
        let taken = AtomicUsize::new(0);
        let work = |item: usize| assert!(item <= taken.load(Ordering::SeqCst) + 4, "{item}");
        in_order(&[10; 300], 40, work, |item, ()| {
            taken.store(item + 1, Ordering::SeqCst);
            ControlFlow::Continue(())
        });
        assert_eq!(taken.into_inner(), 300);
        in_order(&[], 40, |_| (), |_, ()| panic!("there is nothing to take"));
    }
}
