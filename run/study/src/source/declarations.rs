//! Checking a declaration without building the program: one unit that reads it is parsed by the build's own compiler
//! call, with assertions behind it. No code is made, so that a unit of 250,000 lines takes a moment.

use crate::error::{BuildError, Doing, Result};
use crate::process::folder::TempFolder;
use crate::process::interrupt::Interrupts;
use crate::source::scratch::{Scratch, Tree};
use lineup_advise::asserted::Asserted;
use lineup_sources::CompileCommand;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Units that are asked at most which headers they read; beyond that the program is built.
const MOST_ASKED: usize = 64;

/// The units of a copy that was built, with everything that the build made for them.
pub(crate) struct Declarations<'s> {
    scratch: &'s Scratch,
    /// The copy. Its sources are as they were whenever no check is under way.
    tree: Tree,
    units: Vec<Unit>,
    wrappers: TempFolder,
    /// Texts that were found good: they are not parsed again while they stay.
    good: BTreeMap<String, String>,
}

/// A source and the call that compiles it.
struct Unit {
    source: PathBuf,
    call: CompileCommand,
    /// The files it reads; filled when first asked for.
    reads: Option<BTreeSet<PathBuf>>,
}

/// The result of a check.
pub(crate) enum Checked {
    /// The compiler takes it, and every assertion holds.
    Good,
    /// The compiler's message. It accepted the sources before the change.
    Wrong(String),
    /// No unit decides it.
    Unknown,
}

impl<'s> Declarations<'s> {
    /// For the copy in `built`, which these calls built.
    pub(crate) fn new(
        scratch: &'s Scratch,
        built: &Path,
        calls: &[CompileCommand],
        interrupts: &Interrupts,
    ) -> Result<Self> {
        let compiling = calls.iter().filter(|call| call.is_compiler());
        let units = compiling.flat_map(|call| {
            let unit = |source| Unit { source, call: call.clone(), reads: None };
            call.source_paths().into_iter().map(unit)
        });
        let wrappers = interrupts.temporary_folder().doing("cannot make a scratch folder")?;
        let units = units.filter(|unit| unit.source.starts_with(built) && unit.source.exists()).collect();
        Ok(Self { scratch, tree: Tree::at(built.to_owned()), units, wrappers, good: BTreeMap::new() })
    }

    /// Parses a unit for each of these files that changed, with the assertions behind the one that declares the type.
    pub(crate) fn check(
        &mut self,
        edited: &BTreeMap<String, String>,
        asserted: &Asserted,
    ) -> Result<Checked, BuildError> {
        let checked = self.check_edited(edited, asserted);
        self.edit(&BTreeMap::new())?;
        let checked = checked?;
        if let Checked::Good = checked {
            self.good.clone_from(edited);
        }
        Ok(checked)
    }

    fn check_edited(
        &mut self,
        edited: &BTreeMap<String, String>,
        asserted: &Asserted,
    ) -> Result<Checked, BuildError> {
        let is_new = |(path, text): &(&String, &String)| self.good.get(*path) != Some(text);
        let changed: BTreeSet<&str> = edited
            .iter()
            .filter(is_new)
            .map(|(path, _)| path.as_str())
            .chain([asserted.path.as_str()])
            .collect();
        let mut units: BTreeMap<usize, bool> = BTreeMap::new();
        for path in changed {
            let Some(unit) = self.unit_that_reads(path)? else { return Ok(Checked::Unknown) };
            *units.entry(unit).or_default() |= path == asserted.path;
        }
        for (unit, declares) in units {
            let (behind, present) = match (declares, &asserted.present) {
                (true, present) => {
                    (asserted.text(), present.as_ref().map_or(String::new(), |one| one.text()))
                }
                (false, _) => Default::default(),
            };
            self.edit(edited)?;
            if let Err(words) = self.parse(unit, &behind)? {
                self.edit(&BTreeMap::new())?;
                // A unit that does not parse this way before the change proves nothing about the change.
                return Ok(match (words, self.parse(unit, &present)?) {
                    (Some(words), Ok(())) => Checked::Wrong(words),
                    _ => Checked::Unknown,
                });
            }
        }
        Ok(Checked::Good)
    }

