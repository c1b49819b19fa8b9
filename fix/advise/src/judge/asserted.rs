//! A predicted layout as static assertions, and as the layout that debug information has to show.
//!
//! A program of one large file takes minutes to compile and a moment to parse. A candidate is therefore first checked
//! by assertions behind the declaration, which the compiler judges without making code; the whole program is compiled
//! once.

use crate::layout::placement::Placed;
use crate::layout::spelling::Spelling;
use crate::layout::subject::Subject;
use crate::text::marker_names::{is_marker, is_room};
use lineup_model::types::{Aggregate, Language, MemberRole, TypeId, Types};
use std::fmt::Write;

/// The asserted layout of a declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asserted {
    /// The file that declares it, relative to the source folder.
    pub path: String,
    /// Its name in debug information; `None` when the members identify it.
    name: Option<String>,
    /// Its name in the source.
    spelled: String,
    members: Vec<AssertedMember>,
    size_bytes: Option<u64>,
    /// The least alignment of a variable, in bytes.
    align_bytes: Option<u64>,
    /// The same for the present sources; `None` when they do not declare it.
    pub present: Option<Box<Asserted>>,
}

/// A member and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
struct AssertedMember {
    name: Option<String>,
    offset_bits: u64,
    /// False for bit-fields, base classes and members without a name, whose place no constant expression gives.
    can_be_named: bool,
}

impl Asserted {
    /// A type with its members in a new order.
    pub(crate) fn of_type(
        subject: &Subject<'_>,
        spelling: &Spelling,
        path: &str,
        field_order: &[usize],
        [present, layout]: [&Placed; 2],
    ) -> Self {
        let shape = |order: &mut dyn Iterator<Item = usize>, layout: &Placed, present| Asserted {
            path: path.to_owned(),
            name: Some(spelling.name.clone()),
            spelled: spelled(subject.types, subject.id, &spelling.name),
            members: order
                .map(|field| member(subject.aggregate, field, layout.offsets_bits[field]))
                .collect(),
            size_bytes: Some(layout.size_bytes),
            align_bytes: None,
            present,
        };
        let present = shape(&mut (0..field_order.len()), present, None);
        shape(&mut field_order.iter().copied(), layout, Some(Box::new(present)))
    }

    /// A new variable of a new struct with these members at these offsets, in bytes.
    pub(crate) fn of_variable(variable: &str, path: &str, members: &[String], offsets: &[u64]) -> Self {
        let members = members.iter().zip(offsets).map(|(name, offset)| AssertedMember {
            name: Some(name.clone()),
            offset_bits: 8 * offset,
            can_be_named: true,
        });
        Asserted {
            path: path.to_owned(),
            name: None,
            spelled: format!("__typeof__({variable})"),
            members: members.collect(),
            size_bytes: None,
            align_bytes: None,
            present: None,
        }
    }

    /// A variable with this alignment and size.
    pub(crate) fn of_placed(path: &str, variable: &str, align_bytes: u64, size_bytes: Option<u64>) -> Self {
        Asserted {
            path: path.to_owned(),
            name: None,
            spelled: variable.to_owned(),
            members: Vec::new(),
            size_bytes,
            align_bytes: Some(align_bytes),
            present: None,
        }
    }

    /// The assertions, for behind the text that declares the type: arrays whose size is negative when one fails, which
    /// every dialect of C and C++ understands. Macros that hide a member's name are taken away first. Bit-fields and
    /// base classes are left to the build that follows.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let named: Vec<(&str, u64)> = self
            .members
            .iter()
            .filter(|member| member.can_be_named)
            .filter_map(|member| Some((member.name.as_deref()?, member.offset_bits / 8)))
            .collect();
        for (name, _) in &named {
            let _ = writeln!(text, "#undef {name}");
        }
        for (name, offset) in named {
            let _ = writeln!(
                text,
                "typedef char lineup_has_{name}_at_{offset}[__builtin_offsetof({}, {name}) == {offset} ? 1 : -1];",
                self.spelled
            );
        }
        if let Some(size) = self.size_bytes {
            let _ = writeln!(
                text,
                "typedef char lineup_has_{size}_bytes[sizeof({}) == {size} ? 1 : -1];",
                self.spelled
            );
        }
        if let Some(align) = self.align_bytes {
            let spelled = &self.spelled;
            let _ = writeln!(
                text,
                "typedef char lineup_is_aligned_to_{align}[__alignof__({spelled}) >= {align} ? 1 : -1];"
            );
        }
        text
    }

    /// Whether a build has such a type.
    pub(crate) fn is_in(&self, types: &Types) -> bool {
        let is_called = |id: TypeId| {
            let own = types.get(id).and_then(|ty| ty.name.as_deref());
            self.name.as_deref().is_none_or(|name| own.is_none_or(|own| own == name))
        };
        types.iter().any(|(id, ty)| {
            types.aggregate(id).is_some_and(|(_, aggregate)| {
                is_called(id)
                    && self.size_bytes.is_none_or(|size| ty.size_bytes == Some(size))
                    && self.has_members(aggregate)
            })
        })
    }

    fn has_members(&self, aggregate: &Aggregate) -> bool {
        // An order also writes other members: two members without size for a group, and members that nobody uses for
        // room.
        let is_asserted = |name: &str| self.members.iter().any(|member| member.name.as_deref() == Some(name));
        let is_besides = |name: Option<&str>| {
            is_marker(name) || name.is_some_and(|name| is_room(name) && !is_asserted(name))
        };
        let found = aggregate.members.iter().map(|member| (member.name.as_deref(), member.offset_bits));
        let wanted = self.members.iter().map(|member| (member.name.as_deref(), Some(member.offset_bits)));
        found.filter(|(name, _)| !is_besides(*name)).eq(wanted.filter(|(name, _)| !is_marker(*name)))
    }
}

fn member(aggregate: &Aggregate, field: usize, offset_bits: u64) -> AssertedMember {
    let member = aggregate.members.get(field);
    let name = member.and_then(|member| member.name.as_deref()).map(str::to_owned);
    let is_plain = member.is_some_and(|member| member.role == MemberRole::Field && member.bit_size.is_none());
    AssertedMember { can_be_named: is_plain && name.is_some(), name, offset_bits }
}

/// The source's name of a type that debug information calls `name`.
fn spelled(types: &Types, id: TypeId, name: &str) -> String {
    let ty = types.get(id);
    match ty.map(|ty| ty.language) {
        Some(Language::Cpp) => name.replace("(anonymous namespace)::", ""),
        _ if ty.is_some_and(|ty| ty.name.is_some()) => format!("struct {name}"),
        _ => name.to_owned(),
    }
}
