//! Damaged and hostile files: the reader returns an error or the readable part. It never panics and always ends.

use crate::elf::{FIRST_ENTRY, abbreviation, unit, with_sections};
use lineup_debuginfo::btf::Btf;
use lineup_debuginfo::{DebugInfo, Error, FoundFunctions, NoCompanions};
use lineup_model::layout::Layout;
use lineup_model::line::LineSize;
use lineup_model::program::{Location, Piece, Symbol, SymbolKind};
use lineup_model::types::{TypeId, TypeKind, Types};
use std::process::Command;

// DWARF 4, section 7.5: tags, attributes and forms used here.
const COMPILE_UNIT: u8 = 0x11;
const STRUCTURE: u8 = 0x13;
const MEMBER: u8 = 0x0d;
const POINTER: u8 = 0x0f;
const TYPEDEF: u8 = 0x16;
const SUBPROGRAM: u8 = 0x2e;
const NAME: u8 = 0x03;
const BYTE_SIZE: u8 = 0x0b;
const TYPE: u8 = 0x49;
const ABSTRACT_ORIGIN: u8 = 0x31;
const LOCATION: u8 = 0x38;
const STRING: u8 = 0x08;
const DATA1: u8 = 0x0b;
const REF4: u8 = 0x13;

fn parse(abbreviations: &[Vec<u8>], entries: &[u8]) -> DebugInfo {
    let mut table = abbreviations.concat();
    table.push(0);
    let file = with_sections(&[(".debug_abbrev", &table), (".debug_info", &unit(entries))]);
    DebugInfo::parse(file, &mut NoCompanions).expect("a sound container")
}

/// Asks for everything that can be asked.
fn exercise(info: &DebugInfo) {
    for (id, _) in info.types().iter() {
        Layout::of(info.types(), id, LineSize::B64);
        info.types().spell(Some(id), "x");
        info.types().size_bytes(id);
    }
    info.globals();
    info.find_functions("main");
    info.find_functions("f(int)");
    let pcs: Vec<u64> = info.symbols().iter().map(|symbol| symbol.address).collect();
    info.functions_covering(&mut pcs.into_iter());
    info.line_of(info.entry());
    info.addresses_of_lines("main.c", 1..=100);
    info.damage();
    for symbol in info.symbols().iter().take(50) {
        info.symbol_at(symbol.address);
        info.plt_name(symbol.address);
        info.mapping_at(symbol.address);
        info.code(symbol.address..symbol.address.saturating_add(symbol.size_bytes));
    }
}

#[test]
fn what_is_not_elf_is_told_by_its_first_bytes() {
    let error = |bytes: &[u8]| DebugInfo::parse(bytes.to_vec(), &mut NoCompanions).unwrap_err();
    assert_eq!(error(b"int x"), Error::NotElf { starts_with: "69 6e 74 20".to_owned() });
    assert!(matches!(error(b"#!/bin/sh"), Error::OtherFormat { format: "a script", .. }));
    assert!(error(b"").to_string().contains("empty"));
    assert!(matches!(error(b"\x7fELF\x02\x02"), Error::UnsupportedMachine { .. }));
    assert!(matches!(error(b"\x7fELF\x02\x01\x01"), Error::Damaged { .. }));
    let mut other = with_sections(&[]);
    other[18] = 8;
    assert!(error(&other).to_string().contains("Mips"));
}

#[test]
fn a_file_without_debug_information_says_how_to_get_it() {
    let info = DebugInfo::parse(with_sections(&[]), &mut NoCompanions).unwrap();
    assert!(!info.has_debug_info());
    let message = info.require_debug_info().unwrap_err().to_string();
    assert!(message.contains("-g"), "{message}");
}

#[test]
fn types_that_refer_to_themselves_end() {
    let abbreviations = [
        abbreviation(1, COMPILE_UNIT, true, &[]),
        abbreviation(2, TYPEDEF, false, &[(NAME, STRING), (TYPE, REF4)]),
        abbreviation(3, STRUCTURE, true, &[(NAME, STRING), (BYTE_SIZE, DATA1)]),
        abbreviation(4, MEMBER, false, &[(NAME, STRING), (TYPE, REF4), (LOCATION, DATA1)]),
        abbreviation(5, STRUCTURE, true, &[(BYTE_SIZE, DATA1)]),
    ];
    let mut entries = vec![1];
    let typedef = FIRST_ENTRY + 1;
    entries.extend([2, b't', 0]);
    entries.extend(typedef.to_le_bytes());
    let named = FIRST_ENTRY + entries.len() as u32;
    entries.extend([3, b's', 0, 8, 4, b'm', 0]);
    entries.extend(named.to_le_bytes());
    entries.extend([0, 0]);
    let anonymous = FIRST_ENTRY + entries.len() as u32;
    entries.extend([5, 8, 4, b'm', 0]);
    entries.extend(anonymous.to_le_bytes());
    entries.extend([0, 0, 0]);
    let info = parse(&abbreviations, &entries);
    let types = info.types();
    let (typedef, _) = types.iter().find(|(_, ty)| ty.name.as_deref() == Some("t")).unwrap();
    assert_eq!((types.strip(typedef), types.size_bytes(typedef)), (None, None));
    let (named, _) = types.iter().find(|(_, ty)| ty.name.as_deref() == Some("s")).unwrap();
    assert_eq!(Layout::of(types, named, LineSize::B64), None, "what it holds cannot be");
    assert_eq!(info.damage(), 2);
    exercise(&info);
}

