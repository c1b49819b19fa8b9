//! The commands that a finding suggests run the program in the same way: its sources, its build, its surroundings.

use crate::options::engine::EngineName;
use crate::options::surroundings::Surroundings;
use lineup_cache::CacheSpec;
use lineup_find::Again;
use lineup_study::source::build_system::{self, BuildSystem};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The words of these commands. Words that are not text are left out: a shell would not accept their printed form.
pub(crate) fn again(
    command: &[OsString],
    environment: &[(OsString, OsString)],
    surroundings: &Surroundings,
    (engine, caches): (Option<EngineName>, &[CacheSpec]),
) -> Again {
    let text = |words: &[OsString]| -> Vec<String> {
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    };
    let variables = environment
        .iter()
        .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
    let variables: Vec<String> = variables.collect();
    let run = surroundings.words();
    let engine = engine.map(|engine| ["--engine".to_owned(), engine.to_string()]);
    let caches = caches.iter().map(|cache| ["--cache".to_owned(), cache.to_string()]);
    let recorder: Vec<String> = engine.into_iter().chain(caches).flatten().collect();
    let here = std::env::current_dir().unwrap_or_default();
    let words = text(command);
    let Some((program, arguments)) = words.split_first() else { return Again::default() };
    let found = build_system::around(Path::new(program), &here);
    let mut again = match found {
        Some(found) => studied(found, &here, program, arguments),
        None => Again { studied: words.clone(), ..Again::default() },
    };
    if !variables.is_empty() {
        let assigned = variables.iter().cloned();
        again.studied = ["env".to_owned()].into_iter().chain(assigned).chain(again.studied).collect();
        let is_named = again.build.iter().any(|word| word == "--program");
        if !is_named && let Some(program) = again.studied.iter().find(|word| word.contains('/')) {
            again.build.extend(["--program".to_owned(), program.clone()]);
        }
    }
    let environment = variables.into_iter().flat_map(|one| ["--env".to_owned(), one]).collect();
    Again { run, recorder, environment, ..again }
}

/// The options of a study that builds with this, and the program as it takes it.
fn studied(found: BuildSystem, here: &Path, program: &str, arguments: &[String]) -> Again {
    let source = Some(found.source.clone());
    let mut build = Vec::new();
    let canonical = here.canonicalize().unwrap_or_else(|_| here.to_owned());
    let is_here = found.source == canonical;
    if !is_here {
        build.extend(["--source".to_owned(), relative(&found.source, &canonical).display().to_string()]);
    }
    if found.command != "make" {
        build.extend(["--build".to_owned(), found.command]);
    }
    let inside = found.program.display().to_string();
    let is_step = |part: &Component<'_>| *part != Component::CurDir;
    let as_typed = Path::new(program).components().filter(is_step).eq(found.program.components());
    let program = if is_here && as_typed { program.to_owned() } else { format!("./{inside}") };
    let names_file =
        |argument: &&String| Path::new(argument.as_str()).is_relative() && here.join(argument).exists();
    match canonical.strip_prefix(&found.source) {
        // The program would look for its files from the folder of the sources.
        Ok(below) if !is_here && arguments.iter().any(|argument| names_file(&argument)) => {
            let up: PathBuf = below.components().map(|_| "..").collect();
            let started = up.join(&inside).display().to_string();
            let line = shell_words::join([&started].into_iter().chain(arguments));
            let folder = shell_words::quote(&below.to_string_lossy()).into_owned();
            build.extend(["--program".to_owned(), inside]);
            let studied = ["sh".to_owned(), "-c".to_owned(), format!("cd {folder} && exec {line}")].to_vec();
            Again { build, studied, source, ..Again::default() }
        }
        below => {
            let placed = |argument: &String| match below.is_err() && names_file(&argument) {
                true => canonical.join(argument).display().to_string(),
                false => argument.clone(),
            };
            let studied = std::iter::once(program).chain(arguments.iter().map(placed)).collect();
            Again { build, studied, source, ..Again::default() }
        }
    }
}

/// A folder's path relative to another, where one lies in the other.
fn relative(folder: &Path, from: &Path) -> PathBuf {
    if let Ok(below) = folder.strip_prefix(from) {
        return below.to_owned();
    }
    match from.strip_prefix(folder) {
        Ok(below) => below.components().map(|_| "..").collect(),
        Err(_) => folder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(source: &str, program: &str, command: &str) -> BuildSystem {
        BuildSystem { source: source.into(), command: command.to_owned(), program: program.into() }
    }

    #[test]
    fn a_study_is_told_where_sources_are_and_what_builds_them() {
        let here = Path::new("/nowhere/game");
        let arguments = ["two words".to_owned()];
        let at_home = studied(system("/nowhere/game", "game", "make"), here, "./game", &arguments);
        assert_eq!(at_home.build, [""; 0]);
        assert_eq!(at_home.studied, ["./game", "two words"]);
        let command = "cmake -S . -B build && cmake --build build";
        let built = studied(system("/nowhere/game", "build/game", command), here, "build/game", &[]);
        assert_eq!(built.build, ["--build", command]);
        assert_eq!(built.studied, ["build/game"]);
        let below = Path::new("/nowhere/game/build");
        let built = studied(system("/nowhere/game", "build/game", command), below, "./game", &[]);
        assert_eq!(built.build, ["--source", "..", "--build", command]);
        assert_eq!(built.studied, ["./build/game"]);
    }

    #[test]
    fn a_program_that_reads_files_finds_them_in_the_folder_that_it_was_started_in() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().canonicalize().expect("a path");
        std::fs::create_dir(root.join("build")).expect("makes");
        std::fs::write(root.join("build/level 1"), "").expect("writes");
        let found =
            BuildSystem { source: root.clone(), command: "make".into(), program: "build/game".into() };
        let again = studied(found, &root.join("build"), "./game", &["level 1".to_owned()]);
        assert_eq!(again.build, ["--source", "..", "--program", "build/game"]);
        assert_eq!(again.studied, ["sh", "-c", "cd build && exec ../build/game 'level 1'"]);
    }
}
