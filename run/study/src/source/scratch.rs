//! Scratch copies of the user's source folder, and builds in them.

use crate::error::BuildError;
use crate::error::{Doing, Error, Result};
use crate::process::child::{Streams, Waiting};
use crate::process::folder::TempFolder;
use crate::process::interrupt::Interrupts;
use crate::process::placed::Placed;
use crate::process::run::Run;
use crate::source::build::Command;
use crate::source::clean_commands;
use crate::source::copy::{copy, set_modified};
use crate::source::folder_state::FolderState;
use crate::source::link::linkers::Linkers;
use crate::source::link::relink::ProgramLinks;
use crate::source::path_mentions;
use crate::source::stale_outputs::{self, made};
pub use crate::source::tree::Tree;
use lineup_prove::run::Ending;
use lineup_sources::CompileCommand;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A file in a folder with results of a study.
pub const STUDY_MARK: &str = ".lineup-study";

/// Copies of one source folder. All live at paths of equal length, because a path's length moves
/// the program's stack and with it the timing.
pub struct Scratch {
    root: TempFolder,
    source: PathBuf,
    build: String,
    leave_out: Vec<PathBuf>,
    place: BuildPath,
    untouched: FolderState,
    interrupts: Interrupts,
    remarks: RefCell<BTreeSet<String>>,
    linkers: Option<Linkers>,
    /// The command that cleans every copy before it is built: the folder holds outputs of an earlier build that this
    /// one would not make again.
    cleaning: RefCell<Option<String>>,
}

/// The path at which a copy is built.
#[derive(Clone, PartialEq, Eq, Debug)]
enum BuildPath {
    /// At its own path: nothing names the original.
    Copy,
    /// At the path of the original, because this file names it.
    Original(PathBuf),
    /// At its own path, with the copy's path in these files instead of the original's.
    Repointed(Vec<PathBuf>),
}

/// The copies a study makes.
#[derive(Clone, Copy)]
pub enum Role {
    /// The unchanged program.
    Before,
    /// The program with the patch.
    After,
    /// A candidate that the compiler is to judge.
    Candidate,
    /// The program as another optimiser leaves it, by its place among them, from 0 to 8.
    Optimised(usize),
    /// A program with sanitizers.
    Sanitized,
}

/// Folders for the optimisers' programs.
const FURTHER: [&str; 9] = ["d", "e", "f", "g", "h", "i", "j", "k", "l"];

impl Role {
    fn folder(self) -> &'static str {
        match self {
            Role::Before => "a",
            Role::After => "b",
            Role::Candidate => "c",
            // One letter, like the others: a program's path must not grow longer.
            Role::Optimised(place) => FURTHER.get(place).unwrap_or(&"m"),
            Role::Sanitized => "n",
        }
    }
}

