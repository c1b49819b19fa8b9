//! A program's types, and which of them a declaration in a text is.

use crate::world::World;
use lineup_advise::outline::{Declared, TextLanguage};
use lineup_model::abi::Abi;
use lineup_model::types::{Aggregate, Language, MemberRole, TypeId, TypeKind, Types};
use std::collections::HashMap;
use std::path::Path;

/// Members without a name that lie deeper are not looked into.
const MAX_NESTING: u32 = 16;

/// Types of a program, by their names.
pub(crate) struct Program {
    pub(crate) types: Types,
    pub(crate) abi: Abi,
    /// By the last part of the name, without text in angle brackets.
    by_name: HashMap<String, Vec<TypeId>>,
}

impl Program {
    pub(crate) fn new(types: Types, abi: Abi) -> Self {
        let mut by_name: HashMap<String, Vec<TypeId>> = HashMap::new();
        for (id, ty) in types.iter() {
            let Some(name) = ty.name.as_deref() else { continue };
            // A typedef names a type that has no name of its own.
            let is_named = match &ty.kind {
                TypeKind::Aggregate(aggregate) => !aggregate.is_declaration && ty.size_bytes.is_some(),
                TypeKind::Typedef(_) => types
                    .aggregate(id)
                    .and_then(|(target, _)| types.get(target))
                    .is_some_and(|target| target.name.is_none() && target.size_bytes.is_some()),
                _ => false,
            };
            if let Some(last) = segments(name).pop().filter(|_| is_named) {
                by_name.entry(last).or_default().push(id);
            }
        }
        Program { types, abi, by_name }
    }

    /// The types that a declaration in a file may be: those declared there under its name. Types for which debug
    /// information has no place (Rust's) count by their names alone.
    pub(crate) fn named(
        &self,
        world: &dyn World,
        file: &Path,
        declared: &Declared,
        language: TextLanguage,
    ) -> Vec<TypeId> {
        let all = self.by_name.get(&declared.name).map_or(&[][..], Vec::as_slice);
        let is_rust = language == TextLanguage::Rust;
        let of_language = all.iter().copied().filter(|id| {
            let language = self.types.get(*id).map(|ty| ty.language).unwrap_or_default();
            (language == Language::Rust) == is_rust || language == Language::Other
        });
        let place = |id: TypeId| self.types.get(id)?.declared_at.as_ref();
        let (here, elsewhere): (Vec<TypeId>, Vec<TypeId>) = of_language
            .partition(|id| place(*id).is_none_or(|at| is_same_file(world, Path::new(&*at.file), file)));
        // Compiled in another place, or on another machine: then the file's name has to do.
        let is_out_of_reach = |id: &TypeId| {
            place(*id).is_some_and(|at| {
                let recorded = Path::new(&*at.file);
                recorded.file_name() == file.file_name() && world.stamp(recorded).is_none()
            })
        };
        let found = match here.is_empty() {
            false => here,
            true => elsewhere.into_iter().filter(is_out_of_reach).collect(),
        };
        // In C a type inside another one is everybody's.
        let in_scope = |id: &TypeId| {
            let Some(ty) = self.types.get(*id).filter(|ty| ty.language != Language::C) else { return true };
            let mut around = segments(ty.name.as_deref().unwrap_or_default());
            around.pop();
            language == TextLanguage::C || around.ends_with(&declared.scope)
        };
        found.into_iter().filter(in_scope).collect()
    }

    /// The type that an aggregate is known by in documents: its name, or that of the typedef it was found by.
    pub(crate) fn name(&self, id: TypeId) -> &str {
        self.types.get(id).and_then(|ty| ty.name.as_deref()).unwrap_or_default()
    }

    pub(crate) fn aggregate(&self, id: TypeId) -> Option<&Aggregate> {
        self.types.aggregate(id).map(|(_, aggregate)| aggregate)
    }

    /// The names of a type's own members, with those of members without a name among them.
    pub(crate) fn member_names(&self, id: TypeId) -> Vec<String> {
        let mut names = Vec::new();
        self.collect_names(id, 0, &mut names);
        names
    }

    fn collect_names(&self, id: TypeId, depth: u32, names: &mut Vec<String>) {
        let Some(aggregate) = self.aggregate(id).filter(|_| depth < MAX_NESTING) else { return };
        for member in &aggregate.members {
            match (&member.name, member.role) {
                (Some(name), MemberRole::Field | MemberRole::Variant(_)) => names.push(name.to_string()),
                (None, MemberRole::Field) => self.collect_names(member.ty, depth + 1, names),
                _ => {}
            }
        }
    }
}

/// `a::b::C<d::E>` without text in angle brackets, cut at the colons; namespaces without a name left out.
fn segments(name: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let mut plain = String::new();
    for character in name.chars() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
    }
    let parts = plain.split("::").filter(|part| !part.is_empty() && !part.starts_with(['(', '{']));
    parts.map(|part| part.trim().to_string()).collect()
}

fn is_same_file(world: &dyn World, recorded: &Path, file: &Path) -> bool {
    recorded == file
        || recorded.file_name() == file.file_name() && {
            let recorded = world.canonical(recorded);
            recorded.is_some() && recorded == world.canonical(file)
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_where_their_scopes_end() {
        assert_eq!(segments("a::b::C<d::E<f>>"), ["a", "b", "C"]);
        assert_eq!(segments("(anonymous namespace)::x"), ["x"]);
        assert_eq!(segments("krate::{impl#0}::m::T"), ["krate", "m", "T"]);
        assert_eq!(segments("task"), ["task"]);
        assert!(segments("").is_empty());
    }
}
