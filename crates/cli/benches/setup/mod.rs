//! What benches run: the optimised command, Debian's cloud kernel, and the same kernel's vmlinux with DWARF.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds the optimised command, with the recorder beside it.
pub(crate) fn release_build() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(workspace()).args([
        "build",
        "--quiet",
        "--release",
        "-p",
        "lineup",
        "-p",
        "lineup-plugin",
        "-p",
        "lineup-engine",
    ]);
    assert!(cargo.status().expect("cargo").success(), "the build failed");
    // This very executable lies in the folder `deps` of the release profile.
    let own = std::env::current_exe().expect("this executable");
    let command = own.ancestors().map(|folder| folder.join("lineup")).find(|file| file.is_file());
    command.expect("the lineup command")
}

/// The cloud kernel's image, as distributed: the one that LINEUP_BENCH_KERNEL names, or Debian's from apt.
pub(crate) fn kernel() -> PathBuf {
    if let Some(file) = std::env::var_os("LINEUP_BENCH_KERNEL") {
        return file.into();
    }
    let mut fetch = Command::new(workspace().join("scripts/kernel-fetch"));
    PathBuf::from(shown(fetch.arg("cloud").stderr(Stdio::inherit())).trim())
}

/// That kernel's vmlinux with DWARF: the one that LINEUP_BENCH_VMLINUX names, or that of Debian's debug package, which
/// apt brings once (282 MB).
#[allow(dead_code, reason = "not every bench needs it")]
pub(crate) fn vmlinux() -> PathBuf {
    if let Some(file) = std::env::var_os("LINEUP_BENCH_VMLINUX") {
        return file.into();
    }
    let image = kernel();
    let name = image.file_name().and_then(|name| name.to_str()).expect("a UTF-8 name");
    let release = name.strip_prefix("vmlinuz-").expect("an image named as Debian names it");
    let cache = workspace().join("target/bench-input");
    fs::create_dir_all(&cache).expect("a cache folder");
    let vmlinux = cache.join(format!("vmlinux-{release}"));
    if vmlinux.is_file() {
        return vmlinux;
    }
    let package = format!("linux-image-{release}-dbg");
    println!("fetching {package}");
    // A run that is interrupted leaves nothing that the next one would take for a kernel.
    let folder = tempfile::tempdir_in(&cache).expect("a folder to unpack in");
    shown(Command::new("apt-get").args(["download", "-qq", &package]).current_dir(&folder));
    let mut entries = fs::read_dir(&folder).expect("a readable folder").flatten();
    let archive = entries.next().expect("the package that apt fetched").path();
    let unpack =
        "dpkg-deb --fsys-tarfile \"$0\" | tar -x --strip-components=5 --wildcards '*/debug/boot/vmlinux-*'";
    shown(Command::new("sh").args(["-c", unpack]).arg(&archive).current_dir(&folder));
    fs::rename(folder.path().join(format!("vmlinux-{release}")), &vmlinux).expect("a kernel in the package");
    vmlinux
}

fn workspace() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).expect("the workspace")
}

/// What a command prints; it must succeed.
pub(crate) fn shown(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
