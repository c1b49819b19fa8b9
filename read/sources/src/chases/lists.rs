//! Loops that follow a pointer from one object to the next.

use super::expression::{Expression, one_line, written};
use super::flow::{Exit, Exits, Loop, conjuncts, evaluated, follows, ordering_call};
use super::insertion;
use super::syntax::{DeclId, Function, PieceId, Shape};
use super::variables::{Use, names_of, used, writes};
use clang_sys::*;
use lineup_model::chase::{Address, Ahead, Chase, Form};

/// The bytes of an object that lie on its first line for certain.
const FIRST_LINE: u64 = 64;

/// The list that a loop follows; `None` where it follows none.
pub(super) fn chase(function: &Function<'_>, one: &Loop) -> Option<Chase> {
    let (variable, steps) = stepped(function, one)?;
    let object = function.decls.get(&variable).and_then(|declared| declared.ty.record().map(str::to_owned));
    let outcome = ahead(function, one, variable, &steps);
    Some(Chase {
        form: Form::List,
        object,
        ahead: outcome,
        ..function.unknown_chase(function.at(one.piece).span.start)
    })
}

/// A pointer that the loop itself moves along a member, and the assignments that do so.
fn stepped(function: &Function<'_>, one: &Loop) -> Option<(DeclId, Vec<PieceId>)> {
    let assignments = function.below(one.piece).into_iter().filter(|id| {
        function.at(*id).kind == CXCursor_BinaryOperator
            && function.at(*id).ty.is_pointer()
            && one.is_nearest(function, *id)
            && !one.first.is_some_and(|first| function.is_below(*id, first))
    });
    let mut found: Option<(DeclId, Vec<PieceId>)> = None;
    for id in assignments {
        let [left, right] = function.at(id).children[..] else { continue };
        let left = function.bare(left);
        let Some(variable) =
            function.at(left).decl.filter(|_| function.at(left).kind == CXCursor_DeclRefExpr)
        else {
            continue;
        };
        if !(moves(function, right, variable) || saved(function, one, right, variable).is_some()) {
            continue;
        }
        match &mut found {
            Some((known, steps)) if *known == variable => steps.push(id),
            Some(_) => {}
            None => found = Some((variable, vec![id])),
        }
    }
    found
}

/// True of `p->next` and the like: a pointer of `p`'s type that is read from `p`'s object.
fn moves(function: &Function<'_>, value: PieceId, variable: DeclId) -> bool {
    let value = function.bare(value);
    let is_same =
        function.decls.get(&variable).is_some_and(|own| own.ty.spelling == function.at(value).ty.spelling);
    is_same && leads_from(function, value) == Some(variable)
}

/// The pointer variable from whose object a value is read: `p` of `p->links.next`.
fn leads_from(function: &Function<'_>, value: PieceId) -> Option<DeclId> {
    let value = function.bare(value);
    let piece = function.at(value);
    match piece.kind {
        CXCursor_MemberRefExpr => {
            let &object = piece.children.first()?;
            let inner = function.bare(object);
            match function.at(inner).kind {
                CXCursor_DeclRefExpr => {
                    function.at(inner).decl.filter(|_| function.at(object).ty.is_pointer())
                }
                _ if function.at(object).ty.is_pointer() => None,
                _ => leads_from(function, inner),
            }
        }
        CXCursor_ArraySubscriptExpr => {
            // An array in the object, and not memory that a pointer in it leads to.
            let &list = piece.children.first()?;
            let is_inside = function.at(function.bare(list)).ty.shape == Shape::Array;
            leads_from(function, list).filter(|_| is_inside)
        }
        _ => None,
    }
}

/// For a step `p = next`: the statement of the body that saved `next = p->next`, and the variable.
fn saved(function: &Function<'_>, one: &Loop, value: PieceId, variable: DeclId) -> Option<(PieceId, DeclId)> {
    let value = function.bare(value);
    let next = function.at(value).decl.filter(|_| function.at(value).kind == CXCursor_DeclRefExpr)?;
    if next == variable {
        return None;
    }
    let saves = |id: &PieceId| {
        let piece = function.at(*id);
        let value = match piece.kind {
            CXCursor_BinaryOperator => {
                let [left, right] = piece.children[..] else { return false };
                let is_next = function.at(function.bare(left)).decl == Some(next);
                (is_next && piece.ty.is_pointer()).then_some(right)
            }
            CXCursor_VarDecl if piece.decl == Some(next) => piece.children.last().copied(),
            _ => None,
        };
        value.is_some_and(|value| moves(function, value, variable))
    };
    let found = one.statements(function).into_iter().find(|statement| {
        let piece = function.at(*statement);
        saves(statement) || piece.kind == CXCursor_DeclStmt && piece.children.iter().any(saves)
    })?;
    Some((found, next))
}

