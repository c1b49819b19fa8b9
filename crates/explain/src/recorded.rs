//! Explaining a recording: what is read from it once, and the passes over its calls.

use crate::error::ExplainError;
use crate::explainer::{Explainer, Options};
use crate::explanation::Explanation;
use crate::image::Image;
use lineup_debuginfo::DebugInfo;
use lineup_model::access::{Call, MemoryEvent, StackRange};
use lineup_model::image::LoadedImage;
use lineup_recording::{Damage, Ending, Event, Header, Reader, RecordingError, Summary};
use std::collections::BTreeSet;
use std::io::Read;

/// Everything in a recording but its calls.
#[derive(Clone, PartialEq, Debug)]
pub struct Survey {
    /// What was recorded, and how.
    pub header: Header,
    /// Files mapped into the program.
    pub images: Vec<LoadedImage>,
    /// Stacks of its threads.
    pub stacks: Vec<StackRange>,
    /// Bases that its threads were given, as far as system calls told.
    pub thread_bases: Vec<u64>,
    /// When memory began and ended its life.
    pub memory: Vec<MemoryEvent>,
    /// Runtime addresses of the instructions that accessed data in any call.
    pub pcs: BTreeSet<u64>,
    /// The recorder's counts; `None` when it did not get to write them.
    pub summary: Option<Summary>,
    /// How the program ended; `None` when that was not written.
    pub ending: Option<Ending>,
    /// Where the file stops being readable, when it does.
    pub damage: Option<Damage>,
    /// Calls in the recording.
    pub calls: u64,
}

impl Survey {
    /// Reads a recording through.
    pub fn read<R: Read>(mut reader: Reader<R>) -> Survey {
        let mut survey = Survey {
            header: reader.header().clone(),
            images: Vec::new(),
            stacks: Vec::new(),
            thread_bases: Vec::new(),
            memory: Vec::new(),
            pcs: BTreeSet::new(),
            summary: None,
            ending: None,
            damage: None,
            calls: 0,
        };
        for event in reader.by_ref() {
            match event {
                Event::Image(image) => survey.images.push(image),
                Event::Stack(stack) => survey.stacks.push(stack),
                Event::ThreadBase(base) => survey.thread_bases.push(base),
                Event::Call(call) => {
                    survey.calls += 1;
                    survey.pcs.extend(call.accesses.iter().map(|access| access.pc));
                }
                Event::Memory(event) => survey.memory.push(event),
                Event::Summary(summary) => Summary::add_to(&mut survey.summary, summary),
                Event::Ending(ending) => survey.ending = Some(ending),
                Event::Profile(_) | Event::Measured(_) | Event::System(_) | Event::Stream(_) => {}
            }
        }
        survey.damage = reader.damage().cloned();
        survey
    }

    /// Explains the calls. `debug` holds the debug info of each image, in the order of
    /// [`Survey::images`]; `open` opens the recording anew, once for each of two passes.
    ///
    /// # Errors
    /// When the recording cannot be opened again or the disassembler fails.
    pub fn explain<R: Read>(
        &self,
        debug: &[Option<DebugInfo>],
        options: Options,
        mut open: impl FnMut() -> Result<Reader<R>, RecordingError>,
    ) -> Result<Explanation, ExplainError> {
        let images = self.images.iter().enumerate().map(|(index, image)| {
            let debug = debug.get(index).and_then(Option::as_ref);
            Image::new(image.clone(), debug, &mut self.pcs.iter().copied())
        });
        let mut explainer = Explainer::new(
            images.collect(),
            &self.memory,
            &self.stacks,
            self.header.regions.clone(),
            options,
        );
        explainer.see_calls_made(
            self.summary.iter().flat_map(|summary| &summary.regions).map(|counts| counts.seen),
        );
        explainer.see_thread_bases(&self.thread_bases);
        for call in calls(open()?) {
            explainer.observe(&call)?;
        }
        explainer.settle();
        for call in calls(open()?) {
            explainer.explain(&call)?;
        }
        Ok(explainer.finish())
    }
}

fn calls<R: Read>(reader: Reader<R>) -> impl Iterator<Item = Call> {
    reader.filter_map(|event| match event {
        Event::Call(call) => Some(call),
        _ => None,
    })
}
