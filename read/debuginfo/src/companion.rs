//! Other files that a file's debug information lives in.

use crate::Bytes;

/// A file that the debug information refers to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Companion {
    /// The separate debug file with this build id.
    BuildId(Vec<u8>),
    /// The separate debug file named by `.gnu_debuglink`.
    DebugLink {
        /// File name without directory.
        name: String,
        /// CRC-32 of the whole file.
        crc: u32,
    },
    /// A split unit (`.dwo`).
    DwoFile {
        /// Path as recorded, relative to `comp_dir` unless absolute.
        name: String,
        /// Directory of the compilation, when recorded.
        comp_dir: Option<String>,
        /// The id that the unit in the file must have.
        dwo_id: u64,
    },
    /// The package of all split units, usually the program's path with `.dwp` appended.
    Dwp,
    /// The file shared by several through `.gnu_debugaltlink`.
    AltLink {
        /// Path as recorded, relative to the file that holds the link unless absolute.
        name: String,
        /// Build id that the file must have.
        build_id: Vec<u8>,
    },
}

/// Finds companion files: the library asks, the caller opens.
pub trait Companions {
    /// The bytes of the file wanted, or `None` when it was not found. A file that turns out to be the
    /// wrong one is ignored, and the companion is listed by [`crate::DebugInfo::missing`].
    fn find(&mut self, wanted: &Companion) -> Option<Bytes>;
}

/// Finds nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoCompanions;

impl Companions for NoCompanions {
    fn find(&mut self, _wanted: &Companion) -> Option<Bytes> {
        None
    }
}
