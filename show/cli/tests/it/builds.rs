//! A study's treatment of the user's folder and its build. The folder stays unchanged however the build was configured,
//! and a build that breaks by itself is never taken for an answer of the compiler.

use crate::installed;
use crate::schema;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Two hot members with two lines between them: every call of `touch` needs two lines, and one would do.
const RECORD_H: &str =
    "struct record {\n\tlong first;\n\tchar cold[120];\n\tlong second;\n};\nlong touch(struct record *r);\n";

const MAIN_C: &str = r#"
#include <stdio.h>
#include "record.h"

static struct record records[64] __attribute__((aligned(64)));

__attribute__((noinline)) long touch(struct record *r)
{
	r->first += 3;
	r->second += r->first;
	return r->second;
}

int main(void)
{
	long sum = 0;
	for (int i = 0; i < 6400; i++)
		sum += touch(&records[i % 64]);
	printf("%ld\n", sum);
	return 0;
}
"#;

/// A compiler that does something else for candidates: sources that differ from those at the start.
fn compiler(for_candidates: &str) -> String {
    format!("#!/bin/sh\ncmp -s record.h unedited.txt || {{ {for_candidates}; }}\nexec gcc \"$@\"\n")
}

/// A folder with the program, below a folder of its own.
struct Program {
    root: tempfile::TempDir,
}

impl Program {
    fn new() -> Program {
        let program = Program { root: tempfile::tempdir().expect("a folder") };
        fs::create_dir(program.source()).expect("a folder");
        program.write("record.h", RECORD_H).write("main.c", MAIN_C);
        program
    }

    /// With a compiler for which candidates are special.
    fn with_compiler(for_candidates: &str) -> Program {
        let program = Program::new();
        program.write("unedited.txt", RECORD_H).write("cc.sh", &compiler(for_candidates));
        fs::set_permissions(program.source().join("cc.sh"), PermissionsExt::from_mode(0o755)).expect("sets");
        program
    }

    fn source(&self) -> PathBuf {
        fs::canonicalize(self.root.path()).expect("a path").join("a program")
    }

    fn out(&self) -> PathBuf {
        self.root.path().join("out")
    }

    fn write(&self, name: &str, text: &str) -> &Program {
        fs::write(self.source().join(name), text).expect("a file");
        self
    }

    fn run(&self, line: &str) -> &Program {
        let status =
            Command::new("sh").args(["-c", line]).current_dir(self.source()).output().expect("sh runs");
        assert!(status.status.success(), "{line}: {}", String::from_utf8_lossy(&status.stderr));
        self
    }

    fn command(&self, build: &str, program: &str) -> Command {
        let mut lineup = installed::lineup();
        lineup.args([
            "study",
            "--json",
            "--region",
            "touch",
            "--calls",
            "100",
            "--max-time",
            "1",
            "--margin",
            "1000%",
            "--build",
            build,
        ]);
        lineup.arg("--source").arg(self.source()).arg("--out").arg(self.out()).arg("--").arg(program);
        lineup
    }

    /// Studies the program; its folder must stay unchanged.
    fn study(&self, build: &str, program: &str) -> Value {
        report(self.undisturbed(&mut self.command(build, program)))
    }

    fn undisturbed(&self, command: &mut Command) -> Output {
        let before = state(&self.source());
        let output = command.output().expect("lineup runs");
        assert_eq!(state(&self.source()), before, "the user's folder was written");
        output
    }
}

fn report(output: Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    schema::checked(&output.stdout)
}

/// Every file below a folder, with bytes and time of modification, so that even a `touch` is seen.
fn state(folder: &Path) -> BTreeMap<PathBuf, (i64, i64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let metadata = fs::symlink_metadata(&path).expect("a file");
        let bytes = match (metadata.is_dir(), metadata.is_file()) {
            (true, _) => {
                all.extend(state(&path));
                Vec::new()
            }
            (_, true) => fs::read(&path).expect("a file"),
            _ => Vec::new(),
        };
        if !metadata.is_dir() {
            all.insert(path, (metadata.mtime(), metadata.mtime_nsec(), bytes));
        }
    }
    all
}