impl Scratch {
    /// Prepares copies of `source`, built with the shell command `build`. `leave_out` (the output
    /// folder) is not copied when it lies inside, nor are results of other studies.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn new(source: &Path, build: &str, leave_out: &Path, interrupts: &Interrupts) -> Result<Self> {
        let source = source
            .canonicalize()
            .doing_with(|| format!("cannot read the source folder {}", source.display()))?;
        if !source.is_dir() {
            let why = "is not a folder; --source names the folder that holds the program's sources";
            return Err(Error::file(source, why));
        }
        let root = interrupts.temporary_folder().doing("cannot make a scratch folder")?;
        let mut leave_out = [leave_out, root.path()]
            .map(|path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf()))
            .to_vec();
        leave_out.extend(studies(&source));
        let place = place(&source, build, &leave_out, interrupts)?;
        let untouched = FolderState::note(&source, &leave_out)?;
        let (build, interrupts, remarks) = (build.to_owned(), interrupts.clone(), RefCell::default());
        let (linkers, cleaning) = (None, RefCell::default());
        Ok(Self { root, source, build, leave_out, place, untouched, interrupts, remarks, linkers, cleaning })
    }

    /// The same, but that builds link by these linkers.
    pub fn linked_by(self, linkers: Linkers) -> Self {
        Self { linkers: Some(linkers), ..self }
    }

    /// The user's folder.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// Folders that are not part of the sources: the output folder, the copies themselves.
    pub fn leave_out(&self) -> &[PathBuf] {
        &self.leave_out
    }

    /// The folder by which debug information names the files of a copy.
    pub fn built_in<'s>(&'s self, tree: &'s Tree) -> &'s Path {
        match self.place {
            BuildPath::Original(_) => &self.source,
            _ => &tree.path,
        }
    }

    /// The links of a program, named relative to the folder, that builds in this copy made; or the reason why there are
    /// none.
    pub fn links_of(&self, tree: &Tree, program: &Path) -> Result<std::result::Result<ProgramLinks, String>> {
        let seen = self.built_in(tree).join(program);
        let links = match &self.linkers {
            Some(linkers) => linkers.links_in(&tree.path, &seen)?,
            None => None,
        };
        Ok(links.ok_or_else(|| {
            format!(
                "{} was not linked in other layouts: the build `{}` does not link it, or not by GCC or Clang",
                program.display(),
                self.build
            )
        }))
    }

    /// Adds a remark on the builds for the user.
    pub fn remark(&self, what: String) {
        self.remarks.borrow_mut().insert(what);
    }

    /// Remarks on the builds for the user: their folder, and the steps that they did not do by themselves.
    pub fn remarks(&self) -> Vec<String> {
        let place = match &self.place {
            BuildPath::Copy => None,
            BuildPath::Original(file) => Some(format!(
                "copies were built at the path of the original, which {} names; the original was out of reach",
                file.display()
            )),
            BuildPath::Repointed(files) => Some(format!(
                "the path of the original was replaced in {} files of each copy, such as {}",
                files.len(),
                files.first().map_or(Path::new(""), PathBuf::as_path).display()
            )),
        };
        place.into_iter().chain(self.remarks.borrow().iter().cloned()).collect()
    }

    /// The build command.
    pub(crate) fn build_command(&self) -> &str {
        &self.build
    }

    /// The path of a further folder, which lies with the copies.
    pub(crate) fn further_folder(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A copy's path, whether it exists or not.
    pub fn path(&self, role: Role) -> PathBuf {
        self.root.path().join(role.folder())
    }

    /// A fresh copy.
    ///
    /// # Errors
    /// When a file cannot be read, or a link leads to where a build could do harm.
    pub fn copy(&self, role: Role) -> Result<Tree> {
        let path = self.path(role);
        if path.exists() {
            fs::remove_dir_all(&path).doing_with(|| format!("cannot empty {}", path.display()))?;
        }
        copy(&self.source, &path, &self.leave_out)
            .doing_with(|| format!("cannot copy {} to {}", self.source.display(), path.display()))?;
        if let BuildPath::Repointed(files) = &self.place {
            files.iter().try_for_each(|file| self.repoint(&path.join(file), &path))?;
        }
        if let Some(line) = &*self.cleaning.borrow() {
            self.clean(&path, line)?;
        }
        Ok(Tree::at(path))
    }

    /// Replaces the original's path by the copy's.
    fn repoint(&self, file: &Path, copy: &Path) -> Result<()> {
        let rewrite = || {
            let modified = fs::metadata(file)?.modified()?;
            let bytes = path_mentions::repointed(&fs::read(file)?, &self.source, copy);
            let permissions = fs::metadata(file)?.permissions();
            fs::remove_file(file)?;
            fs::write(file, bytes)?;
            fs::set_permissions(file, permissions).map(|()| modified)
        };
        let modified = rewrite().doing_with(|| format!("cannot rewrite {}", file.display()))?;
        set_modified(file, modified)
    }

    /// Edits the copy, see [`Tree::edit`], and runs the build command in it. Outputs that the build left unchanged
    /// though an edited file is among their sources are put aside, so that it must make them.
    ///
    /// # Errors
    /// See [`BuildError`]. A build that changed the user's folder has failed.
    pub fn build(&self, tree: &mut Tree, edits: &BTreeMap<String, String>) -> Result<(), BuildError> {
        tree.edit(edits).and_then(|()| tree.freshen()).map_err(BuildError::around)?;
        let before = match tree.written.is_empty() {
            true => BTreeMap::new(),
            false => made(&tree.path).map_err(BuildError::around)?,
        };
        self.run(tree)?;
        let after = match before.is_empty() {
            true => BTreeMap::new(),
            false => made(&tree.path).map_err(BuildError::around)?,
        };
        let mut stale = tree.stale.find(&before, &after, &tree.written).map_err(BuildError::around)?;
        stale.retain(|path| !tree.unrelated.contains(path));
        if !stale.is_empty() {
            self.build_anew(tree, &stale)?;
        }
        tree.written.clear();
        Ok(())
    }

    /// Runs the build command in a copy and returns the compiler calls that it makes, as if they were made there.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build_traced(&self, tree: &mut Tree) -> Result<Vec<CompileCommand>, BuildError> {
        tree.edit(&BTreeMap::new()).and_then(|()| tree.freshen_sources()).map_err(BuildError::around)?;
        let calls = RefCell::default();
        self.run_by(tree, self.linkers.as_ref(), Some(&calls))?;
        let here = |text: &String| {
            let bytes = path_mentions::repointed(text.as_bytes(), &self.source, &tree.path);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let in_copy = |call: CompileCommand| {
            let directory = match call.directory.strip_prefix(&self.source) {
                Ok(inside) => tree.path.join(inside),
                Err(_) => call.directory,
            };
            CompileCommand { directory, arguments: call.arguments.iter().map(here).collect() }
        };
        Ok(calls.into_inner().into_iter().map(in_copy).collect())
    }

    /// Runs a build tool's cleaning in a copy, and returns whether it succeeded.
    fn clean(&self, path: &Path, line: &str) -> Result<bool> {
        let (ending, _) = self.run_line(path, line)?;
        self.check_untouched()?;
        Ok(ending == Ending::Exited(0))
    }

    /// Cleans a copy of an earlier build's outputs and builds it anew, when the build then compiles more of the
    /// `wanted` units, by their sources relative to the folder. Later copies are cleaned in the same way. `None` when
    /// no cleaning helps: the copy is then as it was built before.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub(crate) fn build_cleaned(
        &self,
        tree: &mut Tree,
        wanted: &BTreeSet<PathBuf>,
        before: &[CompileCommand],
    ) -> Result<Option<Vec<CompileCommand>>, BuildError> {
        let not_compiled = |calls: &[CompileCommand]| -> BTreeSet<String> {
            let compiled: BTreeSet<PathBuf> = calls.iter().flat_map(CompileCommand::source_paths).collect();
            // Ready-made objects have no source here that could be compiled.
            let left = wanted.iter().filter(|path| self.source.join(path).exists());
            let left = left.filter(|path| !compiled.contains(&lineup_sources::normal(&tree.path.join(path))));
            left.map(|path| path.to_string_lossy().into_owned()).collect()
        };
        let missing = not_compiled(before);
        let left = missing.len();
        if left == 0 {
            return Ok(None);
        }
        let made = stale_outputs::of_sources(&tree.path, &missing).map_err(BuildError::around)?;
        // A build may link whatever files it finds: what was removed has to be made again, all of it.
        let own = clean_commands::lines(&self.build).into_iter().map(|line| (line, left - 1));
        let lines = own.chain(clean_commands::removal(&made).map(|line| (line, 0)));
        let mut is_tree_gone = false;
        for (line, most_left) in lines {
            let mut cleaned = self.copy(Role::Before).map_err(BuildError::around)?;
            is_tree_gone = true;
            if !self.clean(&cleaned.path, &line).map_err(BuildError::around)? {
                continue;
            }
            match self.build_traced(&mut cleaned) {
                Ok(calls) if not_compiled(&calls).len() <= most_left => {
                    let units =
                        if left == 1 { "unit of the program was" } else { "units of the program were" };
                    self.remark(format!(
                        "{left} {units} not compiled again: the folder was built before. Copies were cleaned by \
                         `{line}`"
                    ));
                    *self.cleaning.borrow_mut() = Some(line);
                    *tree = cleaned;
                    return Ok(Some(calls));
                }
                Err(BuildError::Interrupted(interrupted)) => {
                    return Err(BuildError::Interrupted(interrupted));
                }
                _ => {}
            }
        }
        if is_tree_gone {
            *tree = self.copy(Role::Before).map_err(BuildError::around)?;
            self.build_traced(tree)?;
        }
        Ok(None)
    }

    /// Puts stale outputs aside and builds again. The build should have made those that it makes now; those that it
    /// does not make are not part of it and come back.
    fn build_anew(&self, tree: &mut Tree, stale: &[PathBuf]) -> Result<(), BuildError> {
        let aside = tempfile::tempdir_in(self.root.path())
            .doing("cannot make a scratch folder")
            .map_err(BuildError::around)?;
        let kept = |index: usize| aside.path().join(index.to_string());
        for (index, path) in stale.iter().enumerate() {
            rename(path, &kept(index))?;
        }
        let built = self.run(tree);
        let mut made = Vec::new();
        for (index, path) in stale.iter().enumerate() {
            if path.exists() {
                made.push(path.as_path());
            } else {
                rename(&kept(index), path)?;
                tree.unrelated.insert(path.clone());
            }
        }
        match built {
            Err(BuildError::Rejected { words }) => {
                let all: Vec<&Path> = stale.iter().map(PathBuf::as_path).collect();
                Err(BuildError::Rejected { words: format!("{}; {words}", not_recompiled(tree, &all)) })
            }
            Ok(()) if !made.is_empty() => {
                let remark = format!(
                    "{}: it lacks dependencies on headers. A clean build was made in the copy; make one after \
                     applying the patch, too",
                    not_recompiled(tree, &made)
                );
                self.remarks.borrow_mut().insert(remark);
                Ok(())
            }
            built => built,
        }
    }

    /// Runs one compiler call in a copy, as a build there would, and returns its output.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub(crate) fn call(&self, tree: &Tree, call: &CompileCommand) -> Result<String, BuildError> {
        let is_placed = matches!(self.place, BuildPath::Original(_));
        let seen = |text: &str| match is_placed {
            true => {
                let bytes = path_mentions::repointed(text.as_bytes(), &tree.path, &self.source);
                String::from_utf8_lossy(&bytes).into_owned()
            }
            false => text.to_owned(),
        };
        let words = shell_words::join(call.arguments.iter().map(|word| seen(word)));
        let folder = seen(&call.directory.to_string_lossy());
        let line = format!("cd {} && {words}", shell_words::quote(&folder));
        let (source, folder) = (self.source.as_path(), tree.path.as_path());
        Command { line: &line, source, folder, is_placed, linkers: None, calls: None }.run(&self.interrupts)
    }

    /// Runs a line of shell where the copy was built, and returns its end and its output. Paths that the build wrote
    /// down, such as a test's programs, are the copy's there.
    pub(crate) fn run_line(&self, folder: &Path, line: &str) -> Result<(Ending, String)> {
        let line = match self.place {
            BuildPath::Repointed(_) => {
                let line = path_mentions::repointed(line.as_bytes(), &self.source, folder);
                String::from_utf8_lossy(&line).into_owned()
            }
            _ => line.to_owned(),
        };
        let is_placed = matches!(self.place, BuildPath::Original(_));
        let command =
            Command { line: &line, source: &self.source, folder, is_placed, linkers: None, calls: None };
        let ended = command.output(&self.interrupts)?;
        self.check_interrupts()?;
        Ok(ended)
    }

    /// Fails once a signal has asked Lineup to end.
    pub(crate) fn check_interrupts(&self) -> Result<()> {
        Ok(self.interrupts.check()?)
    }

    /// Runs the build command in a copy by these compilers and linkers, and compiles every unit.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build_by(&self, tree: &Tree, linkers: &Linkers) -> Result<(), BuildError> {
        tree.freshen_sources().map_err(BuildError::around)?;
        self.run_by(tree, Some(linkers), None)
    }

    fn run(&self, tree: &Tree) -> Result<(), BuildError> {
        self.run_by(tree, self.linkers.as_ref(), None)
    }

    fn run_by(
        &self,
        tree: &Tree,
        linkers: Option<&Linkers>,
        calls: Option<&RefCell<Vec<CompileCommand>>>,
    ) -> Result<(), BuildError> {
        let line = match self.place {
            BuildPath::Repointed(_) => {
                let line = path_mentions::repointed(self.build.as_bytes(), &self.source, &tree.path);
                String::from_utf8_lossy(&line).into_owned()
            }
            _ => self.build.clone(),
        };
        let command = Command {
            line: &line,
            source: &self.source,
            folder: &tree.path,
            is_placed: matches!(self.place, BuildPath::Original(_)),
            linkers,
            calls,
        };
        let built = command.run(&self.interrupts).map(drop);
        self.check_untouched().map_err(BuildError::around)?;
        built
    }

    /// # Errors
    /// When a file of the user's folder has changed since the start.
    pub fn check_untouched(&self) -> Result<()> {
        self.untouched.check()
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), BuildError> {
    fs::rename(from, to).doing_with(|| format!("cannot move {}", from.display())).map_err(BuildError::around)
}

