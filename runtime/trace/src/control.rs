//! The socket on which a process listens for changes of its immediate values, and its protocol.
//!
//! One request per connection, one line: `list`, `get NAME` or `set NAME VALUE`. The answer is one line of JSON,
//! `lineup.imv/1`, either with `values` or with `error`.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The folder of the sockets of the user `uid`: the user's own runtime folder where the system has made one
/// (`run_user_exists`), else one in `/tmp`. It must belong to that user with mode 0700.
pub fn socket_folder(uid: u32, run_user_exists: bool) -> PathBuf {
    if run_user_exists {
        Path::new("/run/user").join(uid.to_string()).join("lineup")
    } else {
        PathBuf::from(format!("/tmp/lineup-{uid}"))
    }
}

/// The socket of process `pid` in `folder`.
pub fn socket_path(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("imv-{pid}.sock"))
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Every variable.
    List,
    /// One variable.
    Get {
        /// Its name.
        name: String,
    },
    /// A change.
    Set {
        /// The variable's name.
        name: String,
        /// Its new value.
        value: String,
    },
}

impl Request {
    /// The request in a line, or `None` for a malformed one.
    pub fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["list"] => Some(Self::List),
            ["get", name] => Some(Self::Get { name: name.to_owned() }),
            ["set", name, value] => Some(Self::Set { name: name.to_owned(), value: value.to_owned() }),
            _ => None,
        }
    }

    /// The request as a line, without its end.
    pub fn to_line(&self) -> String {
        match self {
            Self::List => "list".to_owned(),
            Self::Get { name } => format!("get {name}"),
            Self::Set { name, value } => format!("set {name} {value}"),
        }
    }
}

/// An answer. In JSON: `lineup.imv/1`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Name and version of this form.
    pub schema: String,
    /// The way values are patched in the process, in a sentence.
    pub status: String,
    /// The variables asked for; after a set, with its new value.
    pub values: Vec<ValueShown>,
    /// The reason the request was refused.
    pub error: Option<String>,
}

/// A variable.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ValueShown {
    /// Its name.
    pub name: String,
    /// `signed`, `unsigned`, `bool` or `float`.
    pub class: String,
    /// Its size.
    pub size_bytes: u8,
    /// Its value.
    pub value: String,
    /// Instructions that carry it.
    pub patched_sites: usize,
    /// Sites that read the ordinary variable.
    pub plain_sites: usize,
}

/// The schema of an [`Answer`].
pub const SCHEMA: &str = "lineup.imv/1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_their_line() {
        let set = Request::Set { name: "a::B".into(), value: "-1".into() };
        for request in [Request::List, Request::Get { name: "x".into() }, set] {
            assert_eq!(Request::parse(&request.to_line()), Some(request));
        }
        for line in ["", "list x", "get", "set x", "set x 1 2", "drop x"] {
            assert_eq!(Request::parse(line), None, "{line}");
        }
    }
}
