//! The entries of the watched functions: the engine gets them as files are mapped.

use super::Follower;
use crate::error::{Error, Result};
use crate::recorder::native::requirements::loads_libraries;
use lineup_follow::images::EntryPlace;
use lineup_recording::native::{entry, state};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Release};

impl Follower<'_> {
    /// Sends the entries' addresses to the engine.
    pub(super) fn answer(&mut self) -> Result<()> {
        let files = self.process.look_at_images()?;
        let mut known = self.memory.control().entries.load(Acquire) as usize;
        let chosen: Vec<EntryPlace> = (0..known).filter_map(|number| self.take_chosen(number)).collect();
        let mut addresses: Vec<u64> = (0..known).map(|number| self.memory.address_of(number)).collect();
        let mut unused = (0..known).filter(|number| addresses[*number] == 0).collect::<Vec<_>>();
        // A function that already chose an entry is not asked again.
        let used = (0..known).filter(|number| addresses[*number] != 0);
        let choosers: Vec<u64> = used.map(|number| self.memory.chooser_of(number)).collect();
        addresses.extend(choosers);
        let mut places: Vec<(EntryPlace, bool)> = Vec::new();
        for place in self.process.images.entries(&files) {
            self.found.insert(place.region);
            if let Some(image) = self.process.images.image_at(place.pc) {
                self.files.entry(place.region).or_default().insert(image.path.clone());
            }
            places.push((place, false));
        }
        if self.is_timed {
            let whole =
                places.iter().map(|(place, _)| place).filter(|place| !place.is_chooser).chain(&chosen);
            places.iter().try_for_each(|(place, _)| self.tell_flushed(place))?;
            let parts: Vec<_> = whole.flat_map(|place| self.process.images.parts(place)).collect();
            places.extend(parts.into_iter().map(|part| (part, true)));
        }
        for (place, is_part) in places {
            let is_known = addresses.contains(&place.pc);
            match unused.pop().or((known < entry::MOST).then_some(known)) {
                Some(number) if !is_known => {
                    self.memory.set_entry(number, &place, is_part);
                    known = known.max(number + 1);
                }
                Some(number) if number < known => unused.push(number),
                _ => {}
            }
        }
        self.memory.control().entries.store(known as u64, Release);
        let lacks_some = self.found.len() < self.pickers.len();
        // A library that is loaded later may have it.
        let may_come = || files.iter().any(|file| loads_libraries(Path::new(&file.path)));
        let is_refused = std::mem::take(&mut self.needs_all) && lacks_some && !may_come();
        self.memory.control().state.store(if is_refused { state::REFUSED } else { state::ANSWERED }, Release);
        Ok(())
    }

    /// Sends the engine the code that is flushed before calls of a function, where it is not its own.
    fn tell_flushed(&self, place: &EntryPlace) -> Result<()> {
        if self.flushed.is_empty() {
            return Ok(());
        }
        let image = self.process.images.image_at(place.pc);
        let lines = image.and_then(|image| {
            self.flushed.iter().find_map(|recorded| recorded.lines_in(place.region, image))
        });
        let lines = lines.ok_or_else(|| {
            let file = image.map_or("no file", |image| &image.path);
            Error::Start(format!(
                "the recording has no calls of the function in this {file}: it was recorded from another"
            ))
        })?;
        self.memory.set_flushed(place.region, &lines);
        Ok(())
    }

    /// Sends the engine the size of a chosen function, and reports its name to the user.
    fn take_chosen(&mut self, number: usize) -> Option<EntryPlace> {
        if !self.memory.is_just_chosen(number) {
            return None;
        }
        let region = self.memory.region_of(number) as u16;
        let (place, name) = self.process.take_chosen(self.memory.address_of(number), region);
        self.memory.set_chosen(number, &place);
        if let Some((_, own)) = self.plan.header.regions.iter().find(|(id, _)| id.0 == region) {
            let note = format!("{} (chosen: {name}), with all calls of that code, under any name", own.name);
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        Some(place)
    }

    /// Looks at a process before the engine is in it. False when it lacks a function.
    pub(in crate::recorder::native) fn know(&mut self, process: u32) -> Result<bool> {
        self.memory.control().process.store(u64::from(process), Release);
        self.process.note_process()?;
        let files = self.process.look_at_images()?;
        let regions: BTreeSet<u16> =
            self.process.images.entries(&files).iter().map(|place| place.region).collect();
        Ok(regions.len() == self.pickers.len())
    }
}
