//! The units of a build, searched for chases.

use super::flow::{Loop, calls_of, is_loop};
use super::syntax::Function;
use super::{arrays, lists, stacks};
use crate::check::{Build, STACK_BYTES, UNIT_LIMIT, gave_up, parsed, units};
use crate::compiler_command::CompileCommand;
use crate::error::Error;
use crate::headers::Headers;
use crate::libclang::{Cursor, Library};
use crate::patience::within;
use crate::read::{Macros, normal};
use clang_sys::*;
use lineup_model::chase::{Chase, Form};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Calls that are followed from a function that was asked for: the compiler may inline them.
const CALLS_DEEP: usize = 2;

/// The chases in functions of a build.
#[derive(Clone, Default, Debug)]
pub struct Chases {
    /// By file and line.
    pub found: Vec<Chase>,
    /// Units that could not be read, and the reasons.
    pub unread: Vec<(String, String)>,
}

/// Reads the functions with these names, as the source spells them, and the functions of their units that they call.
///
/// # Errors
/// Without libclang. A unit that cannot be parsed is no error.
pub fn chases(build: &Build, functions: &BTreeSet<String>) -> Result<Chases, Error> {
    let library = Library::load()?;
    let headers = Arc::new(Headers::new(&library, build.compiler_headers.as_deref()));
    let root = build.root.canonicalize().unwrap_or_else(|_| normal(&build.root));
    let wanted: Arc<BTreeSet<String>> =
        Arc::new(functions.iter().map(|name| own_name(name).to_owned()).collect());
    let read_one = |(source, command): &(PathBuf, &CompileCommand)| {
        let unit = ChaseUnit {
            library: library.clone(),
            headers: Arc::clone(&headers),
            command: (*command).clone(),
            source: source.clone(),
            standard: build.standards.of(command, source),
            root: root.clone(),
            wanted: Arc::clone(&wanted),
        };
        let found = within(UNIT_LIMIT, STACK_BYTES, move || unit.read());
        found.unwrap_or_else(|| Err(gave_up()))
    };
    let units = units(&build.commands);
    let read: Vec<Result<Vec<Chase>, String>> = units.par_iter().map(read_one).collect();
    let mut all = Chases::default();
    let mut seen: BTreeMap<(String, u32, Form), BTreeSet<String>> = BTreeMap::new();
    for ((source, _), result) in units.iter().zip(read) {
        match result {
            Ok(found) => {
                for chase in found {
                    let key = (chase.path.clone(), chase.line, chase.form);
                    if seen.entry(key).or_default().insert(format!("{:?}", chase.ahead)) {
                        all.found.push(chase);
                    }
                }
            }
            Err(why) => {
                let path = source.strip_prefix(&root).unwrap_or(source);
                all.unread.push((path.to_string_lossy().into_owned(), why));
            }
        }
    }
    all.found.sort();
    Ok(all)
}

/// A function's own name: without its scopes, parameters and template arguments.
pub fn own_name(name: &str) -> &str {
    let name = name.split(['(', '<', '[', ' ']).next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

/// The data needed to read one unit, on any thread.
struct ChaseUnit {
    library: Library,
    headers: Arc<Headers>,
    command: CompileCommand,
    source: PathBuf,
    standard: Option<String>,
    root: PathBuf,
    wanted: Arc<BTreeSet<String>>,
}

impl ChaseUnit {
    fn read(&self) -> Result<Vec<Chase>, String> {
        self.library.make_current();
        let unit = parsed(&self.command, &self.source, &self.headers, self.standard.as_ref())?;
        let mut definitions = Vec::new();
        self.definitions(unit.root(), &mut definitions);
        let macros = Macros::of(unit.files());
        let is_cpp = self.command.is_cpp(&self.source);
        let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
        let mut asked = Vec::new();
        let mut met = HashSet::new();
        for &definition in &definitions {
            if self.wanted.contains(&definition.spelling()) {
                with_callees(definition, &definition.spelling(), CALLS_DEEP, &mut met, &mut asked);
            }
        }
        let mut found = Vec::new();
        for (definition, caller) in asked {
            let path = normal(Path::new(&definition.location().file));
            let Ok(relative) = path.strip_prefix(&self.root) else { continue };
            let relative = relative.to_string_lossy().into_owned();
            let text = texts
                .entry(path.clone())
                .or_insert_with(|| std::fs::read_to_string(&path).unwrap_or_default());
            let function = Function::read(definition, text, (is_cpp, &macros));
            let own = of_function(&function).into_iter();
            found.extend(own.map(|chase| Chase { path: relative.clone(), asked: caller.clone(), ..chase }));
        }
        Ok(found)
    }

    /// The functions that the project's files define.
    fn definitions<'u>(&self, cursor: Cursor<'u>, found: &mut Vec<Cursor<'u>>) {
        for child in cursor.children() {
            match child.kind() {
                CXCursor_FunctionDecl | CXCursor_CXXMethod if child.is_definition() => {
                    let is_own = normal(Path::new(&child.location().file)).starts_with(&self.root);
                    found.extend(is_own.then_some(child));
                }
                CXCursor_Namespace
                | CXCursor_LinkageSpec
                | CXCursor_UnexposedDecl
                | CXCursor_StructDecl
                | CXCursor_ClassDecl => self.definitions(child, found),
                _ => {}
            }
        }
    }
}

/// Adds a function, and those of its unit that it calls.
fn with_callees<'u>(
    definition: Cursor<'u>,
    asked: &str,
    depth: usize,
    met: &mut HashSet<usize>,
    found: &mut Vec<(Cursor<'u>, String)>,
) {
    if !met.insert(definition.identity()) {
        return;
    }
    found.push((definition, asked.to_owned()));
    if depth == 0 {
        return;
    }
    for callee in calls_of(definition) {
        if let Some(callee) = callee.definition()
            && matches!(callee.kind(), CXCursor_FunctionDecl | CXCursor_CXXMethod)
        {
            with_callees(callee, asked, depth - 1, met, found);
        }
    }
}

/// The chases of one function.
fn of_function(function: &Function<'_>) -> Vec<Chase> {
    let loops = (0..function.pieces.len()).filter(|id| is_loop(function.at(*id).kind));
    let loops = loops.filter_map(|id| Loop::at(function, id));
    let in_loops = loops.flat_map(|one| {
        let list = lists::chase(function, &one);
        list.into_iter().chain(arrays::chases(function, &one)).collect::<Vec<_>>()
    });
    in_loops.chain(stacks::chases(function)).collect()
}
