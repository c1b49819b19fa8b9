//! The recorded programs: the one that is started, and the one whose functions the regions are.

use super::sanitizer;
use crate::companions::{self, DebugInfos};
use crate::error::{Doing, Error, Result};
use crate::process::run::Run;
use lineup_debuginfo::DebugInfo;
use lineup_model::executable::{FIRST_LINE_BYTES, Interpreter, MOST_INTERPRETERS};
use std::cell::{RefCell, RefMut};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A program to be recorded.
pub struct Subject {
    /// The emulator's command: the program, or a script's interpreter with the script, and the arguments.
    pub(super) command: Vec<OsString>,
    /// The script that the user named, when the program that is started is its interpreter.
    script: Option<PathBuf>,
    /// The file whose functions the regions are.
    program: PathBuf,
    debug: DebugInfo,
    /// The debug information of other files in which functions were looked for.
    others: RefCell<DebugInfos>,
}

impl Subject {
    /// The program that a run starts, with the functions of `program`, a program that it starts in turn. Without
    /// `program` the functions are the started program's own. Requests that cannot work are refused here, before any
    /// long run.
    ///
    /// # Errors
    /// When there is no such program, or it cannot run under the emulator.
    pub fn load(run: &Run, program: Option<&Path>) -> Result<Subject> {
        let command = without_scripts(run)?;
        let started = command.first().map(PathBuf::from);
        let started = started.ok_or_else(|| Error::Start("there is no program to record".into()))?;
        check(&started)?;
        let named = run.command.first().map(PathBuf::from).filter(|_| command.len() > run.command.len());
        let script = named.filter(|_| program.is_none());
        let program = program.unwrap_or(&started).to_owned();
        if program != started {
            check(&program)?;
        }
        let debug = companions::load(&program)?;
        let mut others = DebugInfos::default();
        if program != started {
            let other = companions::load(&started)?;
            let machine = other.abi().machine;
            others.add(&started, other);
            if machine != debug.abi().machine {
                let own = debug.abi().machine;
                let why = format!(
                    "is a program for {own} and {} one for {machine}: both run in one emulator",
                    started.display()
                );
                return Err(Error::file(program, why));
            }
        }
        Ok(Subject { command, script, program, debug, others: RefCell::new(others) })
    }

    /// Files that no recording may replace.
    pub(super) fn files(&self) -> [&Path; 2] {
        [Path::new(&self.command[0]), &self.program]
    }

    /// The path of the program that is started, for the recorder.
    pub(super) fn started_text(&self) -> Result<String> {
        text(Path::new(&self.command[0]))
    }

    /// The path of the program whose functions the regions are, as the kernel names it where it is mapped.
    pub(super) fn mapped_text(&self) -> Result<String> {
        let path = &self.program;
        text(&path.canonicalize().doing_with(|| format!("cannot read the program {}", path.display()))?)
    }

    /// The file whose functions the regions are.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The script that the user named, when its interpreter is recorded.
    pub fn script(&self) -> Option<&Path> {
        self.script.as_deref()
    }

    /// True when another program is started, which starts this one.
    pub(super) fn is_started_by_another(&self) -> bool {
        self.program != Path::new(&self.command[0])
    }

    /// Its debug information.
    pub fn debug(&self) -> &DebugInfo {
        &self.debug
    }

    /// Debug information of other files that ran.
    pub(super) fn others(&self) -> RefMut<'_, DebugInfos> {
        self.others.borrow_mut()
    }

    /// All debug information that was read, to be kept: its own, and that of other files in which functions were looked
    /// for.
    pub fn into_debug_infos(self) -> DebugInfos {
        let mut infos = self.others.into_inner();
        // The path under which it is mapped.
        let mapped = self.program.canonicalize();
        infos.add(&mapped.unwrap_or(self.program), self.debug);
        infos
    }
}

/// The command with the interpreter in front of a script, and the program's file by its absolute path.
fn without_scripts(run: &Run) -> Result<Vec<OsString>> {
    let mut command = run.command.clone();
    for _ in 0..=MOST_INTERPRETERS {
        let Some(first) = command.first() else { break };
        let program = absolute(run, Path::new(first))?;
        let begin = begin_of(&program)
            .doing_with(|| format!("cannot read the program {}", Path::new(first).display()))?;
        let Some(interpreter) = Interpreter::of(&begin) else {
            command[0] = program.into_os_string();
            return Ok(command);
        };
        check_file(&program)?;
        command = interpreter.arguments(&first.clone(), &command);
    }
    let script = PathBuf::from(run.command.first().cloned().unwrap_or_default());
    Err(Error::file(script, "is a script whose interpreter is a script, and so on; name another program"))
}

/// A relative path is meant from where the run takes place.
fn absolute(run: &Run, program: &Path) -> Result<PathBuf> {
    let folder = run.directory.clone().unwrap_or_default();
    let path = folder.join(program);
    std::path::absolute(&path).doing_with(|| path.display().to_string())
}

fn begin_of(program: &Path) -> std::io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    // A pipe would keep us waiting.
    if fs::metadata(program)?.is_file() {
        File::open(program)?.take(FIRST_LINE_BYTES as u64).read_to_end(&mut begin)?;
    }
    Ok(begin)
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().ok_or_else(|| Error::file(path, "has a name that is not UTF-8; rename it"))?;
    Ok(text.to_owned())
}

fn check(program: &Path) -> Result<()> {
    check_file(program)?;
    sanitizer::refuse(program)
}

fn check_file(program: &Path) -> Result<()> {
    let metadata =
        fs::metadata(program).doing_with(|| format!("cannot read the program {}", program.display()))?;
    if !metadata.is_file() {
        return Err(Error::file(program, "is not a program"));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        let what = if is_own { "is not executable; chmod +x it" } else { "is not executable" };
        return Err(Error::file(program, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_run_by_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path.into_os_string()
        };
        let script = write("run", "#!/bin/sh -e\n");
        let outer = write("outer", &format!("#!{}\n", script.display()));
        let circle = write("circle", &format!("#!{}/circle\n", folder.path().display()));
        let run = |program: &OsString| Run { command: vec![program.clone(), "x".into()], ..Run::default() };
        let shell: OsString = "/bin/sh".into();
        assert_eq!(
            without_scripts(&run(&script)).unwrap(),
            [shell.clone(), "-e".into(), script.clone(), "x".into()]
        );
        assert_eq!(without_scripts(&run(&outer)).unwrap(), [shell, "-e".into(), script, outer, "x".into()]);
        assert!(without_scripts(&run(&circle)).is_err());
        assert!(without_scripts(&run(&"/nowhere".into())).is_err());
    }
}
