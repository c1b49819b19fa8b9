//! Programs that the engine can be in, and the reasons for the others.

use super::attach;
use crate::companions;
use crate::error::{Error, Result};
use crate::recorder::request::{Engine, RecordRequest};
use crate::recorder::subject::Subject;
use crate::recorder::{emulator, rights};
use lineup_bundle::Library;
use lineup_model::abi::{Abi, Machine};
use lineup_model::executable::{names_loader, needs_libraries};
use lineup_recording::Mode;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A mark that the Go linker writes into each program.
const GO_PROGRAM: &[u8] = b"\xff Go buildinf:";

/// True when the native engine is the default for a request: calls of a program of this machine, or all of it. One pass
/// is a mode of the emulator, in which it records all processes.
pub(in crate::recorder) fn is_for(abi: Abi, mode: Mode) -> bool {
    let can = matches!(mode, Mode::TwoPass | Mode::WholeProgram);
    abi.machine.is_host() && abi.machine == Machine::X86_64 && can
}

/// True when the program is linked statically: it loads no library, and the engine must be injected.
pub(super) fn is_static(subject: &Subject) -> bool {
    companions::read(subject.program()).is_ok_and(|bytes| !names_loader(&bytes))
}

/// The reason why the engine cannot be in a program; `None` when it can.
fn unfit(subject: &Subject) -> Option<String> {
    let program = subject.program();
    if rights::note(program).is_some() {
        return Some(format!(
            "{} gains rights when it starts, and loads no library of ours",
            program.display()
        ));
    }
    let bytes = companions::read(program).ok()?;
    let is_go = || memchr::memmem::find(&bytes, GO_PROGRAM).is_some();
    if names_loader(&bytes) {
        if names_musl(&bytes) {
            return Some(format!(
                "the loader of {} is musl's, which cannot load the engine's library, made for glibc's; a program that is \
                 linked with -static can be recorded and timed",
                program.display()
            ));
        }
        // With cgo the C library makes its threads.
        let sets_bases = !needs_libraries(&bytes) && is_go();
        return sets_bases.then(|| {
            format!(
                "{} is written in Go without cgo: it gives its threads bases of its own, where the engine's words of a \
                 thread would lie",
                program.display()
            )
        });
    }
    let why = if subject.is_started_by_another() {
        "is started by another program, so that the engine cannot be brought to it"
    } else if is_go() {
        "is written in Go, whose threads have no room for the engine's words"
    } else {
        return None;
    };
    Some(format!("{} is linked statically, and {why}", program.display()))
}

/// True when a program names musl's loader; its name stands near the file's beginning.
pub(super) fn names_musl(bytes: &[u8]) -> bool {
    const HEAD_BYTES: usize = 1 << 12;
    memchr::memmem::find(&bytes[..bytes.len().min(HEAD_BYTES)], b"/ld-musl-").is_some()
}

/// True when a mapped file names a function that loads further libraries. The C library's own files, which define
/// these functions, do not count.
pub(super) fn loads_libraries(file: &Path) -> bool {
    const LOADERS: [&[u8]; 2] = [b"\0dlopen\0", b"\0dlmopen\0"];
    const OF_C_LIBRARY: [&str; 4] = ["libc.", "libc-2.", "libdl", "ld-"];
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    if OF_C_LIBRARY.iter().any(|own| name.starts_with(own)) {
        return false;
    }
    let names = |bytes: &[u8]| LOADERS.iter().any(|loader| memchr::memmem::find(bytes, loader).is_some());
    companions::read(file).is_ok_and(|bytes| names(&bytes))
}

/// The engine's file. Requests that cannot work are refused here.
pub(in crate::recorder) fn find(request: &RecordRequest, subject: &Subject) -> Result<PathBuf> {
    let abi = subject.debug().abi();
    if let Some(process) = request.process {
        attach::check(process)?;
    }
    if !abi.machine.is_host() || abi.machine != Machine::X86_64 {
        return refuse("the native engine records x86-64 programs on x86-64 machines");
    }
    if let Some(why) = unfit(subject) {
        return refuse(why);
    }
    if request.engine == Engine::Fitting && subject.is_started_by_another() {
        return refuse("the program is started by another, and may be more than once");
    }
    emulator::library(Library::Engine)
}

pub(super) fn refuse<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::Unfit { why: why.into(), has_run: false })
}

/// As [`refuse`], once the program has ended.
pub(super) fn refuse_late<T>(why: String) -> Result<T> {
    Err(Error::Unfit { why, has_run: true })
}

/// The command line of a running process: to record it, or to time its calls.
///
/// # Errors
/// When it cannot be attached to.
pub fn command_of(process: u32) -> Result<Vec<OsString>> {
    attach::command(process)
}
