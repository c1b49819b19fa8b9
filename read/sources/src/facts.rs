//! The facts of one unit about objects and the pointers to them, in a form that can be added up over units.
//!
//! Pointers are followed by *places*: variables, parameters, members of a type (of all its objects at once), results of
//! functions. The order of statements is ignored, so a pointer may be in every place that it can flow to.

use crate::member_facts::AllMemberFacts;
use crate::split_facts::AllSplitFacts;
use crate::tree::Name;
use std::collections::{BTreeMap, BTreeSet};

/// A place that may hold a pointer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum PointerPlace {
    Variable(Name),
    /// Parameter of a function, from 0. Functions that are called through pointers share the name of their type.
    Parameter(Name, usize),
    Return(Name),
    /// A member of a record.
    Member(Name, Name),
    /// The result of one call, by the place of the call.
    Result(Name),
    /// A pointer moved by `offsetof` of this record's member, by the place of the expression.
    Shifted(Name, Name, Name),
}

/// A possible target of a pointer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Origin {
    /// An object of this record.
    Object(Name),
    /// A member of an object of this record.
    MemberOf(Name, Name),
    /// The elements of a member of this record that is an array of numbers.
    Numbers(Name, Name),
    /// Plain bytes: a character array.
    Bytes(Name),
    /// The result of a function: its identity and its name.
    Foreign(Name, Name),
    /// Memory that was allocated, by the place of the call that gave it, and how many pointers lie between: 0 is a
    /// pointer to it, 1 a pointer to a pointer to it.
    Memory(Name, u8),
    /// A place that holds a pointer to an object of this record.
    Handle(Name),
    /// A place behind a pointer, by some sizes of this record.
    Element(Name),
    /// A number in which a pointer to an object of this record is kept. Its own bytes are not the object's.
    Number(Name),
    /// The bytes behind an object of this record.
    End(Name),
}

impl Origin {
    /// The memory allocated behind an object: the array of bytes without a length that its type ends with.
    pub(crate) fn behind(record: &str, array: &str) -> Origin {
        Origin::Memory(behind(record, array), 0)
    }
}

/// The name of the memory behind an object.
pub(crate) fn behind(record: &str, array: &str) -> Name {
    format!("{array} behind {record}").into()
}

/// The position in the target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Reach {
    /// At its start.
    Start,
    /// Somewhere in it.
    Inside,
    /// At an offset that is written as a number.
    Fixed,
    /// Before it, at a distance that is written as a number.
    Before,
    /// The pointer is the address of the place itself.
    Address,
}

/// The source of a pointer's value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Source {
    Place(PointerPlace),
    Origin(Origin),
    Function(Name),
}

/// A pointer's value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Value {
    pub(crate) source: Source,
    pub(crate) reach: Reach,
    /// Pointers stored on the way less pointers read: `-1` of `*place`, 1 of `&place`.
    pub(crate) level: i8,
}

impl Value {
    pub(crate) fn origin(origin: Origin) -> Value {
        Value { source: Source::Origin(origin), reach: Reach::Start, level: 0 }
    }

    pub(crate) fn place(place: PointerPlace) -> Value {
        Value { source: Source::Place(place), reach: Reach::Start, level: 0 }
    }

    /// The same, with pointers stored or read on the way.
    pub(crate) fn at_level(self, by: i8) -> Value {
        Value { level: self.level.saturating_add(by), ..self }
    }
}

/// The shape of a value's type.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Shape {
    Record(Name),
    /// Numbers and enumerations, with their size in bytes.
    Scalar(u64),
    Pointer,
    Other,
}

