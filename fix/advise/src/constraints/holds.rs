//! Constraints as limits of the search.

use crate::constraints::comment_rules::Lifts;
use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::meaning::{Effect, Hold};
use crate::constraints::review::Review;
use crate::constraints::source_scan::{self, ScanTarget};
use crate::constraints::{constructors, declared_alignment, paragraphs, required_alignment, shape_rules};
use crate::layout::demand::Model;
use crate::layout::spelling::{Spelling, bare, spelling};
use crate::layout::subject::{Subject, member_name};
use crate::options::Options;
use crate::search::score::Unit;
use crate::text::body::{Body, TextUnit};
use crate::text::body_parts::BodyPartKind;
use crate::text::source_place::SourcePlace;
use crate::text::sources::Sources;
use lineup_model::types::{AggregateKind, Language, MemberRole, TypeId, TypeKind, Types};
use std::collections::BTreeSet;
use std::ops::Range;

/// The constraints that hold members in place.
#[derive(Clone, Default, Debug)]
pub(crate) struct Holds {
    /// All constraints at work.
    pub(crate) bindings: Vec<Binding>,
    /// Constraints that forbid any change.
    pub(crate) forbidding: Vec<Binding>,
    first: bool,
    last: bool,
    /// The number of members at the start that stay unchanged.
    leading: usize,
    pinned: BTreeSet<String>,
    chained: BTreeSet<String>,
    /// Members that no other may move across.
    boundaries: BTreeSet<String>,
    /// Members, by index, whose type has lines of its own.
    own_lines: BTreeSet<usize>,
    /// Members, by index, whose type may ask for an alignment that debug info does not contain.
    aligned: BTreeSet<usize>,
    /// Members of which one may go on in the next.
    continued: BTreeSet<String>,
    /// The same, by the runs in which they stay side by side.
    side_by_side: Vec<Binding>,
    /// The user gave an order, and lifts the demands of the present one: a member takes its alignment along, and
    /// members that have to lie side by side may do so elsewhere.
    is_lifted: bool,
    /// The reason why volatile members are no registers; `None` if they may be.
    ordinary_memory: Option<String>,
}

/// `--keep`, types of Rust, unions and templates.
pub(crate) fn forbidden_outright(
    subject: &Subject<'_>,
    spelling: &Spelling,
    options: &Options,
) -> Result<(), Binding> {
    let is_kept = options
        .keeps
        .iter()
        .any(|keep| *keep == spelling.name || spelling.names.iter().any(|name| name == keep));
    if is_kept {
        return Err(Binding::new(Constraint::Kept));
    }
    match subject.aggregate.kind {
        _ if subject.types.get(subject.id).is_some_and(|ty| ty.language == Language::Rust) => {
            Err(Binding::new(Constraint::CompilersOrder).because("orders are written in C and C++ alone"))
        }
        AggregateKind::Union | AggregateKind::Variants => Err(Binding::new(Constraint::Union)),
        _ if spelling.name.contains('<') => {
            Err(Binding::new(Constraint::UnclearSource).because("a template's layout differs per instance"))
        }
        _ => Ok(()),
    }
}

/// The report of a use that a person has found harmless.
fn judged_by_hand(hold: &Hold, because: &str) -> Binding {
    let use_of = &hold.binding;
    let said = use_of.detail.as_deref().unwrap_or(use_of.constraint.describe());
    let at = use_of.at.clone();
    Binding { at, ..Binding::new(Constraint::Reviewed).because(format!("{said}; {because}")) }
}

/// A volatile member, or a pointer to a volatile object, that holds nothing in place.
fn ordinary(volatile: Binding, because: &str) -> Binding {
    Binding { constraint: Constraint::OrdinaryMemory, ..volatile }.because(because)
}

