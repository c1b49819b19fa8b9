//! Threads of a process that runs, each kept on a CPU of its own.

use crate::process::cpus::keep_on;
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The interval between looks for new threads at first.
const OFTEN: Duration = Duration::from_micros(500);
/// The interval after some looks without a new thread.
const SELDOM: Duration = Duration::from_millis(10);
/// The number of looks without a new thread after which the interval grows.
const SOME_TIME: u32 = 100;

/// Looks for new threads of a process, and gives each the next CPU, until it is dropped.
pub(crate) struct ThreadPlacement {
    is_over: Arc<AtomicBool>,
    looking: Option<JoinHandle<()>>,
}

impl ThreadPlacement {
    /// Begins with a process's first thread on the first of these CPUs.
    pub(crate) fn begin(process: Pid, cpus: Vec<u32>) -> ThreadPlacement {
        let process = process.as_raw_nonzero().get();
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = is_over.clone();
        let look = move || {
            let mut placed = BTreeSet::new();
            let mut in_vain = 0;
            while !seen.load(Ordering::Relaxed) {
                in_vain = if place_new(process, &cpus, &mut placed) { 0 } else { in_vain + 1 };
                std::thread::sleep(if in_vain < SOME_TIME { OFTEN } else { SELDOM });
            }
        };
        let looking = std::thread::Builder::new().name("placing threads".into()).spawn(look).ok();
        ThreadPlacement { is_over, looking }
    }
}

impl Drop for ThreadPlacement {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(looking) = self.looking.take() {
            let _ = looking.join();
        }
    }
}

/// Places new threads; returns whether there were any.
fn place_new(process: i32, cpus: &[u32], placed: &mut BTreeSet<i32>) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return false };
    let number = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse::<i32>().ok();
    let mut new: Vec<i32> = tasks.filter_map(number).filter(|task| !placed.contains(task)).collect();
    new.sort_unstable();
    for task in &new {
        let turn = placed.len() % cpus.len().max(1);
        if let (Some(cpu), Some(task)) = (cpus.get(turn), Pid::from_raw(*task)) {
            // A thread that has ended meanwhile needs no place.
            let _ = keep_on(Some(task), [*cpu]);
        }
        placed.insert(*task);
    }
    !new.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_getaffinity};
    use std::sync::mpsc;

    #[test]
    fn each_new_thread_gets_the_next_cpu() {
        let all = sched_getaffinity(None).expect("the allowed CPUs");
        let cpus: Vec<u32> = (0..CpuSet::MAX_CPU)
            .filter(|cpu| all.is_set(*cpu))
            .filter_map(|cpu| u32::try_from(cpu).ok())
            .collect();
        let mut placed: BTreeSet<i32> = BTreeSet::new();
        // This process's existing threads stay where they are.
        for task in fs::read_dir("/proc/self/task").expect("the list of threads").flatten() {
            placed.extend(task.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
        }
        let (known, first) = (placed.len(), cpus[placed.len() % cpus.len()]);
        let (tell, told) = mpsc::channel::<()>();
        let (answer, answered) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            told.recv().expect("a word");
            answer.send(sched_getaffinity(None)).expect("somebody listens");
        });
        assert!(place_new(rustix::process::getpid().as_raw_nonzero().get(), &cpus, &mut placed));
        assert!(placed.len() > known);
        tell.send(()).expect("somebody listens");
        let set = answered.recv().expect("an answer").expect("its CPUs");
        thread.join().expect("it ends");
        // Other tests begin threads, too: this one got one CPU, whichever was next.
        assert_eq!(set.count(), 1, "of {cpus:?}, {first} was next");
    }
}