/// A use of a pointer's target, for any target.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Act {
    /// Used as a pointer to something else, whose type has this spelling.
    As(Shape, Name),
    /// The place of a new object of this type, by C++'s placement `new`.
    Placed(Shape, Name),
    /// Declared as this type by another file, whose objects have their own type.
    Declared(Shape, Name),
    /// Read or written byte by byte.
    Bytes,
    /// Stepped through as an array of this type; true for numbers, false for records.
    Walk(Name, bool),
    /// Stepped through as an array of bytes of this type, by a number that is not written there.
    WalkBytes(Name),
    /// Given to a function (identity, name).
    Given(Name, Name),
    /// Given to any function of this type that a pointer leads to.
    GivenThrough(Name),
    /// Given to a template's instance (the template's identity, name).
    Instantiated(Name, Name),
    /// Stored where other code finds it, described in words.
    Leaves(Name),
    /// Filled from bytes that other code may have written, described in words.
    Comes(Name),
    /// Used by assembly.
    Assembly,
    /// A variable that assembly, an alias or a lookup by name finds: which of these, in words.
    Found(Name),
    /// A part of its bytes is copied, cleared or compared, when the pointer leads to a part.
    Part,
    /// Its bytes are compared; true when as many pointers are.
    Compared(bool),
    /// Its start is taken for text.
    Text,
    /// Its text is read up to a byte that is zero.
    ReadToEnd,
    /// Given back to the allocator.
    Freed,
    /// The bytes from there to the object's end are counted by this function.
    Rest(Name),
    /// Used as a place that holds a pointer to something else.
    AsHandle(Shape, Name),
    /// A variable that another object file defines, when no unit does: identity, name.
    Elsewhere(Name, Name),
    /// Bytes up to this distance from the pointer are used, by an index that is written as a number.
    Spans(u64),
    /// Used, in these words, in a way that requires an alignment of this many bytes.
    Aligned(u64, Name),
    /// The same, for a member: whole objects, and places where objects of several types arrive, do not get this
    /// requirement.
    AlignedMember(u64, Name),
    /// Stepped over, or searched for, in units of this many bytes, which are written as a number.
    Stride(u64),
    /// Moved on by this many bytes, which are the size of a type: other things follow there.
    Past(u64),
    /// Its address is an operand of assembly that adds a number to it.
    AssemblyBeyond,
    /// Used as a function of this type: machine code, where it is memory.
    Code(Name),
    /// Made executable.
    Executable,
    /// Moved back by any number.
    Back,
    /// Its address is multiplied, shifted or divided as a number.
    Hashed,
    /// A key of a container that sorts its keys.
    Sorted,
}

/// The position in the source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Where {
    pub(crate) file: Name,
    pub(crate) line: u32,
}

/// A fact about a record itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Saying {
    /// An assertion holds the offset of a member.
    AssertedOffset(Name),
    /// The offset of a member is compared with a number.
    ComparedOffset(Name),
    /// The offset of a member is seen, in this way.
    OffsetShown(Name, Name),
    /// The members before this one are measured by its offset.
    Measured(Name),
    /// Its offset is added to a size.
    TailAllocated(Name),
    /// `offsetof` whose value nobody computes with, `container_of`.
    Offset(Name),
    /// The first bytes, up to this number, are treated by themselves.
    Prefix(u64),
    /// The members in the first bytes, up to this number, are copied to the same members, or cleared.
    LeadingMembers(u64),
    /// Bytes from the start of a member on are treated as one; their number, where known.
    Span(Name, Option<u64>),
    /// The distance between two members.
    Distance(Name, Name),
    /// Values by position, for this many members.
    Positional(usize, Follows),
    /// Values in braces that do something: the compiler works them out in the order of these members.
    WorkedOut(Vec<Name>),
    /// The compiler compares objects in the order of their members.
    Ordered,
    /// A template of the C++ library looks at the bytes.
    LibraryBytes(Name),
    /// Values among those of the enclosing object, without braces of their own.
    Unbraced,
    /// Bytes are treated as one, and their number is known only when the program runs.
    UnknownSize,
    /// A function that is compiled elsewhere gives it by value: identity, name.
    Given(Name, Name),
    /// A pointer to this record is given together with its size: where it begins with that, the pointer stands for it.
    StandsForIt(Name),
    /// A pointer to volatile objects.
    VolatilePointer,
    /// Copied or cleared whole.
    Whole(Name),
    /// It has bytes alone in it and is laid over bytes.
    Format,
    /// Objects are found by a number that is its size.
    Stride(u64),
    /// Its size is seen, in this way.
    SizeShown(Name),
    /// Its size is compared, by `<` and its like, with this number.
    SizeBounded(u64),
    /// An ABI's constant measures it.
    AbiConstant(Name),
}

/// The way that values by position can follow their members to another order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Follows {
    /// An edit names the members there.
    Named,
    /// The compiler takes no names there, or wants them in order: the values change places.
    Exchanged,
    /// No way: a macro writes them, or not every member has one where none can be named.
    Not,
}

