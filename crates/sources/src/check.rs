//! Reading all units of a build.

use crate::collect::collect;
use crate::command::CompileCommand;
use crate::error::Error;
use crate::facts::{Facts, RecordFact};
use crate::judge::{Finding, Product, judge};
use crate::libclang::{Library, Unit};
use crate::patience::within;
use crate::read::{Known, normal, read};
use crate::uses::{Checked, CheckedType, Use, UseKind, Verdict};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Room for the recursion over deeply nested expressions.
const STACK_BYTES: usize = 256 << 20;

/// Units that each thread reads before what they say is added up.
const UNITS_AT_ONCE: usize = 4;

/// How long one unit may take: libclang 14 never comes back from some texts. The largest units take a minute on a machine
/// that does much else.
const UNIT_LIMIT: Duration = Duration::from_secs(300);

/// What is read.
#[derive(Clone, Debug)]
pub struct Build {
    /// The compiler calls that made the program; others are passed over.
    pub commands: Vec<CompileCommand>,
    /// The project's folder: only what is declared and done in its files counts as the program.
    pub root: PathBuf,
    /// Headers that the project installs, by file name. Empty: any header may be.
    pub installed_headers: BTreeSet<String>,
    /// A folder with the compiler's own headers, used when libclang came without its own.
    pub compiler_headers: Option<PathBuf>,
}

/// Reads every unit and judges every type of the project. `progress` hears how many units of how many are read.
///
/// # Errors
/// Without libclang. A unit that cannot be parsed is no error: it is listed in the result.
pub fn check(build: &Build, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Checked, Error> {
    let library = Library::load()?;
    let root = build.root.canonicalize().unwrap_or_else(|_| normal(&build.root));
    let units = units(&build.commands);
    let headers = build.compiler_headers.as_deref().filter(|_| !has_own_headers(&library));
    let pool = rayon::ThreadPoolBuilder::new().build();
    let pool = pool.map_err(|error| Error::Threads(error.to_string()))?;
    let known = Arc::new(Known::default());
    let done = AtomicU64::new(0);
    let read_one = |(source, command): &(PathBuf, &CompileCommand)| {
        let reader = Reader {
            library: library.clone(),
            command: (*command).clone(),
            source: source.clone(),
            root: root.clone(),
            headers: headers.map(Path::to_owned),
            known: Arc::clone(&known),
        };
        let facts = within(UNIT_LIMIT, STACK_BYTES, move || reader.read()).unwrap_or_else(|| Err(gave_up()));
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, units.len() as u64);
        facts
    };
    let mut facts = Facts::default();
    let mut checked = Checked { compiler: library.version(), units: units.len(), ..Checked::default() };
    // What units say is mostly the same: it is added up while the others are read, in the order of units.
    for part in units.chunks(UNITS_AT_ONCE * pool.current_num_threads()) {
        let read: Vec<Result<Facts, String>> = pool.install(|| part.par_iter().map(read_one).collect());
        for ((source, _), result) in part.iter().zip(read) {
            match result {
                Ok(found) => {
                    checked.units_read += 1;
                    facts.add(found);
                }
                Err(why) => checked.unread.push((relative(&source.to_string_lossy(), &root), why)),
            }
        }
    }
    let product = Product {
        is_shared_library: build.commands.iter().any(CompileCommand::links_shared_library),
        installed_headers: build.installed_headers.clone(),
    };
    let findings = judge(&facts, &product);
    checked.types = types(&facts, &findings, &root);
    hold_back_unread(&mut checked, &root);
    Ok(checked)
}

/// One call for each source; the first one counts.
fn units(commands: &[CompileCommand]) -> Vec<(PathBuf, &CompileCommand)> {
    let mut units: BTreeMap<PathBuf, &CompileCommand> = BTreeMap::new();
    for command in commands.iter().filter(|command| command.is_compiler()) {
        for source in command.source_paths() {
            units.entry(source).or_insert(command);
        }
    }
    // What a build wrote, compiled and took away again (a configure script's trials) is not the program's.
    units.into_iter().filter(|(source, _)| source.exists()).collect()
}

/// What reading one unit needs, on whatever thread.
struct Reader {
    library: Library,
    command: CompileCommand,
    source: PathBuf,
    root: PathBuf,
    /// A folder with the compiler's own headers.
    headers: Option<PathBuf>,
    known: Arc<Known>,
}

impl Reader {
    fn read(&self) -> Result<Facts, String> {
        self.library.make_current();
        let mut arguments = self.command.for_libclang(&self.source);
        if let Some(headers) = &self.headers {
            arguments.extend(["-isystem".to_string(), headers.to_string_lossy().into_owned()]);
        }
        let unit = Unit::parse(&arguments)?;
        if let Some(error) = unit.first_error() {
            return Err(error);
        }
        let is_kernel = self.command.is_kernel();
        let known = is_kernel.then_some(&*self.known);
        let mut tree = read(&unit, &self.root, self.command.is_cpp(&self.source), known);
        tree.forbids_designators = self.command.forbids_designators();
        Ok(collect(&tree, is_kernel))
    }
}

fn gave_up() -> String {
    format!("clang did not come back from it within {} s: conservative rules", UNIT_LIMIT.as_secs())
}

/// libclang finds `stddef.h` and the like beside itself, when they are installed.
fn has_own_headers(library: &Library) -> bool {
    let path = library.path().canonicalize().unwrap_or_else(|_| library.path().to_owned());
    let Some(folder) = path.parent() else { return false };
    let versions = std::fs::read_dir(folder.join("clang")).into_iter().flatten().flatten();
    versions.into_iter().any(|version| version.path().join("include/stddef.h").exists())
}

fn relative(path: &str, root: &Path) -> String {
    let path = Path::new(path);
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn types(
    facts: &Facts,
    findings: &BTreeMap<crate::tree::Name, BTreeSet<Finding>>,
    root: &Path,
) -> BTreeMap<String, CheckedType> {
    let mut texts = Texts::default();
    let is_own =
        |record: &RecordFact| !record.is_foreign && !record.members.is_empty() && !record.names.is_empty();
    let own = facts.records.iter().filter(|(_, record)| is_own(record));
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
        let ty = CheckedType {
            names: record.names.clone(),
            path: relative(&record.at.file, root),
            line: record.at.line,
            members: record.members.iter().map(|member| member.name.to_string()).collect(),
            uses: uses.collect(),
        };
        (usr.to_string(), ty)
    })
    .collect()
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

/// What a unit that could not be read mentions may be used there in any way.
fn hold_back_unread(checked: &mut Checked, root: &Path) {
    for (path, _) in &checked.unread {
        let text = std::fs::read(root.join(path)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let is_separator = |c: char| !c.is_alphanumeric() && c != '_';
        let words: BTreeSet<&str> = text.split(is_separator).collect();
        for ty in checked.types.values_mut() {
            let is_named = |name: &String| words.contains(name.rsplit("::").next().unwrap_or(name));
            if ty.names.iter().any(is_named) {
                ty.uses.insert(
                    0,
                    Use {
                        verdict: Verdict::Refuse,
                        kind: UseKind::Crossing,
                        path: path.clone(),
                        line: 1,
                        reason: "clang could not read this unit, which names the type".into(),
                        text: String::new(),
                    },
                );
            }
        }
    }
}
