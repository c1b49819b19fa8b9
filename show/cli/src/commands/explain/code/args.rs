//! Files that `lineup explain --code` writes for optimisers and linkers.

use clap::Args;
use std::path::PathBuf;

/// Options of `lineup explain --code`.
#[derive(Args)]
pub(crate) struct CodeOptions {
    /// Show the lines and pages of code that a run of lineup record --whole-program executed (JSON: schema lineup.code/1)
    #[arg(long, conflicts_with_all = ["full", "usage", "csv", "trace", "regions", "caches", "seconds"])]
    pub(crate) code: bool,
    /// File whose code is shown, by its name or path, such as libpython3.11.so.1.0 [default: the program]
    #[arg(long, value_name = "FILE", requires = "code")]
    pub(crate) image: Option<PathBuf>,
    /// Write how often each way between blocks was taken, for llvm-bolt -data=FILE; link the program with
    /// -Wl,--emit-relocs
    #[arg(long, value_name = "FILE", requires = "code")]
    pub(crate) bolt: Option<PathBuf>,
    /// Write an order of functions for ld.lld --symbol-ordering-file=FILE; compile with -ffunction-sections, as for all
    /// linkers
    #[arg(long, value_name = "FILE", requires = "code")]
    pub(crate) symbol_order: Option<PathBuf>,
    /// Write calls between functions for ld.lld --call-graph-ordering-file=FILE
    #[arg(long, value_name = "FILE", requires = "code")]
    pub(crate) call_graph: Option<PathBuf>,
    /// Write an order of functions for ld.gold --section-ordering-file=FILE
    #[arg(long, value_name = "FILE", requires = "code")]
    pub(crate) section_order: Option<PathBuf>,
    /// Write an order of functions for GNU ld, gcc -Wl,-T,FILE
    #[arg(long, value_name = "FILE", requires = "code")]
    pub(crate) linker_script: Option<PathBuf>,
    /// Write counts by function and source line for clang -fprofile-sample-use=FILE; compile the recorded program by
    /// clang with -g -fdebug-info-for-profiling
    #[arg(long, value_name = "FILE", requires = "code")]
    pub(crate) sample_profile: Option<PathBuf>,
    /// With --code and --html: a recording of calls of the same program; the map shows the regions whose calls fetch each line
    #[arg(long, value_name = "RECORDING", requires = "code", requires = "html")]
    pub(crate) calls: Option<PathBuf>,
}
