//! The meaning of the sources to a compiler, as far as it limits the order of members. The reader of the sources fills
//! it in; here it is data.

use crate::constraints::constraint::{Binding, Constraint};
use lineup_model::chase::Chase;
use lineup_model::object_uses::{HeapCall, HeldPart, MemberUse, MemberValues, NamedMember, Storage, Threads};
use std::collections::{BTreeMap, BTreeSet};

/// The known facts about the types of a program.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Meaning {
    /// Types of which something is asked.
    pub types: Vec<TypeMeaning>,
    /// Types that no compiler looked at, and so may not change; `None` when all were looked at, or the user asked for
    /// none of it.
    pub unchecked: Option<Unchecked>,
    /// A compiler read every unit of the program: the values by position that it knows of are all there are outside
    /// templates.
    pub is_of_all_units: bool,
    /// Accesses that an audit of the whole program saw outside the regions, by type; `None` without an audit.
    pub outside: Option<BTreeMap<String, u64>>,
    /// Uses that a person has looked at and found harmless.
    pub reviewed: Vec<Reviewed>,
    /// The places that name members of classes of C++ and structs of C.
    pub splits: Vec<SplitMeaning>,
    /// The uses of members of structs of C, and their values.
    pub members: Vec<MemberMeaning>,
    /// The loops of functions that stall, which chase pointers or index through memory.
    pub chases: Vec<Chase>,
}

/// The facts that an edit needs which removes members of a struct of C, or gives them smaller types.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MemberMeaning {
    /// The struct's names.
    pub names: Vec<String>,
    /// Uses that keep members as they are declared: those that a binding names, or all.
    pub holds: Vec<(HeldPart, Binding)>,
    /// Every use of a member.
    pub uses: Vec<MemberUse>,
    /// The values of its integers.
    pub values: BTreeMap<String, MemberValues>,
}

/// The facts that an edit needs which moves members of a class of C++ or a struct of C out of its objects.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SplitMeaning {
    /// The class's names.
    pub names: Vec<String>,
    /// Uses that keep members in the object: those that a binding names, or all.
    pub holds: Vec<Binding>,
    /// Each place that names a member of an object.
    pub named: Vec<NamedMember>,
    /// Members to which a constructor's list gives a value that its body could give, by the place of the name.
    pub initialised: Vec<NamedMember>,
    /// The compiler compares two objects member by member.
    pub is_compared: bool,
    /// The units that see it.
    pub seen_by: SeenBy,
    /// The calls that make and end objects of a struct of C.
    pub heap_calls: Vec<HeapCall>,
    /// One call makes all objects of a struct of C, and runs at most once.
    pub is_made_once: bool,
    /// The declarations of variables that are objects of a struct of C.
    pub variables: Vec<ObjectVariable>,
    /// The declarations of variables of files that point to objects.
    pub pointers: Vec<ObjectVariable>,
    /// Of these the names of those which are set to something else than null or the result of a call that makes
    /// objects, or whose address is taken.
    pub moved_pointers: BTreeSet<String>,
    /// The threads of the program.
    pub threads: Threads,
    /// Uses for which objects cannot lie in blocks of the program's own.
    pub out_of_blocks: Vec<Binding>,
    /// Uses that may see at which multiple of bytes objects lie.
    pub of_addresses: Vec<Binding>,
}

/// A declaration of a variable that is an object of a struct of C, an array of them, or a pointer of a file to one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectVariable {
    /// File, relative to the source folder.
    pub path: String,
    /// Line of its name, from 1.
    pub line: u32,
    /// Column of its name in bytes, from 1.
    pub column: u32,
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub storage: Storage,
    /// The number of units that read the declaration.
    pub units: u32,
    /// Why nothing can be declared next to it, as a part of a sentence.
    pub refusal: Option<String>,
}

/// The languages of the units that see a type.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SeenBy {
    /// C++ alone.
    #[default]
    Cpp,
    /// C alone.
    C,
    /// Both.
    Both,
}

/// A use that a person has looked at and found harmless.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reviewed {
    /// The type that the use holds.
    pub type_name: String,
    /// The file in which the use stands, relative to the source folder.
    pub file: String,
    /// A part of the reason that was reported; lines of files change too easily to name them.
    pub says: String,
    /// The reason why it is harmless, in the person's words.
    pub because: String,
}

impl Reviewed {
    /// Whether it refers to this use of a type that has one of these names.
    fn is_of(&self, names: &[String], hold: &Hold) -> bool {
        let is_there = hold.binding.at.as_ref().is_some_and(|at| at.path == self.file);
        let said = hold.binding.detail.as_deref().unwrap_or_default();
        is_there && names.contains(&self.type_name) && said.contains(&self.says)
    }
}

