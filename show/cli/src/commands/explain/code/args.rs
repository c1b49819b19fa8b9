//! Options of `lineup explain` for a recording of a whole program.

use clap::Args;
use std::path::PathBuf;

/// Options for a recording of a whole program.
#[derive(Args)]
#[command(next_help_heading = "For a recording of a whole program")]
pub(crate) struct CodeOptions {
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
    /// With --html: a recording of calls of the same program; the map shows the regions whose calls fetch each line
    #[arg(long, value_name = "RECORDING", requires = "html")]
    pub(crate) calls: Option<PathBuf>,
}

impl CodeOptions {
    /// Whether one of them is given, which only a recording of a whole program can answer.
    pub(in crate::commands::explain) fn is_given(&self) -> bool {
        let files = [
            &self.image,
            &self.bolt,
            &self.symbol_order,
            &self.call_graph,
            &self.section_order,
            &self.linker_script,
            &self.sample_profile,
            &self.calls,
        ];
        files.into_iter().any(Option::is_some)
    }
}
