//! The names of a search, found among the texts of a file.

use memchr::memmem;
use std::collections::BTreeSet;

/// The names that entries are compared with.
pub(crate) struct SearchedNames {
    texts: Vec<Vec<u8>>,
    /// Their offsets in `.debug_str`, alone or at the end of longer texts, in ascending order.
    offsets: Vec<u32>,
}

impl SearchedNames {
    pub(crate) fn new(strings: &[u8], names: &BTreeSet<String>) -> SearchedNames {
        let mut offsets = Vec::new();
        for name in names {
            for at in memmem::find_iter(strings, name.as_bytes()) {
                if is_end(strings.get(at + name.len())) {
                    // A longer text that ends so may be a name with namespaces in it.
                    let before = strings.get(..at).unwrap_or_default();
                    let start = memchr::memrchr(0, before).map_or(0, |zero| zero + 1);
                    offsets.extend([start, at].map(|at| at as u32));
                }
            }
        }
        offsets.sort_unstable();
        offsets.dedup();
        SearchedNames { texts: names.iter().map(|name| name.as_bytes().to_owned()).collect(), offsets }
    }

    /// True for the offset of one of the names in `.debug_str`.
    #[inline]
    pub(crate) fn has_offset(&self, offset: u32) -> bool {
        self.offsets.binary_search(&offset).is_ok()
    }

    /// True for a text of which the last part is one of the names.
    pub(crate) fn has_text(&self, text: &[u8]) -> bool {
        self.texts.iter().any(|name| {
            memmem::find_iter(text, name).any(|at| {
                let is_start = at == 0 || text.get(..at).is_some_and(|before| before.ends_with(b"::"));
                is_start && matches!(text.get(at + name.len()), None | Some(b'<'))
            })
        })
    }
}

/// True at the end of a name, or where its template arguments begin.
fn is_end(byte: Option<&u8>) -> bool {
    matches!(byte, Some(0 | b'<'))
}
