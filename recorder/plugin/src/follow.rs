//! Programs that a recorded process becomes by `exec`: the emulator would run them outside itself. So the recorder
//! makes the guest's `exec` in its place, with the emulator in front of the program and the same recorder in it.
//!
//! The recorder leaves the `exec` to the emulator when it cannot succeed: then the guest gets the kernel's error. It
//! also does so when the program cannot run under the emulator. The latter is noted, since the recording lacks the work
//! of the program and of all programs that it starts.

use crate::guest::Memory;
use crate::recorder::Recorder;
use crate::syscalls::AT_FDCWD;
use lineup_follow::elf;
use lineup_model::access::ProcessId;
use lineup_model::executable::{FIRST_LINE_BYTES, Interpreter, MOST_INTERPRETERS, SANITIZERS};
use lineup_recording::Unfollowed;
use memchr::memmem;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The options of the recorder by which a process knows where it comes from.
pub(crate) const PARENT: &str = "parent=";
pub(crate) const PROGRAM: &str = "program=";

/// Variables of the dynamic linker: for the guest's linker, not for the emulator's.
const LINKER_VARIABLES: &[u8] = b"LD_";

/// The guest's request.
pub(crate) struct Exec {
    /// The descriptor of the folder that the path starts in, or `AT_FDCWD`.
    pub(crate) folder: i32,
    /// Guest address of the path; the others are guest addresses as well.
    pub(crate) path: u64,
    pub(crate) arguments: u64,
    pub(crate) environment: u64,
}

/// The program to run.
#[derive(Debug)]
struct Command {
    /// The program's file, by the path for opening it.
    path: OsString,
    /// Its arguments, its own name first.
    arguments: Vec<OsString>,
}

impl Recorder {
    /// The guest is about to become another program. Returns when the emulator is to do that itself.
    pub(crate) fn follow(&self, exec: &Exec) {
        let memory = Memory::of(&self.guest_base, self.plan.header.abi.pointer_bytes);
        let Some((memory, path)) = memory.and_then(|memory| {
            let path = memory.text(exec.path)?;
            Some((memory, path))
        }) else {
            return;
        };
        let lists = (memory.texts(exec.arguments), memory.texts(exec.environment));
        let (Some(arguments), Some(environment)) = lists else { return };
        let asked = Command { path: self.opened(path, exec.folder), arguments };
        let Some(command) = resolve(asked) else { return };
        let program = fs::canonicalize(&command.path).unwrap_or_else(|_| PathBuf::from(&command.path));
        match self.why_not(&command.path) {
            Some(Obstacle::Fails) => {}
            Some(Obstacle::Alone(why)) => {
                let program = program.to_string_lossy().into_owned();
                self.translation().unfollowed.push(Unfollowed { program, why });
                self.finish();
            }
            None => self.become_program(&command, &program, environment),
        }
    }

    /// The path of the file for the emulator that is started. The guest's name for its own program would lead to the
    /// emulator's, and a descriptor may be closed on the way.
    fn opened(&self, path: OsString, folder: i32) -> OsString {
        let own = format!("/proc/{}/exe", std::process::id());
        if path == "/proc/self/exe" || path == own.as_str() || path == "/proc/thread-self/exe" {
            return self.plan.program.clone().into();
        }
        let path = match folder {
            AT_FDCWD => path,
            _ if path.as_bytes().starts_with(b"/") => path,
            _ if path.is_empty() => format!("/proc/self/fd/{folder}").into(),
            _ => Path::new(&format!("/proc/self/fd/{folder}")).join(path).into(),
        };
        let is_descriptor =
            path.as_bytes().starts_with(b"/proc/self/fd/") || path.as_bytes().starts_with(b"/dev/fd/");
        match fs::canonicalize(&path) {
            Ok(real) if is_descriptor => real.into(),
            _ => path,
        }
    }

    fn why_not(&self, path: &OsStr) -> Option<Obstacle> {
        let Ok(file) = File::open(path) else { return Some(Obstacle::Fails) };
        let alone = |why: &str| Some(Obstacle::Alone(why.to_owned()));
        let Some(machine) = elf::machine_of(&file) else { return Some(Obstacle::Fails) };
        let wanted = self.plan.header.abi;
        if machine != Some((wanted.machine, wanted.pointer_bytes)) {
            return alone(&format!("is no program for {}", wanted.machine));
        }
        if self.plan.follow.is_none() {
            return alone("was started by exec, which is not followed with --whole-program");
        }
        if gains_rights(&file) {
            return alone("has the rights of another user, which the emulator cannot give it");
        }
        if !is_there(path) {
            return alone("has no path of its own");
        }
        if !self.journal.has_space() {
            return alone("came after 65,535 others");
        }
        let bytes = fs::read(path).unwrap_or_default();
        let sanitizer = SANITIZERS.iter().find(|(name, _)| memmem::find(&bytes, name).is_some());
        sanitizer.and_then(|(_, option)| {
            alone(&format!("was built with {option}, whose memory the emulator cannot hold"))
        })
    }

