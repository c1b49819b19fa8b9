//! The surroundings of a recorded program: its input, its time limit, and a client that drives it.

use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use clap::Args;
use lineup_study::input::{Input, Origin};
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::recorder;
use lineup_study::run::{Drive, Leftovers, Run};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of every command that records a program.
#[derive(Args, Clone)]
pub(crate) struct Surroundings {
    /// File that the program reads as standard input, in every run from its start [default: this command's standard
    /// input, unless it is a terminal]
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// End the program after this many seconds, in every run: for programs that do not end by themselves
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    max_seconds: Option<Duration>,
    /// End the recorded program as soon as every region was called this often; it is then recorded in one pass
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "drive")]
    stop_after: Option<u64>,
    /// Processes that still run when the first one has ended: `working`, Lineup waits while they work, and ends them
    /// when none did for two seconds; `wait`, it waits until they end; `end`, it ends them at once
    #[arg(long, value_name = "RULE", default_value = "working", value_parser = leftovers)]
    leftovers: Leftovers,
    /// Shell command that Lineup starts once the program, a server, listens on a socket; the program is ended when the
    /// command is done
    #[arg(long, value_name = "COMMAND")]
    drive: Option<String>,
    /// Start the command of --drive after this many seconds, even if the program does not listen
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "drive")]
    drive_after: Option<Duration>,
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|time| !time.is_zero())
        .ok_or_else(|| format!("{text} is not a number of seconds above zero"))
}

fn leftovers(text: &str) -> Result<Leftovers, String> {
    match text {
        "working" => Ok(Leftovers::WhileWorking),
        "wait" => Ok(Leftovers::Wait),
        "end" => Ok(Leftovers::End),
        _ => Err("working, wait or end".to_owned()),
    }
}

impl Surroundings {
    /// A run of a command, whose program is searched for as in a shell.
    pub(crate) fn run(
        &self,
        command: &[OsString],
        environment: &[(OsString, OsString)],
        interrupts: &Interrupts,
        stages: &Stages,
    ) -> Result<Run> {
        let (program, arguments) = command.split_first().context("no program given")?;
        let found = recorder::executable(program)?.into_os_string();
        Ok(Run {
            called: (found != *program).then(|| program.clone()),
            command: [found].into_iter().chain(arguments.iter().cloned()).collect(),
            environment: environment.to_vec(),
            input: self.input(interrupts, stages)?,
            max_time: self.max_time(),
            drive: self.drive(),
            leftovers: self.leftovers(),
            ..Run::default()
        })
    }

    /// The description of a process that already runs.
    pub(crate) fn of_process(&self, process: u32) -> Result<Run> {
        Ok(Run {
            command: recorder::command_of(process)?,
            max_time: self.max_time(),
            leftovers: self.leftovers(),
            ..Run::default()
        })
    }

    /// Every run's input, copied now.
    pub(crate) fn input(&self, interrupts: &Interrupts, stages: &Stages) -> Result<Input> {
        if let Some(file) = &self.stdin {
            return Ok(Input::from_file(file, interrupts)?);
        }
        let waiting =
            "standard input is read to its end first, since every run needs it; </dev/null gives none";
        let (input, origin) = Input::ours(interrupts, &mut || stages.line(waiting))?;
        if origin == Origin::Terminal {
            stages.line("the program reads nothing from this terminal; give it input with --stdin FILE");
        }
        Ok(input)
    }

    /// The options that were typed, as words of another command.
    pub(crate) fn words(&self) -> Vec<String> {
        let seconds = |time: Duration| time.as_secs_f64().to_string();
        let rule = match self.leftovers {
            Leftovers::WhileWorking => None,
            Leftovers::Wait => Some("wait".to_owned()),
            Leftovers::End => Some("end".to_owned()),
        };
        let all = [
            ("--stdin", self.stdin.as_ref().map(|file| file.to_string_lossy().into_owned())),
            ("--max-seconds", self.max_seconds.map(seconds)),
            ("--stop-after", self.stop_after.map(|calls| calls.to_string())),
            ("--leftovers", rule),
            ("--drive", self.drive.clone()),
            ("--drive-after", self.drive_after.map(seconds)),
        ];
        let given = all.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value?]));
        given.flatten().collect()
    }

    /// The longest run.
    pub(crate) fn max_time(&self) -> Option<Duration> {
        self.max_seconds
    }

    /// Calls of each region after which the program is ended.
    pub(crate) fn stop_after(&self) -> Option<u64> {
        self.stop_after
    }

    /// The rule for processes that outlive the first one.
    pub(crate) fn leftovers(&self) -> Leftovers {
        self.leftovers
    }

    /// The client.
    pub(crate) fn drive(&self) -> Option<Drive> {
        self.drive.clone().map(|line| Drive { line, after: self.drive_after })
    }
}
