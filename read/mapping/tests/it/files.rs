//! Bytes of small and large files are the file's, also after they were given back.

use lineup_mapping::FileBytes;
use std::fs::File;
use std::io::Write;

/// A file whose every byte encodes its position.
fn numbered(len_bytes: usize) -> (tempfile::TempDir, std::path::PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("numbered");
    let bytes: Vec<u8> = (0..len_bytes).map(|at| (at % 251) as u8).collect();
    File::create(&path).expect("a file").write_all(&bytes).expect("written");
    (folder, path, bytes)
}

/// Resident pages of this process that belong to a file, in bytes.
fn resident_file_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find(|line| line.starts_with("RssFile:")).expect("a kernel since 4.5");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
}

#[test]
fn a_small_file_is_read_whole() {
    let (_folder, path, expected) = numbered(70_000);
    let bytes = FileBytes::open(&path).expect("a readable file");
    bytes.release(0..70_000);
    assert_eq!(bytes.as_ref(), expected);
}

#[test]
fn a_large_file_gives_its_memory_back_and_keeps_its_bytes() {
    let len = (64 << 20) + 12_345;
    let (_folder, path, expected) = numbered(len);
    let bytes = FileBytes::open(&path).expect("a readable file");
    assert_eq!(bytes.as_ref(), expected);
    let before = resident_file_bytes();
    bytes.release(1..len + 99);
    let given_back = before.saturating_sub(resident_file_bytes());
    assert!(given_back > 60 << 20, "{given_back} bytes were given back");
    assert_eq!(bytes.as_ref(), expected);
}

#[test]
fn a_missing_file_is_an_error() {
    let error = FileBytes::open("/nonexistent/file".as_ref()).expect_err("no such file");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn what_is_no_regular_file_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let others =
        [("device", "/dev/zero".as_ref()), ("folder", folder.path()), ("pipe", &pipe), ("socket", &socket)];
    for (what, path) in others {
        let errors = [FileBytes::open(path).unwrap_err(), lineup_mapping::read_text(path).unwrap_err()];
        for error in errors {
            assert!(error.to_string().starts_with(&format!("it is a {what}, not a regular file")), "{error}");
        }
    }
}

#[test]
fn text_is_text() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("text");
    std::fs::write(&path, "größe\n").expect("a file");
    assert_eq!(lineup_mapping::read_text(&path).expect("text"), "größe\n");
    std::fs::write(&path, [0xff, 0xfe]).expect("a file");
    assert!(lineup_mapping::read_text(&path).unwrap_err().to_string().contains("not UTF-8"));
}
