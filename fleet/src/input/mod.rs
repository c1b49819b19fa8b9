//! Files that a store takes, as rows of its tables.

mod find;
mod guard;
mod layout;
mod samples;
mod study;
mod usage;

use crate::error::{FleetError, Result};
use crate::json::Document;
use crate::table::{Cell, Rows};
use crate::tables::{self, RUNS};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The user's labels of added files.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Labels {
    /// The service that the programs are part of.
    pub service: Option<String>,
    /// The machine.
    pub host: Option<String>,
    /// The commit that the programs were built from.
    pub commit: Option<String>,
    /// Its time, in seconds since 1970.
    pub commit_time_s: Option<i64>,
    /// The programs' build id, in hexadecimal.
    pub build_id: Option<String>,
    /// Seconds that the programs run without being recorded, for calls per second.
    pub seconds: Option<f64>,
}

/// A file's own labels.
#[derive(Default)]
struct About {
    source: &'static str,
    /// The user's name of the file, where this file stands for another one.
    file: Option<String>,
    /// Hash of the file that this one stands for.
    content: Option<String>,
    service: Option<String>,
    host: Option<String>,
    build_id: Option<String>,
    recorded_at_s: Option<i64>,
    program: Option<String>,
    machine: Option<String>,
    data_model: Option<String>,
}

/// A file as rows.
#[derive(Debug)]
pub struct Input {
    /// The run's name: the content's hash.
    pub run: String,
    /// The user's name of the file.
    pub name: String,
    /// The kind of file.
    pub source: &'static str,
    /// Rows of each table that has any, those of `runs` last.
    pub rows: Vec<Rows>,
}

/// Rows of one run, while they are read.
struct Filling<'l> {
    run: Cell,
    labels: &'l Labels,
    tables: Vec<Rows>,
    /// Patterns so far.
    patterns: u64,
}

impl Filling<'_> {
    /// The rows of one table.
    fn table(&mut self, table: &'static crate::table::Table) -> &mut Rows {
        let at = self.tables.iter().position(|rows| rows.table.name == table.name);
        let at = at.unwrap_or_else(|| {
            self.tables.push(Rows::new(table));
            self.tables.len() - 1
        });
        &mut self.tables[at]
    }
}

/// Reads a file.
///
/// # Errors
/// When it cannot be read, is damaged, or is of a kind that a store does not take.
pub fn read(file: &Path, labels: &Labels) -> Result<Input> {
    let unreadable = |cause| FleetError::Unreadable { file: file.to_owned(), cause };
    let bytes = std::fs::read(file).map_err(unreadable)?;
    let modified = std::fs::metadata(file).and_then(|about| about.modified()).ok();
    let modified = modified.and_then(|at| i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok());
    of_bytes(file, &bytes, modified, labels)
}

/// The same of a file's bytes.
///
/// # Errors
/// As [`read`].
pub fn of_bytes(file: &Path, bytes: &[u8], modified_s: Option<i64>, labels: &Labels) -> Result<Input> {
    let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut filling = Filling { run: Cell::from(hash.as_str()), labels, tables: Vec::new(), patterns: 0 };
    let bad = |why: String| FleetError::BadInput { file: file.to_owned(), why };
    let about = fill(&mut filling, bytes).map_err(bad)?;
    let run = about.content.clone().unwrap_or(hash);
    let name = about.file.clone().unwrap_or_else(|| file.display().to_string());
    let source = about.source;
    filling.table(&RUNS).push(run_row(&run, &name, modified_s, about, labels));
    let mut rows = filling.tables;
    rows.sort_by_key(|rows| tables::ALL.iter().position(|table| table.name == rows.table.name));
    Ok(Input { run, name, source, rows })
}

fn fill(filling: &mut Filling<'_>, bytes: &[u8]) -> Result<About, String> {
    if bytes.starts_with(b"LINEUPRC") {
        return Err("a recording is added by `lineup fleet add`, which names what it accessed".into());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| WRONG.to_owned())?;
    if !text.trim_start().starts_with('{') {
        return guard::fill(filling, text);
    }
    let document = Document::parse(text)?;
    let document = document.root();
    match document.text("schema").as_deref() {
        Some("lineup.usage/1") => usage::fill(filling, document),
        Some("lineup.find/1") => find::fill(filling, document),
        Some("lineup.samples/1") => samples::fill(filling, document),
        Some("lineup.layout/1") => layout::fill(filling, document),
        Some("lineup.study/1") => study::fill(filling, document),
        Some(other) => Err(format!("a store does not take schema {other}; {WRONG}")),
        None => Err(WRONG.into()),
    }
}

/// The kinds of files that a store takes.
const WRONG: &str =
    "give a recording, a lineup.lock, or JSON of `explain --usage`, `find`, `import`, `layout` or `study`";

fn run_row(run: &str, name: &str, modified_s: Option<i64>, about: About, labels: &Labels) -> [Cell; 12] {
    let file_name = about.program.as_deref().and_then(|program| Path::new(program).file_name());
    let file_name = file_name.map(|name| name.to_string_lossy().into_owned());
    [
        run.into(),
        about.source.into(),
        labels.service.clone().or(about.service).or(file_name).into(),
        labels.host.clone().or(about.host).into(),
        labels.build_id.clone().or(about.build_id).into(),
        labels.commit.clone().into(),
        labels.commit_time_s.into(),
        about.recorded_at_s.or(modified_s).into(),
        about.program.into(),
        about.machine.into(),
        about.data_model.into(),
        name.into(),
    ]
}
