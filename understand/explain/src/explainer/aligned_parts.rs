//! Bytes of objects that instructions ask to be aligned.

use crate::types::catalog::Ty;
use std::collections::{BTreeMap, BTreeSet};

/// The alignment that an instruction requires of its operand in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct AskedAlignment {
    pub(crate) bytes: u64,
    pub(crate) is_atomic: bool,
    /// The image that the instruction is in.
    pub(crate) image: Option<usize>,
}

/// Functions of the C library that access whole vectors at addresses that they aligned.
const OF_STRINGS: [&str; 36] = [
    "bcmp",
    "bcopy",
    "bzero",
    "memchr",
    "memcmp",
    "memcmpeq",
    "memcpy",
    "memmove",
    "mempcpy",
    "memrchr",
    "memset",
    "rawmemchr",
    "stpcpy",
    "stpncpy",
    "strcasecmp",
    "strcat",
    "strchr",
    "strchrnul",
    "strcmp",
    "strcpy",
    "strcspn",
    "strlen",
    "strncasecmp",
    "strncat",
    "strncmp",
    "strncpy",
    "strnlen",
    "strpbrk",
    "strrchr",
    "strspn",
    "strstr",
    "wcslen",
    "wcsnlen",
    "wmemchr",
    "wmemcmp",
    "wmemset",
];

/// True for code of the C library, which takes objects at any address: all that its file has, and in a static program
/// its functions of strings and memory, such as `__strcmp_avx2`.
pub(crate) fn is_of_c_library(function: &str, path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let is_its_file =
        ["libc.so", "libc-", "libc.musl", "ld-linux", "ld-musl"].iter().any(|of| file.starts_with(of));
    let reserved = function.strip_prefix("__").and_then(|name| name.split('_').next());
    is_its_file || reserved.is_some_and(|name| OF_STRINGS.contains(&name))
}

/// The parts of objects that such instructions accessed.
///
/// A layout can give an instruction its alignment only where all objects begin at the same distance from a multiple of
/// it. Code that meets objects at several distances aligns its addresses itself, as functions of strings do: it says
/// nothing about members.
#[derive(Clone, Default)]
pub(crate) struct AlignedParts(BTreeMap<(Ty, AskedAlignment), Starts>);

/// The objects of one type that instructions of one image accessed.
#[derive(Clone)]
struct Starts {
    /// Bytes from a multiple of the alignment to the object's start; `None` where these differ.
    distance: Option<u64>,
    /// Offset and size of the accessed parts.
    parts: BTreeSet<(u64, u64)>,
}

impl AlignedParts {
    /// Notes that an instruction accessed this part, offset and size, of the object of this type at `start`.
    pub(crate) fn note(&mut self, (ty, start): (Ty, u64), part: (u64, u64), asked: AskedAlignment) {
        let distance = start % asked.bytes.max(1);
        let new = || Starts { distance: Some(distance), parts: BTreeSet::new() };
        let starts = self.0.entry((ty, asked)).or_insert_with(new);
        if starts.distance != Some(distance) {
            (starts.distance, starts.parts) = (None, BTreeSet::new());
        }
        if starts.distance.is_some() {
            starts.parts.insert(part);
        }
    }

    /// Type, offset and size of each part whose alignment depends on the layout.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ty, (u64, u64), AskedAlignment)> {
        self.0.iter().flat_map(|((ty, asked), starts)| starts.parts.iter().map(|part| (*ty, *part, *asked)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: AskedAlignment = AskedAlignment { bytes: 32, is_atomic: false, image: Some(0) };

    fn parts(uses: &AlignedParts) -> Vec<(u64, u64)> {
        uses.iter().map(|(_, part, _)| part).collect()
    }

    #[test]
    fn the_c_library_takes_objects_at_any_address() {
        assert!(is_of_c_library("(no symbol)", "/usr/lib/x86_64-linux-gnu/libc.so.6"));
        assert!(is_of_c_library("__strcmp_avx2", "/home/me/static"));
        assert!(!is_of_c_library("memcpy_sse2", "/home/me/player"), "a program's own may ask for alignment");
        assert!(!is_of_c_library("strided", "/usr/lib/libcodec.so.1"));
    }

    #[test]
    fn parts_count_where_all_objects_begin_at_one_distance() {
        let mut uses = AlignedParts::default();
        for start in [0x1000, 0x1040, 0x10e0] {
            uses.note((Ty(1), start), (64, 32), ASKED);
        }
        uses.note((Ty(1), 0x1000), (96, 32), ASKED);
        assert_eq!(parts(&uses), [(64, 32), (96, 32)]);
    }

    #[test]
    fn code_that_aligns_its_addresses_itself_says_nothing_about_members() {
        let mut uses = AlignedParts::default();
        uses.note((Ty(1), 0x1000), (32, 32), ASKED);
        uses.note((Ty(1), 0x1010), (16, 32), ASKED);
        uses.note((Ty(1), 0x1000), (64, 32), ASKED);
        assert_eq!(parts(&uses), []);
        // A library's code says nothing of the program's.
        uses.note((Ty(1), 0x1000), (64, 32), AskedAlignment { image: Some(1), ..ASKED });
        assert_eq!(parts(&uses), [(64, 32)]);
    }
}