    /// Returns only when that fails.
    fn become_program(&self, command: &Command, program: &Path, environment: Vec<OsString>) {
        let Some(follow) = &self.plan.follow else { return };
        let Some(line) = emulator_line(command, &self.options(program), environment) else { return };
        let Ok(emulator) = CString::new(follow.emulator.as_bytes()) else { return };
        self.finish();
        let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (arguments, environment) = (pointers(&line.arguments), pointers(&line.environment));
        // SAFETY: both lists end with a null pointer, and their texts live until the call returns.
        unsafe { libc::execve(emulator.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
        let error = std::io::Error::last_os_error();
        eprintln!("lineup: {} runs unrecorded: cannot start the emulator: {error}", program.display());
    }

    /// The emulator's options, its own name first.
    fn options(&self, program: &Path) -> Vec<OsString> {
        let Some(follow) = &self.plan.follow else { return Vec::new() };
        let recorder = format!(
            "{},plan={},{PARENT}{},{PROGRAM}{}",
            follow.recorder,
            self.plan_path,
            self.process().0,
            escape(program.as_os_str().as_bytes())
        );
        let options = follow.options.iter().map(OsString::from);
        [follow.emulator.as_str().into(), "-plugin".into(), recorder.into()]
            .into_iter()
            .chain(options)
            .collect()
    }
}

/// The reason why a program is not followed.
enum Obstacle {
    /// It cannot be run, or is no program.
    Fails,
    /// It runs without the recorder; the reason completes "it …".
    Alone(String),
}

/// The command line for the kernel.
struct Line {
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

fn emulator_line(command: &Command, options: &[OsString], environment: Vec<OsString>) -> Option<Line> {
    let mut arguments = options.to_vec();
    let mut outside = Vec::new();
    for variable in environment {
        // The emulator splits options at commas.
        let is_linkers =
            variable.as_bytes().starts_with(LINKER_VARIABLES) && !variable.as_bytes().contains(&b',');
        match is_linkers {
            true => arguments.extend(["-E".into(), variable]),
            false => outside.push(variable),
        }
    }
    if let Some(name) = command.arguments.first() {
        arguments.extend(["-0".into(), name.clone()]);
    }
    // A path that begins like an option is not given.
    let is_optional = command.path.as_bytes().starts_with(b"-");
    let path = if is_optional { Path::new(".").join(&command.path).into() } else { command.path.clone() };
    arguments.push(path);
    arguments.extend(command.arguments.iter().skip(1).cloned());
    let texts = |all: Vec<OsString>| -> Option<Vec<CString>> {
        all.into_iter().map(|text| CString::new(text.into_vec()).ok()).collect()
    };
    Some(Line { arguments: texts(arguments)?, environment: texts(outside)? })
}

/// The program behind scripts; `None` when no such program can be run.
fn resolve(mut command: Command) -> Option<Command> {
    for _ in 0..=MOST_INTERPRETERS {
        let about = fs::metadata(&command.path).ok()?;
        if !about.is_file() || about.mode() & 0o111 == 0 {
            return None;
        }
        let mut begin = Vec::new();
        File::open(&command.path).ok()?.take(FIRST_LINE_BYTES as u64).read_to_end(&mut begin).ok()?;
        let Some(interpreter) = Interpreter::of(&begin) else { return Some(command) };
        let arguments = interpreter.arguments(&command.path, &command.arguments);
        command = Command { path: interpreter.program, arguments };
    }
    None
}

/// True for a program that gets the rights of its file's owner or group, which are not ours.
fn gains_rights(file: &File) -> bool {
    let Ok(about) = file.metadata() else { return false };
    // SAFETY: these two always succeed.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    (about.mode() & libc::S_ISUID != 0 && about.uid() != user)
        || (about.mode() & libc::S_ISGID != 0 && about.gid() != group)
}

/// True when the emulator will find the file: not through a descriptor that is closed on the way.
fn is_there(path: &OsStr) -> bool {
    fs::canonicalize(path).is_ok_and(|real| real.is_file() && !real.starts_with("/proc"))
}

/// Keeps a text within one option of the recorder: options are parted by commas.
fn escape(text: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(byte);
    text.iter()
        .map(|byte| if plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02x}") })
        .collect()
}

/// The original text of an [`escape`]d one; bytes that are not UTF-8 are replaced.
pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The process that became this one by `exec`, by the recorder's options.
pub(crate) fn parent(arguments: &[String]) -> Option<ProcessId> {
    arguments.iter().find_map(|argument| argument.strip_prefix(PARENT)?.parse().ok().map(ProcessId))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_the_recorders_options() {
        for path in ["/bin/sh", "/a b,c=%41/\u{e4}\n"] {
            let escaped = escape(path.as_bytes());
            assert!(!escaped.contains([',', '=', ' ', '\n']), "{escaped}");
            assert_eq!(unescape(&escaped).as_deref(), Some(path));
        }
        assert_eq!(unescape("%4"), None);
    }

    #[test]
    fn the_linkers_variables_go_to_the_guest_alone() {
        let command = Command { path: "-x".into(), arguments: vec!["name".into(), "one".into()] };
        let environment = ["A=1", "LD_PRELOAD=/x.so", "LD_LIBRARY_PATH=a,b"].map(OsString::from).to_vec();
        let line = emulator_line(&command, &["emulator".into()], environment).unwrap();
        let text = |all: &[CString]| -> Vec<String> {
            all.iter().map(|text| text.to_str().unwrap().to_owned()).collect()
        };
        let arguments = text(&line.arguments);
        assert_eq!(arguments[..3], ["emulator", "-E", "LD_PRELOAD=/x.so"]);
        assert_eq!(arguments[arguments.len() - 4..], ["-0", "name", "./-x", "one"]);
        assert_eq!(text(&line.environment)[..2], ["A=1", "LD_LIBRARY_PATH=a,b"]);
    }

    #[test]
    fn what_is_no_program_is_left_to_the_kernel() {
        let command = |path: &str| Command { path: path.into(), arguments: vec!["x".into()] };
        assert!(resolve(command("/nowhere")).is_none());
        assert!(resolve(command("/")).is_none());
        assert!(resolve(command("/etc/passwd")).is_none(), "it is not executable");
        assert_eq!(resolve(command("/bin/sh")).unwrap().path, "/bin/sh");
    }
}