impl Holds {
    /// The constraints from the sources and debug info.
    pub(crate) fn from_source(
        subject: &Subject<'_>,
        spelling: &Spelling,
        sources: &Sources,
        members: &[&str],
    ) -> Self {
        let mut holds = Holds::default();
        let begins_as = begins_as(subject);
        let pointers = pointers(subject);
        let wanted =
            ScanTarget { names: &spelling.names, members, pointers: &pointers, begins_as: &begins_as };
        for binding in source_scan::scan(sources, &wanted) {
            match binding.constraint {
                Constraint::FlexibleArrayLast => holds.last = true,
                Constraint::FirstMemberIsObject => holds.first = true,
                Constraint::AssertedOffset => holds.pinned.extend(binding.names.iter().cloned()),
                _ => holds.forbidding.push(binding.clone()),
            }
            holds.bindings.push(binding);
        }
        holds.add_recorded(subject);
        holds.add_volatile(subject, sources);
        if spelling.declared_at.is_none() {
            holds.own_lines = declared_alignment::members(subject, sources);
            holds.aligned = declared_alignment::aligned(subject, sources);
        }
        holds
    }

    /// Adds the constraints from the recording and the layout.
    fn add_recorded(&mut self, subject: &Subject<'_>) {
        let used_as: BTreeSet<TypeId> =
            subject.uses.iter().flat_map(|used| used.used_as.iter().copied()).collect();
        let others =
            used_as.iter().filter(|&&id| subject.types.aggregate(id).map(|(id, _)| id) != Some(subject.id));
        let others: Vec<String> =
            others.filter_map(|&id| Some(subject.types.get(id)?.name.as_deref()?.to_string())).collect();
        if !others.is_empty() && !self.first {
            self.first = true;
            let binding =
                Binding::new(Constraint::FirstMemberIsObject).on([member_name(subject.aggregate, 0)]);
            self.bindings.push(binding.because(format!("seen used as {}", others.join(", "))));
        }
        if let Some((members, binding)) = shape_rules::shared_beginning(subject) {
            self.leading = members;
            self.bindings.push(binding);
        }
        for binding in shape_rules::continued(subject) {
            self.keep_side_by_side(&binding);
            self.bindings.push(binding);
        }
        for binding in required_alignment::asked(subject) {
            self.pinned.extend(binding.names.iter().cloned());
            self.bindings.push(binding);
        }
        let Some(last) = subject.aggregate.members.last() else { return };
        let is_table = shape_rules::is_trailing_table(subject.types, last.ty);
        if is_table || is_trailing_array(subject.types, last.ty, 0) {
            self.last = true;
            let name = member_name(subject.aggregate, subject.aggregate.members.len() - 1);
            self.bindings.push(Binding::new(Constraint::FlexibleArrayLast).on([name]));
        }
    }

    /// Adds the rules of reviewers that hold members in place.
    pub(crate) fn add_review(&mut self, review: &Review) {
        self.first |= review.keeps_first;
        self.bindings.extend(review.bindings.iter().cloned());
    }

    fn keep_side_by_side(&mut self, binding: &Binding) {
        self.continued.extend(binding.names.iter().cloned());
        self.side_by_side.push(binding.clone());
    }

    /// Runs of members that stay side by side.
    pub(crate) fn side_by_side(&self) -> &[Binding] {
        &self.side_by_side
    }

    /// Volatile members: registers do not move, but data that only threads or signal handlers look at may.
    fn add_volatile(&mut self, subject: &Subject<'_>, sources: &Sources) {
        let memory = shape_rules::in_ordinary_memory(subject, sources);
        self.ordinary_memory = memory.as_ref().ok().cloned();
        let Some(binding) = shape_rules::volatile_member(subject) else { return };
        match memory {
            Ok(because) => self.bindings.push(ordinary(binding, &because)),
            Err(because) => {
                let binding = binding.because(because);
                self.forbidding.push(binding.clone());
                self.bindings.push(binding);
            }
        }
    }

