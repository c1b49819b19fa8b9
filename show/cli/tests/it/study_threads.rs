//! A study parts data that threads contend for, and places threads where that shows.

use crate::place::Place;
use crate::schema;
use serde_json::Value;

/// Two threads add to neighbouring counters.
const COUNTERS: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int together;
struct counters { atomic_long first, second; } counters;
__attribute__((noinline)) void count(atomic_long *own) {
    together++;
    while (together < 2) sched_yield();
    for (long i = 0; i < 20000; i++) atomic_fetch_add(own, 1);
}
static void *run(void *own) { count(own); return 0; }
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, run, &counters.first);
    pthread_create(&threads[1], 0, run, &counters.second);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%ld\n", counters.first + counters.second);
    return 0;
}
"#;

fn study(more: &[&str], status: i32) -> (Value, String) {
    let place = Place::new(COUNTERS, &["-pthread"]);
    let (report, patch) = study_in(&place, "count", more, status);
    place.assert_clean();
    (report, patch)
}

/// A study of a folder's program: the report, and the patch.
fn study_in(place: &Place, region: &str, more: &[&str], status: i32) -> (Value, String) {
    let mut study =
        place.lineup(&["study", "--region", region, "--engine", "native", "--json", "--no-clang"]);
    study.args(["--max-time", "1", "--margin", "1000%", "--out", "out"]).args(more).args(["--", "./program"]);
    let output = study.output().expect("lineup runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{told}");
    let patch = std::fs::read_to_string(place.source().join("out/fix.patch")).unwrap_or_default();
    (schema::checked(&output.stdout), patch)
}

fn fact<'r>(report: &'r Value, name: &str) -> Option<&'r str> {
    let setting = report["setting"].as_array().expect("facts");
    setting.iter().find(|fact| fact["name"] == name)?["value"].as_str()
}

#[test]
fn counters_of_two_threads_are_parted_when_the_type_may_grow() {
    let (report, patch) = study(&["--allow-growth"], 0);
    let added: Vec<&str> = patch.lines().filter(|line| line.starts_with('+')).collect();
    assert!(
        patch.starts_with("counters: keep what different threads use on cache lines of their own"),
        "{patch}"
    );
    assert!(
        added
            .iter()
            .any(|line| line.contains("atomic_long first; char pad[52];")
                && line.contains("atomic_long second;")),
        "{patch}"
    );
    let proposal = &report["proposals"][0];
    assert_eq!((&proposal["kind"], &proposal["target"]), (&"part".into(), &"counters".into()), "{report:#}");
    let timed = fact(&report, "timed runs").expect("where threads were");
    assert!(timed.starts_with("each thread on a CPU of its own"), "{timed}");
    assert!(report["proof"].is_object(), "both variants did the same and were timed: {report:#}");
    let waits = fact(&report, "waits between threads").expect("both variants' waits");
    assert!(waits.contains("before, 0.0 to 0.0 after"), "{waits}");
    // The report has the processor's counts of it, or the reason why nothing is counted.
    let not_observed = report["not_observed"].as_array().expect("what was not seen");
    let from_others =
        not_observed.iter().find(|one| one["what"] == "lines that the hardware took from other caches");
    match fact(&report, "lines from other caches, counted by the processor") {
        Some(counted) => assert!(counted.contains(" a run before, ") && from_others.is_none(), "{counted}"),
        None => {
            let consequence = from_others.and_then(|one| one["consequence"].as_str());
            assert!(consequence.is_some_and(|told| told.contains("perf c2c")), "{not_observed:#?}");
        }
    }
    // On one CPU, on two, and so on, both variants took turns.
    let points = report["contention"]["points"].as_array().expect("times by CPUs");
    let cpus: Vec<u64> = points.iter().filter_map(|point| point["cpus"].as_u64()).collect();
    let all = std::thread::available_parallelism().expect("CPUs").get() as u64;
    assert_eq!(cpus, (1..=all).collect::<Vec<_>>(), "{report:#}");
    for point in points {
        let runs = &point["regions"][0]["all_calls"];
        let count = |which: &str| runs[which].as_array().map_or(0, Vec::len);
        assert!(count("before_ns") >= 2 && count("before_ns") == count("after_ns"), "{point:#}");
    }
}

