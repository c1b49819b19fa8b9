//! The user's source files, as values.

pub use crate::text::source_place::SourcePlace;
pub use crate::text::word_set::has_word;

use crate::text::language::{SourceLanguage, language_by_extension};
use crate::text::lex::Lexed;
use crate::text::parsed_file::{Parsed, Room};
use lineup_model::types::{TypeId, Types};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use tree_sitter::Tree;

/// Source files by path relative to the source folder, with `/` between components. A copy shares the files, and the
/// facts found about them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Sources {
    files: BTreeMap<String, Arc<Parsed>>,
    /// Files of Rust, which nothing but the parting of data of threads and cold parts look at.
    rust: BTreeMap<String, Arc<str>>,
    headers_are_cpp: bool,
    /// Headers that only C++ can read, in a folder that holds both languages.
    cpp_headers: BTreeSet<String>,
    /// Nobody wrote these: the places of declarations in debug information do not apply to them.
    are_written_out: bool,
    beside: Beside,
}

/// The answers, by the question and the name.
type Answers = HashMap<(Question, String), Option<bool>>;

/// Caches next to the files, which are no part of their content.
#[derive(Clone, Default, Debug)]
struct Beside {
    room: Arc<Room>,
    answers: Arc<Mutex<Answers>>,
}

impl PartialEq for Beside {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Beside {}

/// Questions that many types ask about the same names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Question {
    /// Whether a typedef mentions an alignment.
    TypedefAligns,
    /// Whether the declaration of a struct mentions an alignment.
    DeclarationAligns,
    /// The same, but not of a pointer's.
    DeclarationAlignsBeyondPointers,
    /// Whether the declaration of a struct has members inside `#if`.
    DependsOnConfiguration,
}

