//! The facts in an executable file that decide how it is run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The program that runs a script, from the script's first line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interpreter {
    /// Its path.
    pub program: OsString,
    /// The rest of the line, as one argument.
    pub argument: Option<OsString>,
}

/// Bytes of a file that hold all of a script's first line that counts.
pub const FIRST_LINE_BYTES: usize = 256;

/// Interpreters that are scripts themselves are followed so far, as the kernel does it.
pub const MOST_INTERPRETERS: usize = 4;

impl Interpreter {
    /// The interpreter in a script's first line; `None` for a file that is no script. `begin` is the file's beginning.
    pub fn of(begin: &[u8]) -> Option<Interpreter> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let line = begin.strip_prefix(b"#!")?.split(|byte| matches!(byte, b'\n' | 0)).next()?;
        let line = line.trim_ascii();
        let end = line.iter().position(is_blank).unwrap_or(line.len());
        let (program, argument) = line.split_at(end);
        let argument = argument.trim_ascii();
        let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        (!program.is_empty()).then(|| Interpreter {
            program: text(program),
            argument: (!argument.is_empty()).then(|| text(argument)),
        })
    }

    /// The arguments of the interpreter for a script of this path that was given `arguments`, its own name first.
    pub fn arguments(&self, script: &OsStr, arguments: &[OsString]) -> Vec<OsString> {
        let own = [Some(self.program.clone()), self.argument.clone(), Some(script.to_owned())];
        own.into_iter().flatten().chain(arguments.iter().skip(1).cloned()).collect()
    }
}

/// True when a 64-bit little-endian program names a dynamic loader; a statically linked one does not. `begin` is the
/// file's beginning and holds its program headers.
pub fn names_loader(begin: &[u8]) -> bool {
    const LOADER: u64 = 3;
    parts(begin).any(|part| number(begin, part, 4) == Some(LOADER))
}

/// True when a 64-bit little-endian program lists the libraries it needs. A program that names a loader but no library
/// has no C library. `bytes` is the file.
pub fn needs_libraries(bytes: &[u8]) -> bool {
    const DYNAMIC: u64 = 2;
    const NEEDED: u64 = 1;
    const ENTRY_BYTES: usize = 16;
    let needs = |part: usize| {
        let (start, length) = (number(bytes, part + 8, 8)?, number(bytes, part + 32, 8)?);
        let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
        let mut entries = bytes.get(start..start.checked_add(length)?)?.chunks_exact(ENTRY_BYTES);
        Some(entries.any(|entry| number(entry, 0, 8) == Some(NEEDED)))
    };
    let dynamic = parts(bytes).filter(|part| number(bytes, *part, 4) == Some(DYNAMIC));
    dynamic.filter_map(needs).any(|needs| needs)
}

/// The offsets of a program's header entries.
fn parts(begin: &[u8]) -> impl Iterator<Item = usize> {
    let is_program = begin.starts_with(b"\x7fELF\x02\x01");
    let table = || Some((number(begin, 0x20, 8)?, number(begin, 0x36, 2)?, number(begin, 0x38, 2)?));
    let (first, bytes, count) = table().filter(|_| is_program).unwrap_or_default();
    (0..count).filter_map(move |part| usize::try_from(first.checked_add(part * bytes)?).ok())
}

/// A number of a file.
fn number(file: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let field = file.get(at..at.checked_add(bytes)?)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The function that starts a sanitizer's runtime, as it stands between zero bytes in a program's string table, and the
/// compiler option that enables it. Their shadow memory takes terabytes of addresses, which an emulator never finishes
/// setting up.
pub const SANITIZERS: [(&[u8], &str); 3] = [
    (b"\0__asan_init\0", "-fsanitize=address"),
    (b"\0__tsan_init\0", "-fsanitize=thread"),
    (b"\0__msan_init\0", "-fsanitize=memory"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_names_a_loader_is_told_from_one_that_does_not() {
        // A head, and two parts of 56 bytes.
        let program = |kinds: [u8; 2]| {
            let mut bytes = b"\x7fELF\x02\x01".to_vec();
            bytes.resize(64 + 2 * 56, 0);
            (bytes[0x20], bytes[0x36], bytes[0x38]) = (64, 56, 2);
            (bytes[64], bytes[64 + 56]) = (kinds[0], kinds[1]);
            bytes
        };
        assert!(names_loader(&program([6, 3])) && names_loader(&program([3, 1])));
        assert!(!names_loader(&program([1, 1])) && !names_loader(&program([1, 3])[..100]));
        assert!(!names_loader(b"#!/bin/sh\n") && !names_loader(b""));
        let mut far = program([1, 1]);
        far[0x20..0x28].fill(0xff);
        assert!(!names_loader(&far));
    }

    #[test]
    fn a_program_that_needs_libraries_says_so_in_its_dynamic_part() {
        // A head, a dynamic part of 56 bytes, and two entries of it.
        let program = |tags: [u8; 2]| {
            let mut bytes = b"\x7fELF\x02\x01".to_vec();
            bytes.resize(64 + 56 + 32, 0);
            (bytes[0x20], bytes[0x36], bytes[0x38]) = (64, 56, 1);
            (bytes[64], bytes[64 + 8], bytes[64 + 32]) = (2, 64 + 56, 32);
            (bytes[64 + 56], bytes[64 + 56 + 16]) = (tags[0], tags[1]);
            bytes
        };
        assert!(needs_libraries(&program([21, 1])) && needs_libraries(&program([1, 0])));
        assert!(!needs_libraries(&program([21, 0])) && !needs_libraries(&program([21, 1])[..150]));
        assert!(!needs_libraries(b"#!/bin/sh\n"));
    }

    fn of(begin: &str) -> Option<(String, Option<String>)> {
        let found = Interpreter::of(begin.as_bytes())?;
        let text = |text: OsString| text.into_string().unwrap();
        Some((text(found.program), found.argument.map(text)))
    }

    #[test]
    fn the_first_line_names_the_interpreter_and_one_argument() {
        assert_eq!(of("#!/bin/sh\nls\n"), Some(("/bin/sh".into(), None)));
        assert_eq!(of("#! /usr/bin/env  -S a b \n"), Some(("/usr/bin/env".into(), Some("-S a b".into()))));
        assert_eq!(of("#!/bin/sh"), Some(("/bin/sh".into(), None)));
        for none in ["", "#!", "#!\n/bin/sh", "# !/bin/sh", "\x7fELF"] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }

    #[test]
    fn the_interpreter_gets_the_script_and_its_arguments_but_not_its_name() {
        let interpreter = Interpreter::of(b"#!/bin/sh -e\n").unwrap();
        let given: Vec<OsString> = ["name", "one", "two"].map(Into::into).to_vec();
        let all = interpreter.arguments(OsStr::new("./run.sh"), &given);
        assert_eq!(all, ["/bin/sh", "-e", "./run.sh", "one", "two"]);
    }
}
