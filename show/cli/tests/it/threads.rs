//! `lineup threads`: data that shares lines without need is found, and other data is left alone.

use crate::installed;
use crate::schema;

use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// The common work of two threads: `work` gets 0 and 1. Each waits at both ends until the other is there, too, in a way
/// that lets the code in between happen in any order.
fn c(declarations: &str, setup: &str, body: &str) -> String {
    format!(
        r#"
        #include <pthread.h>
        #include <sched.h>
        #include <stdatomic.h>
        #include <stdlib.h>
        #include <string.h>
        #define TURNS 4000
        static int together[128] __attribute__((aligned(256)));
        #define MEET(place) do {{ \
            __atomic_fetch_add(&together[place], 1, __ATOMIC_SEQ_CST); \
            while (__atomic_load_n(&together[place], __ATOMIC_SEQ_CST) < 2) sched_yield(); \
        }} while (0)
        {declarations}
        __attribute__((noinline)) void work(long own) {{
            MEET(0);
            {body}
            MEET(64);
        }}
        static void *run(void *own) {{ work((long)own); return 0; }}
        int main(void) {{
            {setup}
            pthread_t threads[2];
            for (long own = 0; own < 2; own++) pthread_create(&threads[own], 0, run, (void *)own);
            for (int own = 0; own < 2; own++) pthread_join(threads[own], 0);
        }}
        "#
    )
}

/// A program's sources, by file name, and how they are compiled.
struct Program<'a> {
    files: Vec<(&'a str, String)>,
    compiler: &'a [&'a str],
}

impl Program<'_> {
    fn of_c(source: String) -> Self {
        Program {
            files: vec![("main.c", source)],
            compiler: &["gcc", "-g", "-O2", "-pthread", "main.c", "-o", "program"],
        }
    }

    /// The output of `lineup threads` for it.
    fn threads(&self, more: &[&str]) -> Value {
        self.threads_of("work", &[], more)
    }

    /// The same of another function, recorded with more options.
    fn threads_of(&self, region: &str, recording: &[&str], more: &[&str]) -> Value {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in &self.files {
            std::fs::write(folder.path().join(name), text).expect("a source");
        }
        let made =
            Command::new(self.compiler[0]).args(&self.compiler[1..]).current_dir(folder.path()).output();
        let made = made.expect("a compiler");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        record_calls(folder.path(), region, recording);
        let arguments = [&["threads", "x.rec", "--json"], more].concat();
        let output =
            installed::lineup().args(arguments).current_dir(folder.path()).output().expect("lineup runs");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        schema::checked(&output.stdout)
    }
}

