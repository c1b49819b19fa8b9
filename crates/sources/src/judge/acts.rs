//! What is done through pointers.

use super::Judge;
use crate::facts::{Act, Origin, Reach, Shape, Source, Value, Where};
use crate::known;
use crate::relation::{Relation, first_leaf, relation};
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::BTreeSet;

impl Judge<'_> {
    pub(super) fn acts(&mut self) {
        let facts = self.facts;
        for (value, act, at) in &facts.acts {
            if self.is_harmless(act) {
                continue;
            }
            let objects = self.points_to.objects(value);
            let is_generic = matches!(value.source, Source::Place(_)) && is_generic(&objects);
            for (origin, reach) in objects {
                self.act(&origin, reach, (value, act), is_generic, at);
            }
        }
    }

    /// Functions that are compiled here are looked into; the objects they are given follow their parameters.
    fn is_harmless(&self, act: &Act) -> bool {
        match act {
            Act::Given(usr, name) => self.facts.defined.contains(usr) || known::ends_life(name),
            Act::GivenThrough(signature) => self.signatures.contains(signature),
            Act::Instantiated(template, _) => !self.facts.byte_templates.contains(template),
            _ => false,
        }
    }

    fn act(&mut self, origin: &Origin, reach: Reach, of: (&Value, &Act), is_generic: bool, at: &Where) {
        let (value, act) = of;
        match (origin, act) {
            (Origin::Object(record), Act::As(Shape::Record(other), _)) => {
                self.used_as_record(record, reach, other, is_generic, at);
            }
            (Origin::Object(record), Act::As(shape, spelling)) => {
                self.used_as_value(record, reach, shape, spelling, is_generic, at);
            }
            (Origin::Object(record), _) => self.object(record, reach, value, act, at),
            (Origin::MemberOf(record, member), Act::Walk(spelling, _)) => {
                self.walked(record, member, spelling, at);
            }
            // What a place gives back that pointers to many types go through is what was put there for it.
            (Origin::Bytes(_) | Origin::Foreign(..), _) if is_generic => {}
            (Origin::Bytes(array), Act::As(Shape::Record(record), _)) => {
                let reason = format!("objects are made from the bytes in {array}");
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

    fn object(&mut self, record: &Name, reach: Reach, value: &Value, act: &Act, at: &Where) {
        let (kind, reason) = match act {
            Act::Bytes => (UseKind::Bytes, "its bytes are read one by one".to_string()),
            Act::Walk(spelling, true)
                if reach == Reach::Start && matches!(value.source, Source::Place(_)) =>
            {
                (UseKind::Walk, format!("it is stepped through as an array of {spelling}"))
            }
            Act::Given(_, name) => {
                (UseKind::Crossing, format!("it is given to {name}(), which is not compiled here"))
            }
            Act::GivenThrough(_) => (
                UseKind::Crossing,
                "it is given to a function behind a pointer, and none that is compiled here fits".to_string(),
            ),
            Act::Instantiated(_, name) => {
                (UseKind::Bytes, format!("it is given to the template {name}(), which looks at bytes"))
            }
            Act::Leaves(to) => (UseKind::Crossing, format!("its address goes to {to}")),
            Act::Assembly => (UseKind::Assembly, "assembly uses it".to_string()),
            Act::Compared => (UseKind::Bytes, "its bytes are compared, and so is their order".to_string()),
            Act::Walk(..) | Act::As(..) => return,
        };
        self.find(record, Verdict::Refuse, kind, at, reason);
    }

    fn used_as_record(&mut self, record: &Name, reach: Reach, other: &Name, is_generic: bool, at: &Where) {
        if record == other {
            let reason = "a pointer to it comes back to its own type";
            return self.find(record, Verdict::Harmless, UseKind::Cast, at, reason);
        }
        match reach {
            Reach::Inside | Reach::Address => return,
            Reach::Fixed if is_generic => return,
            Reach::Fixed => {
                let reason = format!("{} is read at a fixed offset", self.name(other));
                return self.find(record, Verdict::Refuse, UseKind::Offset, at, reason);
            }
            Reach::Start => {}
        }
        let (one, two) = (self.name(record), self.name(other));
        match relation(self.facts, record, other) {
            Relation::Harmless => {}
            Relation::FirstMember => {
                self.find(
                    record,
                    Verdict::First,
                    UseKind::FirstMember,
                    at,
                    format!("used as {two}, its first member"),
                );
            }
            Relation::IsFirstOf => {
                self.find(
                    other,
                    Verdict::First,
                    UseKind::FirstMember,
                    at,
                    format!("used as {one}, its first member"),
                );
            }
            // A place that pointers to many types go through: what is taken out is what was put in.
            _ if is_generic => {}
            Relation::Common(count) => {
                self.keep_common(record, other, count, UseKind::Cast, at, "cast to or from")
            }
            Relation::None => {
                let reason = |name: &str| format!("cast to or from {name}, which has other members");
                self.find(record, Verdict::Refuse, UseKind::Cast, at, reason(&two));
                self.find(other, Verdict::Refuse, UseKind::Cast, at, reason(&one));
            }
        }
    }

    /// `int *tag = object`.
    fn used_as_value(
        &mut self,
        record: &Name,
        reach: Reach,
        shape: &Shape,
        spelling: &str,
        is_generic: bool,
        at: &Where,
    ) {
        let fits = match (first_leaf(self.facts, record), shape) {
            (Some(Shape::Scalar(a)), Shape::Scalar(b)) => a == *b,
            (Some(Shape::Pointer), Shape::Pointer) => true,
            (Some(Shape::Pointer), Shape::Scalar(8)) => true,
            _ => false,
        };
        match reach {
            Reach::Start if fits => {
                let reason = format!("its start is read as {spelling}");
                self.find(record, Verdict::First, UseKind::FirstMember, at, reason);
            }
            Reach::Start if is_generic => {}
            Reach::Start => {
                let reason = format!("its start is read as {spelling}, which its first member is not");
                self.find(record, Verdict::Refuse, UseKind::Cast, at, reason);
            }
            Reach::Fixed => {
                let reason = format!("{spelling} is read at a fixed offset");
                self.find(record, Verdict::Refuse, UseKind::Offset, at, reason);
            }
            Reach::Inside | Reach::Address => {}
        }
    }

    /// A pointer to a member is stepped: the members of its type that follow it stay where they are.
    fn walked(&mut self, record: &Name, member: &Name, spelling: &Name, at: &Where) {
        let Some(found) = self.own(record) else { return };
        let Some(start) = found.members.iter().position(|known| known.name == *member) else { return };
        let same = |&index: &usize| found.members[index].ty == *spelling;
        let first = (0..start).rev().take_while(same).last().unwrap_or(start);
        let end = (start..found.members.len()).take_while(same).last().map_or(start, |last| last + 1);
        if end - first < 2 {
            return;
        }
        let names = found.members[first..end].iter().map(|member| member.name.to_string()).collect();
        let reason = format!("a pointer to {member} is stepped through like an array of {spelling}");
        self.find(record, Verdict::Keep(names), UseKind::Walk, at, reason);
    }
}

/// A place where objects of several types come, such as a list's `void *`.
fn is_generic(objects: &[(Origin, Reach)]) -> bool {
    let records: BTreeSet<&Name> = objects
        .iter()
        .filter_map(|(origin, _)| match origin {
            Origin::Object(record) => Some(record),
            _ => None,
        })
        .collect();
    records.len() > 1
}
