//! What compressed sections may claim to hold.
//!
//! A section's header says how long its contents are, and that much memory is taken before they are unpacked. A small
//! file must not ask for much: each section is held to a ratio that no debug information comes near, and all of them
//! together to the file's length.

use crate::Error;
use object::{CompressionFormat, Object, ObjectSection};

/// What any section may hold, however small it is compressed.
const FREE_BYTES: u64 = 16 << 20;
/// Beyond that a section holds at most so many bytes for each of its compressed ones. Debug information of compilers
/// has three to ten; Deflate's greatest ratio is 1032.
const MOST_RATIO: u64 = 64;
/// All sections of a file together hold at most this and so many bytes for each of the file's.
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
