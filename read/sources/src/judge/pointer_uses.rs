//! Uses of pointers' targets.

use super::Judge;
use super::blocks::Blocks;
use super::direct_uses::keep;
use crate::facts::{Act, Member, Origin, PointerPlace, Reach, Shape, Source, Value, Where, behind};
use crate::library_functions;
use crate::points_to::{Objects, Pointed};
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::{BTreeMap, BTreeSet};

impl Judge<'_> {
    pub(super) fn acts(&mut self) {
        let facts = self.facts;
        self.seen_arrays = self.arrays_that_others_see();
        let mut memory = Blocks::default();
        let mut many = Many::default();
        let made = self.made();
        let of_text = facts.taken.iter().filter(|(_, usr)| !facts.defined.contains(usr));
        let of_text =
            of_text.filter(|(_, usr)| library_functions::reads_text(library_functions::plain_name(usr)));
        let of_text: BTreeSet<&Name> = of_text.map(|(signature, _)| signature).collect();
        for (value, act, at) in &facts.acts {
            if let Act::GivenThrough(signature) = act
                && of_text.contains(signature)
            {
                self.taken_for_text(value, at);
            }
            if self.is_harmless(act) {
                continue;
            }
            let objects = self.points_to.objects(value);
            let is_generic = matches!(value.source, Source::Place(_)) && is_generic(&objects);
            // A type that was never stored there cannot be taken out of there.
            let is_generic = is_generic && !self.takes_another(act, &objects, &made, &mut many);
            let is_crowd = is_generic && is_crowd(&objects);
            let takes_memory = !is_generic && self.takes_memory(value, act, &objects.each, &made);
            let is_member = |(origin, ..): &Pointed| {
                matches!(origin, Origin::MemberOf(..) | Origin::Numbers(..) | Origin::End(_))
            };
            let are_members = matches!(value.source, Source::Place(_))
                && objects.many.is_empty()
                && objects.each.iter().all(is_member);
            for (origin, reach, kept) in objects.each {
                if kept && is_crowd && !is_seen_in_crowd(act, reach) {
                    continue;
                }
                if is_generic && *act == Act::Compared(true) {
                    continue;
                }
                match &origin {
                    // A pointer to it is not the memory, but leads others to it.
                    Origin::Memory(_, 1..) if !is_given(act) => {}
                    Origin::Memory(..) if reach == Reach::Before => self.before(&origin, act, at),
                    Origin::Memory(block, _) if !is_generic => memory.note(block, act, at),
                    Origin::Memory(..) => {}
                    Origin::MemberOf(record, member) if are_members && reach == Reach::Start => {
                        self.member_taken_for((record, member), act, at);
                        self.act(&origin, reach, (value, act), is_generic, at);
                    }
                    Origin::Object(_) if takes_memory && kept && reach == Reach::Start => {
                        self.act(&origin, reach, (value, act), true, at);
                    }
                    _ => self.act(&origin, reach, (value, act), is_generic, at),
                }
            }
            for (reach, kept) in objects.many {
                let is_seen = !kept || !is_generic || is_seen_in_crowd(act, reach);
                if is_seen && many.used.insert((act.clone(), reach, kept, is_generic)) {
                    self.act_on_many((reach, kept), (value, act), is_generic, at);
                }
            }
        }
        for (record, reason, at) in memory.crossings(&self.points_to.same_memory) {
            self.find(&record, Verdict::Refuse, UseKind::Crossing, &at, reason);
        }
        self.hold_headers(&memory);
    }

    /// `compare(one, other)`, which may be `strcmp`.
    fn taken_for_text(&mut self, value: &Value, at: &Where) {
        for (origin, reach, _) in self.points_to.objects(value).each {
            if let Origin::Object(record) = origin {
                self.used_as_text(&record, reach, at);
            }
        }
    }

    /// The arrays of bytes whose addresses go to code that is not compiled here.
    fn arrays_that_others_see(&self) -> BTreeSet<Name> {
        let mut seen = BTreeSet::new();
        // Only placed objects ask for them.
        if !self.facts.acts.iter().any(|(_, act, _)| matches!(act, Act::Placed(..))) {
            return seen;
        }
        for (value, act, _) in &self.facts.acts {
            if !matches!(act, Act::Given(..) | Act::Leaves(_)) || self.is_harmless(act) {
                continue;
            }
            let objects = self.points_to.objects(value).each;
            seen.extend(objects.into_iter().filter_map(|(origin, ..)| match origin {
                Origin::Bytes(array) => Some(array),
                _ => None,
            }));
        }
        seen
    }

    /// Objects behind a header are aligned as far as the header's size aligns them.
    fn hold_headers(&mut self, memory: &Blocks) {
        for (record, found) in &self.facts.records {
            let Some(last) = found.members.last().filter(|last| last.is_open_array) else { continue };
            let block = behind(record, &last.name);
            if let Some((at, objects)) = memory.becomes_objects(&block, &self.points_to.same_memory) {
                self.behind.entry(record.clone()).or_default().extend(objects);
                let reason = format!("objects lie in the memory from {} on, which aligns them", last.name);
                self.find(
                    record,
                    keep(found, last.offset_bits / 8, None),
                    UseKind::TrailingArray,
                    &at,
                    reason,
                );
            }
        }
    }

    /// Any of the many is used. The same use has the same meaning for each of them in any place, so the first one is
    /// enough.
    fn act_on_many(
        &mut self,
        (reach, kept): (Reach, bool),
        of: (&Value, &Act),
        is_generic: bool,
        at: &Where,
    ) {
        let many = std::mem::take(&mut self.points_to.many);
        for (origin, is_unkept) in &many {
            if (kept || *is_unkept) && !matches!(origin, Origin::Memory(..)) {
                self.act(origin, reach, of, is_generic, at);
            }
        }
        self.points_to.many = many;
    }

    /// Functions that are compiled here are looked into; the objects they are given follow their parameters.
    fn is_harmless(&self, act: &Act) -> bool {
        match act {
            // A method that is overridden here counts as compiled here.
            Act::Given(usr, name) => {
                self.facts.defined.contains(usr)
                    || self.signatures.contains(usr)
                    || library_functions::ends_life(name)
            }
            Act::GivenThrough(signature) => {
                self.signatures.contains(signature) && !self.generated.contains(signature)
            }
            Act::Instantiated(template, _) => !self.facts.byte_templates.contains(template),
            Act::Elsewhere(variable, _) => self.facts.defined.contains(variable),
            _ => false,
        }
    }

    fn act(&mut self, origin: &Origin, reach: Reach, of: (&Value, &Act), is_generic: bool, at: &Where) {
        let (value, act) = of;
        if let Act::Placed(shape, spelling) = act {
            // Other memory only makes room for the object.
            let is_seen = match origin {
                Origin::Bytes(array) => self.seen_arrays.contains(array),
                Origin::Foreign(..) => true,
                _ => false,
            };
            let used = Act::As(shape.clone(), spelling.clone());
            if is_seen {
                self.act(origin, reach, (value, &used), is_generic, at);
            }
            return;
        }
        if reach == Reach::Before {
            return self.before(origin, act, at);
        }
        match (origin, act) {
            (Origin::Number(_), act) if is_of_bytes(act) => {}
            (Origin::Number(record), _) => {
                self.act(&Origin::Object(record.clone()), reach, of, is_generic, at);
            }
            (Origin::Object(record), Act::Declared(Shape::Record(other), _)) if record == other => {}
            (Origin::Object(record), Act::Declared(Shape::Record(other), _)) if reach == Reach::Start => {
                self.declared_as_record(record, other, at);
            }
            (
                Origin::Object(record),
                Act::As(Shape::Record(other), _) | Act::Declared(Shape::Record(other), _),
            ) => {
                self.used_as_record(record, reach, other, is_generic, at);
            }
            (Origin::Object(record), Act::As(shape, spelling) | Act::Declared(shape, spelling)) => {
                self.used_as_value(record, reach, shape, spelling, is_generic, at);
            }
            (Origin::Object(record), Act::Text) => self.used_as_text(record, reach, at),
            (Origin::Object(record), Act::Aligned(bytes, by)) if reach == Reach::Start => {
                let reason = format!("{by} asks for objects at multiples of {bytes} bytes");
                self.aligned_objects(record, *bytes, &reason, at);
            }
            (Origin::Object(record), Act::Stride(bytes)) if reach != Reach::Address => {
                self.stepped_over(record, *bytes, at);
            }
            (Origin::Object(record), Act::Past(bytes)) if reach == Reach::Start => {
                self.passed(record, *bytes, at);
            }
            (Origin::Object(record), Act::Rest(by)) if reach != Reach::Address => {
                self.keep_size(record, at, &format!("{by}() measures it"));
            }
            (Origin::Object(record), _) => self.object(record, reach, act, at),
            (Origin::Handle(record), Act::AsHandle(Shape::Record(other), _)) => {
                self.used_as_record(record, reach, other, is_generic, at);
            }
            (Origin::Handle(record), Act::AsHandle(shape, spelling)) => {
                self.used_as_value(record, reach, shape, spelling, is_generic, at);
            }
            (Origin::Handle(record), Act::Given(_, name)) => {
                let reason = format!("a pointer to it is given to {name}(), which is not compiled here");
                self.find(record, Verdict::Refuse, UseKind::Crossing, at, reason);
            }
            (Origin::MemberOf(record, member), Act::Freed) if reach == Reach::Start => {
                let first = self.own(record).and_then(|found| found.members.first());
                if first.is_some_and(|first| first.name == *member && first.shape != Shape::Pointer) {
                    let reason = format!("its memory is given back by {member}, its first member");
                    self.find(record, Verdict::First, UseKind::FirstMember, at, reason);
                }
            }
            (Origin::MemberOf(record, member) | Origin::Numbers(record, member), Act::Rest(by))
                if reach != Reach::Address =>
            {
                let reason = format!("{by}() measures what follows {member}");
                let verdict = Verdict::Keep(vec![member.to_string()]);
                self.find(record, verdict, UseKind::Offset, at, reason.clone());
                self.keep_size(record, at, &reason);
            }
            (Origin::MemberOf(record, member), Act::Past(bytes)) if reach == Reach::Start => {
                self.member_passed((record, member), *bytes, at);
            }
            (Origin::MemberOf(record, member), Act::WalkBytes(spelling)) if reach == Reach::Start => {
                self.walked(record, member, spelling, false, at);
            }
            (Origin::MemberOf(record, member), Act::Walk(spelling, _)) => {
                let is_direct = matches!(value.source, Source::Origin(_));
                self.walked(record, member, spelling, is_direct, at);
            }
            (Origin::MemberOf(record, member) | Origin::Numbers(record, member), Act::Given(_, name)) => {
                self.member_in_vector(record, member, name, at);
                self.member_in_run((record, member), reach, name, at);
                self.member_in_file(record, member, name, at);
            }
            (Origin::MemberOf(record, member) | Origin::Numbers(record, member), Act::Aligned(bytes, by))
                if reach != Reach::Address =>
            {
                let reason = format!("{by} asks for {member} at a multiple of {bytes} bytes");
                self.aligned((record, member), *bytes, &reason, at);
            }
            (
                Origin::MemberOf(record, member) | Origin::Numbers(record, member),
                Act::AlignedMember(bytes, by),
            ) if reach == Reach::Start && !is_generic => {
                let reason = format!("{by} asks for {member} at a multiple of {bytes} bytes");
                self.aligned((record, member), *bytes, &reason, at);
            }
            (Origin::MemberOf(record, member) | Origin::Numbers(record, member), Act::Spans(bytes))
                if reach == Reach::Start =>
            {
                self.spanned((record, member), *bytes, value, is_generic, at);
            }
            (Origin::MemberOf(record, member) | Origin::Numbers(record, member), Act::ReadToEnd)
                if reach != Reach::Address =>
            {
                self.read_to_end(record, member, at);
            }
            (Origin::MemberOf(record, member) | Origin::Numbers(record, member), Act::AssemblyBeyond) => {
                let reason = format!("assembly adds a number to the address of {member}");
                self.find(record, Verdict::Refuse, UseKind::Assembly, at, reason);
            }
            (Origin::Numbers(..), Act::As(..)) if !matches!(value.source, Source::Origin(_)) => {}
            (
                Origin::MemberOf(record, member) | Origin::Numbers(record, member),
                Act::As(shape, spelling),
            ) => {
                self.member_used_as((record, member), reach, (shape, spelling), value, at);
            }
            (Origin::MemberOf(record, member) | Origin::Numbers(record, member), Act::Hashed)
                if reach == Reach::Start && !is_generic =>
            {
                let verdict = Verdict::Keep(vec![member.to_string()]);
                let reason = format!("a number is worked out from the address of {member}");
                self.find(record, verdict, UseKind::Offset, at, reason);
            }
            (Origin::Element(record), _) if reach == Reach::Fixed => self.element(record, act, at),
            (Origin::End(record), Act::Back) if reach == Reach::Start && !self.moves_on(value) => {
                let reason = "its last members are reached from its end";
                self.find(record, Verdict::Refuse, UseKind::Offset, at, reason);
            }
            // A place that pointers to many types go through gives back the same type that was stored there.
            (Origin::Bytes(_) | Origin::Foreign(..), _) if is_generic => {}
            (Origin::Bytes(array), Act::As(Shape::Record(record), _)) => {
                let reason = format!("objects are made from the bytes in {array}");
                let own = self.facts.records.get(record).map_or(0, |found| found.size_bytes);
                if self.facts.byte_arrays.get(array).is_some_and(|bytes| *bytes <= own) {
                    self.alone_in_bytes.insert((record.clone(), reason.clone()));
                }
                self.find(record, Verdict::Refuse, UseKind::Crossing, at, reason);
            }
            (Origin::Foreign(usr, name), Act::As(Shape::Record(record), _))
                if !self.facts.defined.contains(usr) =>
            {
                let reason = match usr.is_empty() {
                    true => format!("an object at {name}"),
                    false => format!("objects come from {name}(), which is not compiled here"),
                };
                self.find(record, Verdict::Refuse, UseKind::Crossing, at, reason);
            }
            _ => {}
        }
    }

    pub(super) fn object(&mut self, record: &Name, reach: Reach, act: &Act, at: &Where) {
        let (kind, reason) = match act {
            Act::Bytes => (UseKind::Bytes, "its bytes are read one by one".to_string()),
            Act::Walk(spelling, true) if reach == Reach::Start => {
                (UseKind::Walk, format!("it is stepped through as an array of {spelling}"))
            }
            Act::Given(usr, name) => {
                if self.is_looked_into(usr, name, record) {
                    let given = (name.clone(), at.clone());
                    self.followed.entry(record.clone()).or_insert(given);
                }
                (UseKind::Crossing, format!("it is given to {name}(), which is not compiled here"))
            }
            Act::GivenThrough(signature) if self.generated.contains(signature) => {
                if self.measured.contains(record) {
                    return;
                }
                (
                    UseKind::Crossing,
                    "it is given to machine code that the program writes, and nothing takes offsets of its members"
                        .to_string(),
                )
            }
            Act::GivenThrough(_) => (
                UseKind::Crossing,
                "it is given to a function behind a pointer, and none that is compiled here fits".to_string(),
            ),
            Act::Instantiated(_, name) => {
                (UseKind::Bytes, format!("it is given to the template {name}(), which looks at bytes"))
            }
            Act::Leaves(to) => (UseKind::Crossing, format!("its address goes to {to}")),
            Act::Comes(from) => (UseKind::Crossing, format!("it is filled from {from}")),
            Act::Assembly => (UseKind::Assembly, "assembly uses it".to_string()),
            Act::Found(by) => (UseKind::Assembly, format!("a variable of it is found by its name: {by}")),
            Act::Compared(_) => (UseKind::Bytes, "its bytes are compared, and so is their order".to_string()),
            Act::Elsewhere(_, name) => {
                (UseKind::Crossing, format!("{name} is a variable that is not defined here"))
            }
            Act::Part if reach == Reach::Fixed => {
                (UseKind::PartialMemory, "bytes at a fixed offset of it are treated as one".to_string())
            }
            Act::Part
            | Act::Walk(..)
            | Act::WalkBytes(_)
            | Act::As(..)
            | Act::Placed(..)
            | Act::Declared(..)
            | Act::AsHandle(..)
            | Act::Text
            | Act::ReadToEnd
            | Act::Freed
            | Act::Rest(_)
            | Act::Spans(_)
            | Act::Aligned(..)
            | Act::AlignedMember(..)
            | Act::Stride(_)
            | Act::Past(_)
            | Act::AssemblyBeyond
            | Act::Code(_)
            | Act::Executable
            | Act::Back
            | Act::Hashed
            | Act::Sorted => {
                return;
            }
        };
        self.find(record, Verdict::Refuse, kind, at, reason);
    }

    /// True for a function that is not compiled here and follows the pointers in an object of this record: it takes
    /// the object by its type, or is the kernel's.
    fn is_looked_into(&self, usr: &Name, name: &Name, record: &Name) -> bool {
        library_functions::is_kernels(name) || self.taken_by_type.contains(&(usr.clone(), record.clone()))
    }

    /// The objects that the pointers in an object lead to, for code that looks into the object.
    pub(super) fn reached_from_outside(&mut self) {
        let facts = self.facts;
        let mut work: Vec<Name> = self.followed.keys().cloned().collect();
        while let Some(outer) = work.pop() {
            let (Some(found), Some((by, at))) =
                (facts.records.get(&outer), self.followed.get(&outer).cloned())
            else {
                continue;
            };
            for member in &found.members {
                // Objects inside it are refused with it.
                if let Some(inner) = &member.record {
                    self.followed.entry(inner.clone()).or_insert_with(|| {
                        work.push(inner.clone());
                        (by.clone(), at.clone())
                    });
                }
                for record in self.targets(&outer, member) {
                    if self.own(&record).is_none() || self.followed.contains_key(&record) {
                        continue;
                    }
                    let reason = format!(
                        "{} of {} leads to it, and {by}(), which is not compiled here, is given that",
                        member.name,
                        self.name(&outer)
                    );
                    self.find(&record, Verdict::Refuse, UseKind::Crossing, &at, reason);
                    self.followed.insert(record.clone(), (by.clone(), at.clone()));
                    work.push(record);
                }
            }
        }
    }

    /// The records of the objects that a member leads to, by its type and by its values.
    fn targets(&self, outer: &Name, member: &Member) -> BTreeSet<Name> {
        let place = PointerPlace::Member(outer.clone(), member.name.clone());
        let objects = self.points_to.objects(&Value::place(place)).each;
        let kept = objects.into_iter().filter_map(|(origin, ..)| match origin {
            Origin::Object(record) | Origin::Number(record) => Some(record),
            _ => None,
        });
        kept.chain(member.points_to.clone()).collect()
    }
}

