//! The command line of `lineup study --code`.

use crate::compare::split;
use crate::study::plan::Plan;
use crate::typed;
use anyhow::Result;
use clap::Args;
use lineup_study::input::Input;
use lineup_study::interrupt::Interrupts;
use lineup_study::run::Run;
use lineup_study::source::scratch::Tree;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `lineup study --code`.
#[derive(Args, Clone)]
pub(crate) struct CodeOptions {
    /// Put the program's code in another order, instead of its data: by what the run after -- executes, with an
    /// installed llvm-bolt; the result is proven like a patch. With --kernel-source the functions that calls of
    /// --region go into come into one row of the image
    #[arg(long, conflicts_with_all = ["audits", "guard", "program", "allow_growth", "order"])]
    pub(in crate::study) code: bool,
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
    pub(in crate::study) cold: bool,
    /// With --code: write the counts into the sources as hints, as a patch for C and C++, and leave the order to the
    /// compiler: which way conditions come out (__builtin_expect, or the project's own likely and unlikely), and which
    /// functions are cold
    #[arg(long, requires = "code", conflicts_with_all = ["cold", "bolt", "kernel_source"])]
    pub(in crate::study) hints: bool,
    /// With --code: also compare the result with other optimisers, all trained by the run after -- and
    /// timed in turn by the other: functions in Lineup's order by the linker, llvm-bolt from its own instrumented run,
    /// GCC's profile-guided optimisation, and both together. Takes up to --max-time once more, and builds the program
    /// five times
    #[arg(long, requires = "code", conflicts_with_all = ["cold", "hints", "links", "kernel_source"])]
    pub(in crate::study) against_optimisers: bool,
    /// With --code: apply this patch of the sources before the code is put in order, such as fix.patch of a study of
    /// data. The study compares the unchanged program with the result of both, and a table shows the gain of each alone
    #[arg(long, value_name = "FILE", requires = "code", conflicts_with_all = ["cold", "hints", "links", "kernel_source"])]
    pub(in crate::study) patch: Option<PathBuf>,
    /// With --code: the llvm-bolt that is used [default: llvm-bolt, or the newest of llvm-bolt-16 to llvm-bolt-22]
    #[arg(long, value_name = "FILE", requires = "code", conflicts_with = "kernel_source")]
    pub(in crate::study) bolt: Option<PathBuf>,
}

impl CodeOptions {
    /// Makes the plan's runs those on which the order is judged; false when they stay the ones from which it is
    /// computed.
    pub(in crate::study) fn judge_by_another(
        &self,
        plan: &mut Plan,
        interrupts: &Interrupts,
    ) -> Result<bool> {
        if let Some(arguments) = &self.test_arguments {
            plan.arguments = words(arguments)?;
        }
        if let Some(file) = &self.test_stdin {
            plan.input = Input::from_file(file, interrupts)?;
        }
        Ok(self.has_test())
    }

    /// True where another run is named.
    pub(in crate::study) fn has_test(&self) -> bool {
        self.test_arguments.is_some() || self.test_stdin.is_some()
    }

    /// The same program with the arguments and input of the test; `None` when neither is given.
    pub(in crate::study) fn second_run(&self, run: &Run, interrupts: &Interrupts) -> Result<Option<Run>> {
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
fn words(arguments: &str) -> Result<Vec<OsString>> {
    match arguments.trim() {
        "" => Ok(Vec::new()),
        _ => split(arguments, false),
    }
}

/// A run's arguments and input.
pub(super) struct Workload {
    pub(super) arguments: Vec<OsString>,
    pub(super) input: Input,
}

impl Workload {
    /// The workload of the plan's runs.
    pub(super) fn of(plan: &Plan) -> Workload {
        Workload { arguments: plan.arguments.clone(), input: plan.input.clone() }
    }

    /// It in a copy of the program.
    pub(super) fn run(&self, plan: &Plan, tree: &Tree) -> Result<Run> {
        let run = Run { input: self.input.clone(), ..plan.run(tree)? };
        let words = run.command.first().cloned().into_iter().chain(self.arguments.iter().cloned());
        Ok(Run { command: words.collect(), ..run })
    }

    /// The workload as a command, with the size of its input.
    pub(super) fn in_words(&self, plan: &Plan) -> String {
        let program = plan.started.clone().into_os_string();
        let line = typed::line([program].into_iter().chain(self.arguments.iter().cloned()));
        match self.input.content().size_bytes {
            0 => line,
            bytes => format!("{line} < {bytes} bytes"),
        }
    }
}
