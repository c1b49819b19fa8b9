//! Branches of the machine code, as counts and as places in the sources.

use crate::types::SourceLocation;
use std::collections::BTreeMap;

/// A place in a source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourcePosition {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in bytes. `None` where debug information gives only the line, as for the call of an inlined
    /// copy.
    pub column: Option<u32>,
}

/// A direction that a branch may take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    /// Times that it went there.
    pub times: u64,
    /// The places of the next instructions that lie in the branch's own file and in the same copy of its function.
    pub places: Vec<SourcePosition>,
}

/// A conditional branch that was executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Branch {
    /// The symbol of the function that it lies in.
    pub function: String,
    /// Path of the source, as the compiler recorded it.
    pub file: String,
    /// Its place in the source.
    pub place: SourcePosition,
    /// Its two sides: the branch taken, and not taken.
    pub sides: [Side; 2],
    /// True when several answers fit the counts of instructions.
    pub is_estimated: bool,
}

/// A function of which nothing was executed, though functions that were executed could have called it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeverCalled {
    /// Its name, as the source spells it.
    pub function: String,
    /// The place of its definition.
    pub defined_at: SourceLocation,
    /// Functions that were executed and hold a call of it, by their symbols.
    pub callers: Vec<String>,
    /// Times that these stood before a way to such a call and went another.
    pub decisions: u64,
}

/// A copy of a function that was inlined and of which nothing was executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnusedCopy {
    /// The inlined function.
    pub function: String,
    /// The function that it was inlined into.
    pub into: String,
    /// The place of its call.
    pub called_at: SourceLocation,
    /// Bytes of its code.
    pub bytes: u64,
}

/// Code of a function that was executed which lies between executed code and never ran itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnusedPath {
    /// The symbol of the function that it lies in.
    pub function: String,
    /// The place of its beginning in the sources.
    pub at: SourceLocation,
    /// Bytes of its code.
    pub bytes: u64,
    /// Times that conditions which may lead to it had the other result.
    pub decisions: u64,
}

/// The execution count of each place, by file. A place with several instructions counts the most frequent one.
pub type PlaceCounts = BTreeMap<String, BTreeMap<SourcePosition, u64>>;

/// A whole run's evidence for compiler hints.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Evidence {
    /// Conditional branches that were executed, by address.
    pub branches: Vec<Branch>,
    /// Execution counts of places: those of instructions, and by line alone those of inlined calls.
    pub executed: PlaceCounts,
    /// Functions that were never executed, and that executed ones could have called.
    pub never_called: Vec<NeverCalled>,
    /// Inlined copies that were never executed, in functions that were, largest first.
    pub unused_copies: Vec<UnusedCopy>,
    /// Other code that was never executed and lies between code that was, largest first.
    pub unused_paths: Vec<UnusedPath>,
}
