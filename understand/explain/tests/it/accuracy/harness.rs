//! Compiles a program, runs it under the emulator with the test's own tracer, and reads back its report about its
//! memory.

use lineup_model::access::{
    Access, AccessKind, Call, CallEnd, MemoryEvent, MemoryEventKind, ProcessId, StackRange, ThreadId,
};
use lineup_model::image::LoadedImage;
use lineup_model::region::RegionId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A machine with its compiler and emulator and the packages that bring them.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) compiler: &'static str,
    pub(crate) emulator: &'static str,
    pub(crate) packages: &'static str,
    /// The start of guest memory in the emulator.
    pub(crate) guest_base: u64,
    pub(crate) pointer_bytes: u64,
}

pub(crate) const X86_64: Target = Target {
    name: "x86-64",
    compiler: "x86_64-linux-gnu-gcc",
    emulator: "qemu-x86_64",
    packages: "gcc qemu-user",
    guest_base: 0,
    pointer_bytes: 8,
};

pub(crate) const AARCH64: Target = Target {
    name: "aarch64",
    compiler: "aarch64-linux-gnu-gcc",
    emulator: "qemu-aarch64",
    packages: "gcc-aarch64-linux-gnu qemu-user",
    guest_base: 0,
    pointer_bytes: 8,
};

pub(crate) const ARM: Target = Target {
    name: "arm",
    compiler: "arm-linux-gnueabihf-gcc",
    emulator: "qemu-arm",
    packages: "gcc-arm-linux-gnueabihf qemu-user",
    guest_base: 0x1_0000_0000,
    pointer_bytes: 4,
};

pub(crate) const I386: Target = Target {
    name: "i386",
    compiler: "i686-linux-gnu-gcc",
    emulator: "qemu-i386",
    packages: "gcc-i686-linux-gnu libc6-dev-i386-cross qemu-user",
    guest_base: 0x1_0000_0000,
    pointer_bytes: 4,
};

