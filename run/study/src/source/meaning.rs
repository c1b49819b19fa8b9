//! The constraints on the order of members from the compiler's view of the sources, in the advice's terms.

use crate::error::{Doing, Result};
use crate::process::tool;
use crate::progress::{Progress, Silent};
use crate::source::scratch::{Scratch, Tree};
use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::meaning::{
    Effect, Hold, Meaning, MemberMeaning, ObjectVariable, SeenBy, SplitMeaning, TypeMeaning, Unchecked,
};
use lineup_advise::sources::Sources;
use lineup_sources::{
    Build, Checked, CheckedType, CompileCommand, Definers, Error, MemberHold, SplitHold, Standards, Use,
    UseKind, Verdict,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The units that are read with clang.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Units {
    /// The units that the build compiles.
    #[default]
    Built,
    /// The units of this `compile_commands.json`.
    Listed(PathBuf),
    /// None, at the user's request.
    Unread,
}

/// Builds a copy while noting the compiler calls, and reads the sources as those calls do. It reports units of
/// `program`, a path inside the copy, that were not read.
///
/// # Errors
/// When the build fails.
pub fn build_and_read(
    scratch: &Scratch,
    tree: &mut Tree,
    units: &Units,
    program: Option<&Path>,
) -> Result<Reading> {
    let mut calls = scratch.build_traced(tree)?;
    let in_program = program.map(|program| units_of(scratch, tree, program)).unwrap_or_default();
    if *units == Units::Built
        && let Some(all) = scratch.build_cleaned(tree, &in_program, &calls)?
    {
        calls = all;
    }
    let reading = match units {
        Units::Listed(list) => read_list(list, scratch.source(), in_program)?,
        Units::Built => {
            let parts = Parts { types: &BTreeSet::new(), definers: &|_| Vec::new(), in_program };
            read_with(calls.clone(), &tree.path, parts, &Silent)
        }
        Units::Unread => by_text(),
    };
    Ok(Reading { calls, ..reading })
}

/// The sources of a program's units that lie in the source folder, relative to it. Empty when the program has no debug
/// information: later steps report that.
pub(crate) fn units_of(scratch: &Scratch, tree: &Tree, program: &Path) -> BTreeSet<PathBuf> {
    let Ok(debug) = crate::companions::load(&tree.path.join(program)) else { return BTreeSet::new() };
    let inside = |path: PathBuf| {
        let path = lineup_sources::normal(&path);
        let path = path.strip_prefix(&tree.path).or_else(|_| path.strip_prefix(scratch.source())).ok()?;
        CompileCommand::is_source(path).then(|| path.to_owned())
    };
    debug.unit_files().into_iter().filter_map(inside).collect()
}

pub(crate) fn unread(why: String) -> Reading {
    Reading {
        summary: format!("not checked with clang: {why}"),
        unread: Vec::new(),
        checked: None,
        goes_by_text: false,
        calls: Vec::new(),
    }
}

/// The user asked that nothing is read.
pub(crate) fn by_text() -> Reading {
    Reading { goes_by_text: true, ..unread("--no-clang was given".into()) }
}

/// The result of reading the sources.
#[derive(Clone, Debug)]
pub struct Reading {
    /// `checked with clang: n of m units`, or why not.
    pub summary: String,
    /// Units that could not be read, and the first error of each.
    pub unread: Vec<(String, String)>,
    /// Types with their uses; `None` when nothing was read.
    pub checked: Option<Checked>,
    /// The user accepts judgements from the sources' text alone.
    pub goes_by_text: bool,
    /// The compiler calls of the build in the copy.
    pub calls: Vec<CompileCommand>,
}

/// Reads the units of a `compile_commands.json`.
///
/// # Errors
/// When the list cannot be read.
pub(crate) fn read_listed(list: &Path, root: &Path) -> Result<Reading> {
    read_list(list, root, BTreeSet::new())
}

fn read_list(list: &Path, root: &Path, in_program: BTreeSet<PathBuf>) -> Result<Reading> {
    let text = std::fs::read_to_string(list).doing_with(|| format!("cannot read {}", list.display()))?;
    let parts = Parts { types: &BTreeSet::new(), definers: &|_| Vec::new(), in_program };
    Ok(read_with(lineup_sources::from_json(list, &text)?, root, parts, &Silent))
}

/// The parts of a program to read.
pub(crate) struct Parts<'p> {
    /// Types whose objects are followed into further units.
    pub(crate) types: &'p BTreeSet<String>,
    /// The units of functions that are given such objects.
    pub(crate) definers: Definers<'p>,
    /// The sources of the program's units, relative to the source folder.
    pub(crate) in_program: BTreeSet<PathBuf>,
}

