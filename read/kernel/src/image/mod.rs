//! The forms of distributed kernel images, and the kernel inside each.

pub(crate) mod elf;
mod framed;
mod lzop;
mod unpack;

use unpack::Budget;

pub use crate::compression::Compression;

use crate::error::Error;
use crate::scan::{u16_at, u32_at};
use lineup_model::abi::Machine;
use memchr::memmem;
use std::fmt;

/// The maximum number of packing layers of an image: an `Image.gz` of an EFI image of an Image.
const MAX_LAYERS: u32 = 3;

/// No kernel that is loaded as it stands is larger, and none with its debug information.
const MAX_IMAGE_BYTES: usize = 512 << 20;
const MAX_VMLINUX_BYTES: usize = 2 << 30;

/// The form in which an image is distributed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Container {
    /// x86's boot image: real-mode code, decompressor, compressed ELF file.
    BzImage,
    /// 64-bit Arm's plain image.
    Arm64Image,
    /// An EFI program that unpacks the kernel.
    EfiZboot,
    /// 32-bit Arm's self-unpacking image.
    ZImage,
    /// The linker's output, `vmlinux`.
    Elf,
}

impl Container {
    fn name(self) -> &'static str {
        match self {
            Container::BzImage => "bzImage",
            Container::Arm64Image => "Image",
            Container::EfiZboot => "EFI zboot image",
            Container::ZImage => "zImage",
            Container::Elf => "vmlinux",
        }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kernel, unpacked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelImage {
    /// The machine it runs on.
    pub machine: Machine,
    /// The form it came in.
    pub container: Container,
    /// The compression of the kernel inside; `None` for an uncompressed one.
    pub compression: Option<Compression>,
    /// The line by which the kernel introduces itself: "Linux version …".
    pub banner: String,
    /// The GNU build id, when the kernel has one.
    pub build_id: Option<Vec<u8>>,
    /// The unpacked kernel: an ELF file, or the raw image that is loaded into memory.
    pub vmlinux: Vec<u8>,
}

impl KernelImage {
    /// Unpacks an image.
    ///
    /// # Errors
    ///
    /// When the bytes are no kernel image, are cut off or damaged, or hold a kernel for a machine that is not read.
    pub fn parse(bytes: &[u8]) -> Result<KernelImage, Error> {
        let unpacked = open(bytes, MAX_LAYERS, &mut Budget::of_file(bytes.len()))?;
        let banner = banner(&unpacked.vmlinux).ok_or(Error::NoBanner)?;
        let build_id = build_id(&unpacked.vmlinux)?;
        Ok(KernelImage {
            machine: unpacked.machine,
            container: unpacked.container,
            compression: unpacked.compression,
            banner,
            build_id,
            vmlinux: unpacked.vmlinux,
        })
    }

    /// The kernel's release, as `uname -r` prints it.
    pub fn release(&self) -> &str {
        self.banner.split_whitespace().nth(2).unwrap_or_default()
    }

    /// True when the unpacked kernel is an ELF file.
    pub fn is_elf(&self) -> bool {
        elf::is_elf(&self.vmlinux)
    }

    /// The contents of a section, when the unpacked kernel is an ELF file that has it.
    pub fn section(&self, name: &str) -> Option<&[u8]> {
        elf::section(&self.vmlinux, name)
    }
}

/// The build id of an ELF file or a raw kernel, from its GNU note.
///
/// # Errors
///
/// When an ELF file contradicts itself.
pub fn build_id(bytes: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    match elf::is_elf(bytes) {
        true => elf::build_id(bytes),
        false => Ok(raw_build_id(bytes)),
    }
}

struct Unpacked {
    machine: Machine,
    container: Container,
    compression: Option<Compression>,
    vmlinux: Vec<u8>,
}

fn open(bytes: &[u8], layers: u32, budget: &mut Budget) -> Result<Unpacked, Error> {
    if elf::is_elf(bytes) {
        let machine = elf::machine(bytes)?;
        return Ok(Unpacked {
            machine,
            container: Container::Elf,
            compression: None,
            vmlinux: copied(bytes, MAX_VMLINUX_BYTES)?,
        });
    }
    if bytes.get(0x202..0x206) == Some(b"HdrS") {
        return bz_image(bytes, budget);
    }
    if bytes.get(4..8) == Some(b"zimg") && bytes.starts_with(b"MZ") {
        return efi_zboot(bytes, layers, budget);
    }
    if bytes.get(0x38..0x3c) == Some(b"ARM\x64") {
        return arm64_image(bytes);
    }
    if u32_at(bytes, 0x24) == Some(0x016f_2818) {
        return arm_zimage(bytes, budget);
    }
    if layers > 0
        && let Some(compression) = Compression::of(bytes)
    {
        let inner = open(&compression.unpack_within(bytes, budget)?, layers - 1, budget)?;
        return Ok(Unpacked { compression: inner.compression.or(Some(compression)), ..inner });
    }
    Err(Error::NotKernel { starts_with: first_bytes(bytes) })
}

/// A kernel's own copy of a file that is not packed.
fn copied(bytes: &[u8], most_bytes: usize) -> Result<Vec<u8>, Error> {
    if bytes.len() > most_bytes {
        return Err(Error::TooLarge { have_bytes: bytes.len(), most_bytes });
    }
    Ok(bytes.to_vec())
}

fn first_bytes(bytes: &[u8]) -> String {
    match bytes {
        [] => "nothing: it is empty".into(),
        _ => bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
    }
}

/// A part of the image that its header announces.
fn part<'a>(bytes: &'a [u8], what: &'static str, start: u64, length: u64) -> Result<&'a [u8], Error> {
    let end = start.saturating_add(length);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| bytes.get(start..end)).ok_or(Error::CutOff {
        what,
        needed_bytes: end,
        have_bytes: bytes.len() as u64,
    })
}

