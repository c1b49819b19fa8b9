//! The first bytes of a file, by which commands choose its reader.

use std::io::Read;
use std::path::Path;

/// Whether a file begins with one of these marks. Pipes and devices are not read: they might never end, nor begin.
pub(crate) fn begins_with(path: &Path, marks: &[&[u8; 8]]) -> bool {
    let mut first = [0; 8];
    let is_read = lineup_mapping::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok();
    is_read && marks.contains(&&first)
}