impl Sources {
    /// Takes `(path, text)` pairs. Files whose extension is not of C, C++, assembly or Rust are left out, and so are
    /// those that [`is_hidden`].
    pub fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut sources = Sources::default();
        for (path, text) in files {
            let is_source = language_by_extension(&path).is_some() || path.ends_with(".h");
            if path.split('/').any(is_hidden) {
                continue;
            }
            if path.ends_with(".rs") {
                sources.rust.insert(path, text.into());
            } else if is_source {
                sources.headers_are_cpp |= language_by_extension(&path) == Some(SourceLanguage::Cpp);
                sources.files.insert(path, Arc::new(Parsed::new(text, sources.beside.room.clone())));
            }
        }
        let has_c = sources.files.keys().any(|path| path.ends_with(".c"));
        if sources.headers_are_cpp && has_c {
            let headers = sources.files.iter().filter(|(path, _)| path.ends_with(".h"));
            let only_cpp = headers.filter(|(_, file)| is_only_cpp(file.text()));
            sources.cpp_headers = only_cpp.map(|(path, _)| path.clone()).collect();
        }
        sources.headers_are_cpp &= !has_c;
        sources
    }

    /// The declarations of structs and unions, written out as C from debug info, each in a header of its own.
    pub fn written_out(types: &Types, wanted: impl IntoIterator<Item = TypeId>) -> Self {
        let file = |id: TypeId| {
            let (id, _) = types.aggregate(id)?;
            let name = types.get(id)?.name.as_deref()?;
            Some((format!("{name}.h"), types.declaration(id)?))
        };
        let wanted: BTreeSet<TypeId> = wanted.into_iter().collect();
        Sources { are_written_out: true, ..Sources::new(wanted.into_iter().filter_map(file)) }
    }

    /// Whether they are [`Sources::written_out`]: debug information gives no place in them.
    pub(crate) fn are_written_out(&self) -> bool {
        self.are_written_out
    }

    /// The same files, some headers of which only units of C++ read.
    #[must_use]
    pub fn with_cpp_headers(&self, headers: impl IntoIterator<Item = String>) -> Sources {
        let is_new = |path: &String| path.ends_with(".h") && self.language(path) == SourceLanguage::C;
        let new: BTreeSet<String> = headers.into_iter().filter(is_new).collect();
        // Files that were parsed as C are parsed anew.
        let texts = new.iter().filter_map(|path| Some((path.clone(), self.get(path)?.to_owned()))).collect();
        let mut sources = self.with(&texts);
        sources.cpp_headers.extend(new);
        sources
    }

    /// The files with their texts, in order of path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file.text()))
    }

    /// The text of one file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|file| file.text()).or_else(|| self.rust.get(path).map(|text| &**text))
    }

    /// The files of Rust that have this name as a word, with their texts, in order of path.
    pub(crate) fn rust_that_names(&self, name: &str) -> impl Iterator<Item = (&str, &str)> {
        let files = self.rust.iter().map(|(path, text)| (path.as_str(), &**text));
        files.filter(move |(_, text)| has_word(text, name))
    }

    /// A file of Rust, with its path as the sources hold it.
    pub(crate) fn rust_file(&self, path: &str) -> Option<(&str, &str)> {
        self.rust.get_key_value(path).map(|(path, text)| (path.as_str(), &**text))
    }

    /// One file with the facts found about it.
    pub(crate) fn parsed(&self, path: &str) -> Option<&Parsed> {
        self.files.get(path).map(Arc::as_ref)
    }

    /// Asks the text and syntax tree of one file. `None` for assembly and unknown paths.
    pub(crate) fn with_tree<R>(&self, path: &str, ask: impl FnOnce(&str, &Tree) -> R) -> Option<R> {
        let file = self.parsed(path)?;
        file.with_tree(self.language(path), |tree| ask(file.text(), tree))
    }

    /// The files that may have this name as a word, with their texts, in order of path; no file that has it is left
    /// out.
    pub fn that_may_name<'s>(&'s self, name: &'s str) -> impl Iterator<Item = (&'s str, &'s str)> {
        let files = self.files.iter().filter(move |(_, file)| file.may_name(name));
        files.map(|(path, file)| (path.as_str(), file.text()))
    }

    /// Whether one file may have this name as a word; false when it certainly has not.
    pub fn may_name(&self, path: &str, name: &str) -> bool {
        self.parsed(path).is_some_and(|file| file.may_name(name))
    }

    /// The answer to a question about a name: worked out once.
    pub(crate) fn answer(
        &self,
        question: Question,
        name: &str,
        work_out: impl FnOnce() -> Option<bool>,
    ) -> Option<bool> {
        let key = (question, name.to_string());
        let known = || self.beside.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = known().get(&key) {
            return *answer;
        }
        let answer = work_out();
        known().insert(key, answer);
        answer
    }

    /// The tokens of one file.
    pub(crate) fn lexed(&self, path: &str) -> Option<Lexed<'_>> {
        self.parsed(path).map(Parsed::lexed)
    }

    /// The language of one of the files. `.h` is C unless the folder holds C++ and no C, only units of C++ are known to
    /// read it, or no C compiler could.
    pub fn language(&self, path: &str) -> SourceLanguage {
        let is_cpp = self.headers_are_cpp || self.cpp_headers.contains(path);
        let header = if is_cpp { SourceLanguage::Cpp } else { SourceLanguage::C };
        language_by_extension(path).unwrap_or(header)
    }

    /// A copy with some files replaced.
    pub fn with(&self, edited: &BTreeMap<String, String>) -> Sources {
        let mut copy = self.clone();
        let room = &self.beside.room;
        copy.beside = Beside { room: room.clone(), ..Beside::default() };
        let parsed = |text: &String| Arc::new(Parsed::new(text.clone(), room.clone()));
        for (path, text) in edited {
            match path.ends_with(".rs") {
                true => drop(copy.rust.insert(path.clone(), text.as_str().into())),
                false => drop(copy.files.insert(path.clone(), parsed(text))),
            }
        }
        copy
    }

    /// The path in this folder that a path from debug info means: the longest one that ends it, on
    /// whole components.
    pub fn matching_path(&self, recorded: &str) -> Option<&str> {
        let wanted = components(recorded);
        let last = wanted.last().copied().unwrap_or("");
        let ends = |path: &str| path.ends_with(last) && wanted.ends_with(&components(path));
        self.files.keys().map(String::as_str).filter(|path| ends(path)).max_by_key(|path| path.len())
    }
}