/// The layout is the boot protocol's; `payload_offset` counts from the protected-mode code.
fn bz_image(bytes: &[u8], budget: &mut Budget) -> Result<Unpacked, Error> {
    let header = part(bytes, "header", 0, 0x250)?;
    let protocol = u16_at(header, 0x206).unwrap_or_default();
    if protocol < 0x208 {
        return Err(Error::NoPayload { container: "bzImage of a kernel before 2.6.24" });
    }
    let setup_sectors = match header[0x1f1] {
        0 => 4,
        count => u64::from(count),
    };
    let offset = u64::from(u32_at(header, 0x248).unwrap_or_default());
    let length = u64::from(u32_at(header, 0x24c).unwrap_or_default());
    let payload = part(bytes, "compressed kernel", (setup_sectors + 1) * 512 + offset, length)?;
    let (vmlinux, compression) = match Compression::of(payload) {
        Some(compression) => (compression.unpack_within(payload, budget)?, Some(compression)),
        None if elf::is_elf(payload) => (payload.to_vec(), None),
        None => return Err(Error::NoPayload { container: Container::BzImage.name() }),
    };
    let machine = elf::machine(&vmlinux)?;
    Ok(Unpacked { machine, container: Container::BzImage, compression, vmlinux })
}

fn arm64_image(bytes: &[u8]) -> Result<Unpacked, Error> {
    Ok(Unpacked {
        machine: Machine::AArch64,
        container: Container::Arm64Image,
        compression: None,
        vmlinux: copied(bytes, MAX_IMAGE_BYTES)?,
    })
}

/// An EFI program whose first bytes give the place of the packed kernel.
fn efi_zboot(bytes: &[u8], layers: u32, budget: &mut Budget) -> Result<Unpacked, Error> {
    let header = part(bytes, "header", 0, 0x38)?;
    let offset = u64::from(u32_at(header, 8).unwrap_or_default());
    let length = u64::from(u32_at(header, 12).unwrap_or_default());
    let payload = part(bytes, "compressed kernel", offset, length)?;
    let compression = Compression::of(payload)
        .filter(|_| layers > 0)
        .ok_or(Error::NoPayload { container: Container::EfiZboot.name() })?;
    let inner = open(&compression.unpack_within(payload, budget)?, 0, budget)?;
    Ok(Unpacked { container: Container::EfiZboot, compression: Some(compression), ..inner })
}

/// The header does not locate the packed kernel: every sequence that begins like one is tried.
fn arm_zimage(bytes: &[u8], budget: &mut Budget) -> Result<Unpacked, Error> {
    let end = u32_at(bytes, 0x2c).unwrap_or_default();
    part(bytes, "code", 0, u64::from(end))?;
    let mut starts: Vec<(usize, Compression)> = Vec::new();
    for (compression, magic) in Compression::MAGICS {
        starts.extend(memmem::find_iter(bytes, magic).map(|start| (start, compression)));
    }
    starts.sort_by_key(|(start, _)| *start);
    let found = starts.into_iter().find_map(|(start, compression)| {
        let vmlinux = compression.unpack_within(&bytes[start..], budget).ok()?;
        banner(&vmlinux).map(|_| (compression, vmlinux))
    });
    let (compression, vmlinux) = found.ok_or(Error::NoPayload { container: Container::ZImage.name() })?;
    Ok(Unpacked {
        machine: Machine::Arm,
        container: Container::ZImage,
        compression: Some(compression),
        vmlinux,
    })
}

/// "Linux version 6.1.0 (…) …", without the end of the line. Some kernels hold it twice, once without the build's
/// number.
fn banner(vmlinux: &[u8]) -> Option<String> {
    const START: &[u8] = b"Linux version ";
    let starts = memmem::find_iter(vmlinux, START);
    let lines = starts.filter_map(|start| {
        let rest = &vmlinux[start..];
        let line = rest.split(|byte| matches!(byte, 0 | b'\n')).next()?;
        let is_release = line.get(START.len()).is_some_and(u8::is_ascii_digit);
        (is_release && line.len() < 1024).then(|| String::from_utf8_lossy(line).into_owned())
    });
    lines.max_by_key(String::len)
}

/// The note as the linker writes it: name of 4 bytes, id of 20 bytes, type 3. Kernels hold programs with notes of their
/// own, such as the one they map into processes (the vDSO): those notes are not the kernel's.
fn raw_build_id(bytes: &[u8]) -> Option<Vec<u8>> {
    const NOTE: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let start = memmem::find_iter(bytes, NOTE).find(|note| !is_in_program(bytes, *note))? + NOTE.len();
    Some(bytes.get(start..start + 20)?.to_vec())
}

/// True of a place in an ELF file that begins before it: in front of the end of the table of its sections, which comes
/// last.
fn is_in_program(bytes: &[u8], at: usize) -> bool {
    let mut starts = memmem::rfind_iter(&bytes[..at], elf::MAGIC).map(|start| &bytes[start..]);
    let Some(file) = starts.find(|file| elf::begins_program(file)) else {
        return false;
    };
    let number = |at: usize, size: usize| -> Option<u64> {
        let bytes = file.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let (table, of_each) = if file.get(4) == Some(&2) { ((0x28, 8), 0x3a) } else { ((0x20, 4), 0x2e) };
    let (Some(table), Some(each), Some(count)) =
        (number(table.0, table.1), number(of_each, 2), number(of_each + 2, 2))
    else {
        return false;
    };
    let into = at - (bytes.len() - file.len());
    u64::try_from(into).is_ok_and(|into| into < table.saturating_add(each * count))
}

#[cfg(test)]
mod tests;
