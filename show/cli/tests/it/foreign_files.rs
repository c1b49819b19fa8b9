//! Every command that opens another person's file refuses files that are not regular, at once. It never asks for more
//! memory than the file's size justifies.

use flate2::{Compress, Compression, FlushCompress};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use wait4::Wait4;

/// The memory that a command may take: far less than the files here claim to need.
const MEMORY_BYTES: u64 = 3 << 30;
const SECONDS: &str = "60";

/// Every command with a place for a foreign file, written `%`.
const COMMANDS: [&[&str]; 12] = [
    &["layout", "%"],
    &["layout", "--base", "%", "%"],
    &["layout", "--check", "%", "SHAPES"],
    &["kernel", "%"],
    &["explain", "%"],
    &["advise", "%"],
    &["trace", "report", "%"],
    &["trace", "explain", "%"],
    &["sched", "--scenario", "%"],
    &["compare", "--from-table", "%"],
    &["measure", "--derive", "x", "--from", "%"],
    &["measure", "--derive", "x", "x=@%"],
];

/// Runs `lineup` with little memory, and kills it when it hangs.
fn lineup(arguments: &[String]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["--signal", "KILL", SECONDS, "prlimit", &format!("--as={MEMORY_BYTES}")]);
    command.arg(env!("CARGO_BIN_EXE_lineup")).args(arguments);
    command.output().expect("timeout and prlimit, of coreutils and util-linux")
}

fn refusal(arguments: &[String]) -> String {
    let output = lineup(arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {} {message}", output.status);
    assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    message
}

/// Each command is given the path where it has `%`, and an object with debug information where it has `SHAPES`.
fn refused_by_all(path: &Path, why: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let shapes = folder.path().join("shapes.o");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/shapes.c");
    let compiled = Command::new("gcc").args(["-g", "-c", source, "-o"]).arg(&shapes).status();
    assert!(compiled.expect("gcc").success());
    let [path_text, shapes] = [path, &shapes].map(|path| path.to_str().expect("UTF-8"));
    for command in COMMANDS {
        let given: Vec<String> =
            command.iter().map(|word| word.replace('%', path_text).replace("SHAPES", shapes)).collect();
        let message = refusal(&given);
        assert!(message.contains(why) && message.contains(path.to_str().unwrap()), "{given:?}: {message}");
    }
}

fn pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo, of coreutils");
    assert!(made.success());
    path
}

#[test]
fn a_device_is_refused() {
    refused_by_all(Path::new("/dev/zero"), "a device, not a regular file");
}

#[test]
fn a_pipe_is_refused_without_waiting_for_its_other_end() {
    let folder = tempfile::tempdir().expect("a folder");
    refused_by_all(&pipe(folder.path()), "a pipe, not a regular file");
}

#[test]
fn a_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    refused_by_all(folder.path(), "a folder, not a regular file");
}

/// A file that claims terabytes and holds nothing costs no memory.
#[test]
fn a_sparse_file_of_terabytes_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sparse");
    // Like the Image of a 64-bit Arm kernel.
    let mut start = vec![0; 64];
    start[0x38..0x3c].copy_from_slice(b"ARM\x64");
    fs::write(&path, start).expect("a file");
    File::options().write(true).open(&path).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
    for command in ["kernel", "layout", "explain", "advise"] {
        refusal(&[command.to_owned(), path.to_str().unwrap().to_owned()]);
    }
}

/// The unpacked size of every section below: zeros.
const UNPACKED_BYTES: u64 = 1 << 30;

/// A zlib stream of one megabyte: the same small block over and over.
fn zlib() -> Vec<u8> {
    let zeros = vec![0; 1 << 20];
    let mut block = Vec::with_capacity(4096);
    Compress::new(Compression::best(), false)
        .compress_vec(&zeros, &mut block, FlushCompress::Sync)
        .expect("zeros are packed");
    let blocks = (UNPACKED_BYTES >> 20) as usize;
    let sum = u32::try_from(UNPACKED_BYTES % 65521).expect("below the divisor") << 16 | 1;
    [&[0x78, 0xda][..], &block.repeat(blocks), &[1, 0, 0, 0xff, 0xff], &sum.to_be_bytes()].concat()
}

/// A zstd frame of blocks that repeat a byte, each of which stands for 128 KiB.
fn zstd() -> Vec<u8> {
    let count = UNPACKED_BYTES >> 17;
    let block = |number: u64| {
        let is_last = u32::from(number + 1 == count);
        let head = is_last | 1 << 1 | (1 << 17) << 3;
        [&head.to_le_bytes()[..3], &[0]].concat()
    };
    let blocks: Vec<u8> = (0..count).flat_map(block).collect();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38][..], &blocks].concat()
}

/// An ELF file for x86-64 with four sections of debug information, each with this stream and this claimed size in
/// bytes.
fn compressed(algorithm: u32, stream: &[u8], claimed: u64) -> Vec<u8> {
    const NAMES: [&str; 6] = ["", ".debug_info", ".debug_abbrev", ".debug_str", ".debug_line", ".shstrtab"];
    let head =
        [&u64::from(algorithm).to_le_bytes()[..], &claimed.to_le_bytes(), &1_u64.to_le_bytes()].concat();
    let names: String = NAMES.map(|name| format!("{name}\0")).concat();
    let mut file = vec![0; 64];
    let mut headers = Vec::new();
    for (index, name) in NAMES.into_iter().enumerate() {
        let bytes = match index {
            0 => Vec::new(),
            5 => names.clone().into_bytes(),
            _ => [&head, stream].concat(),
        };
        let name = names.find(&format!("\0{name}\0")).map_or(0, |at| at as u32 + 1) * u32::from(index > 0);
        let (kind, flags) = match index {
            0 => (0_u32, 0_u64),
            5 => (3, 0),
            _ => (1, 0x800),
        };
        headers.extend(name.to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for value in [flags, 0, file.len() as u64, bytes.len() as u64, 0, 1, 0] {
            headers.extend(value.to_le_bytes());
        }
        file.extend(bytes);
    }
    let table = file.len() as u64;
    file.extend(headers);
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    // An executable, x86-64, version 1.
    file[16..24].copy_from_slice(&[2, 0, 62, 0, 1, 0, 0, 0]);
    file[40..48].copy_from_slice(&table.to_le_bytes());
    file[52..64].copy_from_slice(&[64, 0, 0, 0, 0, 0, 64, 0, 6, 0, 5, 0]);
    file
}

/// Four sections that really unpack to 4 GiB, whether their headers say so or say little.
#[test]
fn sections_that_unpack_to_gigabytes_are_refused_before_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bomb");
    for (algorithm, stream) in [(1, zlib()), (2, zstd())] {
        for claimed in [UNPACKED_BYTES, 8 << 20] {
            fs::write(&path, compressed(algorithm, &stream, claimed)).expect("a file");
            let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
            lineup.arg("layout").arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
            let ended = lineup.spawn().and_then(|mut lineup| lineup.wait4()).expect("lineup runs");
            assert_eq!(ended.status.code(), Some(2), "{algorithm} {claimed}");
            assert!(ended.rusage.maxrss < 512 << 20, "{algorithm} {claimed}: {} bytes", ended.rusage.maxrss);
        }
    }
}
