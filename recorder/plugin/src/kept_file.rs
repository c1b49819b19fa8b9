//! A file of ours in a process that is not ours: the guest may close its descriptor or put another file in its place.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::MetadataExt;

/// The distance of our descriptors below the limit, and the highest number of ours: programs use low ones.
const BELOW_LIMIT: u64 = 32;
const HIGHEST: u64 = 1024;

/// A file that is appended to, opened again by its path when its descriptor is lost.
pub(crate) struct KeptFile {
    path: String,
    file: Option<File>,
    /// Device and inode.
    identity: (u64, u64),
}

impl KeptFile {
    /// Opens a file that exists.
    pub(crate) fn open(path: &str) -> io::Result<Self> {
        let file = open(path)?;
        let identity = identity(&file)?;
        Ok(KeptFile { path: path.to_owned(), file: Some(file), identity })
    }

    fn get(&mut self) -> io::Result<&File> {
        let is_ours = |file: &File| identity(file).is_ok_and(|found| found == self.identity);
        if !self.file.as_ref().is_some_and(is_ours) {
            // The descriptor is the guest's now, or closed: we must not close it.
            self.file.take().map(IntoRawFd::into_raw_fd);
            let file = open(&self.path)?;
            if identity(&file)? != self.identity {
                return Err(io::Error::from_raw_os_error(libc::ESTALE));
            }
            self.file = Some(file);
        }
        self.file.as_ref().ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }
}

impl Write for KeptFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.get()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|about| (about.dev(), about.ino()))
}

fn open(path: &str) -> io::Result<File> {
    let low = File::options().append(true).open(path)?;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the system writes to a live local variable.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    let lowest = limit.rlim_cur.min(HIGHEST).saturating_sub(BELOW_LIMIT);
    if !is_known || lowest == 0 {
        return Ok(low);
    }
    // SAFETY: makes a new descriptor for an open file, or none.
    let high = unsafe { libc::fcntl(low.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest as libc::c_int) };
    // SAFETY: just made, and owned by no other code.
    Ok(if high < 0 { low } else { unsafe { File::from_raw_fd(high) } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reaches_the_file_when_its_descriptor_was_closed_or_replaced() {
        let path = std::env::temp_dir().join(format!("lineup-kept-{}", std::process::id()));
        let other = path.with_extension("other");
        std::fs::write(&path, b"a").unwrap();
        let mut kept = KeptFile::open(path.to_str().unwrap()).unwrap();
        kept.write_all(b"b").unwrap();
        let number = kept.file.as_ref().unwrap().as_raw_fd();
        assert!(number > 16, "programs use low numbers, this is {number}");
        let others = File::create(&other).unwrap();
        // SAFETY: plain system calls on descriptors of this test.
        unsafe { libc::dup2(others.as_raw_fd(), number) };
        kept.write_all(b"c").unwrap();
        // SAFETY: as above.
        unsafe { libc::close(kept.file.as_ref().unwrap().as_raw_fd()) };
        kept.write_all(b"d").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"abcd");
        assert_eq!(std::fs::read(&other).unwrap(), b"");
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&other).unwrap();
    }
}
