//! Words on standard error, without the program's streams and heap.

use std::fmt::{self, Write};

/// A message in the making; what does not fit is cut off.
pub(crate) struct Words {
    bytes: [u8; 512],
    length: usize,
}

impl Write for Words {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - self.length;
        let part = &text.as_bytes()[..text.len().min(room)];
        self.bytes[self.length..self.length + part.len()].copy_from_slice(part);
        self.length += part.len();
        Ok(())
    }
}

/// Writes a line.
pub(crate) fn say(words: fmt::Arguments<'_>) {
    let mut line = Words { bytes: [0; 512], length: 0 };
    let _ = writeln!(line, "lineup-heap: {words}");
    let _keeping = crate::memory::Errno::keep();
    // SAFETY: the buffer is as long as it says.
    unsafe { libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.length) };
}

/// Ends the program, which freed what it may not free.
#[cold]
pub(crate) fn end(fault: &str, address: usize) -> ! {
    say(format_args!("{fault} at {address:#x}: the program is ended before its memory is corrupted"));
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}