#[test]
fn a_chain_of_a_hundred_thousand_pointers_is_read_without_recursion_to_its_end() {
    let abbreviations =
        [abbreviation(1, COMPILE_UNIT, true, &[]), abbreviation(2, POINTER, false, &[(TYPE, REF4)])];
    let mut entries = vec![1];
    for number in 0..100_000_u32 {
        entries.push(2);
        entries.extend((FIRST_ENTRY + 1 + (number + 1) * 5).to_le_bytes());
    }
    entries.push(0);
    exercise(&parse(&abbreviations, &entries));
}

#[test]
fn abstract_origins_in_a_circle_end() {
    let abbreviations = [
        abbreviation(1, COMPILE_UNIT, true, &[]),
        abbreviation(2, SUBPROGRAM, false, &[(ABSTRACT_ORIGIN, REF4)]),
    ];
    let mut entries = vec![1, 2];
    entries.extend((FIRST_ENTRY + 6).to_le_bytes());
    entries.push(2);
    entries.extend((FIRST_ENTRY + 1).to_le_bytes());
    entries.push(0);
    let info = parse(&abbreviations, &entries);
    assert_eq!(info.find_functions("f"), FoundFunctions::Unknown { near: Vec::new() });
}

#[test]
fn a_function_that_would_end_past_the_last_address_has_no_code() {
    const LOW_PC: u8 = 0x11;
    const HIGH_PC: u8 = 0x12;
    const ADDR: u8 = 0x01;
    const DATA8: u8 = 0x07;
    let abbreviations = [
        abbreviation(1, COMPILE_UNIT, true, &[]),
        abbreviation(2, SUBPROGRAM, false, &[(NAME, STRING), (LOW_PC, ADDR), (HIGH_PC, DATA8)]),
    ];
    let mut entries = vec![1, 2, b'f', 0];
    entries.extend([0xff; 16]);
    entries.push(0);
    let info = parse(&abbreviations, &entries);
    assert_eq!(info.find_functions("f"), FoundFunctions::Unknown { near: Vec::new() });
}

/// The location of a function's only parameter, by this expression.
fn place_of(expression: &[u8]) -> Location {
    const PARAMETER: u8 = 0x05;
    const EXPRLOC: u8 = 0x18;
    const LOW_PC: u8 = 0x11;
    const HIGH_PC: u8 = 0x12;
    const LOCATION_OF: u8 = 0x02;
    const ADDR: u8 = 0x01;
    let abbreviations = [
        abbreviation(1, COMPILE_UNIT, true, &[(LOW_PC, ADDR), (HIGH_PC, DATA1)]),
        abbreviation(2, SUBPROGRAM, true, &[(NAME, STRING), (LOW_PC, ADDR), (HIGH_PC, DATA1)]),
        abbreviation(3, PARAMETER, false, &[(LOCATION_OF, EXPRLOC)]),
    ];
    let code = [&0x1000_u64.to_le_bytes()[..], &[16]].concat();
    let mut entries = vec![1];
    entries.extend(&code);
    entries.extend([2, b'f', 0]);
    entries.extend(&code);
    entries.extend([3, expression.len() as u8]);
    entries.extend(expression);
    entries.extend([0, 0]);
    let functions = parse(&abbreviations, &entries).functions_covering(&mut [0x1000].into_iter());
    functions[0].parameters[0].places[0].at.clone()
}

// DWARF 4, section 7.7.1.
const DEREF: u8 = 0x06;
const LITERAL: u8 = 0x30;
const REGISTER: u8 = 0x50;
const REGISTER_PLUS: u8 = 0x70;
const PIECE: u8 = 0x93;
const BIT_PIECE: u8 = 0x9d;
const STACK_VALUE: u8 = 0x9f;

