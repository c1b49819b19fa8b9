use super::unpack::tests::{pack, sample};
use super::*;

const BANNER: &str = "Linux version 6.1.0-50-test (a@b) (gcc-12) #1 SMP PREEMPT_DYNAMIC Debian 6.1.1-1";
const ID: [u8; 20] = [7; 20];

/// The contents of a kernel's read-only data: a format string that is no banner, the banner, the note.
fn contents() -> Vec<u8> {
    let mut bytes = sample(20_000);
    bytes.extend(b"Linux version %s\0");
    bytes.extend(BANNER.as_bytes());
    bytes.extend(b"\n\0");
    bytes.extend(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0");
    bytes.extend(ID);
    bytes
}

/// An ELF file without sections around the contents.
fn elf(machine: u16, contents: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend(2u16.to_le_bytes());
    bytes.extend(machine.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes.resize(52, 0);
    bytes.extend(64u16.to_le_bytes());
    bytes.extend(56u16.to_le_bytes());
    bytes.resize(64, 0);
    bytes.extend(contents);
    bytes
}

fn bz_image_of(vmlinux: &[u8], compression: Compression) -> Vec<u8> {
    let payload = pack(compression, vmlinux);
    let mut bytes = vec![0; 3 * 512 + 0x40];
    bytes[0x1f1] = 2;
    bytes[0x202..0x206].copy_from_slice(b"HdrS");
    bytes[0x206..0x208].copy_from_slice(&0x20fu16.to_le_bytes());
    bytes[0x248..0x24c].copy_from_slice(&0x40u32.to_le_bytes());
    bytes[0x24c..0x250].copy_from_slice(&(payload.len() as u32 + 4).to_le_bytes());
    bytes.extend(payload);
    bytes.extend((vmlinux.len() as u32).to_le_bytes());
    bytes.extend(sample(99));
    bytes
}

fn arm64() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x38..0x3c].copy_from_slice(b"ARM\x64");
    bytes.extend(contents());
    bytes
}

#[test]
fn a_bz_image_is_unpacked_whatever_its_compression() {
    let vmlinux = elf(62, &contents());
    for (compression, _) in Compression::MAGICS {
        let image = KernelImage::parse(&bz_image_of(&vmlinux, compression)).unwrap();
        assert_eq!(image.machine, Machine::X86_64);
        assert_eq!((image.container, image.compression), (Container::BzImage, Some(compression)));
        assert_eq!((image.banner.as_str(), image.release()), (BANNER, "6.1.0-50-test"));
        assert!(image.vmlinux == vmlinux);
    }
}

#[test]
fn an_arm64_image_comes_plain_packed_and_inside_an_efi_program() {
    let plain = KernelImage::parse(&arm64()).unwrap();
    assert_eq!(
        (plain.machine, plain.container, plain.compression),
        (Machine::AArch64, Container::Arm64Image, None)
    );
    assert_eq!(plain.build_id.as_deref(), Some(&ID[..]));

    let packed = KernelImage::parse(&pack(Compression::Gzip, &arm64())).unwrap();
    assert_eq!(packed, KernelImage { compression: Some(Compression::Gzip), ..plain.clone() });

    let payload = pack(Compression::Zstd, &arm64());
    let mut efi = b"MZ\0\0zimg\x40\0\0\0".to_vec();
    efi.extend((payload.len() as u32).to_le_bytes());
    efi.resize(0x40, 0);
    efi.extend(payload);
    let inside = KernelImage::parse(&efi).unwrap();
    let expected =
        KernelImage { container: Container::EfiZboot, compression: Some(Compression::Zstd), ..plain };
    assert_eq!(inside, expected);
}

