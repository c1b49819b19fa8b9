//! The build system of a program, judged by the files around it.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder with sources, and the shell command that builds a program from there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildSystem {
    /// The folder, as the system names it.
    pub source: PathBuf,
    /// The command, for a shell in that folder.
    pub command: String,
    /// The program's path inside the folder, as the command makes it.
    pub program: PathBuf,
}

/// The most folders above the program that are searched.
const MOST_FOLDERS: usize = 8;

/// The files from which `make` reads its rules.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// The build system of a program, seen from the user's folder: CMake, Cargo, Meson, Ninja or make. `None` when no file
/// shows it.
pub fn around(program: &Path, here: &Path) -> Option<BuildSystem> {
    let (program, here) = (program.canonicalize().ok()?, here.canonicalize().ok()?);
    let above: Vec<&Path> = program.ancestors().skip(1).take(MOST_FOLDERS).collect();
    let described = above.iter().find_map(|folder| {
        cmake(folder, &program).or_else(|| cargo(folder, &program)).or_else(|| meson(folder, &program))
    });
    let has = |folder: &Path, names: &[&str]| names.iter().any(|name| folder.join(name).is_file());
    let made = || {
        // A folder below may have a makefile that only the one in the user's folder calls.
        let mut folders = above.iter().filter(|folder| **folder == here).chain(&above);
        let folder = folders.find(|folder| has(folder, &MAKEFILES) || has(folder, &["build.ninja"]))?;
        let tool = if has(folder, &MAKEFILES) { "make" } else { "ninja" };
        system(folder, tool.to_owned(), &program)
    };
    described.or_else(made)
}

fn system(source: &Path, command: String, program: &Path) -> Option<BuildSystem> {
    let program = program.strip_prefix(source).ok()?.to_owned();
    Some(BuildSystem { source: source.to_owned(), command, program })
}

/// A build folder of CMake, which keeps the folder of the sources in its cache.
fn cmake(folder: &Path, program: &Path) -> Option<BuildSystem> {
    let cache = fs::read_to_string(folder.join("CMakeCache.txt")).ok()?;
    let value = |name: &str| {
        let line = cache.lines().find(|line| line.split(':').next() == Some(name))?;
        line.split_once('=').map(|(_, value)| value).filter(|value| !value.is_empty())
    };
    let source = PathBuf::from(value("CMAKE_HOME_DIRECTORY")?);
    if let Ok(inside) = folder.strip_prefix(&source) {
        let inside = if inside == Path::new("") { Path::new(".") } else { inside };
        let inside = shell_words::quote(&inside.to_string_lossy()).into_owned();
        return system(&source, format!("cmake -S . -B {inside} && cmake --build {inside}"), program);
    }
    // The build folder is not copied with the sources, so its settings are passed again.
    let kept = ["CMAKE_BUILD_TYPE", "CMAKE_C_FLAGS", "CMAKE_CXX_FLAGS"];
    let set = kept.iter().filter_map(|name| Some(format!("-D{name}={}", value(name)?)));
    let words = ["cmake", "-S", ".", "-B", "build"].map(str::to_owned).into_iter().chain(set);
    let command = format!("{} && cmake --build build", shell_words::join(words.collect::<Vec<_>>()));
    let program = Path::new("build").join(program.strip_prefix(folder).ok()?);
    Some(BuildSystem { source, command, program })
}