#[test]
fn the_pieces_of_a_variable_are_found_with_their_offsets() {
    let piece = |offset, size_bytes, at| Piece { offset, size_bytes, at };
    let (first, second) = (Location::Register(5), Location::RegisterPlus { register: 4, offset: -16 });
    assert_eq!(
        place_of(&[REGISTER + 5, PIECE, 8, REGISTER_PLUS + 4, 0x70, STACK_VALUE, PIECE, 8]),
        Location::Pieces(vec![piece(0, 8, first.clone()), piece(8, 8, second)])
    );
    let on_stack = Location::Memory { register: 7, offset: 24 };
    assert_eq!(
        place_of(&[
            PIECE,
            4,
            REGISTER + 5,
            PIECE,
            4,
            REGISTER_PLUS + 7,
            24,
            PIECE,
            16,
            LITERAL + 3,
            STACK_VALUE,
            PIECE,
            8
        ]),
        Location::Pieces(vec![
            piece(4, 4, first.clone()),
            piece(8, 16, on_stack),
            piece(24, 8, Location::Constant(3))
        ])
    );
    // A piece without a known location takes its room; so do bits that are no whole bytes.
    assert_eq!(
        place_of(&[REGISTER + 4, DEREF, PIECE, 8, REGISTER + 5, PIECE, 8]),
        Location::Pieces(vec![piece(8, 8, first.clone())])
    );
    assert_eq!(
        place_of(&[
            REGISTER + 5,
            BIT_PIECE,
            12,
            0,
            REGISTER + 4,
            BIT_PIECE,
            8,
            0,
            REGISTER + 4,
            BIT_PIECE,
            64,
            3
        ]),
        Location::Pieces(Vec::new())
    );
}

