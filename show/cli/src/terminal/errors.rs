//! Errors, shown to a person and, with `--json`, to a program: one object on standard output (docs/json.md).

use crate::terminal::output;
use clap::ArgMatches;
use clap::error::ErrorKind;
use lineup_debuginfo::Error as DebugInfoError;
use lineup_recording::RecordingError;
use lineup_study::error::Error as StudyError;
use lineup_study::interrupt::Interrupted;
use serde::Serialize;
use std::ffi::OsStr;
use std::io;

/// The exit code of a command that gave no result.
pub(crate) const EXIT_CODE: u8 = 2;

/// The kind of an error. The names are part of the JSON form and stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Code {
    /// The arguments are not those of the command.
    Usage,
    /// A file or folder that was named is not there.
    NotFound,
    /// The system does not permit it to this user.
    NotPermitted,
    /// A file has the wrong form, or is damaged.
    BadInput,
    /// A program was built without debug information, or that was not found.
    NoDebugInfo,
    /// The requested name does not exist.
    UnknownName,
    /// A needed tool is not installed, or not usable here.
    MissingTool,
    /// The build of a program failed.
    BuildFailed,
    /// A signal ended it.
    Interrupted,
    /// Any other error; the message explains it.
    Failed,
}

/// A name that nothing in a file has.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnknownName(pub(crate) String);

impl UnknownName {
    /// Several names as one error, a line each; `None` when the list is empty.
    pub(crate) fn all(names: &[UnknownName]) -> Option<UnknownName> {
        let reasons: Vec<&str> = names.iter().map(|UnknownName(reason)| reason.as_str()).collect();
        (!reasons.is_empty()).then(|| UnknownName(reasons.join("\n")))
    }
}

/// Schema `lineup.error/1`.
#[derive(Serialize)]
struct ErrorJson<'e> {
    schema: &'static str,
    code: Code,
    message: &'e str,
    what: &'e str,
    next: Option<&'e str>,
}

/// One object, for standard output.
fn json(code: Code, message: &str, next: Option<&str>) -> String {
    let (what, told) = parts(message);
    let error = ErrorJson { schema: "lineup.error/1", code, message, what, next: next.or(told) };
    serde_json::to_string_pretty(&error).unwrap_or_default() + "\n"
}

/// The problem and the remedy: messages put a semicolon between the two. A message of several lines quotes other programs,
/// or has a remedy in each line.
fn parts(message: &str) -> (&str, Option<&str>) {
    match message.rsplit_once("; ") {
        Some((what, next)) if !next.is_empty() && !message.contains('\n') => (what, Some(next)),
        _ => (message, None),
    }
}

/// An error and its causes, each once: an error's text may already contain its cause's.
pub(crate) fn message(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.is_empty() {
        true => cause,
        false if said.contains(&cause) => said,
        false => format!("{said}: {cause}"),
    })
}

/// Reports the error of a command that was started, for a program as well if `as_json`.
pub(crate) fn tell(error: &anyhow::Error, as_json: bool) {
    let message = message(error);
    if as_json {
        // The reader of standard output may be gone; the exit code is the same.
        let _ = output::print(&json(code(error), &message, None));
    }
    // Names from a program's file may be part of the message.
    eprintln!("lineup: {}", lineup_report::visible::many_lines(&message));
}

/// Reports wrong arguments, or prints the requested help, and exits.
pub(crate) fn refuse(error: &clap::Error) -> ! {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if !is_help && json_is_typed() {
        let text = error.to_string();
        let mut paragraphs = text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
        let message = paragraphs.next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let hint = paragraphs.clone().find_map(|paragraph| paragraph.strip_prefix("tip: "));
        let next = hint.or_else(|| paragraphs.find_map(|paragraph| paragraph.strip_prefix("Usage: ")));
        let _ = output::print(&json(Code::Usage, message, next));
    }
    error.exit()
}

/// True when `--json` was typed.
pub(crate) fn json_is_typed() -> bool {
    asks_for_json(std::env::args_os().skip(1))
}

/// True when `--json` is among the arguments before those of another program.
fn asks_for_json<A: AsRef<OsStr>>(arguments: impl Iterator<Item = A>) -> bool {
    let mut own = arguments.take_while(|argument| argument.as_ref() != "--");
    own.any(|argument| argument.as_ref() == "--json")
}

/// True when the command that was given has `--json`.
pub(crate) fn is_json(matches: &ArgMatches) -> bool {
    let own = matches.try_get_one::<bool>("json").ok().flatten().is_some_and(|is_set| *is_set);
    own || matches.subcommand().is_some_and(|(_, below)| is_json(below))
}

