//! A store: a folder for each table, with a Parquet file for each run, on this machine or in an object store.
//!
//! * A file has its name when it is whole, and in a folder of this machine also on disk.
//! * Names come from the run, which is the hash of the added file. So two processes that add the same file write the
//!   same names, and the file counts once.
//! * The file of `runs` is made last, and only if it does not exist. Rows of other tables count once their run is
//!   there. An interrupted process leaves rows that do not count, and may add the file again.

use crate::error::{FleetError, Result};
use crate::input::Input;
use crate::place::Place;
use crate::table::{Rows, Table};
use crate::tables::{self, RUNS, VERSION};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use futures::TryStreamExt;
use futures::future::try_join_all;
use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// The file that marks a store, and says its version.
const MARKER: &str = "lineup-fleet";

/// The ending of the names of files with rows.
pub(crate) const ENDING: &str = ".parquet";

/// A store.
#[derive(Clone, Debug)]
pub struct Store {
    /// The name as the user gave it.
    name: String,
    place: Place,
    objects: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
}

/// The result of adding a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Added {
    /// The file was added.
    New,
    /// It was there.
    Known,
}

impl Store {
    /// The store in this folder or at this URL, made if it does not exist.
    ///
    /// # Errors
    /// When nothing can be written there, or its tables are of another version.
    pub fn open_or_make(given: &str) -> Result<Store> {
        let place = Place::of(given)?;
        if !place.takes_files() {
            return Err(FleetError::ReadOnly { store: given.to_owned() });
        }
        if let Place::Folder(folder) = &place {
            // Engines want the folder of a table that has no files yet.
            for folder in tables::ALL.map(|table| folder.join(table.name)) {
                let path = folder.display().to_string();
                fs::create_dir_all(&folder).map_err(|cause| FleetError::Store {
                    doing: "make",
                    path,
                    cause: cause.to_string(),
                })?;
            }
        }
        let store = Store::at(given, &place)?;
        match store.runtime.block_on(store.put(
            &MARKER.into(),
            format!("{VERSION}\n").into(),
            PutMode::Create,
        )) {
            Ok(()) | Err(Error::AlreadyExists { .. }) => store.checked(),
            Err(cause) => Err(store.failed("write", MARKER, cause)),
        }
    }

    /// The store in this folder or at this URL.
    ///
    /// # Errors
    /// When it does not exist, or its tables are of another version.
    pub fn open(given: &str) -> Result<Store> {
        Store::at(given, &Place::of(given)?)?.checked()
    }

    fn at(given: &str, place: &Place) -> Result<Store> {
        let runtime = Builder::new_multi_thread().enable_all().build().map_err(FleetError::Runtime)?;
        let objects = match place.objects() {
            Ok(objects) => objects,
            Err(_) if matches!(place, Place::Folder(_)) => return Err(none_at(given)),
            Err(cause) => return Err(failed("open", given.to_owned(), cause)),
        };
        Ok(Store { name: given.to_owned(), place: place.clone(), objects, runtime: Arc::new(runtime) })
    }

