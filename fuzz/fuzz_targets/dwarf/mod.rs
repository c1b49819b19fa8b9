//! Debug sections with sound headers around any bytes.

use crate::cutter::Cutter;

// DWARF 5, section 7.5: the attributes and forms used here.
const SIBLING: u8 = 0x01;
const LOCATION: u8 = 0x02;
const NAME: u8 = 0x03;
const BYTE_SIZE: u8 = 0x0b;
const BIT_OFFSET: u8 = 0x0c;
const BIT_SIZE: u8 = 0x0d;
const STMT_LIST: u8 = 0x10;
const LOW_PC: u8 = 0x11;
const HIGH_PC: u8 = 0x12;
const LANGUAGE: u8 = 0x13;
const DISCR_VALUE: u8 = 0x16;
const CONST_VALUE: u8 = 0x1c;
const UPPER_BOUND: u8 = 0x2f;
const ABSTRACT_ORIGIN: u8 = 0x31;
const COUNT: u8 = 0x37;
const DATA_MEMBER_LOCATION: u8 = 0x38;
const DECL_FILE: u8 = 0x3a;
const DECL_LINE: u8 = 0x3b;
const DECLARATION: u8 = 0x3c;
const ENCODING: u8 = 0x3e;
const EXTERNAL: u8 = 0x3f;
const FRAME_BASE: u8 = 0x40;
const SPECIFICATION: u8 = 0x47;
const TYPE: u8 = 0x49;
const VIRTUALITY: u8 = 0x4c;
const RANGES: u8 = 0x55;
const CALL_FILE: u8 = 0x58;
const DATA_BIT_OFFSET: u8 = 0x6b;
const LINKAGE_NAME: u8 = 0x6e;
const ADDR: u8 = 0x01;
const DATA8: u8 = 0x07;
const STRING: u8 = 0x08;
const DATA1: u8 = 0x0b;
const SDATA: u8 = 0x0d;
const STRP: u8 = 0x0e;
const UDATA: u8 = 0x0f;
const REF_ADDR: u8 = 0x10;
const REF2: u8 = 0x12;
const SEC_OFFSET: u8 = 0x17;
const EXPRLOC: u8 = 0x18;
const FLAG_PRESENT: u8 = 0x19;

