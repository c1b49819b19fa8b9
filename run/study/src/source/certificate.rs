//! The certificate of a changed program: the compiler writes the forms of both variants that `lineup-check` compares.

use crate::error::{BuildError, Doing, Error, Result};
use crate::process::interrupt::Interrupts;
use crate::process::tool;
use crate::progress::Progress;
use crate::source::meaning::units_of;
use crate::source::path_mentions;
use crate::source::scratch::{Scratch, Tree};
use lineup_check::Error as CheckError;
use lineup_check::certificate::{self, Certificate, Vouched, hash, quoted};
use lineup_sources::CompileCommand;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The folders of the forms.
const VARIANTS: [&str; 2] = ["before", "after"];

/// The checker walks nested expressions by calls.
const STACK_BYTES: usize = 256 << 20;

/// How often the checker's thread is asked for, so that a signal ends the wait.
const POLL: Duration = Duration::from_millis(100);

/// Two variants of a program that this build made.
pub struct CertificateRequest<'r> {
    /// Where the copies lie.
    pub scratch: &'r Scratch,
    /// The copies with the program before and after the change.
    pub trees: [&'r Tree; 2],
    /// The build's compiler calls, as if made in the first copy.
    pub calls: &'r [CompileCommand],
    /// The program, relative to the folder.
    pub program: &'r Path,
    /// The files that the change edits, relative to the folder.
    pub edited: Vec<&'r str>,
    /// Records that say what else was seen.
    pub about: Vec<String>,
    /// The folder that the certificate goes to.
    pub out: &'r Path,
    /// The longest that compilers and checker may take.
    pub limit: Duration,
}

/// The outcome of a check.
pub enum Certified {
    /// The variants are equal up to the map; the certificate is written.
    Made(Certificate),
    /// They differ in a way that the map does not explain.
    Differs(String),
    /// There is no certificate, for this reason.
    NotCovered(String),
}

/// The compiler of a unit, and the forms that it writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Gimple,
    Llvm,
}

/// A unit: its name in the certificate, its source in the first copy, and its call.
struct Unit<'c> {
    name: String,
    source: PathBuf,
    call: &'c CompileCommand,
    language: Language,
}

/// Compiles each unit of both copies once more to its forms, compares them, and writes the certificate.
///
/// # Errors
/// When a signal ends the work, or a file cannot be written.
pub fn certify(
    request: CertificateRequest<'_>,
    interrupts: &Interrupts,
    progress: &dyn Progress,
) -> Result<Certified> {
    let begun = Instant::now();
    let mut about = Vec::new();
    let units = match units(&request, &mut about) {
        Ok(units) => units,
        Err(why) => return Ok(Certified::NotCovered(why)),
    };
    let forms = interrupts.temporary_folder().doing("cannot make a folder for the certificate's forms")?;
    let total = 2 * units.len() as u64;
    progress.stage("writing the certificate: compiling both variants to the forms that are compared");
    for (number, unit) in units.iter().enumerate() {
        for (index, variant) in VARIANTS.iter().enumerate() {
            progress.advance(2 * number as u64 + index as u64, total);
            if begun.elapsed() > request.limit {
                return Ok(Certified::NotCovered(format!(
                    "{number} of {} units were compiled to their forms in {} s, and no more were tried",
                    units.len(),
                    request.limit.as_secs()
                )));
            }
            match compile(&request, unit, index, &forms.path().join(variant)) {
                Ok(()) => {}
                Err(BuildError::Interrupted(interrupted)) => return Err(Error::Interrupted(interrupted)),
                Err(error) => {
                    return Ok(Certified::NotCovered(format!("{}: {}", unit.name, first_complaint(&error))));
                }
            }
        }
    }
    progress.stage("writing the certificate: comparing both variants");
    about.extend(sources(&request, &units));
    about.extend(object(&request));
    about.extend(request.about.iter().cloned());
    let folders = VARIANTS.map(|variant| forms.path().join(variant));
    let left = request.limit.saturating_sub(begun.elapsed());
    let Some(checked) = compared(&folders, about, left, interrupts)? else {
        return Ok(Certified::NotCovered(format!(
            "the comparison was not done after {} s",
            request.limit.as_secs()
        )));
    };
    let is_llvm = |name: &str| units.iter().any(|unit| unit.name == name && unit.language == Language::Llvm);
    Ok(match checked {
        Ok(certificate) => {
            let [before, after] = &folders;
            match certificate::write(request.out, &certificate, before, after) {
                Ok(_) => Certified::Made(certificate),
                Err(error) => Certified::NotCovered(error.to_string()),
            }
        }
        Err(CheckError::Differs { unit, function, place, .. }) if is_llvm(&unit) => {
            Certified::NotCovered(format!(
                "{unit}: {function} at {place}: clang's code differs, as it may where an offset becomes 0"
            ))
        }
        Err(CheckError::Differs { function, place, .. }) if moves_lines(&request) => {
            Certified::NotCovered(format!(
                "{function} at {place} differs, as code and data may that hold the numbers of source lines: the patch \
                 moves lines"
            ))
        }
        Err(CheckError::Differs { unit, function, place, before, after }) => Certified::Differs(format!(
            "{unit}: {function} at {place} is other code after the change, and the new layout does not explain it: \
             `{before}` became `{after}`"
        )),
        Err(error) => Certified::NotCovered(error.to_string()),
    })
}

