//! A kernel's source tree, read as its build reads it: kbuild leaves a file next to every object with the compiler's
//! call and the headers that it read.

use crate::error::{Doing, Result};
use crate::files::{FolderEntry, each_file};
use crate::progress::Progress;
use crate::source::meaning::{Parts, Reading, Units, by_text, read_listed, read_with, unread};
use lineup_advise::sources::{Sources, has_word};
use lineup_sources::{CompileCommand, FileNames, KbuildUnit, from_kbuild, is_kbuild_file};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The files that a kernel's build left in its tree.
#[derive(Debug)]
pub struct Kbuild {
    root: PathBuf,
    names: FileNames,
    units: Vec<KbuildUnit>,
}

impl Kbuild {
    /// Looks for kbuild's files below `root`. `None` for folders in which nothing was built.
    ///
    /// # Errors
    /// When a folder cannot be listed.
    pub fn find(root: &Path) -> Result<Option<Kbuild>> {
        Kbuild::find_built(root, root)
    }

    /// The same for a build whose objects lie in a folder of their own; `root` is the folder of the sources.
    ///
    /// # Errors
    /// When a folder cannot be listed.
    pub fn find_built(objects: &Path, root: &Path) -> Result<Option<Kbuild>> {
        let canonical =
            |path: &Path| path.canonicalize().doing_with(|| format!("cannot read {}", path.display()));
        let (objects, root) = (canonical(objects)?, canonical(root)?);
        let mut files = Vec::new();
        let leaves_out = |entry: &FolderEntry| entry.name == ".git";
        each_file(&objects, &leaves_out, &mut |entry| {
            if is_kbuild_file(&entry.name.to_string_lossy()) {
                files.push(entry.path.clone());
            }
            Ok(())
        })
        .doing_with(|| format!("cannot list {}", objects.display()))?;
        files.sort();
        let mut names = FileNames::default();
        let unit = |file: &PathBuf| from_kbuild(file, &fs::read_to_string(file).ok()?, &mut names);
        let units: Vec<KbuildUnit> = files.iter().filter_map(unit).collect();
        Ok((!units.is_empty()).then_some(Kbuild { root, names, units }))
    }

    /// The units that were built.
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// The texts that the compiler read: sources and headers of this configuration, and none of other machines. Files
    /// that are not UTF-8 are left out: an edit could not preserve them.
    pub fn texts(&self) -> Sources {
        let files: BTreeSet<&PathBuf> = self.names.paths().iter().collect();
        let named = |path: &PathBuf| {
            let name = self.inside(path)?.to_owned();
            Some((name, fs::read_to_string(path).ok()?))
        };
        Sources::new(files.into_iter().filter_map(named))
    }

    /// A file's name in the sources.
    fn inside<'p>(&self, path: &'p Path) -> Option<&'p str> {
        path.strip_prefix(&self.root).ok()?.to_str()
    }

    /// Reads with clang the units whose sources name one of the types, and for each such header one unit that includes
    /// it.
    ///
    /// # Errors
    /// When `compile_commands.json` was given and cannot be read.
    pub fn read(
        &self,
        sources: &Sources,
        types: &BTreeSet<String>,
        wanted: &Units,
        progress: &dyn Progress,
    ) -> Result<Reading> {
        match wanted {
            Units::Listed(list) => return read_listed(list, &self.root),
            Units::Unread => return Ok(by_text()),
            Units::Built => {}
        }
        let chosen = self.naming(sources, types);
        if chosen.is_empty() {
            let why = format!("no type changes that a unit names; {} were built", self.units.len());
            return Ok(unread(why));
        }
        let definers = |functions: &BTreeSet<String>| self.defining(sources, functions);
        let parts = Parts { types, definers: &definers, in_program: BTreeSet::new() };
        let mut reading = read_with(chosen, &self.root, parts, progress);
        let read = reading.checked.as_ref().map_or(0, |checked| checked.units);
        let others = self.units.len() - read;
        if others > 0 {
            reading.summary +=
                &format!(" that name the types or are given their objects; {others} others were built");
        }
        Ok(reading)
    }

    /// The units whose sources define one of these functions.
    fn defining(&self, sources: &Sources, functions: &BTreeSet<String>) -> Vec<CompileCommand> {
        let defines = |path: PathBuf| {
            let Some(name) = self.inside(&path) else { return false };
            let text = sources.get(name).unwrap_or_default();
            let mut named = functions.iter().filter(|function| sources.may_name(name, function));
            named.any(|function| has_definition(text, function))
        };
        let units = self.units.iter().filter(|unit| unit.command.source_paths().into_iter().any(defines));
        units.map(|unit| unit.command.clone()).collect()
    }

    /// The units whose sources name one of the types, and for each such header one unit that includes it.
    fn naming(&self, sources: &Sources, types: &BTreeSet<String>) -> Vec<CompileCommand> {
        let names = |path: &PathBuf| {
            let Some(name) = self.inside(path) else { return false };
            let text = sources.get(name).unwrap_or_default();
            types.iter().any(|ty| sources.may_name(name, ty) && has_word(text, ty))
        };
        let named: Vec<bool> = self.names.paths().iter().map(names).collect();
        let is_named = |file: &u32| named[*file as usize];
        let is_source =
            |file: &u32| self.names.path(*file).extension().is_some_and(|extension| extension == "c");
        let mut read: BTreeSet<u32> = BTreeSet::new();
        let mut chosen = Vec::new();
        for unit in &self.units {
            if unit.files.iter().any(|file| is_source(file) && is_named(file)) {
                chosen.push(unit);
                read.extend(&unit.files);
            }
        }
        for unit in &self.units {
            if unit.files.iter().any(|file| is_named(file) && !read.contains(file)) {
                chosen.push(unit);
                read.extend(&unit.files);
            }
        }
        chosen.into_iter().map(|unit| unit.command.clone()).collect()
    }
}