/// Whether a unit's source may be C, C++ or the like: those of Rust, Go and Zig are not.
fn is_c(source: &Path) -> bool {
    let ending = source.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    !matches!(ending, "rs" | "go" | "zig")
}

/// Reads the units that these calls compile, and further units that their functions need. A failure here does not end a
/// study: the summary reports it, and types in unread units stay unchanged.
pub(crate) fn read_with(
    commands: Vec<CompileCommand>,
    root: &Path,
    parts: Parts<'_>,
    progress: &dyn Progress,
) -> Reading {
    let Parts { types, definers, in_program } = parts;
    let has_c = in_program.is_empty() || in_program.iter().any(|source| is_c(source));
    let build = build(commands, root, in_program);
    match lineup_sources::check_with(&build, types, definers, &|done, total| progress.advance(done, total)) {
        Ok(checked) if checked.units == 0 => {
            let advice = "; where it should, clean the source folder, or give --compile-commands";
            unread(format!("the build compiled no C or C++{}", if has_c { advice } else { "" }))
        }
        Ok(checked) => {
            let (summary, unread) = (checked.summary(), checked.unread.clone());
            Reading { summary, unread, checked: Some(checked), goes_by_text: false, calls: Vec::new() }
        }
        Err(Error::NoLibclang(_)) => {
            unread("libclang is not installed (apt install libclang1-19 libclang-common-19-dev)".into())
        }
        Err(error) => unread(error.to_string()),
    }
}

/// A build, as the reader of sources takes it.
pub(crate) fn build(commands: Vec<CompileCommand>, root: &Path, in_program: BTreeSet<PathBuf>) -> Build {
    Build {
        in_program,
        installed_headers: installed_headers(root),
        compiler_headers: compiler_headers(&commands),
        standards: standards(&commands),
        root: root.to_owned(),
        commands,
    }
}

/// The standards of the build's compiler.
fn standards(commands: &[CompileCommand]) -> Standards {
    let macros = |language: &str| -> Option<String> {
        let compiler = commands.iter().find(|command| command.is_compiler())?.arguments.first()?;
        let mut command = Command::new(compiler);
        command.args(["-x", language, "-dM", "-E", "/dev/null"]);
        Some(String::from_utf8_lossy(&tool::output(&mut command).ok()?.stdout).into_owned())
    };
    Standards::from_macros(&macros("c").unwrap_or_default(), &macros("c++").unwrap_or_default())
}

/// The folder of the build's compiler's own headers.
fn compiler_headers(commands: &[CompileCommand]) -> Option<PathBuf> {
    let compiler = commands.iter().find(|command| command.is_compiler())?.arguments.first()?;
    let output = tool::output(Command::new(compiler).arg("-print-file-name=include")).ok()?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    path.is_absolute().then_some(path)
}