    fn edit(&mut self, edits: &BTreeMap<String, String>) -> Result<(), BuildError> {
        self.tree.edit(edits).map_err(BuildError::around)
    }

    /// Parses a unit with more text behind it. The inner error is the compiler's complaint, if it had one.
    fn parse(&self, unit: usize, behind: &str) -> Result<Result<(), Option<String>>, BuildError> {
        let Unit { source, call, .. } = &self.units[unit];
        let extension = source.extension().unwrap_or_default().to_string_lossy();
        let wrapper = self.wrappers.path().join(format!("declared.{extension}"));
        let text = format!("#include \"{}\"\n{behind}", self.seen(source).display());
        std::fs::write(&wrapper, text)
            .doing_with(|| format!("cannot write {}", wrapper.display()))
            .map_err(BuildError::around)?;
        // Private members have places, too; warnings are no reason to refuse.
        let access = if call.is_cpp(source) { ["-fno-access-control"].as_slice() } else { &[] };
        let options = [["-fsyntax-only", "-w"].as_slice(), access].concat();
        match self.scratch.call(&self.tree, &call.reading(&wrapper, &options)) {
            Ok(_) => Ok(Ok(())),
            Err(BuildError::Rejected { words }) => Ok(Err(Some(complaint(&words)))),
            // Other failures will show in a whole build.
            Err(BuildError::Failed { .. }) => Ok(Err(None)),
            Err(error) => Err(error),
        }
    }

    /// The path at which the compiler sees a file of the copy.
    fn seen(&self, path: &Path) -> PathBuf {
        let inside = path.strip_prefix(&self.tree.path).unwrap_or(path);
        self.scratch.built_in(&self.tree).join(inside)
    }

    /// The unit that is this file, or the first one that reads it.
    fn unit_that_reads(&mut self, path: &str) -> Result<Option<usize>, BuildError> {
        let file = self.tree.path.join(path);
        if let Some(unit) = self.units.iter().position(|unit| unit.source == file) {
            return Ok(Some(unit));
        }
        let file = self.seen(&file);
        for unit in 0..self.units.len().min(MOST_ASKED) {
            if self.reads(unit)?.contains(&file) {
                return Ok(Some(unit));
            }
        }
        Ok(None)
    }

    /// The files that a unit reads, as its compiler names them.
    fn reads(&mut self, index: usize) -> Result<&BTreeSet<PathBuf>, BuildError> {
        let unit = &self.units[index];
        if unit.reads.is_none() {
            let call = unit.call.reading(&self.seen(&unit.source), &["-M", "-w"]);
            let words = match self.scratch.call(&self.tree, &call) {
                Ok(words) => words,
                Err(BuildError::Rejected { .. } | BuildError::Failed { .. }) => String::new(),
                Err(error) => return Err(error),
            };
            let folder = self.seen(&unit.call.directory);
            self.units[index].reads = Some(dependencies(&words, &folder));
        }
        Ok(self.units[index].reads.get_or_insert_default())
    }
}

/// The files in a rule for make, which a compiler wrote.
fn dependencies(rule: &str, folder: &Path) -> BTreeSet<PathBuf> {
    let rule = rule.split_once(':').map_or("", |(_, files)| files).replace("\\\n", " ");
    rule.split_whitespace().map(|file| lineup_sources::normal(&folder.join(file))).collect()
}

/// The first complaint of a compiler.
fn complaint(words: &str) -> String {
    let complaint = words.lines().find(|line| line.contains("error"));
    complaint.or_else(|| words.lines().last()).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_files_below_the_folder_it_was_made_in() {
        let files = dependencies("a.o: src/a.c \\\n src/../b.h /usr/include/x.h\n", Path::new("/t"));
        let expected = ["/t/b.h", "/t/src/a.c", "/usr/include/x.h"].map(PathBuf::from);
        assert_eq!(files.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_first_complaint_is_quoted() {
        assert_eq!(complaint("In file x\nx.c:1: error: no\nx.c:2: error: more"), "x.c:1: error: no");
        assert_eq!(complaint("nothing\nknown"), "known");
    }
}
