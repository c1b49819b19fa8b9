//! Thread-local variables: named in every thread, whichever way the program is linked.

use super::program::{AArch64, I386, MACHINES, Machine, Program, Thumb, X86_64, build, c};
use serde_json::Value;

const COUNTERS: &str = r#"
#include <pthread.h>
#include <stdio.h>
struct box { long hits; int table[8]; struct box *next; };
static __thread struct box own;
__thread int counter = 5;
__thread long many[16];
struct box *shared;
__attribute__((noinline, noclone)) long region(int i) {
    static __thread long calls;
    calls++;
    own.hits++;
    own.table[3] += i;
    counter += i;
    return calls + counter;
}
__attribute__((noinline, noclone)) long indexed(int i) { return ++many[i & 15]; }
static void *work(void *argument) {
    long sum = 0;
    for (int i = 0; i < 50; i++) sum += region(i) + indexed(i);
    return (void *)sum;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    work(0);
    return 0;
}
"#;

/// The parts of a region's lines of thread-local variables, with loads and stores per call summed over lines.
fn parts(explanation: &Value, region: usize) -> Vec<(String, f64, f64)> {
    let map = explanation["regions"][region]["map"].as_array().expect("a map");
    let mut sums: std::collections::BTreeMap<String, (f64, f64)> = Default::default();
    for line in map.iter().filter(|line| line["type_name"] == "(thread-local)") {
        for part in line["parts"].as_array().expect("parts") {
            let sum = sums.entry(part["name"].as_str().expect("a name").to_owned()).or_default();
            sum.0 += part["loads_per_call"].as_f64().expect("loads");
            sum.1 += part["stores_per_call"].as_f64().expect("stores");
        }
    }
    sums.into_iter().map(|(name, (loads, stores))| (name, loads, stores)).collect()
}

fn linkings(machine: Machine) -> &'static [&'static [&'static str]] {
    match machine {
        X86_64 | I386 | AArch64 => &[&["-static"], &["-static-pie"], &["-pie", "-fPIE"], &["-no-pie"]],
        // Debian's C library for 32-bit Arm has no start file for static position-independent programs.
        _ => &[&["-static"], &["-pie", "-fPIE"], &["-no-pie"]],
    }
}

#[test]
fn thread_local_variables_are_named_in_every_thread() {
    for machine in MACHINES {
        for options in linkings(machine) {
            let explanation = c(machine, COUNTERS, options).explain(&["region", "indexed"]);
            assert_eq!(explanation["threads"], 3, "{machine:?} {options:?}");
            let coverage = &explanation["regions"][0]["coverage"];
            assert_eq!(coverage["named"], 1.0, "{machine:?} {options:?} {coverage}");
            let own = |name: &str| (name.to_owned(), 1.0, 1.0);
            let wanted = [own("counter"), own("own.hits"), own("own.table[]"), own("region::calls")];
            assert_eq!(parts(&explanation, 0), wanted, "{machine:?} {options:?}");
            // Nothing passes between the threads, though all three use the same variables.
            assert_eq!(explanation["shared_lines"].as_array().map(Vec::len), Some(0), "{machine:?}");
        }
    }
}

#[test]
fn an_array_whose_index_is_not_known_is_named_where_system_calls_tell_the_base() {
    let explanation = c(X86_64, COUNTERS, &[]).explain(&["indexed"]);
    let coverage = &explanation["regions"][0]["coverage"];
    assert_eq!(coverage["named"], 1.0, "{coverage}");
    let named = parts(&explanation, 0);
    assert_eq!(named.len(), 1);
    assert_eq!(named[0].0, "many[]");
}

const LENT: &str = r#"
#include <pthread.h>
#include <stdio.h>
static __thread struct pair { long kept, lent; } pair __attribute__((aligned(64)));
static pthread_barrier_t barrier;
static long *mailbox;
__attribute__((noinline, noclone)) void region(long *to) { pair.kept++; (*to)++; }
static void *work(void *argument) {
    for (int i = 0; i < 20; i++) {
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        region(mailbox);
    }
    return 0;
}
int main(void) {
    pthread_t thread;
    mailbox = &pair.lent;
    pthread_barrier_init(&barrier, 0, 2);
    pthread_create(&thread, 0, work, 0);
    for (int i = 0; i < 20; i++) {
        pthread_barrier_wait(&barrier);
        region(&pair.kept);
        pthread_barrier_wait(&barrier);
    }
    pthread_join(thread, 0);
    return 0;
}
"#;

