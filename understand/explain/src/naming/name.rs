//! The name of an access, and the evidence for it.

use crate::code::abstract_value::Origin;
use crate::types::catalog::Ty;
use serde::Serialize;

/// The target of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Name {
    /// A global or static variable.
    Variable {
        /// Index of the image.
        image: usize,
        /// Index among the image's variables.
        variable: u32,
        /// Offset in the variable.
        offset: u64,
    },
    /// A data symbol without a described variable.
    Symbol {
        /// Index of the image.
        image: usize,
        /// Index among the image's symbols.
        symbol: u32,
        /// Offset from the symbol.
        offset: u64,
    },
    /// A member of an object.
    Member {
        /// Type of the object.
        ty: Ty,
        /// Runtime address of the object; `None` when only the offset is known.
        base: Option<u64>,
        /// Offset in the object.
        offset: u64,
        /// True when the object is on a stack.
        is_on_stack: bool,
    },
    /// The stack: a local variable when known, else a spill or a saved register.
    Stack {
        /// The variable, by name number, its type and the offset in it.
        local: Option<(u32, Ty, u64)>,
    },
    /// An array of scalars or pointers behind a pointer. No member.
    Buffer {
        /// The pointer's source.
        origin: Origin,
        /// Type of an element.
        element: Ty,
    },
    /// Data that came with an image and that no variable names: literals, jump tables, linkage slots.
    Constant {
        /// Index of the image.
        image: usize,
        /// The section, by name number.
        section: u32,
    },
    /// The head that the ABI puts at the thread's base: its own address, the stack protector's guard and such.
    ThreadHead {
        /// Distance from the thread's base.
        offset: i64,
    },
    /// Thread-local storage of which the variable is not known.
    ThreadLocal {
        /// Index of the image.
        image: usize,
        /// Distance from the thread's base.
        offset: i64,
    },
    /// Touched by code of which nothing but its symbol is known.
    Library {
        /// Index of the image.
        image: usize,
        /// The function's symbol, by name number, when there is one.
        symbol: Option<u32>,
    },
    /// A program's memory that a kernel accessed, or the other side of a copy to or from it, or a page that it copied
    /// or cleared.
    Copied,
    /// In a heap block of unknown type.
    Heap,
    /// Nothing is known.
    Unknown,
}

/// A global or static variable of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum VariableId {
    /// A variable that debug info describes, by its index among the image's variables.
    Described(u32),
    /// A variable of which only the data symbol is known, by its index among the image's symbols.
    Symbol(u32),
}

/// The evidence for an access's name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Its address lies in a variable, symbol or section.
    GlobalAddress,
    /// Debug info says that the base register held this pointer.
    LocatedRegister,
    /// The base register's pointer was followed there from where it was known.
    Propagated,
    /// A recorded call was given the object's address as a pointer of this type.
    Argument,
    /// A pointer of this type held the object's address.
    PointerValue,
    /// The object was accessed elsewhere as this type.
    ObjectMap,
    /// The address is a known distance from the frame.
    Frame,
    /// The address is in a thread's stack.
    StackRange,
    /// Its address lies in a CPU's copy of a variable.
    PerCpu,
    /// The address is a known distance from the thread's base.
    ThreadBase,
    /// The address is in a program's part of the addresses, and a kernel accessed it.
    ProgramAddress,
    /// The code belongs to a library, or does nothing but copy.
    Code,
    /// None: it has no name.
    None,
}

impl Evidence {
    /// All kinds, strongest first.
    pub const ALL: [Evidence; 13] = [
        Evidence::GlobalAddress,
        Evidence::LocatedRegister,
        Evidence::Propagated,
        Evidence::Argument,
        Evidence::PointerValue,
        Evidence::ObjectMap,
        Evidence::Frame,
        Evidence::StackRange,
        Evidence::PerCpu,
        Evidence::ThreadBase,
        Evidence::ProgramAddress,
        Evidence::Code,
        Evidence::None,
    ];
}

/// A class of names, for shares.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Global and static variables and data symbols.
    Variable,
    /// Members of objects.
    Member,
    /// The stack.
    Stack,
    /// Arrays behind pointers to scalars.
    Buffer,
    /// Literals, tables, linkage slots and the head of a thread's block.
    Constant,
    /// Inside library functions with a symbol.
    Library,
    /// Data that a kernel copies for programs: their memory, the other side of a copy, and pages.
    Copied,
    /// Without a name.
    Unnamed,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 8] = [
        Class::Variable,
        Class::Member,
        Class::Stack,
        Class::Buffer,
        Class::Constant,
        Class::Library,
        Class::Copied,
        Class::Unnamed,
    ];
}

/// A name with its evidence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Named {
    /// The touched memory.
    pub name: Name,
    /// The evidence for the name.
    pub evidence: Evidence,
}

impl Named {
    /// The name of memory that library code touches, by the name of that code.
    pub(crate) fn in_library(name: Name) -> Self {
        let is_named = matches!(name, Name::Library { symbol: Some(_), .. });
        Named::new(name, if is_named { Evidence::Code } else { Evidence::None })
    }

    pub(crate) fn new(name: Name, evidence: Evidence) -> Self {
        Self { name, evidence }
    }

    /// The class of the name.
    pub fn class(&self) -> Class {
        match self.name {
            Name::Variable { .. } | Name::Symbol { .. } => Class::Variable,
            Name::Member { .. } => Class::Member,
            Name::Stack { .. } => Class::Stack,
            Name::Buffer { .. } => Class::Buffer,
            Name::Constant { .. } | Name::ThreadHead { .. } => Class::Constant,
            Name::Library { symbol: Some(_), .. } => Class::Library,
            Name::Copied => Class::Copied,
            Name::Library { symbol: None, .. } | Name::ThreadLocal { .. } | Name::Heap | Name::Unknown => {
                Class::Unnamed
            }
        }
    }
}
