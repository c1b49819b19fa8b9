//! Places in sources that name members of objects, and that make or end objects.

/// A place in which a member of an object is named: `x.m`, `p->m`, or `m` in a method. An edit can write another
/// expression there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NamedMember {
    /// File, relative to the source folder where it lies in it.
    pub path: String,
    /// Line of the member's name, from 1.
    pub line: u32,
    /// Column of the member's name in bytes, from 1.
    pub column: u32,
    /// The member.
    pub member: String,
    /// The object, where it is of a struct of C and its expression does not begin with a macro.
    pub object: Option<ObjectPlace>,
}

/// The expression for an object of a struct of C whose member is named.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ObjectPlace {
    /// Line of its first token, in the file of the member's name.
    pub line: u32,
    /// Column of its first token in bytes, from 1.
    pub column: u32,
    /// The array of a file, or the pointer of a file to one, of an expression that is `array[…]`.
    pub array: Option<String>,
}

/// The storage of a variable of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Storage {
    /// `static`: each unit has its own.
    Static,
    /// `extern`: another declaration defines it.
    Extern,
    /// Neither.
    Plain,
}

/// A call that makes objects of a struct of C, or ends them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HeapCall {
    /// File, relative to the source folder where it lies in it.
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
    /// `malloc`, of a size in which the object's is one of at most two operands. The text has to show that they are
    /// multiplied.
    Malloc,
    /// `calloc(n, sizeof(T))`.
    Calloc,
    /// `free(pointer)`.
    Free,
}

impl HeapFunction {
    /// Its name in the sources.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::Calloc => "calloc",
            Self::Free => "free",
        }
    }
}
