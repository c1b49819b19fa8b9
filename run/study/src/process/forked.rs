//! How programs that are recorded or measured are started.

use rustix::process::getgid;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has a command started by `fork`. glibc's `posix_spawn` would ignore signals 32 and 33 in the child, and the program
/// would inherit that. The standard library does not use it for a command with a group; here it is the present group,
/// unless the user namespace has no number for that.
pub(crate) fn start_by_fork(command: &mut Command) -> &mut Command {
    let own = getgid().as_raw();
    match std::fs::read_to_string("/proc/self/gid_map") {
        Ok(map) if has_number(&map, own) => command.gid(own),
        _ => command,
    }
}

/// Whether a map of a user namespace has a number: each line has the first number inside, the first outside, and how
/// many there are.
fn has_number(map: &str, number: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        matches!(numbers[..], [first, _, count] if (first..first + count).contains(&number.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_namespace_may_lack_a_group() {
        assert!(has_number("         0          0 4294967295\n", 1000));
        assert!(!has_number("0 1000 1\n", 65534) && !has_number("", 65534) && !has_number("0 1000", 0));
    }
}
