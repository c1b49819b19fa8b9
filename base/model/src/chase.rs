//! Loops that reach objects by values read from memory, and the addresses that they can fetch ahead.

/// The kinds of chases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Form {
    /// From an object to the next by a pointer in it: lists, chains of a hash table.
    List,
    /// From an element of an array to the object that it names.
    Array,
    /// Pointers that wait on a stack or in a queue.
    Stack,
}

/// A loop, or a place in one, that reaches an object by a value read from memory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Chase {
    /// The file, relative to the source folder.
    pub path: String,
    /// The line of the loop or of the push, from 1.
    pub line: u32,
    /// The function that it stands in.
    pub function: String,
    /// The function that stalls: this one, or one that calls it.
    pub asked: String,
    /// The kind.
    pub form: Form,
    /// The type of the object, where it has members; else the array variable that it lies in.
    pub object: Option<String>,
    /// The address to fetch ahead, or the reason why there is none.
    pub ahead: Result<Ahead, String>,
}

impl Chase {
    /// Its place, as in `list.c:12 (walk)`.
    pub fn place(&self) -> String {
        format!("{}:{} ({})", self.path, self.line, self.function)
    }
}

/// An address that reads only what the loop reads there as well, or in a later turn for certain.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ahead {
    /// The address.
    pub address: Address,
    /// The place of the prefetch.
    pub insert: Insertion,
    /// It reads a member of an object of which the loop has read an earlier member only: objects must be as large as
    /// their type.
    pub needs_whole_object: bool,
    /// The length of the file in which the place was found.
    pub file_bytes: usize,
}

/// An address as text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bound {
    /// The expression.
    pub limit: String,
    /// The counter reaches the limit itself.
    pub is_inclusive: bool,
    /// The comparison is of numbers without a sign.
    pub is_unsigned: bool,
}

/// A place for a statement, in bytes of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