/// Reports the outputs that were left unchanged. Where objects are among them, programs linked from them are not
/// mentioned.
fn not_recompiled(tree: &Tree, paths: &[&Path]) -> String {
    let is_object =
        |path: &&&Path| path.extension().is_some_and(|extension| extension == "o" || extension == "lo");
    let objects: Vec<&&Path> = paths.iter().filter(is_object).collect();
    let paths: Vec<&&Path> = if objects.is_empty() { paths.iter().collect() } else { objects };
    let name = |path: &&&Path| path.strip_prefix(&tree.path).unwrap_or(path).display().to_string();
    let names: Vec<String> = paths.iter().map(name).collect();
    let edited: Vec<&str> = tree.written.iter().map(String::as_str).collect();
    format!("the build did not recompile {} after a change of {}", names.join(", "), edited.join(", "))
}

/// The folder's own folders with results of studies.
fn studies(source: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(source).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.join(STUDY_MARK).is_file()).collect()
}

/// The path at which copies are built: their own, unless something names the original by its path.
fn place(source: &Path, build: &str, leave_out: &[PathBuf], interrupts: &Interrupts) -> Result<BuildPath> {
    let mut naming = path_mentions::find(source, source, leave_out)?;
    if path_mentions::names(build.as_bytes(), source) {
        naming.insert(0, PathBuf::from("the build command"));
    }
    let Some(first) = naming.first() else { return Ok(BuildPath::Copy) };
    let empty = interrupts.temporary_folder().doing("cannot make a scratch folder")?;
    let trial = Run {
        command: vec!["true".into()],
        placed: Some(Placed { copy: empty.path().to_owned(), original: source.to_owned() }),
        ..Run::default()
    };
    let tried = Waiting::start(&trial, Streams::Captured, interrupts).and_then(Waiting::run);
    interrupts.check()?;
    Ok(match tried {
        Ok(finished) if finished.ending == Ending::Exited(0) => BuildPath::Original(first.clone()),
        _ => {
            naming.retain(|file| source.join(file).is_file());
            BuildPath::Repointed(naming)
        }
    })
}