/// A member, as far as other units need it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    pub(crate) name: Name,
    /// The canonical type.
    pub(crate) ty: Name,
    pub(crate) shape: Shape,
    /// The record in it, also inside an array.
    pub(crate) record: Option<Name>,
    /// The record that it points to.
    pub(crate) points_to: Option<Name>,
    /// The records that the functions it points to take pointers to (by parameter), and give one to.
    pub(crate) called_with: Vec<(Option<usize>, Name)>,
    /// The number that it points to: shape and spelling.
    pub(crate) points_to_number: Option<(Shape, Name)>,
    pub(crate) offset_bits: u64,
    /// The alignment that the compiler gives it in any position.
    pub(crate) align_bytes: u64,
    pub(crate) size_bytes: u64,
    pub(crate) is_bit_field: bool,
    pub(crate) is_volatile: bool,
    pub(crate) is_array: bool,
    /// An array without a size, or with none or one element.
    pub(crate) is_open_array: bool,
    /// Plain bytes or whole words that overlay the other members of a union.
    pub(crate) is_raw: bool,
}

/// A record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecordFact {
    pub(crate) names: Vec<String>,
    pub(crate) is_union: bool,
    pub(crate) is_foreign: bool,
    pub(crate) at: Where,
    /// Other files that declare it with the same members: copies of a header.
    pub(crate) copies: BTreeSet<Name>,
    pub(crate) size_bytes: u64,
    pub(crate) members: Vec<Member>,
    pub(crate) bases: Vec<Name>,
    /// Its own constructors, destructor or initial values run code.
    pub(crate) runs_code: bool,
}

/// A call whose function is known, or known by its type.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Call {
    /// The function, or the type of functions called through a pointer.
    pub(crate) function: Name,
    /// The arguments, by parameter.
    pub(crate) given: Vec<Vec<Value>>,
    /// The number of parameters that the function names; it reads arguments beyond them one after another.
    pub(crate) named: usize,
    /// The arguments beyond these that are written as pointers to characters.
    pub(crate) texts: Vec<usize>,
    /// The place of its result.
    pub(crate) result: PointerPlace,
    pub(crate) at: Where,
}

/// Bytes that are copied from one place to another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Copied {
    pub(crate) to: Vec<Value>,
    pub(crate) from: Vec<Value>,
    pub(crate) at: Where,
}

/// A pointer that a function, unless it is compiled here, carries to functions of the program.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Carried {
    /// The function that carries it: identity, name.
    pub(crate) by: Name,
    pub(crate) name: Name,
    pub(crate) values: Vec<Value>,
    /// The functions that it is carried to, and the types of those that pointers lead to.
    pub(crate) functions: BTreeSet<Name>,
    pub(crate) signatures: BTreeSet<Name>,
    /// The places where it arrives.
    pub(crate) to: BTreeSet<PointerPlace>,
    pub(crate) at: Where,
}

/// A place that holds numbers, such as offsets.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct NumberPlace {
    /// The variable that has it in it.
    pub(crate) table: Option<Name>,
    pub(crate) place: PointerPlace,
}

/// A number that may come from a layout.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Distance {
    /// The offset of a member: the record, the member.
    Of(Name, Name),
    /// The size of this record, or a number that is worked out from it.
    Size(Name),
    /// A number as it is written; given together with an object of this record.
    Written(u64, Option<Name>),
    /// A number in another place.
    From(NumberPlace),
    /// The size of this record, and nothing else.
    Whole(Name),
    /// The size of a plain number.
    Width(u64),
    /// A number that is added to the one there, or the size of this record.
    Added(u64),
    AddedSize(Name),
    /// A number in another place that is added to the one there.
    AddedFrom(NumberPlace),
}

/// A pointer that is moved by some sizes of a record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Step {
    pub(crate) from: Vec<Value>,
    pub(crate) by: StepSize,
    /// The place of the sum, where the record is not written there.
    pub(crate) to: Option<PointerPlace>,
    pub(crate) at: Where,
}

/// The size by which a pointer is moved.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum StepSize {
    /// That of this record.
    Of(Name),
    /// A number in a place.
    In(NumberPlace),
}

/// A use of a number that depends on its value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum NumberUse {
    /// Compared with a number that is written, for equality.
    Equals(u64),
    /// Compared with a number that is written, by `<` and its like.
    Bounded(u64),
    /// Compared with the number in another place, for equality.
    EqualsPlace(NumberPlace),
    /// Seen, in this way.
    Shown(Name),
    /// The index of an array's element.
    Index,
}

