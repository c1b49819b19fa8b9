//! Writes to variables and members, as far as a loop's parts show them.

use super::syntax::{DeclId, DeclaredKind, Function, PieceId, Shape};
use clang_sys::*;

/// The use of a variable or member at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// Its value is read, or it is measured.
    Read,
    /// This node gives it another value.
    Write(PieceId),
    /// Its address or a reference to it leaves the place: others may write it.
    Lent,
}

/// The use at a node that names a variable or member.
pub(super) fn used(function: &Function<'_>, id: PieceId) -> Use {
    if matches!(function.at(id).kind, CXCursor_VarDecl | CXCursor_ParmDecl) {
        return Use::Write(id);
    }
    if function.is_read(id) {
        return Use::Read;
    }
    let outer = |id: PieceId| {
        let mut below = id;
        for above in function.above(id) {
            if function.at(above).kind != CXCursor_ParenExpr {
                return Some((above, below));
            }
            below = above;
        }
        None
    };
    let Some((above, below)) = outer(id) else { return Use::Lent };
    let piece = function.at(above);
    let is_first = piece.children.first() == Some(&below);
    match piece.kind {
        CXCursor_BinaryOperator if is_first && matches!(function.operator(above), Some("=") | None) => {
            Use::Write(above)
        }
        CXCursor_CompoundAssignOperator if is_first => Use::Write(above),
        CXCursor_UnaryOperator if matches!(function.prefix(above), Some("++" | "--")) => Use::Write(above),
        CXCursor_UnaryExpr => Use::Read,
        _ => Use::Lent,
    }
}

/// The nodes below one that name a declaration.
pub(super) fn names_of(function: &Function<'_>, below: PieceId, decl: DeclId) -> Vec<PieceId> {
    let is_it = |id: &PieceId| {
        let piece = function.at(*id);
        piece.decl == Some(decl) && piece.kind != CXCursor_CallExpr
    };
    function.below(below).into_iter().filter(is_it).collect()
}

/// The writes to a variable below a node.
///
/// # Errors
/// The reason why they are not known.
pub(super) fn writes(function: &Function<'_>, below: PieceId, decl: DeclId) -> Result<Vec<PieceId>, String> {
    let declared = function.decls.get(&decl).ok_or("a variable is not understood")?;
    let names = names_of(function, 0, decl);
    let name = names.first().map(|id| function.at(*id).name.clone()).unwrap_or_default();
    if declared.kind != DeclaredKind::Local {
        return Err(format!("`{name}` is no variable of the function: others may write it"));
    }
    if declared.ty.is_guarded {
        return Err(format!("`{name}` is volatile or atomic"));
    }
    if names.iter().any(|id| used(function, *id) == Use::Lent) {
        return Err(format!("the address of `{name}` is taken"));
    }
    let inside = names.into_iter().filter(|id| function.is_below(*id, below));
    Ok(inside
        .filter_map(|id| match used(function, id) {
            Use::Write(at) => Some(at),
            _ => None,
        })
        .collect())
}

/// The reason why an expression with these variables and members may change within a loop; `None` where it stays the
/// same. No call in the loop gives memory back: others were refused before.
pub(super) fn change(
    function: &Function<'_>,
    inside: PieceId,
    (variables, members): (&[DeclId], &[DeclId]),
) -> Option<String> {
    let mut kept_elsewhere: Vec<String> = Vec::new();
    for &decl in variables {
        let Some(declared) = function.decls.get(&decl) else {
            return Some("a variable is not understood".into());
        };
        let is_place = matches!(declared.ty.shape, Shape::Array);
        let is_object = !is_place && !declared.ty.is_pointer() && !declared.ty.is_integer();
        let name = || {
            let names = names_of(function, 0, decl);
            names.first().map(|id| function.at(*id).name.clone()).unwrap_or_default()
        };
        if is_place {
            continue;
        }
        let uses = names_of(function, inside, decl).into_iter().map(|id| (id, used(function, id)));
        let harmful = uses.filter(|(id, used)| match used {
            Use::Read => false,
            // A member of it, or a call of a method that only reads.
            Use::Lent if is_object => !is_member_of(function, *id),
            _ => true,
        });
        if harmful.count() > 0 {
            return Some(format!("`{}` may change in the loop", name()));
        }
        match declared.kind {
            DeclaredKind::Local => {
                let all = names_of(function, 0, decl);
                let is_lent = !is_object && all.iter().any(|id| used(function, *id) == Use::Lent);
                if is_lent {
                    return Some(format!("the address of `{}` is taken", name()));
                }
            }
            _ => kept_elsewhere.push(declared.ty.spelling.clone()),
        }
    }
    for &decl in members {
        let Some(declared) = function.decls.get(&decl) else {
            return Some("a member is not understood".into());
        };
        if declared.ty.shape == Shape::Array {
            continue;
        }
        let names = names_of(function, inside, decl);
        let is_object = declared.ty.shape == Shape::Other || declared.ty.shape == Shape::Record;
        let changes = |id: &PieceId| match used(function, *id) {
            Use::Read => false,
            Use::Lent if is_object => !is_member_of(function, *id),
            _ => true,
        };
        if let Some(id) = names.into_iter().find(changes) {
            return Some(format!("the member `{}` may change in the loop", function.at(id).name));
        }
        kept_elsewhere.push(declared.ty.spelling.clone());
    }
    let call = super::flow::writing_call(function, inside).filter(|_| !kept_elsewhere.is_empty());
    if let Some(call) = call {
        return Some(format!("`{call}` may change where the loop reads"));
    }
    kept_elsewhere.iter().find_map(|spelling| store_to(function, inside, spelling))
}

/// True where a node is only the object of a member, or of a call that reads.
fn is_member_of(function: &Function<'_>, id: PieceId) -> bool {
    let above: Vec<PieceId> = function.above(id).take(3).collect();
    let reads = |call: &PieceId| {
        function.at(*call).kind == CXCursor_CallExpr
            && super::expression::written(function, *call, None).is_ok()
    };
    let is_named = above.first().is_some_and(|above| {
        function.at(*above).kind == CXCursor_MemberRefExpr
            && function.declaration(*above).is_some_and(|declared| declared.kind == DeclaredKind::Member)
    });
    is_named || above.iter().any(reads)
}

/// A store through a pointer that may reach a value of this type.
fn store_to(function: &Function<'_>, inside: PieceId, spelling: &str) -> Option<String> {
    let written = |id: PieceId| match function.at(id).kind {
        CXCursor_BinaryOperator if matches!(function.operator(id), Some("=") | None) => {
            function.at(id).children.first().copied()
        }
        CXCursor_CompoundAssignOperator => function.at(id).children.first().copied(),
        CXCursor_UnaryOperator if matches!(function.prefix(id), Some("++" | "--") | None) => {
            function.at(id).children.first().copied()
        }
        _ => None,
    };
    let may_reach = |id: &PieceId| {
        let piece = function.at(function.bare(*id));
        let is_pointed_to = matches!(piece.kind, CXCursor_UnaryOperator | CXCursor_ArraySubscriptExpr);
        let is_same =
            piece.ty.spelling == spelling || piece.ty.shape == Shape::Other && is_bytes(&piece.ty.spelling);
        is_pointed_to && is_same
    };
    let store = function.below(inside).into_iter().filter_map(written).find(may_reach)?;
    let text = super::expression::one_line(function.slice(store));
    Some(format!("the store to `{text}` may change where the loop reads"))
}

/// Types of bytes, by which any value may be written.
fn is_bytes(spelling: &str) -> bool {
    matches!(spelling, "char" | "signed char" | "unsigned char" | "std::byte")
}
