//! Memory for code: written at one address and executed at another, so that no address allows both.

use crate::machine::{Entries, Host};
use crate::system::File;

/// The most bytes of code. A compiler's code takes half of them when all of it is counted; unused bytes take no memory.
const BYTES: usize = 256 << 20;

/// The memory.
pub(crate) struct Cache {
    written: *mut u8,
    executed: *const u8,
    used: usize,
}

// SAFETY: the mappings live as long as the process and are written under the engine's lock.
unsafe impl Send for Cache {}

impl Cache {
    /// Memory for code. `None` where the system forbids it.
    pub(crate) fn new() -> Option<Cache> {
        let file = File::in_memory(BYTES)?;
        let written = file.map(None, BYTES, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let executed = file.map(None, BYTES, libc::PROT_READ | libc::PROT_EXEC, 0)?;
        Some(Cache { written, executed, used: 0 })
    }

    /// A copy, for a process that is about to be forked: until then the parent's is shared with it. `None` where the
    /// system has no memory.
    pub(crate) fn copy(&self) -> Option<File> {
        let file = File::in_memory(BYTES)?;
        // SAFETY: within the mapping, and written under the engine's lock alone.
        let used = unsafe { std::slice::from_raw_parts(self.written, self.used) };
        file.write_at(used, 0).then_some(file)
    }

    /// Puts a copy in place of the original. When it fails no code may be added to the cache any more.
    pub(crate) fn replace(&mut self, copy: &File) -> Option<()> {
        copy.map(Some(self.executed as usize), BYTES, libc::PROT_READ | libc::PROT_EXEC, 0)?;
        copy.map(Some(self.written as usize), BYTES, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        Some(())
    }

    /// The addresses where code is executed.
    pub(crate) fn range(&self) -> std::ops::Range<u64> {
        self.executed as u64..self.executed as u64 + BYTES as u64
    }

    /// The address of the next code.
    pub(crate) fn next(&self) -> u64 {
        self.executed as u64 + self.used.next_multiple_of(16) as u64
    }

    /// Bytes that are free.
    pub(crate) fn left_bytes(&self) -> usize {
        BYTES - self.used
    }

    /// Puts code where it can be executed, and returns its address.
    pub(crate) fn put(&mut self, code: &[u8]) -> Option<u64> {
        let at = self.used.next_multiple_of(16);
        if at + code.len() > BYTES {
            return None;
        }
        // SAFETY: within the mapping, as checked, and no thread executes it yet.
        unsafe { self.written.add(at).copy_from_nonoverlapping(code.as_ptr(), code.len()) };
        self.used = at + code.len();
        let executed = self.executed as u64 + at as u64;
        Host::code_was_written(executed, code.len());
        Some(executed)
    }

    /// Makes a block's place lead to other code from now on, by one write of eight aligned bytes.
    pub(crate) fn lead(&mut self, from: u64, to: u64) {
        let at = (from - self.executed as u64) as usize;
        debug_assert!(at.is_multiple_of(8) && at + 8 <= self.used);
        // SAFETY: within the mapping and aligned, as every block is; blocks are longer than that.
        unsafe { self.written.add(at).cast::<u64>().write_volatile(Host::lead_word(from, to)) };
        Host::code_was_written(from, 8);
    }

    /// Writes the distance of a jump that other threads may be executing, by one write of four aligned bytes.
    pub(crate) fn link(&mut self, hole: u64, target: u64) {
        let at = (hole - self.executed as u64) as usize;
        debug_assert!(at.is_multiple_of(4) && at + 4 <= self.used);
        // SAFETY: within the mapping and aligned, as every hole is.
        unsafe { self.written.add(at).cast::<u32>().write_volatile(Host::link_word(hole, target)) };
        Host::code_was_written(hole, 4);
    }
}
