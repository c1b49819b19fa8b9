//! The place of a declaration in the repository.

use lineup_model::types::SourceLocation;
use serde::Serialize;
use std::path::{Component, Path, PathBuf};

/// A line of a file of the repository.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct RepositoryLine {
    /// The file, from the repository's top, with `/` between folders.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

impl RepositoryLine {
    /// The place in the repository that lies in the folder `root`; `None` when the file is elsewhere.
    ///
    /// ```
    /// use lineup_model::types::SourceLocation;
    /// use lineup_review::RepositoryLine;
    /// let at = SourceLocation { file: "/tmp/head/build/../src/a.h".into(), line: 3 };
    /// let place = RepositoryLine::in_repository(&at, "/tmp/head".as_ref()).unwrap();
    /// assert_eq!((place.file.as_str(), place.line), ("src/a.h", 3));
    /// ```
    pub fn in_repository(at: &SourceLocation, root: &Path) -> Option<RepositoryLine> {
        let path = without_dots(Path::new(&*at.file));
        let file = path.strip_prefix(root).ok()?;
        let parts: Vec<_> = file.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        (!parts.is_empty()).then(|| RepositoryLine { file: parts.join("/"), line: at.line.max(1) })
    }
}

/// The path without `.` and `..`, as a compiler may write them. Links are not followed: the files may be gone.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
