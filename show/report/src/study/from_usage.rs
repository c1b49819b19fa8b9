//! From the regions' accesses to the bytes of objects and variables to line maps.

use super::line_map::{LineMap, MemberUse, ObjectLines, Owner, RegionUse, Sharing};
use lineup_model::figure::{share, whole};
use lineup_model::line::LineSize;
use lineup_model::types::{AggregateKind, Member, MemberRole, TypeId, Types};
use lineup_model::usage::{self, ByteUse, TypeUse, VariableRef, VariableUse};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Nested members deeper than this are taken whole.
const MOST_NESTING: u32 = 8;

/// The most members that are split further: the rest are taken whole.
const MOST_MEMBERS: usize = 4096;

/// The regions' use of one type's objects, or of variables, in one variant of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct ObjectUse {
    /// The lines.
    pub lines: ObjectLines,
    /// Objects used per call by region; empty for variables.
    pub objects_per_call: Vec<(usize, f64)>,
    /// Notes on the offsets at which objects start in their lines.
    pub notes: Vec<String>,
}

/// One region's accesses to some bytes, over all its calls.
struct Counted {
    region: usize,
    calls: u64,
    runs: BTreeMap<(u64, u64), (u64, u64)>,
}

/// A member that is not split any further.
struct Leaf {
    name: String,
    offset: u64,
    size_bytes: u64,
}

impl ObjectUse {
    /// The use of a type's objects. `uses` and `sharing` may hold other types' too. `None` when the type is
    /// not a complete aggregate.
    pub fn of_type(
        types: &Types,
        id: TypeId,
        uses: &[TypeUse],
        sharing: &[usage::Sharing],
        line: LineSize,
    ) -> Option<Self> {
        types.aggregate(id)?;
        let size_bytes = types.size_bytes(id)?;
        let uses: Vec<&TypeUse> = uses.iter().filter(|one| one.ty == id).collect();
        let runs = |one: &TypeUse| sum(one.patterns.iter().flat_map(|pattern| &pattern.bytes), 0);
        let counted: Vec<Counted> = uses
            .iter()
            .map(|one| Counted { region: usize::from(one.region.0), calls: one.calls, runs: runs(one) })
            .collect();
        let mut leaves = Vec::new();
        expand(types, id, "", 0, &touched(&counted), 0, &mut leaves);
        let sharing: Vec<(u64, &usage::Sharing)> = sharing
            .iter()
            .filter(|one| one.owner == usage::Owner::Type(id))
            .map(|one| (one.offset, one))
            .collect();
        let (start, notes) = start_in_line(&uses, line);
        let lines = ObjectLines::new(size_bytes, width(line), start, &members(leaves, &counted, &sharing));
        let objects_per_call =
            uses.iter().map(|one| (usize::from(one.region.0), objects_per_call(one))).collect();
        Some(Self { lines, objects_per_call, notes })
    }

    /// The use of variables at the linker's addresses. `neighbours` are other variables of the program: those that lie
    /// on touched lines are shown as cold.
    pub fn of_variables(
        types: &Types,
        uses: &[VariableUse],
        variable_types: &[(VariableRef, TypeId)],
        neighbours: &[VariableRef],
        sharing: &[usage::Sharing],
        line: LineSize,
    ) -> Self {
        let counted: Vec<Counted> = uses.iter().map(count_variables).collect();
        let touched = touched(&counted);
        let used: BTreeSet<&VariableRef> = uses
            .iter()
            .flat_map(|one| &one.patterns)
            .flat_map(|pattern| pattern.variables.iter().map(|(variable, _)| variable))
            .collect();
        let mut leaves = Vec::new();
        for variable in used.iter().copied().chain(neighbours.iter().filter(|one| !used.contains(one))) {
            let ty = variable_types.iter().find(|(known, _)| known == variable).map(|(_, ty)| *ty);
            let is_struct = ty.filter(|ty| used.contains(variable) && is_struct(types, *ty));
            match is_struct {
                Some(ty) => expand(types, ty, &variable.name, variable.address, &touched, 0, &mut leaves),
                None => leaves.push(Leaf {
                    name: variable.name.clone(),
                    offset: variable.address,
                    size_bytes: variable.size_bytes,
                }),
            }
        }
        let shared = |one| match one {
            &usage::Sharing { owner: usage::Owner::Variable(ref variable), offset, .. } => {
                Some((variable.address.checked_add(offset)?, one))
            }
            _ => None,
        };
        let sharing: Vec<(u64, &usage::Sharing)> = sharing.iter().filter_map(shared).collect();
        let lines = ObjectLines::at_addresses(width(line), &members(leaves, &counted, &sharing));
        Self { lines, objects_per_call: Vec::new(), notes: Vec::new() }
    }
}