#[test]
fn each_threads_copy_is_an_object_of_its_own() {
    for machine in MACHINES {
        let explanation = c(machine, LENT, &["-static"]).explain(&["region"]);
        let shared = explanation["shared_lines"].as_array().expect("lines");
        // The main thread's copy alone: the other's `kept` is on a line that nobody else uses.
        assert_eq!(shared.len(), 1, "{machine:?} {shared:?}");
        assert_eq!(shared[0]["parts"], serde_json::json!(["pair.kept*", "pair.lent*"]), "{machine:?}");
        assert_eq!(shared[0]["true_handovers"], 0, "{machine:?}");
        assert!(shared[0]["false_handovers"].as_u64().expect("a count") >= 19, "{machine:?} {shared:?}");
    }
}

#[test]
fn general_dynamic_code_names_the_programs_own_variables() {
    const LIBRARY: &str =
        "extern __thread int counter; __attribute__((noinline)) int bump(void) { return ++counter; }";
    const MAIN: &str = "__thread int counter; int bump(void);
        __attribute__((noinline, noclone)) int region(void) { counter += 2; return bump(); }
        int main(void) { for (int i = 0; i < 10; i++) region(); return 0; }";
    let folder = tempfile::tempdir().expect("a scratch folder");
    let library = ["-shared", "-fPIC", "-ftls-model=global-dynamic"];
    build(X86_64, folder.path(), "bump.c", LIBRARY, "libbump.so", &library);
    build(X86_64, folder.path(), "main.c", MAIN, "program", &["-L.", "-lbump", "-Wl,-rpath,$ORIGIN"]);
    let program = Program { folder };
    let explanation = program.explain(&["region"]);
    // Once in the program by its distance from the base, once in the library by the result of `__tls_get_addr`.
    assert_eq!(parts(&explanation, 0), [("counter".to_owned(), 2.0, 2.0)]);
}

#[test]
fn a_librarys_own_variables_are_named_where_code_loads_what_the_loader_filled_in() {
    const LIBRARY: &str = "
        struct state { short hits; long total; };
        static __thread struct state own;
        __thread int plain;
        __attribute__((noinline)) int bump(int i) { own.hits++; own.total += i; return plain += i; }";
    const MAIN: &str = "
        #include <pthread.h>
        __thread int counter; int bump(int);
        __attribute__((noinline, noclone)) int region(int i) { counter++; return bump(i); }
        static void *work(void *argument) { for (int i = 0; i < 10; i++) region(i); return argument; }
        int main(void) {
            pthread_t thread;
            pthread_create(&thread, 0, work, 0);
            pthread_join(thread, 0);
            work(0);
            return 0;
        }";
    for (machine, model) in [
        (X86_64, "global-dynamic"),
        (X86_64, "initial-exec"),
        (I386, "global-dynamic"),
        (I386, "initial-exec"),
        (AArch64, "global-dynamic"),
        (AArch64, "initial-exec"),
        (Thumb, "global-dynamic"),
        (Thumb, "initial-exec"),
    ] {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let model = format!("-ftls-model={model}");
        build(machine, folder.path(), "bump.c", LIBRARY, "libbump.so", &["-shared", "-fPIC", &model]);
        build(machine, folder.path(), "main.c", MAIN, "program", &["-L.", "-lbump", "-Wl,-rpath,$ORIGIN"]);
        let explanation = Program { folder }.explain(&["region"]);
        let named = parts(&explanation, 0);
        for name in ["counter", "own.hits", "own.total", "plain"] {
            assert!(named.contains(&(name.to_owned(), 1.0, 1.0)), "{machine:?} {model} {name}: {named:?}");
        }
    }
}
