//! Follows all threads of a run, from stop to stop.

use super::error::EffectsError;
use super::observer::{Entered, Observer};
use super::ptrace::{self, Tid, process_of};
use super::scene::Scene;
use lineup_prove::run::Ending;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The grace period of processes that outlive the run. Processes known to the run's starter have been waited for, or
/// ended.
const AFTERMATH: Duration = Duration::from_secs(2);

/// One thread that is followed.
struct Thread {
    /// The process it belongs to, by its id.
    process: Tid,
    /// The call it is in, once that was stopped at.
    entered: Option<Entered>,
}

/// The tracer of one run.
pub(super) struct Tracer {
    root: Tid,
    threads: HashMap<Tid, Thread>,
    /// Threads that were seen before the event of the call that made them.
    early: HashSet<Tid>,
    observer: Observer,
    /// Set when the run is over.
    is_over: Arc<AtomicBool>,
    /// True once the program has started: everything before is Lineup's own.
    has_started: bool,
}

/// A stopped thread's next step.
enum Next {
    GoOn(i32),
    StayStopped,
    Leave,
}

impl Tracer {
    pub(super) fn new(root: Tid, scene: Scene, is_over: Arc<AtomicBool>) -> Self {
        let threads = [(root, Thread { process: root, entered: None })].into();
        let observer = Observer::new(root, scene);
        Self { root, threads, early: HashSet::new(), observer, is_over, has_started: false }
    }

    /// Follows the run to its end.
    pub(super) fn run(mut self) -> Result<Observer, EffectsError> {
        while self.threads.values().any(|thread| thread.process == self.root) {
            match self.wait(WaitOptions::empty())? {
                Some((tid, status)) => self.take(tid, status),
                None => return Err(EffectsError::Lost),
            }
        }
        self.aftermath()?;
        Ok(self.observer)
    }

