//! The effects of a run's processes: bytes of output and of files, arguments of other system calls, signals, exit.
//!
//! Plain values: someone else observes a run and fills them in. [`RepeatedEffects`] holds two runs of each variant
//! against each other. Effects in which two runs of the *same* variant already differ are named as not comparable and
//! left out; everything else has to be equal.

mod agreement;
mod compare;
mod connections;
mod content;
mod difference;
mod exchanges;
mod positions;

pub use agreement::{EffectsAgreement, RepeatedEffects};
pub use connections::{Connection, ConnectionCollector, Exchange, Piece, StreamTotal};
pub use content::{Content, ContentCollector, hide_folder};
pub use difference::{EffectDifference, NotCompared};

use crate::run::Ending;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Everything that left the processes of one run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Effects {
    /// By process.
    pub processes: BTreeMap<ProcessPath, ProcessEffects>,
    /// Files that the run left in the file system, by path: relative to the run's folder, absolute outside it.
    pub files: BTreeMap<String, FileLeft>,
    /// Connections that the run accepted from the client that drove it.
    pub connections: Vec<Connection>,
    /// Actions of the run that could not be observed, one sentence each.
    pub not_observed: BTreeSet<String>,
}

/// A process of a run, identified by its place in the tree of processes, since process ids differ between runs: `0` is
/// the program itself, `0.1` the first process that it made.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessPath(Vec<u32>);

impl ProcessPath {
    /// The program that was started.
    pub fn root() -> Self {
        Self(vec![0])
    }

    /// The child that was made as the `number`th, counted from 1.
    pub fn child(&self, number: u32) -> Self {
        let mut path = self.0.clone();
        path.push(number);
        Self(path)
    }
}

impl fmt::Display for ProcessPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

/// The effects of one process.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ProcessEffects {
    /// Bytes that went somewhere in order; how they were cut into calls does not matter.
    pub streams: BTreeMap<Target, Stream>,
    /// Calls that count one by one: `ioctl`, datagrams, options, addresses, signals, programs executed.
    pub calls: BTreeMap<CallSite, CallList>,
    /// The ending of the process; `None` when it was still running when the observation ended.
    pub ending: Option<Ending>,
}

/// The destination of bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Target {
    /// The run's standard output.
    StandardOutput,
    /// The run's standard error.
    StandardError,
    /// A file or a device: relative to the run's folder, absolute outside it.
    Path(String),
    /// The pipe that the process used as its `n`th, from 1.
    Pipe(u32),
    /// The socket that the process used as its `n`th, from 1, and its kind, such as `stream socket`.
    Socket(u32, &'static str),
    /// Another kind of file without a path, such as `memfd` or `eventfd`.
    Other(String),
    /// A process, or several, in words.
    Process(String),
    /// The system as a whole.
    System,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::StandardOutput => f.write_str("standard output"),
            Target::StandardError => f.write_str("standard error"),
            Target::Path(path) => f.write_str(path),
            Target::Pipe(number) => write!(f, "pipe {number}"),
            Target::Socket(number, kind) => write!(f, "{kind} {number}"),
            Target::Other(name) => f.write_str(name),
            Target::Process(name) => f.write_str(name),
            Target::System => f.write_str("the system"),
        }
    }
}

/// A stream of bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Names of the system calls that wrote it.
    pub written_by: BTreeSet<&'static str>,
    /// The written bytes.
    pub content: Content,
}

/// Calls of one name on one thing are compared in their order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallSite {
    /// The system call.
    pub name: &'static str,
    /// The target of its calls.
    pub target: Target,
}

/// The largest number of kept calls of one site; later ones are counted.
pub const KEPT_CALLS: usize = 20_000;

/// The largest number of kept bytes of one call's argument; later ones are fingerprinted.
pub const KEPT_ARGUMENT_BYTES: usize = 1024;

/// The calls of one site.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CallList {
    kept: Vec<Call>,
    further: u64,
}

impl CallList {
    /// Appends a call.
    pub fn push(&mut self, call: Call) {
        match self.kept.len() < KEPT_CALLS {
            true => self.kept.push(call),
            false => self.further += 1,
        }
    }

    /// The number of calls.
    pub fn count(&self) -> u64 {
        self.kept.len() as u64 + self.further
    }

    /// The first [`KEPT_CALLS`] of them.
    pub fn kept(&self) -> &[Call] {
        &self.kept
    }

    /// The number of calls that are not kept.
    pub fn further(&self) -> u64 {
        self.further
    }
}

/// One call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The request in words, such as `request 0x4008550d` or `SIGTERM`.
    pub what: String,
    /// The bytes that went with it, up to [`KEPT_ARGUMENT_BYTES`].
    pub bytes: Vec<u8>,
    /// The number of bytes passed with it.
    pub size_bytes: u64,
    /// SHA-256 of all of them.
    pub fingerprint: [u8; 32],
}

impl Call {
    /// A call with its bytes.
    pub fn new(what: impl Into<String>, bytes: &[u8]) -> Self {
        let whole = crate::output::Output::of(bytes);
        Self {
            what: what.into(),
            bytes: bytes.iter().take(KEPT_ARGUMENT_BYTES).copied().collect(),
            size_bytes: whole.size_bytes,
            fingerprint: whole.fingerprint,
        }
    }
}

/// Something that the run left in the file system: it was made, written, or removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileLeft {
    /// Its kind after the run.
    pub kind: FileKind,
    /// Its permission bits; 0 when it is gone.
    pub permissions: u32,
    /// Content of a file, target of a symbolic link; empty for other kinds.
    pub content: Content,
    /// Names of the system calls that changed it.
    pub changed_by: BTreeSet<&'static str>,
}

/// The kind of file at a path after the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FileKind {
    /// A file with content.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Special,
    /// Something was there before the run, and is no longer.
    Gone,
}

impl FileKind {
    /// The kind in a word.
    pub fn word(self) -> &'static str {
        match self {
            FileKind::File => "file",
            FileKind::Folder => "folder",
            FileKind::Link => "symbolic link",
            FileKind::Special => "special file",
            FileKind::Gone => "removed",
        }
    }
}

/// The ending of a process, in words.
pub(crate) fn ending_in_words(ending: Option<Ending>) -> String {
    ending.map_or_else(|| "still running".into(), |ending| ending.to_string())
}
