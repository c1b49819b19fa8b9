//! A program of one file, checked.

use lineup_model::chase::Chase;
use lineup_sources::{Build, Checked, CheckedType, CompileCommand, Error, Freedom, Standards, Verdict};
use std::collections::BTreeSet;
use std::path::Path;

/// Texts in a folder of their own. Not every test uses both languages.
pub(crate) struct Program {
    folder: tempfile::TempDir,
    commands: Vec<CompileCommand>,
}

#[allow(dead_code)]
impl Program {
    /// One C file.
    pub(crate) fn c(text: &str) -> Program {
        Program::of(&[("a.c", text)], &["cc -std=gnu11 -c a.c"])
    }

    /// One C++ file.
    pub(crate) fn cpp(text: &str) -> Program {
        Program::of(&[("a.cpp", text)], &["c++ -std=c++17 -c a.cpp"])
    }

    /// Files and compiler calls.
    pub(crate) fn of(files: &[(&str, &str)], commands: &[&str]) -> Program {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
            std::fs::write(path, text).expect("writes");
        }
        let call = |command: &&str| CompileCommand {
            directory: folder.path().to_owned(),
            arguments: command.split(' ').map(str::to_string).collect(),
        };
        let commands = commands.iter().map(call).collect();
        Program { folder, commands }
    }

    /// The findings in the sources. Without libclang these tests print why they check nothing, and fail in CI.
    pub(crate) fn check(&self) -> Checked {
        let checked = self.try_check(&[]).expect("libclang reads it");
        assert_eq!(checked.units_read, checked.units, "{:?}", checked.unread);
        checked
    }

    /// The loops of functions with these names that chase pointers.
    pub(crate) fn chases(&self, functions: &[&str]) -> Vec<Chase> {
        let build = Build {
            commands: self.commands.clone(),
            root: self.folder.path().to_owned(),
            installed_headers: BTreeSet::new(),
            compiler_headers: None,
            standards: Standards::default(),
            in_program: BTreeSet::new(),
        };
        let names = functions.iter().map(|name| (*name).to_owned()).collect();
        let read = lineup_sources::chases(&build, &names).expect("libclang reads it");
        assert!(read.unread.is_empty(), "{:?}", read.unread);
        read.found
    }

    /// The findings in the first unit, and in the others as far as a function that is given a `ty` asks for them.
    pub(crate) fn check_growing(&self, ty: &str, definers: &dyn Fn(&str) -> Option<usize>) -> Checked {
        let build = Build {
            commands: self.commands[..1].to_vec(),
            root: self.folder.path().to_owned(),
            installed_headers: BTreeSet::new(),
            compiler_headers: None,
            standards: Standards::default(),
            in_program: BTreeSet::new(),
        };
        let asked = |functions: &BTreeSet<String>| {
            functions.iter().filter_map(|name| Some(self.commands[definers(name)?].clone())).collect()
        };
        let types = BTreeSet::from([ty.to_string()]);
        lineup_sources::check_with(&build, &types, &asked, &|_, _| {}).expect("libclang reads it")
    }

    /// The same, with headers that the project installs.
    pub(crate) fn try_check(&self, installed: &[&str]) -> Result<Checked, Error> {
        let build = Build {
            commands: self.commands.clone(),
            root: self.folder.path().to_owned(),
            installed_headers: installed.iter().map(|name| name.to_string()).collect(),
            compiler_headers: None::<&Path>.map(Path::to_owned),
            standards: Standards::default(),
            in_program: BTreeSet::new(),
        };
        lineup_sources::check(&build, &|_, _| {})
    }
}

/// The type `t` of a program.
pub(crate) fn checked(program: &Program) -> CheckedType {
    program.check().named("t").next().expect("the type t").clone()
}

/// The type `t` of a program may move.
pub(crate) fn movable(program: &Program) {
    let ty = checked(program);
    assert_eq!(ty.freedom(), Freedom::Movable, "{:#?}", ty.uses);
}

/// A use of the type `t` asks for this, for a reason with these words.
pub(crate) fn asks(program: &Program, verdict: &Verdict, reason: &str) {
    let ty = checked(program);
    let is_it = |used: &lineup_sources::Use| used.verdict == *verdict && used.reason.contains(reason);
    assert!(ty.uses.iter().any(is_it), "{verdict:?}, {reason}: {:#?}", ty.uses);
}

/// These members keep their places.
pub(crate) fn keep(names: &[&str]) -> Verdict {
    Verdict::Keep(names.iter().map(|name| name.to_string()).collect())
}
