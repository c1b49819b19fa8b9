//! The proposed change of a finding, its evidence, and the places of members before and after.

use serde::Serialize;

/// The kind of change that a finding proposes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Members in the order of their use.
    Order,
    /// The members that are used in objects of their own.
    Split,
    /// An array for each member instead of an array of objects.
    Columns,
    /// Members of a Rust type in the order of their use, which takes `repr(C)`.
    ReprC,
    /// Members of a Rust type that are not used much in a `Box`.
    Boxed,
    /// The largest variant of a Rust enum in a `Box`.
    BoxedVariant,
    /// Objects of the bytes of their members alone, without the holes that alignment leaves in them and in what they hold.
    NoHoles,
    /// Integers of four bytes and more, and pointers, of half their bytes. The values are not seen: it is a bound for a
    /// person who knows them.
    Narrow,
    /// Objects loaded ahead of their use. It is a bound for a person who knows where their addresses are known early.
    Prefetch,
    /// Code without the code between that is not executed.
    Code,
    /// Data of different threads on lines of their own.
    OwnLines,
    /// A part of its own for each thread that writes a word, or fewer turns at it. It is a bound for a person who knows
    /// the meaning of the word.
    OwnParts,
}

impl Kind {
    /// Whether a change depends on what nobody sees in a run: on values, on the place where an address is known, or on
    /// the meaning of a word.
    pub fn is_conditional(self) -> bool {
        matches!(self, Kind::Narrow | Kind::Prefetch | Kind::OwnParts)
    }

    /// Whether it is about waits of threads for each other, and its shares are of stalls and waits together.
    pub fn is_of_threads(self) -> bool {
        matches!(self, Kind::OwnLines | Kind::OwnParts)
    }

    /// The part of its bound that counts in the order of findings: what depends on that counts half.
    pub fn weight(self) -> f64 {
        if self.is_conditional() { 0.5 } else { 1.0 }
    }
}

/// The evidence for a finding.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Evidence {
    /// The evidence for a type.
    Type {
        /// Bytes of an object.
        size_bytes: u64,
        /// Lines that an object of this size takes at least.
        lines: u64,
        /// Lines that its used members need.
        lines_needed: u64,
        /// Bytes of its used members.
        used_bytes: u64,
        /// Bytes that no member takes, in structs that it holds too; 0 where they are less than an eighth.
        hole_bytes: u64,
        /// The largest variant of a Rust enum that others would be smaller without.
        largest_variant: Option<LargestVariant>,
        /// Members that were used in the windows, most used first.
        used: Vec<String>,
        /// The number of members that were not used.
        unused: usize,
        /// Objects seen in the windows.
        objects: u64,
        /// The share of them with another right behind.
        in_arrays: f64,
        /// Bytes used of each line that was fetched for it, on average.
        used_bytes_per_line: Option<f64>,
    },
    /// The evidence for code.
    Code {
        /// Bytes executed in the windows.
        executed_bytes: u64,
        /// Lines they lie on.
        lines: u64,
        /// Lines they would need.
        lines_needed: u64,
    },
    /// The evidence for false sharing. Shares are of all modelled stalls with the waits between threads.
    Fight {
        /// Lines.
        lines: u64,
        /// Threads that took part.
        threads: u64,
        /// Whether the used bytes belong to one object.
        of_one_object: bool,
        /// The used members, most waits first.
        members: Vec<String>,
        /// Waits for the lines.
        waits: ThreadWaits,
    },
    /// The evidence for a word that several threads need. Shares are as for false sharing.
    Shared {
        /// The member or variable.
        word: String,
        /// How threads change it.
        change: WordChange,
        /// Threads that write it.
        writers: u64,
        /// Threads that wait for it.
        waiting: u64,
        /// Waits for its bytes.
        waits: f64,
        /// The part of all waits of threads for each other.
        of_waits: f64,
    },
}

/// How threads change a word that others wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WordChange {
    /// Several threads add to it, or change it in another way that reads it first.
    Adds,
    /// Several threads store other values.
    Stores,
    /// One thread writes it.
    ByOne,
}

/// A variant that makes all objects of an enum larger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LargestVariant {
    /// Its name.
    pub name: String,
    /// Bytes to the end of its data.
    pub size_bytes: u64,
    /// The same of the largest other one.
    pub others_bytes: u64,
    /// Bytes of an object when it is in a `Box`.
    pub size_bytes_boxed: u64,
}

/// Waits of threads for lines that another thread had, of the whole run.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct ThreadWaits {
    /// For bytes that another thread wrote or used.
    pub of_same_bytes: f64,
    /// For other bytes of the line: no thread needed the other's bytes.
    pub of_line_alone: f64,
}

impl ThreadWaits {
    /// Both kinds.
    pub fn all(self) -> f64 {
        self.of_same_bytes + self.of_line_alone
    }
}

/// The members of a type, with their use in the whole run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MemberMap {
    /// Bytes of an object.
    pub size_bytes: u64,
    /// Bytes of it, or of the part that is used much, as the finding lays it; `None` when each member goes elsewhere.
    pub size_bytes_after: Option<u64>,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Offset of an object's first byte in its line, when most of those seen begin alike.
    pub start_in_line: Option<u64>,
    /// The functions that access it most; the last is all others when there are more.
    pub functions: Vec<String>,
    /// The members by offset, accessed ones and all others.
    pub members: Vec<LaidMember>,
}

/// A member with its use.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LaidMember {
    /// Its path.
    pub path: String,
    /// Offset of its first byte.
    pub offset: u64,
    /// Bytes.
    pub size_bytes: u64,
    /// Its offset in the finding's layout; `None` when it is put apart from the members that are used much.
    pub offset_after: Option<u64>,
    /// By function: its index in [`MemberMap::functions`], loads and stores.
    pub uses: Vec<(usize, f64, f64)>,
}
