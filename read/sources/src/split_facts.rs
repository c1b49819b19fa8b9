//! The facts about a class of C++ or a struct of C that an edit needs which moves members out of the object: each place
//! that names a member, each place that makes or ends objects, and each use that the edit could not follow.

use crate::runs::Runs;
use lineup_model::object_uses::{
    HeapCall, HeapFunction, HeapWrapper, NamedMember, Storage, ThreadStart, Threads,
};
use std::collections::{BTreeMap, BTreeSet};

/// The part of an object that a use depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Dependence {
    /// The places and values of its members.
    Layout,
    /// Its memory, which other code may make or end.
    Memory,
    /// Its address, as one that other code may give to `free` or `realloc`, or whose bits it may read.
    Address,
    /// The bits of its address alone: it is no reason to keep members in the object.
    Bits,
    /// Its declaration, or the calls that make and end it.
    Origin,
}

/// A use that keeps a member, or every member, in the object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SplitHold {
    /// The member that stays; `None` when all stay.
    pub member: Option<String>,
    /// Why, as a part of a sentence.
    pub reason: String,
    /// File, relative to the source folder where it lies in it.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
    /// The part of the object that the use depends on.
    pub on: Dependence,
}

/// A declaration of a variable that is an object of a struct of C, an array of them, or a pointer of a file to one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ObjectVariable {
    /// File, relative to the source folder where it lies in it.
    pub path: String,
    /// Line of its name, from 1.
    pub line: u32,
    /// Column of its name in bytes, from 1.
    pub column: u32,
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub storage: Storage,
    /// Why nothing can be declared next to it, as a part of a sentence.
    pub refusal: Option<String>,
}

/// The languages of the units that see a type.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SeenBy {
    /// Units of C.
    pub c: bool,
    /// Units of C++.
    pub cpp: bool,
}

/// The facts about one class.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SplitFacts {
    /// Its members stay in it for these reasons.
    pub holds: BTreeSet<SplitHold>,
    /// The places that name a member.
    pub named: BTreeSet<NamedMember>,
    /// Members to which a constructor's list gives a value that its body could give as well, by the place of the name.
    pub initialised: BTreeSet<NamedMember>,
    /// The compiler compares two objects member by member.
    pub is_compared: bool,
    /// The calls that make and end objects of a struct of C.
    pub heap_calls: BTreeSet<HeapCall>,
    /// One call makes all objects, and runs at most once.
    pub is_made_once: bool,
    /// The variables that are objects of a struct of C, each with the number of units that declare it there.
    pub variables: BTreeMap<ObjectVariable, u32>,
    /// The variables of files that point to objects, in the same way.
    pub pointers: BTreeMap<ObjectVariable, u32>,
    /// Of these the names of those which are set to something else than null or the result of a call that makes
    /// objects, or whose address is taken.
    pub moved_pointers: BTreeSet<String>,
    /// The languages of the units that declare it.
    pub seen_by: SeenBy,
    /// The threads of the program.
    pub threads: Threads,
    /// The program names a function of the C library that ends or resizes memory.
    pub ends_memory: bool,
}

impl SplitFacts {
    /// The uses for which members stay in the object.
    pub fn holds_in_object(&self) -> impl Iterator<Item = &SplitHold> {
        self.holds.iter().filter(|hold| hold.on != Dependence::Bits)
    }

    /// The uses for which objects cannot lie in blocks of the program's own, where only the calls that are known end
    /// them.
    pub fn holds_out_of_blocks(&self) -> impl Iterator<Item = &SplitHold> {
        self.holds.iter().filter(|hold| match hold.on {
            Dependence::Layout | Dependence::Bits => false,
            Dependence::Memory | Dependence::Address => self.ends_memory,
            Dependence::Origin => true,
        })
    }

    /// The uses that may see at which multiple of bytes objects lie: of 16 where `malloc` makes them.
    pub fn holds_of_addresses(&self) -> impl Iterator<Item = &SplitHold> {
        self.holds.iter().filter(|hold| matches!(hold.on, Dependence::Address | Dependence::Bits))
    }
}

/// A call of a function of the program that makes or ends objects if the function is a wrapper.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct WrappedCall {
    /// libclang's name of the function.
    pub(crate) function: String,
    /// The call, with the name of the function and without what its definition says.
    pub(crate) call: HeapCall,
    /// The use that the call is of another function.
    pub(crate) hold: SplitHold,
}

/// The C library's function that a definition stands for, and its name; `None` where it does more.
pub(crate) type Wrapping = Option<(HeapFunction, HeapWrapper)>;

/// The facts of one unit, or of the whole program.
#[derive(Clone, Default, Debug)]
pub(crate) struct AllSplitFacts {
    /// By libclang's name of the class.
    pub(crate) classes: BTreeMap<String, SplitFacts>,
    /// Members that templates name in objects whose type only an instance knows.
    pub(crate) in_templates: BTreeMap<String, (String, u32)>,
    /// Functions of the program that take the place of the C library's `malloc`, `calloc` or `free`.
    pub(crate) allocators: BTreeSet<(String, String, u32)>,
    /// The definitions of functions that may be wrappers, by libclang's name.
    pub(crate) wrappers: BTreeMap<String, BTreeSet<Wrapping>>,
    /// Calls of such functions, by libclang's name of the class.
    pub(crate) wrapped_calls: BTreeMap<String, BTreeSet<WrappedCall>>,
    /// Code that may start threads.
    pub(crate) thread_start: Option<ThreadStart>,
    /// Code names a function of the C library that ends or resizes memory.
    pub(crate) ends_memory: bool,
    /// Uses of functions that the program declares by itself, by libclang's name: where it does not define them, they may
    /// start threads.
    pub(crate) own_declarations: BTreeMap<String, ThreadStart>,
    /// How often functions run.
    pub(crate) runs: Runs,
}