    fn checked(self) -> Result<Store> {
        let marker = ObjectPath::from(MARKER);
        let read = self.runtime.block_on(async { self.objects.get(&marker).await?.bytes().await });
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(Error::NotFound { .. }) => return Err(none_at(&self.name)),
            Err(cause) => return Err(self.failed("read", MARKER, cause)),
        };
        match String::from_utf8_lossy(&bytes).trim_end() {
            VERSION => Ok(self),
            found => {
                let found = found.to_owned();
                Err(FleetError::StoreVersion { store: self.name, found, expected: VERSION })
            }
        }
    }

    /// The files in it, by paths that begin at the store.
    pub(crate) fn objects(&self) -> Arc<dyn ObjectStore> {
        self.objects.clone()
    }

    /// The store's URL for a cluster's programs.
    pub(crate) fn for_ballista(&self) -> Result<Url> {
        self.place.for_ballista().ok_or_else(|| FleetError::ClusterKind { store: self.name.clone() })
    }

    /// The runs that are in it now.
    pub(crate) fn runs(&self) -> Result<BTreeSet<String>> {
        let folder = ObjectPath::from(RUNS.name);
        let listed = self.runtime.block_on(self.objects.list(Some(&folder)).try_collect::<Vec<_>>());
        let files = listed.map_err(|cause| self.failed("list", RUNS.name, cause))?;
        let run = |file: &ObjectMeta| Some(file.location.filename()?.strip_suffix(ENDING)?.to_owned());
        Ok(files.iter().filter_map(run).collect())
    }

    /// The threads that wait for it.
    pub(crate) fn runtime(&self) -> Arc<Runtime> {
        self.runtime.clone()
    }

    /// Adds a file's rows, unless they are there.
    ///
    /// # Errors
    /// When a file cannot be written. Rows written until then do not count.
    pub fn add(&self, input: &Input) -> Result<Added> {
        self.runtime.block_on(self.add_rows(input))
    }

    async fn add_rows(&self, input: &Input) -> Result<Added> {
        let known = file(&RUNS, &input.run);
        match self.objects.head(&known).await {
            Ok(_) => return Ok(Added::Known),
            Err(Error::NotFound { .. }) => {}
            Err(cause) => return Err(self.failed("look for", known.as_ref(), cause)),
        }
        let (last, others): (Vec<&Rows>, Vec<&Rows>) =
            input.rows.iter().partition(|rows| rows.table.name == RUNS.name);
        try_join_all(others.into_iter().map(|rows| self.put_rows(rows, &input.run, PutMode::Overwrite)))
            .await?;
        for rows in last {
            if self.put_rows(rows, &input.run, PutMode::Create).await? == Added::Known {
                return Ok(Added::Known);
            }
        }
        Ok(Added::New)
    }

    async fn put_rows(&self, rows: &Rows, run: &str, mode: PutMode) -> Result<Added> {
        let table = rows.table;
        let bytes = parquet(rows).map_err(|cause| FleetError::Table { table: table.name, cause })?;
        let file = file(table, run);
        match self.put(&file, bytes.into(), mode).await {
            Ok(()) => Ok(Added::New),
            Err(Error::AlreadyExists { .. }) => Ok(Added::Known),
            Err(cause) => Err(self.failed("write", file.as_ref(), cause)),
        }
    }

    async fn put(&self, file: &ObjectPath, payload: PutPayload, mode: PutMode) -> Result<(), Error> {
        self.objects.put_opts(file, payload, mode.into()).await.map(drop)
    }

    fn failed(&self, doing: &'static str, file: &str, cause: Error) -> FleetError {
        failed(doing, format!("{}/{file}", self.name.trim_end_matches('/')), cause)
    }
}

/// The path of a table's rows of a run.
fn file(table: &Table, run: &str) -> ObjectPath {
    ObjectPath::from_iter([table.name, &format!("{run}{ENDING}")])
}

/// The rows as a Parquet file.
fn parquet(rows: &Rows) -> Result<Vec<u8>, ParquetError> {
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, rows.table.schema(), Some(properties))?;
    writer.write(&rows.to_batch()?)?;
    writer.close()?;
    Ok(bytes)
}

fn none_at(given: &str) -> FleetError {
    FleetError::NoStore { store: given.to_owned(), marker: MARKER }
}

fn failed(doing: &'static str, path: String, cause: Error) -> FleetError {
    FleetError::Store { doing, path, cause: told(&cause) }
}

/// An error's message with those of its causes: libraries wrap the error of the system or the server in their own.
fn told(cause: &Error) -> String {
    let mut told = match cause {
        Error::Generic { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    let mut deeper = std::error::Error::source(cause);
    while let Some(cause) = deeper {
        let text = cause.to_string();
        if !told.contains(&text) {
            told = format!("{told}: {text}");
        }
        deeper = cause.source();
    }
    told
}
