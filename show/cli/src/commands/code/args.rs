//! Arguments of `lineup code`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `lineup code`.
#[derive(Args)]
pub(crate) struct Options {
    /// A recording, as `lineup record --whole-program` writes it
    pub(crate) recording: PathBuf,
    /// File whose code is shown, by its name or path, such as libpython3.11.so.1.0 [default: the program]
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Option<PathBuf>,
    /// Write how often each way between blocks was taken, for llvm-bolt -data=FILE; link the program with
    /// -Wl,--emit-relocs
    #[arg(long, value_name = "FILE")]
    pub(crate) bolt: Option<PathBuf>,
    /// Write an order of functions for ld.lld --symbol-ordering-file=FILE; compile with -ffunction-sections, as for all
    /// linkers
    #[arg(long, value_name = "FILE")]
    pub(crate) symbol_order: Option<PathBuf>,
    /// Write calls between functions for ld.lld --call-graph-ordering-file=FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) call_graph: Option<PathBuf>,
    /// Write an order of functions for ld.gold --section-ordering-file=FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) section_order: Option<PathBuf>,
    /// Write an order of functions for GNU ld, gcc -Wl,-T,FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) linker_script: Option<PathBuf>,
    /// Write counts by function and source line for clang -fprofile-sample-use=FILE; compile the recorded program by
    /// clang with -g -fdebug-info-for-profiling
    #[arg(long, value_name = "FILE")]
    pub(crate) sample_profile: Option<PathBuf>,
    /// Write the executed code as a map, one offline page: functions as rows of lines, cold bytes on them, pages
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// With --html: a recording of calls of the same program; the map shows the regions whose calls fetch each line
    #[arg(long, value_name = "RECORDING", requires = "html")]
    pub(crate) calls: Option<PathBuf>,
    /// Functions shown, most instructions first
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) top: usize,
    /// Print JSON (schema lineup.code/1)
    #[arg(long)]
    pub(crate) json: bool,
}