fn record_calls(folder: &Path, region: &str, more: &[&str]) {
    let mut lineup = installed::lineup();
    lineup.args(["record", "--region", region, "--engine", "native", "--out", "x.rec"]);
    lineup.args(more).args(["--", "./program"]);
    let output = lineup.current_dir(folder).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The data that shares lines without need by the report, in words.
fn found(report: &Value) -> Vec<String> {
    let findings = report["false_sharing"].as_array().expect("findings");
    let in_words = |finding: &Value| {
        let mut words = String::new();
        for part in finding["parts"].as_array().expect("parts") {
            let _ = write!(words, "{} ", part["name"].as_str().expect("a name"));
        }
        let _ = write!(words, "→ {}", finding["remedy"]["kind"].as_str().expect("a remedy"));
        words
    };
    findings.iter().map(in_words).collect()
}

/// One finding, which names these and would be mended so.
fn is_found(name: &str, report: &Value, names: &[&str], remedy: &str) {
    let found = found(report);
    let is_meant = |words: &String| names.iter().all(|name| words.contains(name)) && words.ends_with(remedy);
    assert!(
        found.iter().any(is_meant) && found.len() == 1,
        "{name}: {found:#?}\n{}\n{}",
        report["waits"],
        report["lines"]
    );
}

const COUNT: &str = "for (long i = 0; i < TURNS; i++)";

/// For a thread that others wait for: it keeps its state until the other one asks, and a little longer.
const ASKING: &str = "
    #include <unistd.h>
    static struct { _Alignas(256) atomic_int times; } asking;
    static void until_asked(int times) { while (asking.times < times) usleep(1000); usleep(20000); }";

#[test]
fn counters_in_a_struct_or_an_array_are_found() {
    let in_struct = c(
        "static struct counters { volatile long first, second; } counters __attribute__((aligned(64)));",
        "",
        &format!("volatile long *at = own ? &counters.second : &counters.first; {COUNT} ++*at;"),
    );
    let report = Program::of_c(in_struct).threads(&[]);
    is_found("struct", &report, &["counters.first", "counters.second"], "part_members");
    let in_array =
        c("static _Alignas(64) volatile long counts[2];", "", &format!("{COUNT} counts[own] += i;"));
    is_found("array", &Program::of_c(in_array).threads(&[]), &["counts"], "spread_array");
    let of_structs = c(
        "static struct worker { volatile long done, failed, waited; } workers[2] __attribute__((aligned(64)));",
        "",
        &format!("{COUNT} {{ workers[own].done++; workers[own].waited += i; }}"),
    );
    is_found("structs", &Program::of_c(of_structs).threads(&[]), &["workers"], "align_objects");
}

#[test]
fn a_lock_beside_data_and_a_reference_count_beside_a_pointer_are_found() {
    let lock = c(
        "static struct guarded { atomic_int lock; volatile long limit; } guarded __attribute__((aligned(64)));
         static _Alignas(256) volatile long items;",
        "",
        &format!(
            "volatile long sum = 0;
             if (own) {COUNT} {{ while (atomic_exchange(&guarded.lock, 1)) ; items++; atomic_store(&guarded.lock, 0); }}
             else {COUNT} sum += guarded.limit;"
        ),
    );
    is_found("lock", &Program::of_c(lock).threads(&[]), &["guarded.lock", "guarded.limit"], "part_members");
    let references = c(
        "static struct object { _Alignas(64) int (*volatile look)(int); atomic_long references; } object;
         static int look(int x) { return x + 1; }",
        "object.look = look;",
        &format!(
            "volatile int sum = 0;
             if (own) {COUNT} {{ object.references++; object.references--; }} else {COUNT} sum += object.look(i);"
        ),
    );
    let names = ["object.look", "object.references"];
    is_found("references", &Program::of_c(references).threads(&[]), &names, "part_members");
}

#[test]
fn neighbours_on_the_heap_and_globals_of_two_files_are_found() {
    let heap = c(
        "struct small { volatile long used; char rest[8]; };
         struct large { volatile long used; char rest[24]; };
         static struct small *small; static struct large *large;",
        "do { small = malloc(sizeof *small); large = malloc(sizeof *large); }
         while ((unsigned long)small / 64 != (unsigned long)large / 64);",
        &format!("if (own) {COUNT} large->used++; else {COUNT} small->used++;"),
    );
    let report = Program::of_c(heap).threads(&[]);
    is_found("heap", &report, &["small.used", "large.used"], "align_allocations");
    let main = c(
        "extern volatile long of_first, of_second;",
        "",
        &format!("if (own) {COUNT} of_first++; else {COUNT} of_second++;"),
    );
    let program = Program {
        files: vec![
            ("main.c", main),
            ("first.c", "volatile long of_first __attribute__((aligned(64))) = 1;".to_owned()),
            ("second.c", "volatile long of_second = 1;".to_owned()),
        ],
        compiler: &["gcc", "-g", "-O2", "-pthread", "main.c", "first.c", "second.c", "-o", "program"],
    };
    is_found("globals", &program.threads(&[]), &["of_first", "of_second"], "align_variables");
}

#[test]
fn atomics_of_cpp_and_of_rust_are_found() {
    let cpp = c(
        "#include <atomic>\nstruct alignas(64) stats { std::atomic<long> sent{0}, received{0}; };\nstatic stats all;",
        "",
        &format!("auto &mine = own ? all.sent : all.received; {COUNT} mine.fetch_add(1);"),
    )
    .replace("#include <stdatomic.h>", "");
    let program = Program {
        files: vec![(
            "main.cpp",
            cpp.replace("__attribute__((noinline))", "extern \"C\" __attribute__((noinline))"),
        )],
        compiler: &["g++", "-g", "-O2", "-pthread", "main.cpp", "-o", "program"],
    };
    is_found("C++", &program.threads(&[]), &["sent", "received"], "part_members");
    let rust = r#"
        use std::sync::atomic::{AtomicU64, Ordering::{Relaxed, SeqCst}};
        #[repr(align(256))] struct Meeting(AtomicU64);
        static MEETINGS: [Meeting; 2] = [Meeting(AtomicU64::new(0)), Meeting(AtomicU64::new(0))];
        fn meet(place: usize) {
            MEETINGS[place].0.fetch_add(1, SeqCst);
            while MEETINGS[place].0.load(SeqCst) < 2 { std::thread::yield_now(); }
        }
        #[repr(C, align(64))] struct Stats { sent: AtomicU64, received: AtomicU64 }
        static STATS: Stats = Stats { sent: AtomicU64::new(0), received: AtomicU64::new(0) };
        #[inline(never)] #[unsafe(no_mangle)]
        extern "C" fn work(own: usize) {
            meet(0);
            let mine = if own == 0 { &STATS.sent } else { &STATS.received };
            for _ in 0..4000 { mine.fetch_add(1, Relaxed); }
            meet(1);
        }
        fn main() {
            std::thread::scope(|scope| for own in 0..2 { scope.spawn(move || work(own)); });
        }
    "#;
    let program = Program {
        files: vec![("main.rs", rust.to_owned())],
        compiler: &["rustc", "-g", "-O", "--edition", "2024", "main.rs", "-o", "program"],
    };
    is_found("Rust", &program.threads(&[]), &["sent", "received"], "part_members");
}

#[test]
fn short_calls_of_threads_are_recorded_where_they_overlap() {
    let program = Program::of_c(c(
        "static struct counters { volatile long first, second; } counters __attribute__((aligned(64)));
         __attribute__((noinline)) void step(volatile long *at) { for (int i = 0; i < 50; i++) ++*at; }",
        "",
        "for (long i = 0; i < 100000; i++) step(own ? &counters.second : &counters.first);",
    ));
    let report = program.threads_of("step", &["--calls", "3000", "--in-runs"], &[]);
    let threads = report["threads"].as_array().expect("threads");
    let sum = |field: &str| threads.iter().filter_map(|thread| thread[field].as_u64()).sum::<u64>();
    assert!((1..=3000).contains(&sum("calls")), "{threads:#?}");
    assert!(threads.len() == 2 && sum("time_beside_others") > 0, "{threads:#?}");
    is_found("short calls", &report, &["counters.first", "counters.second"], "part_members");
}

#[test]
fn neighbouring_lines_are_found_when_lines_are_fetched_in_pairs_and_not_else() {
    let source = c(
        "static struct pair { _Alignas(128) volatile long first; _Alignas(64) volatile long second; } pair;",
        "",
        &format!("volatile long *at = own ? &pair.second : &pair.first; {COUNT} ++*at;"),
    );
    let program = Program::of_c(source);
    is_found(
        "pair",
        &program.threads(&["--line-size", "128"]),
        &["pair.first", "pair.second"],
        "part_members",
    );
    assert_eq!(found(&program.threads(&[])), Vec::<String>::new());
}

#[test]
fn what_is_needed_or_apart_is_no_finding() {
    let own_lines =
        "static struct { _Alignas(128) volatile long count; } apart[2] __attribute__((aligned(128)));";
    let controls = [
        ("one counter", "static _Alignas(64) atomic_long total;", "", format!("{COUNT} total++;")),
        (
            "read only",
            "static _Alignas(64) volatile long table[8] = {1, 2, 3};",
            "",
            format!("volatile long sum; {COUNT} sum = table[own] + table[i % 8];"),
        ),
        (
            "a single owner",
            "static _Alignas(64) volatile long mine[8];",
            "",
            format!("volatile long sum = 0; if (own) {COUNT} mine[i % 8] += i; else {COUNT} sum += i;"),
        ),
        (
            "handed over once",
            "static _Alignas(64) volatile long data[64]; static _Alignas(64) atomic_int ready;",
            "",
            "if (own) { for (int i = 0; i < 64; i++) data[i] = i; ready = 1; }
             else { while (!ready) ; long sum = 0; for (int i = 0; i < 4000; i++) sum += data[i % 64]; data[0] = sum; }"
                .to_owned(),
        ),
        ("members apart", own_lines, "", format!("{COUNT} apart[own].count++;")),
        (
            "thread-local",
            "static _Thread_local volatile long count;",
            "",
            format!("{COUNT} count++;"),
        ),
        ("on stacks", "", "", format!("volatile long count = 0; {COUNT} count++;")),
        (
            "a mutex and what it guards, apart",
            "static _Alignas(64) pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; static _Alignas(64) volatile long total;",
            "",
            "for (long i = 0; i < 1000; i++) { pthread_mutex_lock(&lock); total++; pthread_mutex_unlock(&lock); }".to_owned(),
        ),
        (
            "a queue with a line for each entry and index",
            "struct slot { _Alignas(64) volatile long value; };
             static struct slot slots[8]; static _Alignas(64) atomic_long put; static _Alignas(64) atomic_long taken;",
            "",
            "volatile long sum = 0;
             for (long i = 0; i < 1000; i++) {
                if (own) { while (put - taken == 8) ; slots[i % 8].value = i; put++; }
                else { while (put == taken) ; sum += slots[i % 8].value; taken++; }
             }"
            .to_owned(),
        ),
        (
            "memory allocated at lines",
            "static volatile long *own_memory[2];",
            "for (int own = 0; own < 2; own++) own_memory[own] = aligned_alloc(64, 64);",
            format!("volatile long *at = own_memory[own]; *at = 0; {COUNT} ++*at;"),
        ),
    ];
    for (name, declarations, setup, body) in controls {
        let report = Program::of_c(c(declarations, setup, &body)).threads(&[]);
        assert_eq!(found(&report), Vec::<String>::new(), "{name}: {report:#}");
        let threads = report["threads"].as_array().expect("threads");
        let beside = |thread: &Value| thread["time_beside_others"].as_u64() > Some(0);
        assert!(threads.len() == 2 && threads.iter().all(beside), "{name}: they ran together");
    }
}

#[test]
fn who_waited_for_a_lock_is_told_and_what_lies_on_its_line() {
    let program = Program::of_c(c(
        &format!(
            "{ASKING}
             static struct account {{ pthread_mutex_t lock; volatile long balance; char room[128]; volatile long history; }}
                 account __attribute__((aligned(64))) = {{ PTHREAD_MUTEX_INITIALIZER }};
             static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
             __attribute__((noinline)) void deposit(void) {{
                 pthread_mutex_lock(&account.lock);
                 account.balance++;
                 account.history++;
                 pthread_mutex_unlock(&account.lock);
             }}
             static pthread_barrier_t held;"
        ),
        "pthread_barrier_init(&held, 0, 2);",
        "if (own) {
            pthread_mutex_lock(&account.lock);
            pthread_barrier_wait(&held);
            until_asked(1);
            account.history++;
            pthread_mutex_unlock(&account.lock);
         } else {
            pthread_mutex_lock(&free_lock);
            pthread_mutex_unlock(&free_lock);
            pthread_barrier_wait(&held);
            asking.times++;
            deposit();
         }",
    ));
    let report = program.threads(&[]);
    let locks = report["locks"].as_array().expect("locks");
    let named = |name: &str| {
        let found =
            locks.iter().find(|lock| lock["name"].as_str().is_some_and(|known| known.starts_with(name)));
        found.unwrap_or_else(|| panic!("{name}: {locks:#?}"))
    };
    let account = named("account.lock");
    assert_eq!(account["taken"], 2);
    let waits = account["waits"].as_array().expect("waits");
    assert_eq!(waits.len(), 1, "{account:#}");
    // The thread that began with 1 had it for 20 ms, which has millions of cycles on every machine.
    assert_ne!(waits[0]["thread"], waits[0]["waits_for"]);
    assert!(waits[0]["time"].as_u64() > Some(1_000_000), "{account:#}");
    assert_eq!(account["sections"][0]["function"], "work");
    assert_eq!(account["data_on_its_line"], serde_json::json!(["account.balance"]));
    let unused = locks.iter().filter(|lock| lock["waits"].as_array().is_some_and(Vec::is_empty));
    assert_eq!(unused.count(), 1, "the other lock was free: {locks:#?}");
}

