//! The types that objects, and members, are used as: other records, numbers, text, vectors.

use super::Judge;
use super::direct_uses::keep;
use crate::collect::OWN_TYPE;
use crate::facts::{Act, Reach, Shape, Source, Value, Where};
use crate::library_functions::{
    self,
    vectors::{self, VectorAccess},
};
use crate::relation::{Relation, begins_with_text, first_leaf};
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};

/// The size of a pointer.
const POINTER_BYTES: u64 = 8;

/// From this size on, compilers read and write a value by instructions that ask for its alignment.
const VECTOR_BYTES: u64 = 16;

impl Judge<'_> {
    pub(super) fn used_as_record(
        &mut self,
        record: &Name,
        reach: Reach,
        other: &Name,
        is_generic: bool,
        at: &Where,
    ) {
        if record == other {
            let reason = "a pointer to it comes back to its own type";
            return self.find(record, Verdict::Harmless, UseKind::Cast, at, reason);
        }
        match reach {
            Reach::Inside | Reach::Before | Reach::Address => return,
            Reach::Fixed if is_generic => return,
            Reach::Fixed => {
                let reason = format!("{} is read at a fixed offset", self.name(other));
                return self.find(record, Verdict::Refuse, UseKind::Offset, at, reason);
            }
            Reach::Start => {}
        }
        let (one, two) = (self.name(record), self.name(other));
        match self.relations.of(record, other) {
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
            // A place that pointers to many types go through: an object is taken out as the type it was stored as.
            _ if is_generic => {}
            Relation::Common(own, others) => {
                self.keep_common((record, own), (other, others), UseKind::Cast, at, "cast to or from")
            }
            Relation::SharedStart(holders) => {
                for holder in holders {
                    let reason = format!("{one} is cast to or from {two}, which begins with the same object");
                    self.find(&holder, Verdict::First, UseKind::FirstMember, at, reason);
                }
            }
            Relation::None => {
                let reason = |name: &str| format!("cast to or from {name}, which has other members");
                self.find(record, Verdict::Refuse, UseKind::Cast, at, reason(&two));
                self.find(other, Verdict::Refuse, UseKind::Cast, at, reason(&one));
            }
        }
    }

    /// `int *tag = object`.
    pub(super) fn used_as_value(
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
            Reach::Start | Reach::Inside if fits && (reach == Reach::Start || is_generic) => {
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
            Reach::Inside if !is_generic && !self.measured.contains(record) => {
                let reason = format!(
                    "{spelling} is read at an offset that is worked out, and nothing takes offsets of its members"
                );
                self.find(record, Verdict::Refuse, UseKind::Offset, at, reason);
            }
            Reach::Inside | Reach::Before | Reach::Address => {}
        }
    }

    /// `printf("%s", (char *)object)`: the text that it begins with.
    pub(super) fn used_as_text(&mut self, record: &Name, reach: Reach, at: &Where) {
        if reach == Reach::Start && begins_with_text(self.facts, record) {
            let reason = "its start is taken for text";
            self.find(record, Verdict::First, UseKind::FirstMember, at, reason);
        }
    }

    /// `*(long *)&x->low`: the code also reads the bytes after the member.
    pub(super) fn member_used_as(
        &mut self,
        (record, member): (&Name, &Name),
        reach: Reach,
        (shape, spelling): (&Shape, &Name),
        value: &Value,
        at: &Where,
    ) {
        let is_direct = matches!(value.source, Source::Origin(_));
        let Some(found) = self.own(record) else { return };
        let Some(known) = found.members.iter().find(|known| known.name == *member) else { return };
        let bytes = match shape {
            Shape::Scalar(bytes) => *bytes,
            Shape::Pointer => POINTER_BYTES,
            // Records that begin alike are used through that beginning, which is held in the member's own type.
            Shape::Record(other) if known.record.as_ref().is_some_and(|own| self.begin_alike(own, other)) => {
                0
            }
            Shape::Record(other) if is_direct && other != record => {
                self.facts.records.get(other).map_or(0, |other| other.size_bytes)
            }
            _ => 0,
        };
        let is_elsewhere = (is_direct || self.are_members_of_one(value))
            && matches!(reach, Reach::Fixed | Reach::Inside)
            && !known.is_array
            && known.record.is_none()
            && !matches!(shape, Shape::Record(_))
            && !self.measured.contains(record);
        if is_elsewhere {
            let reason = format!("{spelling} is read at a distance from {member}");
            self.find(record, Verdict::Refuse, UseKind::Offset, at, reason);
        } else if reach == Reach::Start
            && known.size_bytes > 0
            && (bytes > known.size_bytes || (is_direct && bytes >= VECTOR_BYTES && known.record.is_none()))
        {
            let verdict = keep(found, known.offset_bits / 8, Some(bytes));
            let reason = format!("{bytes} bytes from {member} on are used as {spelling}");
            self.find(record, verdict, UseKind::PartialMemory, at, reason);
        }
    }

    /// `struct pair *p = bytes` where `&x->low` was given as bytes, and nothing but members: those behind it are used.
    pub(super) fn member_taken_for(&mut self, (record, member): (&Name, &Name), act: &Act, at: &Where) {
        let Act::As(Shape::Record(other), spelling) = act else { return };
        let Some(found) = self.own(record) else { return };
        let Some(known) = found.members.iter().find(|known| known.name == *member) else { return };
        let bytes = self.facts.records.get(other).map_or(0, |other| other.size_bytes);
        if known.record.is_some() || known.size_bytes == 0 || bytes <= known.size_bytes {
            return;
        }
        let reason = format!("{bytes} bytes from {member} on are used as {spelling}");
        let verdict = match other == record && known.offset_bits == 0 {
            true => Verdict::First,
            false => keep(found, known.offset_bits / 8, Some(bytes)),
        };
        self.find(record, verdict, UseKind::PartialMemory, at, reason);
    }

    /// `_mm_loadu_ps(&x->a)`: all members that fit into the vector lie there, and at that distance from a boundary.
    pub(super) fn member_in_vector(&mut self, record: &Name, member: &Name, function: &Name, at: &Where) {
        let Some(access) = vectors::access(function) else { return };
        let Some(found) = self.own(record) else { return };
        let Some(known) = found.members.iter().find(|known| known.name == *member) else { return };
        // The target of a pointer is not the member.
        if known.shape == Shape::Pointer && !known.is_array {
            return;
        }
        let (verdict, what) = match access {
            VectorAccess::Bytes(bytes) => {
                (keep(found, known.offset_bits / 8, Some(bytes)), format!("{bytes} bytes"))
            }
            VectorAccess::Scattered => (Verdict::Refuse, "bytes at distances that are worked out".to_owned()),
        };
        if let VectorAccess::Bytes(bytes) = access
            && vectors::is_aligned(function)
        {
            let reason = format!("{function}() asks for {member} at a multiple of {bytes} bytes");
            self.aligned((record, member), bytes, &reason, at);
        }
        let reason = format!("{what} from {member} on are a vector of {function}()");
        self.find(record, verdict, UseKind::PartialMemory, at, reason);
    }

    /// `glVertex3fv(&v->x)`: a function that is not compiled here may use further numbers of the member's type. Most
    /// take the address of an integer to put one there.
    pub(super) fn member_in_run(
        &mut self,
        (record, member): (&Name, &Name),
        reach: Reach,
        function: &Name,
        at: &Where,
    ) {
        let Some(found) = self.own(record).filter(|_| reach == Reach::Start) else { return };
        let Some(start) = found.members.iter().position(|known| known.name == *member) else { return };
        let ty = &found.members[start].ty;
        if !matches!(&**ty, "float" | "double") || library_functions::takes_one_number(function) {
            return;
        }
        let run = found.members[start..].iter().take_while(|known| known.ty == *ty);
        let names: Vec<String> = run.map(|known| known.name.to_string()).collect();
        if names.len() > 1 {
            let reason = format!("{function}() is given the address of {member} and may use what follows it");
            self.find(record, Verdict::Keep(names), UseKind::Walk, at, reason);
        }
    }

    /// A list's head that links are compared with and its entries: both begin with the same links.
    pub(super) fn begin_alike(&self, one: &Name, two: &Name) -> bool {
        matches!(self.relations.of(one, two), Relation::Common(..))
    }

    /// A pointer to a member is stepped: the members of its type that follow it stay where they are.
    pub(super) fn walked(
        &mut self,
        record: &Name,
        member: &Name,
        spelling: &Name,
        is_direct: bool,
        at: &Where,
    ) {
        let Some(found) = self.own(record) else { return };
        let Some(start) = found.members.iter().position(|known| known.name == *member) else { return };
        let own = &found.members[start].ty;
        let spelling = if **spelling == *OWN_TYPE { own } else { spelling };
        let same = |&index: &usize| found.members[index].ty == *spelling;
        let first = (0..start).rev().take_while(same).last().unwrap_or(start);
        let end = (start..found.members.len()).take_while(same).last().map_or(start, |last| last + 1);
        // `&x->count + 1` is where the next member lies.
        let is_alone = !found.members[start].is_array && found.members[start].record.is_none();
        let reaches_next = is_direct && is_alone;
        let end = if reaches_next { (end + 1).min(found.members.len()) } else { end };
        if end - first < 2 {
            return;
        }
        let names = found.members[first..end].iter().map(|member| member.name.to_string()).collect();
        let verdict = if reaches_next { Verdict::Keep(names) } else { Verdict::Adjacent(names) };
        let reason = format!("a pointer to {member} is stepped through like an array of {spelling}");
        self.find(record, verdict, UseKind::Walk, at, reason);
    }
}
