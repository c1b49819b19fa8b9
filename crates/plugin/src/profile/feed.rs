//! One guest thread's way to its model: callbacks fill batches, and full ones are modelled in order.

use super::Runs;
use super::front::Front;
use super::model::{Counts, Model};
use super::worker::Worker;
use crate::describe::{Description, Descriptions};
use crate::ffi::Api;
use lineup_cache::CacheSpec;
use std::sync::Arc;

/// One thread's events, and who models them.
pub(crate) struct ThreadProfile {
    front: Front,
    descriptions: Descriptions,
    model: Place,
    runs: Arc<Runs>,
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
    pub(super) fn new(specs: &[CacheSpec], runs: Arc<Runs>, api: Api, may_run_beside: bool) -> Box<Self> {
        Box::new(ThreadProfile {
            front: Front::new(specs),
            descriptions: Descriptions::new(api),
            model: Place::Here(Model::new(specs)),
            runs,
            may_run_beside,
            process: std::process::id(),
        })
    }

    pub(super) fn may_run_beside(&self) -> bool {
        self.may_run_beside
    }

    /// Enters the block that begins with a run; false when that needs [`Self::enter`].
    #[inline]
    pub(crate) fn enter_again(&mut self, run: u32) -> bool {
        self.front.enter_again(run)
    }

    /// Enters the block that begins with a run.
    pub(crate) fn enter(&mut self, run: u32) {
        if !self.front.enter(run) {
            self.enter_slowly(run);
        }
    }

    /// Enters a block that is new, or with a new batch.
    #[cold]
    fn enter_slowly(&mut self, run: u32) {
        self.learn();
        if !self.front.enter(run) {
            self.hand_over();
            self.front.enter(run);
        }
    }

    /// Accesses data from the instruction with these counters, as the emulator's `info` describes it; false when
    /// that needs [`Self::access`].
    #[inline]
    pub(crate) fn access_again(&mut self, counter: u32, address: u64, info: u32) -> bool {
        let what = self.descriptions.kept(info);
        what.is_of(info) && self.front.access_again(counter, address, what)
    }

    /// Accesses data from the instruction with these counters.
    pub(crate) fn access(&mut self, counter: u32, address: u64, info: u32) {
        let what = self.descriptions.of(info);
        if !self.front.access(counter, address, &what) {
            self.access_slowly(counter, address, &what);
        }
    }

    /// Accesses data when the block is new, the address wide or the batch full.
    #[cold]
    fn access_slowly(&mut self, counter: u32, address: u64, what: &Description) {
        self.learn();
        let front = &mut self.front;
        if front.access(counter, address, what) || front.access_wide(counter, address, what) {
            return;
        }
        self.hand_over();
        let front = &mut self.front;
        if !front.access(counter, address, what) {
            front.access_wide(counter, address, what);
        }
    }

    /// Takes in the runs made since the last time. The model does not look for itself: its thread would hold a lock that
    /// a process forked off just then could never take.
    fn learn(&mut self) {
        if self.is_ours() {
            self.front.learn(&self.runs.after(self.front.known_runs()));
        }
    }

    /// Gives the batch to the model and takes an empty one.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self) {
        if !self.is_ours() {
            return self.front.batch.clear();
        }
        self.model = match std::mem::replace(&mut self.model, Place::Nowhere) {
            Place::Here(model) if self.may_run_beside => {
                Worker::start(model).map_or_else(Place::Here, Place::Beside)
            }
            place => place,
        };
        match &mut self.model {
            Place::Here(model) => {
                model.simulate(&self.front.batch);
                self.front.batch.clear();
            }
            Place::Beside(worker) => worker.exchange(&mut self.front.batch),
            Place::Nowhere => {}
        }
    }

    /// False in a process that was forked off: the model's thread stayed behind, and nothing is recorded there.
    fn is_ours(&self) -> bool {
        std::process::id() == self.process
    }

    /// Models what is left; gives everything counted, `None` in a process that was forked off.
    pub(super) fn finish(self: Box<Self>) -> Option<Counts> {
        if !self.is_ours() {
            // Its worker, which the other process has, can be neither waited for nor dropped.
            std::mem::forget(self);
            return None;
        }
        let ThreadProfile { front, model, .. } = *self;
        let mut model = match model {
            Place::Here(model) => model,
            Place::Beside(worker) => worker.finish(),
            Place::Nowhere => return None,
        };
        model.simulate(&front.batch);
        Some(front.complete(model.into_counts()))
    }
}