/// True when an edited file has another number of lines, so that `__LINE__` changes behind the edit.
fn moves_lines(request: &CertificateRequest<'_>) -> bool {
    let lines = |tree: &Tree, file: &str| {
        fs::read(tree.path.join(file)).map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count())
    };
    let [before, after] = request.trees;
    request.edited.iter().any(|file| lines(before, file) != lines(after, file))
}

/// The units of the build and records of their compilers, or why they have no forms.
fn units<'c>(
    request: &CertificateRequest<'c>,
    about: &mut Vec<String>,
) -> std::result::Result<Vec<Unit<'c>>, String> {
    let [before, _] = request.trees;
    if request.calls.is_empty() {
        return Err("the compiler calls of the build were not seen".into());
    }
    let mut compilers: BTreeMap<&str, String> = BTreeMap::new();
    let mut units: Vec<Unit<'c>> = Vec::new();
    let mut seen: BTreeSet<(PathBuf, Vec<String>)> = BTreeSet::new();
    for call in request.calls {
        for file in call.assembly_paths().iter().filter_map(|file| file.strip_prefix(&before.path).ok()) {
            about.push(format!("not-covered {}", quoted(&format!("{}: assembler", file.display()))));
        }
        for source in call.source_paths() {
            let Ok(inside) = source.strip_prefix(&before.path) else { continue };
            let words = call.reading(&source, &[]).arguments;
            // A configure script removes its trials, and one source may be compiled for a library and for a program.
            if !source.is_file() || !seen.insert((source.clone(), words.clone())) {
                continue;
            }
            let compiler = words.first().map_or("", String::as_str);
            let spelled = compilers.entry(call.arguments.first().map_or("", String::as_str));
            let version = spelled.or_insert_with(|| version(compiler, &call.directory));
            let is_clang = version.contains("clang");
            let language = match (is_clang, call.is_cpp(&source)) {
                (true, _) => Language::Llvm,
                (false, false) => Language::Gimple,
                (false, true) => return Err(format!("{} is C++ that GCC compiles", inside.display())),
            };
            let name = inside.display().to_string();
            let same = units.iter().filter(|unit| unit.source == source).count();
            let name = if same == 0 { name } else { format!("{name}.{}", same + 1) };
            let flags = words.get(1..words.len() - 1).unwrap_or_default().join(" ");
            about.push(format!("flags {} {}", quoted(&name), quoted(&flags)));
            units.push(Unit { name, source, call, language });
        }
    }
    let compiled = |path: &&PathBuf| units.iter().any(|unit| unit.source == before.path.join(path));
    let program = units_of(request.scratch, before, request.program);
    if let Some(missing) = program.iter().find(|path| !compiled(path)) {
        return Err(format!("the build did not compile {} again", missing.display()));
    }
    let versions: BTreeSet<String> = compilers.into_values().collect();
    about.extend(versions.iter().map(|version| format!("compiler {}", quoted(version))));
    match units.is_empty() {
        true => Err("the build compiled no source of the folder".into()),
        false => Ok(units),
    }
}

