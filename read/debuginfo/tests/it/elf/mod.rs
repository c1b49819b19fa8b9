//! Builds ELF files in memory, right ones and wrong ones.

/// A 64-bit little-endian x86-64 executable with these sections and nothing else.
pub(crate) fn with_sections(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut file = vec![0; 64];
    let mut headers: Vec<[u64; 4]> = vec![[0; 4]];
    for (name, data) in sections {
        headers.push([names.len() as u64, 1, file.len() as u64, data.len() as u64]);
        names.extend(name.bytes().chain([0]));
        file.extend(*data);
    }
    headers.push([names.len() as u64, 3, file.len() as u64, names.len() as u64 + 10]);
    names.extend(b".shstrtab\0");
    file.extend(&names);
    let table = file.len() as u64;
    for [name, kind, offset, size] in &headers {
        file.extend((*name as u32).to_le_bytes());
        file.extend((*kind as u32).to_le_bytes());
        for field in [0, 0, *offset, *size, 0, 1, 0] {
            file.extend(u64::to_le_bytes(field));
        }
    }
    // The two 32-bit fields sh_link and sh_info share the fifth word above.
    file[..20].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0]);
    file[20..24].copy_from_slice(&1_u32.to_le_bytes());
    file[40..48].copy_from_slice(&table.to_le_bytes());
    let halves = [64_u16, 56, 0, 64, headers.len() as u16, headers.len() as u16 - 1];
    for (index, half) in halves.into_iter().enumerate() {
        file[52 + index * 2..54 + index * 2].copy_from_slice(&half.to_le_bytes());
    }
    file
}

/// A DWARF 4 unit of 64-bit addresses from the bytes of its entries.
pub(crate) fn unit(entries: &[u8]) -> Vec<u8> {
    let mut unit = Vec::new();
    unit.extend((entries.len() as u32 + 7).to_le_bytes());
    unit.extend(4_u16.to_le_bytes());
    unit.extend(0_u32.to_le_bytes());
    unit.push(8);
    unit.extend(entries);
    unit
}

/// Offset of the first entry in a [`unit`].
pub(crate) const FIRST_ENTRY: u32 = 11;

/// An abbreviation: code, tag, whether it has children, attributes and forms. Values below 128 only.
pub(crate) fn abbreviation(code: u8, tag: u8, has_children: bool, attributes: &[(u8, u8)]) -> Vec<u8> {
    let mut bytes = vec![code, tag, u8::from(has_children)];
    for (attribute, form) in attributes {
        bytes.extend([*attribute, *form]);
    }
    bytes.extend([0, 0]);
    bytes
}
