//! Loops that read an index or a pointer from an array and use the object that it names.

use super::expression::{HOLE, one_line, written};
use super::flow::{Exits, Loop, evaluated};
use super::insertion;
use super::syntax::{DeclId, Function, PieceId, Shape};
use super::variables::{Use, change, names_of, used, writes};
use clang_sys::*;
use lineup_model::chase::{Address, Ahead, Bound, Chase, Form};
use std::collections::BTreeSet;

/// The bytes of an object that lie on its first line for certain.
const FIRST_LINE: u64 = 64;

/// Uses of objects that an array's elements name, one for each address.
pub(super) fn chases(function: &Function<'_>, one: &Loop) -> Vec<Chase> {
    let Some(counter) = counter(function, one) else { return Vec::new() };
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut found = Vec::new();
    for target in targets(function, one, counter) {
        let object = function.at(target.used).ty.record().map(str::to_owned);
        let object = object.or_else(|| variable_of(function, target.list?.0)).or_else(|| {
            let at = function.at(target.element);
            at.ty.record().map(str::to_owned).filter(|_| target.list.is_none())
        });
        let outcome = ahead(function, one, counter, &target);
        let key = match &outcome {
            Ok(Ahead { address: Address::Element { before, after, .. }, .. }) => {
                format!("{before}{HOLE}{after}")
            }
            Ok(_) => continue,
            Err(reason) => reason.clone(),
        };
        if seen.insert(key) {
            found.push(Chase {
                form: Form::Array,
                object,
                ahead: outcome,
                ..function.unknown_chase(function.at(one.piece).span.start)
            });
        }
    }
    found
}

/// Turns of the counter that every distance is a multiple of.
const STEPS: [&str; 3] = ["1", "2", "4"];

/// The variable that a `for` counts up, by a number that divides every distance.
fn counter(function: &Function<'_>, one: &Loop) -> Option<DeclId> {
    let step = one.step.filter(|_| function.at(one.piece).kind == CXCursor_ForStmt)?;
    let bare = function.bare(step);
    let piece = function.at(bare);
    let counts_up = match piece.kind {
        CXCursor_UnaryOperator => function.prefix(bare) == Some("++"),
        CXCursor_CompoundAssignOperator => {
            let text = function.slice(bare);
            text.split_once("+=").is_some_and(|(_, by)| STEPS.contains(&by.trim()))
        }
        _ => false,
    };
    let operand = function.bare(*piece.children.first()?);
    let variable = function.at(operand).decl.filter(|_| function.at(operand).kind == CXCursor_DeclRefExpr)?;
    (counts_up && function.at(operand).ty.is_integer()).then_some(variable)
}

/// Operations between a value and the index that is worked out from it, at most.
const MOST_ABOVE: usize = 12;

/// A use of an object that an element of an array names.
struct Target {
    /// The element's value: `b[i]`, `a[i].p`.
    element: PieceId,
    /// The node that is used: `x[b[i]]`, or `*a[i]` and `a[i]->m`.
    used: PieceId,
    /// `x[…]` with the place of the index in it; `None` where the element is a pointer.
    list: Option<(PieceId, PieceId)>,
    /// A member far from the object's beginning.
    member: Option<String>,
}

fn targets(function: &Function<'_>, one: &Loop, counter: DeclId) -> Vec<Target> {
    let mut found = Vec::new();
    let subscripts = function.below(one.body).into_iter().filter(|id| {
        one.is_nearest(function, *id)
            && index_of(function, *id).is_some_and(|index| names(function, index, counter))
    });
    for subscript in subscripts {
        let element = value(function, subscript);
        if !function.is_read(element) {
            continue;
        }
        uses_of(function, element, element, &mut found);
        let Some((variable, is_all)) = kept_in(function, one, element) else { continue };
        for name in names_of(function, one.body, variable) {
            if used(function, name) == Use::Read && (is_all || function.at(name).ty.is_pointer()) {
                uses_of(function, name, element, &mut found);
            }
        }
    }
    found
}