    /// Adds the constraints from a compiler's view of the sources.
    pub(crate) fn add_meaning(&mut self, spelling: &Spelling, path: &str, options: &Options) {
        let mut names = spelling.names.clone();
        names.extend([bare(&spelling.name).to_string(), spelling.name.clone()]);
        self.forbidding.extend(options.meaning.unchecked(&names));
        for hold in options.meaning.holds(&names, path) {
            if let Some(reviewed) = options.meaning.review(&names, hold) {
                self.bindings.push(judged_by_hand(hold, &reviewed.because));
                continue;
            }
            let is_volatile = hold.binding.constraint == Constraint::Volatile;
            if let Some(because) = self.ordinary_memory.as_ref().filter(|_| is_volatile) {
                self.bindings.push(ordinary(hold.binding.clone(), because));
                continue;
            }
            let held = hold.binding.names.iter().cloned();
            match hold.effect {
                Effect::Forbid => self.forbidding.push(hold.binding.clone()),
                Effect::First => self.first = true,
                Effect::Last => self.last = true,
                Effect::Keep => self.pinned.extend(held),
                Effect::Adjacent => self.keep_side_by_side(&hold.binding),
                Effect::Boundary => self.boundaries.extend(held),
                Effect::Relative => self.chained.extend(held),
                Effect::Named | Effect::Exchanged => continue,
            }
            self.bindings.push(hold.binding.clone());
        }
        self.leave_to_compiler(options.meaning.holds(&names, path));
    }

