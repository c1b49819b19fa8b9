//! Smaller objects of structs of C: members that no unit reads leave with the statements that write them, and integers
//! get the smallest type that holds every value which the sources write to them.
//!
//! The recorded values say nothing here. A member leaves, or gets another type, only where each of its uses in every
//! unit is known, and none depends on its place, its size or its address. Objects that several threads use stay as they
//! are: smaller ones would share lines. Bit-fields are not made, since a write of one writes its neighbours.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::groundwork::Groundwork;
use crate::constraints::meaning::{Effect, MemberMeaning};
use crate::error::AdviseError;
use crate::judge::compiler::Asked;
use crate::kind::{Description, FixKind, KindName, Task};
use crate::kinds::narrow::member_text::{self, Changing, SmallerType, smaller_type, type_words};
use crate::kinds::narrow::smaller::{self, Change, Smaller};
use crate::kinds::narrow::statements;
use crate::kinds::order::member_order::{self, Verdict};
use crate::kinds::order::orders::used_types;
use crate::kinds::saving_share;
use crate::layout::spelling::{Spelling, spelling};
use crate::layout::subject::{Subject, member_name};
use crate::proposal::{
    Advice, NARROW, NarrowProposal, NarrowedMember, OrderProposal, RegionLines, SizeChange, Suggestion,
    narrow_owner,
};
use crate::text::body_parts::BodyPartKind;
use crate::text::sources::Sources;
use lineup_model::first_names;
use lineup_model::object_uses::{HeldPart, MemberAccess, MemberValues};
use lineup_model::types::{ScalarKind, TypeKind};
use std::collections::{BTreeMap, BTreeSet};

/// Members named in a description.
const NAMED: usize = 8;

/// A fall in lines per call, compared with the best order alone, that is worth more than an order.
const LEAST_GAIN: f64 = 0.01;

/// Smaller structs of C.
pub(crate) struct Narrowings;