/// The lock of a report whose name begins like this.
fn lock<'r>(report: &'r Value, name: &str) -> &'r Value {
    let locks = report["locks"].as_array().expect("locks");
    let found = locks.iter().find(|lock| lock["name"].as_str().is_some_and(|known| known.starts_with(name)));
    found.unwrap_or_else(|| panic!("{name}: {locks:#?}"))
}

#[test]
fn a_writer_waits_for_readers_and_they_do_not_wait_for_each_other() {
    let program = Program::of_c(c(
        &format!(
            "{ASKING}
             static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER, both_lock = PTHREAD_RWLOCK_INITIALIZER;
             static volatile long table;
             static pthread_barrier_t held;"
        ),
        "pthread_barrier_init(&held, 0, 2);",
        "if (own) {
            pthread_rwlock_rdlock(&both_lock);
            pthread_rwlock_rdlock(&table_lock);
            pthread_barrier_wait(&held);
            until_asked(1);
            pthread_rwlock_unlock(&table_lock);
            pthread_rwlock_unlock(&both_lock);
         } else {
            pthread_barrier_wait(&held);
            pthread_rwlock_rdlock(&both_lock);
            pthread_rwlock_unlock(&both_lock);
            asking.times++;
            pthread_rwlock_wrlock(&table_lock);
            table++;
            pthread_rwlock_unlock(&table_lock);
         }",
    ));
    let report = program.threads(&[]);
    let (table, both) = (lock(&report, "table_lock"), lock(&report, "both_lock"));
    assert_eq!((&table["kind"], &table["taken"]), (&"c_library_read_write".into(), &2.into()));
    assert!(table["waits"][0]["time"].as_u64() > Some(1_000_000), "{table:#}");
    assert_eq!((&both["taken"], &both["waits"]), (&2.into(), &serde_json::json!([])));
}