#[test]
fn a_program_inside_the_kernel_has_a_build_id_of_its_own() {
    let mut program = vec![0; 0x140];
    program[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    program[0x28] = 0x80;
    program[0x29] = 0;
    program[0x3a] = 0x40;
    program[0x3c] = 3;
    program[0x40..0x50].copy_from_slice(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0");
    let held = |program: &[u8]| [&arm64()[..0x40], program, &arm64()[0x40..]].concat();
    let own = |program: &[u8]| KernelImage::parse(&held(program)).unwrap().build_id;
    assert_eq!(own(&program).as_deref(), Some(&ID[..]));
    // When the program ends before the note, the note is the kernel's.
    program[0x3c] = 0;
    program[0x28] = 0x20;
    assert_eq!(own(&program).as_deref(), Some(&[0; 20][..]));
    // Bytes that only begin like a program, as in the text of a message, hold no notes.
    program[0x3c] = 3;
    program[0x28] = 0x80;
    program[4] = 0;
    assert_eq!(own(&program).as_deref(), Some(&[0; 20][..]));
}

#[test]
fn the_kernel_inside_a_zimage_is_searched() {
    for compression in [Compression::Xz, Compression::Gzip, Compression::Lz4, Compression::Lzo] {
        let mut bytes = vec![0; 0x40];
        bytes[0x24..0x28].copy_from_slice(&0x016f_2818u32.to_le_bytes());
        // Something that only begins like a compressed kernel.
        bytes.extend([0x1f, 0x8b, 0x08, 0x5d, 0, 0]);
        bytes.extend(pack(compression, &contents()));
        bytes.extend(sample(77));
        let length = bytes.len() as u32;
        bytes[0x2c..0x30].copy_from_slice(&length.to_le_bytes());
        let image = KernelImage::parse(&bytes).unwrap();
        assert_eq!((image.machine, image.compression), (Machine::Arm, Some(compression)));
        assert_eq!(image.build_id.as_deref(), Some(&ID[..]));
        assert!(!image.is_elf());
        assert!(matches!(KernelImage::parse(&bytes[..900]), Err(Error::CutOff { .. })));
    }
}

#[test]
fn a_plain_vmlinux_is_taken_as_it_is() {
    let image = KernelImage::parse(&elf(62, &contents())).unwrap();
    assert_eq!((image.container, image.compression), (Container::Elf, None));
    assert!(image.is_elf());
    assert!(image.section(".BTF").is_none());
}

#[test]
fn bad_images_are_told_apart() {
    let whole = bz_image_of(&elf(62, &contents()), Compression::Gzip);
    let said = |bytes: &[u8]| KernelImage::parse(bytes).unwrap_err().to_string();
    assert!(said(&whole[..3000]).contains("cut off"), "{}", said(&whole[..3000]));
    assert!(said(b"").contains("it is empty"));
    assert!(said(&sample(5000)).contains("not a kernel image"));
    assert!(said(&bz_image_of(&elf(243, &contents()), Compression::Xz)).contains("Riscv64"));
    assert!(said(&bz_image_of(&elf(62, b"no banner"), Compression::Xz)).contains("no Linux kernel"));
    let mut damaged = whole.clone();
    damaged[3 * 512 + 0x40 + 200] ^= 0xff;
    assert!(said(&damaged).contains("cannot be unpacked as gzip"), "{}", said(&damaged));
    assert_eq!(
        KernelImage::parse(&pack(Compression::Gzip, b"text")).unwrap_err().to_string().find("not a kernel"),
        Some(0)
    );
}

#[test]
fn a_raw_image_is_framed_where_its_symbols_say_that_it_runs() {
    use crate::{KernelSymbol, KernelSymbols};
    use object::{Object, ObjectSegment};
    let mut bytes = arm64();
    bytes[8..16].copy_from_slice(&0x8_0000u64.to_le_bytes());
    let image = || KernelImage::parse(&bytes).unwrap();
    let first = KernelSymbol { address: 0xffff_8000_0821_0000, kind: 'T', name: "_stext".into() };
    assert_eq!(image().into_elf(&KernelSymbols::new(Vec::new())), None);
    let framed = image().into_elf(&KernelSymbols::new(vec![first])).unwrap();
    let file = object::File::parse(&*framed).unwrap();
    assert_eq!(file.architecture(), object::Architecture::Aarch64);
    let segment = file.segments().next().unwrap();
    assert_eq!((segment.address(), segment.data().unwrap()), (0xffff_8000_0808_0000, &bytes[..]));
    assert_eq!(
        file.section_by_name(".kernel").map(|section| object::ObjectSection::address(&section)),
        Some(0xffff_8000_0808_0000)
    );
}
