//! Places in sources that name or use members of objects, and that make or end objects.

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
    /// The function of the C library.
    pub function: HeapFunction,
    /// The program's own function that the sources name instead.
    pub wrapper: Option<HeapWrapper>,
    /// The pointer of a file that is set to its result, or given to it.
    pub variable: Option<String>,
}

impl HeapCall {
    /// The function's name in the sources.
    pub fn name(&self) -> &str {
        self.wrapper.as_ref().map_or(self.function.name(), |wrapper| &wrapper.name)
    }
}

/// A function of a program that does no more with memory than return the result of `malloc` or `calloc`, or give its
/// argument to `free`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HeapWrapper {
    /// Its name.
    pub name: String,
    /// Its declaration, without the semicolon.
    pub declaration: String,
    /// The file that defines it, relative to the source folder where it lies in it.
    pub path: String,
    /// Other units do not find it.
    pub is_static: bool,
    /// Its two arguments are the number of objects and the size of one, in some order.
    pub takes_count: bool,
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

/// Functions of the C library that end or resize memory which the program gives them, or ask the allocator about it.
pub const MEMORY_ENDERS: [&str; 12] = [
    "free",
    "cfree",
    "free_sized",
    "free_aligned_sized",
    "realloc",
    "reallocarray",
    "reallocf",
    "getline",
    "getdelim",
    "__getdelim",
    "malloc_usable_size",
    "tdestroy",
];

/// A use of a member of a struct of C.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MemberUse {
    /// File, relative to the source folder where it lies in it.
    pub path: String,
    /// Line of the member's name, from 1.
    pub line: u32,
    /// Column of the member's name in bytes, from 1.
    pub column: u32,
    /// The member.
    pub member: String,
    /// The way it is used.
    pub access: MemberAccess,
}

/// The way a member is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MemberAccess {
    /// Its value is read.
    Read {
        /// Line and column of the first token of an expression whose meaning the type of the member decides: there the
        /// value needs a cast when the member gets a smaller type.
        cast_at: Option<(u32, u32)>,
    },
    /// A value is written: `x.m = 1`, `x.m += 2`, `x.m++`.
    Written(Option<WriteStatement>),
    /// A value in braces: `.m = 1`.
    Listed {
        /// The value does more than to be one.
        has_effects: bool,
    },
}

/// A write that is a statement of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WriteStatement {
    /// Line of its first token, from 1.
    pub line: u32,
    /// Column of its first token in bytes, from 1.
    pub column: u32,
    /// The value does more than to be one.
    pub has_effects: bool,
    /// It stands among others in braces, and may leave them.
    pub is_in_block: bool,
}

/// The values that an integer member may have.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MemberValues {
    /// The least.
    pub low: i64,
    /// The greatest.
    pub high: i64,
    /// File and line of a write of the value with the greatest distance from zero.
    pub widest: Option<(String, u32)>,
}

/// The part of a member's declaration that a use keeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HeldPart {
    /// All of it.
    Declaration,
    /// Its type, for as long as it is there.
    Type,
    /// Its presence; its type may change.
    Presence,
}

/// The threads of a program, by its sources.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Threads {
    /// Not known.
    #[default]
    Unknown,
    /// The program is of C, and nothing in it could start a thread.
    One,
    /// Something may start others.
    Several(ThreadStart),
}

/// A use of something that may start a thread.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ThreadStart {
    /// The name of the function, or `OpenMP`.
    pub name: String,
    /// File of the use, relative to the source folder.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
}
