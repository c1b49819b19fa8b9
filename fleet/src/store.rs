//! The folder of a store: a folder for each table, in it a Parquet file for each run.
//!
//! * A file gets its name when it is whole and on disk; until then it has another name, which nobody reads.
//! * Names come from the run, which is the hash of what was added. So two who add the same file write the same names, and
//!   the file counts once.
//! * The file of `runs` is made last, and only if there is none. Rows of other tables count once their run is there: who
//!   is interrupted leaves rows that do not count, and adds the file again.

use crate::error::{FleetError, Result};
use crate::input::Input;
use crate::table::{Rows, Table};
use crate::tables::{self, RUNS, VERSION};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The file that marks a store, and says its version.
const MARKER: &str = "lineup-fleet";

/// What file URLs begin with.
const FILE_URL: &str = "file://";

/// A store.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// What became of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Added {
    /// It is in the store now.
    New,
    /// It was there.
    Known,
}

impl Store {
    /// The store in this folder, which is made when there is none.
    ///
    /// # Errors
    /// When the folder cannot be written, or its tables are of another version.
    pub fn open_or_make(given: &str) -> Result<Store> {
        let store = Store { folder: folder_of(given)? };
        for folder in tables::ALL.map(|table| store.folder_of_table(table)) {
            fs::create_dir_all(&folder).map_err(|cause| failed("make", &folder, cause))?;
        }
        let marker = store.folder.join(MARKER);
        if !marker.exists() {
            put(&store.folder, &marker, false, |file| fs::write(file, format!("{VERSION}\n")))?;
        }
        store.checked()
    }

    /// The store in this folder.
    ///
    /// # Errors
    /// When there is none, or its tables are of another version.
    pub fn open(given: &str) -> Result<Store> {
        Store { folder: folder_of(given)? }.checked()
    }

    fn checked(self) -> Result<Store> {
        let text = match fs::read_to_string(self.folder.join(MARKER)) {
            Ok(text) => text,
            Err(_) => return Err(FleetError::NoStore { folder: self.folder, marker: MARKER }),
        };
        match text.trim_end() {
            VERSION => Ok(self),
            found => {
                let found = found.to_owned();
                Err(FleetError::StoreVersion { folder: self.folder, found, expected: VERSION })
            }
        }
    }

    /// The folder with a table's files.
    pub fn folder_of_table(&self, table: &Table) -> PathBuf {
        self.folder.join(table.name)
    }

    fn file(&self, table: &Table, run: &str) -> PathBuf {
        self.folder_of_table(table).join(format!("{run}.parquet"))
    }

    /// Adds a file's rows, unless they are there.
    ///
    /// # Errors
    /// When a file cannot be written. What was written until then does not count.
    pub fn add(&self, input: &Input) -> Result<Added> {
        let known = self.file(&RUNS, &input.run);
        if known.exists() {
            return Ok(Added::Known);
        }
        for rows in input.rows.iter().filter(|rows| rows.table.name != RUNS.name) {
            self.put_rows(rows, &input.run, true)?;
        }
        let runs = input.rows.iter().find(|rows| rows.table.name == RUNS.name);
        match runs.map(|rows| self.put_rows(rows, &input.run, false)) {
            Some(Err(FleetError::Store { cause, .. })) if cause.kind() == io::ErrorKind::AlreadyExists => {
                Ok(Added::Known)
            }
            Some(result) => result.map(|()| Added::New),
            None => Ok(Added::New),
        }
    }

    fn put_rows(&self, rows: &Rows, run: &str, replace: bool) -> Result<()> {
        let table = rows.table;
        let file = self.file(table, run);
        let bytes = parquet(rows).map_err(|cause| FleetError::Table { table: table.name, cause })?;
        put(&self.folder_of_table(table), &file, replace, |path| fs::write(path, &bytes))
    }
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

/// Makes a file that has its name only when it is whole and on disk.
fn put(folder: &Path, file: &Path, replace: bool, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    let made = || -> io::Result<()> {
        // Engines pass over names that begin with a dot.
        let new = NamedTempFile::with_prefix_in(".new-", folder)?;
        write(new.path())?;
        new.as_file().sync_all()?;
        match replace {
            true => new.persist(file).map_err(|error| error.error)?,
            false => new.persist_noclobber(file).map_err(|error| error.error)?,
        };
        File::open(folder)?.sync_all()
    };
    made().map_err(|cause| failed("write", file, cause))
}

fn failed(doing: &'static str, path: &Path, cause: io::Error) -> FleetError {
    FleetError::Store { doing, path: path.to_owned(), cause }
}

/// The folder that `--store` means.
fn folder_of(given: &str) -> Result<PathBuf> {
    match given.strip_prefix(FILE_URL) {
        Some(path) if path.starts_with('/') => Ok(path.into()),
        _ if given.contains("://") => Err(FleetError::NotLocal { given: given.to_owned() }),
        _ => Ok(given.into()),
    }
}