/// Tag, whether entries have children, attributes with their forms.
type Shape = (u8, bool, &'static [(u8, u8)]);

/// The code is the place, from 1; the first is the unit's own entry. Short forms, so that any bytes are many entries, and
/// their references often lead somewhere.
#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    (0x11, true, &[(NAME, STRING), (LANGUAGE, DATA1), (STMT_LIST, SEC_OFFSET), (LOW_PC, ADDR), (HIGH_PC, DATA8)]),
    (0x24, false, &[(NAME, STRING), (ENCODING, DATA1), (BYTE_SIZE, DATA1)]),
    (0x24, false, &[(ENCODING, DATA1), (BYTE_SIZE, DATA8)]),
    (0x0f, false, &[(TYPE, REF2)]),
    (0x10, false, &[(NAME, STRING), (TYPE, REF2)]),
    (0x16, false, &[(NAME, STRING), (TYPE, REF2), (DECL_FILE, DATA1), (DECL_LINE, DATA1)]),
    (0x26, false, &[(TYPE, REF2)]),
    (0x35, false, &[(TYPE, REF2)]),
    (0x13, true, &[(NAME, STRING), (BYTE_SIZE, DATA1)]),
    (0x13, true, &[(BYTE_SIZE, UDATA), (SIBLING, REF2)]),
    (0x13, true, &[(NAME, STRP), (BYTE_SIZE, DATA8)]),
    (0x13, false, &[(NAME, STRING), (DECLARATION, FLAG_PRESENT)]),
    (0x02, true, &[(NAME, STRING), (BYTE_SIZE, DATA1), (SPECIFICATION, REF2)]),
    (0x17, true, &[(BYTE_SIZE, DATA1)]),
    (0x0d, false, &[(NAME, STRING), (TYPE, REF2), (DATA_MEMBER_LOCATION, DATA1)]),
    (0x0d, false, &[(NAME, STRING), (TYPE, REF2), (DATA_MEMBER_LOCATION, UDATA)]),
    (0x0d, false, &[(TYPE, REF2), (DATA_MEMBER_LOCATION, DATA8)]),
    (0x0d, false, &[(TYPE, REF2)]),
    (0x0d, false, &[(NAME, STRING), (TYPE, REF2), (BIT_SIZE, UDATA), (DATA_BIT_OFFSET, UDATA)]),
    (0x0d, false, &[(TYPE, REF2), (BIT_SIZE, UDATA), (BIT_OFFSET, SDATA), (BYTE_SIZE, UDATA), (DATA_MEMBER_LOCATION, UDATA)]),
    (0x0d, false, &[(TYPE, REF2), (DATA_MEMBER_LOCATION, EXPRLOC), (EXTERNAL, FLAG_PRESENT)]),
    (0x1c, false, &[(TYPE, REF2), (DATA_MEMBER_LOCATION, UDATA)]),
    (0x1c, false, &[(TYPE, REF2), (DATA_MEMBER_LOCATION, EXPRLOC), (VIRTUALITY, DATA1)]),
    (0x33, true, &[(TYPE, REF2)]),
    (0x19, true, &[(DISCR_VALUE, DATA1)]),
    (0x19, true, &[(DISCR_VALUE, UDATA)]),
    (0x19, true, &[]),
    (0x01, true, &[(TYPE, REF2)]),
    (0x21, false, &[(UPPER_BOUND, SDATA)]),
    (0x21, false, &[(COUNT, UDATA)]),
    (0x21, false, &[]),
    (0x15, true, &[(TYPE, REF2)]),
    (0x05, false, &[(TYPE, REF2)]),
    (0x04, false, &[(NAME, STRING), (TYPE, REF2), (BYTE_SIZE, DATA1)]),
    (0x39, true, &[(NAME, STRING)]),
    (0x34, false, &[(NAME, STRING), (TYPE, REF2), (LOCATION, EXPRLOC), (EXTERNAL, FLAG_PRESENT)]),
    (0x34, false, &[(NAME, STRING), (TYPE, REF2), (LOCATION, SEC_OFFSET)]),
    (0x34, false, &[(ABSTRACT_ORIGIN, REF2), (CONST_VALUE, SDATA)]),
    (0x34, false, &[(SPECIFICATION, REF_ADDR), (LOCATION, EXPRLOC), (LINKAGE_NAME, STRING)]),
    (0x34, false, &[(NAME, STRING), (TYPE, REF2), (DECLARATION, FLAG_PRESENT)]),
    (0x2e, true, &[(NAME, STRING), (LOW_PC, ADDR), (HIGH_PC, DATA8), (FRAME_BASE, EXPRLOC), (TYPE, REF2)]),
    (0x2e, true, &[(NAME, STRING), (RANGES, SEC_OFFSET)]),
    (0x2e, true, &[(ABSTRACT_ORIGIN, REF2), (LOW_PC, ADDR), (HIGH_PC, UDATA)]),
    (0x2e, true, &[(NAME, STRING), (LINKAGE_NAME, STRP), (EXTERNAL, FLAG_PRESENT)]),
    (0x05, false, &[(NAME, STRING), (TYPE, REF2), (LOCATION, EXPRLOC)]),
    (0x05, false, &[(TYPE, REF2), (LOCATION, SEC_OFFSET)]),
    (0x0b, true, &[(RANGES, SEC_OFFSET)]),
    (0x0b, true, &[(LOW_PC, ADDR), (HIGH_PC, DATA1)]),
    (0x1d, true, &[(ABSTRACT_ORIGIN, REF2), (LOW_PC, ADDR), (HIGH_PC, DATA1), (CALL_FILE, DATA1), (0x59, DATA1)]),
    (0x1d, true, &[(ABSTRACT_ORIGIN, REF2), (RANGES, SEC_OFFSET)]),
];

/// The table of abbreviations, `own` last.
pub(crate) fn abbreviations(own: &[u8]) -> Vec<u8> {
    let mut table = Vec::new();
    for (place, (tag, has_children, attributes)) in SHAPES.iter().enumerate() {
        table.extend([place as u8 + 1, *tag, u8::from(*has_children)]);
        table.extend(attributes.iter().flat_map(|(attribute, form)| [*attribute, *form]));
        table.extend([0, 0]);
    }
    table.extend(own);
    table.push(0);
    table
}