fn is_reordered(report: &Value) -> bool {
    let proposals = report["proposals"].as_array().expect("proposals");
    proposals.iter().any(|proposal| proposal["status"] == "in-patch")
}

fn remarks(report: &Value) -> Vec<String> {
    let setting = report["setting"].as_array().expect("a setting");
    let copies = setting.iter().filter(|fact| fact["name"] == "copies");
    copies.map(|fact| fact["value"].as_str().expect("words").to_owned()).collect()
}

/// The study ended as an error, without a report and without a word about the candidate.
fn broke(program: &Program, output: &Output, because: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(because), "{said}");
    assert!(!program.out().join("report.html").exists() && !program.out().join("fix.patch").exists());
}

#[test]
fn a_compiler_that_is_killed_ends_the_study() {
    for (line, because) in
        [("cc() { ./cc.sh \"$@\"; }; cc -g -O2 main.c -o walk", "SIGKILL"), ("make", "Killed")]
    {
        let program = Program::with_compiler("kill -KILL $$");
        program.write("Makefile", "walk: main.c record.h\n\t./cc.sh -g -O2 main.c -o walk\n");
        broke(&program, &program.undisturbed(&mut program.command(line, "walk")), because);
    }
}

#[test]
fn a_full_disk_ends_the_study() {
    let program = Program::with_compiler("ulimit -f 1");
    let build = "./cc.sh -g -O2 main.c -o walk";
    broke(&program, &program.undisturbed(&mut program.command(build, "walk")), "File size limit exceeded");
}

#[test]
fn a_build_that_cannot_start_a_command_ends_the_study() {
    let program = Program::with_compiler("exec no-such-compiler");
    let build = "./cc.sh -g -O2 main.c -o walk";
    broke(&program, &program.undisturbed(&mut program.command(build, "walk")), "could not be run");
}

#[test]
fn sources_that_no_longer_build_by_themselves_are_not_the_candidates_fault() {
    // From the first candidate on the build fails, for any sources.
    let program = Program::with_compiler("touch broken");
    let build = "test ! -e broken && ./cc.sh -g -O2 main.c -o walk && test ! -e broken || { echo 'x.c: error: no'; exit 1; }";
    broke(&program, &program.undisturbed(&mut program.command(build, "walk")), "no longer build");
}

#[test]
fn a_signal_ends_the_study_and_the_compiler() {
    for signal in ["INT", "TERM"] {
        let program =
            Program::with_compiler("echo $$ > \"$MARK.new\"; mv \"$MARK.new\" \"$MARK\"; exec sleep 600");
        let mark = program.root.path().join("mark");
        let mut command = program.command("./cc.sh -g -O2 main.c -o walk", "walk");
        let lineup = command
            .env("MARK", &mark)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("lineup runs");
        let compiler = wait_for(&mark);
        kill(signal, lineup.id());
        let output = ended(lineup);
        broke(&program, &output, &format!("interrupted by SIG{signal}"));
        assert!(!is_alive(compiler.trim()), "the compiler stayed behind");
    }
}