#[test]
fn a_program_that_is_told_how_many_threads_to_make_is_timed_with_one_two_and_so_on() {
    let made = COUNTERS
        .replace("int main(void) {", "int main(int count, char **arguments) {\n    int made = atoi(arguments[1]); if (count < 2 || made < 1) return 1;")
        .replace("#include <stdio.h>", "#include <stdio.h>\n#include <stdlib.h>")
        .replace("together < 2", "together < wanted")
        .replace("static atomic_int together;", "static atomic_int together; static int wanted;")
        .replace("    pthread_t threads[2];", "    pthread_t threads[2];\n    if (made > 2) made = 2;\n    wanted = made;")
        .replace("pthread_create(&threads[1]", "if (made > 1) pthread_create(&threads[1]")
        .replace("i < 2; i++) pthread_join", "i < made; i++) pthread_join");
    let place = Place::new(&made, &["-pthread"]);
    let mut study =
        place.lineup(&["study", "--region", "count", "--engine", "native", "--json", "--no-clang"]);
    study.args(["--max-time", "1", "--margin", "1000%", "--out", "out", "--allow-growth"]);
    let output = study.args(["--", "./program", "{threads}"]).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = schema::checked(&output.stdout);
    let contention = &report["contention"];
    assert_eq!(contention["threads_follow_cpus"], true, "{report:#}");
    let calls = |point: usize| contention["points"][point]["regions"][0]["calls_per_run"].as_u64();
    // Where calls cannot be timed, whole runs are.
    let is_whole = contention["of_whole_runs"] == true;
    assert_eq!(calls(0), Some(1));
    let all = std::thread::available_parallelism().expect("CPUs").get();
    assert!(is_whole || all < 2 || calls(1) == Some(2), "{contention:#}");
}

#[test]
fn without_leave_to_grow_it_is_told_and_nothing_is_changed() {
    let (report, patch) = study(&[], 0);
    assert_eq!(patch, "");
    let proposals = report["proposals"].as_array().expect("proposals");
    let told = proposals.iter().find(|one| one["kind"] == "part").expect("it is told");
    assert!(
        told["summary"].as_str().is_some_and(|summary| summary.contains("(first) and (second)")),
        "{told:#}"
    );
    assert_eq!(fact(&report, "timed runs"), None);
}

/// A program whose two threads, 0 and 1, run `body` at the same time; built from these files and `main.c` or
/// `main.cpp`.
fn place(language: &str, declarations: &str, body: &str, others: &[(&str, &str)]) -> Place {
    let compiler = if language == "cpp" { "g++" } else { "gcc" };
    let place = Place::new("int main(void) { return 0; }", &[]);
    let main = format!(
        r#"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
static int together __attribute__((aligned(256)));
enum {{ TURNS = 20000 }};
{declarations}
static char room[256] __attribute__((aligned(256)));
__attribute__((noinline)) {} work(long own) {{
    __atomic_fetch_add(&together, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&together, __ATOMIC_SEQ_CST) < 2) sched_yield();
    {body}
    return room[own];
}}
static void *run(void *own) {{ work((long)own); return 0; }}
int main(void) {{
    pthread_t threads[2];
    for (long own = 0; own < 2; own++) pthread_create(&threads[own], 0, run, (void *)own);
    for (int own = 0; own < 2; own++) pthread_join(threads[own], 0);
    puts("done");
    return 0;
}}
"#,
        if language == "cpp" { "extern \"C\" int" } else { "int" }
    );
    std::fs::remove_file(place.source().join("main.c")).expect("a file to replace");
    std::fs::remove_file(place.source().join("program")).expect("a file to replace");
    let main_file = format!("main.{language}");
    let mut names = vec![main_file.as_str()];
    names.extend(others.iter().map(|(name, _)| *name));
    let sources = names.join(" ");
    let makefile = format!("program: {sources}\n\t{compiler} -g -O2 -pthread -o program {sources}\n");
    let all = [(main_file.as_str(), main.as_str()), ("Makefile", makefile.as_str())];
    for (name, text) in all.into_iter().chain(others.iter().copied()) {
        std::fs::write(place.source().join(name), text).expect("a file");
    }
    place
}

