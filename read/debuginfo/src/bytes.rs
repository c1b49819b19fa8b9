//! Shared, immutable bytes: a file read or mapped by the caller, or a section made from it.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes that can be shared between threads: a part of a buffer or of a mapped file.
#[derive(Clone)]
pub struct Bytes {
    owner: Arc<dyn Releasable>,
    range: Range<usize>,
}

/// An owner of bytes that can give memory back for a while.
pub trait Releasable: AsRef<[u8]> + Send + Sync {
    /// Marks a range of the bytes as not needed for now. The bytes must stay the same for their holders.
    fn release(&self, range: Range<usize>);
}

/// An owner that keeps its memory.
struct MemoryOwner<T>(T);

impl<T: AsRef<[u8]>> AsRef<[u8]> for MemoryOwner<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl<T: AsRef<[u8]> + Send + Sync> Releasable for MemoryOwner<T> {
    fn release(&self, _range: Range<usize>) {}
}

impl Bytes {
    /// Takes over a buffer or a mapping. Its contents must not change afterwards: `as_ref` must return
    /// the same bytes every time.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Bytes::releasable(MemoryOwner(owner))
    }

    /// Takes over a mapping that can give memory back. Its contents must not change afterwards.
    pub fn releasable(owner: impl Releasable + 'static) -> Self {
        let len = owner.as_ref().len();
        Bytes { owner: Arc::new(owner), range: 0..len }
    }

    /// Marks a part as not needed for now, so that its owner may give the memory back.
    pub fn release(&self, range: Range<usize>) {
        let start = self.range.start.saturating_add(range.start);
        let end = self.range.start.saturating_add(range.end).min(self.range.end);
        self.owner.release(start..end);
    }

    /// No bytes.
    pub fn empty() -> Self {
        Bytes::new([])
    }

    /// A part that shares the same owner, or `None` when `range` does not lie inside.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        self.get(range.clone())?;
        let start = self.range.start;
        Some(Bytes { owner: Arc::clone(&self.owner), range: start + range.start..start + range.end })
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.owner).as_ref().get(self.range.clone()).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::new(bytes)
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Bytes::empty()
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
