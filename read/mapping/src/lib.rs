//! The bytes of a file: read when it is small, mapped when it is large.
//!
//! Files come from anywhere, so only regular ones are opened: a device has no end, and a pipe waits for its writer. No
//! more memory is taken than the file's size justifies.
//!
//! A kernel with debug information has 600 MB, of which its types need a third. A mapping brings in only the parts that
//! are used, once, and can give used parts back. A small file is read: a linker may be about to write it again, and a
//! mapping would change or vanish under the reader.

use memmap2::{Advice, Mmap, MmapMut, UncheckedAdvice};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::ops::{DerefMut, Range};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Files from this size on are mapped. Programs that are rebuilt while they are looked at are smaller.
const MAPPED_FROM_BYTES: u64 = 64 << 20;
/// Files of the system, such as those below /proc, do not report their length. No useful one is longer.
const UNSAID_BYTES: u64 = 256 << 20;
/// No text that a person wrote or a tool printed for one has more.
const TEXT_BYTES: u64 = 256 << 20;
/// A range to be given back is cut to whole pages of this size, the largest that Linux uses for files
/// on the machines that Lineup runs on.
const PAGE_BYTES: usize = 64 << 10;

/// Zeroed memory of this process that the system has not touched yet, for which huge pages are asked.
///
/// # Errors
/// When there is no room for it, or the system has no huge pages.
///
/// ```
/// let memory = lineup_mapping::on_huge_pages(4 << 20).unwrap();
/// assert_eq!(memory.len(), 4 << 20);
/// ```
pub fn on_huge_pages(bytes: usize) -> io::Result<impl DerefMut<Target = [u8]>> {
    let memory = MmapMut::map_anon(bytes)?;
    memory.advise(Advice::HugePage)?;
    Ok(memory)
}

/// The bytes of a file.
#[derive(Debug)]
pub struct FileBytes(Storage);

#[derive(Debug)]
enum Storage {
    Read(Vec<u8>),
    Mapped(Mmap),
}

impl FileBytes {
    /// The bytes of the regular file at `path`.
    ///
    /// # Errors
    /// When it is no regular file, or cannot be opened, read or mapped.
    ///
    /// ```
    /// let bytes = lineup_mapping::FileBytes::open("/proc/self/comm".as_ref()).unwrap();
    /// assert!(bytes.as_ref().ends_with(b"\n"));
    /// ```
    pub fn open(path: &Path) -> io::Result<FileBytes> {
        let file = open(path)?;
        let len_bytes = file.metadata()?.len();
        if len_bytes < MAPPED_FROM_BYTES {
            return Ok(FileBytes(Storage::Read(read_at_most(file, UNSAID_BYTES)?)));
        }
        // SAFETY: the mapping is private and never written to. Its bytes are those of a regular file, which stay as
        // they are unless another process writes into or cuts that very file while we read it. Lineup, compilers,
        // linkers and package managers do nothing of that kind: they write a new file and rename it, and the mapping
        // keeps the old one alive. A user who does it nonetheless gets wrong figures, or ends this process by SIGBUS:
        // readers of the bytes check every index against the slice's own length, which does not change.
        let mapped = unsafe { Mmap::map(&file) }?;
        Ok(FileBytes(Storage::Mapped(mapped)))
    }

    /// Marks a range of the bytes as not needed for now. Memory of a mapped file is given back; the bytes stay
    /// readable, and are brought in again when read.
    pub fn release(&self, range: Range<usize>) {
        let Storage::Mapped(mapped) = &self.0 else { return };
        let start = range.start.next_multiple_of(PAGE_BYTES);
        let end = range.end.min(mapped.len()) / PAGE_BYTES * PAGE_BYTES;
        if start >= end {
            return;
        }
        // SAFETY: MADV_DONTNEED on a mapping of a file makes the next access read the file again. Nothing was ever
        // written to this private mapping, so the bytes stay the same for every slice that others hold. The range lies
        // inside the mapping.
        let given_back =
            unsafe { mapped.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start) };
        // Advice that is not taken costs memory and nothing else.
        drop(given_back);
    }
}

/// Opens a regular file for reading. Does not wait, for any kind of file.
///
/// # Errors
/// When it is no regular file or cannot be opened.
///
/// ```
/// let error = lineup_mapping::open("/dev/zero".as_ref()).unwrap_err();
/// assert!(error.to_string().starts_with("it is a device, not a regular file"));
/// ```
pub fn open(path: &Path) -> io::Result<File> {
    // Looked at before it is opened: opening some devices does something.
    refuse_others(&std::fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    // Another may stand there by now.
    refuse_others(&file.metadata()?)?;
    Ok(file)
}

/// The text of a regular file.
///
/// # Errors
/// When it is no regular file, cannot be read, is not UTF-8, or has more than any text.
pub fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read_at_most(open(path)?, TEXT_BYTES)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

fn refuse_others(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a folder, not a regular file; give a file in it"
    } else if kind.is_fifo() {
        "a pipe, not a regular file; write what it gives into a file, and give that"
    } else if kind.is_socket() {
        "a socket, not a regular file"
    } else {
        "a device, not a regular file"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}")))
}

fn read_at_most(file: impl Read, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let why = format!("it gives more than {} MiB; copy it into a file if it ends", most_bytes >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Storage::Read(bytes) => bytes,
            Storage::Mapped(mapped) => mapped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_given_up() {
        let error = read_at_most(io::repeat(0), 1 << 20).unwrap_err();
        assert!(error.to_string().contains("more than 1 MiB"), "{error}");
        assert_eq!(read_at_most(&b"end"[..], 3).expect("as much as allowed"), b"end");
    }
}
