//! The compiler calls of a build.

use crate::error::Error;
use crate::read::normal;
use regex::Regex;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// One compiler call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CompileCommand {
    /// The folder where it ran.
    pub directory: PathBuf,
    /// The compiler and its arguments.
    pub arguments: Vec<String>,
}

/// An entry of `compile_commands.json`.
#[derive(Deserialize)]
struct DatabaseEntry {
    directory: PathBuf,
    arguments: Option<Vec<String>>,
    command: Option<String>,
}

/// Reads the text of a `compile_commands.json`.
///
/// # Errors
/// When the text is no such list.
pub fn from_json(file: &Path, text: &str) -> Result<Vec<CompileCommand>, Error> {
    let wrong = |why: String| Error::CompileCommands { file: file.to_owned(), why };
    let entries: Vec<DatabaseEntry> = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let mut commands = Vec::new();
    for DatabaseEntry { directory, arguments, command } in entries {
        let split = || command.as_deref().and_then(|command| shell_words::split(command).ok());
        let arguments = arguments
            .or_else(split)
            .ok_or_else(|| wrong("an entry has no command that can be split".into()))?;
        commands.push(CompileCommand::called(directory, arguments));
    }
    Ok(commands)
}

const EXTENSIONS: [&str; 6] = ["c", "cc", "cpp", "cxx", "C", "c++"];

/// Options whose value is the next argument, and which the meaning of the sources depends on.
const WITH_VALUE: [&str; 12] = [
    "-I",
    "-D",
    "-U",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-x",
    "-isysroot",
    "--sysroot",
    "-std",
];

/// The beginnings of options that the meaning of the sources depends on.
const MEANINGFUL: [&str; 30] = [
    "-ansi",
    "-m32",
    "-m64",
    "-mx32",
    "-march=",
    "-msse",
    "-mavx",
    "-maes",
    "-mpclmul",
    "-mbmi",
    "-mpopcnt",
    "-mf16c",
    "-mfma",
    "-mlzcnt",
    "-mssse",
    "-fshort-enums",
    "-fshort-wchar",
    "-fpack-struct",
    "-fsigned-char",
    "-funsigned-char",
    "-fms-extensions",
    "-nostdinc",
    "-pthread",
    "-fopenmp",
    "-fvisibility=",
    "-fPIC",
    "-fpic",
    "-fPIE",
    "--sysroot=",
    "-fno-rtti",
];

/// Options for code generation that begin like meaningful ones. Clang takes them for errors.
const OF_GCC_ALONE: [&str; 2] = ["-mavx256-split-", "-msse2avx"];

/// Names of standards that only newer versions of Clang know, with the name of the same or the nearest one that each
/// knows.
const STANDARDS: [(&str, &str); 12] = [
    ("c++23", "c++2b"),
    ("gnu++23", "gnu++2b"),
    ("c++26", "c++2b"),
    ("c++2c", "c++2b"),
    ("gnu++26", "gnu++2b"),
    ("gnu++2c", "gnu++2b"),
    ("c23", "c2x"),
    ("gnu23", "gnu2x"),
    ("iso9899:2024", "c2x"),
    ("c2y", "c2x"),
    ("gnu2y", "gnu2x"),
    ("iso9899:2023", "c2x"),
];

/// The option for a standard. `None` for one of the other language: GCC warns of it and ignores it, and libclang would
/// read nothing.
fn standard_for_libclang(name: &str, is_cpp: bool) -> Option<String> {
    let known = STANDARDS.iter().find(|(newer, _)| *newer == name).map_or(name, |(_, known)| known);
    (name.contains("++") == is_cpp).then(|| format!("-std={known}"))
}

fn has_extension(path: &Path, known: &[&str]) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|own| known.contains(&own))
}

/// Programs that start the compiler that follows them.
const LAUNCHERS: [&str; 6] = ["ccache", "sccache", "distcc", "icecc", "buildcache", "env"];

impl CompileCommand {
    /// A call as it was made, without the launcher of the compiler (`ccache gcc -c x.c`).
    pub fn called(directory: PathBuf, mut arguments: Vec<String>) -> CompileCommand {
        let is_launcher = |word: &String| {
            let name = word.rsplit('/').next().unwrap_or(word);
            LAUNCHERS.contains(&name) || (word.contains('=') && !word.starts_with('-'))
        };
        let launched = arguments.iter().take_while(|word| is_launcher(word)).count();
        arguments.drain(..launched);
        CompileCommand { directory, arguments }
    }