/// The first line that a compiler says of its version.
fn version(compiler: &str, folder: &Path) -> String {
    let mut command = Command::new(compiler);
    let output = tool::output(command.arg("--version").current_dir(folder));
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// Options that are for the linker, or that put debug information where the checker does not look.
fn is_left_out(word: &str) -> bool {
    ["-l", "-L", "-Wl,", "-gsplit-dwarf", "-gz", "-flto", "-fdump-"]
        .iter()
        .any(|start| word.starts_with(start))
        || matches!(word, "-shared" | "-pie" | "-no-pie" | "-static" | "-rdynamic" | "-s")
        || (!word.starts_with('-') && [".o", ".a", ".so", ".lo"].iter().any(|end| word.ends_with(end)))
}

/// Compiles a unit in one of the copies.
fn compile(
    request: &CertificateRequest<'_>,
    unit: &Unit<'_>,
    index: usize,
    forms: &Path,
) -> std::result::Result<(), BuildError> {
    let [before, _] = request.trees;
    let tree = request.trees[index];
    let in_tree = |text: &str| {
        let bytes = path_mentions::repointed(text.as_bytes(), &before.path, &tree.path);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let form = forms.join(&unit.name);
    let folder = form.parent().unwrap_or(forms);
    fs::create_dir_all(folder)
        .doing_with(|| format!("cannot make {}", folder.display()))
        .map_err(BuildError::around)?;
    // Names of files in the program's text are the same in both copies.
    let here = request.scratch.built_in(tree).display();
    let same_names = format!("-ffile-prefix-map={here}={}", request.scratch.source().display());
    let dump = format!("-fdump-tree-gimple-lineno={}.gimple", form.display());
    let output = |end: &str| format!("{}.{end}", form.display());
    let object = output("o");
    let ir = output("ll");
    let options: Vec<&str> = match unit.language {
        Language::Gimple => {
            vec![
                "-w",
                "-g",
                "-fno-lto",
                "-fno-toplevel-reorder",
                "-fno-ipa-icf",
                &same_names,
                &dump,
                "-c",
                "-o",
                &object,
            ]
        }
        Language::Llvm => {
            let no_passes = ["-Xclang", "-disable-llvm-passes", "-o"];
            [&["-w", "-g", "-fno-lto", "-S", "-emit-llvm", &same_names][..], &no_passes, &[ir.as_str()]]
                .concat()
        }
    };
    let CompileCommand { directory, arguments } = unit.call.reading(&unit.source, &options);
    // Both variants are compiled at one time, for sources that print it.
    let mut words: Vec<String> = vec!["env".into(), "SOURCE_DATE_EPOCH=0".into()];
    let own = arguments.len() - options.len() - 1;
    let kept = arguments.iter().enumerate().filter(|(at, word)| *at >= own || !is_left_out(word));
    words.extend(kept.map(|(_, word)| in_tree(word)));
    let directory = PathBuf::from(in_tree(&directory.to_string_lossy()));
    request.scratch.call(tree, &CompileCommand { directory, arguments: words })?;
    match unit.language {
        Language::Gimple => settle_dump(&output("gimple"), &format!("{here}/")).map_err(BuildError::around),
        Language::Llvm => Ok(()),
    }
}

/// Names places in a dump from the copy's top, and makes the dump that GCC does not write of a unit without functions.
fn settle_dump(dump: &str, copy: &str) -> Result<()> {
    let bytes = match fs::read(dump) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).doing_with(|| format!("cannot read {dump}")),
    };
    let mut settled = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(&bytes, copy.as_bytes()) {
        settled.extend_from_slice(&bytes[from..at]);
        from = at + copy.len();
    }
    settled.extend_from_slice(&bytes[from..]);
    fs::write(dump, settled).doing_with(|| format!("cannot write {dump}"))
}

/// The hashes of the units' sources and of the edited files in both copies.
fn sources(request: &CertificateRequest<'_>, units: &[Unit<'_>]) -> Vec<String> {
    let [before, _] = request.trees;
    let inside = |unit: &Unit<'_>| Some(unit.source.strip_prefix(&before.path).ok()?.display().to_string());
    let names: BTreeSet<String> =
        units.iter().filter_map(inside).chain(request.edited.iter().map(|file| (*file).to_owned())).collect();
    names.iter().filter_map(|name| hashes(request, "source", name)).collect()
}

fn object(request: &CertificateRequest<'_>) -> Option<String> {
    hashes(request, "object", &request.program.display().to_string())
}

fn hashes(request: &CertificateRequest<'_>, record: &str, name: &str) -> Option<String> {
    let of = |tree: &Tree| Some(hash(&fs::read(tree.path.join(name)).ok()?));
    let [before, after] = request.trees;
    Some(format!("{record} {} {} {}", quoted(name), of(before)?, of(after)?))
}

/// Runs the checker, and returns `None` when it takes longer than this.
fn compared(
    folders: &[PathBuf; 2],
    about: Vec<String>,
    limit: Duration,
    interrupts: &Interrupts,
) -> Result<Option<lineup_check::Result<Certificate>>> {
    let (sender, receiver) = channel();
    let [before, after] = folders.clone();
    let work = move || {
        // Nobody waits any more where this fails.
        let _ = sender.send(certificate::compared(&before, &after, None, about, &Vouched::default()));
    };
    let started = thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
    started.doing("cannot start a thread that compares")?;
    let begun = Instant::now();
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(checked) => return Ok(Some(checked)),
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < limit => interrupts.check()?,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let what = "the checker ended early".into();
                return Ok(Some(Err(CheckError::Unreadable { unit: "the program".into(), what })));
            }
        }
    }
}

/// The compiler's first complaint, or the whole error.
fn first_complaint(error: &BuildError) -> String {
    let words = error.to_string();
    let complaint = words.lines().find(|line| line.contains("error"));
    complaint.or_else(|| words.lines().next()).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_the_linker_do_not_reach_the_compiler() {
        for word in ["-lm", "-L.", "-Wl,-z,now", "-shared", "util.o", "liba.a", "-flto=auto", "-gsplit-dwarf"]
        {
            assert!(is_left_out(word), "{word}");
        }
        for word in ["-O2", "-DX", "-include", "config.h", "-fPIC", "-static-libgcc"] {
            assert!(!is_left_out(word), "{word}");
        }
    }
}