impl AllSplitFacts {
    pub(crate) fn add(&mut self, other: AllSplitFacts) {
        for (class, facts) in other.classes {
            let known = self.classes.entry(class).or_default();
            known.holds.extend(facts.holds);
            known.named.extend(facts.named);
            known.initialised.extend(facts.initialised);
            known.is_compared |= facts.is_compared;
            known.heap_calls.extend(facts.heap_calls);
            for (variable, units) in facts.variables {
                *known.variables.entry(variable).or_default() += units;
            }
            for (pointer, units) in facts.pointers {
                *known.pointers.entry(pointer).or_default() += units;
            }
            known.moved_pointers.extend(facts.moved_pointers);
            known.seen_by.c |= facts.seen_by.c;
            known.seen_by.cpp |= facts.seen_by.cpp;
        }
        for (member, at) in other.in_templates {
            self.in_templates.entry(member).or_insert(at);
        }
        self.allocators.extend(other.allocators);
        for (function, definitions) in other.wrappers {
            self.wrappers.entry(function).or_default().extend(definitions);
        }
        for (class, calls) in other.wrapped_calls {
            self.wrapped_calls.entry(class).or_default().extend(calls);
        }
        self.thread_start = self.thread_start.take().or(other.thread_start);
        self.ends_memory |= other.ends_memory;
        self.own_declarations.extend(other.own_declarations);
        self.runs.add(other.runs);
    }

    /// The facts about a class, with the paths that `relative` gives.
    pub(crate) fn of(
        &self,
        class: &str,
        members: &[String],
        relative: impl Fn(&str) -> String,
    ) -> Option<SplitFacts> {
        let mut facts = self.classes.get(class)?.clone();
        for wrapped in self.wrapped_calls.get(class).into_iter().flatten() {
            match self.through_wrapper(wrapped) {
                Some(call) => drop(facts.heap_calls.insert(call)),
                None => drop(facts.holds.insert(wrapped.hold.clone())),
            }
        }
        let in_templates = members.iter().filter_map(|member| Some((member, self.in_templates.get(member)?)));
        facts.holds.extend(in_templates.map(|(member, (path, line))| SplitHold {
            member: Some(member.clone()),
            on: Dependence::Layout,
            reason: "a template names a member so in objects of a type that only an instance knows".into(),
            path: path.clone(),
            line: *line,
        }));
        if facts.seen_by.c {
            facts.holds.extend(self.allocators.iter().map(|(name, path, line)| SplitHold {
                member: None,
                on: Dependence::Origin,
                reason: format!("the program has a function {name} of its own"),
                path: path.clone(),
                line: *line,
            }));
        }
        let holds = facts.holds.into_iter().map(|hold| SplitHold { path: relative(&hold.path), ..hold });
        let named = |names: BTreeSet<NamedMember>| {
            names.into_iter().map(|name| NamedMember { path: relative(&name.path), ..name }).collect()
        };
        let is_made_once = self.runs.make_once(&facts.heap_calls);
        let heap_calls = facts.heap_calls.into_iter();
        let heap_calls = heap_calls.map(|mut call| {
            call.path = relative(&call.path);
            if let Some(wrapper) = &mut call.wrapper {
                wrapper.path = relative(&wrapper.path);
            }
            call
        });
        let declared = |all: BTreeMap<ObjectVariable, u32>| {
            let relative = |(one, units): (ObjectVariable, u32)| {
                (ObjectVariable { path: relative(&one.path), ..one }, units)
            };
            all.into_iter().map(relative).collect()
        };
        Some(SplitFacts {
            heap_calls: heap_calls.collect(),
            is_made_once,
            variables: declared(facts.variables),
            pointers: declared(facts.pointers),
            moved_pointers: facts.moved_pointers,
            seen_by: facts.seen_by,
            threads: Threads::Unknown,
            ends_memory: self.ends_memory,
            holds: holds.collect(),
            named: named(facts.named),
            initialised: named(facts.initialised),
            is_compared: facts.is_compared,
        })
    }

    /// The call with what the definition of its function says.
    fn through_wrapper(&self, wrapped: &WrappedCall) -> Option<HeapCall> {
        let mut definitions = self.wrappers.get(&wrapped.function)?.iter();
        let (Some(Some((function, wrapper))), None) = (definitions.next(), definitions.next()) else {
            return None;
        };
        let makes = |one: HeapFunction| one != HeapFunction::Free;
        let is_like = makes(*function) == makes(wrapped.call.function);
        let call =
            || HeapCall { function: *function, wrapper: Some(wrapper.clone()), ..wrapped.call.clone() };
        is_like.then(call)
    }
}
