//! What is run: the same value for builds, recordings, timed runs, guests and bisection.

use crate::input::Input;
use crate::placed::Placed;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A program with its arguments and surroundings.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
    /// Its working directory; `None` for ours.
    pub directory: Option<PathBuf>,
    /// Variables added to our environment.
    pub environment: Vec<(OsString, OsString)>,
    /// What it reads as standard input, from its start.
    pub input: Input,
    /// It is ended after so long; `None` for never.
    pub max_time: Option<Duration>,
    /// A client that decides when it is done; `None` when it ends by itself.
    pub drive: Option<Drive>,
    /// A copy of a folder that it finds at the original's path, and starts in; `None` for what is there.
    pub placed: Option<Placed>,
}

/// A client that runs beside a server, which is ended when the client is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drive {
    /// A line of shell.
    pub line: String,
    /// When it starts after the server; `None` as soon as the server listens on a socket.
    pub after: Option<Duration>,
}

/// Why a program was ended from outside, as it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stopped {
    /// Its time was over.
    Time,
    /// Its client was done.
    Driven,
    /// Every region had been called often enough.
    Calls,
}
