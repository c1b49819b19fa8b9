//! A small helper process that cleans up when Lineup is gone, however it ended: also after a kill that no process can
//! catch. It ends the programs that Lineup started, waits for the [keepers](crate::process::keeper), which end what
//! these started, and removes the temporary folders.

use crate::process::descendants::{self, KILLED};
use crate::process::own_file::own_file;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The hidden command of the `lineup` program that [`serve`] stands behind.
pub const COMMAND: &str = "guard-children";

/// The variable by which a keeper is known to be ours. The programs do not have it.
pub(crate) const MARK: &str = "LINEUP_RUN";

/// The time between looks for keepers.
const AGAIN: Duration = Duration::from_millis(5);

/// Our end of the wire to the process that cleans up after us.
#[derive(Debug)]
pub(crate) struct Guardian {
    wire: Mutex<ChildStdin>,
    mark: OsString,
}

/// A message to the guardian: a letter, then a number or a path, then a zero byte.
enum Message<'a> {
    Began(Pid),
    Ended(Pid),
    Made(&'a Path),
    Removed(&'a Path),
}

impl Guardian {
    /// Starts the process.
    pub(crate) fn start() -> io::Result<Self> {
        let mut random = [0; 8];
        io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut random)?;
        let mark: OsString = format!("{:016x}", u64::from_ne_bytes(random)).into();
        let mut command = Command::new(own_file()?);
        command.arg(COMMAND).env(MARK, &mark).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: the terminal's Ctrl-C is not for it.
        let mut child = command.process_group(0).spawn()?;
        let wire = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Guardian { wire: Mutex::new(wire), mark })
    }

    /// The variable that every keeper must have.
    pub(crate) fn mark(&self) -> (&'static str, &OsStr) {
        (MARK, &self.mark)
    }

    /// A process group began.
    pub(crate) fn began(&self, group: Pid) {
        self.tell(&Message::Began(group));
    }

    /// A process group ended.
    pub(crate) fn ended(&self, group: Pid) {
        self.tell(&Message::Ended(group));
    }

    /// A folder was made that must not stay.
    pub(crate) fn made(&self, folder: &Path) {
        self.tell(&Message::Made(folder));
    }

    /// A folder was removed.
    pub(crate) fn removed(&self, folder: &Path) {
        self.tell(&Message::Removed(folder));
    }

    fn tell(&self, message: &Message<'_>) {
        let group = |pid: &Pid| pid.as_raw_nonzero().to_string().into_bytes();
        let (letter, value) = match message {
            Message::Began(pid) => (b'+', group(pid)),
            Message::Ended(pid) => (b'-', group(pid)),
            Message::Made(path) => (b'm', path.as_os_str().as_bytes().to_vec()),
            Message::Removed(path) => (b'r', path.as_os_str().as_bytes().to_vec()),
        };
        let line = [&[letter], value.as_slice(), &[0]].concat();
        // Without the other process we clean up ourselves, as far as we can.
        let _ = self.wire.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
    }
}

/// The processes and folders that still need cleaning up.
#[derive(Default)]
struct CleanupList {
    groups: Vec<Pid>,
    folders: Vec<PathBuf>,
}

impl CleanupList {
    fn take(&mut self, line: &[u8]) {
        let Some((letter, value)) = line.split_first() else { return };
        let group = || std::str::from_utf8(value).ok()?.parse().ok().and_then(Pid::from_raw);
        let folder = PathBuf::from(OsStr::from_bytes(value));
        match letter {
            b'+' => self.groups.extend(group()),
            b'-' => self.groups.retain(|known| Some(*known) != group()),
            b'm' => self.folders.push(folder),
            b'r' => self.folders.retain(|known| *known != folder),
            _ => {}
        }
    }

    fn clean_up(&self, mark: &[u8]) {
        for group in &self.groups {
            // A group that is gone needs no signal.
            let _ = kill_process_group(*group, Signal::KILL);
        }
        let begun = Instant::now();
        // A keeper ends by itself, and takes this long at most.
        while is_any_marked(mark) && begun.elapsed() < KILLED {
            std::thread::sleep(AGAIN);
        }
        for folder in &self.folders {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// The other process's side: listens until the wire is cut, which it is when our process is gone, and cleans up.
///
/// # Errors
/// When its standard input cannot be read.
pub fn serve() -> io::Result<()> {
    let mut kept = CleanupList::default();
    for line in io::stdin().lock().split(0) {
        kept.take(&line?);
    }
    let own = std::env::var_os(MARK).unwrap_or_default();
    if !own.is_empty() {
        kept.clean_up(&[MARK.as_bytes(), b"=", own.as_bytes()].concat());
    }
    Ok(())
}

/// Whether a process has the mark besides this one.
fn is_any_marked(mark: &[u8]) -> bool {
    let own = rustix::process::getpid();
    let is_marked = |pid| descendants::has_variable(pid, |variable| variable == mark);
    descendants::all().any(|pid| pid != own && is_marked(pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_or_was_removed_is_no_longer_kept() {
        let mut kept = CleanupList::default();
        for line in
            [b"+12".as_slice(), b"+13", b"m/tmp/a b", b"m/tmp/c\xff", b"-12", b"r/tmp/a b", b"", b"+x"]
        {
            kept.take(line);
        }
        assert_eq!(kept.groups, [Pid::from_raw(13).unwrap()]);
        assert_eq!(kept.folders, [PathBuf::from(OsStr::from_bytes(b"/tmp/c\xff"))]);
    }
}
