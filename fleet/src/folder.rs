//! A store in a folder of this machine, as an object store whose files are on disk once they have their names.
//!
//! The folder of `object_store` gives a file its name before the disk has it. When interrupted it leaves `NAME#1`,
//! which other engines would read.

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

/// The folder.
#[derive(Debug)]
pub(crate) struct Folder {
    files: LocalFileSystem,
}

impl Folder {
    /// This folder, which is there.
    pub(crate) fn at(folder: &Path) -> Result<Folder> {
        Ok(Folder { files: LocalFileSystem::new_with_prefix(folder)? })
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Folder {
    async fn put_opts(
        &self,
        location: &ObjectPath,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let PutOptions { mode: mode @ (PutMode::Create | PutMode::Overwrite), .. } = opts else {
            return self.files.put_opts(location, payload, opts).await;
        };
        let file = self.files.path_to_filesystem(location)?;
        let path = file.display().to_string();
        match spawn_blocking(move || put(&file, &payload, &mode)).await? {
            Ok(()) => Ok(PutResult { e_tag: None, version: None }),
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
                Err(Error::AlreadyExists { path, source: cause.into() })
            }
            Err(cause) => Err(Error::Generic { store: "folder", source: cause.into() }),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &ObjectPath,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.files.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        self.files.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<ObjectPath>>,
    ) -> BoxStream<'static, Result<ObjectPath>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &ObjectPath, to: &ObjectPath, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }
}

/// Makes a file that has its name only when it is whole and on disk.
fn put(file: &Path, payload: &PutPayload, mode: &PutMode) -> io::Result<()> {
    let folder = file.parent().ok_or(ErrorKind::NotADirectory)?;
    // Engines pass over names that begin with a dot.
    let mut new = NamedTempFile::with_prefix_in(".new-", folder)?;
    for bytes in payload {
        new.write_all(bytes)?;
    }
    new.as_file().sync_all()?;
    match mode {
        PutMode::Create => new.persist_noclobber(file).map_err(|error| error.error)?,
        _ => new.persist(file).map_err(|error| error.error)?,
    };
    File::open(folder)?.sync_all()
}