impl LineMap {
    /// The map of the uses before, with those after the change.
    pub fn new(owner: Owner, line: LineSize, before: ObjectUse, after: Option<ObjectUse>) -> Self {
        let mut notes = before.notes;
        let changed =
            after.as_ref().map_or(&[][..], |after| &after.notes).iter().filter(|note| !notes.contains(note));
        let changed: Vec<String> = changed.map(|note| format!("After the change: {note}")).collect();
        notes.extend(changed);
        Self {
            owner,
            line_bytes: width(line),
            objects_per_call: before.objects_per_call,
            notes,
            before: before.lines,
            after: after.map(|after| after.lines),
        }
    }
}

/// Line sizes end at 4096 bytes.
fn width(line: LineSize) -> u32 {
    u32::try_from(line.bytes()).unwrap_or(u32::MAX)
}

fn sum<'a>(runs: impl Iterator<Item = &'a ByteUse>, base: u64) -> BTreeMap<(u64, u64), (u64, u64)> {
    let mut summed: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
    for run in runs {
        let (loads, stores) = summed.entry((base.saturating_add(run.offset), run.size_bytes)).or_default();
        *loads = loads.saturating_add(run.loads);
        *stores = stores.saturating_add(run.stores);
    }
    summed
}

fn count_variables(one: &VariableUse) -> Counted {
    let mut runs: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
    for (variable, bytes) in one.patterns.iter().flat_map(|pattern| &pattern.variables) {
        for (run, (loads, stores)) in sum(bytes.iter(), variable.address) {
            let total = runs.entry(run).or_default();
            *total = (total.0.saturating_add(loads), total.1.saturating_add(stores));
        }
    }
    Counted { region: usize::from(one.region.0), calls: one.calls, runs }
}

fn touched(counted: &[Counted]) -> Vec<Range<u64>> {
    let runs = counted.iter().flat_map(|one| one.runs.keys());
    runs.map(|(offset, size)| *offset..offset.saturating_add(*size)).collect()
}

fn objects_per_call(one: &TypeUse) -> f64 {
    let objects: u64 = one.patterns.iter().map(|pattern| pattern.occurrences).sum();
    if one.calls == 0 { f64::NAN } else { objects as f64 / one.calls as f64 }
}

/// The place in a line where most objects start, and a sentence about all.
fn start_in_line(uses: &[&TypeUse], line: LineSize) -> (u32, Vec<String>) {
    let mut starts: BTreeMap<u64, u64> = BTreeMap::new();
    for pattern in uses.iter().flat_map(|one| &one.patterns) {
        *starts.entry(u64::from(pattern.base_in_line) % line.bytes()).or_default() += pattern.occurrences;
    }
    let all: u64 = starts.values().sum();
    let Some((start, most)) = starts.iter().max_by_key(|(start, count)| (**count, u64::MAX - **start)) else {
        return (0, Vec::new());
    };
    let note = match (starts.len(), *start) {
        (1, 0) => "Every object used starts on a line.".to_owned(),
        (1, start) => format!("Every object used starts at byte {start} of a line."),
        (places, start) => format!(
            "Objects start at {} different places in their lines; shown is byte {start}, where {} of those used start.",
            whole(places as u64),
            share(*most as f64 / all.max(1) as f64)
        ),
    };
    // Below the line size, which a u32 holds.
    (u32::try_from(*start).unwrap_or(0), vec![note])
}

/// True when a type's members can be shown instead of it.
fn is_struct(types: &Types, id: TypeId) -> bool {
    types.aggregate(id).is_some_and(|(_, aggregate)| {
        matches!(aggregate.kind, AggregateKind::Struct | AggregateKind::Class) && !aggregate.is_declaration
    })
}

