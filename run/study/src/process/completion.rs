//! A child process from its release to its end, under the terms of its run: a time limit, a client, and a rule for the
//! processes it leaves.

use crate::error::Result;
use crate::process::child::{Course, Finished, LOOK, Waiting};
use crate::process::client_server;
use crate::process::leftovers;
use crate::process::run::Stopped;
use std::time::Instant;

impl Waiting {
    /// Releases the program, waits for its end and reaps it; processes that it left behind in its process group are
    /// ended with it.
    pub fn run(mut self) -> Result<Finished> {
        let started = Instant::now();
        self.release()?;
        self.finish(started)
    }

    /// Like [`Waiting::run`], but polls `has_begun` until it says whether the program has begun as it should; if not,
    /// ends it.
    pub fn run_if(mut self, has_begun: &dyn Fn() -> Option<bool>) -> Result<Finished> {
        let started = Instant::now();
        let deadline = self.deadline(started);
        self.release()?;
        while !self.wait_until(Some(Instant::now() + LOOK))? {
            self.origin().1.check()?;
            match has_begun() {
                Some(false) => return self.finish_after(started, true),
                None if deadline.is_none_or(|deadline| Instant::now() < deadline) => {}
                Some(true) | None => break,
            }
        }
        self.finish_after(started, false)
    }

    /// Like [`Waiting::run`], but polls `is_enough` and ends the program as soon as it is true.
    pub fn run_until(mut self, is_enough: &dyn Fn() -> bool) -> Result<Finished> {
        let started = Instant::now();
        let deadline = self.deadline(started);
        self.release()?;
        let mut had_enough = false;
        while !self.is_over(LOOK)? {
            had_enough = is_enough();
            if had_enough || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
        }
        self.finish_after(started, had_enough)
    }

    /// Waits for the end of a child that got the word at `started`, and reaps it like [`Waiting::run`].
    pub fn finish(self, started: Instant) -> Result<Finished> {
        self.finish_after(started, false)
    }

    /// The same, at once where enough was seen of it.
    fn finish_after(mut self, started: Instant, had_enough: bool) -> Result<Finished> {
        let deadline = self.deadline(started);
        let (stopped, client) = match self.origin().0.drive.clone() {
            _ if had_enough => (Some(Stopped::Calls), None),
            None if self.wait_until(deadline)? => (None, None),
            None => (Some(Stopped::Time), None),
            Some(driving) => client_server::drive(&mut self, &driving, deadline)?,
        };
        let (wall, left_running) = match stopped {
            None => leftovers::settle(&self, started, deadline)?,
            Some(_) => (started.elapsed(), 0),
        };
        self.conclude(Course { wall, stopped, left_running, client })
    }

    /// When its time is over, if it has one.
    fn deadline(&self, started: Instant) -> Option<Instant> {
        self.origin().0.max_time.map(|time| started + time)
    }
}
