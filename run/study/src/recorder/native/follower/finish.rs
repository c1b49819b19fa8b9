//! The end of a log: the counts of its process, and the notes for the user.

use super::Follower;
use crate::error::Result;
use lineup_model::first_names;
use lineup_model::region::{Region, RegionId};
use lineup_recording::{RegionCounts, Summary, Unfollowed};
use std::sync::atomic::Ordering::Acquire;

impl Follower<'_> {
    /// Writes the waiting records, and the counts, with the programs that ran unrecorded.
    pub(in crate::recorder::native) fn finish(mut self, unfollowed: Vec<Unfollowed>) -> Result<()> {
        self.process.output().start()?;
        let ended = self.end();
        let regions = self.counts_in_all();
        let notes = self.all_notes();
        let mut encoder = self.process.encoder();
        encoder.summary(&Summary {
            process: self.process.id,
            regions,
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            threads: self.ended_threads,
            unfollowed,
            notes,
            ..Summary::default()
        });
        self.process.write(&mut encoder)?;
        ended
    }

    /// The counts of all threads, and the engine's own counts.
    fn counts_in_all(&mut self) -> Vec<RegionCounts> {
        let mut counts = std::mem::take(&mut self.counts);
        for (number, counts) in counts.iter_mut().enumerate() {
            counts.seen = self.memory.region(number).calls.load(Acquire);
            counts.in_handlers = self.memory.region(number).in_handlers.load(Acquire);
        }
        counts
    }

    fn all_notes(&mut self) -> Vec<String> {
        let regions = self.plan.header.regions.iter();
        let is_out = |id: RegionId| self.memory.region(usize::from(id.0)).is_out.load(Acquire) != 0;
        let ran_untouched = regions.filter(|(id, _)| is_out(*id)).map(|(_, region)| {
            format!(
                "calls of {} after the last that was wanted ran untouched and were not counted",
                region.name
            )
        });
        let mut notes: Vec<String> = ran_untouched.chain(self.note_of_forks()).collect();
        let passed_over = self.memory.control().passed_over.load(Acquire);
        if passed_over > 0 {
            notes.push(format!(
                "{passed_over} calls were not recorded, since too many threads were inside calls"
            ));
        }
        notes.extend(self.notes_of_threads());
        notes.extend(self.notes_of_files());
        notes.extend(self.process.notes());
        notes.append(&mut self.notes);
        notes
    }

    /// The number of calls of each thread, where each has as many recorded.
    fn notes_of_threads(&self) -> Vec<String> {
        const MOST: usize = 16;
        let regions = self.plan.header.regions.iter();
        let note = |(id, region): (RegionId, &Region)| {
            let calls = self.memory.thread_calls(usize::from(id.0));
            let range = calls.iter().min().zip(calls.iter().max());
            let texts: Vec<String> = calls.iter().map(u64::to_string).collect();
            range.map(|(least, most)| match calls.len() <= MOST {
                true => format!("calls of {} that each thread made: {}", region.name, texts.join(", ")),
                false => {
                    format!("each of {} threads made {least} to {most} calls of {}", calls.len(), region.name)
                }
            })
        };
        regions.filter_map(note).collect()
    }

    /// Functions of one name in several files.
    fn notes_of_files(&self) -> Vec<String> {
        const MOST: usize = 4;
        let note = |(id, region): (RegionId, &Region)| {
            let own = self.files.get(&id.0).filter(|own| own.len() > 1)?;
            let files: Vec<&String> = own.iter().collect();
            Some(format!(
                "{} is a function of each of these files, and calls of all are recorded: {}",
                region.name,
                first_names(&files, MOST)
            ))
        };
        self.plan.header.regions.iter().filter_map(note).collect()
    }

    fn note_of_forks(&self) -> Option<String> {
        let forked = match self.memory.control().forked.load(Acquire) {
            0 => return None,
            1 => "a process was forked off".to_owned(),
            many => format!("{many} processes were forked off"),
        };
        let numbers = 0..self.pickers.len();
        let unwatched: u64 = numbers.map(|number| self.memory.region(number).unwatched.load(Acquire)).sum();
        Some(match unwatched {
            0 => format!("{forked}, and called none of these functions"),
            calls => format!("{forked}; calls of these functions there, not recorded: {calls}"),
        })
    }
}
