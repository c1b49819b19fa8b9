//! The socket behind `lineup imv`: a thread that answers the process's own user.

use super::{Error, ListedVariable, get, list, set_text, status};
use crate::cancel::NotCancelled;
use lineup_trace::control::{Answer, Request, SCHEMA, ValueShown, socket_folder, socket_path};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The longest request that is read, in bytes.
const REQUEST_BYTES_MAX: u64 = 4096;
/// The time that one client may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The socket of this process, to be removed at its end.
static SERVED: Mutex<Option<(u32, PathBuf)>> = Mutex::new(None);

/// Removes the socket, if this process made it. A killed process leaves its socket to the next process with its number.
pub(super) fn clean_up() {
    let served = SERVED.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((_, path)) = served.filter(|(pid, _)| *pid == std::process::id()) {
        let _ = std::fs::remove_file(path);
    }
}

/// Starts a thread that answers `lineup imv` for this process, on a socket that its own user alone may open, and
/// returns the socket's path. The thread ends with the process; a forked child must call this again.
///
/// # Errors
///
/// When the socket's folder belongs to another user or may be opened by one, or the socket cannot be made.
pub fn serve() -> io::Result<PathBuf> {
    let _whole = NotCancelled::begin();
    let uid = own_uid();
    let run_user = PathBuf::from(format!("/run/user/{uid}"));
    let folder = socket_folder(uid, run_user.is_dir());
    make_private_folder(&folder, uid)?;
    let path = socket_path(&folder, std::process::id());
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    *SERVED.lock().unwrap_or_else(PoisonError::into_inner) = Some((std::process::id(), path.clone()));
    std::thread::Builder::new().name("lineup-imv".to_owned()).spawn(move || answer_all(&listener, uid))?;
    Ok(path)
}

fn own_uid() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::geteuid() }
}

fn make_private_folder(folder: &Path, uid: u32) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Not followed: a link planted in a shared folder is refused.
    let found = std::fs::symlink_metadata(folder)?;
    if found.is_dir() && found.uid() == uid && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let message = format!("{} must be a folder of user {uid} with mode 0700; remove it", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

fn answer_all(listener: &UnixListener, uid: u32) {
    block_signals();
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if peer_uid(&stream) == Some(uid) {
            // A client that goes away loses its answer; the next one is served.
            let _ = answer_one(&stream);
        }
    }
}

/// The program's signals are for the program's threads.
fn block_signals() {
    // SAFETY: changes this thread's own mask. SIGTRAP stays open for the trap protocol.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigdelset(&mut all, libc::SIGTRAP);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}

fn peer_uid(stream: &UnixStream) -> Option<u32> {
    // SAFETY: the kernel writes at most the size given of a plain structure.
    unsafe {
        let mut peer: libc::ucred = std::mem::zeroed();
        let mut size = size_of::<libc::ucred>() as libc::socklen_t;
        let into = (&raw mut peer).cast();
        let asked =
            libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, into, &mut size);
        (asked == 0).then_some(peer.uid)
    }
}

fn answer_one(mut stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(REQUEST_BYTES_MAX)).read_line(&mut line)?;
    let mut text = serde_json::to_string(&answer(&line)).map_err(io::Error::other)?;
    text.push('\n');
    stream.write_all(text.as_bytes())
}

fn answer(line: &str) -> Answer {
    let result = match Request::parse(line) {
        Some(Request::List) => Ok(list()),
        Some(Request::Get { name }) => get(&name).map(|entry| vec![entry]),
        Some(Request::Set { name, value }) => {
            set_text(&name, &value).and_then(|_| get(&name)).map(|entry| vec![entry])
        }
        None => return reply(Vec::new(), Some("not a request: list, get NAME or set NAME VALUE".to_owned())),
    };
    match result {
        Ok(entries) => reply(entries, None),
        Err(error) => reply(Vec::new(), Some(message(&error))),
    }
}

fn message(error: &Error) -> String {
    error.to_string()
}

fn reply(entries: Vec<ListedVariable>, error: Option<String>) -> Answer {
    let shown = |entry: ListedVariable| ValueShown {
        class: format!("{:?}", entry.class).to_lowercase(),
        size_bytes: entry.size_bytes,
        value: entry.class.to_text(entry.bits, entry.size_bytes),
        patched_sites: entry.patched_sites,
        plain_sites: entry.plain_sites,
        name: entry.name,
    };
    Answer {
        schema: SCHEMA.to_owned(),
        status: status().to_string(),
        values: entries.into_iter().map(shown).collect(),
        error,
    }
}
