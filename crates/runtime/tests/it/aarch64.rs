//! The same tests for AArch64, cross-built and run under qemu; and the C headers with the cross compiler.
#![cfg(target_arch = "x86_64")]

use std::path::Path;
use std::process::Command;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const QEMU: [&str; 3] = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"];

fn cargo(arguments: &[&str]) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aarch64");
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["-p", "lineup-runtime", "--target", TARGET, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", QEMU.join(" "))
        // An emulator's cores are not a processor's: what a long torture would show is not what would happen there.
        .env("LINEUP_TORTURE_SECONDS", "0.1")
        // Nor can code be written in every way there: a way that is missing is skipped.
        .env_remove("CI")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "needs {TARGET} of rustup, and gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn values_clock_and_tracer_on_aarch64() {
    cargo(&["test", "--test", "imv", "--test", "clock", "--test", "trace", "--test", "imv_torture"]);
}

#[test]
fn c_headers_on_aarch64() {
    cargo(&["build"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let archive =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("aarch64").join(TARGET).join("debug/liblineup_runtime.a");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("sizes");
    for level in ["-O0", "-O2"] {
        let mut build = Command::new("aarch64-linux-gnu-gcc");
        build.args([level, "-Wall", "-Wextra", "-Werror", "-I"]).arg(root.join("include"));
        build
            .arg(root.join("tests/it/c/imv_sizes.c"))
            .arg(&archive)
            .args(["-lpthread", "-ldl", "-lm", "-o"])
            .arg(&program);
        let output = build.output().expect("apt install gcc-aarch64-linux-gnu");
        assert!(output.status.success(), "{level}: {}", String::from_utf8_lossy(&output.stderr));
        let output =
            Command::new(QEMU[0]).args(&QEMU[1..]).arg(&program).output().expect("apt install qemu-user");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("ok: patching through"),
            "{level}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