fn ahead(function: &Function<'_>, one: &Loop, variable: DeclId, steps: &[PieceId]) -> Result<Ahead, String> {
    let &[step] = steps else {
        return Err("the next object depends on the present one's values".into());
    };
    let pointee = function.decls.get(&variable).and_then(|declared| declared.ty.to.clone());
    if pointee.is_none_or(|pointee| pointee.is_guarded) {
        return Err("objects are volatile or atomic".into());
    }
    let all = writes(function, one.piece, variable)?;
    let begins = one.first.map(|first| function.below(first)).unwrap_or_default();
    let others = all.iter().filter(|write| **write != step && !begins.contains(write));
    if let Some(other) = others.copied().next() {
        let text = one_line(function.slice(other));
        return Err(format!("`{text}` moves the pointer as well"));
    }
    let [_, value] = function.at(step).children[..] else { return Err("the step is not understood".into()) };
    let insert = if let Some((statement, next)) = saved(function, one, value, variable) {
        return saved_ahead(function, one, (statement, next), variable);
    } else {
        Place::of(function, one, step)?
    };
    let pointer = written(function, value, None)?;
    insert.ahead(function, one, (variable, step), &pointer)
}

/// The loop saves the next pointer before it works: it is fetched ahead as soon as it is known.
fn saved_ahead(
    function: &Function<'_>,
    one: &Loop,
    (statement, next): (PieceId, DeclId),
    variable: DeclId,
) -> Result<Ahead, String> {
    let all = writes(function, one.piece, next)?;
    if all.len() != 1 {
        return Err("the saved pointer is written at several places".into());
    }
    let statements = one.statements(function);
    if statements.last() == Some(&statement) {
        return Err("the next pointer is known at the end of a turn only".into());
    }
    if function.at(one.body).kind != CXCursor_CompoundStmt {
        return Err(NO_WORK.into());
    }
    let pointer = names_of(function, one.piece, next).first().map(|id| function.at(*id).name.clone());
    let insert = insertion::after(function, statement)?;
    let member = needed(function, one, variable);
    Ok(Ahead {
        address: Address::Pointer { pointer: pointer.unwrap_or_default(), member },
        insert,
        needs_whole_object: false,
        file_bytes: function.text.len(),
    })
}

const NO_WORK: &str = "the loop does nothing between one object and the next";

/// The place of a prefetch in a loop whose step reads `p->next`.
enum Place {
    /// Before this statement of the body, counted from 0, in a turn that began with the present object.
    Body(usize),
    /// Behind the step, where the pointer has its next value.
    Behind(PieceId),
}

impl Place {
    fn of(function: &Function<'_>, one: &Loop, step: PieceId) -> Result<Place, String> {
        let statements = one.statements(function);
        let is_in_body = function.is_below(step, one.body);
        let is_work = |statement: &&PieceId| {
            !function.is_below(step, **statement) && function.at(**statement).kind != CXCursor_NullStmt
        };
        if !statements.iter().any(|statement| is_work(&statement)) {
            return Err(NO_WORK.into());
        }
        if is_in_body {
            let at = statements.iter().position(|statement| *statement == step);
            let Some(at) = at else {
                return Err("the step to the next object is one of several ways".into());
            };
            let behind = statements.get(at + 1..).unwrap_or_default();
            if behind.iter().any(|statement| is_work(&statement)) {
                return Ok(Place::Behind(step));
            }
        }
        let clean =
            statements.iter().take_while(|statement| function.at(**statement).kind == CXCursor_DeclStmt);
        Ok(Place::Body(clean.count()))
    }

