//! A raw kernel in an ELF frame, so that readers of programs can read it too.

use super::KernelImage;
use crate::KernelSymbols;
use lineup_model::abi::Machine;
use object::elf::EM_AARCH64;

/// The offset in a 64-bit Arm image's header of the distance between an aligned address and the load address.
const TEXT_OFFSET: usize = 8;

/// The alignment of that address, by the boot protocol of 64-bit Arm.
const ARM64_ALIGN_BYTES: u64 = 2 << 20;

const FILE_HEADER_BYTES: u64 = 64;
const PROGRAM_HEADER_BYTES: u64 = 56;
const SECTION_HEADER_BYTES: u64 = 64;

/// Names of the sections: none, the kernel, and the names themselves.
const NAMES: &[u8] = b"\0.kernel\0.shstrtab\0";

impl KernelImage {
    /// The kernel as an ELF file: unchanged, or, if it is a raw 64-bit Arm image, in a frame with its run address.
    /// `None` when that is not known: for another raw image, or without symbols.
    pub fn into_elf(self, symbols: &KernelSymbols) -> Option<Vec<u8>> {
        if self.is_elf() {
            return Some(self.vmlinux);
        }
        if self.machine != Machine::AArch64 {
            return None;
        }
        let first = symbols.all().iter().find(|symbol| symbol.is_code())?;
        Some(framed(&self.vmlinux, arm64_start(&self.vmlinux, first.address)?))
    }
}

/// The run address of a 64-bit Arm image whose first function has this address.
fn arm64_start(image: &[u8], first_code: u64) -> Option<u64> {
    let offset = u64::from_le_bytes(image.get(TEXT_OFFSET..TEXT_OFFSET + 8)?.try_into().ok()?);
    let base = first_code.checked_sub(offset)?;
    (base - base % ARM64_ALIGN_BYTES).checked_add(offset)
}

/// One segment and one section, which both are the whole kernel.
fn framed(kernel: &[u8], start: u64) -> Vec<u8> {
    let (at, size) = (FILE_HEADER_BYTES + PROGRAM_HEADER_BYTES, kernel.len() as u64);
    let names = at + size;
    let sections = (names + NAMES.len() as u64).next_multiple_of(8);
    let mut file = Vec::with_capacity(kernel.len() + 512);
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    // A program for this machine, version 1, without an entry.
    halves(&mut file, &[2, EM_AARCH64.0, 1, 0]);
    words(&mut file, &[0, FILE_HEADER_BYTES, sections]);
    let sizes =
        [FILE_HEADER_BYTES, PROGRAM_HEADER_BYTES, 1, SECTION_HEADER_BYTES, 3, 2].map(|size| size as u16);
    halves(&mut file, &[0, 0]);
    halves(&mut file, &sizes);
    // Loaded, to be read, written and executed.
    words(&mut file, &[1 | 7 << 32, at, start, start, size, size, 8]);
    file.extend(kernel);
    file.extend(NAMES);
    file.resize(sections as usize, 0);
    words(&mut file, &[0; 8]);
    // The kernel: contents, which are allocated, written and executed.
    words(&mut file, &[1 | 1 << 32, 7, start, at, size, 0, 8, 0]);
    // The names: a table of text.
    words(&mut file, &[9 | 3 << 32, 0, 0, names, NAMES.len() as u64, 0, 1, 0]);
    file
}

fn halves(file: &mut Vec<u8>, values: &[u16]) {
    file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

fn words(file: &mut Vec<u8>, values: &[u64]) {
    file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}