/// The study finds, patches, builds and measures; the patch can be applied to the sources, which then build.
fn is_parted(place: &Place, target: &str) -> (Value, String) {
    let (report, patch) = study_in(place, "work", &["--allow-growth"], 0);
    let proposals = report["proposals"].as_array().expect("proposals");
    let is_meant =
        |one: &&Value| one["kind"] == "part" && one["status"] == "in-patch" && one["target"] == target;
    assert!(proposals.iter().any(|one| is_meant(&one)), "{target}: {proposals:#?} {:#}", report["refusals"]);
    assert!(report["proof"].is_object(), "{target}: both variants did the same and were timed: {report:#}");
    std::fs::write(place.source().join("fix.patch"), &patch).expect("a file");
    for command in ["patch -p1 -s -i fix.patch", "make -s"] {
        let done =
            std::process::Command::new("sh").args(["-c", command]).current_dir(place.source()).status();
        assert!(done.expect("a shell").success(), "{command}: {patch}");
    }
    (report, patch)
}

/// The reason for which nothing is patched.
fn refusal(place: &Place, target: &str) -> String {
    let (report, patch) = study_in(place, "work", &["--allow-growth"], 0);
    assert_eq!(patch, "", "{target}");
    let refusals = report["refusals"].as_array().expect("refusals");
    let found = refusals.iter().find(|one| one["target"] == target);
    found.unwrap_or_else(|| panic!("{target}: {report:#}"))["because"].to_string()
}

const COUNT: &str = "for (long i = 0; i < TURNS; i++)";

#[test]
fn variables_of_two_files_get_lines_of_their_own_and_those_in_a_section_do_not() {
    let body = format!("if (own) {COUNT} of_first++; else {COUNT} of_second++;");
    let declared = "extern volatile long of_first, of_second;";
    let first = ("first.c", "volatile long of_first __attribute__((aligned(32))) = 1;\n");
    let two = place("c", declared, &body, &[first, ("second.c", "volatile long of_second = 1;\n")]);
    let (report, patch) = is_parted(&two, "of_first, of_second");
    assert!(patch.contains("+volatile long of_second __attribute__((aligned(64))) = 1;"), "{patch}");
    let sizes = &report["proposals"][0]["sizes"][0];
    assert_eq!((&sizes["before_bytes"], &sizes["after_bytes"]), (&16.into(), &128.into()));
    let placed = [first, ("second.c", "volatile long of_second __attribute__((section(\".data\"))) = 1;\n")];
    let because = refusal(&place("c", declared, &body, &placed), "of_first, of_second");
    assert!(because.contains("section"), "{because}");
}

#[test]
fn elements_of_an_array_get_lines_of_their_own_and_not_when_one_is_handed_on() {
    let declared = "static volatile long counts[2] __attribute__((aligned(64)));";
    let by_element = place("c", declared, &format!("{COUNT} counts[own] += i;"), &[]);
    let (_, patch) = is_parted(&by_element, "counts");
    assert!(patch.contains("+static volatile long counts[2][8] __attribute__((aligned(64)));"), "{patch}");
    assert!(patch.contains("counts[own][0] += i;"), "{patch}");
    let by_pointer = place("c", declared, &format!("volatile long *at = &counts[own]; {COUNT} ++*at;"), &[]);
    let because = refusal(&by_pointer, "counts");
    assert!(because.contains("otherwise than by its elements"), "{because}");
}

/// A typical first program of the kind: one struct, two volatile counters, one for each thread.
const VOLATILE: &str = "struct counters { volatile long first; volatile long second; };";
const ADD: &str =
    "volatile long *at = own ? &counters->second : &counters->first; for (long i = 0; i < TURNS; i++) ++*at;";