    fn ahead(
        self,
        function: &Function<'_>,
        one: &Loop,
        (variable, step): (DeclId, PieceId),
        pointer: &Expression,
    ) -> Result<Ahead, String> {
        let member = needed(function, one, variable);
        let file_bytes = function.text.len();
        let own = names_of(function, one.piece, variable).first().map(|id| function.at(*id).name.clone());
        let leading = match self {
            Place::Behind(step) => {
                return Ok(Ahead {
                    address: Address::Pointer { pointer: own.unwrap_or_default(), member },
                    insert: insertion::after(function, step)?,
                    needs_whole_object: false,
                    file_bytes,
                });
            }
            Place::Body(leading) => leading,
        };
        for &decl in pointer.variables.iter().filter(|decl| **decl != variable) {
            if !writes(function, one.piece, decl)?.is_empty() {
                return Err(format!("`{}` reads a variable that the loop writes", pointer.text));
            }
        }
        let is_changed = |member: &&DeclId| {
            let names = names_of(function, one.piece, **member);
            names.into_iter().any(|id| used(function, element_of(function, id)) != Use::Read)
        };
        if pointer.members.iter().any(|member| is_changed(&member)) {
            return Err("the loop changes the pointers that it follows".into());
        }
        let mut exits = Exits::of(function);
        let known = Known::of(function, (one, variable), &mut exits);
        let Some(known) = known else {
            return Err("no turn surely uses its object before it may end".into());
        };
        let leading = clean_declarations(function, one, (leading, variable), pointer, &mut exits);
        if let Some(call) = ordering_call(function, one.piece) {
            return Err(format!(
                "`{call}` may order the accesses of threads, and the pointer would be read before"
            ));
        }
        let is_in_body = function.is_below(step, one.body);
        let skips = |exit: &Exit| is_in_body || function.at(exit.at).kind != CXCursor_ContinueStmt;
        let may_skip = exits.below(one.body).iter().any(skips);
        let needs_whole_object = may_skip && !known.covers(function, step);
        if needs_whole_object && pointer.text.contains('[') {
            return Err("a turn may end before it reads the pointer, which lies in an array".into());
        }
        let insert = match leading {
            0 => insertion::at_beginning(function, one)?,
            several => insertion::after(function, one.statements(function)[several - 1])?,
        };
        let address = Address::Pointer { pointer: pointer.text.clone(), member };
        Ok(Ahead { address, insert, needs_whole_object, file_bytes })
    }
}

/// The declarations at the body's beginning that a prefetch may stand behind.
fn clean_declarations(
    function: &Function<'_>,
    one: &Loop,
    (leading, variable): (usize, DeclId),
    pointer: &Expression,
    exits: &mut Exits<'_, '_>,
) -> usize {
    let names: Vec<String> = pointer
        .variables
        .iter()
        .chain([&variable])
        .filter_map(|decl| {
            names_of(function, one.piece, *decl).first().map(|id| function.at(*id).name.clone())
        })
        .collect();
    let statements = one.statements(function);
    let is_clean = |statement: &&PieceId| {
        let below = function.below(**statement);
        let hides = below
            .iter()
            .any(|id| function.at(*id).kind == CXCursor_VarDecl && names.contains(&function.at(*id).name));
        let writes = below.iter().any(|id| {
            function.at(*id).decl == Some(variable) && matches!(used(function, *id), Use::Write(_))
        });
        let leaves = !exits.below(**statement).is_empty();
        !hides && !writes && !leaves
    };
    statements.iter().take(leading).take_while(is_clean).count()
}

/// A member of the present object that a turn reads for certain, at the place of the prefetch or right behind it.
struct Known {
    members: Vec<PieceId>,
}

impl Known {
    fn of(
        function: &Function<'_>,
        (one, variable): (&Loop, DeclId),
        exits: &mut Exits<'_, '_>,
    ) -> Option<Known> {
        let mut members = Vec::new();
        if let Some(condition) = one.condition.filter(|_| one.tests_first) {
            let is_written =
                names_of(function, condition, variable).into_iter().any(|id| used(function, id) != Use::Read);
            // A call may end the object that was used before it.
            if !is_written && exits.below(condition).is_empty() {
                let mut found = Vec::new();
                for part in conjuncts(function, condition) {
                    evaluated(function, part, &mut found);
                }
                members.extend(found.into_iter().filter(|id| is_use(function, *id, variable)));
            }
        }
        for statement in one.statements(function) {
            let mut found = Vec::new();
            evaluated(function, statement, &mut found);
            let ways_out = exits.below(statement);
            let writes: Vec<PieceId> = names_of(function, statement, variable)
                .into_iter()
                .filter_map(|id| match used(function, id) {
                    Use::Write(at) => Some(at),
                    Use::Lent => Some(id),
                    Use::Read => None,
                })
                .collect();
            let is_first = |id: &PieceId| {
                let after = |other: PieceId| function.is_below(*id, other) || follows(function, other, *id);
                ways_out.iter().all(|exit| after(exit.at)) && writes.iter().all(|write| after(*write))
            };
            let uses = found.into_iter().filter(|id| is_use(function, *id, variable));
            members.extend(uses.filter(is_first));
            if members.is_empty() {
                members.extend(in_both_branches(function, statement, variable, exits));
            }
            if !ways_out.is_empty() || !writes.is_empty() {
                break;
            }
        }
        (!members.is_empty()).then_some(Known { members })
    }

