//! Compiling a program, recording it, reading the recording back.

use crate::installed::lineup;
use lineup_model::access::{Call, CallEnd};
use lineup_recording::{Recording, read_all};
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A compiler for one of the machines that are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Machine {
    X86_64,
    I386,
    Arm,
    Thumb,
    AArch64,
}

pub(crate) use Machine::{AArch64, Arm, I386, Thumb, X86_64};

/// All of them.
pub(crate) const MACHINES: [Machine; 5] = [X86_64, I386, Arm, Thumb, AArch64];

impl Machine {
    fn compiler(self, is_cpp: bool) -> (&'static str, &'static str) {
        match (self, is_cpp) {
            (X86_64, false) => ("gcc", "gcc"),
            (X86_64, true) => ("g++", "g++"),
            (I386, false) => ("i686-linux-gnu-gcc", "gcc-i686-linux-gnu"),
            (I386, true) => ("i686-linux-gnu-g++", "g++-i686-linux-gnu"),
            (Arm | Thumb, false) => ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"),
            (Arm | Thumb, true) => ("arm-linux-gnueabihf-g++", "g++-arm-linux-gnueabihf"),
            (AArch64, false) => ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
            (AArch64, true) => ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"),
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Arm => &["-marm"],
            Thumb => &["-mthumb"],
            X86_64 | I386 | AArch64 => &[],
        }
    }
}

/// A program in a folder of its own.
pub(crate) struct Program {
    pub(crate) folder: TempDir,
}

/// Compiles C, with options after the usual `-g -O2`.
pub(crate) fn c(machine: Machine, source: &str, options: &[&str]) -> Program {
    compile(machine, "main.c", source, options)
}

/// Compiles C++.
pub(crate) fn cpp(machine: Machine, source: &str, options: &[&str]) -> Program {
    compile(machine, "main.cpp", source, options)
}

fn compile(machine: Machine, name: &str, source: &str, options: &[&str]) -> Program {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let program = Program { folder };
    build(machine, program.folder.path(), name, source, "program", options);
    program
}

/// Compiles one file of a program's folder.
pub(crate) fn build(machine: Machine, folder: &Path, name: &str, source: &str, out: &str, options: &[&str]) {
    std::fs::write(folder.join(name), source).expect("writing a source file");
    let (compiler, package) = machine.compiler(name.ends_with("cpp"));
    let arguments = [&["-g", "-O2", "-pthread", "-o", out, name][..], machine.options(), options].concat();
    let made = lineup_fixtures::compiled(compiler, &arguments, folder, out);
    made.unwrap_or_else(|error| panic!("{compiler} of the package {package}: {error}"));
}

/// `lineup record` in a folder. `LINEUP_TEST_ENGINE=qemu` records all with the emulator that asks for no engine.
pub(crate) fn lineup_record(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = lineup();
    command.current_dir(folder).arg("record");
    let is_given =
        arguments.iter().any(|argument| matches!(*argument, "--engine" | "--whole-program" | "--kernel"));
    if let Some(engine) = std::env::var_os("LINEUP_TEST_ENGINE").filter(|_| !is_given) {
        command.arg("--engine").arg(engine);
    }
    command.args(arguments).output().expect("running lineup")
}

/// A program that was recorded.
pub(crate) struct Recorded {
    pub(crate) recording: Recording,
    /// `name value` lines that the program printed, the values in hexadecimal.
    pub(crate) printed: HashMap<String, u64>,
    /// All that was printed.
    pub(crate) said: String,
}

impl Program {
    /// Records with these options of `lineup record`; the program gets no arguments.
    pub(crate) fn record(&self, options: &[&str]) -> Recorded {
        let mut arguments = options.to_vec();
        arguments.extend(["--", "./program"]);
        let mut output = lineup_record(self.folder.path(), &arguments);
        // QEMU 7.2 itself may fail so, rarely, when an Arm program's first thread starts.
        if String::from_utf8_lossy(&output.stderr).contains("qemu_plugin_vcpu_mem_cb: code should not") {
            output = lineup_record(self.folder.path(), &arguments);
        }
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes = std::fs::read(self.folder.path().join("lineup.rec")).expect("the recording");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let pair = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), u64::from_str_radix(value.trim_start_matches("0x"), 16).ok()?))
        };
        let recording = read_all(&bytes).expect("a readable recording");
        assert_eq!(recording.damage, None);
        Recorded { recording, printed: stdout.lines().filter_map(pair).collect(), said: stdout }
    }
}

impl Program {
    /// Records these regions; returns the output of `lineup explain --json`.
    pub(crate) fn explain(&self, regions: &[&str]) -> serde_json::Value {
        let options: Vec<&str> = regions.iter().flat_map(|region| ["--region", region]).collect();
        self.record(&options);
        let output = Command::new(env!("CARGO_BIN_EXE_lineup"))
            .current_dir(self.folder.path())
            .args(["explain", "lineup.rec", "--json"])
            .output()
            .expect("running lineup");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

impl Recorded {
    pub(crate) fn calls(&self) -> &[Call] {
        &self.recording.calls
    }

    /// A value the program printed.
    pub(crate) fn value(&self, name: &str) -> u64 {
        *self.printed.get(name).unwrap_or_else(|| panic!("the program did not print {name}"))
    }

    /// The calls' endings, in order of entry.
    pub(crate) fn ends(&self) -> Vec<CallEnd> {
        self.calls().iter().map(|call| call.end).collect()
    }

    /// Loads and stores of a call inside a range of addresses.
    pub(crate) fn touched(&self, call: usize, start: u64, size_bytes: u64) -> Vec<(u64, u32, char)> {
        let inside = start..start + size_bytes;
        let accesses = self.calls()[call].accesses.iter().filter(|access| inside.contains(&access.address));
        let kind = |access: &lineup_model::access::Access| match access.kind {
            lineup_model::access::AccessKind::Load => 'L',
            lineup_model::access::AccessKind::Store => 'S',
        };
        accesses.map(|access| (access.address - start, access.size_bytes, kind(access))).collect()
    }
}
