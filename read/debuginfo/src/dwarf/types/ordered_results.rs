//! Work on all threads whose results are taken in order.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The state that the threads share under the lock.
struct State<T, M> {
    /// The next item for which a thread is to do the work.
    begun: usize,
    /// The next item whose result is to be taken.
    taken: usize,
    /// Costs of the items between the two.
    ahead: u64,
    ready: BTreeMap<usize, T>,
    /// Missing while a thread takes results.
    take: Option<M>,
    is_over: bool,
}

/// Runs `work` for the numbers of some items on all threads, and `take` with each result in the order of the items, one
/// at a time, until it breaks off. A thread waits only before an item whose cost in `costs` would exceed `limit`,
/// together with the earlier items whose results are not yet taken. The first of those is always begun.
pub(crate) fn in_order<T: Send, M: FnMut(usize, T) -> ControlFlow<()> + Send>(
    costs: &[u64],
    limit: u64,
    work: impl Fn(usize) -> T + Sync,
    take: M,
) {
    let first =
        State { begun: 0, taken: 0, ahead: 0, ready: BTreeMap::new(), take: Some(take), is_over: false };
    let pool = Pool { costs, limit, work, state: Mutex::new(first), progress: Condvar::new() };
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads() {
            scope.spawn(|_| pool.run());
        }
    });
}

/// The data that the threads share.
struct Pool<'c, T, M, W> {
    costs: &'c [u64],
    limit: u64,
    work: W,
    state: Mutex<State<T, M>>,
    progress: Condvar,
}

impl<T, M: FnMut(usize, T) -> ControlFlow<()>, W: Fn(usize) -> T> Pool<'_, T, M, W> {
    fn lock(&self) -> MutexGuard<'_, State<T, M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of one thread.
    fn run(&self) {
        let _alarm = OnPanic(|| {
            self.lock().is_over = true;
            self.progress.notify_all();
        });
        let mut now = self.lock();
        while now.begun < self.costs.len() && !now.is_over {
            let item = now.begun;
            if item > now.taken && now.ahead + self.costs[item] > self.limit {
                now = self.progress.wait(now).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            now.begun += 1;
            now.ahead += self.costs[item];
            drop(now);
            let result = (self.work)(item);
            now = self.lock();
            now.ready.insert(item, result);
            now = self.take_ready(now);
        }
        self.progress.notify_all();
    }

    /// Takes the results that are ready, unless another thread does.
    fn take_ready<'p>(&'p self, mut now: MutexGuard<'p, State<T, M>>) -> MutexGuard<'p, State<T, M>> {
        let Some(mut take) = now.take.take() else { return now };
        while let Some((item, result)) = now.next() {
            drop(now);
            let flow = take(item, result);
            now = self.lock();
            now.taken = item + 1;
            now.ahead -= self.costs[item];
            now.is_over |= flow.is_break();
            self.progress.notify_all();
        }
        now.take = Some(take);
        now
    }
}

impl<T, M> State<T, M> {
    /// The result to be taken next, when it is ready.
    fn next(&mut self) -> Option<(usize, T)> {
        let item = self.taken;
        if self.is_over { None } else { Some((item, self.ready.remove(&item)?)) }
    }
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
