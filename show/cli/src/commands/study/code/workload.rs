//! Arguments and input of a program's run.

use crate::commands::study::plan::Plan;
use crate::terminal::typed_command;
use anyhow::Result;
use lineup_study::input::Input;
use lineup_study::run::Run;
use lineup_study::source::scratch::Tree;
use std::ffi::OsString;

/// A run's arguments and input.
pub(crate) struct Workload {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) input: Input,
}

impl Workload {
    /// The workload of the plan's runs.
    pub(crate) fn of(plan: &Plan) -> Workload {
        Workload { arguments: plan.arguments.clone(), input: plan.input.clone() }
    }

    /// It in a copy of the program.
    pub(crate) fn run(&self, plan: &Plan, tree: &Tree) -> Result<Run> {
        let run = Run { input: self.input.clone(), ..plan.run(tree)? };
        let words = run.command.first().cloned().into_iter().chain(self.arguments.iter().cloned());
        Ok(Run { command: words.collect(), ..run })
    }

    /// The workload as a command, with the size of its input.
    pub(crate) fn in_words(&self, plan: &Plan) -> String {
        let program = plan.started.clone().into_os_string();
        let line = typed_command::line([program].into_iter().chain(self.arguments.iter().cloned()));
        match self.input.content().size_bytes {
            0 => line,
            bytes => format!("{line} < {bytes} bytes"),
        }
    }
}