    /// True for names of files that a compiler of C or C++ makes an object of.
    pub fn is_source(path: &Path) -> bool {
        has_extension(path, &EXTENSIONS)
    }

    /// True for names of files of assembly.
    pub fn is_assembly(path: &Path) -> bool {
        has_extension(path, &["S", "s"])
    }

    /// True for calls of a C or C++ compiler that compile, or link, something.
    pub fn is_compiler(&self) -> bool {
        static NAMES: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"^(.+-)?(cc|gcc|g\+\+|c\+\+|clang|clang\+\+)(-[0-9.]+)?$").ok());
        let program = self.arguments.first().map_or("", String::as_str);
        let name = program.rsplit('/').next().unwrap_or(program);
        let is_internal = self.arguments.get(1).is_some_and(|first| first == "-cc1" || first == "-cc1as");
        !is_internal && NAMES.as_ref().is_some_and(|names| names.is_match(name))
    }

    /// True for code that runs in a kernel: all functions that it calls are compiled from the same tree.
    pub(crate) fn is_kernel(&self) -> bool {
        self.arguments.iter().any(|argument| argument == "-D__KERNEL__")
    }

    /// True when its language and its warnings take no `.member = value` in an initialiser: C of 1989, to the letter.
    pub(crate) fn forbids_designators(&self) -> bool {
        let has =
            |options: &[&str]| self.arguments.iter().any(|argument| options.contains(&argument.as_str()));
        let is_old = has(&["-ansi", "-std=c89", "-std=c90", "-std=iso9899:1990", "-std=iso9899:199409"]);
        let is_pedantic = has(&["-pedantic", "-Wpedantic", "-Wc90-c99-compat"]);
        is_old && (has(&["-pedantic-errors", "-Werror=pedantic"]) || (is_pedantic && has(&["-Werror"])))
    }

    /// True when it links a shared library.
    pub fn links_shared_library(&self) -> bool {
        self.is_compiler()
            && self.arguments.iter().any(|argument| argument == "-shared" || argument == "-dynamiclib")
    }

    /// The sources that it compiles, as written.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.files(Self::is_source)
    }

    /// The files of assembly that it assembles, as absolute paths.
    pub fn assembly_paths(&self) -> Vec<PathBuf> {
        self.files(Self::is_assembly).map(|source| normal(&self.directory.join(source))).collect()
    }

    fn files(&self, is_meant: fn(&Path) -> bool) -> impl Iterator<Item = &str> {
        let is_preprocessing = self
            .arguments
            .iter()
            .any(|argument| matches!(argument.as_str(), "-E" | "-M" | "-MM" | "-fsyntax-only"));
        let has_value = |before: &String| {
            matches!(before.as_str(), "-o" | "-MF" | "-MT" | "-MQ") || WITH_VALUE.contains(&before.as_str())
        };
        let pairs = self.arguments.iter().zip(self.arguments.iter().skip(1));
        let is_source = move |argument: &str| !argument.starts_with('-') && is_meant(Path::new(argument));
        pairs
            .filter(move |(before, _)| !is_preprocessing && !has_value(before))
            .map(|(_, argument)| argument.as_str())
            .filter(move |argument| is_source(argument))
    }

    /// The sources as absolute paths.
    pub fn source_paths(&self) -> Vec<PathBuf> {
        self.sources().map(|source| normal(&self.directory.join(source))).collect()
    }

    /// The same call for another source, without its outputs and linking, and with these options in addition: the
    /// compiler reads `source` as it read its own.
    pub fn reading(&self, source: &Path, more: &[&str]) -> CompileCommand {
        let own: Vec<&str> = self.sources().collect();
        let mut arguments = Vec::new();
        let mut rest = self.arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "-o" | "-MF" | "-MT" | "-MQ" => {
                    rest.next();
                }
                "-c" | "-S" | "-MD" | "-MMD" | "-MP" | "-M" | "-MM" | "-MG" => {}
                other
                    if own.contains(&other)
                        || other.starts_with("-Wp,-M")
                        || other.starts_with("-save-temps") => {}
                _ => arguments.push(argument.clone()),
            }
        }
        arguments.extend(more.iter().map(|&option| option.to_owned()));
        arguments.push(source.to_string_lossy().into_owned());
        CompileCommand { directory: self.directory.clone(), arguments }
    }

    /// The arguments that libclang needs to understand `source` as this call does. Options for code generation are left
    /// out, because libclang does not know every option of every compiler.
    pub(crate) fn for_libclang(&self, source: &Path) -> Vec<String> {
        let mut kept: Vec<String> = Vec::new();
        let absolute = |path: &str| match path.is_empty() || path.starts_with('=') {
            true => path.to_string(),
            false => normal(&self.directory.join(path)).to_string_lossy().into_owned(),
        };
        let mut arguments = self.arguments.iter().skip(1);
        while let Some(argument) = arguments.next() {
            let is_path = |option: &str| !matches!(option, "-D" | "-U" | "-x" | "-std");
            if WITH_VALUE.contains(&argument.as_str()) {
                let Some(value) = arguments.next() else { break };
                kept.push(argument.clone());
                let is_file = argument == "-include" || argument == "-imacros";
                let found = !is_file || self.directory.join(value).exists();
                kept.push(if is_path(argument) && found { absolute(value) } else { value.clone() });
            } else if let Some(path) = argument.strip_prefix("-I") {
                kept.push(format!("-I{}", absolute(path)));
            } else if argument.starts_with("-D") || argument.starts_with("-U") {
                kept.push(argument.clone());
            } else if let Some(option) =
                ["-isystem", "-iquote", "-idirafter"].into_iter().find(|option| argument.starts_with(option))
            {
                kept.extend([option.to_string(), absolute(&argument[option.len()..])]);
            } else if let Some(name) = argument.strip_prefix("-std=") {
                kept.extend(standard_for_libclang(name, self.is_cpp(source)));
            } else if argument == "-fplan9-extensions" {
                // The anonymous members of both are the same.
                kept.push("-fms-extensions".to_owned());
            } else if MEANINGFUL.iter().any(|known| argument.starts_with(known))
                && !OF_GCC_ALONE.iter().any(|known| argument.starts_with(known))
            {
                kept.push(argument.clone());
            }
        }
        kept.extend(self.target());
        kept.extend(["-w".to_string(), "-ferror-limit=0".to_string(), source.to_string_lossy().into_owned()]);
        kept
    }

    /// The settings that decide which lines of a source are compiled, and as which text.
    pub(crate) fn settings(&self, source: &Path) -> Vec<String> {
        let arguments = self.for_libclang(source);
        let mut before = "";
        let mut settings = Vec::new();
        for argument in &arguments {
            let is_value = ["-D", "-U", "-include", "-imacros"].contains(&before);
            let is_macro = argument.len() > 2 && (argument.starts_with("-D") || argument.starts_with("-U"));
            // Libtool compiles each source a second time for its shared library.
            if (is_value || is_macro) && argument != "-DPIC" {
                settings.push(format!("{before}{argument}"));
            }
            before = argument;
        }
        settings
    }

    /// True when `source` is compiled as C++.
    pub fn is_cpp(&self, source: &Path) -> bool {
        let program = self.arguments.first().map_or("", String::as_str);
        let extension = source.extension().and_then(|extension| extension.to_str());
        program.rsplit('/').next().unwrap_or(program).contains("++")
            || !matches!(extension, Some("c"))
            || self.arguments.iter().any(|argument| argument == "c++" || argument == "-xc++")
    }

    /// True when the call names a standard.
    pub(crate) fn names_standard(&self) -> bool {
        self.arguments.iter().any(|argument| argument.starts_with("-std") || argument == "-ansi")
    }

    /// The machine that a cross compiler is named after; the language when the compiler's name decides.
    fn target(&self) -> Vec<String> {
        let program = self.arguments.first().map_or("", String::as_str);
        let name = program.rsplit('/').next().unwrap_or(program);
        let mut options = Vec::new();
        let parts: Vec<&str> = name.split('-').collect();
        if let Some(driver) = parts.iter().position(|part| matches!(*part, "gcc" | "g++" | "cc" | "c++"))
            && driver >= 2
        {
            options.push(format!("--target={}", parts[..driver].join("-")));
        }
        if name.contains("++") && !self.arguments.iter().any(|argument| argument == "-x") {
            options.push("-xc++".into());
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_of_the_compiler_are_no_part_of_its_call() {
        let called = |text: &str| {
            CompileCommand::called("/w".into(), shell_words::split(text).expect("splits")).arguments.join(" ")
        };
        assert_eq!(called("/usr/bin/ccache gcc -c a.c"), "gcc -c a.c");
        assert_eq!(called("env CCACHE_DIR=/c sccache g++ -DX=1 -c a.cc"), "g++ -DX=1 -c a.cc");
        assert_eq!(called("gcc -c a.c"), "gcc -c a.c");
    }

    fn command(text: &str) -> CompileCommand {
        CompileCommand { directory: "/w/sub".into(), arguments: shell_words::split(text).expect("splits") }
    }

    #[test]
    fn only_what_means_something_reaches_libclang() {
        let call = command(
            "gcc -O2 -Wall -mrecord-mcount -I../inc -DX=1 -include cfg.h -isystem /s -MF x.d -c a.c -o a.o",
        );
        assert_eq!(
            call.for_libclang(Path::new("/w/sub/a.c")),
            [
                "-I/w/inc",
                "-DX=1",
                "-include",
                "cfg.h",
                "-isystem",
                "/s",
                "-w",
                "-ferror-limit=0",
                "/w/sub/a.c"
            ]
        );
        assert_eq!(call.source_paths(), [Path::new("/w/sub/a.c")]);
    }

    #[test]
    fn options_of_newer_compilers_and_of_gcc_alone_reach_libclang_as_it_knows_them() {
        let kept = |text: &str, source: &str| {
            let all = command(text).for_libclang(Path::new(source));
            all.into_iter().filter(|one| one.starts_with("-std") || one.starts_with("-f")).collect::<Vec<_>>()
        };
        let limit = "-ferror-limit=0";
        assert_eq!(kept("g++ -std=gnu++23 -c a.cc", "/a.cc"), ["-std=gnu++2b", limit]);
        assert_eq!(kept("gcc -std=c23 -c a.c", "/a.c"), ["-std=c2x", limit]);
        assert_eq!(kept("gcc -std=gnu11 -c a.c", "/a.c"), ["-std=gnu11", limit]);
        assert_eq!(kept("g++ -std=gnu11 -c a.cc", "/a.cc"), [limit], "GCC ignores it for C++");
        assert_eq!(kept("gcc -std=c++17 -c a.c", "/a.c"), [limit], "and those of C++ for C");
        assert_eq!(kept("gcc -fplan9-extensions -c a.c", "/a.c"), ["-fms-extensions", limit]);
        let machine = command("gcc -mavx2 -msse2avx -mavx256-split-unaligned-load -c a.c");
        let kept = machine.for_libclang(Path::new("/a.c"));
        assert_eq!(kept[0], "-mavx2");
        assert!(!kept.iter().any(|one| one.contains("sse2avx") || one.contains("split")), "{kept:?}");
    }

    #[test]
    fn compilers_are_known_by_name() {
        for name in ["cc", "/usr/bin/gcc-12", "aarch64-linux-gnu-g++", "clang++-19"] {
            assert!(command(&format!("{name} -c a.c")).is_compiler(), "{name}");
        }
        for text in ["ld -o x", "clang -cc1 a.c", "gccgo a.c", "make"] {
            assert!(!command(text).is_compiler(), "{text}");
        }
        assert_eq!(command("gcc -E a.c").sources().count(), 0, "preprocessing compiles nothing");
    }

    #[test]
    fn only_old_c_to_the_letter_takes_no_designators() {
        for text in ["cc -std=c89 -pedantic -Werror -c a.c", "cc -ansi -pedantic-errors -c a.c"] {
            assert!(command(text).forbids_designators(), "{text}");
        }
        for text in [
            "cc -std=c89 -pedantic -c a.c",
            "cc -std=gnu89 -Werror -c a.c",
            "cc -std=c99 -pedantic -Werror -c a.c",
        ] {
            assert!(!command(text).forbids_designators(), "{text}");
        }
    }

    #[test]
    fn a_cross_compiler_says_its_target_and_a_cpp_compiler_its_language() {
        let arguments = command("aarch64-linux-gnu-g++ -c a.c").for_libclang(Path::new("/a.c"));
        assert!(arguments.contains(&"--target=aarch64-linux-gnu".to_string()));
        assert!(arguments.contains(&"-xc++".to_string()));
    }

    #[test]
    fn both_forms_of_a_compilation_database_are_read() {
        let text = r#"[{"directory":"/d","file":"a.c","command":"cc -c a.c -DX='a b'"},
                       {"directory":"/d","file":"b.c","arguments":["cc","-c","b.c"]}]"#;
        let commands = from_json(Path::new("compile_commands.json"), text).expect("reads");
        assert_eq!(commands[0].arguments, ["cc", "-c", "a.c", "-DX=a b"]);
        assert_eq!(commands[1].source_paths(), [Path::new("/d/b.c")]);
        let error = from_json(Path::new("x.json"), "{}").expect_err("no list");
        assert!(error.to_string().contains("x.json"), "{error}");
    }
}