    /// If a compiler gives the members at an offset, the text's constraint that the offset may be any member's is
    /// dropped.
    fn leave_to_compiler<'m>(&mut self, holds: impl Iterator<Item = &'m Hold>) {
        let holds: Vec<&Hold> = holds.collect();
        let measures = |hold: &&&Hold| matches!(hold.effect, Effect::Boundary | Effect::Keep | Effect::Last);
        let places: BTreeSet<_> =
            holds.iter().filter(measures).filter_map(|hold| hold.binding.at.clone()).collect();
        let is_answered = |binding: &Binding| {
            matches!(binding.constraint, Constraint::MemorySpan | Constraint::Offsetof)
                && binding.names.is_empty()
                && binding.at.as_ref().is_some_and(|at| places.contains(at))
                && !holds.iter().any(|hold| hold.binding == *binding)
        };
        self.forbidding.retain(|binding| !is_answered(binding));
        self.bindings.retain(|binding| !is_answered(binding));
    }

    /// The way values by position that the compiler knows follow an order; `None` when it knows of none. If one list
    /// can name no members, the values of all lists change places.
    pub(crate) fn by_position(&self, spelling: &Spelling, path: &str, options: &Options) -> Option<Effect> {
        let mut names = spelling.names.clone();
        names.push(bare(&spelling.name).to_string());
        let effects = options.meaning.holds(&names, path).map(|hold| hold.effect);
        let known: Vec<Effect> =
            effects.filter(|effect| matches!(effect, Effect::Named | Effect::Exchanged)).collect();
        known.iter().copied().find(|effect| *effect == Effect::Exchanged).or(known.first().copied())
    }

    /// Values by position of which the compiler knows, and which the text does not show: no edit can name the members
    /// there or reorder the values, so that they keep their offsets.
    pub(crate) fn add_unnamed(
        &mut self,
        spelling: &Spelling,
        path: &str,
        options: &Options,
        lists: &BTreeSet<(String, u32)>,
    ) {
        let mut names = spelling.names.clone();
        names.extend([bare(&spelling.name).to_string(), spelling.name.clone()]);
        let is_by_position = |hold: &&Hold| matches!(hold.effect, Effect::Named | Effect::Exchanged);
        for hold in options.meaning.holds(&names, path).filter(is_by_position) {
            let is_shown = |at: &SourcePlace| lists.contains(&(at.path.clone(), at.line));
            if !hold.binding.at.as_ref().is_some_and(is_shown) {
                self.pinned.extend(hold.binding.names.iter().cloned());
                self.bindings.push(hold.binding.clone());
            }
        }
    }

    /// Adds the constraints from comments in the declaration.
    pub(crate) fn add_comment_rules(&mut self, bindings: Vec<Binding>) {
        for binding in bindings {
            self.pinned.extend(binding.names.iter().cloned());
            if binding.names.is_empty() {
                self.forbidding.push(binding.clone());
            }
            self.bindings.push(binding);
        }
    }

    /// `--pin Type.member`.
    pub(crate) fn add_options(&mut self, subject: &Subject<'_>, options: &Options, class: &str) {
        self.is_lifted = !options.orders.is_empty() && Lifts::new(options, class).frees(&[]);
        for (ty, member) in &options.pins {
            let known = subject.aggregate.members.iter().any(|known| known.name.as_deref() == Some(member));
            if bare(ty) == class && known {
                self.pinned.insert(member.clone());
                self.bindings.push(Binding::new(Constraint::Pinned).on([member]));
            }
        }
    }

    /// C++: members whose construction may depend on others keep their relative order.
    pub(crate) fn add_construction_order(
        &mut self,
        subject: &Subject<'_>,
        sources: &Sources,
        class: &str,
        members: &[&str],
    ) {
        let (mut chained, place) = constructors::order_dependent(sources, class, members);
        for member in &subject.aggregate.members {
            if let Some(name) = &member.name
                && constructs(subject.types, member.ty, 0)
            {
                chained.insert(name.to_string());
            }
        }
        if chained.len() > 1 {
            let mut binding = Binding::new(Constraint::ConstructorOrder).on(chained.iter().cloned());
            if let Some((path, line)) = place {
                binding = binding.at(&path, line);
            }
            self.bindings.push(binding);
            self.chained.extend(chained);
        }
    }

    /// The units of the search, base classes first, and the fields that keep their offset.
    pub(crate) fn units(
        &mut self,
        subject: &Subject<'_>,
        body: &Body<'_>,
        ranges: &[Range<usize>],
        recorded: &Model,
    ) -> (Vec<Unit>, Vec<(usize, u64)>) {
        let members = &subject.aggregate.members;
        let mut units = Vec::new();
        let head = members.iter().take_while(|member| member.role != MemberRole::Field).count();
        if head > 0 {
            units.push(Unit {
                fields: 0..head,
                segment: 0,
                is_chained: false,
                is_fixed: true,
                is_still: false,
            });
        }
        let mut barriers = 0;
        for (index, (text, range)) in body.units.iter().zip(ranges).enumerate() {
            let is_first = index == 0 && (self.first || self.is_macro_head(text.kind, range, body));
            let is_last = index + 1 == ranges.len() && self.last;
            let is_marker = is_marker(subject, range);
            let named = |set: &BTreeSet<String>| text.names.iter().any(|name| set.contains(name));
            let is_leading = range.start < self.leading.min(range.end);
            let is_apart = self.is_apart(subject, body, (text, range), recorded);
            if is_apart && index > 0 {
                barriers += 1;
                let name = member_name(subject.aggregate, range.start);
                self.bindings.push(Binding::new(Constraint::KeptApart).on([name]));
            }
            if is_marker {
                barriers += 1;
                let name = member_name(subject.aggregate, range.start);
                self.bindings.push(Binding::new(Constraint::GroupMarker).on([name]));
            }
            let is_aligned = range.clone().any(|field| self.aligned.contains(&field));
            if is_aligned && !is_apart {
                let name = member_name(subject.aggregate, range.start);
                let because = "its type asks for an alignment, or may, and debug info does not show which";
                self.bindings.push(Binding::new(Constraint::KeptApart).on([name]).because(because));
            }
            let is_boundary = named(&self.boundaries);
            barriers += u32::from(is_boundary);
            units.push(Unit {
                fields: range.clone(),
                segment: text.segment + barriers,
                is_chained: named(&self.chained),
                is_still: text.is_still,
                is_fixed: is_first
                    || is_last
                    || is_marker
                    || is_leading
                    || is_apart
                    || is_aligned
                    || is_boundary
                    || text.is_heading_line
                    || text.names.iter().any(|name| self.keeps_offset(name)),
            });
            barriers += u32::from(is_marker);
        }
        let order: Vec<usize> = (0..members.len()).collect();
        let offsets = crate::layout::placement::place(&recorded.fields, &order, recorded.align_bytes);
        let fixed = offsets.map_or(Vec::new(), |placed| {
            let is_held = |field: usize| {
                self.aligned.contains(&field)
                    || members[field].name.as_deref().is_some_and(|name| self.keeps_offset(name))
            };
            let fields = order.iter().filter(|&&field| is_held(field));
            fields.map(|&field| (field, placed.offsets_bits[field])).collect()
        });
        (units, fixed)
    }

    fn keeps_offset(&self, name: &str) -> bool {
        self.pinned.contains(name) || (!self.is_lifted && self.continued.contains(name))
    }

    /// Whether a unit starts on a line of its own.
    fn is_apart(
        &self,
        subject: &Subject<'_>,
        body: &Body<'_>,
        (text, range): (&TextUnit, &Range<usize>),
        recorded: &Model,
    ) -> bool {
        !range.is_empty()
            && !self.is_lifted
            && (shape_rules::starts_apart(subject, &recorded.fields, range.start)
                || self.own_lines.contains(&range.start)
                || body.is_line_aligned(text))
    }

    /// Joins neighbours that a reader takes for one thing, where nothing holds one of them.
    pub(crate) fn join_neighbours(
        &self,
        subject: &Subject<'_>,
        body: &mut Body<'_>,
        ranges: &mut Vec<Range<usize>>,
        recorded: &Model,
    ) {
        let may_join = |body: &Body<'_>, at: usize, range: &Range<usize>| {
            let text = &body.units[at];
            let is_held = |name: &String| {
                self.keeps_offset(name) || self.boundaries.contains(name) || self.chained.contains(name)
            };
            let is_aligned = range.clone().any(|field| self.aligned.contains(&field));
            let is_parted = is_aligned || is_marker(subject, range);
            !is_parted
                && !text.names.iter().any(is_held)
                && !self.is_apart(subject, body, (text, range), recorded)
        };
        paragraphs::join(body, ranges, subject, &may_join);
    }

    /// A macro that declares the first members is shared by other types as their common beginning.
    fn is_macro_head(&mut self, kind: BodyPartKind, range: &Range<usize>, body: &Body<'_>) -> bool {
        let is_head = kind == BodyPartKind::Macro && !range.is_empty();
        if is_head {
            let binding = Binding::new(Constraint::MacroMembers).at(&body.found.path, body.found.line());
            self.bindings.push(binding.because("the macro's members stay first"));
        }
        is_head
    }
}

