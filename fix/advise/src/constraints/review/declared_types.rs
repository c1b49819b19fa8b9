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
