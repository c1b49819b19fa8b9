//! What can go wrong with a store and what goes into it.

use std::path::PathBuf;

/// A result of this crate.
pub type Result<T, E = FleetError> = std::result::Result<T, E>;

/// Why something could not be added, asked or advised. Each message says what it was about, and what to do next where
/// that is known.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A file that was to be added cannot be read.
    #[error("{}: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A file that was to be added is none of those that a store takes, or it is damaged.
    #[error("{}: {why}", file.display())]
    BadInput {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// Files were refused; they were named before.
    #[error("{refused} of {given} files were refused, see above; the rest went in")]
    Refused {
        /// How many.
        refused: usize,
        /// Of how many.
        given: usize,
    },
    /// There is no store there.
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
        /// What it says.
        found: String,
        /// What is known.
        expected: &'static str,
    },
    /// A URL is none of a store.
    #[error("{given}: {why}")]
    StoreUrl {
        /// What was given, when nothing secret can be in it.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing can be added to a store there.
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
        /// What was being done.
        doing: &'static str,
        /// With which file, folder or URL.
        path: String,
        /// What the system or the server said.
        cause: String,
    },
    /// A table's file could not be made.
    #[error("table {table}: {cause}")]
    Table {
        /// The table.
        table: &'static str,
        /// What the library said.
        cause: datafusion::parquet::errors::ParquetError,
    },
    /// The engine does not take the question, or could not answer it.
    #[error("{}", first_of(.0))]
    Engine(#[from] datafusion::error::DataFusionError),
    /// The engine's threads could not be started.
    #[error("the engine cannot start: {0}")]
    Runtime(std::io::Error),
    /// This program was built without what asks a cluster.
    #[error(
        "this lineup-fleet was built without --cluster; build it with: cargo install --locked --path fleet --features cluster"
    )]
    NoClusters,
    /// What was given is no address of a cluster.
    #[error("{given}: a cluster is named by HOST:PORT of its scheduler, such as 127.0.0.1:50050")]
    ClusterAddress {
        /// What was given.
        given: String,
    },
    /// No scheduler answers.
    #[error(
        "{scheduler}: the cluster's scheduler cannot be reached {when}: {cause}; see that ballista-scheduler runs there, and ask again"
    )]
    ClusterGone {
        /// Its address.
        scheduler: String,
        /// Before the question, or during it.
        when: &'static str,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The cluster took longer than it may.
    #[error(
        "{scheduler}: the cluster gave no answer within {seconds} s; http://{scheduler}/api/executors shows which executors \
             it has, and --wait gives it longer. Of a store of many files a plan is larger than executors take, unless \
             they are told to: see \"Large stores\" in docs/fleet.md"
    )]
    ClusterSlow {
        /// Address of the scheduler.
        scheduler: String,
        /// How long it was waited for.
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
        /// How many of the runs it sees.
        seen: usize,
        /// How many are there.
        runs: usize,
        /// Where it looked.
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
        /// What it said.
        cause: String,
        /// Where it looked.
        url: String,
    },
    /// There is no advice on this type.
    #[error("{type_name}: {why}")]
    NoAdvice {
        /// The type.
        type_name: String,
        /// Why, and what to do.
        why: String,
    },
    /// Advice failed.
    #[error(transparent)]
    Advise(#[from] lineup_advise::error::AdviseError),
    /// Output could not be written.
    #[error("cannot write {what}: {cause}")]
    Output {
        /// What, or where to.
        what: String,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// The engine's message without what it did before, which is on further lines.
fn first_of(error: &datafusion::error::DataFusionError) -> String {
    let text = error.strip_backtrace();
    format!("the question cannot be answered: {text}")
}

impl From<datafusion::arrow::error::ArrowError> for FleetError {
    fn from(error: datafusion::arrow::error::ArrowError) -> Self {
        FleetError::Engine(error.into())
    }
}