/// A member without a size that others follow.
fn is_marker(subject: &Subject<'_>, range: &Range<usize>) -> bool {
    let members = &subject.aggregate.members;
    let size = |field: usize| subject.types.size_bytes(members[field].ty);
    range.len() == 1
        && range.end < members.len()
        && size(range.start).is_none_or(|size| size == 0)
        && !is_named_struct(subject.types, members[range.start].ty)
}

/// True of a struct with a name, or a typedef of one: without members it holds members of another configuration, and
/// marks no place, as arrays of length zero and nameless structs do.
fn is_named_struct(types: &Types, id: TypeId) -> bool {
    let name = |id: TypeId| types.get(id).and_then(|ty| ty.name.as_ref());
    types.aggregate(id).is_some_and(|(found, aggregate)| {
        !aggregate.is_declaration && (name(id).is_some() || name(found).is_some())
    })
}

/// Names of members that are pointers.
fn pointers<'a>(subject: &Subject<'a>) -> Vec<&'a str> {
    let types = subject.types;
    let is_pointer = |ty| {
        let of = types.strip(ty).and_then(|ty| types.get(ty));
        of.is_some_and(|of| matches!(of.kind, TypeKind::Pointer(_)))
    };
    let members = subject.aggregate.members.iter().filter(|member| is_pointer(member.ty));
    members.filter_map(|member| member.name.as_deref()).collect()
}

