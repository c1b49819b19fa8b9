//! Limits on the claimed size of compressed sections.
//!
//! A section's header gives the length of its contents, and that much memory is allocated before they are unpacked. A
//! small file must not ask for much: each section is limited to a ratio that no debug information comes near, and all
//! of them together to a multiple of the file's length.

use crate::Error;
use object::{CompressionFormat, Object, ObjectSection};

/// The bytes that any section may hold, however small its compressed form is.
const FREE_BYTES: u64 = 16 << 20;
/// Beyond that, the maximum bytes that a section may hold per compressed byte. Debug information of compilers has a
/// ratio of three to ten; Deflate's greatest ratio is 1032.
const MOST_RATIO: u64 = 64;
/// All sections of a file together hold at most this, plus the next constant's number of bytes per byte of the file.
const FREE_BYTES_OF_ALL: u64 = 64 << 20;
const MOST_RATIO_OF_ALL: u64 = 32;

/// Refuses a file whose sections claim more than they can hold.
pub(super) fn check<'data>(elf: &impl Object<'data>, file_bytes: u64) -> Result<(), Error> {
    let refused = |why| Err(Error::Damaged { what: "section", why });
    let mut claimed_by_all: u64 = 0;
    for section in elf.sections() {
        // A header that cannot be read is found when the section is asked for.
        let Ok(range) = section.compressed_file_range() else { continue };
        if range.format == CompressionFormat::None {
            continue;
        }
        let (packed, claimed) = (range.compressed_size, range.uncompressed_size);
        let name = section.name().unwrap_or("(without a name)");
        if claimed > FREE_BYTES.saturating_add(packed.saturating_mul(MOST_RATIO)) {
            return refused(format!("{name}: {packed} compressed bytes claim to hold {claimed}"));
        }
        claimed_by_all = claimed_by_all.saturating_add(claimed);
    }
    if claimed_by_all > FREE_BYTES_OF_ALL.saturating_add(file_bytes.saturating_mul(MOST_RATIO_OF_ALL)) {
        return refused(format!(
            "the compressed sections of a file of {file_bytes} bytes claim to hold {claimed_by_all} together"
        ));
    }
    Ok(())
}