fn wait_for(mark: &Path) -> String {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !mark.exists() {
        assert!(Instant::now() < deadline, "no candidate was built");
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::read_to_string(mark).expect("a file")
}

/// A process whose parent is gone may wait to be reaped; it is dead all the same.
fn is_alive(process: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z') && !rest.is_empty())
}

fn kill(signal: &str, process: u32) {
    let status = Command::new("kill").args(["-s", signal, &process.to_string()]).status().expect("kill runs");
    assert!(status.success());
}

fn ended(child: Child) -> Output {
    child.wait_with_output().expect("lineup ends")
}

#[test]
fn what_the_compiler_rejects_is_refused_in_its_words() {
    let program =
        Program::with_compiler("echo 'record.h:1:1: error: this order is not to my taste' >&2; exit 1");
    let report = program.study("./cc.sh -g -O2 main.c -o walk", "walk");
    assert!(!is_reordered(&report));
    assert!(report.to_string().contains("this order is not to my taste"), "{report}");
}

/// The whole program is compiled unchanged and with all proposals; candidates are only parsed.
#[test]
fn two_candidates_need_one_build() {
    let program = Program::with_compiler(":");
    // Smaller objects would need a build for each struct.
    let measured = "\treturn sizeof(struct record) != sizeof(struct other);\n";
    program.write("other.h", OTHER_H).write("main.c", &two_types("").replace("\treturn 0;\n", measured));
    program.write("cc.sh", "#!/bin/sh\necho built >> \"$LOG\"\nexec gcc \"$@\"\n");
    let log = program.root.path().join("log");
    let mut command = program.command("./cc.sh -g -O2 main.c -o walk", "walk");
    report(program.undisturbed(command.env("LOG", &log)));
    let patch = fs::read_to_string(program.out().join("fix.patch")).expect("a patch");
    assert!(patch.contains("+++ b/record.h") && patch.contains("+++ b/other.h"), "{patch}");
    assert_eq!(fs::read_to_string(log).expect("a log").lines().count(), 2);
}

/// A violation that only a compiler sees, here of an assertion that a macro builds, is seen without a build.
#[test]
fn a_declaration_that_the_compiler_does_not_take_is_refused_without_a_build() {
    let program = Program::with_compiler(":");
    let check = "#define CHECK(tag, member, at) typedef char check_##member[__builtin_offsetof(struct tag, member) == at ? 1 : -1]\n";
    program.write("check.h", check).write("other.h", OTHER_H);
    let main = two_types("").replace(
        "int main(void)",
        "#include \"check.h\"\nCHECK(other, third, 0);\nCHECK(other, fourth, 128);\nint main(void)",
    );
    program.write("main.c", &main);
    program.write("cc.sh", "#!/bin/sh\necho built >> \"$LOG\"\nexec gcc \"$@\"\n");
    let log = program.root.path().join("log");
    let mut command = program.command("./cc.sh -g -O2 main.c -o walk", "walk");
    command.env("LOG", &log);
    // Clang would read the assertion as such, and hold the member before any candidate is made.
    let mut without_clang = installed::lineup();
    without_clang.args(["study", "--no-clang"]).args(command.get_args().skip(1)).env("LOG", &log);
    let report = report(program.undisturbed(&mut without_clang));
    let patch = fs::read_to_string(program.out().join("fix.patch")).expect("a patch");
    assert!(patch.contains("+++ b/record.h") && !patch.contains("other.h"), "{patch}");
    assert!(report["refusals"].to_string().contains("check_"), "{report}");
    assert_eq!(fs::read_to_string(log).expect("a log").lines().count(), 2);
}

/// A build folder that CMake has configured names the original's path all over.
fn configured() -> Program {
    let program = Program::new();
    program.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.10)\nproject(walk C)\nset(CMAKE_C_FLAGS \"-g -O2\")\nadd_executable(walk main.c)\n",
    );
    program.run("cmake -S . -B build && cmake --build build");
    program
}

#[test]
fn a_build_configured_for_the_original_path_compiles_the_copy() {
    let program = configured();
    let report = program.study("cmake --build build", "build/walk");
    assert!(is_reordered(&report), "{report}");
    assert!(remarks(&report).iter().any(|remark| remark.contains("at the path of the original")), "{report}");
    // Places are named relative to the source folder, wherever the copy was built.
    assert_eq!(report["patch"]["text"].as_str().map(|text| text.contains("+++ b/record.h")), Some(true));
}