/// A package or workspace of Cargo, above `target`.
fn cargo(folder: &Path, program: &Path) -> Option<BuildSystem> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    let built = program.strip_prefix(folder.join("target")).ok()?;
    let parts: Vec<String> = built.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let name = parts.last()?;
    let profiles = ["debug", "release"];
    let at = parts.iter().position(|part| profiles.contains(&part.as_str())).unwrap_or(0);
    let (profile, below) = (parts.get(at)?, parts.get(at + 1..)?);
    let mut words = vec!["cargo".to_owned(), "build".to_owned()];
    match profile.as_str() {
        "debug" => {}
        "release" => words.push("--release".to_owned()),
        other => words.extend(["--profile".to_owned(), other.to_owned()]),
    }
    if at > 0 {
        words.extend(["--target".to_owned(), parts.first()?.clone()]);
    }
    let kind = if below.len() == 2 && below.first()? == "examples" { "--example" } else { "--bin" };
    words.extend([kind.to_owned(), name.clone()]);
    let command = shell_words::join(words);
    // A release build has debug information only where something asks for it.
    let asks = profile != "release" || manifest.contains("debug");
    let command = if asks { command } else { format!("CARGO_PROFILE_RELEASE_DEBUG=true {command}") };
    system(folder, command, program)
}

/// A build folder of Meson, inside the folder of the sources: the topmost that has a `meson.build`.
fn meson(folder: &Path, program: &Path) -> Option<BuildSystem> {
    folder.join("meson-info").is_dir().then_some(())?;
    let above = folder.ancestors().skip(1).take(MOST_FOLDERS);
    let source = above.take_while(|above| above.join("meson.build").is_file()).last()?;
    let inside = folder.strip_prefix(source).ok()?.to_string_lossy().into_owned();
    system(source, shell_words::join(["ninja", "-C", &inside]), program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
        fs::write(path, text).expect("writes");
    }

    /// This program's build system, with the folder relative to the root.
    fn found(root: &Path, program: &str, here: &str) -> Option<(String, String, String)> {
        write(root, program, "");
        let found = around(&root.join(program), &root.join(here))?;
        let source = found.source.strip_prefix(root).expect("inside").display().to_string();
        Some((source, found.command, found.program.display().to_string()))
    }

    fn expect(source: &str, command: &str, program: &str) -> Option<(String, String, String)> {
        Some((source.to_owned(), command.to_owned(), program.to_owned()))
    }

    #[test]
    fn files_around_a_program_tell_what_builds_it() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().canonicalize().expect("a path");
        let home = |name: &str| format!("CMAKE_HOME_DIRECTORY:INTERNAL={}\n", root.join(name).display());
        write(&root, "game/build dir/CMakeCache.txt", &home("game"));
        assert_eq!(
            found(&root, "game/build dir/bin/game", "game"),
            expect("game", "cmake -S . -B 'build dir' && cmake --build 'build dir'", "build dir/bin/game")
        );
        write(&root, "apart/CMakeCache.txt", &(home("game") + "CMAKE_BUILD_TYPE:STRING=RelWithDebInfo\n"));
        assert_eq!(
            found(&root, "apart/game", "."),
            expect(
                "game",
                "cmake -S . -B build '-DCMAKE_BUILD_TYPE=RelWithDebInfo' && cmake --build build",
                "build/game"
            )
        );
        write(&root, "rust/Cargo.toml", "[workspace]\nmembers = [\"a\"]\n");
        assert_eq!(
            found(&root, "rust/target/release/a", "rust"),
            expect(
                "rust",
                "CARGO_PROFILE_RELEASE_DEBUG=true cargo build --release --bin a",
                "target/release/a"
            )
        );
        assert_eq!(
            found(&root, "rust/target/aarch64-unknown-linux-gnu/debug/examples/b", "rust"),
            expect(
                "rust",
                "cargo build --target aarch64-unknown-linux-gnu --example b",
                "target/aarch64-unknown-linux-gnu/debug/examples/b"
            )
        );
        write(&root, "lib/meson.build", "");
        write(&root, "lib/out/meson-info/meson-info.json", "{}");
        assert_eq!(found(&root, "lib/out/tests/t", "lib/out"), expect("lib", "ninja -C out", "out/tests/t"));
        write(&root, "tool/Makefile", "");
        write(&root, "tool/src/Makefile", "");
        assert_eq!(found(&root, "tool/src/tool", "tool"), expect("tool", "make", "src/tool"));
        assert_eq!(found(&root, "tool/src/tool", "."), expect("tool/src", "make", "tool"));
        assert_eq!(found(&root, "alone/program", "."), None);
    }
}