#[test]
fn volatile_members_are_parted_in_the_programs_own_memory_alone() {
    let global = format!("{VOLATILE}\nstatic struct counters all __attribute__((aligned(64)));");
    let body = format!("struct counters *counters = &all; {ADD}");
    let (report, patch) = is_parted(&place("c", &global, &body, &[]), "counters");
    assert!(patch.contains("char pad[52];"), "{patch}");
    assert!(
        report["proposals"].to_string().contains("the program's own memory"),
        "{:#}",
        report["proposals"]
    );
    let by_pointer = format!("struct counters *counters = all; {ADD}");
    let heap = "#include <stdlib.h>
static struct counters *all;
static void __attribute__((constructor)) begin(void) { all = calloc(1, sizeof *all); }";
    let advice_on = |declared: &str, body: &str, others: &[(&str, &str)]| {
        let place = place("c", declared, body, others);
        record_built(&place);
        advised(&place, " --allow-growth")
    };
    let advice = advice_on(&format!("{VOLATILE}\n{heap}"), &by_pointer, &[]);
    let orders = advice["orders"].as_array().expect("orders");
    assert!(orders.iter().any(|order| order["type"] == "counters"), "{advice:#}");
    // Memory that others see: the layout may be theirs, too.
    let shared = "#include <sys/mman.h>
static struct counters *all;
static void __attribute__((constructor)) begin(void) {
    all = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}";
    let refused = |advice: &Value, why: &str| {
        let refusals = advice["refusals"].to_string();
        assert!(refusals.contains("\"volatile\"") && refusals.contains(why), "{advice:#}");
        assert_eq!(advice["orders"], Value::Array(Vec::new()), "{advice:#}");
    };
    refused(&advice_on(&format!("{VOLATILE}\n{shared}"), &by_pointer, &[]), "shares memory");
    // Nothing is shared in this run, but another might map a device.
    let other = (
        "device.c",
        "#include <sys/mman.h>\nvoid *device(int file) { return mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0); }\n",
    );
    refused(&advice_on(&global, &body, &[other]), "mmap at device.c:2");
}

#[test]
fn atomics_of_cpp_are_parted_in_a_struct_and_in_an_array() {
    let members = place(
        "cpp",
        "#include <atomic>\nstruct stats { std::atomic<long> sent{0}, received{0}; };\nalignas(64) static stats all;",
        &format!("auto &mine = own ? all.sent : all.received; {COUNT} mine.fetch_add(1);"),
        &[],
    );
    is_parted(&members, "stats");
    let array = place(
        "cpp",
        "#include <atomic>\nalignas(64) static std::atomic<long> counts[2];",
        &format!("{COUNT} counts[own].fetch_add(1);"),
        &[],
    );
    let (_, patch) = is_parted(&array, "counts");
    assert!(patch.contains("counts[2][8];") && patch.contains("counts[own][0].fetch_add(1)"), "{patch}");
}

fn output(place: &Place, arguments: &str) -> Vec<u8> {
    let mut command = place.lineup(&arguments.split(' ').collect::<Vec<_>>());
    let output = command.output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn record_built(place: &Place) {
    assert!(std::process::Command::new("make").arg("-s").current_dir(place.source()).status().is_ok());
    output(place, "record --region work --engine native --out x.rec -- ./program");
}

/// Advice on the recording.
fn advised(place: &Place, more: &str) -> Value {
    let told = output(place, &format!("advise x.rec --source . --no-clang --json{more}"));
    serde_json::from_slice(&told).expect("JSON")
}

#[test]
fn what_is_read_is_kept_from_what_is_written_in_its_own_object_and_in_the_next() {
    let declared = "#include <stdatomic.h>
static _Atomic long turn __attribute__((aligned(256)));
static struct entry { long *data; atomic_long refs; } entries[8] __attribute__((aligned(64)));";
    let body = "for (long i = 0; i < 400; i++) {
        while ((turn & 1) != own) usleep(20);
        if (own) entries[i % 8].refs++;
        else for (int k = 0; k < 8; k++) *(long *volatile *)&entries[k].data;
        turn++;
    }";
    let place = place("c", declared, body, &[]);
    record_built(&place);
    let advice = advised(&place, " --allow-growth");
    let order = &advice["orders"][0];
    let offset = |at: usize| order["new_offsets_bits"][at].as_u64().expect("an offset") / 8;
    assert_eq!((&order["type"], offset(0), offset(1)), (&"entry".into(), 0, 64), "{advice:#}");
    assert_eq!(order["sizes"][0]["after_bytes"], 128, "{order:#}");
    let predicted = &order["parted"]["predicted"];
    let alone = |when: &str| predicted[when]["recorded"]["of_line_alone"].as_u64().expect("waits");
    assert!(10 * alone("after") < alone("before"), "{order:#}");
}