#[test]
fn semaphores_are_waited_for_until_somebody_gives_them_back() {
    let program = Program::of_c(c(
        &format!(
            "{ASKING}
             #include <semaphore.h>
             static struct pool {{ sem_t free; volatile long used; }} pool __attribute__((aligned(64)));
             static sem_t ready;
             static pthread_barrier_t held;"
        ),
        "sem_init(&pool.free, 0, 1);
         sem_init(&ready, 0, 0);
         pthread_barrier_init(&held, 0, 2);",
        "if (own) {
            sem_wait(&pool.free);
            pthread_barrier_wait(&held);
            until_asked(1);
            pool.used++;
            sem_post(&pool.free);
            until_asked(2);
            sem_post(&ready);
         } else {
            pthread_barrier_wait(&held);
            asking.times++;
            sem_wait(&pool.free);
            pool.used++;
            sem_post(&pool.free);
            asking.times++;
            sem_wait(&ready);
         }",
    ));
    let report = program.threads(&[]);
    let (pool, ready) = (lock(&report, "pool.free"), lock(&report, "ready"));
    for (semaphore, taken) in [(pool, 2), (ready, 1)] {
        let waits = semaphore["waits"].as_array().expect("waits");
        assert_eq!((&semaphore["kind"], &semaphore["taken"]), (&"c_library_semaphore".into(), &taken.into()));
        assert_eq!(waits.len(), 1, "{semaphore:#}");
        assert!(waits[0]["time"].as_u64() > Some(1_000_000), "{semaphore:#}");
    }
    assert_eq!(pool["data_on_its_line"], serde_json::json!(["pool.used"]));
}

