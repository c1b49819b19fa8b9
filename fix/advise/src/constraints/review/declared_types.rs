//! The names of a member's type.

use lineup_model::types::{TypeId, TypeKind, Types};

/// Typedefs, qualifiers and arrays are followed this far.
const MOST_STEPS: u32 = 16;

/// The names of a type: those of its typedefs and of the struct behind them. Elements of arrays count, targets of
/// pointers do not.
pub(super) fn type_names(types: &Types, mut id: TypeId) -> Vec<&str> {
    let mut names = Vec::new();
    for _ in 0..MOST_STEPS {
        let Some(ty) = types.get(id) else { break };
        names.extend(ty.name.as_deref().filter(|_| !matches!(ty.kind, TypeKind::Qualified(_))));
        id = match &ty.kind {
            TypeKind::Typedef(Some(target)) | TypeKind::Qualified(Some(target)) => *target,
            TypeKind::Array { element, .. } => *element,
            _ => break,
        };
    }
    names
}

/// Whether a member's type has one of these as the last word of one of its names.
pub(super) fn is_named_after(types: &Types, id: TypeId, words: &[&str]) -> bool {
    let last = |name: &str| {
        let name = name.trim_matches('_');
        let name = name.strip_suffix("_t").unwrap_or(name);
        words
            .iter()
            .any(|word| name == *word || name.strip_suffix(word).is_some_and(|rest| rest.ends_with('_')))
    };
    type_names(types, id).into_iter().any(last)
}