/// The index of `a[i]`, also of a list of the standard library.
fn index_of(function: &Function<'_>, id: PieceId) -> Option<PieceId> {
    let piece = function.at(id);
    match (piece.kind, &piece.children[..], &piece.arguments[..]) {
        (CXCursor_ArraySubscriptExpr, [_, index], _) => Some(*index),
        (CXCursor_CallExpr, _, [_, index]) if piece.name == "operator[]" => {
            written(function, id, None).is_ok().then_some(*index)
        }
        _ => None,
    }
}

fn names(function: &Function<'_>, id: PieceId, variable: DeclId) -> bool {
    let bare = function.bare(id);
    function.at(bare).kind == CXCursor_DeclRefExpr && function.at(bare).decl == Some(variable)
}

/// The member of an element that is read: `a[i].p`.
fn value(function: &Function<'_>, mut id: PieceId) -> PieceId {
    while let Some(above) = function.at(id).parent
        && function.at(above).kind == CXCursor_MemberRefExpr
        && !function.at(id).ty.is_pointer()
    {
        id = above;
    }
    id
}

/// The variable that an element is stored in, and whether nothing else in the loop writes it.
fn kept_in(function: &Function<'_>, one: &Loop, element: PieceId) -> Option<(DeclId, bool)> {
    let holder = function
        .above(element)
        .find(|above| !matches!(function.at(*above).kind, CXCursor_UnexposedExpr | CXCursor_ParenExpr))?;
    let piece = function.at(holder);
    let variable = match piece.kind {
        CXCursor_VarDecl => piece.decl?,
        CXCursor_BinaryOperator if function.operator(holder) == Some("=") => {
            let left = function.bare(*piece.children.first()?);
            function.at(left).decl.filter(|_| function.at(left).kind == CXCursor_DeclRefExpr)?
        }
        _ => return None,
    };
    let all = writes(function, one.piece, variable).ok()?;
    Some((variable, all == [holder]))
}

/// The uses of a name or value that `element` stands for.
fn uses_of(function: &Function<'_>, id: PieceId, element: PieceId, found: &mut Vec<Target>) {
    let outer = function
        .above(id)
        .find(|above| !matches!(function.at(*above).kind, CXCursor_UnexposedExpr | CXCursor_ParenExpr));
    let Some(outer) = outer else { return };
    let piece = function.at(outer);
    let far = |member: PieceId| {
        let offset = function.declaration(member).and_then(|declared| declared.offset);
        let name = function.at(member).name.clone();
        offset.filter(|offset| *offset >= FIRST_LINE).map(|_| name)
    };
    if function.at(id).ty.is_integer() {
        // The index may be worked out from the value: `table[b[i] & mask]`.
        let list = function
            .above(id)
            .take(MOST_ABOVE)
            .find(|above| index_of(function, *above).is_some_and(|index| function.is_below(id, index)));
        let Some(list) = list else { return };
        let piece = function.at(list);
        let above = piece
            .parent
            .filter(|above| function.at(*above).kind == CXCursor_MemberRefExpr && !piece.ty.is_pointer());
        // A class of C++ may have an `&` of its own; its members' values have none.
        let is_value = |member: &PieceId| function.at(*member).ty.shape != Shape::Record;
        let named = above.filter(is_value).filter(|_| function.is_cpp);
        let member = above.and_then(far).or_else(|| named.map(|member| function.at(member).name.clone()));
        found.push(Target { element, used: list, list: Some((list, id)), member });
        return;
    }
    if !function.at(id).ty.is_pointer() {
        return;
    }
    match piece.kind {
        CXCursor_MemberRefExpr => found.push(Target { element, used: outer, list: None, member: far(outer) }),
        CXCursor_UnaryOperator if function.prefix(outer) == Some("*") => {
            found.push(Target { element, used: outer, list: None, member: None });
        }
        CXCursor_ArraySubscriptExpr if function.at(function.bare(piece.children[0])).ty.is_pointer() => {
            found.push(Target { element, used: outer, list: None, member: None });
        }
        _ => {}
    }
}