/// True when a text defines a function: its name and parameters on a line that is not indented, and a body after them.
fn has_definition(text: &str, function: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(function).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + function.len()..]);
        let line = before.rsplit('\n').next().unwrap_or_default();
        let begins_line = line.is_empty() || line.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let has_body = || after.find(['{', ';']).is_some_and(|end| after[end..].starts_with('{'));
        begins_line && !before.ends_with(is_name) && after.starts_with('(') && has_body()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of two built units, a header that both read, and files that were not compiled.
    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
            fs::write(path, text).expect("writes");
        };
        for (unit, text) in
            [("kernel/a", "struct task *t;\n"), ("net/b", "int tasks;\n"), ("net/c", "struct sock *s;\n")]
        {
            let (folder, name) = unit.split_once('/').expect("a folder");
            write(&format!("{unit}.c"), text);
            let deps = format!("deps_{unit}.o := \\\n  include/task.h \\\n");
            let text =
                format!("savedcmd_{unit}.o := gcc -D__KERNEL__ -Iinclude -c -o {unit}.o {unit}.c\n\n{deps}");
            write(&format!("{folder}/.{name}.o.cmd"), &text);
        }
        write("include/task.h", "struct task { int a; };\n");
        write("tools/include/task.h", "struct task { long a; };\n");
        write("drivers/d.c", "struct task *t;\n");
        folder
    }

    fn sources(commands: &[CompileCommand]) -> Vec<String> {
        commands
            .iter()
            .flat_map(|command| command.sources().map(str::to_string).collect::<Vec<_>>())
            .collect()
    }

    #[test]
    fn what_was_compiled_is_read_and_nothing_else() {
        let folder = tree();
        let kbuild = Kbuild::find(folder.path()).expect("reads").expect("a build");
        let texts = kbuild.texts();
        let paths: Vec<&str> = texts.iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["include/task.h", "kernel/a.c", "net/b.c", "net/c.c"]);
        assert!(
            Kbuild::find(&folder.path().join("tools")).expect("reads").is_none(),
            "nothing was built there"
        );
    }

    #[test]
    fn a_definition_is_told_from_calls_declarations_and_longer_names() {
        let text = "int notify(struct head *h,\n\t   void *v)\n{\n\treturn call_all(h, v);\n}\nint later(void *);\n\
                    static void\nbare(void *v) { }\n";
        for (function, is_defined) in
            [("notify", true), ("bare", true), ("call_all", false), ("later", false), ("otify", false)]
        {
            assert_eq!(has_definition(text, function), is_defined, "{function}");
        }
    }

    #[test]
    fn units_that_name_a_type_are_chosen_and_one_for_each_header_that_does() {
        let folder = tree();
        let kbuild = Kbuild::find(folder.path()).expect("reads").expect("a build");
        let chosen =
            |name: &str| sources(&kbuild.naming(&kbuild.texts(), &BTreeSet::from([name.to_string()])));
        assert_eq!(chosen("task"), ["kernel/a.c"], "tasks is another word");
        assert_eq!(chosen("sock"), ["net/c.c"]);
        assert_eq!(chosen("a"), ["kernel/a.c"], "the header's member");
    }
}
