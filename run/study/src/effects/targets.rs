//! The object behind an open descriptor of a traced process.

use super::ptrace::{Tid, process_of};
use super::scene::Scene;
use lineup_prove::effects::Target;
use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// An open file.
pub(super) struct Opened {
    pub(super) target: Target,
    /// True when each write stays whole and counts as one message.
    pub(super) has_messages: bool,
    /// Its path, when it is a file or a folder with one.
    pub(super) path: Option<PathBuf>,
}

/// The numbers that a process's pipes and sockets have, in the order in which it first used them: their own numbers
/// differ between runs.
#[derive(Default)]
pub(super) struct Numbers {
    pipes: HashMap<u64, u32>,
    sockets: HashMap<u64, (u32, &'static str)>,
}

impl Numbers {
    fn pipe(&mut self, inode: u64) -> Target {
        let next = self.pipes.len() as u32 + 1;
        Target::Pipe(*self.pipes.entry(inode).or_insert(next))
    }

    fn socket(&mut self, inode: u64, kind: impl FnOnce() -> &'static str) -> (u32, &'static str) {
        let next = self.sockets.len() as u32 + 1;
        *self.sockets.entry(inode).or_insert_with(|| (next, kind()))
    }
}

/// The object behind a descriptor; `None` when it is not open.
pub(super) fn opened(tid: Tid, number: i32, scene: &Scene, numbers: &mut Numbers) -> Option<Opened> {
    let link = PathBuf::from(format!("/proc/{tid}/fd/{number}"));
    let name = fs::read_link(&link).ok()?;
    let about = fs::metadata(&link).ok()?;
    let plain = |target| Some(Opened { target, has_messages: false, path: None });
    let place = (about.dev(), about.ino());
    if place == scene.standard_output {
        return plain(Target::StandardOutput);
    }
    if place == scene.standard_error {
        return plain(Target::StandardError);
    }
    let text = name.to_string_lossy();
    if text.starts_with("socket:") {
        let (number, kind) = numbers.socket(about.ino(), || socket_kind(tid, number).unwrap_or("socket"));
        let has_messages = !kind.ends_with("stream socket") && kind != "socket";
        return Some(Opened { target: Target::Socket(number, kind), has_messages, path: None });
    }
    if text.starts_with("pipe:") {
        return plain(numbers.pipe(about.ino()));
    }
    if let Some(kind) = text.strip_prefix("anon_inode:") {
        return plain(Target::Other(kind.trim_matches(['[', ']']).to_owned()));
    }
    if text.ends_with(" (deleted)") {
        let is_memory = text.starts_with("/memfd:");
        return plain(Target::Other(if is_memory { "memory file" } else { "deleted file" }.to_owned()));
    }
    let target = Target::Path(scene.shown(&name));
    let has_content = about.is_file() || about.is_dir();
    Some(Opened { target, has_messages: false, path: has_content.then_some(name) })
}

fn socket_kind(tid: Tid, number: i32) -> Option<&'static str> {
    let process = pidfd_open(Pid::from_raw(process_of(tid)?)?, PidfdFlags::empty()).ok()?;
    let socket = pidfd_getfd(process, number, PidfdGetfdFlags::empty()).ok()?;
    let is_local = sockopt::socket_domain(&socket).ok()? == AddressFamily::UNIX;
    Some(match sockopt::socket_type(&socket).ok()? {
        SocketType::STREAM if is_local => "local stream socket",
        SocketType::STREAM => "stream socket",
        SocketType::DGRAM if is_local => "local datagram socket",
        SocketType::DGRAM => "datagram socket",
        SocketType::SEQPACKET => "packet socket",
        _ => "raw socket",
    })
}
