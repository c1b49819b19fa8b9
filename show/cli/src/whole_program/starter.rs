//! Programs that do nothing but start others, such as shells.

use crate::whole_program::starter;
use lineup_find::Recorded;
use lineup_recording::Summary;
use lineup_study::companions;
use lineup_study::recorder::Subject;
use std::path::{Component, Path, PathBuf};

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
    if started.is_empty() || !is_starter {
        return None;
    }
    let whose = match subject.script() {
        Some(script) => format!("{}, which runs the script {}", program.display(), script.display()),
        None => program.display().to_string(),
    };
    let others = started.iter().map(Path::new).filter(|program| !starter::is_starter(program));
    let has_debug_info = |program: &Path| companions::load(program).is_ok_and(|debug| debug.has_debug_info());
    let current = std::env::current_dir().unwrap_or_default();
    let meant = meant(others, &current, has_debug_info);
    let example = format!("lineup find -- {}", meant.as_deref().unwrap_or(Path::new("PROGRAM")).display());
    Some(format!(
        "the findings are of {whose}, and not of what it starts: {}; name the program that is meant, as `{example}` with the \
         arguments that it gets there",
        started.join(", ")
    ))
}

/// Folders of programs that come with the system.
const SYSTEM: [&str; 5] = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/lib"];

/// The program among those started that the user most likely means, as it is typed in the current folder: one with debug
/// information, else one that does not come with the system, else one below the current folder; of several the last.
fn meant<'p>(
    started: impl Iterator<Item = &'p Path>,
    current: &Path,
    has_debug_info: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let likeliness = |program: &&Path| {
        let is_system = SYSTEM.iter().any(|folder| program.starts_with(folder));
        (has_debug_info(program), !is_system, program.starts_with(current))
    };
    let program = started.max_by_key(likeliness)?;
    Some(match program.strip_prefix(current) {
        Ok(below) => {
            let names = below.components().filter(|part| *part != Component::CurDir);
            Path::new(".").join(names.collect::<PathBuf>())
        }
        Err(_) => program.to_owned(),
    })
}

fn is_starter(program: &Path) -> bool {
    program.file_name().is_some_and(|name| STARTERS.iter().any(|starter| name == *starter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_is_meant_is_the_users_own() {
        let current = Path::new("/home/me/work");
        let meant = |started: &[&str], with_debug_info: &str| {
            let started = started.iter().map(Path::new);
            let meant = meant(started, current, |program| program == Path::new(with_debug_info));
            meant.map(|program| program.display().to_string())
        };
        assert_eq!(meant(&["/home/me/work/./job", "/usr/bin/dirname"], "").as_deref(), Some("./job"));
        let several = ["/opt/a", "/home/me/work/bin/b", "/opt/c", "/usr/bin/d"];
        assert_eq!(meant(&several, "").as_deref(), Some("./bin/b"));
        assert_eq!(meant(&several, "/opt/a").as_deref(), Some("/opt/a"));
        assert_eq!(meant(&["/usr/bin/d", "/usr/bin/e"], "").as_deref(), Some("/usr/bin/e"));
        assert_eq!(meant(&[], ""), None);
    }

    #[test]
    fn shells_and_wrappers_start_others_and_interpreters_work_themselves() {
        assert!(["/bin/sh", "/usr/bin/env", "dash"].iter().all(|path| is_starter(Path::new(path))));
        assert!(
            ["/usr/bin/python3", "./env2", "/bin/sh/prog"].iter().all(|path| !is_starter(Path::new(path)))
        );
    }
}
