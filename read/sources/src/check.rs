//! Reading all units of a build.

use crate::collect::collect;
use crate::compiler_command::CompileCommand;
use crate::error::Error;
use crate::facts::{Facts, RecordFact, Where};
use crate::headers::{Headers, missing_package};
use crate::hidden;
use crate::judge::{Finding, Product, judge, settle_steps, unread_functions};
use crate::libclang::{Library, Unit};
use crate::patience::within;
use crate::read::{SeenFunctions, normal, read};
use crate::split_facts::{Dependence, SplitFacts, SplitHold};
use crate::tree::Name;
use crate::uses::{Checked, CheckedType, Use, UseKind, Verdict};
use crate::variants::Variants;
use lineup_model::object_uses::{ThreadStart, Threads};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Room for the recursion over deeply nested expressions.
pub(crate) const STACK_BYTES: usize = 256 << 20;

/// Units that each thread reads before their facts are added up.
const UNITS_AT_ONCE: usize = 4;

/// The time limit for one unit: libclang 14 never returns from some texts. The largest units take a minute on a busy
/// machine.
pub(crate) const UNIT_LIMIT: Duration = Duration::from_secs(300);

/// The input of a check.
#[derive(Clone, Debug)]
pub struct Build {
    /// The compiler calls that built the program; other calls are ignored.
    pub commands: Vec<CompileCommand>,
    /// The project's folder: only declarations and uses in its files count as the program.
    pub root: PathBuf,
    /// Headers that the project installs, by file name. Empty: any header may be.
    pub installed_headers: BTreeSet<String>,
    /// A folder with the compiler's own headers, for those that libclang lacks.
    pub compiler_headers: Option<PathBuf>,
    /// The language standards that the build's compiler assumes when a call names none: libclang's own defaults may
    /// differ.
    pub standards: Standards,
    /// Sources of units that the program is known to have, relative to `root`. Units that no call compiles count as
    /// units that could not be read.
    pub in_program: BTreeSet<PathBuf>,
}

/// The language standards of a compiler, as `-std=` spells them; `None` leaves them to libclang.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Standards {
    /// For C.
    pub c: Option<String>,
    /// For C++.
    pub cpp: Option<String>,
}

impl Standards {
    /// From the compiler's printed macros for C and for C++ (`-dM -E`).
    pub fn from_macros(c: &str, cpp: &str) -> Standards {
        let year = |text: &str, name: &str| -> Option<u32> {
            let lines = text.lines().filter_map(|line| line.strip_prefix("#define ")?.strip_prefix(name));
            lines.filter_map(|value| value.trim().trim_end_matches('L').parse().ok()).next()
        };
        let name = |known: &[(u32, &str)], found: u32| {
            let fitting = known.iter().rev().find(|(year, _)| found >= *year);
            fitting.map(|(_, name)| format!("gnu{name}"))
        };
        const C: [(u32, &str); 4] = [(199_901, "99"), (201_112, "11"), (201_710, "17"), (202_000, "2x")];
        const CPP: [(u32, &str); 6] = [
            (199_711, "++98"),
            (201_103, "++11"),
            (201_402, "++14"),
            (201_703, "++17"),
            (202_002, "++20"),
            (202_100, "++2b"),
        ];
        Standards {
            c: year(c, "__STDC_VERSION__").and_then(|found| name(&C, found)),
            cpp: year(cpp, "__cplusplus").and_then(|found| name(&CPP, found)),
        }
    }

    /// The standard of a source that its call does not name.
    pub(crate) fn of(&self, command: &CompileCommand, source: &Path) -> Option<String> {
        let standard = if command.is_cpp(source) { &self.cpp } else { &self.c };
        standard.as_ref().filter(|_| !command.names_standard()).map(|name| format!("-std={name}"))
    }
}

/// Units that define functions which the units read so far give objects to. Functions by name; calls that were read
/// already may be among the answer.
pub type Definers<'d> = &'d dyn Fn(&BTreeSet<String>) -> Vec<CompileCommand>;

/// The number of rounds that search for further units: those that define functions to which earlier units give objects.
const ROUNDS: usize = 3;

