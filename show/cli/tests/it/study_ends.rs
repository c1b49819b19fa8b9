//! A study is ended early, during each of its steps: it says so, proposes nothing, and leaves no process and no
//! temporary folder behind.

use crate::place::Place;
use crate::small_folder::with_small_folder;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

/// Two hot members on two lines. Each run waits until it is let go: until a file of its number is in the folder
/// `$GATE`.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct item { long a; char cold[120]; long b; };
static struct item items[64] __attribute__((aligned(64)));
__attribute__((noinline)) long work(int n) {
    struct item *item = &items[n % 64];
    item->a += n;
    item->b += item->a;
    return item->b;
}
int main(void) {
    char word[4096];
    if (getenv("GATE")) {
        snprintf(word, sizeof word, "%s/%d", getenv("GATE"), getpid());
        while (access(word, F_OK)) usleep(5000);
    }
    long sum = 0;
    for (int n = 0; n < 2000; n++) sum += work(n);
    printf("%ld\n", sum);
    return 0;
}
"#;

/// Leaves a temporary file, as a compiler does that is killed, and waits as the program does. Then it builds the
/// program.
const BUILD: &str =
    "mktemp > part; while ! test -e \"$GATE/$$\"; do sleep 0.02; done; gcc -g -O2 -o program main.c";

/// A study's step when it is ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    Building,
    Recording,
    Observing,
    Timing,
}

/// The moments to end a study: its step, and the number of such processes that were let go before. A recording takes
/// this many passes.
fn moments(passes: usize) -> [(Doing, usize); 6] {
    [
        (Doing::Building, 0),
        (Doing::Recording, 0),
        // A candidate that the compiler is to judge.
        (Doing::Building, 1),
        // The changed program.
        (Doing::Recording, passes),
        (Doing::Observing, 0),
        (Doing::Timing, 1),
    ]
}

/// The native engine runs a program once, the emulator twice.
const ENGINES: [(&str, usize); 2] = [("native", 1), ("qemu", 2)];

/// The purpose of a process at the gate; `None` for any other process.
fn doing(process: &Path) -> Option<Doing> {
    let program = fs::read_link(process.join("exe")).ok()?;
    let name = program.file_name()?.to_str()?;
    let status = || fs::read_to_string(process.join("status")).unwrap_or_default();
    let is_watched =
        || fs::read_to_string(process.join("maps")).unwrap_or_default().contains("lineup_engine");
    match name.trim_end_matches(" (deleted)") {
        "program" if is_watched() => Some(Doing::Recording),
        "program" if status().contains("TracerPid:\t0\n") => Some(Doing::Timing),
        "program" => Some(Doing::Observing),
        name if name.starts_with("qemu-") => Some(Doing::Recording),
        "lineup" => None,
        _ => (is_build(process) && !is_build(&parent(process)?)).then_some(Doing::Building),
    }
}

/// True for the shell that builds. Its forked children count too, until they become other programs.
fn is_build(process: &Path) -> bool {
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    line.starts_with(b"sh\0") && line.windows(8).any(|word| word == b"$GATE/$$")
}

fn parent(process: &Path) -> Option<PathBuf> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let number = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    Some(process.with_file_name(number.trim()))
}

/// Processes of a study that wait at the gate.
fn waiting(gate: &Path) -> Vec<(PathBuf, Doing)> {
    let gate = gate.to_str().expect("a name").as_bytes();
    let is_ours = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.windows(gate.len()).any(|part| part == gate)
    };
    let processes = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
    let ours = processes.filter(|process| is_ours(process));
    ours.filter_map(|process| doing(&process).map(|what| (process, what))).collect()
}

