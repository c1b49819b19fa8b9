//! An example for each command, behind its help and in its manual page.

use clap::Command;

/// The examples of each command: the command line, and its effect.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "measure",
        "lineup measure -r 20 -- ./program\n  Runs it twenty times: every counter with its standard error",
    ),
    ("layout", "lineup layout ./program task\n  Members, holes and cache lines of struct task"),
    ("explain", "lineup explain calls.rec\n  Data that the recorded calls touched, by type and member"),
    ("threads", "lineup threads calls.rec\n  Lines that threads take from each other without need"),
    ("find", "lineup find -- ./program\n  Types, members and functions that stall most"),
    (
        "record",
        "lineup record --region parse --calls 1000 --out calls.rec -- ./program\n  A thousand calls of parse, spread over the run",
    ),
    ("time", "lineup time --region parse --pid 4711 --max-seconds 10\n  Times of calls in a running process"),
    ("effects", "lineup effects -- ./program\n  Files, output and system calls of a run"),
    ("compare", "lineup compare ./before ./after\n  Says of every quantity whether it changed, within 1 %"),
    (
        "sched",
        "lineup sched --cpus 4 --group web:shares=2,tasks=50,busy=~100ms,sleep=~100ms --seeds 20\n  Fairness of their \
         shares of time, over twenty seeds",
    ),
    (
        "load",
        "lineup load --vm 2 --vm-bytes 256M --time 60s --every 5s\n  Two workers that dirty memory for a minute",
    ),
    (
        "bisect",
        "lineup bisect --good v1.0 --bad main --build make ./program\n  The commit that made ./program slower",
    ),
    (
        "review",
        "lineup review --base origin/main --build make --file ./program --fail-if guard --fail-if growth\n  Layouts and promises before and after a change, as a comment",
    ),
    (
        "advise",
        "lineup advise calls.rec --source . --build make\n  A better order of members, compiled and not timed",
    ),
    (
        "study",
        "lineup study --region parse --source . --build make -- ./program\n  Records, proposes, rebuilds, compares; leaves fix.patch and report.html",
    ),
    (
        "shuffle",
        "lineup shuffle --source . --build make --test 'make test' --seeds 20 ./program\n  Twenty random legal layouts against your tests",
    ),
    (
        "fleet",
        "lineup fleet add --store /srv/lineup --service web calls.rec\n  Adds the findings of a recording to the store",
    ),
    (
        "mcp",
        "lineup mcp --allow-run\n  For a client that starts it: tools that read, and that run programs which the agent names",
    ),
    (
        "lsp",
        "lineup lsp ./program --recording calls.rec\n  For an editor that starts it: layouts on hover, holes and hot lines as hints",
    ),
    ("trace", "lineup trace report server.trace\n  Distributions and maxima of a trace"),
    ("imv", "lineup imv list 4711\n  The values that this process serves"),
    (
        "kernel",
        "lineup kernel /boot/vmlinuz-6.1.0-50-cloud-amd64 --boot --workload busy\n  Identifies an image, and tests \
         that it boots",
    ),
    (
        "doctor",
        "lineup doctor --require 'native engine'\n  Lists the features that work here; exit code 1 when the engine \
         does not",
    ),
    (
        "completions",
        "lineup completions bash > ~/.local/share/bash-completion/completions/lineup\n  For one user",
    ),
    ("manual", "lineup manual ~/.local/share/man/man1\n  Then: man lineup-study"),
];

/// A command whose own commands end their help with an example.
pub(crate) fn with_examples(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (name, text)| {
        command.mut_subcommand(name, |below| {
            let before = below.get_after_help().map(|before| format!("{before}\n\n")).unwrap_or_default();
            below.after_help(format!("{before}Example:\n  {}", text.replace('\n', "\n  ")))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::EXAMPLES;
    use crate::Cli;
    use clap::{CommandFactory, Parser};

    #[test]
    fn every_command_has_an_example_and_takes_it() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
        for below in shown.filter(|below| below.get_name() != "help") {
            let is_its = |(name, _): &&(&str, &str)| *name == below.get_name();
            let Some((_, text)) = EXAMPLES.iter().find(is_its) else {
                panic!("{} has no example", below.get_name());
            };
            let typed = text.lines().next().unwrap_or_default();
            let typed = typed.split(" > ").next().unwrap_or_default();
            let words = shell_words::split(typed).expect("words of a shell");
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{typed}: {error}");
            }
        }
    }
}