#[test]
fn a_lock_goes_to_what_it_guards_and_away_from_what_others_use() {
    // Threads take turns, so that each has the line taken away between its count and the lock. They sleep meanwhile: a
    // polling thread makes so many accesses on a busy machine that these waits would be a small share.
    let declared = "#include <stdatomic.h>
static _Atomic long turn __attribute__((aligned(256)));
static struct account { pthread_mutex_t lock; atomic_long asked; long balance; } account __attribute__((aligned(64)));";
    let body = "for (long i = 0; i < 200; i++) {
        while ((turn & 1) != own) usleep(20);
        account.asked++; turn++;
        while ((turn & 1) != own) usleep(20);
        pthread_mutex_lock(&account.lock); account.balance += i; pthread_mutex_unlock(&account.lock); turn++;
    }";
    let place = place("c", declared, body, &[]);
    record_built(&place);
    let advised = |more: &str| advised(&place, more);
    let advice = advised(" --allow-growth");
    let orders = advice["orders"].as_array().expect("orders");
    let order =
        orders.iter().find(|order| order["type"] == "account").unwrap_or_else(|| panic!("{advice:#}"));
    let offset = |member: &str| {
        let place = order["new_order"].as_array()?.iter().position(|name| name == member)?;
        Some(order["new_offsets_bits"][place].as_u64()? / 8)
    };
    assert_eq!(offset("lock").zip(offset("balance")), Some((0, 40)), "{order:#}");
    assert!(offset("asked") >= Some(64), "{order:#}");
    let predicted = &order["parted"]["predicted"];
    let waits = |when: &str, of: &str| predicted[when]["recorded"][of].as_u64().expect("waits");
    let all = |when: &str| waits(when, "of_same_bytes") + waits(when, "of_line_alone");
    assert!(waits("after", "of_line_alone") < waits("before", "of_line_alone"), "{predicted:#}");
    assert!(all("after") < all("before"), "{predicted:#}");
    // The predicted effect is shown where nothing may grow, too.
    let told = advised("")["suggestions"].to_string();
    assert!(told.contains("(lock balance) and (asked)") && told.contains("Predicted"), "{told}");
}

/// A program in Rust whose two threads, 0 and 1, add to `mine`.
fn rust_place(declared: &str, mine: &str) -> Place {
    let place = Place::new("int main(void) { return 0; }", &[]);
    let source = format!(
        r#"
use std::sync::atomic::{{AtomicU64, Ordering::{{Relaxed, SeqCst}}}};
#[repr(align(256))] struct Meeting(AtomicU64);
static MEETING: Meeting = Meeting(AtomicU64::new(0));
{declared}
#[inline(never)] #[unsafe(no_mangle)]
extern "C" fn work(own: usize) {{
    MEETING.0.fetch_add(1, SeqCst);
    while MEETING.0.load(SeqCst) < 2 {{ std::thread::yield_now(); }}
    let mine = {mine};
    for _ in 0..20000 {{ mine.fetch_add(1, Relaxed); }}
}}
fn main() {{
    std::thread::scope(|scope| for own in 0..2 {{ scope.spawn(move || work(own)); }});
}}
"#
    );
    std::fs::write(place.source().join("main.rs"), source).expect("a file");
    let makefile = "program: main.rs\n\trustc -g -O --edition 2024 main.rs -o program\n";
    std::fs::write(place.source().join("Makefile"), makefile).expect("a file");
    std::fs::remove_file(place.source().join("program")).expect("a file to replace");
    place
}