/// Two units. Their entries are the bytes as they are, or are made of them: then references lead to entries.
pub(crate) fn units(bytes: &[u8], is_v5: bool, is_raw: bool) -> Vec<u8> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    [unit(first, is_v5, is_raw), unit(second, is_v5, is_raw)].concat()
}

fn unit(bytes: &[u8], is_v5: bool, is_raw: bool) -> Vec<u8> {
    let (language, bytes) = bytes.split_first().unwrap_or((&12, bytes));
    let mut body = if is_v5 { vec![5, 0, 1, 8, 0, 0, 0, 0] } else { vec![4, 0, 0, 0, 0, 0, 8] };
    body.extend([1, b'u', 0, *language, 0, 0, 0, 0]);
    body.extend(0x1000_u64.to_le_bytes());
    body.extend(0x1000_u64.to_le_bytes());
    // The length stands before.
    let start = body.len() as u16 + 4;
    if is_raw {
        body.extend(bytes)
    } else {
        body.extend(entries(bytes, start))
    }
    counted(body)
}

/// Entries made of at most 4096 bytes, the first of them `start` bytes into its unit: references have 16 bits.
fn entries(bytes: &[u8], start: u16) -> Vec<u8> {
    let mut cut = Cutter(&bytes[..bytes.len().min(4096)]);
    let mut entries = Vec::new();
    let (mut starts, mut references) = (Vec::new(), Vec::new());
    while !cut.0.is_empty() {
        starts.push(start + entries.len() as u16);
        let code = usize::from(cut.byte()) % (SHAPES.len() + 8);
        let Some((_, _, attributes)) = code.checked_sub(1).and_then(|place| SHAPES.get(place)) else {
            entries.push(0);
            continue;
        };
        entries.push(code as u8);
        for (_, form) in *attributes {
            if *form == REF2 {
                references.push((entries.len(), cut.byte()));
            }
            value(*form, &mut cut, &mut entries);
        }
    }
    for (at, wanted) in references {
        let target: u16 = starts[usize::from(wanted) % starts.len()];
        entries[at..at + 2].copy_from_slice(&target.to_le_bytes());
    }
    entries
}

/// The value of an attribute; references are filled in later.
fn value(form: u8, cut: &mut Cutter<'_>, out: &mut Vec<u8>) {
    const NAMES: [&str; 6] = ["s", "main", "_vptr", "f", "", "a<b>"];
    match form {
        STRING => {
            out.extend(NAMES[usize::from(cut.byte()) % NAMES.len()].bytes().chain([0]));
        }
        DATA1 => out.push(cut.byte()),
        ADDR | DATA8 => out.extend(cut.number().to_le_bytes()),
        UDATA | SDATA => {
            // As a signed number it means another, as likely to be hostile.
            let mut rest = cut.number();
            while rest >= 0x80 {
                out.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            out.push(rest as u8);
        }
        REF2 => out.extend([0, 0]),
        EXPRLOC => {
            let expression = cut.take_at_most(8);
            out.push(expression.len() as u8);
            out.extend(expression);
        }
        FLAG_PRESENT => {}
        // STRP, SEC_OFFSET, REF_ADDR.
        _ => out.extend(u32::from(cut.byte()).to_le_bytes()),
    }
}

/// A table of line numbers of two files from the bytes of its program.
pub(crate) fn lines(program: &[u8]) -> Vec<u8> {
    let mut header = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    header.extend(b"d\0\0a.c\0\x01\0\0b.c\0\0\0\0\0");
    let mut body = vec![4, 0];
    body.extend((header.len() as u32).to_le_bytes());
    counted([&body, &header, program].concat())
}

/// A section that DWARF 5 begins with a header.
pub(crate) fn table_of_5(name: &str, data: &[u8]) -> Vec<u8> {
    let header: &[u8] = match name {
        ".debug_addr" => &[5, 0, 8, 0],
        ".debug_str_offsets" => &[5, 0, 0, 0],
        _ => &[5, 0, 8, 0, 0, 0, 0, 0],
    };
    counted([header, data].concat())
}

/// With the length in front.
fn counted(body: Vec<u8>) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}
