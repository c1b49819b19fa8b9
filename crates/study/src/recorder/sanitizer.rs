//! Programs that do not run under the emulator.

use crate::companions;
use crate::error::{Error, Result};
use memchr::memmem;
use std::path::Path;

/// The function that starts a sanitizer's runtime, as it stands between zero bytes in the program's table of names, and
/// the compiler's option that asks for it.
const SANITIZERS: [(&[u8], &str); 3] = [
    (b"\0__asan_init\0", "-fsanitize=address"),
    (b"\0__tsan_init\0", "-fsanitize=thread"),
    (b"\0__msan_init\0", "-fsanitize=memory"),
];

/// Refuses a program with a sanitizer: its shadow memory takes terabytes of addresses, with which the emulator never
/// comes to an end.
pub(super) fn refuse(program: &Path) -> Result<()> {
    let bytes = companions::read(program)?;
    let found = SANITIZERS.iter().find(|(name, _)| memmem::find(&bytes, name).is_some());
    match found {
        Some((_, option)) => Err(Error::file(
            program,
            format!(
                "was built with {option}, whose memory the emulator cannot hold; record a build without it"
            ),
        )),
        None => Ok(()),
    }
}
