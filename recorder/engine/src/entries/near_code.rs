//! Memory for code near the code that jumps to it.

use crate::machine::{Entries, Host};
use crate::system::{self, File, mappings};
use lineup_recording::native::Refusal;
use std::ops::Range;

/// Memory near an entry, for as many as fit.
const NEAR_BYTES: u64 = 1 << 16;
/// The most bytes of code for one entry.
pub(crate) const MOST_BYTES: u64 = 1024;

/// Memory for code that jumps from some entries reach. It is never writable where it is executed: it is written through
/// a file.
pub(crate) struct Near {
    at: u64,
    used: u64,
}

impl Near {
    /// Address of the next code.
    pub(crate) fn next(&self) -> u64 {
        (self.at + self.used).next_multiple_of(16)
    }

    /// Puts code there. `None` when it cannot be written.
    pub(crate) fn put(&mut self, memory: &File, code: &[u8]) -> Option<u64> {
        let at = self.next();
        memory.write_at(code, at).then(|| {
            self.used = at + code.len() as u64 - self.at;
            at
        })
    }
}

/// Memory with room for an entry's code that a jump from there reaches.
pub(crate) fn place_near<'a>(near: &'a mut Vec<Near>, range: &Range<u64>) -> Result<&'a mut Near, Refusal> {
    let fits = |near: &Near| {
        near.at.abs_diff(range.start) < Host::JUMP_REACH - 2 * NEAR_BYTES
            && near.used + MOST_BYTES < NEAR_BYTES
    };
    let number = match near.iter().position(fits) {
        Some(number) => number,
        None => {
            let (at, made) = memory_near(range, NEAR_BYTES as usize).ok_or(Refusal::NoRoom)?;
            if !system::protect(made, NEAR_BYTES as usize, libc::PROT_READ | libc::PROT_EXEC) {
                return Err(Refusal::NoRoom);
            }
            near.push(Near { at, used: 0 });
            near.len() - 1
        }
    };
    Ok(&mut near[number])
}

/// Fresh memory near a place. Other threads map memory at the same time, and may take a range that was just free.
fn memory_near(range: &Range<u64>, bytes: usize) -> Option<(u64, *mut u8)> {
    const TRIES: usize = 64;
    (0..TRIES).find_map(|_| {
        let at = mappings::room_near(&mappings::read(), range, bytes as u64)?;
        system::memory_at(at as usize, bytes).map(|made| (at, made))
    })
}
