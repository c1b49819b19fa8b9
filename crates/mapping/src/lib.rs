//! The bytes of a file: read when it is small, mapped when it is large.
//!
//! A kernel with debug information has 600 MB, of which its types need a third. Mapped, only what is
//! used is brought in, once, and what was used can be given back. A small file is read: a linker may
//! be about to write it again, and a mapping would change or vanish under the reader.

use memmap2::{Mmap, UncheckedAdvice};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// Files from this size on are mapped. Programs that are rebuilt while they are looked at are smaller.
const MAPPED_FROM_BYTES: u64 = 64 << 20;
/// A range to be given back is cut to whole pages of this size, the largest that Linux uses for files
/// on the machines that Lineup runs on.
const PAGE_BYTES: usize = 64 << 10;

/// The bytes of a file.
#[derive(Debug)]
pub struct FileBytes(Held);

#[derive(Debug)]
enum Held {
    Read(Vec<u8>),
    Mapped(Mmap),
}

impl FileBytes {
    /// The bytes of the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be opened, read or mapped.
    ///
    /// ```
    /// let bytes = lineup_mapping::FileBytes::open("/proc/self/comm".as_ref()).unwrap();
    /// assert!(bytes.as_ref().ends_with(b"\n"));
    /// ```
    pub fn open(path: &Path) -> io::Result<FileBytes> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() < MAPPED_FROM_BYTES {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return Ok(FileBytes(Held::Read(bytes)));
        }
        // SAFETY: the mapping is private and never written to. Its bytes are those of a regular file,
        // which stay as they are unless another process writes into or cuts that very file while we
        // read it. Nothing that Lineup or a compiler, linker or package manager does is of that kind:
        // they write a new file and rename it, and the mapping keeps the old one alive. Whoever does
        // it nonetheless gets wrong figures, or ends this process by SIGBUS: readers of the bytes
        // check every index against the slice's own length, which does not change.
        let mapped = unsafe { Mmap::map(&file) }?;
        Ok(FileBytes(Held::Mapped(mapped)))
    }

    /// Says that a range of the bytes is not needed for now. Memory of a mapped file is given back; the
    /// bytes stay readable, and are brought in again when read.
    pub fn release(&self, range: Range<usize>) {
        let Held::Mapped(mapped) = &self.0 else { return };
        let start = range.start.next_multiple_of(PAGE_BYTES);
        let end = range.end.min(mapped.len()) / PAGE_BYTES * PAGE_BYTES;
        if start >= end {
            return;
        }
        // SAFETY: MADV_DONTNEED on a mapping of a file makes the next access read the file again, and
        // nothing was ever written to this private mapping, so that the bytes stay the same for every
        // slice that others hold. The range lies inside the mapping.
        let given_back =
            unsafe { mapped.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start) };
        // Advice that is not taken costs memory and nothing else.
        drop(given_back);
    }
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Held::Read(bytes) => bytes,
            Held::Mapped(mapped) => mapped,
        }
    }
}