/// Runs a command and fails the test with its output.
fn run(command: &mut Command, packages: &str) -> String {
    let shown = format!("{command:?}");
    let output =
        command.output().unwrap_or_else(|error| panic!("{shown}: {error}; apt-get install {packages}"));
    assert!(output.status.success(), "{shown}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A program's description of its memory.
#[derive(Clone, Default)]
pub(crate) struct Truth {
    /// Objects by address: type and size.
    pub(crate) objects: BTreeMap<u64, (String, u64)>,
    /// Arrays of scalars by address: size.
    pub(crate) buffers: BTreeMap<u64, u64>,
    /// Thread-local variables by name: address and size.
    pub(crate) thread_locals: BTreeMap<String, (u64, u64)>,
    /// Memory that the program hands out itself: address and size.
    pub(crate) pools: BTreeMap<u64, u64>,
    /// By function, the type that it takes the blocks of a pool for: an aggregate, or a scalar.
    pub(crate) in_pools: BTreeMap<String, String>,
    /// Members by type: path, offset, size.
    pub(crate) parts: BTreeMap<String, Vec<(String, u64, u64)>>,
}

impl Truth {
    /// The object that holds an address: its type and the offset in it.
    pub(crate) fn object_at(&self, address: u64) -> Option<(&str, u64)> {
        let (start, (ty, size)) = self.objects.range(..=address).next_back()?;
        (address - start < *size).then(|| (ty.as_str(), address - start))
    }

    /// The type for which a function takes a block of a pool, when the address is in one. Functions that are not listed
    /// copy text.
    pub(crate) fn in_pool(&self, address: u64, function: &str) -> Option<&str> {
        let (start, size) = self.pools.range(..=address).next_back()?;
        (address - start < *size).then(|| self.in_pools.get(function).map_or("char", String::as_str))
    }

    pub(crate) fn is_thread_local(&self, address: u64) -> bool {
        self.thread_locals.values().any(|(start, size)| (*start..start + size).contains(&address))
    }

    pub(crate) fn is_buffer(&self, address: u64) -> bool {
        self.buffers.range(..=address).next_back().is_some_and(|(start, size)| address - start < *size)
    }
}

/// A program that ran.
pub(crate) struct Run {
    pub(crate) bytes: Vec<u8>,
    pub(crate) calls: Vec<(Call, Truth)>,
    pub(crate) memory: Vec<MemoryEvent>,
    pub(crate) stacks: Vec<StackRange>,
    pub(crate) image: LoadedImage,
}

pub(crate) fn compile(target: &Target, source: &str, flags: &[&str], folder: &Path) -> PathBuf {
    let text = folder.join("program.c");
    std::fs::write(&text, source).unwrap();
    let program = folder.join("program");
    let mut command = Command::new(target.compiler);
    command.args(["-g", "-w", "-Wno-incompatible-pointer-types", "-static", "-no-pie"]);
    command.args(["-fno-strict-aliasing", "-o"]).arg(&program).arg(&text);
    run(command.args(flags), target.packages);
    program
}

/// A Rust program for the machine that the test runs on.
pub(crate) fn compile_rust(source: &str, flags: &[&str], folder: &Path) -> PathBuf {
    let text = folder.join("program.rs");
    std::fs::write(&text, source).unwrap();
    let program = folder.join("program");
    let mut command = Command::new("rustc");
    command.args(["--edition", "2024", "--crate-name", "program", "-g", "-A", "warnings"]);
    command.args(["-C", "target-feature=+crt-static", "-C", "relocation-model=static", "-o"]);
    run(command.arg(&program).arg(&text).args(flags), "libc6-dev");
    program
}

pub(crate) fn trace(target: &Target, program: &Path, folder: &Path) -> Run {
    let tracer = folder.join("tracer.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/programs/tracer.c");
    run(Command::new("gcc").args(["-O2", "-shared", "-fPIC", "-o"]).arg(&tracer).arg(&source), "gcc");
    let bytes = std::fs::read(program).unwrap();
    let debug =
        lineup_debuginfo::DebugInfo::parse(bytes.clone(), &mut lineup_debuginfo::NoCompanions).unwrap();
    let symbol = |name: &str| debug.symbols().iter().find(|symbol| symbol.name == name).unwrap().address;
    let accesses = folder.join("accesses");
    let plugin = format!(
        "{},out={},on={:#x},off={:#x},base={:#x}",
        tracer.display(),
        accesses.display(),
        symbol("trace_on"),
        symbol("trace_off"),
        target.guest_base
    );
    let help = run(Command::new(target.emulator).arg("--help"), target.packages);
    // `xtask test` counts the test as skipped then, unless `CI` is set.
    let has_plugins = help.lines().any(|line| line.starts_with("-plugin"));
    assert!(has_plugins, "{} was built without plugins", target.emulator);
    let mut command = Command::new(target.emulator);
    command.args(["-B", &format!("{:#x}", target.guest_base), "-plugin", &plugin]).arg(program);
    let said = run(&mut command, target.packages);
    let image = LoadedImage {
        path: program.display().to_string(),
        start: debug.first_load_address().unwrap(),
        end: debug.segments().iter().map(|segment| segment.addresses.end).max().unwrap(),
        bias: 0,
        build_id: None,
    };
    let heard = hear(&said);
    let calls = calls(target, &std::fs::read(&accesses).unwrap(), heard.entered);
    Run { bytes, calls, memory: heard.memory, stacks: heard.stacks, image }
}

/// The traced calls. A record of size 0 begins one.
fn calls(target: &Target, records: &[u8], entered: Vec<(u64, Truth)>) -> Vec<(Call, Truth)> {
    let word = |record: &[u8], at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
    let mut calls: Vec<(Call, Truth)> = Vec::new();
    let mut entered = entered.into_iter();
    for record in records.chunks_exact(32) {
        let size_and_kind = word(record, 24);
        let size_bytes = size_and_kind as u32;
        if size_bytes == 0 {
            let (at, truth) = entered.next().unwrap();
            calls.push((call(at), truth));
            continue;
        }
        let address = word(record, 8);
        let is_pointer =
            u64::from(size_bytes) == target.pointer_bytes && address.is_multiple_of(target.pointer_bytes);
        calls.last_mut().unwrap().0.accesses.push(Access {
            pc: word(record, 0),
            address,
            size_bytes,
            kind: if size_and_kind >> 32 == 0 { AccessKind::Load } else { AccessKind::Store },
            value: is_pointer.then(|| word(record, 16)),
        });
    }
    calls
}

fn call(entered_at: u64) -> Call {
    Call {
        region: RegionId(0),
        process: ProcessId(0),
        thread: ThreadId(0),
        sequence: entered_at,
        entered_at,
        end: CallEnd::Returned,
        depth: 0,
        instructions: 0,
        binding_instructions: 0,
        missed_blocks: 0,
        arguments: None,
        accesses: Vec::new(),
        code_granules: Vec::new(),
        times: Vec::new(),
    }
}

fn number(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// The program's output.
#[derive(Default)]
struct Heard {
    truth: Truth,
    memory: Vec<MemoryEvent>,
    maps: Vec<(u64, u64)>,
    stacks: Vec<StackRange>,
    /// The beginning of each traced call, and the places of data then.
    entered: Vec<(u64, Truth)>,
    time: u64,
}

impl Heard {
    fn memory(&mut self, kind: MemoryEventKind, address: u64, size_bytes: Option<u64>) {
        self.memory.push(MemoryEvent {
            at: self.time,
            process: ProcessId(0),
            thread: ThreadId(0),
            kind,
            address,
            size_bytes,
        });
    }
}

/// Reads the program's output.
fn hear(said: &str) -> Heard {
    let mut heard = Heard::default();
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        heard.time += 1;
        match words.as_slice() {
            ["object", ty, at, size] => {
                heard.truth.objects.insert(number(at), ((*ty).to_owned(), size.parse().unwrap()));
            }
            ["buffer", at, size] => {
                heard.truth.buffers.insert(number(at), size.parse().unwrap());
            }
            ["pool", at, size] => {
                heard.truth.pools.insert(number(at), size.parse().unwrap());
            }
            ["links" | "uses", function, ty] => {
                heard.truth.in_pools.insert((*function).to_owned(), (*ty).to_owned());
            }
            ["thread", name, at, size] => {
                heard.truth.thread_locals.insert((*name).to_owned(), (number(at), size.parse().unwrap()));
            }
            ["block", at, size] => heard.memory(MemoryEventKind::Allocated, number(at), size.parse().ok()),
            ["release", at] => {
                heard.truth.objects.remove(&number(at));
                heard.truth.buffers.remove(&number(at));
                heard.memory(MemoryEventKind::Freed, number(at), None);
            }
            ["part", ty, path, offset, size] => {
                let part = ((*path).to_owned(), offset.parse().unwrap(), size.parse().unwrap());
                heard.truth.parts.entry((*ty).to_owned()).or_default().push(part);
            }
            ["map", range, ..] => {
                let (start, end) = range.split_once('-').unwrap();
                heard.maps.push((number(start), number(end)));
            }
            ["stack", at] => {
                let here = number(at);
                let (start, end) =
                    heard.maps.iter().copied().find(|(start, end)| (*start..*end).contains(&here)).unwrap();
                heard.stacks.push(StackRange { thread: ThreadId(0), start, end });
            }
            ["enter"] => heard.entered.push((heard.time, heard.truth.clone())),
            _ => {}
        }
    }
    heard
}
