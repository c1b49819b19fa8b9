//! The command line of `lineup study --code`.

use crate::terminal::typed_command::split;
use anyhow::Result;
use clap::Args;
use lineup_study::input::Input;
use lineup_study::interrupt::Interrupts;
use lineup_study::run::Run;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `lineup study --code`.
#[derive(Args, Clone)]
pub(crate) struct CodeOptions {
    /// Put the program's code in another order, instead of its data: by what the run after -- executes, with an
    /// installed llvm-bolt; the result is proven like a patch. With --kernel-source the functions that calls of
    /// --region go into come into one row of the image
    #[arg(long, conflicts_with_all = ["audits", "guard", "program", "allow_growth", "order"])]
    pub(crate) code: bool,
    /// Arguments of a run that judges an order of code, in one quoted string [default: those after --, which flatters
    /// the order], and of a second run that confirms a placement. Not for --region without --code
    #[arg(long, value_name = "ARGUMENTS", conflicts_with = "kernel_source", allow_hyphen_values = true)]
    test_arguments: Option<String>,
    /// File that the program reads as standard input in that run
    #[arg(long, value_name = "FILE", conflicts_with = "kernel_source")]
    test_stdin: Option<PathBuf>,
    /// With --code: order for calls of --region that find none of the program's code in the caches, by the lines that
    /// recorded calls fetched instead of counts; the report gives the cost for all other code
    #[arg(long, requires = "code", requires = "regions", conflicts_with = "kernel_source")]
    pub(crate) cold: bool,
    /// With --code: write the counts into the sources as hints, as a patch for C and C++, and leave the order to the
    /// compiler: which way conditions come out (__builtin_expect, or the project's own likely and unlikely), and which
    /// functions are cold
    #[arg(long, requires = "code", conflicts_with_all = ["cold", "bolt", "kernel_source"])]
    pub(crate) hints: bool,
    /// With --code: also compare the result with other optimisers, all trained by the run after -- and
    /// timed in turn by the other: functions in Lineup's order by the linker, llvm-bolt from its own instrumented run,
    /// GCC's profile-guided optimisation, and both together. Takes up to --max-time once more, and builds the program
    /// five times
    #[arg(long, requires = "code", conflicts_with_all = ["cold", "hints", "links", "kernel_source"])]
    pub(crate) against_optimisers: bool,
    /// With --code: apply this patch of the sources before the code is put in order, such as fix.patch of a study of
    /// data. The study compares the unchanged program with the result of both, and a table shows the gain of each alone
    #[arg(long, value_name = "FILE", requires = "code", conflicts_with_all = ["cold", "hints", "links", "kernel_source"])]
    pub(crate) patch: Option<PathBuf>,
    /// With --code: the llvm-bolt that is used [default: llvm-bolt, or the newest of llvm-bolt-16 to llvm-bolt-22]
    #[arg(long, value_name = "FILE", requires = "code", conflicts_with = "kernel_source")]
    pub(crate) bolt: Option<PathBuf>,
}

impl CodeOptions {
    /// Makes the arguments and input of a plan's runs those on which the order is judged; false when they stay the ones
    /// from which it is computed.
    pub(crate) fn judge_by_another(
        &self,
        (arguments, input): (&mut Vec<OsString>, &mut Input),
        interrupts: &Interrupts,
    ) -> Result<bool> {
        if let Some(given) = &self.test_arguments {
            *arguments = words(given)?;
        }
        if let Some(file) = &self.test_stdin {
            *input = Input::from_file(file, interrupts)?;
        }
        Ok(self.has_test())
    }

    /// True where another run is named.
    pub(crate) fn has_test(&self) -> bool {
        self.test_arguments.is_some() || self.test_stdin.is_some()
    }

    /// The same program with the arguments and input of the test; `None` when neither is given.
    pub(crate) fn second_run(&self, run: &Run, interrupts: &Interrupts) -> Result<Option<Run>> {
        if !self.has_test() {
            return Ok(None);
        }
        let mut second = run.clone();
        if let Some(arguments) = &self.test_arguments {
            second.command.truncate(1);
            second.command.extend(words(arguments)?);
        }
        if let Some(file) = &self.test_stdin {
            second.input = Input::from_file(file, interrupts)?;
        }
        Ok(Some(second))
    }
}

/// Arguments in one string as words; none in an empty one.
pub(super) fn words(arguments: &str) -> Result<Vec<OsString>> {
    match arguments.trim() {
        "" => Ok(Vec::new()),
        _ => split(arguments, false),
    }
}
