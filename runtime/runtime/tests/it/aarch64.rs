//! The same tests for AArch64, cross-built and run under qemu; and the C headers with the cross compiler.
#![cfg(target_arch = "x86_64")]

use std::path::Path;
use std::process::Command;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const QEMU: [&str; 3] = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"];

/// `make built` builds these tests for the other machine, too.
#[test]
fn values_clock_and_tracer_on_aarch64() {
    for name in ["imv", "clock", "trace", "imv_torture"] {
        let mut test = Command::new(QEMU[0]);
        test.args(&QEMU[1..]).arg(lineup_fixtures::test_program(TARGET, name));
        test.current_dir(env!("CARGO_MANIFEST_DIR"));
        // An emulator's cores are not a processor's: a long torture would show nothing about a processor.
        test.env("LINEUP_TORTURE_SECONDS", "0.1");
        // An emulator does not support every way to write code either: a missing one is skipped.
        test.env_remove("CI");
        let output = test.output().expect("apt install qemu-user");
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "needs libc6-dev-arm64-cross\n{name}\n{}", said.concat());
    }
}

#[test]
fn c_headers_on_aarch64() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let archive = lineup_fixtures::for_target(TARGET, "liblineup_runtime.a");
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
