//! The thread that ran at each time: traces name threads at most, and never processes.

use crate::bytes::{Fields, u64_at};
use crate::event::Places;
use crate::record::{AWAY, FORKED, MMAP, MMAP2, NAMED, STARTED, SWITCHED, SWITCHED_BETWEEN};
use foldhash::HashMap;

/// Threads that are known at once.
const MOST_THREADS: usize = 1 << 20;

/// A thread, with its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Thread {
    pub(crate) process: u32,
    pub(crate) thread: u32,
}

/// The fields behind the body of a record that is no sample.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Behind {
    pub(crate) time_ns: Option<u64>,
    pub(crate) ran: Option<Thread>,
    pub(crate) cpu: Option<u32>,
}

impl Behind {
    pub(crate) fn of(places: &Places, body: &[u8]) -> Behind {
        let word = |back: Option<usize>| u64_at(body, body.len().checked_sub(back?)?);
        let thread = |word: u64| Thread { process: word as u32, thread: (word >> 32) as u32 };
        Behind {
            time_ns: word(places.other_time),
            ran: word(places.other_thread).map(thread),
            cpu: word(places.other_cpu).map(|word| word as u32),
        }
    }
}

/// The facts about threads so far.
#[derive(Default, Debug)]
pub(crate) struct Threads {
    process_of: HashMap<u32, u32>,
    /// By CPU, the running thread, where switches are recorded.
    switched: HashMap<u32, Option<Thread>>,
    /// By CPU, of whom the trace began last.
    started: HashMap<u32, Thread>,
}

impl Threads {
    /// Adds a record that is returned.
    pub(crate) fn see(&mut self, number: u32, misc: u16, body: &[u8], behind: Behind) {
        let mut fields = Fields::new(body);
        let mut pair = || Some(Thread { process: fields.u32()?, thread: fields.u32()? });
        match number {
            NAMED | MMAP | MMAP2 => {
                pair().into_iter().for_each(|own| self.know(own));
            }
            FORKED => {
                let (processes, threads) = (pair(), pair());
                if let (Some(processes), Some(threads)) = (processes, threads) {
                    self.know(Thread { process: processes.process, thread: threads.process });
                }
            }
            STARTED => {
                if let Some(own) = pair() {
                    self.know(own);
                    self.started.extend(behind.cpu.map(|cpu| (cpu, own)));
                }
            }
            SWITCHED | SWITCHED_BETWEEN => {
                let to = match (number, misc & AWAY != 0) {
                    (_, false) => behind.ran,
                    (SWITCHED_BETWEEN, true) => pair(),
                    _ => None,
                };
                to.into_iter().for_each(|own| self.know(own));
                self.switched.extend(behind.cpu.map(|cpu| (cpu, to)));
            }
            _ => {}
        }
    }

    fn know(&mut self, own: Thread) {
        if self.process_of.len() < MOST_THREADS || self.process_of.contains_key(&own.thread) {
            self.process_of.insert(own.thread, own.process);
        }
    }

    /// The thread with this number. A thread without a known process is taken for a process of its own.
    pub(crate) fn with_number(&self, thread: u32) -> Thread {
        Thread { process: self.process_of.get(&thread).copied().unwrap_or(thread), thread }
    }

    /// The thread that runs on a CPU, by its switches; `None` when none was recorded there.
    pub(crate) fn switched_to(&self, cpu: u32) -> Option<Thread> {
        self.switched.get(&cpu).copied().flatten()
    }

    /// The thread for which the trace of a CPU began last.
    pub(crate) fn started_on(&self, cpu: u32) -> Option<Thread> {
        self.started.get(&cpu).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_thread_is_of_the_process_that_it_was_made_in_or_named_in() {
        let mut threads = Threads::default();
        assert_eq!(threads.with_number(12), Thread { process: 12, thread: 12 }, "not told of");
        // Made in process 10 by its thread 11.
        threads.see(FORKED, 0, &bytes(&[10, 10, 12, 11, 0, 0]), Behind::default());
        threads.see(NAMED, 0, &bytes(&[20, 21, 0]), Behind::default());
        assert_eq!(threads.with_number(12), Thread { process: 10, thread: 12 });
        assert_eq!(threads.with_number(21), Thread { process: 20, thread: 21 });
        threads.see(FORKED, 0, &bytes(&[10, 10, 12]), Behind::default());
        assert_eq!(threads.with_number(12).process, 10, "one that is too short tells nothing");
    }

    #[test]
    fn a_cpu_that_a_thread_was_switched_away_from_runs_none_that_is_known() {
        let mut threads = Threads::default();
        let ran = Thread { process: 10, thread: 11 };
        let behind = Behind { time_ns: None, ran: Some(ran), cpu: Some(3) };
        threads.see(SWITCHED, 0, &[], behind);
        assert_eq!((threads.switched_to(3), threads.switched_to(4)), (Some(ran), None));
        threads.see(SWITCHED, AWAY, &[], behind);
        assert_eq!(threads.switched_to(3), None);
    }
}