/// The members of an aggregate at an offset. Members that are aggregates are split where they are touched.
fn expand(
    types: &Types,
    id: TypeId,
    path: &str,
    base: u64,
    touched: &[Range<u64>],
    depth: u32,
    leaves: &mut Vec<Leaf>,
) {
    let Some((_, aggregate)) = types.aggregate(id) else { return };
    for member in &aggregate.members {
        let Some(offset_bits) = member.offset_bits else { continue };
        let Some(offset) = base.checked_add(offset_bits / 8) else { continue };
        let size_bytes = match member.bit_size {
            Some(bits) => (offset_bits % 8 + u64::from(bits)).div_ceil(8),
            None => types.size_bytes(member.ty).unwrap_or(0),
        };
        let is_touched =
            touched.iter().any(|span| span.start < offset.saturating_add(size_bytes) && offset < span.end);
        let is_open =
            is_open(types, member, is_touched) && depth < MOST_NESTING && leaves.len() < MOST_MEMBERS;
        let name = member_path(path, member);
        if is_open {
            expand(types, member.ty, &name, offset, touched, depth + 1, leaves);
        } else {
            let name = if name.is_empty() { "(unnamed)".to_owned() } else { name };
            leaves.push(Leaf { name, offset, size_bytes });
        }
    }
}

/// True when a member is shown as its parts: anonymous members and base classes always, structs when touched.
fn is_open(types: &Types, member: &Member, is_touched: bool) -> bool {
    match (&member.name, member.role) {
        (_, MemberRole::Variant(_) | MemberRole::Discriminant | MemberRole::VtablePointer) => false,
        (None, MemberRole::Field) => types.aggregate(member.ty).is_some(),
        (_, MemberRole::Base | MemberRole::VirtualBase) => is_struct(types, member.ty),
        _ => is_touched && is_struct(types, member.ty),
    }
}

/// The member's name after the path of its aggregate; anonymous members and base classes add nothing.
fn member_path(path: &str, member: &Member) -> String {
    match (member.name.as_deref(), member.role) {
        (Some(name), role) if !matches!(role, MemberRole::Base | MemberRole::VirtualBase) => match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        },
        _ => path.to_owned(),
    }
}

fn members(leaves: Vec<Leaf>, counted: &[Counted], sharing: &[(u64, &usage::Sharing)]) -> Vec<MemberUse> {
    leaves.into_iter().map(|leaf| member(leaf, counted, sharing)).collect()
}

fn member(leaf: Leaf, counted: &[Counted], sharing: &[(u64, &usage::Sharing)]) -> MemberUse {
    let range = leaf.offset..leaf.offset.saturating_add(leaf.size_bytes);
    let meets = |offset: u64, size: u64| offset < range.end && range.start < offset.saturating_add(size);
    let mut touched = Vec::new();
    let mut uses = Vec::new();
    for one in counted {
        let (mut loads, mut stores) = (0u64, 0u64);
        for ((offset, size), (l, s)) in one.runs.iter().filter(|((offset, size), _)| meets(*offset, *size)) {
            (loads, stores) = (loads.saturating_add(*l), stores.saturating_add(*s));
            touched.push(*offset..offset.saturating_add(*size));
        }
        if loads.max(stores) > 0 && one.calls > 0 {
            let per_call = |count: u64| count as f64 / one.calls as f64;
            let (loads_per_call, stores_per_call) = (per_call(loads), per_call(stores));
            uses.push(RegionUse { region: one.region, loads_per_call, stores_per_call });
        }
    }
    let shared: Vec<&usage::Sharing> =
        sharing.iter().filter(|(offset, one)| meets(*offset, one.size_bytes)).map(|(_, one)| *one).collect();
    MemberUse {
        name: leaf.name,
        offset: leaf.offset,
        size_bytes: leaf.size_bytes,
        touched,
        uses,
        sharing: joined(&shared),
    }
}

fn joined(shared: &[&usage::Sharing]) -> Option<Sharing> {
    let threads = |of: fn(&usage::Sharing) -> &BTreeSet<lineup_model::access::ThreadId>| -> Vec<u32> {
        shared
            .iter()
            .flat_map(|one| of(one))
            .map(|thread| thread.0)
            .collect::<BTreeSet<u32>>()
            .into_iter()
            .collect()
    };
    (!shared.is_empty()).then(|| Sharing {
        readers: threads(|one| &one.readers),
        writers: threads(|one| &one.writers),
        handovers: shared.iter().fold(0, |sum, one| sum.saturating_add(one.handovers)),
    })
}
