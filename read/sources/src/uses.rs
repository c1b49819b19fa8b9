//! The result: every use of a type whose meaning depends on the order of its members, and its consequence.

use crate::member_facts::MemberFacts;
use crate::split_facts::SplitFacts;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The requirement of a use on the order of a type's members.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No member may move: other code, or a file, a device or a peer, knows the order.
    Refuse,
    /// The first member stays first.
    First,
    /// These members keep their offsets.
    Keep(Vec<String>),
    /// These members stay in this order, with nothing between them.
    Adjacent(Vec<String>),
    /// The members before this one stay before it, the members after it stay after it, and it stays the first of the
    /// latter.
    Boundary(String),
    /// The member stays last.
    Last(String),
    /// An initialiser gives these members their values by position: they may move when an edit names them there.
    Named(Vec<String>),
    /// An initialiser gives these members their values by position, and can name none: they may move when an edit
    /// reorders the values there.
    Exchanged(Vec<String>),
    /// C++ constructs and destroys these members in the order of their declarations, which they keep among themselves.
    InOrder(Vec<String>),
    /// The order does not matter.
    Harmless,
}

/// The kinds of uses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UseKind {
    /// Used through a pointer to another type.
    Cast,
    /// The first member stands for the whole object.
    FirstMember,
    /// Another type begins with the same members.
    CommonLeadingMembers,
    /// `offsetof`, or the distance between members.
    Offset,
    /// A static assertion.
    Assertion,
    /// A part of the object is copied, cleared or compared.
    PartialMemory,
    /// Members are stepped through like an array.
    Walk,
    /// The object's bytes are read as bytes.
    Bytes,
    /// Shares a union.
    Union,
    /// An initialiser gives values by position.
    Positional,
    /// Volatile members or objects.
    Volatile,
    /// Given to code that is not compiled here, or coming from it.
    Crossing,
    /// A shared library shows the type to others.
    Exported,
    /// Something follows an array without a size.
    TrailingArray,
    /// Assembly uses it.
    Assembly,
    /// The object is copied, cleared or measured as a whole.
    Whole,
    /// Members are constructed and destroyed by code.
    Construction,
    /// Its memory is given back as something else than an object.
    Ended,
}

/// One use of a type.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Use {
    /// The requirement.
    pub verdict: Verdict,
    /// Its kind.
    pub kind: UseKind,
    /// File, relative to the source folder where it lies in it.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
    /// Why, as a part of a sentence.
    pub reason: String,
    /// The line of source.
    pub text: String,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.reason)?;
        if !self.text.is_empty() {
            write!(f, ": `{}`", self.text)?;
        }
        Ok(())
    }
}

/// A type of the project.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CheckedType {
    /// Tag and typedef names.
    pub names: Vec<String>,
    /// The file that declares it, relative to the source folder.
    pub path: String,
    /// Other files that declare it alike: copies of a header.
    pub copies: Vec<String>,
    /// The line of its declaration.
    pub line: u32,
    /// Its members, in order; anonymous ones have an empty name.
    pub members: Vec<String>,
    /// The facts about moving its members out of the object; `None` where no unit of C++ has it.
    #[serde(skip)]
    pub split: Option<SplitFacts>,
    /// The facts about removing its members or giving them smaller types; `None` where no unit of C has it.
    #[serde(skip)]
    pub member_facts: Option<MemberFacts>,
    /// Every use that was found, in order of verdict.
    pub uses: Vec<Use>,
}

/// The freedom of a type's members to move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Freedom {
    /// Nothing forbids an order.
    Movable,
    /// Some members stay where they are.
    Pinned,
    /// No member may move.
    Refused,
}

impl CheckedType {
    /// The freedom of its members to move. A type whose members all keep their offsets is refused.
    pub fn freedom(&self) -> Freedom {
        let mut kept: Vec<&str> = Vec::new();
        for found in &self.uses {
            match &found.verdict {
                Verdict::Refuse => return Freedom::Refused,
                Verdict::First => kept.extend(self.members.first().map(String::as_str)),
                Verdict::Keep(names) | Verdict::Adjacent(names) => {
                    kept.extend(names.iter().map(String::as_str));
                }
                Verdict::Boundary(name) | Verdict::Last(name) => kept.push(name),
                Verdict::Named(_) | Verdict::Exchanged(_) | Verdict::InOrder(_) | Verdict::Harmless => {}
            }
        }
        kept.sort_unstable();
        kept.dedup();
        match kept.len() {
            0 => Freedom::Movable,
            count if count + 1 >= self.members.len() => Freedom::Refused,
            _ => Freedom::Pinned,
        }
    }
}

/// The findings in the sources, as the compiler sees them.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Checked {
    /// The version of libclang.
    pub compiler: String,
    /// Units that were read.
    pub units_read: usize,
    /// Units that the build compiles.
    pub units: usize,
    /// Units that could not be read, and the first error of each.
    pub unread: Vec<(String, String)>,
    /// Files, relative to the source folder, that units of C++ read and none of C.
    pub only_cpp: BTreeSet<String>,
    /// The project's types, by libclang's name.
    pub types: BTreeMap<String, CheckedType>,
}

impl Checked {
    /// `checked with clang: 41 of 43 units`.
    pub fn summary(&self) -> String {
        format!("checked with clang: {} of {} units", self.units_read, self.units)
    }

    /// The types with this tag or typedef name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a CheckedType> {
        self.types.values().filter(move |ty| ty.names.iter().any(|known| known == name))
    }
}
