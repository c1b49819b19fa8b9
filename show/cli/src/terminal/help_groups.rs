//! The commands in `lineup --help`: one line each, in groups.

use clap::Command;
use std::fmt::Write;

/// Heading, and the commands below it with their line.
const GROUPS: &[(&str, &[(&str, &str)])] = &[
    (
        "Start here",
        &[
            ("find", "Ranks types, members and functions by the stalls that they cause"),
            ("study", "Finds a fix, builds it in a copy, and proves it or says why not"),
            ("layout", "Shows types in memory, compares builds, checks a lineup.lock"),
            ("doctor", "Lists the features that work here, and what to install"),
        ],
    ),
    (
        "Look closer",
        &[
            ("record", "Records calls of functions, or counts over a whole run"),
            ("explain", "Names the bytes and code that a recording or perf.data touched"),
            ("time", "Times calls of functions while the program runs at its own speed"),
            ("threads", "Shows the cache lines and locks that threads contend for"),
            ("kernel", "Reads a kernel image and boots it under emulation"),
        ],
    ),
    (
        "Measure",
        &[
            ("measure", "Runs a program repeatedly and prints counters with their errors"),
            ("compare", "Compares programs: changed, equivalent or inconclusive"),
            ("bisect", "Finds the commit that changed the cost of a program"),
            ("load", "Puts background load on the machine"),
            ("effects", "Lists output, files and system calls that leave a program"),
        ],
    ),
    (
        "Keep it",
        &[
            ("review", "Compares both sides of a change, for a pull request"),
            ("shuffle", "Tests which members may move, by random legal orders"),
            ("advise", "Proposes layouts from a recording, checked by the compiler"),
            ("fleet", "Stores the findings of many machines and answers questions"),
            ("lsp", "Shows layouts in an editor: a language server"),
            ("mcp", "Offers commands to agents over the Model Context Protocol"),
        ],
    ),
    (
        "More",
        &[
            ("trace", "Reports the traces of the runtime library"),
            ("imv", "Shows and changes immediate values of a running program"),
            ("sched", "Simulates group-fair scheduling"),
            ("completions", "Prints the completions of a shell"),
            ("manual", "Writes manual pages"),
            ("help", "Prints the help of a command: lineup help study"),
        ],
    ),
];

/// The command with its commands in groups. Each has its line; its former text stays in its own help.
pub(crate) fn grouped(command: Command) -> Command {
    let mut list = String::new();
    for (heading, commands) in GROUPS {
        let _ = writeln!(list, "\n{heading}:");
        for (name, line) in *commands {
            let _ = writeln!(list, "  {name:<12} {line}");
        }
    }
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}\n");
    let named = GROUPS.iter().flat_map(|(_, commands)| *commands).filter(|(name, _)| *name != "help");
    named
        .fold(command, |command, (name, line)| {
            command.mut_subcommand(name, |below| {
                let in_full = below.get_long_about().or(below.get_about()).cloned();
                let below = below.about(*line);
                match in_full {
                    Some(text) => below.long_about(text),
                    None => below,
                }
            })
        })
        .help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_has_one_line_in_one_group() {
        let listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, commands)| *commands).map(|(name, _)| *name).collect();
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
        let mut names: BTreeSet<&str> = shown.map(Command::get_name).collect();
        names.insert("help");
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), names);
        assert_eq!(listed.len(), names.len());
        let help = grouped(command).render_help().to_string();
        assert!(help.lines().count() <= 50 && help.lines().all(|line| line.len() <= 80), "{help}");
    }
}
