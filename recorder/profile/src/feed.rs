//! Feeds a guest thread's model: callbacks fill batches, and full ones are modelled in order.

use crate::code::SharedCode;
use crate::front::{Front, Kind};
use crate::handle::Handle;
use crate::model::{Counts, Model};
use crate::sample::OfThread;
use crate::worker::Worker;
use lineup_cache::CacheSpec;
use std::sync::Arc;

/// One thread's events, and their model.
pub struct ThreadProfile {
    front: Front,
    model: ModelThread,
    /// The number of its context.
    context: u32,
    code: Arc<SharedCode>,
    may_run_beside: bool,
    process: u32,
    sampler: Option<OfThread>,
    /// The window under way, and how many batches of it are to come.
    window: Option<(u64, u64)>,
}

/// The thread that runs a thread's model.
enum ModelThread {
    /// In callbacks.
    Here(Box<Model>),
    /// On a thread of its own.
    Beside(Worker),
    /// Moving from one to the other.
    Nowhere,
}

impl ThreadProfile {
    /// Before the first event. With `may_run_beside` the model gets a thread of its own when the first batch is full,
    /// so that threads with little work start none.
    pub(crate) fn new(
        specs: &[CacheSpec],
        code: Arc<SharedCode>,
        may_run_beside: bool,
        sampler: Option<OfThread>,
    ) -> Box<Self> {
        let mut thread = Box::new(ThreadProfile {
            front: Front::new(specs),
            context: 0,
            model: ModelThread::Here(Model::new(specs, sampler.clone())),
            code,
            may_run_beside,
            process: std::process::id(),
            sampler,
            window: None,
        });
        if let Some(sampler) = &thread.sampler {
            thread.front.begin_batch(sampler.begin_thread(&mut thread.window));
        }
        thread
    }

    /// An empty batch begins.
    fn begin_batch(&mut self) {
        if let Some(sampler) = &self.sampler {
            self.front.begin_batch(sampler.begin(&mut self.window));
        }
    }

    pub(crate) fn may_run_beside(&self) -> bool {
        self.may_run_beside
    }

    /// Enters the block that begins with a run; false when that needs [`Self::enter_slowly`].
    #[inline]
    pub fn enter(&mut self, run: u32) -> bool {
        self.front.enter(run)
    }

    /// Enters a block that is new, or with a new batch.
    pub fn enter_slowly(&mut self, run: u32) {
        self.prepare();
        self.front.enter(run);
    }

    /// Takes in a chain of accesses whose first is to `address`, and with `BEGINS` the block that it begins; false when
    /// that needs [`Self::chain_slowly`].
    #[inline]
    pub fn chain<const BEGINS: bool>(&mut self, chain: Handle, address: u64) -> bool {
        self.front.chain::<BEGINS>(chain, address)
    }

    /// Takes in a chain that is new, or with a new batch.
    pub fn chain_slowly<const BEGINS: bool>(&mut self, chain: Handle, address: u64) {
        self.prepare();
        self.front.chain::<BEGINS>(chain, address);
    }

    /// Accesses data from the instruction with these counters; false when that needs [`Self::access_slowly`].
    #[inline]
    pub fn access(&mut self, counter: u32, address: u64, what: Kind) -> bool {
        self.front.access(counter, address, what)
    }

    /// Accesses data when the block is new, or with a new batch.
    pub fn access_slowly(&mut self, counter: u32, address: u64, what: Kind) {
        if !self.front.access(counter, address, what) {
            self.prepare();
            self.front.access(counter, address, what);
        }
    }

    /// Works for the context of this number from here on; misses for number 0 count for no context.
    pub fn context(&mut self, number: u32) {
        if self.context != number {
            self.context = number;
            self.prepare();
            self.front.batch.context(number);
        }
    }

    /// Takes in new code, and hands a full batch over.
    fn prepare(&mut self) {
        self.learn();
        if !self.front.batch.has_room() {
            self.hand_over();
        }
    }

    /// Takes in the code met since the last time. The model does not look for itself: its thread would hold a lock that
    /// a process forked off just then could never take.
    fn learn(&mut self) {
        if self.is_ours() {
            self.front.learn(&self.code);
        }
    }

    /// Gives the batch to the model and takes an empty one.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self) {
        if !self.is_ours() {
            return self.front.batch.clear();
        }
        self.model = match std::mem::replace(&mut self.model, ModelThread::Nowhere) {
            ModelThread::Here(model) if self.may_run_beside => {
                Worker::start(model).map_or_else(ModelThread::Here, ModelThread::Beside)
            }
            place => place,
        };
        match &mut self.model {
            ModelThread::Here(model) => {
                model.simulate(&self.front.batch);
                self.front.batch.clear();
            }
            ModelThread::Beside(worker) => worker.exchange(&mut self.front.batch),
            ModelThread::Nowhere => {}
        }
        self.begin_batch();
    }

    /// False in a process that was forked off: the model's thread stayed behind, and nothing is recorded there.
    fn is_ours(&self) -> bool {
        std::process::id() == self.process
    }

    /// Models the remaining events. Returns all counts; `None` in a forked process.
    pub(crate) fn finish(self: Box<Self>) -> Option<Counts> {
        if !self.is_ours() {
            // Its worker, which the other process has, can be neither waited for nor dropped.
            std::mem::forget(self);
            return None;
        }
        let ThreadProfile { front, model, .. } = *self;
        let mut model = match model {
            ModelThread::Here(model) => model,
            ModelThread::Beside(worker) => worker.finish(),
            ModelThread::Nowhere => return None,
        };
        model.simulate(&front.batch);
        Some(front.complete(model.into_counts()))
    }
}
