//! One guest thread's way to its model: callbacks fill batches, and full ones are modelled in order.

use super::code::SharedCode;
use super::front::Front;
use super::handle::Handle;
use super::model::{Counts, Model};
use super::worker::Worker;
use crate::describe::Descriptions;
use crate::ffi::Api;
use lineup_cache::CacheSpec;
use std::sync::Arc;

/// One thread's events, and who models them.
pub(crate) struct ThreadProfile {
    front: Front,
    descriptions: Descriptions,
    model: Place,
    code: Arc<SharedCode>,
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
    pub(super) fn new(
        specs: &[CacheSpec],
        code: Arc<SharedCode>,
        api: Api,
        may_run_beside: bool,
    ) -> Box<Self> {
        Box::new(ThreadProfile {
            front: Front::new(specs),
            descriptions: Descriptions::new(api),
            model: Place::Here(Model::new(specs)),
            code,
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
        self.front.enter(run)
    }

    /// Enters a block that is new, or with a new batch.
    pub(crate) fn enter_slowly(&mut self, run: u32) {
        self.prepare();
        self.front.enter(run);
    }

    /// Takes in a chain of accesses whose first is to `address`, and with `BEGINS` the block that it begins; false when that
    /// needs [`Self::chain_slowly`].
    #[inline]
    pub(crate) fn chain<const BEGINS: bool>(&mut self, chain: Handle, address: u64) -> bool {
        self.front.chain::<BEGINS>(chain, address)
    }

    /// Takes in a chain that is new, or with a new batch.
    pub(crate) fn chain_slowly<const BEGINS: bool>(&mut self, chain: Handle, address: u64) {
        self.prepare();
        self.front.chain::<BEGINS>(chain, address);
    }

    /// Whether the emulator's `info` describes a store.
    #[inline]
    pub(crate) fn is_store(&mut self, info: u32) -> bool {
        self.descriptions.of(info).is_store
    }

    /// Accesses data from the instruction with these counters, as the emulator's `info` describes it; false when
    /// that needs [`Self::access_slowly`].
    #[inline]
    pub(crate) fn access(&mut self, counter: u32, address: u64, info: u32) -> bool {
        let what = self.descriptions.kept(info);
        what.is_of(info) && self.front.access(counter, address, what)
    }

    /// Accesses data when the block or the description is new, or with a new batch.
    pub(crate) fn access_slowly(&mut self, counter: u32, address: u64, info: u32) {
        let what = self.descriptions.of(info);
        if !self.front.access(counter, address, &what) {
            self.prepare();
            self.front.access(counter, address, &what);
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