const STATS_OF_RUST: &str = "#[repr(C, align(64))]
struct Stats {
    sent: AtomicU64,
    received: AtomicU64,
}
static STATS: Stats = Stats { sent: AtomicU64::new(0), received: AtomicU64::new(0) };";

#[test]
fn fields_and_objects_of_rust_are_parted() {
    let fields = rust_place(STATS_OF_RUST, "if own == 0 { &STATS.sent } else { &STATS.received }");
    let (_, patch) = is_parted(&fields, "main::Stats");
    assert!(patch.contains("+    pub(crate) _apart0: [u64; 7],"), "{patch}");
    assert!(patch.contains("+static STATS: Stats = Stats { _apart0: [0; 7], sent:"), "{patch}");
    let objects = rust_place(
        "struct Own {
    count: AtomicU64,
}
static ALL: std::sync::LazyLock<Vec<Own>> =
    std::sync::LazyLock::new(|| (0..2).map(|_| Own { count: AtomicU64::new(0) }).collect());",
        "&ALL[own].count",
    );
    let (_, patch) = is_parted(&objects, "main::Own");
    assert!(patch.contains("+#[repr(align(64))]\n struct Own {"), "{patch}");
}

#[test]
fn a_struct_of_rust_whose_bytes_are_looked_at_is_told_of_and_not_edited() {
    let looks =
        format!("{STATS_OF_RUST}\n#[allow(dead_code)] fn size() -> usize {{ std::mem::size_of::<Stats>() }}");
    let place = rust_place(&looks, "if own == 0 { &STATS.sent } else { &STATS.received }");
    let (report, patch) = study_in(&place, "work", &["--allow-growth"], 0);
    assert_eq!(patch, "");
    let told = report["proposals"].as_array().expect("proposals").iter().find(|one| one["kind"] == "part");
    let summary = told.and_then(|told| told["summary"].as_str()).unwrap_or_else(|| panic!("{report:#}"));
    assert!(summary.contains("(sent) and (received)") && summary.contains("#[repr(align(64))]"), "{summary}");
    assert!(report["refusals"].to_string().contains("may look at its layout"), "{:#}", report["refusals"]);
}

#[test]
fn a_counter_that_all_threads_need_is_not_parted() {
    let declared = "static volatile long total __attribute__((aligned(64)));";
    let shared =
        place("c", declared, &format!("{COUNT} __atomic_fetch_add(&total, 1, __ATOMIC_SEQ_CST);"), &[]);
    let (report, patch) = study_in(&shared, "work", &["--allow-growth"], 0);
    assert_eq!(patch, "");
    let proposals = report["proposals"].as_array().expect("proposals");
    assert!(proposals.iter().all(|one| one["kind"] != "part"), "{proposals:#?}");
}

#[test]
fn of_a_number_that_threads_add_to_in_turn_a_copy_for_each_is_told() {
    let declared = "#include <stdatomic.h>
static _Atomic long turn __attribute__((aligned(256)));
static _Atomic long total __attribute__((aligned(256)));";
    let body = "for (long i = 0; i < 200; i++) {
        while ((turn & 1) != own) usleep(20);
        total++; turn++;
    }";
    let place = place("c", declared, body, &[]);
    record_built(&place);
    let suggestions = advised(&place, "")["suggestions"].clone();
    let copies = suggestions.as_array().expect("suggestions").iter();
    let copies: Vec<_> = copies.filter(|one| one["kind"] == "copy-per-thread").collect();
    let [told] = copies.as_slice() else { panic!("{suggestions:#}") };
    assert_eq!(told["target"], "total", "{told:#}");
    let summary = told["summary"].as_str().expect("words");
    assert!(
        summary.starts_with("2 threads add to it and wait ") && summary.contains("left to you"),
        "{summary}"
    );
}
