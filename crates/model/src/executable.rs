//! What the bytes of an executable file say of how it is run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The program that runs a script, from the script's first line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interpreter {
    /// Its path.
    pub program: OsString,
    /// All that follows on the line, as one argument.
    pub argument: Option<OsString>,
}

/// Bytes of a file that hold all of a script's first line that counts.
pub const FIRST_LINE_BYTES: usize = 256;

/// Interpreters that are scripts themselves are followed so far, as the kernel does it.
pub const MOST_INTERPRETERS: usize = 4;

impl Interpreter {
    /// What the first line names; `None` for a file that is no script. `begin` is the file's begin.
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

/// The function that starts a sanitizer's runtime, as it stands between zero bytes in a program's table of names, and the
/// compiler's option that asks for it. Their shadow memory takes terabytes of addresses, with which an emulator never
/// comes to an end.
pub const SANITIZERS: [(&[u8], &str); 3] = [
    (b"\0__asan_init\0", "-fsanitize=address"),
    (b"\0__tsan_init\0", "-fsanitize=thread"),
    (b"\0__msan_init\0", "-fsanitize=memory"),
];

#[cfg(test)]
mod tests {
    use super::*;

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