fn ahead(function: &Function<'_>, one: &Loop, counter: DeclId, target: &Target) -> Result<Ahead, String> {
    let step = one.step.ok_or("the loop has no step")?;
    let first = one.first.map(|first| function.below(first)).unwrap_or_default();
    let all = writes(function, one.piece, counter)?;
    if all.iter().any(|write| !function.is_below(*write, step) && !first.contains(write)) {
        return Err("the loop writes its counter".into());
    }
    let bound = bound(function, one, counter)?;
    let mut exits = Exits::of(function);
    if let Some(exit) = exits.below(one.body).into_iter().next() {
        return Err(format!("elements ahead might not be read: {}", exit.reason));
    }
    let mut surely = Vec::new();
    for statement in one.statements(function) {
        evaluated(function, statement, &mut surely);
    }
    let own = written(function, target.element, None)?;
    let is_it = |id: &PieceId| {
        function.is_read(*id) && written(function, *id, None).is_ok_and(|one| one.text == own.text)
    };
    if !surely.iter().any(is_it) {
        let text = one_line(function.slice(target.element));
        return Err(format!("`{text}` is not read in every turn"));
    }
    let hole = counted(function, target.element, counter).ok_or("the element's index is not understood")?;
    let element = written(function, target.element, Some(hole))?;
    let (text, is_address, parts) = match target.list {
        None => (element.text.clone(), false, element.clone()),
        Some((list, index)) => {
            if !surely.contains(&list) {
                let text = one_line(function.slice(list));
                return Err(format!("`{text}` is not used in every turn"));
            }
            if function.is_cpp && target.member.is_none() && function.at(list).ty.shape == Shape::Record {
                return Err("the object's class may have an `&` of its own".into());
            }
            let whole = written(function, list, Some(index))?;
            let text = whole.text.replace(HOLE, &element.operand());
            let parts = whole.clone();
            let mut both = element.clone();
            both.variables.extend(parts.variables);
            both.members.extend(parts.members);
            (text, true, both)
        }
    };
    if text.matches(HOLE).count() != 1 {
        return Err("the element's index is used twice".into());
    }
    let (variables, members): (Vec<DeclId>, Vec<DeclId>) = (
        parts.variables.iter().chain(&bound.variables).copied().filter(|decl| *decl != counter).collect(),
        parts.members.iter().chain(&bound.members).copied().collect(),
    );
    if let Some(change) = change(function, one.piece, (&variables, &element_base(function, &members))) {
        return Err(change);
    }
    if let Some(write) = element_written(function, one, target.element) {
        return Err(format!("the loop writes `{write}`"));
    }
    let (before, after) = text.split_once(HOLE).unwrap_or_default();
    let names = names_of(function, one.piece, counter);
    let index = names.first().map(|id| function.at(*id).name.clone()).unwrap_or_default();
    hidden(function, one, &parts.variables)?;
    Ok(Ahead {
        address: Address::Element {
            before: before.to_owned(),
            after: after.to_owned(),
            is_address,
            member: target.member.clone(),
            index,
            bound: bound.bound,
        },
        insert: insertion::at_beginning(function, one)?,
        needs_whole_object: false,
        file_bytes: function.text.len(),
    })
}

/// The array variable of `x[…]`.
fn variable_of(function: &Function<'_>, list: PieceId) -> Option<String> {
    let base = function.bare(*function.at(list).children.first()?);
    let is_array =
        function.at(base).kind == CXCursor_DeclRefExpr && function.at(base).ty.shape == Shape::Array;
    is_array.then(|| function.at(base).name.clone())
}

