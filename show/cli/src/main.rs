//! The `lineup` command. The only place that reads arguments, prints and picks file names.

mod builds;
mod commands;
mod host;
mod kernels;
mod options;
mod recordings;
mod samples;
mod terminal;
mod timing;
mod types;
mod whole_program;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use commands::{
    advise, bisect, compare, completions, doctor, effects, explain, find, fleet, imv, kernel, launch, layout,
    link_again, load, lsp, mcp, measure, moved, record, review, sched, shuffle, study, threads, time, trace,
};
use lineup_study::source::relink;
use lineup_study::{guardian, keeper};
use std::process::ExitCode;
use terminal::outcome::Outcome;
use terminal::{errors, examples, help_groups, version};

/// Finds the cache lines that make a hot path slow, writes the fix, and proves it.
#[derive(Parser)]
#[command(name = "lineup", version, long_version = version::in_full(), max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(name = "launch-child", hide = true)]
    Launch(launch::Launch),
    #[command(name = keeper::COMMAND, hide = true)]
    Keep(launch::Keep),
    #[command(name = guardian::COMMAND, hide = true)]
    GuardChildren,
    #[command(name = relink::COMMAND, hide = true)]
    LinkAgain(link_again::LinkAgain),
    Measure(measure::Measure),
    /// Shows how types lie in memory: members, holes, padding, cache-line boundaries
    Layout(layout::Options),
    /// Names the data that recorded calls touched: lines per call, a map of every line, the share that has a name
    Explain(explain::Options),
    /// Shows cache lines that threads share without need, and how to part their data
    Threads(threads::Options),
    /// Finds the types, members and functions of a program that stall most, with an upper bound of each gain
    Find(find::Options),
    /// Records calls of functions, natively or under the emulator, or counts over the whole program
    Record(record::Options),
    /// Times calls of functions in a program that runs at its own speed
    Time(time::Options),
    /// Lists the effects of a program's processes: output, files, arguments of system calls, signals, exit
    Effects(effects::Options),
    Compare(compare::Compare),
    Sched(sched::Sched),
    Load(load::Load),
    Bisect(bisect::Bisect),
    Review(review::Options),
    /// Works out a better layout from a recording; the compiler judges it, nothing is timed
    Advise(advise::Options),
    /// Studies a program end to end: records, proposes, rebuilds, compares, reports
    Study(Box<study::Options>),
    /// Tests random legal layouts, to find the members whose order a program depends on
    Shuffle(shuffle::Options),
    Fleet(fleet::Options),
    Mcp(mcp::Options),
    Lsp(lsp::Options),
    Trace(trace::Options),
    Imv(imv::Options),
    Kernel(kernel::Options),
    /// Lists the features that work on this machine, and the software that the rest needs
    Doctor(doctor::Options),
    /// Prints a script with which a shell completes commands and options
    Completions(completions::Completions),
    /// Writes a page for `man` of each command
    Manual(completions::Manual),
}

fn main() -> ExitCode {
    let command = || help_groups::grouped(examples::with_examples(Cli::command()));
    let (words, hint) = moved::now(std::env::args_os().collect());
    if let Some(hint) = hint {
        eprintln!("{hint}");
    }
    let matches = command().try_get_matches_from(words).unwrap_or_else(|error| errors::refuse(&error));
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| errors::refuse(&error));
    let result: anyhow::Result<Outcome> = match cli.command {
        Command::Launch(launch) => launch::run(launch),
        Command::Keep(keep) => launch::keep(&keep),
        Command::GuardChildren => guardian::serve().map(|()| Outcome::Done).map_err(Into::into),
        Command::LinkAgain(options) => link_again::run(options),
        Command::Measure(measure) => measure::run(measure),
        Command::Layout(options) => layout::run(&options),
        Command::Explain(options) => explain::run(&options),
        Command::Threads(options) => threads::run(&options),
        Command::Find(options) => find::run(&options),
        Command::Record(options) => record::run(options),
        Command::Time(options) => time::run(&options),
        Command::Effects(options) => effects::run(&options),
        Command::Compare(compare) => compare::run(compare),
        Command::Sched(sched) => sched::run(sched),
        Command::Load(load) => load::run(load),
        Command::Bisect(bisect) => bisect::run(bisect),
        Command::Review(options) => review::run(&options),
        Command::Advise(options) => advise::run(&options),
        Command::Study(options) => study::run(*options),
        Command::Shuffle(options) => shuffle::run(&options),
        Command::Fleet(options) => fleet::run(&options),
        Command::Mcp(options) => mcp::run(&options),
        Command::Lsp(options) => lsp::run(&options),
        Command::Trace(options) => trace::run(&options),
        Command::Imv(options) => imv::run(&options),
        Command::Kernel(options) => kernel::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Completions(options) => completions::completions(&options, command()),
        Command::Manual(options) => completions::manual(&options, command()),
    };
    match result {
        Ok(Outcome::Done) => return ExitCode::SUCCESS,
        Ok(Outcome::Finding) => return ExitCode::FAILURE,
        Ok(Outcome::CutShort(error)) => errors::tell(&error, false),
        Err(error) => errors::tell(&error, errors::is_json(&matches)),
    }
    ExitCode::from(errors::EXIT_CODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments that several commands share must not refer to those of one.
    #[test]
    fn the_arguments_of_every_command_fit_together() {
        Cli::command().debug_assert();
    }

    /// The commands that print JSON, by the words that they are typed with.
    fn with_json(command: &clap::Command, typed: &str, found: &mut Vec<String>) {
        if command.get_arguments().any(|argument| argument.get_id() == "json") {
            found.push(typed.to_owned());
        }
        for below in command.get_subcommands() {
            with_json(below, format!("{typed} {}", below.get_name()).trim(), found);
        }
    }

    #[test]
    fn every_command_that_prints_json_has_a_schema_and_no_other_is_listed() {
        let mut commands = Vec::new();
        with_json(&Cli::command(), "lineup", &mut commands);
        let listed = include_str!("../../../docs/json.md").lines().filter_map(|line| {
            let (command, schemas) = line.strip_prefix("| `lineup ")?.split_once("` | ")?;
            Some((
                format!("lineup {command}"),
                schemas.split(['[', ']']).skip(1).step_by(2).collect::<Vec<_>>(),
            ))
        });
        let listed: Vec<(String, Vec<&str>)> = listed.collect();
        let names: Vec<&String> = listed.iter().map(|(command, _)| command).collect();
        commands.sort();
        assert_eq!(commands.iter().collect::<Vec<_>>(), names, "the table of commands in docs/json.md");
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
        for (command, schemas) in listed {
            assert!(!schemas.is_empty(), "{command}");
            for schema in schemas {
                let file =
                    folder.join(schema.strip_prefix("lineup.").expect("a name").replace('/', "-") + ".json");
                assert!(file.is_file(), "{command}: {schema} has no {}", file.display());
            }
        }
    }
}
