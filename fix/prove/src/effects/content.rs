//! A stream of bytes, kept small: a fingerprint of all, the first bytes, and a fingerprint of each short chunk.

use crate::output::{Collector, Output};
use std::hash::{DefaultHasher, Hasher};

/// The longest chunk. A chunk ends after a line feed or at this length: a line of text with a time in it is then one
/// chunk that two runs do not share, and the other lines can still be compared.
const CHUNK_BYTES: usize = 256;

/// The largest number of kept chunks. The content after them is compared as a whole.
const KEPT_CHUNKS: usize = 1 << 18;

/// Everything a stream or a file carried: equal when every byte was equal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    /// All of it.
    pub whole: Output,
    chunks: Vec<Chunk>,
}

/// A line, or a part of a long one. Fingerprints are compared within one process only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Chunk {
    pub(super) fingerprint: u64,
    pub(super) size_bytes: u16,
}

impl Content {
    /// The content that consists of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut collector = ContentCollector::new(&[]);
        collector.add(bytes);
        collector.finish()
    }

    /// Its first chunks in order.
    pub(super) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The number of bytes that the kept chunks cover.
    pub(super) fn covered_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.size_bytes)).sum()
    }
}

/// Takes in a stream part by part.
///
/// The two variants of a program run in two folders whose paths have equal length. A program that prints its folder
/// would seem to differ, so the folder's path is taken as if it were another of the same length.
pub struct ContentCollector {
    folder: Vec<u8>,
    /// The end of the added bytes, as long as it may be the beginning of the folder's path.
    held: Vec<u8>,
    whole: Collector,
    chunks: Vec<Chunk>,
    chunk: DefaultHasher,
    chunk_bytes: usize,
}

impl ContentCollector {
    /// A collector for a run in this folder. An empty folder leaves the run's path unreplaced.
    pub fn new(folder: &[u8]) -> Self {
        Self {
            folder: folder.to_vec(),
            held: Vec::new(),
            whole: Collector::default(),
            chunks: Vec::new(),
            chunk: DefaultHasher::new(),
            chunk_bytes: 0,
        }
    }

    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        if self.folder.is_empty() {
            return self.take(bytes);
        }
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(bytes);
        hide_folder(&mut text, &self.folder);
        let held = open_end(&text, &self.folder);
        self.held = text.split_off(text.len() - held);
        self.take(&text);
    }

    /// The collected content.
    pub fn finish(mut self) -> Content {
        let held = std::mem::take(&mut self.held);
        self.take(&held);
        self.end_piece();
        Content { whole: self.whole.finish(), chunks: self.chunks }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.whole.add(bytes);
        let mut rest = bytes;
        while !rest.is_empty() && self.chunks.len() < KEPT_CHUNKS {
            let room = CHUNK_BYTES - self.chunk_bytes;
            let line = rest.iter().take(room).position(|byte| *byte == b'\n');
            let (now, later) = rest.split_at(line.map_or(room.min(rest.len()), |at| at + 1));
            self.chunk.write(now);
            self.chunk_bytes += now.len();
            if line.is_some() || self.chunk_bytes == CHUNK_BYTES {
                self.end_piece();
            }
            rest = later;
        }
    }

    fn end_piece(&mut self) {
        if self.chunk_bytes == 0 {
            return;
        }
        let fingerprint = self.chunk.finish();
        self.chunks.push(Chunk { fingerprint, size_bytes: self.chunk_bytes as u16 });
        self.chunk = DefaultHasher::new();
        self.chunk_bytes = 0;
    }
}

/// Replaces the folder's path by as many dots.
pub fn hide_folder(text: &mut [u8], folder: &[u8]) {
    if folder.is_empty() {
        return;
    }
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| memchr::memmem::find(rest, folder)) {
        let end = from + at + folder.len();
        if let Some(path) = text.get_mut(from + at..end) {
            path.fill(b'.');
        }
        from = end;
    }
}

/// The number of bytes at the end of the text that may begin the folder's path.
fn open_end(text: &[u8], folder: &[u8]) -> usize {
    let longest = text.len().min(folder.len() - 1);
    (1..=longest).rev().find(|count| text.ends_with(&folder[..*count])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_parts(parts: &[&[u8]], folder: &[u8]) -> Content {
        let mut collector = ContentCollector::new(folder);
        parts.iter().for_each(|part| collector.add(part));
        collector.finish()
    }

    #[test]
    fn how_a_stream_is_cut_into_calls_does_not_matter() {
        let whole = Content::of(b"one\ntwo\nthree");
        assert_eq!(in_parts(&[b"o", b"ne\ntw", b"", b"o\nthree"], b""), whole);
        assert_eq!(whole.chunks().iter().map(|chunk| chunk.size_bytes).collect::<Vec<_>>(), [4, 4, 5]);
    }

    #[test]
    fn long_lines_are_cut_into_pieces() {
        let content = Content::of(&[b'x'; 2 * CHUNK_BYTES + 1]);
        assert_eq!(content.chunks().len(), 3);
        assert_eq!(content.covered_bytes(), 2 * CHUNK_BYTES as u64 + 1);
    }

    #[test]
    fn the_runs_folder_does_not_count_even_when_two_calls_write_it() {
        let in_a = in_parts(&[b"in /tmp/x", b"/a/prog\n"], b"/tmp/x/a");
        let in_b = in_parts(&[b"in /tmp/x/b/pr", b"og\n"], b"/tmp/x/b");
        assert_eq!(in_a, in_b);
        assert_eq!(in_a.whole.size_bytes, "in /tmp/x/a/prog\n".len() as u64);
        assert_ne!(in_parts(&[b"in /tmp/y/a/prog\n"], b"/tmp/x/a"), in_a);
    }

    #[test]
    fn what_only_begins_like_the_folder_is_not_lost() {
        assert_eq!(in_parts(&[b"at /tmp/x"], b"/tmp/x/a").whole, Output::of(b"at /tmp/x"));
        assert_eq!(in_parts(&[b"aab"], b"ab").whole, Output::of(b"a.."));
    }

    #[test]
    fn no_more_chunks_are_kept_than_the_limit() {
        let lines = "\n".repeat(KEPT_CHUNKS + 2);
        let content = Content::of(lines.as_bytes());
        assert_eq!(content.chunks().len(), KEPT_CHUNKS);
        assert!(content.covered_bytes() < content.whole.size_bytes);
    }
}