/// A use of the bytes at a pointer, and not of the targets of pointers in them.
fn is_of_bytes(act: &Act) -> bool {
    matches!(
        act,
        Act::Bytes
            | Act::Part
            | Act::Compared(_)
            | Act::Walk(..)
            | Act::Text
            | Act::ReadToEnd
            | Act::Spans(_)
            | Act::Aligned(..)
            | Act::AlignedMember(..)
            | Act::Stride(_)
            | Act::Past(_)
            | Act::As(Shape::Scalar(_) | Shape::Pointer, _)
    )
}

/// The receiver may follow a pointer that it is given.
fn is_given(act: &Act) -> bool {
    matches!(act, Act::Given(..) | Act::GivenThrough(_) | Act::Leaves(_) | Act::Assembly)
}

/// The findings for places that many types arrive at.
#[derive(Default)]
pub(super) struct Many {
    /// True when none of them can be this record.
    pub(super) is_another: BTreeMap<Name, bool>,
    /// Uses that were judged: true for kept values, and true for a place where several types arrive.
    used: BTreeSet<(Act, Reach, bool, bool)>,
}

/// A use of an object among a crowd of types that identifies its own type.
fn is_seen_in_crowd(act: &Act, reach: Reach) -> bool {
    matches!((act, reach), (Act::As(..), Reach::Start))
}

/// True for a place where objects of several types arrive, such as a list's `void *`.
pub(super) fn is_generic(objects: &Objects) -> bool {
    !objects.many.is_empty() || records(&objects.each, false).len() > 1
}

/// With more types than this in a place, a use of an object that was kept there may be meant for the others.
pub(super) const CROWD: usize = 6;

fn is_crowd(objects: &Objects) -> bool {
    !objects.many.is_empty() || records(&objects.each, true).len() > CROWD
}

fn records(objects: &[Pointed], kept_only: bool) -> BTreeSet<&Name> {
    objects
        .iter()
        .filter(|(_, _, kept)| *kept || !kept_only)
        .filter_map(|(origin, _, _)| match origin {
            Origin::Object(record) => Some(record),
            _ => None,
        })
        .collect()
}
