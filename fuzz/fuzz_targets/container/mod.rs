//! ELF files whose container is sound and whose sections are cut from any bytes.

use crate::cutter::Cutter;
use crate::lengthen::lengthened;

/// Bytes that entries, and that other sections, are made of besides those given.
const DRAWN_BYTES: usize = 256;

/// One section to be written.
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    link: u32,
    info: u32,
    data: Vec<u8>,
}

// The gABI's section types and flags.
const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const RELA: u32 = 4;
const DYNSYM: u32 = 11;
const WRITE: u64 = 1;
const ALLOC: u64 = 2;
const EXECUTE: u64 = 4;
const THREAD_LOCAL: u64 = 0x400;

/// `jmp *0x7fffffff(%rip)`.
const X86_STUB: &[u8] = &[0xff, 0x25, 0xff, 0xff, 0xff, 0x7f, 0, 0];
/// `adrp x16, .; ldr x17, [x16]`.
const ARM_STUB: &[u8] = &[0x10, 0, 0, 0x90, 0x11, 2, 0x40, 0xf9];

/// A 64-bit file with debug sections, symbols, stubs and relocations from `bytes`. Half of them are for the entries.
pub(crate) fn elf(bytes: &[u8]) -> Vec<u8> {
    let (shape, bytes) = bytes.split_first().unwrap_or((&0, bytes));
    let (entries, others) = bytes.split_at(bytes.len() / 2);
    let [entries, others] = [entries, others].map(|bytes| lengthened(bytes, DRAWN_BYTES));
    let (shape, mut cut) = (*shape, Cutter(&others));
    let is_v5 = shape & 0x10 != 0;
    let [text, data, thread, plt] = [(); 4].map(|()| cut.address());
    let (machine, stub) = if shape & 0x80 == 0 { (62, X86_STUB) } else { (183, ARM_STUB) };
    let strings = [b"\0s\0main\0f\0", cut.piece(), b"\0"].concat();
    let mut sections = vec![
        section(".text", ALLOC | EXECUTE, text, cut.piece()),
        section(".data", ALLOC | WRITE, data, cut.piece()),
        section(".tdata", ALLOC | WRITE | THREAD_LOCAL, thread, cut.piece()),
        section(".plt", ALLOC | EXECUTE, plt, &[stub, cut.piece()].concat()),
        Section { kind: STRTAB, ..section(".strtab", 0, 0, &strings) },
        Section { kind: SYMTAB, link: 5, ..section(".symtab", 0, 0, &cut.table(24)) },
        Section { kind: DYNSYM, link: 5, ..section(".dynsym", 0, 0, &cut.table(24)) },
        Section { kind: RELA, link: 7, ..section(".rela.dyn", 0, 0, &cut.table(24)) },
        section(".debug_str", 0, 0, &strings),
    ];
    let lines = if shape & 0x20 == 0 { crate::dwarf::lines(cut.piece()) } else { cut.piece().to_vec() };
    sections.push(section(".debug_line", 0, 0, &lines));
    for (name, is_of_5) in [
        (".debug_loc", false),
        (".debug_ranges", false),
        (".debug_loclists", true),
        (".debug_rnglists", true),
        (".debug_addr", true),
        (".debug_str_offsets", true),
    ] {
        let piece = if is_of_5 == is_v5 { cut.piece() } else { &[] };
        let table = if is_of_5 { crate::dwarf::table_of_5(name, piece) } else { piece.to_vec() };
        sections.push(section(name, 0, 0, &table));
    }
    let is_raw = shape & 0x40 != 0;
    let own = if is_raw { cut.piece() } else { &[] };
    sections.push(section(".debug_abbrev", 0, 0, &crate::dwarf::abbreviations(own)));
    let relocations = if shape % 3 == 0 { cut.table(24) } else { Vec::new() };
    sections.push(section(".debug_info", 0, 0, &crate::dwarf::units(&entries, is_v5, is_raw)));
    let info = sections.len() as u32;
    sections.push(Section { kind: RELA, link: 6, info, ..section(".rela.debug_info", 0, 0, &relocations) });
    write(u16::from(1 + shape % 3), machine, &sections)
}

fn section(name: &'static str, flags: u64, address: u64, data: &[u8]) -> Section {
    Section { name, kind: PROGBITS, flags, address, link: 0, info: 0, data: data.to_vec() }
}

/// The file: header, two segments (the code; what threads copy), sections, their names and headers.
fn write(kind: u16, machine: u16, sections: &[Section]) -> Vec<u8> {
    let mut file = vec![0; 64 + 2 * 56];
    let mut names = vec![0];
    let mut headers = vec![0; 64];
    let mut add = |file: &mut Vec<u8>, one: &Section| {
        let is_table = matches!(one.kind, SYMTAB | DYNSYM | RELA);
        headers.extend((names.len() as u32).to_le_bytes());
        headers.extend(one.kind.to_le_bytes());
        names.extend(one.name.bytes().chain([0]));
        // The section of names holds its own name too.
        let data = if one.name == ".shstrtab" { &names } else { &one.data };
        for field in [one.flags, one.address, file.len() as u64, data.len() as u64] {
            headers.extend(field.to_le_bytes());
        }
        headers.extend(one.link.to_le_bytes());
        headers.extend(one.info.to_le_bytes());
        for field in [1, if is_table { 24_u64 } else { 0 }] {
            headers.extend(field.to_le_bytes());
        }
        file.extend(data);
    };
    for (number, one) in sections.iter().enumerate() {
        if let Some(at) = [0, 2].iter().position(|&segment| segment == number) {
            let place = [file.len() as u64, one.address, one.address];
            let size = [one.data.len() as u64, one.data.len() as u64 + 64, 8];
            // PT_LOAD, PT_TLS; readable and executable.
            let mut segment = [[1_u32, 7][at].to_le_bytes(), 5_u32.to_le_bytes()].concat();
            segment.extend(place.iter().chain(&size).flat_map(|field| field.to_le_bytes()));
            file[64 + at * 56..64 + (at + 1) * 56].copy_from_slice(&segment);
        }
        add(&mut file, one);
    }
    add(&mut file, &Section { kind: STRTAB, ..section(".shstrtab", 0, 0, &[]) });
    let table = file.len() as u64;
    file.extend(headers);
    file[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let count = sections.len() as u16 + 2;
    for (at, half) in [(16, kind), (18, machine), (20, 1)] {
        file[at..at + 2].copy_from_slice(&half.to_le_bytes());
    }
    for (at, word) in [(24, 0x1000_u64), (32, 64), (40, table)] {
        file[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    for (at, half) in [64, 56, 2, 64, count, count - 1].into_iter().enumerate() {
        file[52 + at * 2..54 + at * 2].copy_from_slice(&u16::to_le_bytes(half));
    }
    file
}
