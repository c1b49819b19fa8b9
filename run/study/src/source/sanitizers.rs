//! A program with AddressSanitizer and UndefinedBehaviorSanitizer: built by an unchanged build, run, and the reports read.

use crate::error::{Doing, Result};
use crate::process::child::{Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::{On, Run};
use lineup_prove::run::Ending;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Text at the beginning of a report of AddressSanitizer.
const ADDRESS: &str = "ERROR: AddressSanitizer: ";

/// Text in a report of UndefinedBehaviorSanitizer, behind the place.
const UNDEFINED: &str = ": runtime error: ";

/// Text in frames of the sanitizers themselves.
const OWN_FRAME: &str = "libsanitizer";

/// The reports of runs of one program, and the ends of these runs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SanitizerReports {
    /// Each fault once: its kind and its function or file. Addresses and numbers are left out.
    pub faults: BTreeSet<String>,
    /// The runs' ends, in order.
    pub endings: Vec<Ending>,
}

impl SanitizerReports {
    /// Runs a program that was built with the sanitizers, and adds its reports. It is not ended at its first fault.
    ///
    /// # Errors
    /// When it cannot be run, or its reports cannot be read.
    pub fn add_run(&mut self, run: &Run, interrupts: &Interrupts) -> Result<()> {
        let folder = interrupts.temporary_folder().doing("making a folder for sanitizers")?;
        let mut run = Run { on: On::Anywhere, called: None, ..run.clone() };
        run.environment.extend(variables(folder.path()));
        let aside = ["sh", "-c", "exec \"$@\" 2>\"$0\""].map(OsString::from);
        run.command =
            aside.into_iter().chain([folder.path().join("printed").into()]).chain(run.command).collect();
        let finished = Waiting::start(&run, Streams::Captured, interrupts)?.run()?;
        interrupts.check()?;
        self.endings.push(finished.ending);
        self.read(folder.path())
    }

    /// Reads the reports of a run: files, of which one is its standard error.
    fn read(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder).doing("reading reports of sanitizers")? {
            let path = entry.doing("reading reports of sanitizers")?.path();
            let text = fs::read(&path).doing_with(|| format!("cannot read {}", path.display()))?;
            self.faults.extend(faults(&String::from_utf8_lossy(&text)));
        }
        Ok(())
    }

    /// The faults and ends that another program's runs do not have, in words.
    pub fn beyond(&self, other: &SanitizerReports) -> Vec<String> {
        let mut new: Vec<String> = self.faults.difference(&other.faults).cloned().collect();
        let ends = self.endings.iter().zip(&other.endings).filter(|(own, theirs)| own != theirs);
        new.extend(ends.map(|(own, theirs)| format!("it {own}, the unchanged program {theirs}")));
        new
    }
}

/// The variables that let AddressSanitizer write reports into a folder, and a program run on after a fault. Beside it
/// UndefinedBehaviorSanitizer writes to standard error whatever its options say.
fn variables(folder: &Path) -> [(OsString, OsString); 2] {
    let address = format!("log_path={}:halt_on_error=0:detect_leaks=0", folder.join("report").display());
    [
        ("ASAN_OPTIONS".into(), address.into()),
        ("UBSAN_OPTIONS".into(), "halt_on_error=0:print_stacktrace=0".into()),
    ]
}

/// The faults in one report.
fn faults(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some((_, said)) = line.split_once(ADDRESS) {
            let kind = said.split(" on ").next().unwrap_or(said).trim();
            let frames = lines.clone().take_while(|line| !line.contains(ADDRESS));
            let function = frames.filter(|line| !line.contains(OWN_FRAME)).find_map(function);
            found.push(match function {
                Some(function) => format!("AddressSanitizer: {} in {function}", without_numbers(kind)),
                None => format!("AddressSanitizer: {}", without_numbers(kind)),
            });
        } else if let Some((place, said)) = line.split_once(UNDEFINED) {
            let file = place.split(':').next().unwrap_or(place);
            let file = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
            found.push(format!("UndefinedBehaviorSanitizer: {} in {file}", without_numbers(said)));
        }
    }
    found
}

/// The function of a frame such as `    #0 0x55d in name file.c:3`.
fn function(line: &str) -> Option<&str> {
    let (_, behind) = line.trim_start().strip_prefix('#')?.split_once(" in ")?;
    behind.split_whitespace().next()
}

/// Addresses and numbers differ from run to run, and with the layout.
fn without_numbers(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let digits = word.trim_start_matches(['-', '+']);
        match digits.starts_with(|letter: char| letter.is_ascii_digit()) {
            true => "…",
            false => word,
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tool;
    use crate::source::compilers::Compiled;
    use crate::source::link::linkers::Linkers;
    use std::process::Command;

    /// `fault` is 0 for none, 1 for a read behind an object, 2 for an address that is not aligned, 3 for both.
    const PROGRAM: &str = "#include <stdlib.h>\n\
        struct pair { int first, last; };\n\
        static volatile int sink;\n\
        static void past(struct pair *p) { sink = (&p->last)[1]; }\n\
        static void odd(struct pair *p) { sink = p->first; }\n\
        int main(int count, char **words) {\n\
        struct pair *p = malloc(sizeof *p); p->first = p->last = count;\n\
        int fault = words[1][0] - '0';\n\
        if (fault & 1) past(p);\n\
        if (fault & 2) odd((struct pair *)((char *)p + 1));\n\
        free(p); return sink < 0; }\n";

    #[test]
    fn faults_of_a_build_that_is_not_changed_are_read_and_the_program_runs_on() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("m.c"), PROGRAM).expect("a file");
        let interrupts = Interrupts::watch().expect("watches");
        let linkers = Linkers::that_compile(Compiled::Sanitized, &interrupts).expect("scripts");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O0", "-g", "-o", "m", "m.c"]).current_dir(folder.path());
        gcc.envs(linkers.variables(folder.path()).expect("variables"));
        let output = tool::output(&mut gcc).expect("gcc runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(linkers.have_compiled());
        let of = |fault: &str| {
            let written = tempfile::tempdir().expect("a folder");
            let mut program = Command::new(folder.path().join("m"));
            program.arg(fault).envs(variables(written.path()));
            let output = tool::output(&mut program).expect("it runs");
            assert!(output.status.success());
            let mut reports = SanitizerReports::default();
            fs::write(written.path().join("printed"), &output.stderr).expect("a file");
            reports.read(written.path()).expect("reports");
            reports
        };
        let past = "AddressSanitizer: heap-buffer-overflow in past".to_owned();
        let odd = "UndefinedBehaviorSanitizer: member access within misaligned address … for type 'struct pair', which \
                   requires … byte alignment in m.c"
            .to_owned();
        assert_eq!(of("0").faults, BTreeSet::new());
        assert_eq!(of("1").beyond(&of("0")), std::slice::from_ref(&past));
        assert_eq!(of("3").faults, BTreeSet::from([past, odd.clone()]));
        assert_eq!(of("3").beyond(&of("1")), [odd]);
        assert_eq!(of("1").beyond(&of("3")), Vec::<String>::new());
    }

    #[test]
    fn another_end_is_a_fault() {
        let ended = |ending| SanitizerReports { endings: vec![ending], ..SanitizerReports::default() };
        let new = ended(Ending::Killed(11)).beyond(&ended(Ending::Exited(0)));
        assert!(new.len() == 1 && new[0].contains("SIGSEGV"), "{new:?}");
    }
}
