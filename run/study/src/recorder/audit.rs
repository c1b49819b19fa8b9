//! An audit: the user's commands run in a built copy, where a script replaces the program. The script starts the
//! program under the emulator, so that it is audited whichever process starts it, such as a test suite.

use super::emulator::Emulator;
use crate::effects::Snapshot;
use crate::error::{Doing, Error, Result};
use crate::process::child::{Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::Run;
use lineup_model::machine::Machine;
use lineup_prove::run::Ending;
use lineup_recording::audit::{Findings, Table};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The suffix of the program's name while the script has its name.
const AUDITED: &str = ".lineup-audited";

/// A request for an audit.
pub struct AuditRequest<'a> {
    /// The copy that the program was built in; the audit leaves it as it found it.
    pub folder: &'a Path,
    /// The program in it.
    pub program: &'a Path,
    /// Shell commands that run it.
    pub commands: &'a [String],
    /// The table of the code's accesses, by the program's path and the folder of findings.
    pub table: &'a dyn Fn(&str, &str) -> Table,
    /// The input and the time limit of each command.
    pub run: Run,
}

/// Runs the commands; returns the findings on all processes of the program, and remarks.
///
/// # Errors
/// When nothing can be started or written, or the program was not started at all.
pub fn audit(request: &AuditRequest<'_>, interrupts: &Interrupts) -> Result<(Findings, Vec<String>)> {
    let snapshot = Snapshot::take(request.folder).doing("cannot copy the folder that is audited")?;
    let audited = run_all(request, interrupts);
    snapshot.restore().doing("cannot put back the folder that was audited")?;
    interrupts.check()?;
    audited
}

fn run_all(request: &AuditRequest<'_>, interrupts: &Interrupts) -> Result<(Findings, Vec<String>)> {
    let Some(machine) = Machine::ALL.into_iter().find(|machine| machine.is_host()) else {
        return Err(Error::Start("no program of this machine can be audited".into()));
    };
    let emulator = Emulator::find(machine)?;
    let place = interrupts.temporary_folder().doing("cannot make a folder for the audit")?;
    let (table, seen) = (place.path().join("table"), place.path().join("seen"));
    fs::create_dir(&seen).doing("cannot make a folder for the audit")?;
    let program = aside(request.program)?;
    let written = (request.table)(text(&program)?, text(&seen)?).to_text();
    fs::write(&table, written).doing("cannot write the audit's table")?;
    let argument = emulator.audit_argument(text(&table)?);
    write_script(request.program, emulator.path(), &argument, &program)?;
    let mut remarks = Vec::new();
    for line in request.commands {
        let command = ["sh", "-c", line].map(Into::into).into();
        let directory = Some(request.folder.to_owned());
        let run = Run { command, called: None, directory, ..request.run.clone() };
        let finished = Waiting::start(&run, Streams::Captured, interrupts)
            .and_then(Waiting::run)
            .doing_with(|| format!("cannot run the audited command `{line}`"))?;
        interrupts.check()?;
        if finished.ending != Ending::Exited(0) {
            remarks.push(format!("the audited command `{line}` ended with {}", finished.ending));
        }
    }
    let mut findings = Findings::default();
    for entry in fs::read_dir(&seen).doing("cannot read what the audit found")? {
        let path = entry.doing("cannot read what the audit found")?.path();
        findings.add_text(&fs::read_to_string(&path).doing_with(|| path.display().to_string())?);
    }
    if findings.processes == 0 {
        let (program, commands) = (request.program.display(), request.commands.join("`, `"));
        return Err(Error::argument(
            format!("--audit `{commands}`"),
            format!("it did not run {program}, so nothing was audited; give a command that does"),
        ));
    }
    Ok((findings, remarks))
}

/// Puts the program aside. Returns the path by which the kernel will name it.
fn aside(program: &Path) -> Result<std::path::PathBuf> {
    let mut name = program.file_name().map(OsStr::to_owned).unwrap_or_default();
    name.push(AUDITED);
    let aside = program.with_file_name(name);
    fs::rename(program, &aside).doing_with(|| format!("cannot move {}", program.display()))?;
    aside.canonicalize().doing_with(|| format!("cannot read {}", aside.display()))
}

fn write_script(program: &Path, emulator: &Path, argument: &str, aside: &Path) -> Result<()> {
    let quoted = |text: &str| shell_words::quote(text).into_owned();
    let (emulator, argument) = (quoted(text(emulator)?), quoted(argument));
    let aside = quoted(text(aside)?);
    let script = format!("#!/bin/sh\nexec {emulator} -0 \"$0\" -plugin {argument} {aside} \"$@\"\n");
    let write = || -> std::io::Result<()> {
        fs::write(program, script)?;
        fs::set_permissions(program, PermissionsExt::from_mode(0o755))
    };
    write().doing_with(|| format!("cannot write {}", program.display()))
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::file(path, "cannot be audited: its path is not UTF-8"))
}
