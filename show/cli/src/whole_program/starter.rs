//! Programs that do nothing but start others, such as shells.

use crate::whole_program::starter;
use lineup_find::Recorded;
use lineup_recording::Summary;
use lineup_study::recorder::Subject;
use std::path::Path;

/// Programs whose own time does not matter when they start another.
const STARTERS: [&str; 19] = [
    "sh", "dash", "bash", "ash", "ksh", "zsh", "busybox", "env", "nice", "ionice", "timeout", "sudo", "doas",
    "setsid", "nohup", "taskset", "stdbuf", "chrt", "xargs",
];

/// Why the findings are not of the program that is meant: the one that was counted started another, and does little
/// else.
pub(crate) fn only_starts(recorded: &Recorded, subject: &Subject) -> Option<String> {
    let program = subject.program();
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let is_starter = [program, &real].into_iter().any(is_starter);
    let all = recorded.summary.iter().flat_map(Summary::unfollowed_each_once);
    let started: Vec<&str> = all.map(|(one, _)| one.program.as_str()).collect();
    let last = started.iter().rfind(|program| !starter::is_starter(Path::new(program)));
    if started.is_empty() || !is_starter {
        return None;
    }
    let whose = match subject.script() {
        Some(script) => format!("{}, which runs the script {}", program.display(), script.display()),
        None => program.display().to_string(),
    };
    let example =
        last.map_or_else(|| "lineup find -- PROGRAM".to_owned(), |last| format!("lineup find -- {last}"));
    Some(format!(
        "the findings are of {whose}, and not of what it starts: {}; name the program that is meant, as `{example}`",
        started.join(", ")
    ))
}

fn is_starter(program: &Path) -> bool {
    program.file_name().is_some_and(|name| STARTERS.iter().any(|starter| name == *starter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_and_wrappers_start_others_and_interpreters_work_themselves() {
        assert!(["/bin/sh", "/usr/bin/env", "dash"].iter().all(|path| is_starter(Path::new(path))));
        assert!(
            ["/usr/bin/python3", "./env2", "/bin/sh/prog"].iter().all(|path| !is_starter(Path::new(path)))
        );
    }
}