/// The headers that the project's makefiles speak of installing, by file name.
fn installed_headers(root: &Path) -> BTreeSet<String> {
    const FILES: [&str; 5] = ["Makefile", "Makefile.am", "CMakeLists.txt", "meson.build", "GNUmakefile"];
    let mut headers = BTreeSet::new();
    let folders = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    for folder in folders.filter(|path| path.is_dir()).chain([root.to_owned()]) {
        for file in FILES {
            let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default().replace("\\\n", " ");
            let installs = |line: &&str| {
                line.to_ascii_lowercase().contains("include_headers")
                    || line.contains("install")
                    || (line.contains("cp ") && line.contains("include"))
            };
            for line in text.lines().filter(installs) {
                let words = line.split(|c: char| c.is_whitespace() || "()'\",".contains(c));
                let names = words.filter_map(|word| word.rsplit('/').next());
                headers.extend(
                    names.filter(|name| name.ends_with(".h") || name.ends_with(".hpp")).map(str::to_string),
                );
            }
        }
    }
    headers
}

impl Reading {
    /// The summary, and which units could not be read.
    pub fn in_words(&self) -> String {
        let unread = self.unread.iter().map(|(path, why)| format!("; not read: {path} ({why})"));
        self.summary.clone() + &unread.collect::<String>()
    }

    /// The sources, with the language that the units that read a header are in.
    pub fn in_their_languages(&self, sources: &Sources) -> Sources {
        let headers = self.checked.iter().flat_map(|checked| checked.only_cpp.iter().cloned());
        sources.with_cpp_headers(headers)
    }

    /// The uses that hold members, for advice.
    pub fn meaning(&self) -> Meaning {
        let types = self.checked.iter().flat_map(|checked| checked.types.values());
        let types = types.flat_map(of_type).filter(|ty| !ty.holds.is_empty()).collect();
        let is_of_all_units =
            self.checked.as_ref().is_some_and(|checked| checked.units_read > 0 && checked.unread.is_empty());
        let splits = self.checked.iter().flat_map(|checked| checked.types.values()).filter_map(split);
        let splits = splits.collect();
        let members = self.checked.iter().flat_map(|checked| checked.types.values()).filter_map(members);
        let members = members.collect();
        Meaning { types, splits, members, unchecked: self.unchecked(), is_of_all_units, ..Meaning::default() }
    }

    /// A unit that was not read may use a type in any way.
    fn unchecked(&self) -> Option<Unchecked> {
        let known = self.checked.iter().flat_map(|checked| checked.types.values());
        let known = known.flat_map(|ty| ty.names.iter().cloned()).collect();
        let why = match (&self.checked, self.unread.first()) {
            _ if self.goes_by_text => return None,
            (Some(_), None) => return None,
            (Some(_), Some((path, why))) => format!("clang could not read {path} ({why})"),
            (None, _) => self.summary.clone(),
        };
        Some(Unchecked { why: why + "; --no-clang goes by the text of the sources alone", known })
    }
}

/// The facts for an edit that moves members of a class out of its objects. Copies of a header could not be edited as one.
fn split(ty: &CheckedType) -> Option<SplitMeaning> {
    let facts = ty.split.as_ref().filter(|_| ty.copies.is_empty())?;
    let held = |hold: &SplitHold| {
        let binding = Binding::new(Constraint::KeptInObject).on(hold.member.clone());
        binding.at(&hold.path, hold.line).because(&hold.reason)
    };
    Some(SplitMeaning {
        names: ty.names.clone(),
        holds: facts.holds_in_object().map(held).collect(),
        named: facts.named.iter().cloned().collect(),
        initialised: facts.initialised.iter().cloned().collect(),
        is_compared: facts.is_compared,
        seen_by: match facts.seen_by {
            lineup_sources::SeenBy { c: true, cpp: true } => SeenBy::Both,
            lineup_sources::SeenBy { c: true, cpp: false } => SeenBy::C,
            _ => SeenBy::Cpp,
        },
        heap_calls: facts.heap_calls.iter().cloned().collect(),
        is_made_once: facts.is_made_once,
        variables: facts.variables.iter().map(|(one, units)| variable(one, *units)).collect(),
        pointers: facts.pointers.iter().map(|(one, units)| variable(one, *units)).collect(),
        moved_pointers: facts.moved_pointers.clone(),
        threads: facts.threads.clone(),
        out_of_blocks: facts.holds_out_of_blocks().map(held).collect(),
        of_addresses: facts.holds_of_addresses().map(held).collect(),
    })
}

