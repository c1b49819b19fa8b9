//! Signal handling: children are ended, results stay. The guardian cleans up after signals that cannot be caught.

use crate::process::folder::TempFolder;
use crate::process::guardian::Guardian;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The grace period of a child before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// The longest time until the work ends by itself, from the signal on.
const MOST_DELAY: Duration = Duration::from_millis(900);

/// The longest time until the work ends once the last result is kept.
const AFTER_KEEPING: Duration = Duration::from_millis(300);

/// The longest time for keeping a result, from the signal on. A recording cut off then can be read to its last whole
/// block.
const MOST_KEEPING: Duration = Duration::from_secs(3);

/// The polling interval for the work's state.
const TICK: Duration = Duration::from_millis(10);

/// Watches for SIGINT, SIGTERM and SIGHUP and ends the process groups entrusted to it.
#[derive(Clone)]
pub struct Interrupts {
    received: Arc<AtomicI32>,
    groups: Arc<Mutex<Vec<Entrusted>>>,
    guardian: Arc<OnceLock<Arc<Guardian>>>,
    keeping: Arc<AtomicUsize>,
    /// True once the time of [`Interrupts::for_at_most`] is over. Each part of the work has one of its own.
    is_time_over: Arc<AtomicBool>,
    /// The end of that time.
    until: Option<Instant>,
}

/// A process group that is ended with the part of the work that entrusted it.
struct Entrusted {
    group: Pid,
    is_time_over: Arc<AtomicBool>,
}

/// Something is being kept that must not be cut off, such as a recording that is being sealed, until this is dropped.
pub struct Keeping(Arc<AtomicUsize>);

impl Drop for Keeping {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A signal, or the end of its time, cut the work short; the results until then are valid.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{}", cut_by(*.signal))]
pub struct Interrupted {
    /// The signal's number; 0 for the end of its time.
    pub signal: i32,
}

fn cut_by(signal: i32) -> String {
    match signal {
        0 => "its time is over".to_owned(),
        signal => format!("interrupted by {}", lineup_model::signal_name(signal)),
    }
}

/// Writes the last messages before the process exits in the middle of its work; returns the exit code.
type LastWords = Box<dyn Fn(Interrupted) -> u8 + Send>;

impl Interrupts {
    /// Starts watching. The work ends when it next asks [`Interrupts::check`].
    ///
    /// # Errors
    /// When handlers of signals cannot be set.
    pub fn watch() -> std::io::Result<Self> {
        Self::start(None)
    }

    /// Starts watching. If the work does not ask in time, such as a long computation, the process exits: within a
    /// second of the signal, within three while something is [kept](Interrupts::keeping), or at once with a second
    /// signal. `last_words` reports it, and returns the exit code.
    ///
    /// # Errors
    /// When handlers of signals cannot be set.
    pub fn watch_or_exit(last_words: impl Fn(Interrupted) -> u8 + Send + 'static) -> std::io::Result<Self> {
        Self::start(Some(Box::new(last_words)))
    }

    fn start(last_words: Option<LastWords>) -> std::io::Result<Self> {
        let interrupts = Self {
            received: Arc::default(),
            groups: Arc::default(),
            guardian: Arc::default(),
            keeping: Arc::default(),
            is_time_over: Arc::default(),
            until: None,
        };
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let watcher = interrupts.clone();
        std::thread::spawn(move || {
            while let Some(signal) = signals.wait().next() {
                let came = Instant::now();
                watcher.received.store(signal, Ordering::SeqCst);
                watcher.end_groups(|_| true);
                let Some(last_words) = &last_words else { continue };
                if watcher.is_still_at_work(came, &mut signals) {
                    let code = last_words(Interrupted { signal });
                    // Destructors must not run while other threads use what they destroy.
                    low_level::exit(code.into());
                }
            }
        });
        Ok(interrupts)
    }

    /// The same for a part of the work, which is cut off after this time, too: its process groups are ended then.
    pub fn for_at_most(&self, time: Duration) -> Interrupts {
        let is_time_over = Arc::new(AtomicBool::new(false));
        let until = Instant::now() + time;
        let part = Interrupts { is_time_over: is_time_over.clone(), until: Some(until), ..self.clone() };
        let (is_time_over, whole) = (Arc::downgrade(&is_time_over), self.clone());
        std::thread::spawn(move || {
            while Instant::now() < until {
                std::thread::sleep(TICK);
                if is_time_over.strong_count() == 0 {
                    return;
                }
            }
            let Some(is_time_over) = is_time_over.upgrade() else { return };
            is_time_over.store(true, Ordering::SeqCst);
            whole.end_groups(|entrusted| Arc::ptr_eq(&entrusted.is_time_over, &is_time_over));
        });
        part
    }

    /// The time until this part of the work is cut off; `None` for work that is not.
    pub fn time_left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Keeps the process until the returned value is dropped, even after a signal.
    pub fn keeping(&self) -> Keeping {
        self.keeping.fetch_add(1, Ordering::SeqCst);
        Keeping(self.keeping.clone())
    }

    /// Waits until the work should have ended. False when the signal has had its effect.
    fn is_still_at_work(&self, came: Instant, signals: &mut Signals) -> bool {
        let mut until = came + MOST_DELAY;
        while self.check().is_err() && Instant::now() < until && signals.pending().next().is_none() {
            if self.keeping.load(Ordering::SeqCst) > 0 {
                until = until.max(Instant::now() + AFTER_KEEPING).min(came + MOST_KEEPING);
            }
            std::thread::sleep(TICK);
        }
        self.check().is_err()
    }

