//! The place of the kernel's own type information.

use crate::error::Error;
use crate::image::KernelImage;
use crate::scan::{u16_at, u32_at};
use memchr::memmem;

/// Magic number and version of little-endian BTF.
const MAGIC: [u8; 3] = [0x9f, 0xeb, 1];

/// A kernel has tens of thousands of types; less is some other BTF, such as that of an embedded BPF program.
const MIN_BYTES: usize = 4096;

/// The kernel's BTF: the section of an ELF file, else the largest image of BTF among the bytes.
///
/// # Errors
///
/// When the kernel holds none.
pub fn find(image: &KernelImage) -> Result<&[u8], Error> {
    image
        .section(".BTF")
        .filter(|btf| btf.starts_with(&MAGIC))
        .or_else(|| search(&image.vmlinux))
        .ok_or(Error::NoBtf)
}

/// The largest image of BTF among any bytes.
pub fn search(bytes: &[u8]) -> Option<&[u8]> {
    let starts = memmem::find_iter(bytes, &MAGIC);
    let images = starts.filter_map(|start| image_at(&bytes[start..]));
    images.filter(|btf| btf.len() >= MIN_BYTES).max_by_key(|btf| btf.len())
}

/// The bytes that a header announces, if it is one: types, then strings that begin with the empty one.
fn image_at(bytes: &[u8]) -> Option<&[u8]> {
    let field = |at| u32_at(bytes, at).map(|value| value as usize);
    let header_bytes = field(4)?;
    let (type_start, type_bytes, string_start, string_bytes) =
        (field(8)?, field(12)?, field(16)?, field(20)?);
    let strings = header_bytes.checked_add(string_start)?;
    let end = strings.checked_add(string_bytes)?;
    let is_plausible = u16_at(bytes, 2)? == 1
        && (24..=256).contains(&header_bytes)
        && type_start == 0
        && type_bytes <= string_start
        && string_bytes > 0;
    let image = bytes.get(..end).filter(|_| is_plausible)?;
    (image.get(strings) == Some(&0) && image.last() == Some(&0)).then_some(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn btf(type_bytes: u32) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(0);
        for field in [24, 0, type_bytes, type_bytes, 4] {
            bytes.extend(u32::to_le_bytes(field));
        }
        bytes.resize(24 + type_bytes as usize, 1);
        bytes.extend(b"\0ab\0");
        bytes
    }

    #[test]
    fn the_largest_image_among_raw_bytes_is_taken() {
        let mut bytes = vec![0; 100];
        bytes.extend(btf(5000));
        bytes.extend(MAGIC);
        bytes.extend([9; 40]);
        bytes.extend(btf(9000));
        bytes.extend([5; 50]);
        assert!(search(&bytes) == Some(&btf(9000)[..]));
    }

    #[test]
    fn what_is_cut_off_small_or_without_strings_is_not_taken() {
        let whole = btf(5000);
        assert_eq!(search(&whole[..whole.len() - 1]), None);
        assert_eq!(search(&btf(50)), None);
        let mut unterminated = whole;
        *unterminated.last_mut().unwrap() = b'x';
        assert_eq!(search(&unterminated), None);
    }
}
