//! The description of a run: the same type for builds, recordings, timed runs, guests and bisection.

use crate::process::input::Input;
use crate::process::placed::Placed;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A program with its arguments and surroundings.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
    /// The name that the program gets as the first of its arguments; `None` for the first word of the command.
    pub called: Option<OsString>,
    /// Its working directory; `None` for Lineup's.
    pub directory: Option<PathBuf>,
    /// Variables added to our environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its standard input, read from the start.
    pub input: Input,
    /// It is ended after this time; `None` for never.
    pub max_time: Option<Duration>,
    /// A client that decides when it is done; `None` when it ends by itself.
    pub drive: Option<Drive>,
    /// The rule for processes that it leaves running.
    pub leftovers: Leftovers,
    /// Its files, stack and heap lie at the same addresses in every run, where the system allows that.
    pub fixed_addresses: bool,
    /// A copy of a folder that it finds at the original's path, and starts in; `None` for the original.
    pub placed: Option<Placed>,
    /// On which CPUs its threads are.
    pub on: On,
}

/// On which CPUs a program's threads are.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum On {
    /// Wherever the kernel puts them.
    #[default]
    Anywhere,
    /// On these, wherever the kernel puts them there.
    These(Vec<u32>),
    /// Each on one of these, in turn as they begin.
    EachOnItsOwn(Vec<u32>),
}

/// A client that runs against a server, which is ended when the client is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drive {
    /// A line of shell.
    pub line: String,
    /// The delay between its start and the server's; `None` to start as soon as the server listens on a socket.
    pub after: Option<Duration>,
}

/// The rule for processes that still run when the first one has ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Leftovers {
    /// They are waited for while they work, and ended when none of them did for [`IDLE`].
    #[default]
    WhileWorking,
    /// They are waited for until they end.
    Wait,
    /// They are ended at once.
    End,
}

/// The longest time that processes may idle after the first one has ended.
pub const IDLE: Duration = Duration::from_secs(2);

/// The reason why a program was ended from outside, as requested.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stopped {
    /// Its time was over.
    Time,
    /// Its client was done.
    Driven,
    /// Every region had been called often enough.
    Calls,
    /// It was not ended: it had run before, and was left running.
    Left,
}