    /// An error once a signal has come.
    pub fn check(&self) -> Result<(), Interrupted> {
        match self.received.load(Ordering::SeqCst) {
            0 if !self.is_time_over.load(Ordering::SeqCst) => Ok(()),
            signal => Err(Interrupted { signal }),
        }
    }

    /// True when a signal has come. That signal then counts as handled: only the next one ends the whole work.
    pub(crate) fn take(&self) -> bool {
        self.received.swap(0, Ordering::SeqCst) != 0
    }

    /// A temporary folder that is removed whatever the process's end.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn temporary_folder(&self) -> std::io::Result<TempFolder> {
        TempFolder::new(self.guardian()?)
    }

    /// The guardian that cleans up after this process; started when first needed.
    pub(crate) fn guardian(&self) -> std::io::Result<Arc<Guardian>> {
        if let Some(known) = self.guardian.get() {
            return Ok(known.clone());
        }
        let started = Arc::new(Guardian::start()?);
        Ok(self.guardian.get_or_init(|| started).clone())
    }

    /// Entrusts a process group; it is ended when a signal comes, at once if one already has.
    pub fn entrust(&self, group: Pid) {
        self.lock().push(Entrusted { group, is_time_over: self.is_time_over.clone() });
        if let Some(guardian) = self.guardian.get() {
            guardian.began(group);
        }
        if self.check().is_err() {
            // The group may already be gone; then there is nothing to end.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Takes a process group back, before its leader is reaped.
    pub fn release(&self, group: Pid) {
        self.lock().retain(|entrusted| entrusted.group != group);
        if let Some(guardian) = self.guardian.get() {
            guardian.ended(group);
        }
    }

    /// Ends the groups that meet a condition.
    fn end_groups(&self, is_ended: impl Fn(&Entrusted) -> bool) {
        for signal in [Signal::TERM, Signal::KILL] {
            for entrusted in self.lock().iter().filter(|entrusted| is_ended(entrusted)) {
                // A group that ended in the meantime needs no signal.
                let _ = kill_process_group(entrusted.group, signal);
            }
            if signal == Signal::TERM {
                std::thread::sleep(GRACE);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entrusted>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, kill_process};
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    #[test]
    fn a_part_ends_with_its_time_and_the_rest_goes_on() {
        let whole = Interrupts::watch().expect("handlers");
        let part = whole.for_at_most(Duration::from_millis(50));
        let sleep = || Command::new("sleep").arg("600").process_group(0).spawn().expect("sleep");
        let [mut child, mut of_the_rest] = [sleep(), sleep()];
        let [group, group_of_the_rest] = [&child, &of_the_rest].map(Pid::from_child);
        // In front of the other, so that a signal to both would have reached it first.
        whole.entrust(group_of_the_rest);
        part.entrust(group);
        assert!(!child.wait().expect("it ends").success());
        part.release(group);
        whole.release(group_of_the_rest);
        let ended = of_the_rest.kill().and_then(|()| of_the_rest.wait()).expect("it ends");
        assert_eq!(ended.signal(), Some(libc::SIGKILL), "only this test ends work that continues");
        let cut = part.check().expect_err("its time is over");
        assert_eq!((cut.signal, cut.to_string()), (0, "its time is over".to_owned()));
        assert!(whole.check().is_ok() && whole.for_at_most(Duration::from_secs(600)).check().is_ok());
    }

    /// The variable that tells this test's child process its role.
    const ROLE: &str = "LINEUP_TEST_OF_INTERRUPTS";

    /// The exit code of this test's program in a role.
    fn in_role(test: &str, role: &str) -> Option<i32> {
        let own = std::env::current_exe().expect("this program");
        let name = format!("process::interrupt::tests::{test}");
        let mut command = Command::new(own);
        command.args(["--exact", &name, "--nocapture"]).env(ROLE, role);
        command.status().expect("starts").code()
    }

    fn signal_self() {
        kill_process(getpid(), Signal::TERM).expect("sent");
    }

    fn work_for_ever() -> ! {
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn work_that_does_not_ask_is_cut_off_and_what_is_kept_is_kept() {
        let Ok(role) = std::env::var(ROLE) else {
            let test = "work_that_does_not_ask_is_cut_off_and_what_is_kept_is_kept";
            assert_eq!(in_role(test, "computes"), Some(7));
            assert_eq!(in_role(test, "keeps"), Some(8), "it exits by itself when its result is kept");
            assert_eq!(in_role(test, "keeps for ever"), Some(7), "a second signal ends that as well");
            assert_eq!(in_role(test, "uses the signal"), Some(9));
            return;
        };
        let interrupts = Interrupts::watch_or_exit(|interrupted| {
            assert_eq!(interrupted.to_string(), "interrupted by SIGTERM");
            7
        });
        let interrupts = interrupts.expect("watches");
        let keeping = role.starts_with("keeps").then(|| interrupts.keeping());
        signal_self();
        while interrupts.check().is_ok() {
            std::thread::yield_now();
        }
        match role.as_str() {
            "keeps" => {
                std::thread::sleep(2 * MOST_DELAY);
                drop(keeping);
                std::process::exit(8);
            }
            "keeps for ever" => {
                std::thread::sleep(GRACE);
                signal_self();
                work_for_ever();
            }
            "uses the signal" => {
                assert!(interrupts.take());
                std::thread::sleep(2 * MOST_DELAY);
                std::process::exit(9);
            }
            _ => work_for_ever(),
        }
    }
}