/// Reads every unit and judges every type of the project. `progress` hears how many units of how many are read.
///
/// # Errors
/// Without libclang. A unit that cannot be parsed is no error: it is listed in the result.
pub fn check(build: &Build, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Checked, Error> {
    check_with(build, &BTreeSet::new(), &|_| Vec::new(), progress)
}

/// The same for a part of a large program: `definers` is asked for the units of functions that are given objects of
/// `types` and that no unit read so far defines; these are read as well.
///
/// # Errors
/// As [`check`].
pub fn check_with(
    build: &Build,
    types: &BTreeSet<String>,
    definers: Definers<'_>,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Checked, Error> {
    let mut reading = read_all(build, types, definers, progress, Variants::default())?;
    let variants = Variants::of(&reading.facts);
    if !variants.is_empty() && !build.commands.iter().any(CompileCommand::is_kernel) {
        // The types that share a name, and the functions that lead to each, are known by now.
        reading = read_all(build, types, definers, progress, variants)?;
    }
    reading.note_others(&build.in_program);
    let Reading { root, mut facts, mut checked, variants, .. } = reading;
    facts.settle_given();
    facts.settle_carried();
    facts.settle_sections();
    facts.settle_lookups();
    settle_steps(&mut facts);
    let product = Product {
        is_shared_library: build.commands.iter().any(CompileCommand::links_shared_library),
        installed_headers: build.installed_headers.clone(),
    };
    let mut findings = judge(&facts, &product);
    for usr in variants.unclear(&facts) {
        let at = facts.records.get(&usr).map(|record| record.at.clone());
        findings.entry(usr).or_default().extend(at.map(unclear));
    }
    for (usr, found) in &findings {
        let ended = found.iter().filter(|finding| finding.kind == UseKind::Ended);
        let holds = ended.map(|finding| SplitHold {
            member: None,
            reason: finding.reason.clone(),
            path: finding.at.file.to_string(),
            line: finding.at.line,
            on: Dependence::Address,
        });
        if let Some(facts) = facts.splitting.classes.get_mut(&**usr) {
            facts.holds.extend(holds);
        }
    }
    let is_opaque = |found: &BTreeSet<Finding>| {
        found.iter().any(|finding| matches!(finding.verdict, Verdict::Refuse | Verdict::Keep(_)))
    };
    let opaque = findings.iter().filter(|(_, found)| is_opaque(found)).map(|(usr, _)| &**usr).collect();
    let is_of_c =
        facts.read_as_cpp.is_empty() && build.commands.iter().all(|call| call.assembly_paths().is_empty());
    let hidden = facts.found_by_name();
    let has_other_callers = product.is_shared_library || !is_of_c;
    facts.members.settle(has_other_callers, (&opaque, &hidden), |path| relative(path, &root));
    facts.splitting.runs.has_other_callers = has_other_callers || facts.members.looks_up;
    facts.splitting.runs.hidden = hidden;
    checked.types = self::types(&facts, &findings, &root);
    let only_cpp = facts.read_as_cpp.difference(&facts.read_as_c);
    checked.only_cpp = only_cpp.map(|file| relative(file, &root)).collect();
    hold_back_unread(&mut checked, &facts, &root);
    Ok(checked)
}

/// Reads the build's units, and the units that define functions to which they give objects.
fn read_all<'b>(
    build: &Build,
    types: &BTreeSet<String>,
    definers: Definers<'_>,
    progress: &'b (dyn Fn(u64, u64) + Sync),
    variants: Variants,
) -> Result<Reading<'b>, Error> {
    let mut reading = Reading::new(build, progress, variants)?;
    reading.read(units(&build.commands));
    reading.search_assembly(&build.commands);
    let mut asked: BTreeSet<String> = BTreeSet::new();
    for _ in 1..ROUNDS {
        let functions = unread_functions(&reading.facts, types);
        let new: BTreeSet<String> = functions.difference(&asked).cloned().collect();
        if new.is_empty() {
            break;
        }
        let commands = definers(&new);
        asked.extend(new);
        reading.read(units(&commands));
    }
    Ok(reading)
}

/// The finding for a type that shares its name with another one.
fn unclear(at: Where) -> Finding {
    Finding {
        verdict: Verdict::Refuse,
        kind: UseKind::Cast,
        at,
        reason: "types with other members have its name, and units use one of them without its members"
            .into(),
    }
}

