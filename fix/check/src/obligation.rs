//! Findings of a check: uses of the layout, and those that somebody must vouch for.

use std::collections::HashSet;
use std::fmt;

/// Why a use of a changed type is no plain access of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The address of a member is used further.
    MemberAddress,
    /// A pointer is moved by something else than whole objects.
    Arithmetic,
    /// A number follows the layout.
    Constant,
    /// A number was an offset or size of the layout before, and stays.
    StayedConstant,
    /// Bytes of objects are copied, set, compared, read or written.
    Bytes,
    /// An object is seen through another type.
    OtherType,
    /// An object's address becomes a pointer of another type, or a number.
    ToOtherType,
    /// A pointer of another type, or a number, becomes the address of an object.
    FromOtherType,
    /// An address goes to code that is not here.
    HandedOut,
    /// An address goes to a function that a pointer names.
    IndirectCall,
    /// An address comes from callers that are not here.
    Entry,
    /// Assembler gets an address, or stands in code that has one.
    Assembler,
    /// An object stands in a section of its own.
    NamedSection,
    /// An array at the end of a type is used past its end, or may be.
    ArrayEnd,
    /// The program makes code, or loads it.
    ForeignCode,
    /// One symbol has two types.
    TwoTypes,
    /// The checker does not know this statement.
    NotUnderstood,
}

impl Kind {
    /// All of them with their names in a certificate.
    pub const ALL: [(Self, &'static str); 17] = [
        (Self::MemberAddress, "member-address"),
        (Self::Arithmetic, "arithmetic"),
        (Self::Constant, "constant"),
        (Self::StayedConstant, "stayed-constant"),
        (Self::Bytes, "bytes"),
        (Self::OtherType, "other-type"),
        (Self::ToOtherType, "to-other-type"),
        (Self::FromOtherType, "from-other-type"),
        (Self::HandedOut, "handed-out"),
        (Self::IndirectCall, "indirect-call"),
        (Self::Entry, "entry"),
        (Self::Assembler, "assembler"),
        (Self::NamedSection, "named-section"),
        (Self::ArrayEnd, "array-end"),
        (Self::ForeignCode, "foreign-code"),
        (Self::TwoTypes, "two-types"),
        (Self::NotUnderstood, "not-understood"),
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(kind, _)| kind == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

/// One thing that the map does not make harmless.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Obligation {
    /// The unit.
    pub unit: String,
    /// The function or object.
    pub function: String,
    /// The place in the source, or nothing.
    pub place: String,
    /// Its kind.
    pub kind: Kind,
    /// The type, with the members as far as they are known: `node`, `node.d`.
    pub about: String,
    /// The statement after the change.
    pub statement: String,
    /// The rule that discharges it.
    pub rule: Option<&'static str>,
}

/// Counts and obligations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Plain accesses of members of changed types.
    pub plain: u64,
    /// Numbers, indices and data that differ as the map says.
    pub explained: u64,
    /// Functions compared.
    pub functions: u64,
    /// Objects whose initial data were compared.
    pub objects: u64,
    /// The obligations.
    pub obligations: Vec<Obligation>,
    /// Records within changed types by whose pointers others of their type are reached.
    pub stepped: HashSet<String>,
}

impl Findings {
    /// Adds those of another unit.
    pub fn add(&mut self, other: Self) {
        self.plain += other.plain;
        self.explained += other.explained;
        self.functions += other.functions;
        self.objects += other.objects;
        self.obligations.extend(other.obligations);
        self.stepped.extend(other.stepped);
    }
}