/// Names of types that an object of the subject begins as: its first member's type, and types whose
/// first member has the same name and type.
fn begins_as(subject: &Subject<'_>) -> Vec<String> {
    let types = subject.types;
    let Some(first) = subject.aggregate.members.first() else { return Vec::new() };
    let mut names: Vec<String> = Vec::new();
    if let Some((id, _)) = types.aggregate(first.ty) {
        names.extend(spelling(types, id).into_iter().flat_map(|spelling| spelling.names));
    }
    for (id, ty) in types.iter() {
        let TypeKind::Aggregate(other) = &ty.kind else { continue };
        let same = other.members.first().is_some_and(|member| {
            member.name.is_some()
                && member.name == first.name
                && types.strip(member.ty) == types.strip(first.ty)
        });
        if same && id != subject.id {
            names.extend(spelling(types, id).into_iter().flat_map(|spelling| spelling.names));
        }
    }
    names.sort();
    names.dedup();
    names
}

/// Flexible, zero-length and one-element arrays at the end, also inside a last member.
fn is_trailing_array(types: &Types, id: TypeId, depth: u32) -> bool {
    let Some(id) = types.strip(id).filter(|_| depth < 16) else { return false };
    match types.get(id).map(|ty| &ty.kind) {
        Some(TypeKind::Array { counts, .. }) => counts.first().is_some_and(|count| count.unwrap_or(0) <= 1),
        Some(TypeKind::Aggregate(aggregate)) => {
            aggregate.members.iter().any(|member| {
                member.role == MemberRole::Field && is_trailing_array(types, member.ty, depth + 1)
            }) && aggregate.members.last().is_some_and(|last| is_trailing_array(types, last.ty, depth + 1))
        }
        _ => false,
    }
}

/// True for C++ class types whose construction or destruction may do something.
fn constructs(types: &Types, id: TypeId, depth: u32) -> bool {
    let Some(id) = types.strip(id).filter(|_| depth < 16) else { return false };
    let Some(ty) = types.get(id) else { return false };
    match &ty.kind {
        TypeKind::Array { element, .. } => constructs(types, *element, depth + 1),
        TypeKind::Aggregate(aggregate) if ty.language == Language::Cpp => {
            let name = ty.name.as_deref().unwrap_or("");
            let is_plain_std = name.starts_with("std::atomic") || name.starts_with("std::array");
            let is_class = aggregate.kind == AggregateKind::Class || name.starts_with("std::");
            (is_class && !is_plain_std)
                || aggregate.members.iter().any(|member| {
                    member.role != MemberRole::Field
                        || (!is_plain_std && constructs(types, member.ty, depth + 1))
                })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compilers_word_on_an_offset_stands_for_the_texts_at_the_same_place() {
        let at = |binding: Binding, line| binding.at("a.c", line);
        let span = |line| at(Binding::new(Constraint::MemorySpan), line);
        let assembly = |line| at(Binding::new(Constraint::Assembly), line);
        let hold = |line, effect| {
            let binding = at(Binding::new(Constraint::Offsetof).on(["data"]), line);
            Hold { binding, effect }
        };
        let all = vec![span(3), span(7), span(9), assembly(3)];
        let mut holds = Holds { forbidding: all.clone(), bindings: all, ..Holds::default() };
        // A use that forbids, next to one on its line that holds a member: both come from the compiler.
        let forbids = Hold { binding: at(Binding::new(Constraint::Offsetof), 3), effect: Effect::Forbid };
        holds.forbidding.push(forbids.binding.clone());
        holds.bindings.push(forbids.binding.clone());
        let said = [hold(3, Effect::Boundary), hold(9, Effect::Forbid), forbids.clone()];
        holds.leave_to_compiler(said.iter());
        let left = vec![span(7), span(9), assembly(3), forbids.binding];
        assert_eq!((holds.forbidding, holds.bindings), (left.clone(), left));
    }
}