/// The code of the first error in the chain that has one of its own.
fn code(error: &anyhow::Error) -> Code {
    error.chain().find_map(own_code).unwrap_or(Code::Failed)
}

fn own_code(error: &(dyn std::error::Error + 'static)) -> Option<Code> {
    if error.is::<UnknownName>() {
        return Some(Code::UnknownName);
    }
    if error.is::<Interrupted>() {
        return Some(Code::Interrupted);
    }
    if let Some(error) = error.downcast_ref::<StudyError>() {
        return of_study(error);
    }
    if let Some(error) = error.downcast_ref::<DebugInfoError>() {
        return Some(of_debug_info(error));
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return of_system(error);
    }
    if let Some(error) = error.downcast_ref::<RecordingError>() {
        return Some(of_recording(error));
    }
    let is_input = error.is::<lineup_kernel::Error>()
        || error.is::<lineup_samples::SamplesError>()
        || error.is::<lineup_trace::TraceError>()
        || error.is::<serde_json::Error>();
    // The system's error about the file is more specific.
    (is_input && error.source().and_then(own_code).is_none()).then_some(Code::BadInput)
}

fn of_study(error: &StudyError) -> Option<Code> {
    Some(match error {
        StudyError::Region(_) => Code::UnknownName,
        StudyError::Tool { .. } => Code::MissingTool,
        StudyError::Build(_) => Code::BuildFailed,
        StudyError::Interrupted(_) => Code::Interrupted,
        StudyError::Argument { .. } => Code::Usage,
        StudyError::DebugInfo { cause, .. } => of_debug_info(cause),
        StudyError::File { .. } => Code::BadInput,
        StudyError::System { cause, .. } => return of_system(cause),
        StudyError::Step { cause, .. } => return of_study(cause),
        StudyError::Recording(cause) => of_recording(cause),
        StudyError::Kernel(_) => Code::BadInput,
        _ => return None,
    })
}

fn of_recording(error: &RecordingError) -> Code {
    match error {
        RecordingError::Io(cause) => of_system(cause).unwrap_or(Code::Failed),
        _ => Code::BadInput,
    }
}

fn of_debug_info(error: &DebugInfoError) -> Code {
    match error {
        DebugInfoError::NoDebugInfo { .. } => Code::NoDebugInfo,
        _ => Code::BadInput,
    }
}

fn of_system(error: &io::Error) -> Option<Code> {
    match error.kind() {
        io::ErrorKind::NotFound => Some(Code::NotFound),
        io::ErrorKind::PermissionDenied => Some(Code::NotPermitted),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Some(Code::BadInput)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    fn code_of<T>(result: anyhow::Result<T>) -> Code {
        code(&result.map(|_| ()).expect_err("an error"))
    }

    #[test]
    fn the_first_error_in_a_chain_that_has_a_code_gives_it() {
        let missing = || std::fs::read("no such file");
        assert_eq!(code_of(missing().context("a.rec")), Code::NotFound);
        let recording = || missing().map_err(lineup_recording::RecordingError::from);
        assert_eq!(code_of(recording().context("a.rec")), Code::NotFound);
        assert_eq!(code_of::<()>(Err(anyhow::anyhow!("no idea"))), Code::Failed);
        let unknown: anyhow::Result<()> = Err(UnknownName("no type x; did you mean y?".to_owned()).into());
        assert_eq!(code_of(unknown.context("a")), Code::UnknownName);
        assert_eq!(code_of(serde_json::from_str::<u8>("x").context("a")), Code::BadInput);
    }

    #[test]
    fn what_to_do_next_is_told_apart() {
        assert_eq!(parts("no type x in y; did you mean z?"), ("no type x in y", Some("did you mean z?")));
        assert_eq!(parts("a; b; c"), ("a; b", Some("c")));
        assert_eq!(parts("a.rec: No such file"), ("a.rec: No such file", None));
        let quoted = "the build failed; its last lines:\nbool flush; /* try again */";
        assert_eq!(parts(quoted), (quoted, None));
    }

    #[test]
    fn a_cause_is_said_once() {
        let missing = || std::fs::read("no such file").map_err(lineup_recording::RecordingError::from);
        let error = missing().context("a.rec").unwrap_err();
        assert_eq!(message(&error), "a.rec: No such file or directory (os error 2)");
        let told = anyhow::anyhow!("inner").context("outer failed: inner").context("a.rec");
        assert_eq!(message(&told), "a.rec: outer failed: inner");
    }

    #[test]
    fn options_of_another_program_are_not_ours() {
        assert!(asks_for_json(["layout", "--json"].iter()));
        assert!(!asks_for_json(["find", "--", "./program", "--json"].iter()));
    }
}