/// Units read so far, and their facts.
struct Reading<'b> {
    library: Library,
    root: PathBuf,
    headers: Arc<Headers>,
    standards: Standards,
    known: Arc<SeenFunctions>,
    variants: Arc<Variants>,
    /// Files that were searched for lookups by name.
    searched: Arc<Mutex<BTreeSet<PathBuf>>>,
    pool: rayon::ThreadPool,
    progress: &'b (dyn Fn(u64, u64) + Sync),
    /// Sources, each with the settings it was read with.
    seen: BTreeSet<(PathBuf, Vec<String>)>,
    facts: Facts,
    checked: Checked,
}

impl<'b> Reading<'b> {
    fn new(
        build: &Build,
        progress: &'b (dyn Fn(u64, u64) + Sync),
        variants: Variants,
    ) -> Result<Self, Error> {
        let library = Library::load()?;
        let pool = rayon::ThreadPoolBuilder::new().build();
        Ok(Reading {
            root: build.root.canonicalize().unwrap_or_else(|_| normal(&build.root)),
            headers: Arc::new(Headers::new(&library, build.compiler_headers.as_deref())),
            standards: build.standards.clone(),
            known: Arc::new(SeenFunctions::default()),
            variants: Arc::new(variants),
            searched: Arc::default(),
            pool: pool.map_err(|error| Error::Threads(error.to_string()))?,
            progress,
            seen: BTreeSet::new(),
            facts: Facts::default(),
            checked: Checked { compiler: library.version(), ..Checked::default() },
            library,
        })
    }

    /// Reads the units that were not read before. The facts of units are mostly the same: they are added up while
    /// others are read, in the order of units.
    fn read(&mut self, units: Vec<(PathBuf, &CompileCommand)>) {
        let is_new = |(source, command): &(PathBuf, &CompileCommand)| {
            self.seen.insert((source.clone(), command.settings(source)))
        };
        let units: Vec<(PathBuf, &CompileCommand)> = units.into_iter().filter(is_new).collect();
        let (before, total) = (self.checked.units, self.checked.units + units.len());
        self.checked.units = total;
        let done = AtomicU64::new(before as u64);
        for part in units.chunks(UNITS_AT_ONCE * self.pool.current_num_threads()) {
            let read_one = |(source, command): &(PathBuf, &CompileCommand)| {
                let reader = self.reader(source, command);
                let facts = within(UNIT_LIMIT, STACK_BYTES, move || reader.read());
                (self.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total as u64);
                facts.unwrap_or_else(|| Err(gave_up()))
            };
            let read: Vec<Result<Facts, String>> =
                self.pool.install(|| part.par_iter().map(read_one).collect());
            for ((source, _), result) in part.iter().zip(read) {
                match result {
                    Ok(found) => {
                        self.checked.units_read += 1;
                        self.facts.add(found);
                    }
                    Err(why) => {
                        self.checked.unread.push((relative(&source.to_string_lossy(), &self.root), why));
                    }
                }
            }
        }
    }

    /// Units of the program that no compiler call compiles: their use of its types is not known.
    fn note_others(&mut self, in_program: &BTreeSet<PathBuf>) {
        let seen: BTreeSet<&PathBuf> = self.seen.iter().map(|(source, _)| source).collect();
        let others = in_program.iter().filter(|path| !seen.contains(&normal(&self.root.join(path))));
        for path in others {
            let why = "the program has it, and no compiler call that was read makes it";
            self.checked.unread.push((path.to_string_lossy().into_owned(), why.into()));
            self.checked.units += 1;
        }
    }

    /// Looks for names of variables in the files of assembly that the build assembles.
    fn search_assembly(&mut self, commands: &[CompileCommand]) {
        let files = commands.iter().filter(|command| command.is_compiler() && !command.is_kernel());
        let files: BTreeSet<PathBuf> = files.flat_map(CompileCommand::assembly_paths).collect();
        for path in files {
            hidden::note(&mut self.facts, &path);
        }
    }

    fn reader(&self, source: &Path, command: &CompileCommand) -> Reader {
        Reader {
            library: self.library.clone(),
            command: command.clone(),
            source: source.to_owned(),
            root: self.root.clone(),
            headers: Arc::clone(&self.headers),
            standard: self.standards.of(command, source),
            known: Arc::clone(&self.known),
            variants: Arc::clone(&self.variants),
            searched: Arc::clone(&self.searched),
        }
    }
}