    /// Follows processes that outlive the program until they have ended. Processes that still run a while after the
    /// program's starter saw none of them left are ended.
    fn aftermath(&mut self) -> Result<(), EffectsError> {
        let mut deadline = None;
        while !self.threads.is_empty() {
            match self.wait(WaitOptions::NOHANG)? {
                Some((tid, status)) => self.take(tid, status),
                None if deadline.is_some_and(|deadline| Instant::now() >= deadline) => break,
                None => {
                    if deadline.is_none() && self.is_over.load(Ordering::Relaxed) {
                        deadline = Some(Instant::now() + AFTERMATH);
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
        if self.threads.is_empty() {
            return Ok(());
        }
        let processes: HashSet<Tid> = self.threads.values().map(|thread| thread.process).collect();
        self.observer.note("what processes did that had hidden from whoever started the program");
        for process in processes {
            // It may have ended by now.
            let _ = Pid::from_raw(process).map(|pid| kill_process(pid, Signal::KILL));
        }
        while let Some((tid, status)) = self.wait(WaitOptions::empty())? {
            self.take(tid, status);
        }
        Ok(())
    }

    /// The next event of any thread that this thread traces; `None` when there is no event.
    fn wait(&self, options: WaitOptions) -> Result<Option<(Tid, WaitStatus)>, EffectsError> {
        // Threads and processes alike, but not this process's other children: those are no business of this thread.
        let traced = WaitOptions::from_bits_retain((libc::__WALL | libc::__WNOTHREAD) as u32);
        loop {
            match wait(options | traced) {
                Ok(news) => return Ok(news.map(|(pid, status)| (pid.as_raw_nonzero().get(), status))),
                Err(Errno::INTR) => {}
                Err(Errno::CHILD) => return Ok(None),
                Err(error) => return Err(EffectsError::Wait(error.into())),
            }
        }
    }

    fn take(&mut self, tid: Tid, status: WaitStatus) {
        if let Some(status_code) = status.exit_status() {
            return self.ended(tid, Ending::Exited(status_code));
        }
        if let Some(signal) = status.terminating_signal() {
            return self.ended(tid, Ending::Killed(signal));
        }
        let signal = status.stopping_signal().unwrap_or(0);
        let event = status.as_raw() >> 16;
        if !self.threads.contains_key(&tid) {
            // A new thread, seen before the event of the call that made it. It waits for that event.
            self.early.insert(tid);
            return;
        }
        // A thread that was killed while it stood needs nothing; its end is the next news of it.
        let _ = match self.stopped(tid, signal, event) {
            Next::GoOn(signal) => self.resume(tid, signal),
            Next::StayStopped => ptrace::leave_stopped(tid),
            Next::Leave => ptrace::let_go(tid),
        };
    }

    fn resume(&self, tid: Tid, signal: i32) -> io::Result<()> {
        let is_in_call = self.threads.get(&tid).is_some_and(|thread| thread.entered.is_some());
        if is_in_call { ptrace::to_end_of_call(tid, signal) } else { ptrace::go_on(tid, signal) }
    }

    fn stopped(&mut self, tid: Tid, signal: i32, event: i32) -> Next {
        match event {
            0 if signal == libc::SIGTRAP | 0x80 => self.left_call(tid),
            // A signal on its way to the program.
            0 => return Next::GoOn(signal),
            libc::PTRACE_EVENT_SECCOMP => self.at_call(tid),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => self.made(tid),
            libc::PTRACE_EVENT_EXEC => self.runs_another(tid),
            libc::PTRACE_EVENT_EXIT if tid == self.root => {
                // The program's starter must see its end, and would not if the tracer received it.
                self.threads.remove(&tid);
                return Next::Leave;
            }
            libc::PTRACE_EVENT_STOP => {
                let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
                if stops.contains(&signal) {
                    return Next::StayStopped;
                }
            }
            _ => {}
        }
        Next::GoOn(0)
    }

    fn at_call(&mut self, tid: Tid) {
        let (true, Ok(entry)) = (self.has_started, ptrace::entry(tid)) else { return };
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.entered = self.observer.enter(tid, &entry);
        }
    }

    fn left_call(&mut self, tid: Tid) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let (Some(entered), Ok(result)) = (thread.entered.take(), ptrace::result(tid)) else { return };
        let process = thread.process;
        let process_of = |id: Tid| self.threads.get(&id).map(|thread| thread.process);
        self.observer.leave(tid, process, entered, result, process_of);
    }

    /// A thread or a process was made.
    fn made(&mut self, by: Tid) {
        let Some(new) = ptrace::event_message(by).ok().and_then(|id| Tid::try_from(id).ok()) else { return };
        let maker = self.threads.get(&by).map_or(by, |thread| thread.process);
        let process = process_of(new).unwrap_or(new);
        if process == new {
            self.observer.child(maker, new);
        }
        self.threads.insert(new, Thread { process, entered: None });
        if self.early.remove(&new) {
            // As above.
            let _ = self.resume(new, 0);
        }
    }

    /// A process runs another program now: its other threads are gone, and the one that asked has the process's id.
    fn runs_another(&mut self, tid: Tid) {
        let asked = ptrace::event_message(tid).ok().and_then(|id| Tid::try_from(id).ok()).unwrap_or(tid);
        let entered = self.threads.get_mut(&asked).and_then(|thread| thread.entered.take());
        self.threads.retain(|_, thread| thread.process != tid);
        self.threads.insert(tid, Thread { process: tid, entered });
        self.has_started |= tid == self.root;
        self.observer.runs(tid);
    }

    fn ended(&mut self, tid: Tid, ending: Ending) {
        self.early.remove(&tid);
        let thread = self.threads.remove(&tid);
        // The first thread's end is reported when all others are gone: it is the end of the process.
        if thread.is_none_or(|thread| thread.process != tid) {
            return;
        }
        self.threads.retain(|_, thread| thread.process != tid);
        self.observer.ended(tid, ending);
    }
}
