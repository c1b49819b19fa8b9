//! Files that the engine opens, and memory as a file.

use super::calls::own;
use super::own_memory::map;

/// An open file, by its number.
pub(crate) struct File(i32);

impl File {
    /// Opens the file of a terminated path.
    pub(crate) fn open(path: &[u8], flags: i32) -> Option<File> {
        debug_assert!(path.ends_with(&[0]));
        let flags = (flags | libc::O_CLOEXEC) as u64;
        // SAFETY: the path is terminated.
        let opened =
            unsafe { own(libc::SYS_openat, [libc::AT_FDCWD as u64, path.as_ptr() as u64, flags, 0, 0, 0]) };
        (opened >= 0).then_some(File(opened as i32))
    }

    /// Memory as a file.
    pub(crate) fn in_memory(bytes: usize) -> Option<File> {
        let name = b"lineup-code\0";
        // SAFETY: the name is terminated.
        let made = unsafe {
            own(libc::SYS_memfd_create, [name.as_ptr() as u64, u64::from(libc::MFD_CLOEXEC), 0, 0, 0, 0])
        };
        let file = (made >= 0).then_some(File(made as i32))?;
        // SAFETY: our own file.
        let sized = unsafe { own(libc::SYS_ftruncate, [file.0 as u64, bytes as u64, 0, 0, 0, 0]) };
        (sized == 0).then_some(file)
    }

    /// All bytes that can be read from it.
    pub(crate) fn read_all(&self) -> Vec<u8> {
        let mut all = vec![0; 1 << 14];
        let mut length = 0;
        loop {
            if all.len() - length < 1 << 13 {
                all.resize(2 * all.len(), 0);
            }
            let room = &mut all[length..];
            // SAFETY: the room is ours.
            let read = unsafe {
                own(libc::SYS_read, [self.0 as u64, room.as_mut_ptr() as u64, room.len() as u64, 0, 0, 0])
            };
            if read <= 0 {
                break;
            }
            length += read as usize;
        }
        all.truncate(length);
        all
    }

    /// Writes at a place; true when all bytes were written.
    pub(crate) fn write_at(&self, bytes: &[u8], at: u64) -> bool {
        let arguments = [self.0 as u64, bytes.as_ptr() as u64, bytes.len() as u64, at, 0, 0];
        // SAFETY: the bytes are readable.
        let written = unsafe { own(libc::SYS_pwrite64, arguments) };
        written == bytes.len() as i64
    }

    /// Maps a copy of a part of it, which can be written.
    pub(crate) fn map_private(&self, bytes: usize, offset: u64) -> Option<*mut u8> {
        map(0, bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE, self.0, offset)
    }

    /// Maps it, at an address or at any free place.
    pub(crate) fn map(
        &self,
        at: Option<usize>,
        bytes: usize,
        protection: i32,
        offset: u64,
    ) -> Option<*mut u8> {
        let flags = libc::MAP_SHARED | if at.is_some() { libc::MAP_FIXED } else { 0 };
        map(at.unwrap_or(0), bytes, protection, flags, self.0, offset)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: our own file.
        unsafe { own(libc::SYS_close, [self.0 as u64, 0, 0, 0, 0, 0]) };
    }
}

/// Threads that the process has; 0 when that is not known.
pub(crate) fn threads() -> u64 {
    let status = File::open(b"/proc/self/status\0", libc::O_RDONLY).map(|file| file.read_all());
    let status = String::from_utf8_lossy(&status.unwrap_or_default()).into_owned();
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
