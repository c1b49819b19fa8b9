//! Symbols, variables and functions, and where their values live.
//!
//! All addresses here are link addresses.

use crate::types::{Language, SourceLocation, TypeId};
use std::ops::Range;

/// An entry of a symbol table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// The name as stored (mangled).
    pub name: String,
    /// Link address. The Thumb bit is cleared.
    pub address: u64,
    /// Size in bytes; 0 when the table gives none.
    pub size_bytes: u64,
    /// Function or data.
    pub kind: SymbolKind,
    /// True for a global or weak symbol, false for a local one.
    pub is_global: bool,
}

/// The kind of object that a symbol names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum SymbolKind {
    /// Code.
    Function,
    /// Data in memory.
    Data,
    /// Thread-local data: the address is an offset in the thread's block.
    ThreadLocal,
    /// Anything else.
    Other,
}

/// A variable, parameter or constant, and where its value is.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// Name; `None` for compiler-made ones.
    pub name: Option<String>,
    /// Type, when described.
    pub ty: Option<TypeId>,
    /// The place of its declaration.
    pub declared_at: Option<SourceLocation>,
    /// True when it is visible outside its unit.
    pub is_external: bool,
    /// The locations of its value, by program counter.
    pub places: Vec<ValueLocation>,
}

/// The location of a value while the program counter is in a range.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueLocation {
    /// Link addresses for which this holds; `None` holds everywhere in scope.
    pub range: Option<Range<u64>>,
    /// Where.
    pub at: Location,
}

/// A DWARF location, as far as naming accesses needs it. Registers carry DWARF numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// In memory at a fixed link address.
    Address(u64),
    /// In memory, in the thread's block, at this offset.
    ThreadLocal(u64),
    /// The value is in this register.
    Register(u16),
    /// The value is this register plus a constant (`DW_OP_bregN; DW_OP_stack_value`).
    RegisterPlus {
        /// DWARF register number.
        register: u16,
        /// The constant to add.
        offset: i64,
    },
    /// In memory at this register plus a constant.
    Memory {
        /// DWARF register number.
        register: u16,
        /// The constant to add.
        offset: i64,
    },
    /// In memory at the frame base plus a constant (`DW_OP_fbreg`).
    Frame {
        /// The offset from the frame base.
        offset: i64,
    },
    /// A value that the debug info gives outright.
    Constant(i64),
    /// The value is the run-time address of this link address: a pointer known to point to a variable.
    AddressOf(u64),
    /// In several places (`DW_OP_piece`). Bytes that no piece covers have no known place.
    Pieces(Vec<Piece>),
    /// Described, but by an expression that is not interpreted.
    Other,
}

/// A run of a variable's bytes that lie together. Debug info may claim more bytes than the variable's type has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Offset of its first byte in the variable.
    pub offset: u64,
    /// Its size in bytes; never 0, and `offset + size_bytes` does not overflow.
    pub size_bytes: u64,
    /// The location of its bytes. Never [`Location::Pieces`] or [`Location::Other`].
    pub at: Location,
}

/// A function with everything needed to name the data it touches.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Name as the source spells it, with namespaces.
    pub name: String,
    /// Mangled name, when it differs.
    pub linkage_name: Option<String>,
    /// Language of its unit.
    pub language: Language,
    /// Code ranges, the one with the entry first.
    pub ranges: Vec<Range<u64>>,
    /// The frame base, when it is a register plus a constant or the canonical frame address.
    pub frame_base: Option<FrameBase>,
    /// Return type; `None` is `void` or unknown.
    pub returns: Option<TypeId>,
    /// Parameters in order.
    pub parameters: Vec<Variable>,
    /// Local variables, statics included, of all nested lexical blocks.
    pub variables: Vec<Variable>,
    /// Functions inlined here, flattened, outer before inner.
    pub inlined: Vec<Inlined>,
    /// The place of its declaration.
    pub declared_at: Option<SourceLocation>,
}

/// The contents of `DW_AT_frame_base`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameBase {
    /// `DW_OP_call_frame_cfa`.
    CanonicalFrameAddress,
    /// A register, by DWARF number.
    Register(u16),
}

/// One inlined copy of a function.
#[derive(Clone, PartialEq, Debug)]
pub struct Inlined {
    /// Name of the inlined function.
    pub name: String,
    /// Its mangled name, when it differs.
    pub linkage_name: Option<String>,
    /// The place of its declaration.
    pub declared_at: Option<SourceLocation>,
    /// Code ranges of this copy.
    pub ranges: Vec<Range<u64>>,
    /// Its parameters and variables, in this copy.
    pub variables: Vec<Variable>,
    /// Source location of the call that was inlined.
    pub called_at: Option<SourceLocation>,
    /// Distinguishes the call from others on its line; 0 where the compiler gives none.
    pub call_discriminator: u32,
}

/// A row of a line table: a place in a source, distinguished from others on its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeLine {
    /// The line.
    pub at: SourceLocation,
    /// The column, from 1, in bytes; 0 where the compiler gives none.
    pub column: u32,
    /// Distinguishes blocks on one line; 0 where the compiler gives none.
    pub discriminator: u32,
}

impl Function {
    /// The entry address.
    pub fn entry(&self) -> Option<u64> {
        self.ranges.first().map(|range| range.start)
    }

    /// True when `pc` lies in one of the function's ranges.
    pub fn contains(&self, pc: u64) -> bool {
        self.ranges.iter().any(|range| range.contains(&pc))
    }
}