/// True for a header with a namespace, a template or access labels that no `#if` keeps from C.
fn is_only_cpp(text: &str) -> bool {
    let is_label = |line: &str| matches!(line, "public:" | "private:" | "protected:");
    let is_begun = |line: &str| line.starts_with("namespace ") || line.starts_with("template");
    let mut lines = text.lines().map(str::trim);
    !text.contains("__cplusplus") && lines.any(|line| is_label(line) || is_begun(line))
}

/// True for names of files and folders that hold copies of sources rather than sources: folders of version control and
/// patch systems (`.git`, `.pc`, `CVS`), and the backups and locks of editors (`.#x.c`).
pub fn is_hidden(name: &str) -> bool {
    matches!(name, "CVS" | "_darcs") || (name.starts_with('.') && !matches!(name, "." | ".."))
}

/// The components of a path with `.` dropped and `..` applied.
fn components(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(paths: &[&str]) -> Sources {
        Sources::new(paths.iter().map(|path| (path.to_string(), String::new())))
    }

    #[test]
    fn headers_follow_the_language_of_the_folder() {
        assert_eq!(sources(&["a.h", "a.cc"]).language("a.h"), SourceLanguage::Cpp);
        assert_eq!(sources(&["a.h", "a.c", "b.cc"]).language("a.h"), SourceLanguage::C);
        assert_eq!(sources(&["a.h", "notes.txt"]).iter().count(), 1);
    }

    #[test]
    fn a_header_that_only_cpp_can_read_is_cpp_beside_c() {
        let language = |header: &str| {
            let files = [("a.h", header), ("a.c", ""), ("b.cc", "")];
            let files = files.map(|(path, text)| (path.to_string(), text.to_string()));
            Sources::new(files).language("a.h")
        };
        assert_eq!(language("namespace n {\nclass a {\n private:\n  int b;\n};\n}\n"), SourceLanguage::Cpp);
        assert_eq!(language("#ifdef __cplusplus\nnamespace n {\n#endif\nint f();\n"), SourceLanguage::C);
        assert_eq!(language("struct a { int private; int class; };\n"), SourceLanguage::C);
    }

    #[test]
    fn a_header_that_only_units_of_cpp_read_is_cpp_though_it_could_be_read_as_c() {
        let files =
            [("a.h", "#ifdef __cplusplus\nnamespace n {\n#endif\n"), ("b.h", ""), ("a.c", ""), ("b.cc", "")];
        let sources = Sources::new(files.map(|(path, text)| (path.to_string(), text.to_string())));
        assert_eq!(sources.language("a.h"), SourceLanguage::C);
        let told = sources.with_cpp_headers(["a.h".to_string(), "a.c".to_string()]);
        let language = |path: &str| told.language(path);
        assert_eq!(language("a.h"), SourceLanguage::Cpp);
        assert_eq!((language("b.h"), language("a.c")), (SourceLanguage::C, SourceLanguage::C));
    }

    #[test]
    fn backups_of_patch_systems_editors_and_version_control_are_no_sources() {
        let sources = sources(&["a.c", ".pc/fix.patch/a.c", "CVS/a.c", "src/.#a.c", "src/.svn/pristine/a.c"]);
        assert_eq!(sources.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["a.c"]);
    }

    #[test]
    fn a_recorded_path_means_the_longest_file_that_ends_it_on_whole_components() {
        let sources = sources(&["x.h", "src/x.h", "rc/x.h"]);
        assert_eq!(sources.matching_path("/build/../home/src/./x.h"), Some("src/x.h"));
        assert_eq!(sources.matching_path("/usr/include/x.h"), Some("x.h"));
        assert_eq!(sources.matching_path("/usr/include/stdio.h"), None);
    }
}