/// The name of the counter in an element.
fn counted(function: &Function<'_>, element: PieceId, counter: DeclId) -> Option<PieceId> {
    let named = function.below(element).into_iter().filter(|id| function.at(*id).decl == Some(counter));
    let all: Vec<PieceId> = named.collect();
    match all[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// The members whose values are read on the way to elements: those of elements themselves may change.
fn element_base(function: &Function<'_>, members: &[DeclId]) -> Vec<DeclId> {
    let leads = |decl: &DeclId| {
        function.decls.get(decl).is_some_and(|declared| {
            declared.ty.is_pointer() || declared.ty.is_integer() || declared.ty.shape == Shape::Other
        })
    };
    members.iter().copied().filter(leads).collect()
}

/// A store of the loop to the array whose elements are read ahead.
fn element_written(function: &Function<'_>, one: &Loop, element: PieceId) -> Option<String> {
    let list_of = |id: PieceId| {
        let mut at = function.bare(id);
        while function.at(at).kind == CXCursor_MemberRefExpr && !function.at(at).children.is_empty() {
            at = function.bare(function.at(at).children[0]);
        }
        index_of(function, at).and_then(|_| {
            let piece = function.at(at);
            let list = piece.arguments.first().or(piece.children.first())?;
            written(function, *list, None).ok().map(|list| list.text)
        })
    };
    let own = list_of(element);
    let written_to = function.below(one.body).into_iter().filter_map(|id| {
        let piece = function.at(id);
        let is_store = match piece.kind {
            CXCursor_BinaryOperator => matches!(function.operator(id), Some("=") | None),
            CXCursor_CompoundAssignOperator => true,
            CXCursor_UnaryOperator => !matches!(function.prefix(id), Some("*" | "!" | "-" | "~" | "&")),
            _ => false,
        };
        piece.children.first().copied().filter(|_| is_store)
    });
    let mut same = written_to.filter(|id| own.is_some() && list_of(*id) == own);
    same.next().map(|id| one_line(function.slice(id)))
}

/// Names of an edit at the body's beginning must not be those of variables that the body's own header hides.
fn hidden(function: &Function<'_>, one: &Loop, variables: &[DeclId]) -> Result<(), String> {
    let declared =
        function.below(one.body).into_iter().filter(|id| function.at(*id).kind == CXCursor_VarDecl);
    let inner: Vec<DeclId> = declared.filter_map(|id| function.at(id).decl).collect();
    match variables.iter().any(|decl| inner.contains(decl)) {
        true => Err("the address needs a variable of the loop's body".into()),
        false => Ok(()),
    }
}

/// The test that an element ahead is one that the loop reads.
struct Limit {
    bound: Bound,
    variables: Vec<DeclId>,
    members: Vec<DeclId>,
}

fn bound(function: &Function<'_>, one: &Loop, counter: DeclId) -> Result<Limit, String> {
    let condition = one.condition.ok_or("the loop has no condition")?;
    let bare = function.bare(condition);
    let piece = function.at(bare);
    let [left, right] = piece.children[..] else {
        return Err("the loop's condition is no comparison of its counter".into());
    };
    let (is_inclusive, left, right) = match function.operator(bare) {
        Some("<") => (false, left, right),
        Some("<=") => (true, left, right),
        Some(">") => (false, right, left),
        Some(">=") => (true, right, left),
        _ => return Err("the loop's condition is no `<` of its counter alone".into()),
    };
    if !names(function, left, counter) {
        return Err("the loop's condition does not compare its counter".into());
    }
    let shape = |id: PieceId| function.at(id).ty.shape;
    let is_unsigned = match (shape(left), shape(right)) {
        (Shape::Integer { is_unsigned: one }, Shape::Integer { is_unsigned: other }) if one == other => one,
        _ => return Err("the loop's condition compares unlike numbers".into()),
    };
    let limit =
        written(function, right, None).map_err(|why| format!("the loop's bound is not plain: {why}"))?;
    if limit.variables.contains(&counter) {
        return Err("the loop's bound depends on its counter".into());
    }
    let bound = Bound { limit: limit.operand(), is_inclusive, is_unsigned };
    Ok(Limit { bound, variables: limit.variables, members: limit.members })
}