/// A parameter, or the result, that is no pointer to something else: an object or a number by value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ValueSlot {
    /// The parameter, from 0; `None` for the result.
    pub(crate) parameter: Option<usize>,
    pub(crate) shape: Shape,
    pub(crate) spelling: Name,
    /// The target of a pointer, or the elements of an array there, unless these are bytes.
    pub(crate) target: Option<(Shape, Name)>,
}

/// A cast of a pointer to functions of one type to another type, each by its spelling.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct FunctionCast {
    pub(crate) from: Name,
    pub(crate) to: Name,
    pub(crate) at: Where,
}

/// A pointer that a function takes or gives, by a declaration.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Slot {
    pub(crate) function: Name,
    /// The parameter, from 0; `None` for the result.
    pub(crate) parameter: Option<usize>,
    pub(crate) shape: Shape,
    /// The type that is pointed to.
    pub(crate) spelling: Name,
    /// The function's body is there.
    pub(crate) is_definition: bool,
    pub(crate) at: Where,
}

/// The facts of one unit, or of the whole program.
#[derive(Clone, Default, Debug)]
pub(crate) struct Facts {
    /// The facts about classes whose members an edit may move out of the object.
    pub(crate) splitting: AllSplitFacts,
    /// The facts about structs whose members an edit may remove, or give smaller types.
    pub(crate) members: AllMemberFacts,
    pub(crate) records: BTreeMap<Name, RecordFact>,
    /// The definitions of the project's records, with their members: types may share a name.
    pub(crate) definitions: BTreeMap<Name, BTreeMap<Where, Vec<Member>>>,
    pub(crate) flows: BTreeSet<(Value, PointerPlace)>,
    pub(crate) calls: BTreeSet<Call>,
    /// Copies of which not both sides are typed.
    pub(crate) copies: BTreeSet<Copied>,
    pub(crate) acts: BTreeSet<(Value, Act, Where)>,
    /// The same, done by giving the pointer to a function as this parameter.
    pub(crate) given_as: BTreeSet<(Value, Act, Where, (Name, usize))>,
    /// Places of numbers whose address is taken.
    pub(crate) numbers: BTreeSet<PointerPlace>,
    /// The pointers that libraries carry, if the functions are libraries'.
    pub(crate) carried: BTreeSet<Carried>,
    /// Parameters that their functions' bodies name.
    pub(crate) named_parameters: BTreeSet<(Name, usize)>,
    pub(crate) sayings: BTreeSet<(Name, Saying, Where)>,
    /// Functions with a body.
    pub(crate) defined: BTreeSet<Name>,
    /// Functions whose address is taken, by the type they are called as.
    pub(crate) taken: BTreeSet<(Name, Name)>,
    /// Numbers that may come from a layout, by the places that they are stored in.
    pub(crate) distances: BTreeSet<(NumberPlace, Distance, Where)>,
    /// Uses of the numbers in places.
    pub(crate) number_uses: BTreeSet<(NumberPlace, NumberUse, Where)>,
    /// Pointers to bytes that are moved by the number in a place.
    pub(crate) moved_by: BTreeSet<(Value, NumberPlace, Where)>,
    /// The sizes of templates' parameters, by names that stand for them, and the records that their instances are made for.
    pub(crate) instances: BTreeSet<(Name, Name)>,
    /// Pointers to bytes that are moved by sizes of records.
    pub(crate) steps: BTreeSet<Step>,
    /// Pointers to bytes to which the number in a place is added again and again.
    pub(crate) advanced_by: BTreeSet<(Value, NumberPlace, Where)>,
    /// Places with pointers that are moved on.
    pub(crate) moved_on: BTreeSet<PointerPlace>,
    /// Addresses of which the code asks which is lower.
    /// Addresses of which the distance is worked out.
    pub(crate) subtracted: BTreeSet<(Vec<Value>, Vec<Value>, Where)>,
    pub(crate) compared: BTreeSet<(Vec<Value>, Vec<Value>, Where)>,
    /// Objects that are given whole among a function's further arguments: the function, and the object's record.
    pub(crate) further_objects: BTreeSet<(Name, Name, Where)>,
    /// Casts of pointers to functions.
    pub(crate) function_casts: BTreeSet<FunctionCast>,
    /// The types of functions that are used by their address.
    pub(crate) function_types: BTreeMap<Name, Name>,
    /// The parameters and results of these functions, and of the types in casts.
    pub(crate) value_slots: BTreeMap<Name, BTreeSet<ValueSlot>>,
    /// Templates that look at the bytes of their arguments.
    pub(crate) byte_templates: BTreeSet<Name>,
    /// Methods of class templates that read objects as numbers, or copy them from bytes or to bytes.
    pub(crate) byte_methods: BTreeSet<Name>,
    /// Calls of methods of classes that templates make: the method's template, its name, the class.
    pub(crate) method_calls: BTreeSet<(Name, Name, Name, Where)>,
    /// Records whose members are used outside of functions that give memory or take it back.
    pub(crate) looked_into: BTreeSet<Name>,
    /// Members of unions that code names.
    pub(crate) alternatives: BTreeSet<(Name, Name)>,
    /// Members with text that may have no end: the text fills them.
    pub(crate) endless_texts: BTreeSet<(Name, Name)>,
    /// Members of which code writes single bytes, such as the text's end.
    pub(crate) ended_texts: BTreeSet<(Name, Name)>,
    /// Arrays of bytes by name, and the most bytes that one of this name has.
    pub(crate) byte_arrays: BTreeMap<Name, u64>,
    /// Functions and variables of the units' common names, with their types: a unit that could not be read may use
    /// them.
    pub(crate) mentions: BTreeSet<(Name, Name)>,
    /// Files of the project that units of C read; those that units of C++ read follow.
    pub(crate) read_as_c: BTreeSet<Name>,
    pub(crate) read_as_cpp: BTreeSet<Name>,
    /// The types that units assume for functions of external linkage.
    pub(crate) signatures: BTreeSet<Slot>,
    /// Addresses that are given, as something else than a pointer to an object, to a function that may end its life:
    /// that function, the caller, the address.
    pub(crate) ended: BTreeSet<(Name, Name, Value, Where)>,
    /// Objects in sections of their own.
    pub(crate) in_sections: BTreeSet<Value>,
    /// Variables in sections of their own: the name, the section, the object there.
    pub(crate) section_variables: BTreeSet<(Name, Name, Value, Where)>,
    /// Variables that code names, of those that are in sections or that units share.
    pub(crate) named_variables: BTreeSet<Name>,
    /// Arrays that units declare and do not define: where a section begins or ends, if no unit defines them.
    pub(crate) outer_arrays: BTreeSet<Name>,
    /// The linker's names of functions that have a label or an alias.
    pub(crate) linked_as: BTreeMap<Name, Name>,
    /// Functions that are looked up by name: the name, and the means.
    pub(crate) looked_up: BTreeSet<(Name, Name, Where)>,
    /// Lookups of something other than a function by a name that is not written there: the means.
    pub(crate) open_lookups: BTreeSet<(Name, Where)>,
    /// Files are read and written without the system's buffers, whose devices ask for aligned memory.
    pub(crate) has_direct_files: bool,
    /// Functions that the linker shows to others: the name, and the records in their parameters and results.
    pub(crate) exported: BTreeSet<(Name, Name, Where)>,
}

