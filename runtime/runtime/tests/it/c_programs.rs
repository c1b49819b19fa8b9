//! C and C++ programs against the headers: compiled here, linked with the shared library or the archive, run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder where cargo put the shared library and the archive: that of this test's own binary.
fn library_folder() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().unwrap().to_path_buf();
    assert!(folder.join("liblineup_runtime.so").exists(), "no liblineup_runtime.so in {}", folder.display());
    folder
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/c").join(name)
}

struct Build {
    folder: tempfile::TempDir,
}

impl Build {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Runs `compiler arguments -o NAME sources`, linked with the shared runtime, and returns the path of the result.
    fn compile(
        &self,
        compiler: &str,
        package: &str,
        arguments: &[&str],
        sources: &[&str],
        name: &str,
    ) -> PathBuf {
        let out = self.folder.path().join(name);
        let folder = library_folder();
        let mut command = Command::new(compiler);
        command.args(arguments).args(["-Wall", "-Wextra", "-Werror", "-I"]);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
        command.args(sources.iter().map(|name| source(name))).arg("-o").arg(&out);
        command.arg("-L").arg(&folder).args(["-llineup_runtime", "-lpthread", "-ldl"]);
        command.arg(format!("-Wl,-rpath,{}", folder.display()));
        let output =
            command.output().unwrap_or_else(|error| panic!("{compiler}: {error}; apt install {package}"));
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
        out
    }
}

