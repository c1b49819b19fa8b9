//! What `install` puts in place serves a program by pkg-config and by CMake.

use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = "#include <lineup/clock.h>\n#include <lineup/trace.h>\n\
DEFINE_IMV(int, limit) = 10;\nLINEUP_REGION(parse);\n\
int main(void)\n{\n\tlineup_clock_start();\n\tLINEUP_BEGIN(parse);\n\tLINEUP_END(parse);\n\
\treturn imv_set(limit, 20) != 0 || imv_read(limit) != 20 || lineup_clock_ns() == 0;\n}\n";

const PROJECT: &str = "cmake_minimum_required(VERSION 3.18)\nproject(app C)\nfind_package(lineup-runtime REQUIRED)\n\
add_executable(app app.c)\ntarget_link_libraries(app lineup::runtime)\n\
add_executable(app_static app.c)\ntarget_link_libraries(app_static lineup::runtime_static)\n";

fn run(command: &mut Command, package: &str) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; apt install {package}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A prefix with the library that cargo left beside this test in the place of a release build's.
fn install(folder: &Path) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let release = folder.join("target/release");
    std::fs::create_dir_all(&release).unwrap();
    for name in ["liblineup_runtime.so", "liblineup_runtime.a"] {
        std::fs::copy(own.parent().unwrap().join(name), release.join(name)).unwrap();
    }
    let prefix = folder.join("prefix");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("install");
    run(Command::new(script).arg(&prefix).env("CARGO_TARGET_DIR", folder.join("target")), "coreutils");
    prefix
}

fn runs(program: &Path, prefix: &Path) {
    run(Command::new(program).env("LD_LIBRARY_PATH", prefix.join("lib")), "libc6");
}

#[test]
fn programs_build_by_pkg_config_and_by_cmake() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = install(folder.path());
    let source = folder.path().join("app.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let mut ask = Command::new("pkg-config");
    ask.args(["--cflags", "--libs", "lineup-runtime"]).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = run(&mut ask, "pkg-config");
    let program = folder.path().join("by-pkg-config");
    run(Command::new("gcc").arg(&source).arg("-o").arg(&program).args(flags.split_whitespace()), "gcc");
    runs(&program, &prefix);

    std::fs::write(folder.path().join("CMakeLists.txt"), PROJECT).unwrap();
    let built = folder.path().join("built");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(folder.path()).arg("-B").arg(&built);
    run(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())), "cmake");
    run(Command::new("cmake").arg("--build").arg(&built), "cmake");
    runs(&built.join("app"), &prefix);
    runs(&built.join("app_static"), &prefix);
}
