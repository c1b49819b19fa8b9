//! The commands that clean a folder with an earlier build, so that the next build makes everything: the build tool's
//! own, and where it has none the removal of the outputs of units that the build did not compile.
//!
//! Removing outputs alone is not enough: a file that only says "done" keeps `make` from entering a dependency's folder.

use std::path::PathBuf;

/// Lines of shell that remove the build command's outputs, the gentlest first. Empty for commands that are not
/// understood.
pub(crate) fn lines(build: &str) -> Vec<String> {
    let commands: Vec<&str> = build.split("&&").flat_map(|part| part.split(';')).map(str::trim).collect();
    let found = commands.iter().enumerate().rev().find_map(|(at, command)| {
        let cleanings = of_command(command);
        (!cleanings.is_empty()).then_some((at, cleanings))
    });
    let Some((at, cleanings)) = found else { return Vec::new() };
    let moves: Vec<&str> =
        commands[..at].iter().copied().filter(|command| command.starts_with("cd ")).collect();
    cleanings.into_iter().map(|cleaning| [&moves[..], &[&cleaning]].concat().join(" && ")).collect()
}

/// A line of shell that removes these files. `None` where there are none, or one has a name that no shell takes.
pub(crate) fn removal(files: &[PathBuf]) -> Option<String> {
    let names: Option<Vec<_>> =
        files.iter().map(|file| Some(shell_words::quote(file.to_str()?).into_owned())).collect();
    names.filter(|names| !names.is_empty()).map(|names| format!("rm -f -- {}", names.join(" ")))
}

fn of_command(command: &str) -> Vec<String> {
    let Ok(words) = shell_words::split(command) else { return Vec::new() };
    let variables = words.iter().take_while(|word| is_variable(word)).count();
    let (before, call) = words.split_at(variables);
    let Some((tool, rest)) = call.split_first() else { return Vec::new() };
    let with = |words: &[String], further: &[&str]| {
        let further = further.iter().map(|word| word.to_string());
        let all: Vec<String> = before.iter().chain(words).cloned().chain(further).collect();
        // The shell works these out, and quotes would keep it from that.
        let is_plain = all.iter().all(|word| !word.contains(['$', '`']));
        is_plain.then(|| all.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
    };
    let name = tool.rsplit('/').next().unwrap_or(tool);
    let folder = || option(rest, "-C").map(|folder| ["-C".to_owned(), folder].to_vec()).unwrap_or_default();
    let cleanings = match name {
        "make" | "gmake" => {
            let call = [&[tool.clone()][..], &make_options(rest)].concat();
            ["clean", "distclean"].map(|target| with(&call, &[target])).to_vec()
        }
        "ninja" => vec![with(&[&[tool.clone()][..], &folder()].concat(), &["-t", "clean"])],
        "meson" => vec![with(&[&["ninja".to_owned()][..], &folder()].concat(), &["-t", "clean"])],
        "cmake" => match option(rest, "--build") {
            Some(folder) => {
                let call = [tool.clone(), "--build".to_owned(), folder];
                vec![with(&call, &["--target", "clean"])]
            }
            None => Vec::new(),
        },
        _ => Vec::new(),
    };
    cleanings.into_iter().flatten().collect()
}

/// A word for the shell, which takes `'V=1'` for a command and `V='1'` for a variable.
fn quoted(word: &str) -> String {
    match word.split_once('=').filter(|_| is_variable(word)) {
        Some((name, value)) => format!("{name}={}", shell_words::quote(value)),
        None => shell_words::quote(word).into_owned(),
    }
}

fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// The value of an option that stands in the next word or in the same.
fn option(words: &[String], name: &str) -> Option<String> {
    let next = words.iter().position(|word| word == name).and_then(|at| words.get(at + 1)).cloned();
    next.or_else(|| {
        let joined = words.iter().find_map(|word| word.strip_prefix(name).filter(|rest| !rest.is_empty()));
        joined.map(str::to_owned)
    })
}

/// The options that choose `make`'s folder, file and variables; not those for its targets, nor for parallel jobs.
fn make_options(words: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-C" | "-f" | "-I" => kept.extend([Some(word), words.next()].into_iter().flatten().cloned()),
            word if word.starts_with("-j") || word.starts_with("-l") => {}
            word if word.starts_with('-') || is_variable(word) => kept.push(word.to_owned()),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_its_own_word() {
        for (build, wanted) in [
            ("make", &["make clean", "make distclean"][..]),
            ("make -j4 -C src CC=gcc all", &["make -C src CC=gcc clean", "make -C src CC=gcc distclean"]),
            (
                "cd src && V=1 gmake -j$(nproc) app",
                &["cd src && V=1 gmake clean", "cd src && V=1 gmake distclean"],
            ),
            (
                "./configure && make 'CFLAGS=-g -O0'",
                &["make CFLAGS='-g -O0' clean", "make CFLAGS='-g -O0' distclean"],
            ),
            ("ninja -C build app", &["ninja -C build -t clean"]),
            ("meson compile -C build", &["ninja -C build -t clean"]),
            ("cmake -S . -B build && cmake --build build -j 4", &["cmake --build build --target clean"]),
            ("gcc -g -o prog prog.c", &[]),
            ("./build.sh", &[]),
            ("make CFLAGS=\"$FLAGS\"", &[]),
        ] {
            assert_eq!(lines(build), wanted, "{build}");
        }
    }
}