/// The program as a command that finds the library by its run path: cargo's own search path may name an older one.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// A program that hangs is killed, also one that blocks every other signal.
fn run(program: &Path, arguments: &[&str]) -> String {
    let mut limited = command(Path::new("timeout"));
    let output = limited.args(["--signal", "KILL", "120"]).arg(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{} {arguments:?}: {}\n{text}{}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

const COMPILERS: [(&str, &str, &[&str]); 4] = [
    ("gcc", "gcc", &[]),
    ("clang", "clang", &[]),
    ("g++", "g++", &["-x", "c++", "-std=gnu++17"]),
    ("clang++", "clang", &["-x", "c++", "-std=gnu++17"]),
];

#[test]
fn every_size_in_c_and_cpp_with_two_compilers_at_two_levels() {
    let build = Build::new();
    for (compiler, package, language) in COMPILERS {
        for level in ["-O0", "-O2"] {
            let arguments = [&[level], language].concat();
            let program = build.compile(compiler, package, &arguments, &["imv_sizes.c"], "sizes");
            let text = run(&program, &[]);
            assert!(
                text.contains("ok: patching through") && text.contains(" 0 plain"),
                "{compiler} {level}: {text}"
            );
        }
    }
}

#[test]
fn the_archive_serves_as_well_as_the_shared_library() {
    let build = Build::new();
    let archive = library_folder().join("liblineup_runtime.a");
    let out = build.folder.path().join("static");
    let mut command = Command::new("gcc");
    command.args(["-O2", "-ffunction-sections", "-Wl,--gc-sections", "-I"]);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
    command.arg(source("imv_sizes.c")).arg(archive).args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&out);
    let output = command.output().expect("gcc; apt install gcc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(run(&out, &[]).contains(" 0 plain, in 1 images"));
}

#[test]
fn sites_in_merged_inline_functions_and_templates() {
    let build = Build::new();
    for level in ["-O0", "-O2"] {
        let sources = ["imv_inline_a.cpp", "imv_inline_b.cpp"];
        let program = build.compile("g++", "g++", &[level], &sources, "inline");
        assert_eq!(run(&program, &[]), "ok\n");
    }
}

#[test]
fn shared_objects_come_and_go_while_a_thread_sets_what_they_import() {
    let build = Build::new();
    let library = build.compile("gcc", "gcc", &["-O2", "-shared", "-fPIC"], &["imv_library.c"], "library.so");
    let program = build.compile("gcc", "gcc", &["-O2", "-rdynamic"], &["imv_program.c"], "program");
    let rounds = std::env::var("LINEUP_TORTURE_SECONDS").map_or(200, |text| text.parse().unwrap_or(1) * 300);
    let text = run(&program, &[library.to_str().unwrap(), &rounds.to_string()]);
    assert_eq!(text, format!("ok: {rounds} rounds\n"));
}

/// The same object, run under filters that forbid one thing after another: answers stay right, and the status gives the
/// reason.
#[test]
fn where_patching_is_forbidden_values_are_read_from_variables() {
    let build = Build::new();
    let arguments = ["-O2", "-shared", "-fPIC", "-Dmain=run"];
    let object = build.compile("gcc", "gcc", &arguments, &["imv_sizes.c"], "sizes.so");
    let program = build.compile("gcc", "gcc", &["-O2", "-Wl,--as-needed"], &["imv_forbidden.c"], "forbidden");
    let under = |what: &str| run(&program, &[what, object.to_str().unwrap()]);
    assert!(under("mem").contains("patching through Swap"));
    let refused = under("write");
    assert!(
        refused.contains("reading ordinary variables: every way to write")
            && refused.contains("; 0 sites patched")
    );
    assert!(under("barrier").contains("reading ordinary variables: membarrier SYNC_CORE is refused"));
}

/// For every number of writes that the system lets through before it refuses: no set returns success and is not read.
#[test]
fn sites_that_were_switched_on_in_part_are_never_skipped() {
    let build = Build::new();
    let arguments = ["-O2", "-shared", "-fPIC"];
    let library = build.compile("gcc", "gcc", &arguments, &["imv_partial_library.c"], "partial.so");
    let program = build.compile("gcc", "gcc", &["-O2", "-rdynamic"], &["imv_partial.c"], "partial");
    for mode in ["0", "1"] {
        let text = run(&program, &[library.to_str().unwrap(), mode]);
        let writes: u32 = text.trim_end_matches(" writes\n").parse().unwrap();
        assert!(writes >= 5, "each page is written at least once: {text}");
    }
}

/// Signal handlers and fork handlers that set values while the runtime holds its lock for a fork.
#[test]
fn values_may_be_set_during_a_fork() {
    let build = Build::new();
    let arguments = ["-O2", "-shared", "-fPIC"];
    let library = build.compile("gcc", "gcc", &arguments, &["imv_partial_library.c"], "forked.so");
    let program = build.compile("gcc", "gcc", &["-O2", "-Wl,--as-needed"], &["imv_fork.c"], "fork");
    for path in ["0", "1", "2"] {
        assert_eq!(run(&program, &[library.to_str().unwrap(), path]), "ok\n", "way to write {path}");
    }
}

/// A library hands traps on to us, and we to it: each foreign trap still reaches the handler that was there first.
#[test]
fn handlers_that_chain_each_other_do_not_recurse() {
    let build = Build::new();
    for level in ["-O0", "-O2"] {
        let program = build.compile("gcc", "gcc", &[level], &["imv_chained_trap.c"], "chained");
        assert_eq!(run(&program, &[]), "ok\n", "{level}");
    }
}

#[test]
fn a_cancelled_thread_leaves_nothing_locked() {
    let build = Build::new();
    let program = build.compile("gcc", "gcc", &["-O2"], &["imv_cancel.c"], "cancel");
    let path = build.folder.path().join("cancel.trace");
    assert_eq!(run(&program, &[path.to_str().unwrap()]), "ok\n");
}

/// Killed in the middle of an event, at a moment of chance: every whole record is read, losses add up.
#[test]
fn a_killed_writer_leaves_a_readable_file_with_exact_losses() {
    use std::io::Read;
    let build = Build::new();
    let program = build.compile("gcc", "gcc", &["-O2"], &["trace_kill.c"], "kill");
    let path = build.folder.path().join("killed.trace");
    for round in 0..20 {
        let mut child = command(&program).arg(&path).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        std::thread::sleep(std::time::Duration::from_micros(137 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let trace = lineup_trace::Trace::parse(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(trace.threads.len(), 2);
        for thread in &trace.threads {
            let first = thread.events.first().unwrap();
            let last = thread.events.last().unwrap();
            assert!(thread.events.len() >= 50 && thread.losses.in_progress <= 1);
            assert_eq!(thread.losses.overwritten + thread.events.len() as u64, last.number + 1);
            assert_eq!(first.number, thread.losses.overwritten);
            let marks = thread.events.iter().filter(|event| event.kind == lineup_trace::Kind::Mark);
            assert!(marks.clone().all(|event| event.argument == event.number));
            assert!(marks.count() >= thread.events.len() / 2);
        }
    }
}

#[test]
fn exec_in_a_patched_program_starts_afresh() {
    let build = Build::new();
    let program = build.compile("gcc", "gcc", &["-O2"], &["imv_exec.c"], "exec");
    for _ in 0..20 {
        assert_eq!(run(&program, &[]), "first 20\nsecond 10 30\n");
    }
}

#[test]
fn cpp_regions_locks_and_signals() {
    use lineup_trace::Kind;
    let build = Build::new();
    for compiler in ["g++", "clang++"] {
        let program =
            build.compile(compiler, compiler, &["-O2", "-std=gnu++17"], &["trace_locks.cpp"], "locks");
        let path = build.folder.path().join("locks.trace");
        let given_up: usize = run(&program, &[path.to_str().unwrap()]).trim().parse().unwrap();
        let trace = lineup_trace::Trace::parse(&std::fs::read(&path).unwrap()).unwrap();
        let index = |text: &str| trace.names.iter().find(|name| name.text == text).unwrap().index;
        let rounds: Vec<u64> =
            trace.events_of(index("round_number"), Kind::Mark).map(|e| e.argument).collect();
        assert_eq!(rounds, (1..12).collect::<Vec<_>>());
        let gave_up: Vec<_> = trace.events_of(index("gate"), Kind::LockGivenUp).collect();
        assert_eq!(gave_up.len(), given_up);
        let work: Vec<_> = trace.events_of(index("work"), Kind::Region).collect();
        assert_eq!(work.len(), 12);
        let assigned = work.iter().filter(|event| event.arm.gives_up_locks()).count();
        assert!(given_up <= assigned);
        assert_eq!(trace.events_of(index("gate"), Kind::Lock).count(), 11 - given_up);
        assert_eq!(trace.events_of(index("spinner"), Kind::Lock).count(), 11);
        assert_eq!(trace.losses(), Default::default());
    }
}
