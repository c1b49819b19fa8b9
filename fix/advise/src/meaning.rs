//! The meaning of the sources to a compiler, as far as it limits the order of members. The reader of the sources fills
//! it in; here it is data.

use crate::constraint::{Binding, Constraint};
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
    /// The loops of functions that stall, which chase pointers or index through memory.
    pub chases: Vec<ChaseMeaning>,
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
    /// The program calls nothing that could start a thread.
    pub has_one_thread: bool,
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

/// The storage of a variable of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// `static`: each unit has its own.
    Static,
    /// `extern`: another declaration defines it.
    Extern,
    /// Neither.
    Plain,
}

/// The expression for an object of a struct of C whose member is named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectPlace {
    /// Line of its first token, in the file of the member's name.
    pub line: u32,
    /// Column of its first token in bytes, from 1.
    pub column: u32,
    /// The array of a file, or the pointer of a file to one, of an expression that is `array[…]`.
    pub array: Option<String>,
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

/// A call that makes objects of a struct of C, or ends them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeapCall {
    /// File, relative to the source folder.
    pub path: String,
    /// Line of the function's name, from 1.
    pub line: u32,
    /// Column of the function's name in bytes, from 1.
    pub column: u32,
    /// The function.
    pub function: HeapFunction,
    /// The pointer of a file that is set to its result, or given to it.
    pub variable: Option<String>,
}

/// A function of the C library that gives memory or takes it back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HeapFunction {
    /// `malloc`.
    Malloc,
    /// `calloc`.
    Calloc,
    /// `free`.
    Free,
}

impl HeapFunction {
    /// Its name in the sources.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::Calloc => "calloc",
            Self::Free => "free",
        }
    }
}

/// A place that names a member: `x.m`, `p->m`, or `m` in a method.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedMember {
    /// File, relative to the source folder.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// The member.
    pub member: String,
    /// The object, where it is of a struct of C and its expression does not begin with a macro.
    pub object: Option<ObjectPlace>,
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
        self.chases.extend(other.chases);
        self
    }

    /// The reason why a type with these names may not change, when no compiler looked at its uses.
    pub(crate) fn unchecked(&self, names: &[String]) -> Option<Binding> {
        let unchecked = self.unchecked.as_ref()?;
        let is_known = names.iter().any(|name| unchecked.known.contains(name));
        (!is_known).then(|| Binding::new(Constraint::Unchecked).because(&unchecked.why))
    }

    /// The facts for a split of the one class that has one of these names; `None` where several have it.
    pub(crate) fn split_of(&self, names: &[String]) -> Option<&SplitMeaning> {
        let mut named = self.splits.iter().filter(|one| one.names.iter().any(|name| names.contains(name)));
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

/// A loop that reaches objects by values read from memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChaseMeaning {
    /// File, relative to the source folder.
    pub path: String,
    /// Line of the loop, or of the push, from 1.
    pub line: u32,
    /// The function that it stands in.
    pub function: String,
    /// The function that stalls: this one, or one that calls it.
    pub asked: String,
    /// The type of the objects, where they have members; else the array variable that they lie in.
    pub object: Option<String>,
    /// The address to fetch ahead, or the reason why there is none.
    pub ahead: Result<Ahead, String>,
}

impl ChaseMeaning {
    /// Its place, as in `list.c:12 (walk)`.
    pub fn place(&self) -> String {
        format!("{}:{} ({})", self.path, self.line, self.function)
    }
}

/// An address that reads only what the loop reads there as well, or in a later turn for certain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// The address.
    pub address: Address,
    /// The place of the prefetch.
    pub insert: Insertion,
    /// Objects must be as large as their type.
    pub needs_whole_object: bool,
    /// The length of the file in which the place was found.
    pub file_bytes: usize,
}

/// An address as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A pointer to the object.
    Pointer {
        /// The expression.
        pointer: String,
        /// The member that is used, where it lies behind the object's first line.
        member: Option<String>,
    },
    /// The object that an element further ahead names.
    Element {
        /// The expression before the element's index.
        before: String,
        /// The expression behind it.
        after: String,
        /// The expression is the object, and not a pointer to it.
        is_address: bool,
        /// The member that is used, where it lies behind the object's first line.
        member: Option<String>,
        /// The loop's counter.
        index: String,
        /// The counter's limit.
        bound: Bound,
    },
}

/// The limit of a loop's counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The expression.
    pub limit: String,
    /// The counter reaches the limit itself.
    pub is_inclusive: bool,
    /// The comparison is of numbers without a sign.
    pub is_unsigned: bool,
}

/// A place for a statement, in bytes of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insertion {
    /// Behind a brace or a semicolon, which end here.
    Behind(usize),
    /// Before a statement of a block, which begins here.
    Before(usize),
    /// Before the one statement of a loop or an `if`: both need braces.
    Around {
        /// The beginning of the statement.
        start: usize,
        /// The end of the statement, its semicolon included.
        end: usize,
    },
}