    /// True where the bytes of the step's pointer do not lie behind a member that is read.
    fn covers(&self, function: &Function<'_>, step: PieceId) -> bool {
        let [_, value] = function.at(step).children[..] else { return false };
        let end = |id: PieceId| outermost_offset(function, id);
        let (step, text) =
            (end(function.bare(value)), written(function, value, None).map(|value| value.text));
        let is_read = |member: PieceId| {
            written(function, member, None).is_ok_and(|member| text.as_ref() == Ok(&member.text))
        };
        let reaches = |member: PieceId| step.zip(end(member)).is_some_and(|(step, known)| step <= known);
        self.members.iter().any(|member| reaches(*member) || is_read(*member))
    }
}

/// A use of the object as the first thing in both branches of an `if` whose condition does nothing else: the one whose
/// member lies nearer to the object's beginning.
fn in_both_branches(
    function: &Function<'_>,
    statement: PieceId,
    variable: DeclId,
    exits: &mut Exits<'_, '_>,
) -> Option<PieceId> {
    let [condition, one, other] = function.at(statement).children[..] else { return None };
    let is_if = function.at(statement).kind == CXCursor_IfStmt;
    let is_written =
        names_of(function, condition, variable).into_iter().any(|id| used(function, id) != Use::Read);
    if !is_if || is_written || !exits.below(condition).is_empty() {
        return None;
    }
    let mut first = |branch: PieceId| {
        let start = match function.at(branch).kind {
            CXCursor_CompoundStmt => {
                let plain = function.at(branch).children.iter().copied();
                plain.into_iter().find(|one| !is_plain_declaration(function, *one))?
            }
            _ => branch,
        };
        let is_changed =
            names_of(function, start, variable).into_iter().any(|id| used(function, id) != Use::Read);
        if is_changed || !exits.below(start).is_empty() {
            return None;
        }
        let mut found = Vec::new();
        evaluated(function, start, &mut found);
        found.into_iter().find(|id| is_use(function, *id, variable))
    };
    let both = [first(one)?, first(other)?];
    both.into_iter().min_by_key(|id| outermost_offset(function, *id))
}

/// A declaration without a value.
fn is_plain_declaration(function: &Function<'_>, id: PieceId) -> bool {
    let mut found = Vec::new();
    evaluated(function, id, &mut found);
    function.at(id).kind == CXCursor_DeclStmt && found.is_empty()
}

/// The offset of a member in the object that a pointer leads to; `None` for members of members.
fn outermost_offset(function: &Function<'_>, id: PieceId) -> Option<u64> {
    let piece = function.at(id);
    let &object = piece.children.first().filter(|_| piece.kind == CXCursor_MemberRefExpr)?;
    function.at(object).ty.is_pointer().then(|| function.declaration(id)?.offset).flatten()
}

/// The element of a member that is an array: `p->m[i]` of `p->m`.
fn element_of(function: &Function<'_>, mut id: PieceId) -> PieceId {
    while function.at(id).ty.shape == Shape::Array {
        let outer = function
            .above(id)
            .find(|above| !matches!(function.at(*above).kind, CXCursor_UnexposedExpr | CXCursor_ParenExpr));
        match outer.filter(|outer| function.at(*outer).kind == CXCursor_ArraySubscriptExpr) {
            Some(outer)
                if function.at(outer).children.first().is_some_and(|list| function.is_below(id, *list)) =>
            {
                id = outer;
            }
            _ => return id,
        }
    }
    id
}

/// True of `p->m` whose value is read or written.
fn is_use(function: &Function<'_>, id: PieceId, variable: DeclId) -> bool {
    let piece = function.at(id);
    let is_part = matches!(piece.kind, CXCursor_MemberRefExpr | CXCursor_ArraySubscriptExpr);
    if !is_part || leads_from(function, id) != Some(variable) {
        return false;
    }
    function.is_read(id) || matches!(used(function, id), Use::Write(_))
}

/// The member of the object that a turn uses first, where it lies behind the first line.
fn needed(function: &Function<'_>, one: &Loop, variable: DeclId) -> Option<String> {
    let of_object = |id: &PieceId| {
        let offset = outermost_offset(function, *id);
        offset.filter(|_| is_use(function, *id, variable))
    };
    let uses: Vec<PieceId> =
        function.below(one.piece).into_iter().filter(|id| of_object(id).is_some()).collect();
    let is_near = uses.iter().any(|id| of_object(id).is_some_and(|offset| offset < FIRST_LINE));
    let first = uses.first().filter(|_| !is_near)?;
    Some(function.at(*first).name.clone())
}
