//! A program's output, kept small: a fingerprint of all of it and its first bytes.

use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// Everything one stream carried: equal when every byte was equal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Output {
    /// The number of bytes.
    pub size_bytes: u64,
    /// SHA-256 of all of them.
    pub fingerprint: [u8; 32],
    /// The first [`HEAD_BYTES`] of them.
    pub head: Vec<u8>,
    /// True when the last of them ends no line.
    pub ends_amid_line: bool,
}

/// The length of the kept start of a stream, which shows where two differ.
pub const HEAD_BYTES: usize = 4096;

impl Output {
    /// The output that consists of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut collector = Collector::default();
        collector.add(bytes);
        collector.finish()
    }

    /// Reads a stream to its end in bounded memory.
    ///
    /// # Errors
    /// When reading fails.
    pub fn read(stream: &mut impl Read) -> io::Result<Self> {
        let mut collector = Collector::default();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(collector.finish()),
                Ok(count) => collector.add(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The first difference between two outputs, in words; `None` when they are equal.
    pub fn difference(&self, other: &Output) -> Option<String> {
        if self == other {
            return None;
        }
        let parted = self.head.iter().zip(&other.head).position(|(a, b)| a != b);
        Some(match parted {
            Some(at) => {
                let line = self.head.iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
                format!("first different byte at offset {at}, line {line}")
            }
            None if self.size_bytes != other.size_bytes => {
                format!("{} bytes against {}", self.size_bytes, other.size_bytes)
            }
            None => format!("they part after the first {HEAD_BYTES} bytes"),
        })
    }
}

/// Takes in a stream part by part.
#[derive(Default)]
pub(crate) struct Collector {
    size_bytes: u64,
    hasher: Sha256,
    head: Vec<u8>,
    ends_amid_line: bool,
}

impl Collector {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.size_bytes += bytes.len() as u64;
        self.hasher.update(bytes);
        if let Some(last) = bytes.last() {
            self.ends_amid_line = *last != b'\n';
        }
        let wanted = HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(wanted));
    }

    pub(crate) fn finish(self) -> Output {
        Output {
            size_bytes: self.size_bytes,
            fingerprint: self.hasher.finalize().into(),
            head: self.head,
            ends_amid_line: self.ends_amid_line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_equal_however_they_arrive() {
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        assert_eq!(Output::read(&mut bytes.as_slice()).unwrap(), Output::of(&bytes));
        assert_eq!(Output::of(&bytes).head.len(), HEAD_BYTES);
    }

    #[test]
    fn differences_say_where() {
        let difference = |a: &[u8], b: &[u8]| Output::of(a).difference(&Output::of(b));
        assert_eq!(difference(b"same", b"same"), None);
        assert_eq!(difference(b"a\nb", b"a\nc").unwrap(), "first different byte at offset 2, line 2");
        assert_eq!(difference(b"aa\nbb", b"aa\nbc").unwrap(), "first different byte at offset 4, line 2");
        assert_eq!(difference(b"ab", b"abc").unwrap(), "2 bytes against 3");
        let long = vec![b'x'; 2 * HEAD_BYTES];
        let mut other = long.clone();
        other[2 * HEAD_BYTES - 1] = b'y';
        assert_eq!(difference(&long, &other).unwrap(), "they part after the first 4096 bytes");
    }

    /// Fails once in this way, then gives two bytes and ends.
    struct Failing(Option<io::ErrorKind>, &'static [u8]);

    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.take() {
                Some(kind) => Err(kind.into()),
                None => self.1.read(buffer),
            }
        }
    }

    #[test]
    fn a_read_that_a_signal_interrupts_is_repeated_and_other_failures_are_told() {
        let read = |kind| Output::read(&mut Failing(Some(kind), b"ab"));
        assert_eq!(read(io::ErrorKind::Interrupted).unwrap(), Output::of(b"ab"));
        assert_eq!(read(io::ErrorKind::BrokenPipe).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
