//! A file's content, read when it is first needed and again when the file is another one.

use crate::world::{Stamp, World};
use std::path::{Path, PathBuf};

/// A file's parsed content.
pub(crate) struct CachedFile<T> {
    path: PathBuf,
    read: Option<Read<T>>,
}

struct Read<T> {
    stamp: Option<Stamp>,
    value: Result<T, String>,
}

impl<T> CachedFile<T> {
    pub(crate) fn new(path: &Path) -> Self {
        CachedFile { path: path.to_owned(), read: None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name that a person knows it by.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name();
        name.map_or_else(|| self.path.display().to_string(), |name| name.to_string_lossy().into_owned())
    }

    /// Reads it if that was not done, or the file was written since. True when there is something new.
    pub(crate) fn refresh(
        &mut self,
        world: &dyn World,
        read: impl FnOnce(&Path) -> Result<T, String>,
    ) -> bool {
        let stamp = world.stamp(&self.path);
        if self.read.as_ref().is_some_and(|read| read.stamp == stamp) {
            return false;
        }
        // The stamp is taken before reading, so that a later write is read the next time.
        let value = match stamp {
            Some(_) => read(&self.path),
            None => Err("there is no such file".to_string()),
        };
        self.read = Some(Read { stamp, value });
        true
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.read.as_ref().and_then(|read| read.value.as_ref().ok())
    }

    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.read.as_ref().and_then(|read| read.stamp)
    }

    /// The reason why there is no content, as a sentence with the file's path.
    pub(crate) fn error(&self) -> Option<String> {
        let error = self.read.as_ref()?.value.as_ref().err()?;
        Some(format!("{}: {error}", self.path.display()))
    }
}
