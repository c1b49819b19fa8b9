//! Constraints from debug info alone on members that must stay in place.

use crate::constraints::constraint::{Binding, Constraint};
use crate::layout::placement::{APART_BYTES, Field};
use crate::layout::subject::{Subject, member_name};
use crate::text::source_place::SourcePlace;
use crate::text::sources::Sources;
use lineup_model::types::{AggregateKind, Member, MemberRole, TypeId, TypeKind, Types};

/// The number of equal first members, by names and types, from which two types are used as each other.
const LEAST_SHARED: usize = 2;

/// Named members are compared this deep in anonymous ones, and types this deep in pointers.
const MOST_NESTING: u32 = 8;

/// A `volatile` member: the type lies over registers, or its layout is known to others. A type with pointers lies over
/// none: its volatile members, when they are few, are there for signals and threads.
pub(crate) fn volatile_member(subject: &Subject<'_>) -> Option<Binding> {
    let members = &subject.aggregate.members;
    let volatile = |member: &Member| is_volatile(subject.types, member.ty, 0);
    let index = members.iter().position(volatile)?;
    let count = members.iter().filter(|member| volatile(member)).count();
    if count * 2 <= members.len() && members.iter().any(|member| is_pointer(subject.types, member.ty, 0)) {
        return None;
    }
    Some(Binding::new(Constraint::Volatile).on([member_name(subject.aggregate, index)]))
}

/// The evidence that the volatile members of a type are no registers, and that no other program knows their layout. All
/// its objects lay in memory of the process alone, it had no other memory with data, and its sources ask for none.
///
/// # Errors
/// The missing evidence.
pub(crate) fn in_ordinary_memory(subject: &Subject<'_>, sources: &Sources) -> Result<String, String> {
    let memory = subject.usage.memory.as_ref().ok_or("nobody saw whose memory its objects lie in")?;
    if memory.shared_mappings > 0 {
        return Err("the program shares memory with others, or has mapped a device".to_owned());
    }
    let own = |id: &TypeId| subject.types.aggregate(*id).map(|(id, _)| id) == Some(subject.id);
    if !memory.private_types.iter().any(own) {
        return Err("its objects were not seen in the program's own memory alone".to_owned());
    }
    match maps_memory(sources) {
        Some((call, at)) => Err(format!("{call} at {at} may give it memory of a device or of others")),
        None => Ok("all objects seen lay in the program's own memory, it had no memory of devices or of others, and its \
                    sources ask for none"
            .to_owned()),
    }
}

/// Calls that give a program memory of a device or of others.
const MAPPING_CALLS: [&str; 10] = [
    "mmap",
    "mmap64",
    "shmat",
    "shm_open",
    "memfd_create",
    "remap_file_pages",
    "ioremap",
    "SYS_mmap",
    "__NR_mmap",
    "mapped_region",
];

/// The first place in the sources that names such a call.
fn maps_memory(sources: &Sources) -> Option<(&'static str, SourcePlace)> {
    MAPPING_CALLS.iter().find_map(|call| {
        sources.that_may_name(call).find_map(|(path, _)| {
            let lexed = sources.lexed(path)?;
            let at = (0..lexed.tokens.len()).find(|at| lexed.is_word(*at) && lexed.str(*at) == *call)?;
            let line = lexed.line_at(lexed.tokens.get(at)?.start());
            Some((*call, SourcePlace { path: path.to_owned(), line }))
        })
    })
}

fn is_pointer(types: &Types, id: TypeId, depth: u32) -> bool {
    match types.get(id).filter(|_| depth < MOST_NESTING).map(|ty| &ty.kind) {
        Some(TypeKind::Pointer(_)) => true,
        Some(TypeKind::Qualified(Some(target)) | TypeKind::Typedef(Some(target))) => {
            is_pointer(types, *target, depth + 1)
        }
        _ => false,
    }
}

/// Through typedefs, qualifiers and arrays, but not through pointers.
fn is_volatile(types: &Types, id: TypeId, depth: u32) -> bool {
    let Some(ty) = types.get(id).filter(|_| depth < MOST_NESTING) else { return false };
    match &ty.kind {
        TypeKind::Qualified(target) => {
            ty.name.as_deref() == Some("volatile")
                || target.is_some_and(|target| is_volatile(types, target, depth + 1))
        }
        TypeKind::Typedef(Some(target)) => is_volatile(types, *target, depth + 1),
        TypeKind::Array { element, .. } => is_volatile(types, *element, depth + 1),
        _ => false,
    }
}

/// The number of members that the type and another type both begin with, and that other type. Code may use objects of
/// one as the other.
pub(crate) fn shared_beginning(subject: &Subject<'_>) -> Option<(usize, Binding)> {
    let own = leading(subject.types, subject.id);
    let own_name = subject.types.get(subject.id)?.name.as_deref();
    let first = own.first()?.1;
    let mut best: Option<(usize, &str)> = None;
    for (id, ty) in subject.types.iter() {
        let TypeKind::Aggregate(other) = &ty.kind else { continue };
        let Some(name) = ty.name.as_deref().filter(|name| Some(*name) != own_name) else { continue };
        let may_begin_alike = other.members.first().is_some_and(|member| {
            member.name.as_deref().is_none_or(|name| name == first) && member.role == MemberRole::Field
        });
        if id == subject.id || !may_begin_alike || other.is_declaration || other.kind == AggregateKind::Union
        {
            continue;
        }
        let run = common(subject.types, &own, &leading(subject.types, id));
        if run >= LEAST_SHARED && best.is_none_or(|(most, _)| run > most) {
            best = Some((run, name));
        }
    }
    let (run, other) = best?;
    let members = own.get(run - 1)?.0 + 1;
    let names = (0..members).map(|field| member_name(subject.aggregate, field));
    Some((
        members,
        Binding::new(Constraint::SharedBeginning).on(names).because(format!("{other} begins alike")),
    ))
}