/// Lets a study run until the moment, and returns it then, while its process waits.
fn until(mut study: Command, gate: &Path, (moment, before): (Doing, usize)) -> Child {
    fs::create_dir(gate).expect("a folder");
    let mut lineup = study.env("GATE", gate).spawn().expect("lineup starts");
    let (mut known, mut met) = (BTreeSet::new(), 0);
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        for (process, what) in waiting(gate) {
            let number = process.file_name().expect("a number").to_owned();
            if known.insert(number.clone()) {
                if what == moment && met == before {
                    return lineup;
                }
                met += usize::from(what == moment);
                fs::write(gate.join(number), "").expect("a file");
            }
        }
        if lineup.try_wait().expect("lineup").is_some() || Instant::now() > deadline {
            let output = lineup.wait_with_output().expect("lineup ends");
            panic!("{moment:?} was not seen {before} times: {}", String::from_utf8_lossy(&output.stderr));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn study(place: &Place, build: &str, engine: &str) -> Command {
    let out = place.root.path().join("out");
    let mut study = place.lineup(&["study", "--region", "work", "--calls", "1000", "--max-time", "60"]);
    // However little the changed order saves.
    study
        .args(["--least-share", "0", "--engine", engine, "--build", build])
        .arg("--out")
        .arg(out)
        .args(["--", "./program"]);
    study
}

/// The leftovers of `lineup` when it has ended, which it must within a minute of the request.
fn ended(mut lineup: Child) -> Output {
    let deadline = Instant::now() + Duration::from_secs(60);
    while lineup.try_wait().expect("lineup").is_none() {
        if Instant::now() > deadline {
            lineup.kill().expect("a signal");
            panic!(
                "lineup went on: {}",
                String::from_utf8_lossy(&lineup.wait_with_output().expect("its end").stderr)
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    lineup.wait_with_output().expect("lineup ends")
}

/// The study proposes nothing and leaves nothing.
fn assert_ended(place: &Place, output: &Output, because: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(because), "{said}");
    for name in ["report.html", "report.json", "fix.patch", "rejected.patch"] {
        assert!(!place.root.path().join("out").join(name).exists(), "{name}: {said}");
    }
    place.assert_clean();
}

fn ended_by(signal: &str, engine: &str, moments: &[(Doing, usize)]) {
    for (at, &moment) in moments.iter().enumerate() {
        let place = Place::new(PROGRAM, &[]);
        let gate = place.root.path().join(format!("gate {at}"));
        let lineup = until(study(&place, BUILD, engine), &gate, moment);
        let process = lineup.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &process]).status().expect("kill runs");
        assert!(sent.success());
        let output = ended(lineup);
        let (code, because) = match signal {
            "KILL" => (None, String::new()),
            _ => (Some(2), format!("interrupted by SIG{signal}")),
        };
        assert_eq!(output.status.code(), code, "{moment:?}: {}", String::from_utf8_lossy(&output.stderr));
        println!("{engine}, {moment:?}: ended");
        assert_ended(&place, &output, &because);
    }
}

#[test]
fn ctrl_c_ends_a_study_whatever_it_does() {
    for (engine, passes) in ENGINES {
        ended_by("INT", engine, &moments(passes));
    }
}

#[test]
fn a_request_to_end_ends_a_study_whatever_it_does() {
    let moments = moments(2);
    ended_by("TERM", "qemu", &[moments[1], moments[4], moments[5]]);
}

#[test]
fn a_kill_of_lineup_ends_all_that_a_study_started() {
    for (engine, passes) in ENGINES {
        ended_by("KILL", engine, &moments(passes));
    }
}

/// Each call also writes at two hundred places of a large array, so that a recording of all calls is large.
fn with_large_recordings() -> String {
    let more = r#"
static volatile unsigned cell[4096];
static unsigned place(void) { static unsigned long x = 88172645463325252; x ^= x << 13; x ^= x >> 7; x ^= x << 17; return x % 4096; }
__attribute__((noinline)) long work(int n) {
    for (int i = 0; i < 200; i++) cell[place()] = n;"#;
    PROGRAM.replace("\n__attribute__((noinline)) long work(int n) {", more)
}

/// Studies the program with a small file system at `small`; a build of a changed source fills it but for `left_kib`.
fn on_a_small_disk(place: &Place, small: &Path, left_kib: u32) -> Option<Output> {
    let unedited = place.root.path().join("unedited.c");
    fs::copy(place.source().join("main.c"), &unedited).expect("a copy");
    let filler = small.join("filler");
    let fill =
        format!("head -c 64M /dev/zero > {0} 2> /dev/null; truncate -s -{left_kib}K {0}", filler.display());
    let build =
        format!("cmp -s main.c {} || {{ {fill}; }}; gcc -g -O2 -o program main.c", unedited.display());
    with_small_folder(small, 8000, &study(place, &build, "native"), ":")
}

#[test]
fn a_disk_that_is_full_when_a_candidate_is_compiled_is_not_the_candidates_fault() {
    let place = Place::new(PROGRAM, &[]);
    let Some(output) = on_a_small_disk(&place, &place.temporary(), 0) else { return };
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_ended(&place, &output, "No space left on device");
}

#[test]
fn a_disk_that_is_full_when_the_changed_program_is_recorded_is_not_its_fault() {
    let place = Place::new(&with_large_recordings(), &[]);
    let out = place.root.path().join("out");
    fs::create_dir(&out).expect("a folder");
    let Some(output) = on_a_small_disk(&place, &out, 200) else { return };
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_ended(&place, &output, "No space left on device");
}