/// The facts for an edit that removes members or gives them smaller types.
fn members(ty: &CheckedType) -> Option<MemberMeaning> {
    let facts = ty.member_facts.as_ref().filter(|_| ty.copies.is_empty())?;
    let held = |hold: &MemberHold| {
        let binding = Binding::new(Constraint::AsDeclared).on(hold.member.clone());
        (hold.part, binding.at(&hold.path, hold.line).because(&hold.reason))
    };
    Some(MemberMeaning {
        names: ty.names.clone(),
        holds: facts.holds.iter().map(held).collect(),
        uses: facts.uses.iter().cloned().collect(),
        values: facts.values.clone(),
    })
}

fn variable(one: &lineup_sources::ObjectVariable, units: u32) -> ObjectVariable {
    ObjectVariable {
        path: one.path.clone(),
        line: one.line,
        column: one.column,
        name: one.name.clone(),
        storage: one.storage,
        units,
        refusal: one.refusal.clone(),
    }
}

/// A type's constraints, for every file that declares it: debug info may name any.
fn of_type(ty: &CheckedType) -> impl Iterator<Item = TypeMeaning> {
    let holds: Vec<Hold> = ty.uses.iter().filter_map(|found| hold(ty, found)).collect();
    let paths = std::iter::once(&ty.path).chain(&ty.copies);
    paths.map(move |path| TypeMeaning { names: ty.names.clone(), path: path.clone(), holds: holds.clone() })
}

fn hold(ty: &CheckedType, found: &Use) -> Option<Hold> {
    let (effect, names) = match &found.verdict {
        Verdict::Harmless => return None,
        Verdict::Refuse => (Effect::Forbid, Vec::new()),
        Verdict::First => (Effect::First, ty.members.first().cloned().into_iter().collect()),
        Verdict::Keep(names) => (Effect::Keep, names.clone()),
        Verdict::Adjacent(names) => (Effect::Adjacent, names.clone()),
        Verdict::Boundary(name) => (Effect::Boundary, vec![name.clone()]),
        Verdict::Last(name) => (Effect::Last, vec![name.clone()]),
        Verdict::Named(names) => (Effect::Named, names.clone()),
        Verdict::Exchanged(names) => (Effect::Exchanged, names.clone()),
        Verdict::InOrder(names) => (Effect::Relative, names.clone()),
    };
    let detail = match found.text.is_empty() {
        true => found.reason.clone(),
        false => format!("{}: `{}`", found.reason, found.text),
    };
    let binding = Binding::new(constraint(found.kind)).on(names).at(&found.path, found.line).because(detail);
    Some(Hold { binding, effect })
}

fn constraint(kind: UseKind) -> Constraint {
    match kind {
        UseKind::Cast => Constraint::UsedAsOtherType,
        UseKind::FirstMember => Constraint::FirstMemberIsObject,
        UseKind::CommonLeadingMembers => Constraint::SharedBeginning,
        UseKind::Offset => Constraint::Offsetof,
        UseKind::Assertion => Constraint::AssertedOffset,
        UseKind::PartialMemory | UseKind::Walk | UseKind::Whole => Constraint::MemorySpan,
        UseKind::Bytes => Constraint::ReadAsBytes,
        UseKind::Union => Constraint::SharesUnion,
        UseKind::Positional => Constraint::PositionalInitialiser,
        UseKind::Volatile => Constraint::Volatile,
        UseKind::Crossing | UseKind::Exported => Constraint::CrossesAbi,
        UseKind::TrailingArray => Constraint::FlexibleArrayLast,
        UseKind::Assembly => Constraint::Assembly,
        UseKind::Construction => Constraint::ConstructorOrder,
        // It concerns blocks, and no order.
        UseKind::Ended => Constraint::NotInBlocks,
    }
}
