//! Paths of debug information within a folder.

use std::path::{Component, Path, PathBuf};

/// A file's path inside a folder, without steps up.
pub(crate) fn inside(file: &Path, folder: &Path) -> Option<String> {
    let mut path = PathBuf::new();
    for part in file.components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    Some(path.strip_prefix(folder).ok()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_up_are_gone_and_other_folders_are_not_inside() {
        let inside = |file: &str| inside(Path::new(file), Path::new("/k/source"));
        assert_eq!(inside("/k/objects/../source/./mm/slub.c").as_deref(), Some("mm/slub.c"));
        assert_eq!((inside("/k/sources/a.c"), inside("/k/source/../a.c")), (None, None));
    }
}
