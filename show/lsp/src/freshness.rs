//! Compares the editor's text with the text from which a program was built.

use crate::program::Program;
use crate::world::{Stamp, World};
use lineup_advise::outline::{Declared, TextLanguage};
use lineup_model::types::{TypeId, TypeKind};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

/// The most nested types that are looked into.
const MOST_TYPES: usize = 2000;

/// The relation of a declaration in the editor to the built one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Freshness {
    /// Nothing speaks against it: the text is the file's, no file that the type needs was written after the program,
    /// and the members have the same names.
    AsBuilt,
    /// The editor's text differs from the file's.
    NotSaved,
    /// This file was written after the program.
    Newer(String),
    /// The members have other names than the built ones.
    OtherMembers,
}

impl Freshness {
    /// A sentence for a person; `None` when there is nothing to report.
    pub(crate) fn in_words(&self, program: &str) -> Option<String> {
        match self {
            Freshness::AsBuilt => None,
            Freshness::NotSaved => {
                Some(format!("this text is not saved, and {program} was built from the file"))
            }
            Freshness::Newer(file) => Some(format!("{file} was changed after {program} was built")),
            Freshness::OtherMembers => Some(format!("{program} was built with other members")),
        }
    }
}

/// The freshness of the text as a whole: it must be the file's, and the file older than the program.
pub(crate) fn of_text(world: &dyn World, file: &Path, text: &str, built: Option<Stamp>) -> Freshness {
    if world.text(file).as_deref() != Ok(text) {
        return Freshness::NotSaved;
    }
    if is_newer(world, file, built) {
        return Freshness::Newer(name(file));
    }
    Freshness::AsBuilt
}

/// The freshness of one declaration: the type must have its members, and the types inside it must be as they were
/// built.
pub(crate) fn of_type(
    world: &dyn World,
    program: &Program,
    id: TypeId,
    declared: &Declared,
    (text, language, built): (&str, TextLanguage, Option<Stamp>),
) -> Freshness {
    if !are_members(&program.member_names(id), declared, text, language) {
        return Freshness::OtherMembers;
    }
    let newer = files_of(program, id).into_iter().find(|file| is_newer(world, Path::new(&**file), built));
    newer.map_or(Freshness::AsBuilt, |file| Freshness::Newer(name(Path::new(&*file))))
}

fn is_newer(world: &dyn World, file: &Path, built: Option<Stamp>) -> bool {
    match (world.stamp(file), built) {
        (Some(file), Some(built)) => file.modified > built.modified,
        _ => false,
    }
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// True when the built members are those of the text. Where the text has conditions or macros, a built member must at
/// least be a word of the declaration, and members of the text may be missing.
fn are_members(built: &[String], declared: &Declared, text: &str, language: TextLanguage) -> bool {
    let mut written: Vec<&str> = declared.own_members().collect();
    if declared.is_plain {
        let mut built: Vec<&str> = built.iter().map(String::as_str).collect();
        if language == TextLanguage::Rust {
            written.sort_unstable();
            built.sort_unstable();
        }
        return built == written;
    }
    let text = text.get(declared.bytes.clone()).unwrap_or_default();
    let words: HashSet<&str> = text.split(|character: char| !is_of_word(character)).collect();
    built.iter().all(|name| words.contains(name.as_str()))
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The files that declare the type and the types inside it: types of members, their typedefs, base classes.
fn files_of(program: &Program, id: TypeId) -> BTreeSet<Arc<str>> {
    let mut files = BTreeSet::new();
    let mut seen = HashSet::new();
    let mut left = vec![id];
    while let Some(id) = left.pop() {
        if !seen.insert(id) || seen.len() > MOST_TYPES {
            continue;
        }
        let Some(ty) = program.types.get(id) else { continue };
        files.extend(ty.declared_at.as_ref().map(|at| at.file.clone()));
        match &ty.kind {
            TypeKind::Array { element, .. } => left.push(*element),
            TypeKind::Typedef(target) | TypeKind::Qualified(target) => left.extend(target),
            TypeKind::Aggregate(aggregate) => left.extend(aggregate.members.iter().map(|member| member.ty)),
            _ => {}
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_advise::outline::declared;

    fn agrees(text: &str, language: TextLanguage, built: &[&str]) -> bool {
        let declared = declared(text, language).remove(0);
        let built: Vec<String> = built.iter().map(|name| (*name).to_string()).collect();
        are_members(&built, &declared, text, language)
    }

    #[test]
    fn members_agree_by_name_and_where_the_source_decides_by_order() {
        let text = "struct s { int a; union { int b; int c; }; };";
        assert!(agrees(text, TextLanguage::C, &["a", "b", "c"]));
        for other in [&["a", "b"][..], &["a", "c", "b"], &["a", "b", "c", "d"], &[]] {
            assert!(!agrees(text, TextLanguage::C, other), "{other:?}");
        }
        assert!(agrees("struct s { a: u8, b: u8 }", TextLanguage::Rust, &["b", "a"]));
    }

    #[test]
    fn conditions_may_leave_members_out_and_add_none() {
        let text = "struct s {\n int a;\n#ifdef B\n int b;\n#endif\n DECLARE(c, 3);\n};";
        for built in [&["a"][..], &["a", "b", "c"], &["a", "c"]] {
            assert!(agrees(text, TextLanguage::C, built), "{built:?}");
        }
        assert!(!agrees(text, TextLanguage::C, &["a", "d"]));
    }
}