/// Named members in order, those of anonymous ones in their place, each with the index of the outermost member it is
/// in.
fn leading(types: &Types, id: TypeId) -> Vec<(usize, &str, TypeId)> {
    let Some((_, aggregate)) = types.aggregate(id) else { return Vec::new() };
    let mut all = Vec::new();
    for (index, member) in aggregate.members.iter().enumerate() {
        if member.role != MemberRole::Field || !flatten(types, index, member, 0, &mut all) {
            break;
        }
    }
    all
}

/// False when the members behind it cannot be compared.
fn flatten<'t>(
    types: &'t Types,
    index: usize,
    member: &'t lineup_model::types::Member,
    depth: u32,
    all: &mut Vec<(usize, &'t str, TypeId)>,
) -> bool {
    if let Some(name) = member.name.as_deref() {
        all.push((index, name, member.ty));
        return true;
    }
    let Some((_, inner)) = types.aggregate(member.ty).filter(|_| depth < MOST_NESTING) else { return false };
    // A union's first member stands for its bytes.
    let members = if inner.kind == AggregateKind::Union { 1 } else { inner.members.len() };
    inner.members.iter().take(members).all(|member| flatten(types, index, member, depth + 1, all))
}

fn common(types: &Types, a: &[(usize, &str, TypeId)], b: &[(usize, &str, TypeId)]) -> usize {
    let same = |((_, x, tx), (_, y, ty)): &(&(usize, &str, TypeId), &(usize, &str, TypeId))| {
        x == y && same_type(types, *tx, *ty, 0)
    };
    a.iter().zip(b).take_while(same).count()
}

/// Debug info may hold a type twice, so names and shapes are compared where ids differ.
fn same_type(types: &Types, a: TypeId, b: TypeId, depth: u32) -> bool {
    let (Some(a), Some(b)) = (types.strip(a), types.strip(b)) else { return false };
    let (Some(x), Some(y)) = (types.get(a), types.get(b)) else { return false };
    if a == b || depth >= MOST_NESTING {
        return true;
    }
    match (&x.kind, &y.kind) {
        (TypeKind::Pointer(p), TypeKind::Pointer(q)) => match (p, q) {
            (Some(p), Some(q)) => same_type(types, *p, *q, depth + 1),
            (None, None) => true,
            _ => false,
        },
        (TypeKind::Array { element: p, counts: m }, TypeKind::Array { element: q, counts: n }) => {
            m == n && same_type(types, *p, *q, depth + 1)
        }
        (TypeKind::Scalar(p), TypeKind::Scalar(q)) => p == q && x.size_bytes == y.size_bytes,
        _ => x.name.is_some() && x.name == y.name && x.size_bytes == y.size_bytes,
    }
}

/// Members that an alignment puts on lines of their own: the members before and after them were to stay apart.
pub(crate) fn starts_apart(subject: &Subject<'_>, fields: &[Field], field: usize) -> bool {
    let declared = subject.aggregate.members.get(field).and_then(|member| member.declared_align).unwrap_or(0);
    declared.max(fields.get(field).map_or(0, |field| field.align_bytes)) >= APART_BYTES
}

/// An array of many elements at the end, characters aside: it may be allocated shorter or longer than it is declared.
pub(crate) fn is_trailing_table(types: &Types, id: TypeId) -> bool {
    let Some(id) = types.strip(id) else { return false };
    match types.get(id).map(|ty| &ty.kind) {
        Some(TypeKind::Array { element, .. }) => types.size_bytes(*element).is_some_and(|size| size > 1),
        _ => false,
    }
}

/// Neighbours that stay where they are: the first may continue in the second, because it is an array of one element
/// before one of the same elements, or because it ends in an array without a size.
pub(crate) fn continued(subject: &Subject<'_>) -> Vec<Binding> {
    let types = subject.types;
    let members = &subject.aggregate.members;
    let names = |index: usize| [index, index + 1].map(|field| member_name(subject.aggregate, field));
    let mut found = Vec::new();
    for (index, pair) in members.windows(2).enumerate() {
        let [one, next] = pair else { continue };
        if pair.iter().any(|member| member.role != MemberRole::Field || member.name.is_none()) {
            continue;
        }
        if ends_open(types, one.ty, 0) {
            let binding = Binding::new(Constraint::FlexibleArrayLast).on(names(index));
            found.push(binding.because("the first ends in an array that may grow into the second"));
        } else if let (Some((own, Some(1))), Some((other, _))) =
            (elements(types, one.ty), elements(types, next.ty))
            && same_type(types, own, other, 0)
        {
            let binding = Binding::new(Constraint::MemorySpan).on(names(index));
            found.push(binding.because("an array of one element that may go on in the next"));
        }
    }
    found
}

/// An array's element and how many there are.
fn elements(types: &Types, id: TypeId) -> Option<(TypeId, Option<u64>)> {
    match &types.get(types.strip(id)?)?.kind {
        TypeKind::Array { element, counts } => Some((*element, counts.first().copied().flatten())),
        _ => None,
    }
}

/// A struct whose last member is an array without a size, or ends so itself.
fn ends_open(types: &Types, id: TypeId, depth: u32) -> bool {
    let Some((_, aggregate)) = types.aggregate(id).filter(|_| depth < MOST_NESTING) else { return false };
    let Some(last) = aggregate.members.last().filter(|_| aggregate.kind != AggregateKind::Union) else {
        return false;
    };
    match elements(types, last.ty) {
        Some((_, count)) => count.is_none_or(|count| count == 0),
        None => ends_open(types, last.ty, depth + 1),
    }
}