#[test]
fn a_semaphore_of_the_cpp_library_is_known_where_the_compiler_has_inlined_it() {
    let source = "
        #include <atomic>
        #include <barrier>
        #include <chrono>
        #include <semaphore>
        #include <thread>
        struct alignas(64) pool { std::counting_semaphore<4> free{1}; volatile long used = 0; };
        static pool the_pool;
        static std::barrier held{2};
        static std::atomic<int> asking{0};
        static void rest(long ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
        __attribute__((noinline)) void work(long own) {
            if (own) {
                the_pool.free.acquire();
                held.arrive_and_wait();
                while (!asking) rest(1);
                rest(20);
            } else {
                held.arrive_and_wait();
                asking = 1;
                the_pool.free.acquire();
            }
            the_pool.used = the_pool.used + 1;
            the_pool.free.release();
        }
        int main() { std::thread one(work, 0), other(work, 1); one.join(); other.join(); }
    ";
    let program = Program {
        files: vec![("main.cpp", source.to_owned())],
        compiler: &["g++", "-std=c++20", "-g", "-O2", "-pthread", "main.cpp", "-o", "program"],
    };
    let report = program.threads(&[]);
    let pool = lock(&report, "the_pool.free");
    assert_eq!((&pool["kind"], &pool["taken"]), (&"cpp_semaphore".into(), &2.into()));
    assert_eq!(pool["waits"].as_array().map(Vec::len), Some(1), "{pool:#}");
    assert!(pool["waits"][0]["time"].as_u64() > Some(1_000_000), "{pool:#}");
    assert_eq!(pool["data_on_its_line"], serde_json::json!(["the_pool.used"]));
}

#[test]
fn rusts_locks_are_known_where_the_compiler_has_inlined_them() {
    let source = r#"
        use std::sync::{Barrier, Mutex, RwLock, atomic::{AtomicBool, Ordering::SeqCst}};
        use std::time::Duration;
        static ASKING: AtomicBool = AtomicBool::new(false);
        struct Account { balance: u64, history: [u64; 20] }
        static ACCOUNT: Mutex<Account> = Mutex::new(Account { balance: 0, history: [0; 20] });
        static TABLE: RwLock<u64> = RwLock::new(0);
        static HELD: Barrier = Barrier::new(2);
        #[inline(never)]
        fn work(own: u64) {
            if own == 0 {
                let mut account = ACCOUNT.lock().unwrap();
                HELD.wait();
                while !ASKING.load(SeqCst) { std::thread::sleep(Duration::from_millis(1)); }
                std::thread::sleep(Duration::from_millis(20));
                account.balance += 1;
            } else {
                HELD.wait();
                ASKING.store(true, SeqCst);
                let mut account = ACCOUNT.lock().unwrap();
                account.balance += 1;
                account.history[19] += 1;
            }
            if *TABLE.read().unwrap() == 7 { *TABLE.write().unwrap() = own; }
        }
        fn main() {
            let all: Vec<_> = (0..2).map(|own| std::thread::spawn(move || work(own))).collect();
            all.into_iter().for_each(|one| one.join().unwrap());
        }
    "#;
    let program = Program {
        files: vec![("main.rs", source.to_owned())],
        compiler: &["rustc", "--edition", "2024", "-g", "-O", "main.rs", "-o", "program"],
    };
    let report = program.threads(&[]);
    let account = lock(&report, "main::ACCOUNT");
    assert_eq!((&account["name"], &account["kind"]), (&"main::ACCOUNT".into(), &"rust_std".into()));
    assert_eq!(account["taken"], 2);
    assert!(account["waits"][0]["time"].as_u64() > Some(1_000_000), "{account:#}");
    let table = lock(&report, "main::TABLE");
    assert_eq!((&table["kind"], &table["taken"]), (&"rust_std_read_write".into(), &2.into()));
}

#[test]
fn a_loop_that_a_program_spins_in_is_a_lock_and_other_loops_over_atomics_are_none() {
    let own_lock = c(
        "static struct guarded { atomic_int lock; volatile long items; } guarded __attribute__((aligned(64)));
         static struct own { _Alignas(256) atomic_int asks, has, is_over; } each[2];
         // Time passes without accesses, whatever the host is busy with.
         static void pass(void) { for (int wait = 0; wait < 2000; wait++) __builtin_ia32_pause(); }
         __attribute__((noinline)) void take(void) {
             while (atomic_exchange_explicit(&guarded.lock, 1, memory_order_acquire)) pass();
         }
         static void give_back(void) { atomic_store_explicit(&guarded.lock, 0, memory_order_release); }",
        "",
        "for (int turn = 0; turn < 20; turn++) {
            each[own].asks = 1;
            take();
            each[own].has = 1;
            guarded.items++;
            // The one that has it waits until the other asks, and a little longer.
            while (!each[1 - own].asks && !each[1 - own].is_over) pass();
            for (int wait = 0; wait < 10; wait++) pass();
            each[own].asks = each[own].has = 0;
            give_back();
            // It asks again when the other has had it: else it would take the lock twenty times in a row.
            while (each[1 - own].asks && !each[1 - own].has) pass();
         }
         each[own].is_over = 1;",
    );
    let report = Program::of_c(own_lock).threads(&[]);
    let guarded = lock(&report, "guarded.lock");
    assert_eq!((&guarded["kind"], &guarded["taken"]), (&"spin_loop".into(), &40.into()));
    assert_eq!(guarded["data_on_its_line"], serde_json::json!(["guarded.items"]));
    let times = |wait: &Value| wait["times"].as_u64().unwrap_or(0);
    let times: u64 = guarded["waits"].as_array().into_iter().flatten().map(times).sum();
    assert!(times >= 10, "{guarded:#}");
    for (name, declarations, body) in [
        (
            "a counter that is set back",
            "static atomic_long count;",
            format!(
                "{COUNT} {{ long now = count; while (!atomic_compare_exchange_weak(&count, &now, now + 1)) ;
                    if (i % 50 == 0) atomic_store_explicit(&count, 0, memory_order_relaxed); }}"
            ),
        ),
        (
            "a stack without locks",
            "struct node { struct node *next; }; static _Atomic(struct node *) top; static struct node nodes[2][64];",
            format!(
                "{COUNT} {{ struct node *node = &nodes[own][i % 64];
                    node->next = top; while (!atomic_compare_exchange_weak(&top, &node->next, node)) ;
                    struct node *first = top; while (first && !atomic_compare_exchange_weak(&top, &first, 0)) ; }}"
            ),
        ),
    ] {
        let report = Program::of_c(c(declarations, "", &body)).threads(&[]);
        assert_eq!(report["locks"], serde_json::json!([]), "{name}");
    }
}

