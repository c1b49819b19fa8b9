//! Programs whose file grants another user's or group's rights: an emulator starts them without these rights.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The rights of the recording process.
#[derive(Clone, Copy)]
struct Recorder {
    user: u32,
    group: u32,
}

/// A note on a program that was recorded without the rights that it has elsewhere.
pub(super) fn note(program: &Path) -> Option<String> {
    let recorder =
        Recorder { user: rustix::process::geteuid().as_raw(), group: rustix::process::getegid().as_raw() };
    let rights = rights_of(&fs::metadata(program).ok()?);
    gives_others(rights, recorder).then(|| {
        let program = program.display();
        format!("{program} was recorded without the rights of another user or group that its file gives it")
    })
}

/// Mode, user and group of a file.
fn rights_of(file: &Metadata) -> (u32, u32, u32) {
    (file.mode(), file.uid(), file.gid())
}

/// True when a file of this mode, user and group gives rights that the recorder does not have.
fn gives_others((mode, user, group): (u32, u32, u32), recorder: Recorder) -> bool {
    (mode & libc::S_ISUID != 0 && user != recorder.user)
        || (mode & libc::S_ISGID != 0 && group != recorder.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bits_that_give_the_rights_of_somebody_else_are_told() {
        let me = Recorder { user: 1000, group: 100 };
        assert!(gives_others((0o104_755, 0, 0), me));
        assert!(gives_others((0o102_755, 1000, 0), me));
        assert!(!gives_others((0o106_755, 1000, 100), me), "the recorder's own");
        assert!(!gives_others((0o100_755, 0, 0), me), "no bit is set");
    }
}