/// Types of which it is not known how they are used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unchecked {
    /// The reason, as a sentence.
    pub why: String,
    /// Names of the types that were looked at, as far as the sources could be read.
    pub known: BTreeSet<String>,
}

/// The constraints on one type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeMeaning {
    /// Tag and typedef names.
    pub names: Vec<String>,
    /// The file that declares it, relative to the source folder; empty when any file will do.
    pub path: String,
    /// The uses that hold its members.
    pub holds: Vec<Hold>,
}

/// One use of the type, and its effect on an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    /// The constraint in its reported form. Its names are the members that are held.
    pub binding: Binding,
    /// The effect on the members.
    pub effect: Effect,
}

/// The changes that a use forbids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Any change.
    Forbid,
    /// Another member in the first place.
    First,
    /// Another offset of the named members.
    Keep,
    /// Anything between the named members, and another order of them. Without an order that lifts it they keep their
    /// offset.
    Adjacent,
    /// A move across the named member, which stays where it is between them.
    Boundary,
    /// Another member in the last place.
    Last,
    /// Another order among the named members.
    Relative,
    /// Another offset of the named members, unless the edit names them in the initialiser at that place.
    Named,
    /// The same, but nothing can be named there: the edit reorders the values.
    Exchanged,
}

impl Meaning {
    /// Both.
    pub fn and(mut self, other: Meaning) -> Meaning {
        self.types.extend(other.types);
        self.is_of_all_units |= other.is_of_all_units;
        self.outside = self.outside.or(other.outside);
        self.unchecked = self.unchecked.or(other.unchecked);
        self.reviewed.extend(other.reviewed);
        self.splits.extend(other.splits);
        self.members.extend(other.members);
        self.chases.extend(other.chases);
        self
    }

    /// The reason why a type with these names may not change, when no compiler looked at its uses.
    pub(crate) fn unchecked(&self, names: &[String]) -> Option<Binding> {
        let unchecked = self.unchecked.as_ref()?;
        let is_known = names.iter().any(|name| unchecked.known.contains(name));
        (!is_known).then(|| Binding::new(Constraint::Unchecked).because(&unchecked.why))
    }

    /// The reason why not every unit of the program was read; `None` where each was.
    pub(crate) fn unread(&self) -> Option<&str> {
        const UNREAD: &str = "clang did not read every unit of the program";
        let why = self.unchecked.as_ref().and_then(|unchecked| unchecked.why.split(';').next());
        (!self.is_of_all_units).then(|| why.unwrap_or(UNREAD))
    }

    /// The facts for a split of the one class that has one of these names; `None` where several have it.
    pub(crate) fn split_of(&self, names: &[String]) -> Option<&SplitMeaning> {
        let mut named = self.splits.iter().filter(|one| one.names.iter().any(|name| names.contains(name)));
        named.next().filter(|_| named.next().is_none())
    }

    /// The facts about the members of the one struct that has one of these names; `None` where several have it.
    pub(crate) fn members_of(&self, names: &[String]) -> Option<&MemberMeaning> {
        let mut named = self.members.iter().filter(|one| one.names.iter().any(|name| names.contains(name)));
        named.next().filter(|_| named.next().is_none())
    }

    /// The audit's observations of a type outside the regions, in a sentence; `None` without an audit.
    pub(crate) fn seen_outside(&self, name: &str) -> Option<String> {
        let count = self.outside.as_ref()?.get(name).copied().unwrap_or_default();
        Some(match count {
            0 => "the audit saw nothing of it outside the regions: how other code uses it was not tested"
                .into(),
            count => format!(
                "the audit saw {count} accesses to it outside the regions, and nothing against a move"
            ),
        })
    }

    /// A person's review of a use of a type that has one of these names.
    pub(crate) fn review(&self, names: &[String], hold: &Hold) -> Option<&Reviewed> {
        self.reviewed.iter().find(|reviewed| reviewed.is_of(names, hold))
    }

    /// Reviews of uses that were not found: the sources have changed, or the review has a slip.
    pub fn unfounded_reviews(&self) -> impl Iterator<Item = &Reviewed> {
        let is_met = |reviewed: &Reviewed| {
            self.types.iter().any(|ty| ty.holds.iter().any(|hold| reviewed.is_of(&ty.names, hold)))
        };
        self.reviewed.iter().filter(move |reviewed| !is_met(reviewed))
    }

    /// The holds on a type that has one of these names and is declared in this file.
    pub(crate) fn holds<'m>(&'m self, names: &[String], path: &str) -> impl Iterator<Item = &'m Hold> {
        let is_it = move |ty: &&TypeMeaning| {
            let is_named = ty.names.iter().any(|name| names.iter().any(|known| known == name));
            is_named && (ty.path.is_empty() || ty.path == path || ty.path.ends_with(&format!("/{path}")))
        };
        self.types.iter().filter(is_it).flat_map(|ty| &ty.holds)
    }
}