impl FixKind for Narrowings {
    fn name(&self) -> KindName {
        NARROW
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        for id in used_types(task.usage, task.types) {
            let Some(subject) = Subject::new(task.types, id, task.usage) else { continue };
            let Some(spelling) = spelling(task.types, subject.id) else { continue };
            let Some(meaning) = task.options.meaning.members_of(&spelling.names) else { continue };
            if advice.is_split(&spelling.name) || advice.is_narrowed(&spelling.name) {
                continue;
            }
            let (unread, planned) = plan(task, advice, (&subject, &spelling), meaning);
            let proposed = match planned {
                Some(planned) => confirm(task, advice, (&subject, &spelling), planned, &unread)?,
                None => None,
            };
            match proposed {
                Some(proposal) => {
                    match saving_share::too_little(task.usage, task.options, &describe(&proposal)) {
                        Some(little) => advice.too_little.push(little),
                        None => {
                            advice.edited.extend(proposal.edited.clone());
                            advice.narrowings.push(proposal);
                        }
                    }
                }
                None if !unread.is_empty() => {
                    let summary = format!("By hand: {}.", of_unread(&unread));
                    advice.suggestions.push(Suggestion::new(NARROW, &spelling.name, summary));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.narrowings.iter().map(describe).chain(advice.suggestions_of(NARROW)).collect()
    }
}

fn refused(why: impl Into<String>) -> Binding {
    Binding::new(Constraint::AsDeclared).because(why)
}

/// A change that is written, and not yet compiled.
struct Planned {
    change: Change,
    narrowed: Vec<NarrowedMember>,
    texts: BTreeMap<String, String>,
}

/// The reason that keeps all members of a struct as they are.
fn hold_of_type(
    task: &Task<'_>,
    (subject, spelling): (&Subject<'_>, &Spelling),
    meaning: &MemberMeaning,
    path: &str,
) -> Result<(), Binding> {
    let options = task.options;
    if let Some(failed) = options.refusal_of(&narrow_owner(&spelling.name)) {
        return Err(failed.constraints.into_iter().next().unwrap_or_else(|| refused("it was tried")));
    }
    if let Some(why) = options.meaning.unread() {
        return Err(refused(why));
    }
    let is_own = |ty| task.types.aggregate(ty).map(|(id, _)| id) == Some(subject.id);
    if subject.is_fought_over() || task.usage.thread_uses.iter().any(|used| is_own(used.ty)) {
        return Err(refused("several threads use its objects, and smaller ones would share lines"));
    }
    let all =
        meaning.holds.iter().find(|(part, hold)| *part == HeldPart::Declaration && hold.names.is_empty());
    if let Some((_, hold)) = all {
        return Err(hold.clone());
    }
    let is_about_place = |effect: Effect| {
        !matches!(effect, Effect::Relative | Effect::Named | Effect::Exchanged | Effect::First)
    };
    let mut held = options.meaning.holds(&spelling.names, path);
    match held.find(|hold| is_about_place(hold.effect)) {
        Some(hold) => Err(hold.binding.clone()),
        None => Ok(()),
    }
}

/// The members that nothing reads and that stay, and the change of the struct.
fn plan(
    task: &Task<'_>,
    advice: &Advice,
    (subject, spelling): (&Subject<'_>, &Spelling),
    meaning: &MemberMeaning,
) -> (Vec<Binding>, Option<Planned>) {
    let dead = dead_members(subject, meaning);
    let named = |binding: &Binding, fields: &BTreeSet<usize>| -> Vec<Binding> {
        let on = |&field: &usize| Binding {
            names: vec![member_name(subject.aggregate, field)],
            ..binding.clone()
        };
        fields.iter().map(on).collect()
    };
    let ground = match Groundwork::lay(subject, spelling, task.sources, task.options) {
        Ok(ground) => ground,
        Err(all) => {
            let binding = all.into_iter().next().unwrap_or_else(|| refused("its text is not understood"));
            return (named(&binding, &dead), None);
        }
    };
    let path = ground.body.found.path.clone();
    if let Err(binding) = hold_of_type(task, (subject, spelling), meaning, &path) {
        return (named(&binding, &dead), None);
    }
    let mut chosen = Chosen { task, subject, spelling, meaning, ground: &ground, unread: Vec::new() };
    let leaving = chosen.leaving(&dead);
    let smaller = chosen.smaller(&leaving);
    let unread = chosen.unread;
    if leaving.is_empty() && smaller.is_empty() {
        return (unread, None);
    }
    match written(task, advice, (subject, &ground), meaning, (&leaving, &smaller)) {
        Ok(planned) => (unread, Some(planned)),
        Err(binding) => (unread.into_iter().chain(named(&binding, &dead)).collect(), None),
    }
}

/// The members that no unit reads.
fn dead_members(subject: &Subject<'_>, meaning: &MemberMeaning) -> BTreeSet<usize> {
    let is_read = |name: &str| {
        meaning
            .uses
            .iter()
            // The value of a write that is no statement may be used, as in `code[p->pc++]`.
            .any(|used| {
                used.member == name
                    && matches!(used.access, MemberAccess::Read { .. } | MemberAccess::Written(None))
            })
    };
    let is_held = |name: &str| meaning.holds.iter().any(|(_, hold)| hold.names.iter().any(|one| one == name));
    let members = subject.aggregate.members.iter().enumerate();
    let is_dead = |name: &str| !is_read(name) && !is_held(name);
    members
        .filter(|(_, member)| member.name.as_deref().is_some_and(is_dead))
        .map(|(field, _)| field)
        .collect()
}

/// The choice of members.
struct Chosen<'c, 't> {
    task: &'c Task<'t>,
    subject: &'c Subject<'c>,
    spelling: &'c Spelling,
    meaning: &'c MemberMeaning,
    ground: &'c Groundwork<'c>,
    /// Members that nothing reads and that stay.
    unread: Vec<Binding>,
}

impl Chosen<'_, '_> {
    fn name(&self, field: usize) -> String {
        member_name(self.subject.aggregate, field)
    }

    /// The reason that keeps a member as it is.
    fn hold_of_member(&self, name: &str, is_about: fn(HeldPart) -> bool) -> Result<(), Binding> {
        let options = self.task.options;
        let is_own = |ty: &String| *ty == self.spelling.name || self.spelling.names.contains(ty);
        if options.pins.iter().any(|(ty, member)| is_own(ty) && member == name) {
            return Err(Binding::new(Constraint::Pinned).on([name]));
        }
        let is_it = |(part, hold): &&(HeldPart, Binding)| {
            is_about(*part) && (hold.names.is_empty() || hold.names.iter().any(|one| one == name))
        };
        if let Some((_, hold)) = self.meaning.holds.iter().find(is_it) {
            return Err(Binding { names: vec![name.to_owned()], ..hold.clone() });
        }
        let mut in_order = options.meaning.holds(&self.spelling.names, &self.ground.body.found.path);
        let is_first = |names: &[String]| names.iter().any(|one| one == name);
        if let Some(hold) =
            in_order.find(|hold| hold.effect == Effect::First && is_first(&hold.binding.names))
        {
            return Err(hold.binding.clone());
        }
        match member_text::unseen(self.task.sources, &options.meaning, name) {
            Some((path, line)) => {
                let why =
                    "code that the build leaves out, or a member of another library's type, has its name";
                Err(refused(why).on([name]).at(&path, line))
            }
            None => Ok(()),
        }
    }

    /// The units whose members all leave.
    fn leaving(&mut self, dead: &BTreeSet<usize>) -> Vec<usize> {
        let mut units = Vec::new();
        let mut held = Vec::new();
        let ground = self.ground;
        for (unit, range) in ground.ranges.iter().enumerate() {
            let of_unit: Vec<usize> = range.clone().filter(|field| dead.contains(field)).collect();
            if of_unit.is_empty() {
                continue;
            }
            let is_data = matches!(ground.body.units[unit].kind, BodyPartKind::Data);
            let hold = match () {
                () if !is_data => Some(refused("its declaration is under a condition or a macro")),
                () if of_unit.len() < range.len() => {
                    Some(refused("its declaration has members that are read"))
                }
                () => of_unit.iter().find_map(|&field| self.stays(field).err()),
            };
            match hold {
                None => units.push(unit),
                Some(hold) => held.extend(of_unit.iter().map(|&field| (field, hold.clone()))),
            }
        }
        let kept: usize = ground.ranges.iter().map(ExactSizeIterator::len).sum();
        if units.iter().map(|&unit| ground.ranges[unit].len()).sum::<usize>() >= kept {
            let all = units.drain(..).flat_map(|unit| ground.ranges[unit].clone());
            held.extend(all.map(|field| (field, refused("no member would be left"))));
        }
        let named = held.into_iter().map(|(field, hold)| Binding { names: vec![self.name(field)], ..hold });
        self.unread = named.collect();
        units
    }

    fn stays(&self, field: usize) -> Result<(), Binding> {
        let name = self.name(field);
        if says_room(&name) {
            return Err(refused("its name says that it only makes room"));
        }
        self.hold_of_member(&name, |part| part != HeldPart::Type)?;
        let mut uses = self.meaning.uses.iter().filter(|used| used.member == name);
        uses.try_for_each(|used| statements::removed(self.task.sources, used).map(drop))
    }

    /// The units whose members all fit a smaller type, which is one for all of them.
    fn smaller(&self, leaving: &[usize]) -> Vec<(usize, SmallerType)> {
        let ground = self.ground;
        let units = (0..ground.ranges.len()).filter(|unit| !leaving.contains(unit));
        units
            .filter_map(|unit| {
                let of_unit = &ground.body.units[unit];
                let is_data =
                    matches!(of_unit.kind, BodyPartKind::Data) && type_words(ground, of_unit).is_some();
                let fields = ground.ranges[unit].clone();
                let first = fields.clone().next().filter(|_| is_data)?;
                let (mut low, mut high) = (0, 0);
                for field in fields {
                    let own = self.values(field)?;
                    (low, high) = (low.min(own.low), high.max(own.high));
                }
                let before_bytes = self.task.types.size_bytes(self.subject.aggregate.members[first].ty)?;
                let text = ground.body.found.lexed.text;
                Some((unit, smaller_type(text, before_bytes, low, high)?))
            })
            .collect()
    }

    /// The values of an integer that may get another type.
    fn values(&self, field: usize) -> Option<&MemberValues> {
        let member = &self.subject.aggregate.members[field];
        let types = self.task.types;
        let is_integer = matches!(
            types.get(types.strip(member.ty)?)?.kind,
            TypeKind::Scalar(ScalarKind::Integer { .. }) | TypeKind::Enum
        );
        let name = member.name.as_deref().filter(|_| is_integer && member.bit_size.is_none())?;
        self.hold_of_member(name, |part| part != HeldPart::Presence).ok()?;
        self.meaning.values.get(name)
    }
}

/// Words in the names of members that only make room.
fn says_room(name: &str) -> bool {
    const WORDS: [&str; 7] = ["pad", "padding", "reserved", "unused", "spare", "filler", "dummy"];
    let lower = name.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphabetic());
    name.starts_with("__") || words.any(|word| WORDS.contains(&word))
}

/// The edited texts.
fn written(
    task: &Task<'_>,
    advice: &Advice,
    (subject, ground): (&Subject<'_>, &Groundwork<'_>),
    meaning: &MemberMeaning,
    (leaving, smaller): (&[usize], &[(usize, SmallerType)]),
) -> Result<Planned, Binding> {
    let name = |field: usize| member_name(subject.aggregate, field);
    let mut change = Change::default();
    change.removed.extend(leaving.iter().flat_map(|&unit| ground.ranges[unit].clone()));
    let mut narrowed = Vec::new();
    let mut before = BTreeMap::new();
    for (unit, ty) in smaller {
        let words = type_words(ground, &ground.body.units[*unit]);
        let spelled = words.map_or("", |words| &ground.body.found.lexed.text[words]);
        for field in ground.ranges[*unit].clone() {
            change.sizes.insert(field, ty.size_bytes);
            before.insert(name(field), spelled.to_owned());
            let own = meaning.values.get(&name(field));
            narrowed.push(NarrowedMember {
                member: name(field),
                before: spelled.to_owned(),
                after: ty.spelled.clone(),
                low: own.map_or(0, |values| values.low),
                high: own.map_or(0, |values| values.high),
                widest: own.and_then(|values| values.widest.clone()),
            });
        }
    }
    let changing = Changing {
        leaving: leaving.to_vec(),
        removed: change.removed.iter().map(|&field| name(field)).collect(),
        retyped: smaller.iter().map(|(unit, ty)| (*unit, ty)).collect(),
        before,
    };
    let texts = member_text::write(task.sources, ground, meaning, &changing)?;
    match texts.keys().find(|path| advice.edited.contains_key(*path)) {
        Some(path) => Err(refused(format!("another change edits {path}"))),
        None => Ok(Planned { change, narrowed, texts }),
    }
}

/// The proposal for one struct, with its members in the best order. `None` where the objects do not get smaller, where an
/// order alone needs no more lines, and where the compiler does not take it.
fn confirm(
    task: &mut Task<'_>,
    advice: &Advice,
    (subject, spelling): (&Subject<'_>, &Spelling),
    Planned { change, narrowed, texts }: Planned,
    unread: &[Binding],
) -> Result<Option<NarrowProposal>, AdviseError> {
    let Some(Smaller { types, usage }) = Smaller::of(subject, &change) else { return Ok(None) };
    let Some(changed) = Subject::new(&types, subject.id, &usage) else { return Ok(None) };
    let mut edited = advice.edited.clone();
    edited.extend(texts.clone());
    let sources: Sources = task.sources.with(&edited);
    let judge = &mut Asked::new(&mut *task.judge).for_whole_builds();
    let verdict = member_order::propose_any(&changed, spelling, &sources, task.options, judge, &edited)?;
    let Verdict::Proposed(order) = verdict else { return Ok(None) };
    let before_bytes = task.types.size_bytes(subject.id).unwrap_or(0);
    let after_bytes = order.sizes.first().map_or(before_bytes, |size| size.after_bytes);
    if after_bytes >= before_bytes {
        return Ok(None);
    }
    let kept = change.kept(subject.aggregate.members.len());
    let fewest = member_order::fewest_lines(subject, spelling, task.sources, task.options);
    let OrderProposal { path, field_order, new_offsets_bits, check, asserted, edited: ordered, .. } = *order;
    let offsets = field_order.iter().map(|&field| kept[field]).zip(new_offsets_bits).collect();
    let name = |&field: &usize| member_name(subject.aggregate, field);
    let lines = smaller::lines(subject, &change, (&offsets, after_bytes));
    let decides = |row: &&RegionLines| row.line_bytes == task.options.primary.bytes();
    let needed: f64 = lines.iter().filter(decides).map(|row| row.after).sum();
    if fewest.is_some_and(|fewest| needed + LEAST_GAIN > fewest) {
        return Ok(None);
    }
    let mut all = texts;
    all.extend(ordered);
    Ok(Some(NarrowProposal {
        type_name: spelling.name.clone(),
        path,
        removed: change.removed.iter().map(name).collect(),
        narrowed,
        order: field_order.iter().map(|&field| name(&kept[field])).collect(),
        unread: unread.to_vec(),
        files: all.keys().cloned().collect(),
        lines,
        sizes: vec![SizeChange { data_model: task.usage.abi.data_model(), before_bytes, after_bytes }],
        check,
        asserted,
        edited: all,
    }))
}

fn of_unread(unread: &[Binding]) -> String {
    let one = |binding: &Binding| {
        let names = binding.names.join(", ");
        let why = Binding { names: Vec::new(), ..binding.clone() };
        format!("no unit reads {names}, and it stays: {why}")
    };
    unread.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn describe(one: &NarrowProposal) -> Description {
    let count = |bytes: fn(&SizeChange) -> u64| one.sizes.first().map_or(0, bytes);
    let mut changes = Vec::new();
    if !one.removed.is_empty() {
        changes.push(format!("no unit reads {}: removed", first_names(&one.removed, NAMED)));
    }
    if !one.narrowed.is_empty() {
        let names: Vec<String> = one.narrowed.iter().map(|narrowed| narrowed.member.clone()).collect();
        changes.push(format!("smaller types for {}", first_names(&names, NAMED)));
    }
    let summary = format!(
        "In {}: {}. An object shrinks from {} to {} bytes.",
        one.path,
        changes.join("; "),
        count(|size| size.before_bytes),
        count(|size| size.after_bytes)
    );
    let narrowed = one.narrowed.iter().map(|one| {
        let NarrowedMember { member, before, after, low, high, widest } = one;
        let widest =
            widest.as_ref().map_or(String::new(), |(path, line)| format!(" (widest at {path}:{line})"));
        format!(
            "{member}: every write in the sources gives {low} to {high}{widest}, so {before} becomes {after}."
        )
    });
    let mut reasons: Vec<String> = narrowed.collect();
    reasons.extend((!one.unread.is_empty()).then(|| format!("{}.", of_unread(&one.unread))));
    Description {
        reasons,
        lines: one.lines.clone(),
        sizes: one.sizes.clone(),
        check: Some(one.check),
        is_in_patch: !one.edited.is_empty(),
        ..Description::told(NARROW, &one.type_name, summary)
    }
}
