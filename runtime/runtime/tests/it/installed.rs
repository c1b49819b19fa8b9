//! The files that `install` puts in place serve a program by pkg-config and by CMake.

use std::path::{Path, PathBuf};
use std::process::Command;

const PROJECT: &str = "cmake_minimum_required(VERSION 3.18)\nproject(app C CXX)\nfind_package(lineup-runtime REQUIRED)\n\
add_executable(app app.c)\ntarget_link_libraries(app lineup::runtime)\n\
add_executable(app_static app.c)\ntarget_link_libraries(app_static lineup::runtime_static)\n\
add_executable(app_cpp app.cpp)\ntarget_link_libraries(app_cpp lineup::runtime)\n";

/// The example in `language` of the page that users read.
fn example(language: &str) -> &'static str {
    let page = include_str!("../../../../docs/runtime.md");
    let (_, rest) = page.split_once(&format!("\n```{language}\n")).expect("an example");
    rest.split_once("\n```\n").expect("its end").0
}

fn run(command: &mut Command, package: &str) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; apt install {package}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A prefix with the library that cargo left next to this test in the place of a release build's.
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

/// A package of a user's own, with the versions that this workspace is locked to.
#[test]
fn the_rust_example_of_the_page_builds_by_cargo_and_runs() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/main.rs"), example("rust")).unwrap();
    std::fs::copy(own.join("../../Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    let manifest = format!(
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
         lineup-runtime = {{ path = {own:?} }}\n"
    );
    std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "--target-dir"]).arg(env!("CARGO_TARGET_TMPDIR"));
    let printed = run(cargo.current_dir(folder.path()), "cargo");
    assert!(printed.ends_with("ns on the clock\n"), "{printed}");
    let trace = std::fs::read(folder.path().join("run.trace")).unwrap();
    let trace = lineup_trace::Trace::parse(&trace).unwrap();
    assert_eq!(trace.region("parse").map(|region| trace.histogram(region.index, 0).total()).unwrap(), 2);
}

fn runs(program: &Path, prefix: &Path) {
    let mut command = Command::new(program);
    command.current_dir(prefix).env("LD_LIBRARY_PATH", prefix.join("lib"));
    run(&mut command, "libc6");
}

#[test]
fn the_examples_of_the_page_build_by_pkg_config_and_by_cmake_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = install(folder.path());
    let mut ask = Command::new("pkg-config");
    ask.args(["--cflags", "--libs", "lineup-runtime"]).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = run(&mut ask, "pkg-config");
    for (language, compiler) in [("c", "gcc"), ("cpp", "g++")] {
        let source = folder.path().join(format!("app.{language}"));
        std::fs::write(&source, example(language)).unwrap();
        let program = folder.path().join(format!("{language}-by-pkg-config"));
        let mut compile = Command::new(compiler);
        compile.args(["-Wall", "-Wextra", "-Werror"]).arg(&source).arg("-o").arg(&program);
        run(compile.args(flags.split_whitespace()), compiler);
        runs(&program, &prefix);
    }

    std::fs::write(folder.path().join("CMakeLists.txt"), PROJECT).unwrap();
    let built = folder.path().join("built");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(folder.path()).arg("-B").arg(&built);
    run(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())), "cmake");
    run(Command::new("cmake").arg("--build").arg(&built), "cmake");
    runs(&built.join("app"), &prefix);
    runs(&built.join("app_static"), &prefix);
    runs(&built.join("app_cpp"), &prefix);
}
