//! Why a build failed: by the sources' fault, or by the machine's.

use lineup_prove::run::Ending;

/// A failed build's verdict on its sources.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The compiler or linker complains about them.
    Sources,
    /// Something else failed; the failure in words.
    Machine(String),
}

/// Errors that compilers, assemblers and linkers report though the machine is at fault: the texts of the C library's
/// `strerror`, and messages of GCC and Clang about themselves.
const MACHINE: [&str; 14] = [
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "File size limit exceeded",
    "Cannot allocate memory",
    "virtual memory exhausted",
    "Too many open files",
    "Resource temporarily unavailable",
    "Input/output error",
    "Read-only file system",
    "internal compiler error",
    "PLEASE submit a bug report",
    "signal terminated program",
    "unable to execute command",
];

/// The words that `make` and shells print at the end of a line about a child that a signal ended.
const SIGNALS: [&str; 6] =
    ["Killed", "Terminated", "Segmentation fault", "Bus error", "Aborted", "Interrupt"];

/// Marks of a compiler's, assembler's or linker's verdict on the sources.
const COMPLAINTS: [&str; 6] =
    ["error:", "Error:", "undefined reference", "undefined symbol", "multiple definition", "error C"];

/// Attributes a failure to the sources or to the machine. A build that fails without a complaint about the sources is
/// not counted against them.
pub(crate) fn fault(ending: Ending, words: &str) -> Fault {
    let status = match ending {
        Ending::Killed(signal) => {
            return Fault::Machine(format!("it was ended by {}", lineup_model::signal_name(signal)));
        }
        Ending::Exited(status @ (126 | 127)) => {
            return Fault::Machine(format!("a command could not be run (status {status})"));
        }
        Ending::Exited(status @ 128..) => {
            return Fault::Machine(format!(
                "a command was ended by {}",
                lineup_model::signal_name(status - 128)
            ));
        }
        Ending::Stopped => return Fault::Machine("it was stopped from outside".into()),
        Ending::Exited(status) => status,
    };
    let mut said = words.lines().filter(|line| !is_excerpt(line));
    let of_machine = |line: &&str| {
        let is_signal = |name: &str| line.trim_end_matches(" (core dumped)").ends_with(name);
        MACHINE.iter().any(|words| line.contains(words)) || SIGNALS.iter().any(|name| is_signal(name))
    };
    if let Some(line) = said.clone().find(of_machine) {
        return Fault::Machine(line.trim().to_owned());
    }
    match said.any(|line| COMPLAINTS.iter().any(|words| line.contains(words))) {
        true => Fault::Sources,
        false => Fault::Machine(format!(
            "it ended with exit status: {status}, without a complaint about the sources"
        )),
    }
}

/// A line in which a compiler shows the source: `  12 | return x;`.
fn is_excerpt(line: &str) -> bool {
    line.split_once('|').is_some_and(|(before, _)| before.trim().bytes().all(|byte| byte.is_ascii_digit()))
}

/// The end of a text.
pub(crate) fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(most)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(status: i32, words: &str) -> bool {
        matches!(fault(Ending::Exited(status), words), Fault::Machine(_))
    }

    #[test]
    fn a_complaint_about_the_sources_is_the_sources_fault() {
        for words in [
            "x.c:3:9: error: expected ';' before 'b'\nmake: *** [Makefile:2: x.o] Error 1\n",
            "/usr/bin/ld: x.o: undefined reference to `f'\ncollect2: error: ld returned 1 exit status\n",
            "x.c:3:9: error: static assertion failed\n    3 | puts(\"No space left on device\");\n",
        ] {
            assert_eq!(fault(Ending::Exited(2), words), Fault::Sources, "{words}");
        }
    }

    #[test]
    fn what_ends_a_build_otherwise_is_not() {
        assert!(matches!(fault(Ending::Killed(2), "x.c:1: error: x"), Fault::Machine(_)));
        assert!(machine(137, ""), "a shell's child was killed");
        assert!(machine(127, "sh: 1: cc: not found\n"));
        for words in [
            "make: *** [Makefile:2: x.o] Killed\n",
            "gcc: fatal error: Killed signal terminated program cc1\ncompilation terminated.\n",
            "x.c:3: internal compiler error: Segmentation fault\nPlease submit a full bug report\n",
            "Segmentation fault (core dumped)\nx.c:1: error: later\n",
            "/tmp/ccx.s: Fatal error: can't close x.o: No space left on device\n",
            "ninja: build stopped: subcommand failed.\n",
        ] {
            assert!(machine(1, words), "{words}");
        }
    }
}