#[test]
fn the_programs_of_the_studies_have_their_known_answers() {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/threads");
    for (program, function, argument, answer) in [
        ("regression", "regress", "1", Some("align_objects")),
        ("store", "serve", "200000", Some("align_objects")),
        ("phases", "gain", "50", Some("spread_array")),
        ("histogram", "count_pixels", "1", Some("align_objects")),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["Makefile", &format!("{program}.c")] {
            std::fs::copy(studies.join(file), folder.path().join(file)).expect("a file of the study");
        }
        let made = Command::new("make").args(["-s", program]).current_dir(folder.path()).status();
        assert!(made.expect("make runs").success());
        let run = format!("./{program}");
        let record =
            ["record", "--region", function, "--engine", "native", "--out", "x.rec", "--", &run, argument];
        let output =
            installed::lineup().args(record).current_dir(folder.path()).output().expect("lineup runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let threads = ["threads", "x.rec", "--json"];
        let output =
            installed::lineup().args(threads).current_dir(folder.path()).output().expect("lineup runs");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let remedies: Vec<Option<&str>> = report["false_sharing"]
            .as_array()
            .expect("findings")
            .iter()
            .map(|one| one["remedy"]["kind"].as_str())
            .collect();
        let expected: Vec<Option<&str>> = answer.into_iter().map(Some).collect();
        assert_eq!(remedies, expected, "{program}: {:#}", report["false_sharing"]);
    }
}
