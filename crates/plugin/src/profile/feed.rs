//! One guest thread's way to its model: callbacks fill batches, and full ones are modelled in order.

use super::Runs;
use super::events::Batch;
use super::model::{Counts, Model};
use super::worker::Worker;
use crate::describe::Descriptions;
use crate::ffi::Api;
use std::sync::Arc;

/// One thread's events, and who models them.
pub(crate) struct ThreadProfile {
    batch: Batch,
    descriptions: Descriptions,
    model: Place,
    runs: Arc<Runs>,
    /// How many of them the model got.
    runs_sent: usize,
    may_run_beside: bool,
    process: u32,
}

/// Where a thread's model runs.
enum Place {
    /// In callbacks.
    Here(Box<Model>),
    /// On a thread of its own.
    Beside(Worker),
    /// On its way from one to the other.
    Nowhere,
}

impl ThreadProfile {
    /// Nothing happened yet. With `may_run_beside` the model gets a thread of its own when the first batch is full, so
    /// that threads that do little start none.
    pub(super) fn new(model: Box<Model>, runs: Arc<Runs>, api: Api, may_run_beside: bool) -> Box<Self> {
        Box::new(ThreadProfile {
            batch: Batch::new(),
            descriptions: Descriptions::new(api),
            model: Place::Here(model),
            runs,
            runs_sent: 0,
            may_run_beside,
            process: std::process::id(),
        })
    }

    pub(super) fn may_run_beside(&self) -> bool {
        self.may_run_beside
    }

    /// Enters the block that begins with a run; false when that needs [`Self::enter_slowly`].
    #[inline]
    pub(crate) fn enter(&mut self, run: u32) -> bool {
        self.batch.enter(run)
    }

    /// Enters a block with a new batch.
    pub(crate) fn enter_slowly(&mut self, run: u32) {
        self.hand_over();
        self.batch.enter(run);
    }

    /// Accesses data from the instruction with these counters, as the emulator's `info` describes it; false when
    /// that needs [`Self::access_slowly`].
    #[inline]
    pub(crate) fn access(&mut self, counter: u32, address: u64, info: u32) -> bool {
        let what = self.descriptions.kept(info);
        what.is_of(info) && self.batch.access(counter, address, what)
    }

    /// Accesses data when the description is new, the address wide or the batch full.
    pub(crate) fn access_slowly(&mut self, counter: u32, address: u64, info: u32) {
        let what = &self.descriptions.of(info);
        if self.batch.access(counter, address, what) || self.batch.access_wide(counter, address, what) {
            return;
        }
        self.hand_over();
        if !self.batch.access(counter, address, what) {
            self.batch.access_wide(counter, address, what);
        }
    }

    /// Gives the batch to the model and takes an empty one.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self) {
        if !self.is_ours() {
            return self.batch.clear();
        }
        self.send_runs();
        self.model = match std::mem::replace(&mut self.model, Place::Nowhere) {
            Place::Here(model) if self.may_run_beside => {
                Worker::start(model).map_or_else(Place::Here, Place::Beside)
            }
            place => place,
        };
        match &mut self.model {
            Place::Here(model) => {
                model.simulate(&self.batch);
                self.batch.clear();
            }
            Place::Beside(worker) => worker.exchange(&mut self.batch),
            Place::Nowhere => {}
        }
    }

    /// Puts the runs made since the last time into the batch. The model does not look for itself: its thread would hold a
    /// lock that a process forked off just then could never take.
    fn send_runs(&mut self) {
        self.batch.new_runs = self.runs.after(self.runs_sent);
        self.runs_sent += self.batch.new_runs.len();
    }

    /// False in a process that was forked off: the model's thread stayed behind, and nothing is recorded there.
    fn is_ours(&self) -> bool {
        std::process::id() == self.process
    }

    /// Models what is left; gives everything counted, `None` in a process that was forked off.
    pub(super) fn finish(mut self: Box<Self>) -> Option<Counts> {
        if !self.is_ours() {
            // Its worker, which the other process has, can be neither waited for nor dropped.
            std::mem::forget(self);
            return None;
        }
        self.send_runs();
        let ThreadProfile { batch, model, .. } = *self;
        let mut model = match model {
            Place::Here(model) => model,
            Place::Beside(worker) => worker.finish(),
            Place::Nowhere => return None,
        };
        model.simulate(&batch);
        Some(model.into_counts())
    }
}
