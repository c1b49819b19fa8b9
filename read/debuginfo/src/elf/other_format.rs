//! Formats that are given in place of ELF files, by how they begin.

use crate::Error;

const OTHER_SYSTEM: &str = "Lineup reads the ELF files of Linux";
const PACKED: &str = "unpack it first";

/// How files of a format begin, its name, and the advice.
const FORMATS: [(&[u8], &str, &str); 17] = [
    (b"!<arch>\n", "an archive of object files", "take an object file out of it: ar x FILE"),
    (b"!<thin>\n", "an archive that names object files", "give one of them: ar t FILE lists them"),
    (b"BC\xc0\xde", "LLVM bitcode, as -flto leaves it in object files", "give the linked program"),
    (b"\0asm", "a WebAssembly module", OTHER_SYSTEM),
    (b"MZ", "a Windows program", OTHER_SYSTEM),
    (b"\x64\x86", "a Windows object file", OTHER_SYSTEM),
    (b"\x4c\x01", "a Windows object file", OTHER_SYSTEM),
    (b"\x64\xaa", "a Windows object file", OTHER_SYSTEM),
    (b"\xcf\xfa\xed\xfe", "a Mach-O file of macOS", OTHER_SYSTEM),
    (b"\xce\xfa\xed\xfe", "a Mach-O file of macOS", OTHER_SYSTEM),
    (b"\xca\xfe\xba\xbe", "a Mach-O file of macOS, or a Java class", OTHER_SYSTEM),
    (b"\x1f\x8b", "a file that gzip packed", PACKED),
    (b"\xfd7zXZ\0", "a file that xz packed", PACKED),
    (b"\x28\xb5\x2f\xfd", "a file that zstd packed", PACKED),
    (b"BZh", "a file that bzip2 packed", PACKED),
    (b"PK\x03\x04", "a ZIP file", PACKED),
    (b"#!", "a script", "give the program that it starts"),
];

/// The error for bytes that are no ELF file.
pub(super) fn refusal(bytes: &[u8]) -> Error {
    if let Some((_, format, advice)) = FORMATS.iter().find(|(start, ..)| bytes.starts_with(start)) {
        return Error::OtherFormat { format, advice };
    }
    let starts_with = match bytes.get(..bytes.len().min(4)) {
        Some(start) if !start.is_empty() => {
            start.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
        }
        _ => "nothing: it is empty".to_owned(),
    };
    Error::NotElf { starts_with }
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn known_formats_have_their_names_and_others_their_first_bytes() {
        for (bytes, expected) in [
            (
                &b"!<arch>\n/"[..],
                "an archive of object files, not an ELF file; take an object file out of it: ar x FILE",
            ),
            (
                b"BC\xc0\xde5",
                "LLVM bitcode, as -flto leaves it in object files, not an ELF file; give the linked program",
            ),
            (b"MZ\x90", "a Windows program, not an ELF file; Lineup reads the ELF files of Linux"),
            (
                b"int",
                "not an ELF file (it starts with 69 6e 74); give a compiled program, library or object file",
            ),
        ] {
            assert_eq!(refusal(bytes).to_string(), expected);
        }
    }
}