/// The linker's names for the beginning and end of a section.
pub(crate) const SECTION_ENDS: [&str; 2] = ["__start_", "__stop_"];

impl Facts {
    /// A pointer that a function is given, as its parameter's type, is used so, unless the body leaves the parameter
    /// alone.
    pub(crate) fn settle_given(&mut self) {
        for (value, act, at, parameter) in std::mem::take(&mut self.given_as) {
            let is_left_alone =
                self.defined.contains(&parameter.0) && !self.named_parameters.contains(&parameter);
            if !is_left_alone {
                self.acts.insert((value, act, at));
            }
        }
    }

    /// A linker script gives the ends of a section any name: an array that no unit defines may be where objects lie.
    pub(crate) fn settle_sections(&mut self) {
        let ends = self.outer_arrays.iter().filter(|name| !self.defined.contains(*name));
        let ends: Vec<PointerPlace> = ends.cloned().map(PointerPlace::Variable).collect();
        // Without a name for its ends, code outside of the program reads the section.
        let named = |name: &Name| self.named_variables.contains(name);
        for (variable, section, value, at) in &self.section_variables {
            let has_end = SECTION_ENDS.iter().any(|end| named(&format!("c:@{end}{section}").into()));
            if ends.is_empty() && !has_end && !named(variable) {
                let to = format!("the section {section}, from which nothing here reads it");
                self.acts.insert((value.clone(), Act::Leaves(to.into()), at.clone()));
            }
        }
        for end in ends {
            let lies_there = self.in_sections.iter().map(|value| (value.clone(), end.clone()));
            self.flows.extend(lies_there);
        }
    }

