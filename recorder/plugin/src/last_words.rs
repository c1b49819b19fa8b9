//! The data that a process writes when it ends: counts, and findings for the next run.

use crate::limits::MAX_THREADS;
use crate::recorder::{Recorder, Region};
use lineup_recording::plan::{BlockRoles, Discovery};
use lineup_recording::{CallSizes, RegionCounts, Summary};
use std::convert::Infallible;
use std::sync::atomic::Ordering;

impl Recorder {
    /// The program is about to end: every thread is closed, and the last words are written.
    pub(crate) fn finish(&self) {
        if !self.end_threads() {
            return;
        }
        if self.is_discovery {
            self.write_discovery(&self.plan.output, self.discovery());
        } else {
            self.write_summary();
            if !self.plan.unwatched_output.is_empty() {
                let gaps = self.gaps.load(Ordering::Relaxed);
                let found = Discovery { gaps, complete: true, ..Discovery::default() };
                self.write_discovery(&self.plan.unwatched_output, found);
            }
        }
        self.journal.end_process();
    }

    fn write_summary(&self) {
        let process = self.process();
        let counts =
            |region: &Region| RegionCounts { seen: region.seen.load(Ordering::Relaxed), ..region.lock().0 };
        let mut encoder = self.encoder();
        if let Some(profile) = &self.profile {
            let Ok(()) = profile.write(&mut encoder, |encoder| -> Result<(), Infallible> {
                self.write(encoder);
                Ok(())
            });
        }
        let mut notes = self.notes();
        notes.extend(self.notes_of_chosen());
        encoder.summary(&Summary {
            process,
            regions: self.regions.iter().map(counts).collect(),
            total_instructions: self.follows_all().then(|| self.instructions.load(Ordering::Relaxed)),
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            threads: self.threads_begun.load(Ordering::Relaxed),
            unrecorded_threads: self.lost_threads.load(Ordering::Relaxed),
            forks: self.forks.load(Ordering::Relaxed),
            unfollowed: self.translation().unfollowed.clone(),
            all_calls: match self.counts_sizes() {
                true => self.sizes(),
                // The first run counted the functions of all processes.
                false if process.0 == 0 => self.plan.discovery.sizes.clone(),
                false => Vec::new(),
            },
            notes,
        });
        self.write(&mut encoder);
    }

    fn sizes(&self) -> Vec<CallSizes> {
        self.regions.iter().map(|region| region.lock().1.clone()).collect()
    }

    fn discovery(&self) -> Discovery {
        let notes = self.notes();
        let translation = self.translation();
        Discovery {
            entries: translation.found_entries.clone(),
            calls: self.regions.iter().map(|region| region.seen.load(Ordering::Relaxed)).collect(),
            sizes: self.sizes(),
            unfollowed: translation.unfollowed.clone(),
            images: translation.images.loaded().map(|image| image.path.clone()).collect(),
            instructions: self.instructions.load(Ordering::Relaxed),
            threads: self.threads_begun.load(Ordering::Relaxed),
            forks: self.forks.load(Ordering::Relaxed),
            notes,
            complete: true,
            ..Discovery::default()
        }
    }

    /// Adds the blocks that were marked and writes it all.
    fn write_discovery(&self, path: &str, mut discovery: Discovery) {
        let translation = self.translation();
        let marked =
            translation.registry.blocks().iter().filter(|block| block.found() != BlockRoles::default());
        for block in marked {
            let start = block.facts.start;
            if let Some(image) = translation.images.image_at(start) {
                let roles = discovery.blocks.entry(image.path.clone()).or_default();
                let role = roles.entry(image.to_link(start)).or_default();
                *role = role.with(block.found());
            }
        }
        let path = Discovery::path_of(path, self.process());
        if let Err(error) = std::fs::write(&path, discovery.to_text()) {
            eprintln!("lineup: cannot write {path}: {error}");
        }
    }

    fn notes(&self) -> Vec<String> {
        let lost = self.lost_threads.load(Ordering::Relaxed);
        let mut notes = Vec::new();
        if lost > 0 {
            notes.push(format!("{lost} threads were not recorded: more than {MAX_THREADS} lived at once"));
        }
        notes
    }

    /// Notes on regions whose name the native engine takes for another function.
    fn notes_of_chosen(&self) -> Vec<String> {
        let chosen = self.translation().images.chosen_regions();
        let regions = self.plan.header.regions.iter().filter(|(id, _)| chosen.contains(&id.0));
        let note = |name: &str| {
            format!(
                "{name} is chosen by the loader: under the emulator its name means the function that chooses"
            )
        };
        regions.map(|(_, region)| note(&region.name)).collect()
    }
}
