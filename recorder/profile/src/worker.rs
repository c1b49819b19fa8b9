//! A host thread that runs a guest thread's model in parallel to it.

use crate::events::Batch;
use crate::model::Model;
use crate::signal_masks::without_signals;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Batches under way between the two threads.
const BATCHES: usize = 3;

/// The thread, and the channels to and from it.
pub(crate) struct Worker {
    full: SyncSender<Batch>,
    empty: Receiver<Batch>,
    thread: JoinHandle<Box<Model>>,
}

impl Worker {
    /// Hands a model to a thread of its own; returns it when no thread can be started.
    pub(crate) fn start(model: Box<Model>) -> Result<Worker, Box<Model>> {
        let (full, work) = sync_channel::<Batch>(BATCHES);
        let (done, empty) = channel();
        (0..BATCHES).for_each(|_| drop(done.send(Batch::new())));
        let (hand_over, take) = channel::<Box<Model>>();
        let run = move || {
            let mut model = take.recv().expect("the model is sent right after the start");
            for mut batch in work {
                model.simulate(&batch);
                batch.clear();
                // At the very end no thread waits for it.
                drop(done.send(batch));
            }
            model
        };
        let thread = without_signals(|| Builder::new().name("lineup-model".into()).spawn(run));
        match thread {
            Ok(thread) => {
                drop(hand_over.send(model));
                Ok(Worker { full, empty, thread })
            }
            Err(_) => Err(model),
        }
    }

    /// Exchanges a full batch for an empty one; waits when the model is behind. A model that panicked ends the
    /// emulator, as a panic in a callback does.
    pub(crate) fn exchange(&self, batch: &mut Batch) {
        let empty = self.empty.recv().expect("the model's thread runs");
        self.full.send(std::mem::replace(batch, empty)).expect("the model's thread runs");
    }

    /// Waits for the last batch.
    pub(crate) fn finish(self) -> Box<Model> {
        drop(self.full);
        self.thread.join().expect("the model's thread ran to its end")
    }
}
