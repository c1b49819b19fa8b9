//! Errors of a store and of its input.

use std::path::PathBuf;

/// A result of this crate.
pub type Result<T, E = FleetError> = std::result::Result<T, E>;

/// A failure to add a file, ask a question or give advice. Each message names the subject, and the next step where one
/// is known.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A file to add cannot be read.
    #[error("{}: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// A store does not take files of this kind, or the file is damaged.
    #[error("{}: {why}", file.display())]
    BadInput {
        /// The file.
        file: PathBuf,
        /// The fault, and what would be right.
        why: String,
    },
    /// Files were refused; they were named before.
    #[error("{refused} of {given} files were refused, see above; the rest went in")]
    Refused {
        /// The number of refused files.
        refused: usize,
        /// The number of given files.
        given: usize,
    },
    /// No store at this place.
    #[error("{store}: here is no store of `lineup fleet add`, which has a file {marker}")]
    NoStore {
        /// The folder or URL.
        store: String,
        /// The file that marks a store.
        marker: &'static str,
    },
    /// The store's tables are of another version.
    #[error(
        "{store}: the store's tables have version {found:?}, this lineup-fleet knows {expected:?}; add the files to a new store"
    )]
    StoreVersion {
        /// The folder or URL.
        store: String,
        /// The version in the store.
        found: String,
        /// The version of this program.
        expected: &'static str,
    },
    /// The URL is not one of a store.
    #[error("{given}: {why}")]
    StoreUrl {
        /// The given URL, when nothing secret can be in it.
        given: String,
        /// The fault.
        why: String,
    },
    /// The store is read-only.
    #[error(
        "{store}: a store of a web server can be asked, and nothing can be added to it: of a web server nobody can ask \
             that a file be new; add to the folder or the bucket that it shows"
    )]
    ReadOnly {
        /// The URL.
        store: String,
    },
    /// The store cannot be read or written.
    #[error("cannot {doing} {path}: {cause}")]
    Store {
        /// The failed operation.
        doing: &'static str,
        /// With which file, folder or URL.
        path: String,
        /// The error of the system or the server.
        cause: String,
    },
    /// A table's file could not be made.
    #[error("table {table}: {cause}")]
    Table {
        /// The table.
        table: &'static str,
        /// The library's error.
        cause: datafusion::parquet::errors::ParquetError,
    },
    /// The engine does not take the question, or could not answer it.
    #[error("{}", first_of(.0))]
    Engine(#[from] datafusion::error::DataFusionError),
    /// The engine's threads could not be started.
    #[error("the engine cannot start: {0}")]
    Runtime(std::io::Error),
    /// This program was built without a client of clusters.
    #[error(
        "this lineup-fleet was built without --cluster; build it with: cargo install --locked --path fleet --features cluster"
    )]
    NoClusters,
    /// The given text is no address of a cluster.
    #[error("{given}: a cluster is named by HOST:PORT of its scheduler, such as 127.0.0.1:50050")]
    ClusterAddress {
        /// The given text.
        given: String,
    },
    /// No scheduler answers.
    #[error(
        "{scheduler}: the cluster's scheduler cannot be reached {when}: {cause}; see that ballista-scheduler runs there, and ask again"
    )]
    ClusterGone {
        /// Its address.
        scheduler: String,
        /// When it fails: before the question, or during it.
        when: &'static str,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The cluster exceeded its time limit.
    #[error(
        "{scheduler}: the cluster gave no answer within {seconds} s; http://{scheduler}/api/executors shows which executors \
             it has, and --wait gives it longer. The plan for a store of many files is larger than executors accept by \
             default: see \"Large stores\" in docs/fleet.md"
    )]
    ClusterSlow {
        /// Address of the scheduler.
        scheduler: String,
        /// The waiting time.
        seconds: u64,
    },
    /// A cluster's programs cannot read stores of this kind.
    #[error(
        "{store}: a cluster of Ballista reads folders, s3:// and http(s):// of WebDAV; ask this store without --cluster"
    )]
    ClusterKind {
        /// The URL.
        store: String,
    },
    /// The cluster sees other files.
    #[error(
        "{scheduler}: the cluster sees {seen} of the {runs} runs of the store; its scheduler and its executors must find \
             the same files at {url} as this machine"
    )]
    ClusterBlind {
        /// Address of the scheduler.
        scheduler: String,
        /// The number of runs that the cluster sees.
        seen: usize,
        /// The number of runs in the store.
        runs: usize,
        /// The place where it looked.
        url: String,
    },
    /// The cluster gave up.
    #[error(
        "{scheduler}: the cluster cannot answer the question: {cause}; its scheduler and its executors must all find the \
             store at {url}, and their logs say more"
    )]
    ClusterFailed {
        /// Address of the scheduler.
        scheduler: String,
        /// The cluster's error.
        cause: String,
        /// The place where it looked.
        url: String,
    },
    /// No advice on this type.
    #[error("{type_name}: {why}")]
    NoAdvice {
        /// The type.
        type_name: String,
        /// The reason, and the next step.
        why: String,
    },
    /// Advice failed.
    #[error(transparent)]
    Advise(#[from] lineup_advise::error::AdviseError),
    /// Output could not be written.
    #[error("cannot write {what}: {cause}")]
    Output {
        /// The object of the failed write.
        what: String,
        /// The system's error.
        cause: std::io::Error,
    },
}

/// The engine's message without its backtrace.
fn first_of(error: &datafusion::error::DataFusionError) -> String {
    let text = error.strip_backtrace();
    format!("the question cannot be answered: {text}")
}

impl From<datafusion::arrow::error::ArrowError> for FleetError {
    fn from(error: datafusion::arrow::error::ArrowError) -> Self {
        FleetError::Engine(error.into())
    }
}