#[test]
fn pieces_of_absurd_sizes_and_unfinished_ones_say_nothing() {
    let huge = [REGISTER + 5, PIECE, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10];
    let one = Piece { offset: 0, size_bytes: 1 << 60, at: Location::Register(5) };
    assert_eq!(place_of(&huge), Location::Pieces(vec![one]));
    assert_eq!(place_of(&[huge, huge].concat()), Location::Other);
    assert_eq!(
        place_of(&[REGISTER + 5, PIECE, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        Location::Other
    );
    assert_eq!(place_of(&[REGISTER + 5, PIECE, 8, REGISTER + 4]), Location::Other);
    assert_eq!(place_of(&[PIECE]), Location::Other);
    assert_eq!(place_of(&[PIECE, 0, PIECE, 0]), Location::Other);
    assert_eq!(place_of(&[REGISTER + 5, PIECE, 1].repeat(40)), Location::Other);
}

#[test]
fn a_unit_that_breaks_off_keeps_what_came_before_and_is_counted() {
    let abbreviations = [
        abbreviation(1, COMPILE_UNIT, true, &[]),
        abbreviation(2, STRUCTURE, false, &[(NAME, STRING), (BYTE_SIZE, DATA1)]),
    ];
    // Abbreviation 9 does not exist.
    let info = parse(&abbreviations, &[1, 2, b's', 0, 4, 9]);
    assert_eq!(info.damage(), 1);
    let kept = info.types().iter().any(|(_, ty)| ty.name.as_deref() == Some("s"));
    assert!(kept);
}

#[test]
fn references_that_lead_nowhere_become_unknown_types() {
    let abbreviations = [
        abbreviation(1, COMPILE_UNIT, true, &[]),
        abbreviation(2, TYPEDEF, false, &[(NAME, STRING), (TYPE, REF4)]),
    ];
    let mut entries = vec![1, 2, b't', 0];
    entries.extend(0xffff_fff0_u32.to_le_bytes());
    entries.push(0);
    let info = parse(&abbreviations, &entries);
    let (id, _) = info.types().iter().find(|(_, ty)| ty.name.as_deref() == Some("t")).unwrap();
    let target = info.types().strip(id).and_then(|id| info.types().get(id)).unwrap();
    assert_eq!(target.kind, TypeKind::Opaque);
    assert_eq!(info.types().size_bytes(id), None);
}

#[test]
fn stubs_may_lie_where_addresses_end() {
    // x86-64: `jmp *0x7fffffff(%rip)`. 64-bit Arm: `adrp x16, .; ldr x17, [x16]`.
    let stub = [&[0xff, 0x25, 0xff, 0xff, 0xff, 0x7f][..], &[0; 10]].concat();
    let arm_stub = [0x9000_0010_u32.to_le_bytes(), 0xf940_0211_u32.to_le_bytes()].concat();
    for (machine, code) in [(62, stub), (183, arm_stub)] {
        let mut file = with_sections(&[(".plt", &code.repeat(4))]);
        file[18] = machine;
        let table = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
        file[table + 64 + 16..table + 64 + 24].copy_from_slice(&(u64::MAX - 20).to_le_bytes());
        let info = DebugInfo::parse(file, &mut NoCompanions).unwrap();
        assert_eq!(info.plt_name(u64::MAX - 18), None);
    }
}

#[test]
fn a_function_symbol_that_ends_past_the_last_address_is_no_function_of_a_kernel() {
    let symbol = |name: &str, address, size_bytes| Symbol {
        name: name.to_owned(),
        address,
        size_bytes,
        kind: SymbolKind::Function,
        is_global: true,
    };
    let symbols = vec![symbol("f", 0x1000, 16), symbol("g", u64::MAX - 8, 16)];
    let types = Btf { types: Types::new(), first_own: TypeId(0), functions: vec![], variables: vec![] };
    let info = DebugInfo::with_btf(with_sections(&[]), symbols, types).unwrap();
    let found = info.functions_covering(&mut [0x1001, u64::MAX - 4].into_iter());
    let names: Vec<&str> = found.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["f"]);
}

/// A file of sections marked as compressed: each with its name, its packed bytes and the size that its header claims.
fn with_compressed(sections: &[(&str, usize, u64)]) -> Vec<u8> {
    // Elf64_Chdr: zlib, the claim, alignment 1; then nothing that inflates.
    let chunk = |(_, packed, claimed): &(&str, usize, u64)| {
        [&1_u64.to_le_bytes()[..], &claimed.to_le_bytes(), &1_u64.to_le_bytes(), &vec![0; *packed]].concat()
    };
    let chunks: Vec<Vec<u8>> = sections.iter().map(chunk).collect();
    let named: Vec<(&str, &[u8])> =
        sections.iter().zip(&chunks).map(|((name, _, _), bytes)| (*name, bytes.as_slice())).collect();
    let mut file = with_sections(&named);
    // Set SHF_COMPRESSED in the flags of the real section headers.
    let table = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    for index in 1..=sections.len() {
        let flags = table + index * 64 + 8;
        file[flags..flags + 8].copy_from_slice(&0x800_u64.to_le_bytes());
    }
    file
}

#[test]
fn a_compressed_section_may_not_claim_more_than_it_can_hold() {
    for claimed in [1 << 40, 1 << 30, u64::MAX] {
        let file = with_compressed(&[(".debug_info", 1 << 20, claimed)]);
        let error = DebugInfo::parse(file, &mut NoCompanions).unwrap_err();
        assert!(error.to_string().contains("claim"), "{error}");
    }
}

/// Each is within its own limit, all of them together are not within the file's.
#[test]
fn compressed_sections_may_not_claim_much_together() {
    let names = [".debug_info", ".debug_abbrev", ".debug_str", ".debug_line", ".debug_ranges", ".debug_loc"];
    let sections = names.map(|name| (name, 1000, 16 << 20));
    let error = DebugInfo::parse(with_compressed(&sections), &mut NoCompanions).unwrap_err();
    assert!(error.to_string().contains("together"), "{error}");
}

/// A real object with functions, inlining, bit-fields and lines.
fn real_object() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("main.c");
    let text = "struct s { int a : 3; struct s *next; union { long l; char c[3]; }; } g;\n\
                static inline int f(struct s *p) { return p->a + (int)p->l; }\n\
                int h(int n) { static int calls; calls++; return f(&g) + n; }\n\
                int main(void) { return h(3) + f(&g); }\n";
    std::fs::write(&source, text).expect("a writable folder");
    let object = folder.path().join("main");
    let status = Command::new("gcc").args(["-g", "-O2", "-o"]).arg(&object).arg(&source).status();
    assert!(status.expect("gcc; install it: apt install gcc").success());
    std::fs::read(object).expect("what gcc wrote")
}

#[test]
fn a_file_cut_anywhere_is_refused_or_read_as_far_as_it_goes() {
    let whole = real_object();
    for cut in (0..whole.len()).step_by(97) {
        if let Ok(info) = DebugInfo::parse(whole[..cut].to_vec(), &mut NoCompanions) {
            exercise(&info);
        }
    }
}

#[test]
fn a_file_with_changed_bytes_is_refused_or_read() {
    let whole = real_object();
    // Only bytes of headers and debug sections matter; they lie in the later part and at the start.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..400 {
        let mut changed = whole.clone();
        for _ in 0..8 {
            // xorshift64 (Marsaglia 2003): repeatable positions and values.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = (state >> 8) as usize % changed.len();
            changed[at] = state as u8;
        }
        if let Ok(info) = DebugInfo::parse(changed, &mut NoCompanions) {
            exercise(&info);
        }
    }
}
