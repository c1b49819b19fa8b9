//! A place in a source file.

use std::fmt;

/// A place in a source file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
pub struct SourcePlace {
    /// Path relative to the source folder.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.line)
    }
}