    /// A pointer that a library carries arrives at the functions of the program that it is carried to. Where one of
    /// them is not compiled here, the pointer is given away like any other.
    pub(crate) fn settle_carried(&mut self) {
        let signatures: BTreeSet<&Name> = self.taken.iter().map(|(signature, _)| signature).collect();
        for carried in std::mem::take(&mut self.carried) {
            if self.defined.contains(&carried.by) {
                continue;
            }
            let comes_back = carried.functions.iter().all(|function| self.defined.contains(function))
                && carried.signatures.iter().all(|signature| signatures.contains(signature));
            for value in carried.values {
                if comes_back {
                    self.flows.extend(carried.to.iter().map(|place| (value.clone(), place.clone())));
                } else {
                    let given = Act::Given(carried.by.clone(), carried.name.clone());
                    self.acts.insert((value, given, carried.at.clone()));
                }
            }
        }
    }

    /// Adds another unit's.
    pub(crate) fn add(&mut self, other: Facts) {
        for (usr, record) in other.records {
            if !record.members.is_empty() && !record.is_foreign {
                let places = self.definitions.entry(usr.clone()).or_default();
                places.entry(record.at.clone()).or_insert_with(|| record.members.clone());
            }
            let known = self.records.entry(usr).or_insert_with(|| record.clone());
            for name in record.names {
                if !known.names.contains(&name) {
                    known.names.push(name);
                }
            }
            if known.at.file != record.at.file
                && !record.members.is_empty()
                && known.members == record.members
            {
                known.copies.insert(record.at.file.clone());
            }
            known.copies.extend(record.copies);
            if known.members.is_empty() && !record.members.is_empty() {
                (known.members, known.size_bytes, known.bases) =
                    (record.members, record.size_bytes, record.bases);
                known.at = record.at;
                known.runs_code = record.runs_code;
            }
        }
        self.splitting.add(other.splitting);
        self.members.add(other.members);
        self.flows.extend(other.flows);
        self.calls.extend(other.calls);
        self.copies.extend(other.copies);
        self.acts.extend(other.acts);
        self.given_as.extend(other.given_as);
        self.numbers.extend(other.numbers);
        self.carried.extend(other.carried);
        self.named_parameters.extend(other.named_parameters);
        self.sayings.extend(other.sayings);
        self.defined.extend(other.defined);
        self.taken.extend(other.taken);
        self.distances.extend(other.distances);
        self.number_uses.extend(other.number_uses);
        self.moved_by.extend(other.moved_by);
        self.steps.extend(other.steps);
        self.instances.extend(other.instances);
        self.advanced_by.extend(other.advanced_by);
        self.moved_on.extend(other.moved_on);
        self.compared.extend(other.compared);
        self.subtracted.extend(other.subtracted);
        self.further_objects.extend(other.further_objects);
        self.function_casts.extend(other.function_casts);
        self.function_types.extend(other.function_types);
        self.value_slots.extend(other.value_slots);
        self.byte_templates.extend(other.byte_templates);
        self.byte_methods.extend(other.byte_methods);
        self.method_calls.extend(other.method_calls);
        self.looked_into.extend(other.looked_into);
        self.alternatives.extend(other.alternatives);
        self.endless_texts.extend(other.endless_texts);
        self.ended_texts.extend(other.ended_texts);
        for (array, bytes) in other.byte_arrays {
            let most = self.byte_arrays.entry(array).or_default();
            *most = (*most).max(bytes);
        }
        self.mentions.extend(other.mentions);
        self.read_as_c.extend(other.read_as_c);
        self.read_as_cpp.extend(other.read_as_cpp);
        self.signatures.extend(other.signatures);
        self.exported.extend(other.exported);
        self.ended.extend(other.ended);
        self.in_sections.extend(other.in_sections);
        self.section_variables.extend(other.section_variables);
        self.named_variables.extend(other.named_variables);
        self.outer_arrays.extend(other.outer_arrays);
        self.linked_as.extend(other.linked_as);
        self.looked_up.extend(other.looked_up);
        self.open_lookups.extend(other.open_lookups);
        self.has_direct_files |= other.has_direct_files;
    }
}
