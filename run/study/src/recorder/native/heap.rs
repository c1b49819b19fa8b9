//! Whole programs: sends the engine the tables by which it sees allocations, see [`lineup_recording::native::heap`].

use crate::companions;
use crate::recorder::native::shared_memory::Memory;
use lineup_debuginfo::{CallerFrame, frame_rows};
use lineup_follow::images::Images;
use lineup_model::image::LoadedImage;
use lineup_recording::native::heap::{self, Allocator, FrameBase, FrameRule};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering::Release;

/// The tables' content so far.
#[derive(Default)]
pub(super) struct WrittenTables {
    files: BTreeSet<u64>,
    allocators: BTreeSet<u64>,
    rules: usize,
}

impl WrittenTables {
    /// Sends the tables of files that were mapped since the last time.
    pub(super) fn tell(&mut self, memory: &Memory, images: &Images) {
        for image in images.loaded() {
            if self.files.len() < heap::file::MOST && self.files.insert(image.start) {
                self.tell_rules(memory, image);
            }
        }
        for (name, allocator) in Allocator::names() {
            for address in images.symbols(name) {
                if self.allocators.len() < heap::MOST_ALLOCATORS && self.allocators.insert(address) {
                    let at = heap::ALLOCATORS + 2 * (self.allocators.len() - 1);
                    memory.set_heap(at, &[address, allocator.number()]);
                }
            }
        }
        memory.control().unwound.store(self.files.len() as u64, Release);
        memory.control().allocators.store(self.allocators.len() as u64, Release);
    }

    /// Sends a file's rules. A file whose rules cannot be read, or have no room, gets none.
    fn tell_rules(&mut self, memory: &Memory, image: &LoadedImage) {
        let rows = companions::read(Path::new(&image.path)).ok().and_then(|bytes| frame_rows(bytes).ok());
        let rules = rows.unwrap_or_default().into_iter().filter_map(|row| {
            let from = u32::try_from(image.to_runtime(row.from).checked_sub(image.start)?).ok()?;
            Some(FrameRule { from, base: row.caller.and_then(base) }.to_word())
        });
        let rules: Vec<u64> = rules.collect();
        let first = self.rules;
        let has_room = first + rules.len() <= heap::MOST_RULES;
        let count = if has_room { rules.len() } else { 0 };
        memory.set_heap(heap::RULES + first, &rules[..count]);
        self.rules += count;
        let at = heap::FILES + (self.files.len() - 1) * heap::file::WORDS;
        memory.set_heap(at, &[image.start, image.end, first as u64, count as u64]);
    }
}

/// A caller's frame in words.
fn base(caller: CallerFrame) -> Option<FrameBase> {
    let words = |bytes: u64| bytes.is_multiple_of(8).then(|| u16::try_from(bytes / 8).ok()).flatten();
    Some(FrameBase {
        is_of_frame_pointer: caller.is_of_frame_pointer,
        words: words(caller.bytes)?,
        saved_words: caller.saved_below.map_or(Some(0), words)?,
    })
}