/// One call for each source and its settings; the first one counts.
pub(crate) fn units(commands: &[CompileCommand]) -> Vec<(PathBuf, &CompileCommand)> {
    let mut units: BTreeMap<(PathBuf, Vec<String>), &CompileCommand> = BTreeMap::new();
    for command in commands.iter().filter(|command| command.is_compiler()) {
        for source in command.source_paths() {
            let settings = command.settings(&source);
            units.entry((source, settings)).or_insert(command);
        }
    }
    // Files that a build wrote, compiled and removed again (a configure script's trials) are not the program's.
    units
        .into_iter()
        .map(|((source, _), command)| (source, command))
        .filter(|(source, _)| source.exists())
        .collect()
}

/// A unit as libclang reads it, or its first error. The library is the thread's current one; `standard` is the option
/// for a standard that the call does not name.
pub(crate) fn parsed(
    command: &CompileCommand,
    source: &Path,
    headers: &Headers,
    standard: Option<&String>,
) -> Result<Unit, String> {
    let mut arguments = command.for_libclang(source);
    arguments.extend(headers.arguments());
    arguments.extend(standard.cloned());
    let unit = Unit::parse(&arguments)?;
    unit.first_error().map_or(Ok(unit), Err)
}

/// The data needed to read one unit, on any thread.
struct Reader {
    library: Library,
    command: CompileCommand,
    source: PathBuf,
    root: PathBuf,
    headers: Arc<Headers>,
    /// The option for a standard that the call does not name.
    standard: Option<String>,
    known: Arc<SeenFunctions>,
    variants: Arc<Variants>,
    searched: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Reader {
    fn read(&self) -> Result<Facts, String> {
        self.library.make_current();
        let unit = parsed(&self.command, &self.source, &self.headers, self.standard.as_ref())
            .map_err(|error| self.with_remedy(error))?;
        let is_kernel = self.command.is_kernel();
        let known = is_kernel.then_some(&*self.known);
        let is_cpp = self.command.is_cpp(&self.source);
        let mut tree = read(&unit, &self.root, is_cpp, known, &self.variants);
        tree.forbids_designators = self.command.forbids_designators();
        let mut facts = collect(&tree, is_kernel);
        facts.splitting = std::mem::take(&mut tree.splitting);
        facts.members = std::mem::take(&mut tree.members);
        let own: BTreeSet<Name> =
            tree.files.iter().filter(|file| Path::new(&***file).starts_with(&self.root)).cloned().collect();
        if !is_kernel {
            own.iter().for_each(|file| self.note_hidden(&mut facts, Path::new(&**file)));
        }
        *if tree.is_cpp { &mut facts.read_as_cpp } else { &mut facts.read_as_c } = own;
        Ok(facts)
    }

    /// An error that libclang's own headers may spare, and their package.
    fn with_remedy(&self, error: String) -> String {
        match missing_package(&self.library).filter(|_| self.headers.are_borrowed()) {
            Some(package) => format!("{error}; libclang's own headers are missing (apt install {package})"),
            None => error,
        }
    }

    /// Adds the lookups by name in a file of the project; a file that another unit has read already adds nothing.
    fn note_hidden(&self, facts: &mut Facts, path: &Path) {
        let is_new = self.searched.lock().is_ok_and(|mut searched| searched.insert(path.to_owned()));
        if is_new {
            hidden::note(facts, path);
        }
    }
}

pub(crate) fn gave_up() -> String {
    format!("clang did not come back from it within {} s: conservative rules", UNIT_LIMIT.as_secs())
}

fn relative(path: &str, root: &Path) -> String {
    let path = Path::new(path);
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn types(
    facts: &Facts,
    findings: &BTreeMap<Name, BTreeSet<Finding>>,
    root: &Path,
) -> BTreeMap<String, CheckedType> {
    let mut texts = Texts::default();
    let is_own =
        |record: &RecordFact| !record.is_foreign && !record.members.is_empty() && !record.names.is_empty();
    let own = facts.records.iter().filter(|(_, record)| is_own(record));
    let threads = threads(facts, root);
    let split = |usr: &str, members: &[String]| {
        let split = facts.splitting.of(usr, members, |path| relative(path, root))?;
        Some(SplitFacts { threads: threads.clone(), ..split })
    };
    own.map(|(usr, record)| {
        let found = findings.get(usr).into_iter().flatten();
        let uses = found.map(|finding| Use {
            verdict: finding.verdict.clone(),
            kind: finding.kind,
            path: relative(&finding.at.file, root),
            line: finding.at.line,
            reason: finding.reason.clone(),
            text: texts.line(&finding.at.file, finding.at.line),
        });
        let members: Vec<String> = record.members.iter().map(|member| member.name.to_string()).collect();
        let ty = CheckedType {
            split: split(usr, &members),
            member_facts: facts
                .members
                .of(usr, |path| relative(path, root))
                .filter(|_| !facts.splitting.classes.get(&**usr).is_some_and(|found| found.seen_by.cpp)),
            names: record.names.clone(),
            path: relative(&record.at.file, root),
            copies: record.copies.iter().map(|copy| relative(copy, root)).collect(),
            line: record.at.line,
            members,
            uses: uses.collect(),
        };
        (usr.to_string(), ty)
    })
    .collect()
}

/// The threads of a program. Of one with units of C++ they are not known.
fn threads(facts: &Facts, root: &Path) -> Threads {
    if !facts.read_as_cpp.is_empty() {
        return Threads::Unknown;
    }
    let found = &facts.splitting;
    let own = found.own_declarations.iter().filter(|(usr, _)| !facts.defined.contains(usr.as_str()));
    let own = own.map(|(_, start)| start).min();
    found.thread_start.as_ref().or(own).map_or(Threads::One, |start| {
        Threads::Several(ThreadStart { path: relative(&start.path, root), ..start.clone() })
    })
}

/// The most of a line that is quoted, in characters.
const QUOTED: usize = 100;

#[derive(Default)]
struct Texts {
    files: HashMap<String, Vec<String>>,
}

impl Texts {
    fn line(&mut self, file: &str, line: u32) -> String {
        let lines = self.files.entry(file.to_string()).or_insert_with(|| {
            let text = std::fs::read(file).unwrap_or_default();
            String::from_utf8_lossy(&text).lines().map(str::to_string).collect()
        });
        let text = usize::try_from(line).ok().and_then(|line| lines.get(line.checked_sub(1)?));
        text.map_or(String::new(), |text| text.trim().chars().take(QUOTED).collect())
    }
}

/// A unit that could not be read may use, in any way, each type that it can reach: by the type's name, or by the name
/// of a member, variable or function that leads to it.
fn hold_back_unread(checked: &mut Checked, facts: &Facts, root: &Path) {
    let is_separator = |c: char| !c.is_alphanumeric() && c != '_';
    for (path, _) in &checked.unread {
        let text = std::fs::read(root.join(path)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let words: BTreeSet<&str> = text.split(is_separator).collect();
        let members = facts.records.values().flat_map(|record| &record.members);
        let members = members.map(|member| (&*member.name, &*member.ty));
        let leading = members.chain(facts.mentions.iter().map(|(name, ty)| (&**name, &**ty)));
        let types =
            leading.filter(|(name, _)| words.contains(name)).flat_map(|(_, ty)| ty.split(is_separator));
        let reached: BTreeSet<&str> = types.chain(words.iter().copied()).collect();
        for ty in checked.types.values_mut() {
            let is_reached = |name: &String| reached.contains(name.rsplit("::").next().unwrap_or(name));
            if ty.names.iter().any(is_reached) {
                ty.uses.insert(0, unread_use(path));
            }
        }
    }
}

fn unread_use(path: &str) -> Use {
    Use {
        verdict: Verdict::Refuse,
        kind: UseKind::Crossing,
        path: path.to_owned(),
        line: 1,
        reason: "clang could not read this unit, which may use the type".into(),
        text: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_read_by_the_standard_of_its_compiler() {
        let standards =
            Standards::from_macros("#define __STDC_VERSION__ 201710L\n", "#define __cplusplus 201703L\n");
        assert_eq!(standards, Standards { c: Some("gnu17".into()), cpp: Some("gnu++17".into()) });
        assert_eq!(
            Standards::from_macros("", "#define __cplusplus 202100L\n").cpp.as_deref(),
            Some("gnu++2b")
        );

        let of = |call: &str, source: &str| {
            let arguments = call.split(' ').map(str::to_string).collect();
            standards.of(&CompileCommand { directory: "/w".into(), arguments }, Path::new(source))
        };
        assert_eq!(of("g++ -c a.cpp", "a.cpp").as_deref(), Some("-std=gnu++17"));
        assert_eq!(of("gcc -c a.c", "a.c").as_deref(), Some("-std=gnu17"));
        assert_eq!(of("g++ -std=c++11 -c a.cpp", "a.cpp"), None);
        assert_eq!(of("gcc -ansi -c a.c", "a.c"), None);
    }
}