#[test]
fn the_build_that_files_around_the_program_show_needs_no_name() {
    let program = configured();
    let mut lineup = installed::lineup();
    lineup.args(["shuffle", "--list", "build/walk", "--source"]).arg(program.source());
    let output = program.undisturbed(&mut lineup);
    let (listed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(listed.contains("1 of 1 units") && listed.contains("record (3 of 3 free)"), "{listed}{said}");
}

/// The same where the system allows no mount namespaces.
#[test]
fn without_mount_namespaces_the_copys_path_replaces_the_originals() {
    let limited = "echo 0 > /proc/sys/user/max_mnt_namespaces && exec \"$0\" \"$@\"";
    let can =
        Command::new("unshare").args(["-Ur", "sh", "-c", limited, "true"]).output().expect("unshare runs");
    if !can.status.success() {
        assert!(
            std::env::var_os("CI").is_none(),
            "no user namespaces: {}",
            String::from_utf8_lossy(&can.stderr)
        );
        return eprintln!("skipped: this system has no user namespaces to forbid mounts in");
    }
    let program = configured();
    let lineup = program.command("cmake --build build", "build/walk");
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", limited]).arg(lineup.get_program()).args(lineup.get_args());
    let report = report(program.undisturbed(&mut command));
    assert!(is_reordered(&report), "{report}");
    assert!(remarks(&report).iter().any(|remark| remark.contains("was replaced")), "{report}");
}

#[test]
fn scripts_with_absolute_paths_compile_the_copy() {
    let program = Program::new();
    let source = program.source().display().to_string();
    program.write("build.sh", &format!("cd '{source}' && gcc -g -O2 '{source}/main.c' -o '{source}/walk'\n"));
    assert!(is_reordered(&program.study("sh build.sh", "walk")));
    assert!(is_reordered(&program.study(&format!("sh '{source}/build.sh'"), "walk")));
}

#[test]
fn links_with_absolute_paths_lead_into_the_copy() {
    let program = Program::new();
    fs::create_dir(program.source().join("real")).expect("a folder");
    fs::rename(program.source().join("main.c"), program.source().join("real/main.c")).expect("moves");
    symlink(program.source().join("real"), program.source().join("objects")).expect("a link");
    program.write("Makefile", "walk: objects/main.o\n\tgcc objects/main.o -o walk\nobjects/main.o: real/main.c record.h\n\tgcc -g -O2 -I. -c real/main.c -o objects/main.o\n");
    assert!(is_reordered(&program.study("make", "walk")));
}

/// A unit that the build finds up to date may use a type in any way, too.
#[test]
fn units_that_were_compiled_before_are_read_as_well() {
    let program = Program::new();
    program
        .write("bytes.c", "#include \"record.h\"\n#include <unistd.h>\nlong put(struct record *r) { return write(1, r, sizeof *r); }\n")
        .write("Makefile", "walk: main.o bytes.o\n\tgcc main.o bytes.o -o walk\n%.o: %.c record.h\n\tgcc -g -O2 -c $<\n")
        .run("make && touch main.c");
    let report = program.study("make", "walk");
    let setting = report["setting"].to_string();
    assert!(setting.contains("checked with clang: 2 of 2 units"), "{setting}");
    assert!(report["patch"].is_null() && report["refusals"].to_string().contains("write()"), "{report}");
}

/// A file that says that a dependency was made keeps make from going there, however new the dependency's sources are.
#[test]
fn a_dependency_that_was_made_before_is_cleaned_in_the_copy_and_read() {
    let program = Program::new();
    program
        .run("mkdir dep")
        .write("dep/bytes.c", "#include \"../record.h\"\n#include <unistd.h>\nlong put(struct record *r) { return write(1, r, sizeof *r); }\n")
        .write("dep/Makefile", "libdep.a: bytes.o\n\tar rcs libdep.a bytes.o\nbytes.o: bytes.c\n\tgcc -g -O2 -c bytes.c\n")
        .write(
            "Makefile",
            "walk: main.c record.h .made\n\tgcc -g -O2 main.c -Wl,--whole-archive dep/libdep.a -Wl,--no-whole-archive -o walk\n\
             .made:\n\t$(MAKE) -C dep\n\ttouch .made\n\
             clean:\n\trm -f walk\n\
             distclean: clean\n\trm -f .made dep/*.o dep/*.a\n",
        )
        .run("make");
    let report = program.study("make", "walk");
    let setting = report["setting"].to_string();
    assert!(setting.contains("checked with clang: 2 of 2 units"), "{setting}");
    assert!(report["patch"].is_null() && report["refusals"].to_string().contains("write()"), "{report}");
    let said = remarks(&report).join("\n");
    assert!(said.contains("Copies were cleaned by `make distclean`"), "{said}");
}

/// Without a target that cleans, the outputs of the dependency's units are removed.
#[test]
fn a_dependency_without_a_cleaning_is_removed_in_the_copy_and_read() {
    let program = Program::new();
    program
        .run("mkdir dep")
        .write("dep/bytes.c", "#include \"../record.h\"\n#include <unistd.h>\nlong put(struct record *r) { return write(1, r, sizeof *r); }\n")
        .write("dep/Makefile", "libdep.a: bytes.o\n\tar rcs libdep.a bytes.o\nbytes.o: bytes.c\n\tgcc -g -O2 -c bytes.c\n")
        .write(
            "Makefile",
            "walk: main.c record.h dep/libdep.a\n\tgcc -g -O2 main.c -Wl,--whole-archive dep/libdep.a -Wl,--no-whole-archive -o walk\n\
             dep/libdep.a:\n\t$(MAKE) -C dep\n",
        )
        .run("make");
    let report = program.study("make", "walk");
    let setting = report["setting"].to_string();
    assert!(setting.contains("checked with clang: 2 of 2 units"), "{setting}");
    assert!(report["patch"].is_null() && report["refusals"].to_string().contains("write()"), "{report}");
    let said = remarks(&report).join("\n");
    assert!(said.contains("1 unit of the program was not compiled again"), "{said}");
    assert!(said.contains("Copies were cleaned by `rm -f -- dep/bytes.o dep/libdep.a walk`"), "{said}");
    assert!(program.source().join("dep/libdep.a").exists(), "the user's folder stays");
}

/// An object that nothing in the build compiles may use a type in any way, too.
#[test]
fn an_object_that_the_build_does_not_compile_holds_the_types_it_can_name() {
    let program = Program::new();
    program
        .write("bytes.c", "#include \"record.h\"\n#include <unistd.h>\nlong put(struct record *r) { return write(1, r, sizeof *r); }\n")
        .write("Makefile", "walk: main.c record.h\n\tgcc -g -O2 main.c bytes.o -o walk\n")
        .run("gcc -g -O2 -c bytes.c");
    let report = program.study("make", "walk");
    let setting = report["setting"].to_string();
    assert!(setting.contains("checked with clang: 1 of 2 units; not read: bytes.c"), "{setting}");
    assert!(
        report["patch"].is_null() && report["refusals"].to_string().contains("may use the type"),
        "{report}"
    );
}

#[test]
fn a_build_without_header_dependencies_is_named_and_made_anew() {
    let program = Program::new();
    program
        .write("Makefile", "walk: main.o\n\tgcc main.o -o walk\nmain.o: main.c\n\tgcc -g -O2 -c main.c\n")
        .run("make");
    let report = program.study("make", "walk");
    assert!(is_reordered(&report), "{report}");
    let said = remarks(&report).join("\n");
    assert!(said.contains("the build did not recompile main.o after a change of record.h"), "{said}");
}

#[test]
fn a_folder_that_the_build_changes_all_the_same_is_an_error_that_names_the_file() {
    let program = Program::new();
    let beside = program.root.path().join("beside");
    fs::create_dir(&beside).expect("a folder");
    // The path is put together only when the build runs, so nothing names it before.
    program
        .write("touch.sh", "gcc -g -O2 main.c -o walk && echo x >> \"$(echo \"$SOURCE\" | tr : /)/log\"\n");
    let hidden = program.source().display().to_string().replace('/', ":");
    let output = program.command("sh touch.sh", "walk").env("SOURCE", hidden).output().expect("lineup runs");
    broke(&program, &output, "log changed in");
}

/// A second type, used like the first.
const OTHER_H: &str = "struct other {\n\tlong third;\n\tchar rarely[120];\n\tlong fourth;\n};\n";

/// The program with both types. `special` is its additional code when the compiler has the option for it.
fn two_types(special: &str) -> String {
    let main = MAIN_C
        .replace("#include \"record.h\"\n", "#include \"record.h\"\n#include \"other.h\"\nstatic struct other others[64] __attribute__((aligned(64)));\n")
        .replace("\tr->first += 3;\n", "\tstruct other *o = &others[r->first & 63];\n\to->third += 5;\n\to->fourth += o->third;\n\tr->first += 3;\n");
    main.replace("\treturn 0;\n", &format!("#ifdef SPECIAL\n{special}\n#endif\n\treturn 0;\n"))
}

#[test]
fn the_change_that_fails_is_refused_and_the_rest_goes_on() {
    let program = Program::with_compiler(":");
    program.write("other.h", OTHER_H).write("unedited.txt", OTHER_H);
    program.write("main.c", &two_types("\tputs(\"something else\");"));
    program.write(
        "cc.sh",
        "#!/bin/sh\ncmp -s other.h unedited.txt || set -- \"$@\" -DSPECIAL\nexec gcc \"$@\"\n",
    );
    let report = program.study("./cc.sh -g -O2 main.c -o walk", "walk");
    let patch = fs::read_to_string(program.out().join("fix.patch")).expect("a patch of the rest");
    assert!(patch.contains("+++ b/record.h") && !patch.contains("other.h"), "{patch}");
    let refusals = report["refusals"].to_string();
    assert!(refusals.contains("other") && refusals.contains("standard output"), "{refusals}");
    assert!(patch.contains("\nBetter:\n") && patch.contains("\nWorse:"), "{patch}");
    assert!(!program.out().join("rejected.patch").exists());
}

#[test]
fn a_worse_program_gets_no_patch_to_apply() {
    let program = Program::with_compiler("set -- \"$@\" -DSPECIAL");
    let more = "\textern volatile char pages[];\n\tfor (int i = 0; i < 8; i++)\n\t\tpages[64 * i]++;";
    let main =
        MAIN_C.replace("\tr->first += 3;\n", &format!("#ifdef SPECIAL\n{more}\n#endif\n\tr->first += 3;\n"));
    program.write("main.c", &format!("{main}\nvolatile char pages[4096] __attribute__((aligned(64)));\n"));
    let output = program.undisturbed(&mut program.command("./cc.sh -g -O2 main.c -o walk", "walk"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("rejected.patch"), "{said}");
    assert!(!program.out().join("fix.patch").exists());
    let rejected = fs::read_to_string(program.out().join("rejected.patch")).expect("the patch that failed");
    assert!(rejected.contains("+++ b/record.h"));
    let report: Value = schema::checked(&output.stdout);
    assert!(report["patch"].is_null() && !is_reordered(&report));
    assert!(report["refusals"].to_string().contains("more lines"), "{report}");
    assert_eq!(apply_command(&report), None);
}

/// The command that the report prints for applying the patch.
fn apply_command(report: &Value) -> Option<String> {
    let commands = report["commands"].as_array().expect("commands");
    let apply = commands
        .iter()
        .find(|command| command["purpose"].as_str().is_some_and(|what| what.contains("apply")))?;
    apply["text"].as_str().map(str::to_owned)
}

/// The source folder below the top of a repository, next to one, and as the current folder; a relative folder for
/// results; blanks in every name.
/// Two types, each with two hot members that lie far apart.
const TWO_TYPES: &str = r#"
#include <stdio.h>
struct one { long first; char cold[120]; long second; };
struct other { long begin; char cold[120]; long end; };
static struct one ones[64] __attribute__((aligned(64)));
static struct other others[64] __attribute__((aligned(64)));
__attribute__((noinline)) long touch(struct one *a, struct other *b)
{
	a->first += 3;
	a->second += a->first;
	b->begin += 5;
	b->end += b->begin;
	return a->second + b->end;
}
int main(void)
{
	long sum = 0;
	for (int i = 0; i < 6400; i++)
		sum += touch(&ones[i % 64], &others[i % 64]);
	printf("%ld\n", sum);
	return 0;
}
"#;

#[test]
fn a_series_has_a_commit_for_each_fix_and_leads_to_what_the_patch_leads_to() {
    let program = Program::new();
    program.write("main.c", TWO_TYPES);
    program.run("git init -q .. && git add -A && git -c user.name=A -c user.email=a@b.c commit -q -m begin");
    program.run("git config user.name 'Some One' && git config user.email one@some.org");
    let mut command = program.command("gcc -g -O2 main.c -o walk", "walk");
    let report = report(program.undisturbed(&mut command));
    let commands = report["commands"].as_array().expect("commands");
    let series = commands.iter().find(|one| one["purpose"].as_str().unwrap().contains("commits"));
    let series =
        series.unwrap_or_else(|| panic!("no series: {commands:#?}"))["text"].as_str().expect("words");
    let apply = apply_command(&report).expect("a command");
    program.run(&apply);
    let by_patch = fs::read_to_string(program.source().join("main.c")).expect("a file");
    program.run("git checkout -q .").run(series);
    assert_eq!(fs::read_to_string(program.source().join("main.c")).expect("a file"), by_patch);
    program.run("git log --format='%an <%ae>: %s%n%b' -2 >../log.txt");
    let log = fs::read_to_string(program.root.path().join("log.txt")).expect("a file");
    for owner in ["one", "other"] {
        let subject = format!("Some One <one@some.org>: {owner}: put what hot paths use together");
        assert!(log.contains(&subject), "{log}");
        assert!(log.contains(&format!("\n{owner}: ")), "{log}");
    }
    assert!(log.contains("predicted of it alone: ") && log.contains("per call of touch"), "{log}");
    assert!(log.contains("All 2 commits together: "), "{log}");
}

#[test]
fn the_printed_command_applies_the_patch_from_where_the_user_stands() {
    for (is_repository, source, here) in
        [(true, "a program", "."), (false, "a program", "."), (true, ".", "a program")]
    {
        let program = Program::new();
        let root = fs::canonicalize(program.root.path()).expect("a path");
        if is_repository {
            program.run("git init -q ..");
        }
        let mut lineup = installed::lineup();
        lineup.args([
            "study",
            "--json",
            "--region",
            "touch",
            "--calls",
            "100",
            "--max-time",
            "1",
            "--margin",
            "1000%",
        ]);
        lineup.args([
            "--build",
            "gcc -g -O2 main.c -o walk",
            "--source",
            source,
            "--out",
            "the results",
            "--",
            "walk",
        ]);
        let report = report(lineup.current_dir(root.join(here)).output().expect("lineup runs"));
        let apply = apply_command(&report).expect("a command");
        assert!(apply.starts_with(if is_repository { "git " } else { "patch " }), "{apply}");
        let done =
            Command::new("sh").args(["-c", &apply]).current_dir(root.join(here)).output().expect("sh runs");
        assert!(done.status.success(), "{apply}: {}", String::from_utf8_lossy(&done.stderr));
        assert_ne!(
            fs::read_to_string(program.source().join("record.h")).expect("a file"),
            RECORD_H,
            "{apply}"
        );
    }
}

#[test]
fn a_library_that_is_loaded_from_the_users_folder_instead_of_the_copy_is_refused_by_name() {
    let program = Program::new();
    // The run path is the user's folder, wherever the build runs; put together, so that no file names it in one piece.
    let source = program.source();
    let above = source.parent().expect("a folder").display();
    let makefile = format!(
        "walk: main.c libstep.so\n\tgcc -g -O2 -o walk main.c -L. -lstep -Wl,-rpath,'{above}/'\"a program\"\n\
         libstep.so: step.c\n\tgcc -g -O2 -shared -fPIC -o libstep.so step.c\n"
    );
    let main = MAIN_C.replace("r->first += 3;", "r->first += step();");
    program.write("Makefile", &makefile).write("step.c", "long step(void) { return 3; }\n");
    program.write("main.c", &format!("long step(void);\n{main}")).run("make");
    let output = program.undisturbed(&mut program.command("make -B", "./walk"));
    broke(&program, &output, "libstep.so from the source folder itself");
}
