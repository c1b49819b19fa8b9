//! `lineup measure`, `compare`, `derive` and `load` as their users see them.

use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn lineup(arguments: &[&str]) -> Output {
    command(arguments).output().expect("lineup runs")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command.args(arguments);
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn metric<'v>(result: &'v Value, name: &str) -> &'v Value {
    let metrics = result["metrics"].as_array().expect("metrics");
    metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no metric {name}"))
}

/// A command that prints this cost.
fn printing(cost: u32) -> String {
    format!("sh -c 'echo lineup-metric cost {cost} units'")
}

#[test]
fn measure_gives_every_metric_its_error_and_says_what_the_machine_lacks() {
    let output = lineup(&["measure", "-r", "5", "--json", "-e", "task-clock,page-faults,r0", "--", "true"]);
    let result = json(&output);
    assert_eq!(result["schema"], "lineup.measure/1");
    assert_eq!(result["runs"], 5);
    let elapsed = metric(&result, "elapsed");
    assert_eq!(elapsed["values"].as_array().map(Vec::len), Some(5));
    assert!(elapsed["standard_error"].as_f64() > Some(0.0));
    assert!(metric(&result, "page-faults")["mean"].as_f64() > Some(10.0));
    // A raw event is counted where there is hardware for it, and said to be missing elsewhere.
    let raw = metric(&result, "r0");
    assert!(raw["status"] == "observed" || raw["status"] == "<not supported>" || raw["mean"].is_null());
    let utilised = result["ratios"].as_array().and_then(|ratios| ratios.first()).expect("a ratio");
    assert_eq!(utilised["name"], "CPUs utilized");
    assert!(utilised["interval"][0].as_f64() < utilised["ratio"].as_f64());
}

#[test]
fn measure_runs_preparation_and_clean_up_and_reads_printed_metrics() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    let note = |word: &str| format!("echo {word} >> {}", log.display());
    let output = lineup(&[
        "measure",
        "-r",
        "2",
        "--json",
        "--pre",
        &note("pre"),
        "--post",
        &note("post"),
        "--metric",
        "took (?<value>[0-9.]+) (?<unit>ms)",
        "--",
        "echo",
        "took 12.5 ms",
    ]);
    let printed = json(&output);
    assert_eq!(metric(&printed, "metric-1")["mean"], 12.5);
    assert_eq!(metric(&printed, "metric-1")["unit"], "ms");
    assert_eq!(std::fs::read_to_string(log).expect("the log"), "pre\npost\npre\npost\n");
}

#[test]
fn emulated_instruction_counts_are_exact_and_repeat() {
    lineup_fixtures::require_plugins("qemu-x86_64");
    let result = json(&lineup(&["measure", "-r", "1", "--json", "--emulate", "--", "true"]));
    let counts = metric(&result, "emulated-instructions")["values"].as_array().expect("counts").clone();
    assert_eq!(counts.len(), 2);
    assert_eq!(counts[0], counts[1]);
    assert!(counts[0].as_f64() > Some(1000.0));
    assert_eq!(result["runs"], 1);
}

#[test]
fn tables_for_mails_fit_72_columns() {
    let compared = lineup(&["compare", "-n", "2", "--markdown", &printing(100), &printing(105)]);
    let measured = lineup(&["measure", "-r", "2", "--markdown", "--", "true"]);
    for output in [compared, measured] {
        let text = String::from_utf8(output.stdout).expect("text");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(rows.len() > 4, "{text}");
        assert!(!text.contains("verdict") || text.contains("of this one link"), "{text}");
        for row in rows {
            assert!(row.chars().count() <= 72, "{row}");
        }
    }
}

#[test]
fn compare_gives_verdicts_and_fails_only_past_the_bound() {
    let (cheap, dear) = (printing(100), printing(105));
    let run = |bound: &str| {
        lineup(&["compare", "-n", "2", "--json", "--primary", "cost", "--fail-if", bound, &cheap, &dear])
    };
    let output = run("cost > +4%");
    assert_eq!(output.status.code(), Some(1));
    let result = json(&output);
    assert_eq!(result["schema"], "lineup.compare/1");
    let contrast = &metric(&result, "cost")["contrasts"][0];
    assert_eq!(contrast["verdict"], "changed");
    assert_eq!(result["links"], 1);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("of this one link"), "{said}");
    assert!((contrast["estimate"]["judged"]["ratio"].as_f64().expect("a ratio") - 1.05).abs() < 1e-12);
    assert_eq!(result["runs"].as_array().map(Vec::len), Some(8));
    assert_eq!(run("cost > +6%").status.code(), Some(0));
}

#[test]
fn compare_places_the_runs_of_a_block_alike() {
    let result = json(&lineup(&["compare", "-n", "4", "--json", "true", "true"]));
    let runs = result["runs"].as_array().expect("runs");
    for block in runs.chunks(4) {
        assert!(block.iter().all(|run| run["block"] == block[0]["block"] && run["cpus"] == block[0]["cpus"]));
        assert_eq!(block[0]["cpus"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn the_page_is_one_offline_file_and_escapes_what_it_is_given() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("page.html");
    let hostile = "sh -c 'echo lineup-metric <script>alert(1)</script> 5 <b>'";
    let output = lineup(&["compare", "-n", "2", "--html", page.to_str().expect("a path"), hostile, hostile]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(page).expect("the page");
    assert!(text.starts_with("<!DOCTYPE html>") && text.contains("prefers-color-scheme: dark"));
    assert!(text.contains("&lt;script&gt;alert(1)") && !text.contains("<script") && !text.contains("<b>5"));
    assert!(!text.contains("http://") && !text.contains("https://"));
    assert!(text.matches("<svg").count() >= 4);
}

#[test]
fn a_program_against_itself_reports_its_false_alarms() {
    let result = json(&lineup(&["compare", "--self", "-n", "12", "--json", "true"]));
    let rate = result["false_alarms"]["rate"].as_f64().expect("a rate");
    assert!((0.0..=1.0).contains(&rate));
    assert_eq!(result["commands"], serde_json::json!(["true", "true"]));
}

#[test]
fn mistakes_exit_with_2_and_say_what_to_do() {
    let cases: &[(&[&str], &str)] = &[
        (&["measure", "--", "/no/such/program"], "cannot run /no/such/program"),
        (&["measure", "-e", "cycels", "--", "true"], "event cycels: it is not known"),
        (&["measure", "--pin", "4096", "--", "true"], "is not among the CPUs"),
        (&["compare", "true"], "give two commands"),
        (&["compare", "true", "sh -c 'x"], "missing closing quote"),
        (&["compare", "--primary", "cost", "-n", "2", "true", "true"], "cost was not observed"),
        (&["compare", "--under", "rm -rf /", "true", "true"], "write 'load'"),
        (&["measure", "--derive", "a+", "a=1"], "something is missing"),
        (&["measure", "--derive", "a+b", "a=1"], "b has no value"),
        (&["load"], "nothing to do"),
        (&["load", "--group", "1:1", "--time", "1ms"], "must be from 2"),
        (&["measure", "-o", "/no/such/place", "-r", "1", "--", "true"], "writing /no/such/place"),
    ];
    for (arguments, words) in cases {
        let output = lineup(arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
}

#[test]
fn derive_works_on_measured_and_typed_values() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("measured.json");
    let path = file.to_str().expect("a path");
    assert!(lineup(&["measure", "-r", "4", "--json", "-o", path, "--", "true"]).status.success());
    let result =
        json(&lineup(&["measure", "--derive", "`page-faults`*2 + x", "--json", "--from", path, "x=1+-0.5"]));
    assert_eq!(result["schema"], "lineup.derive/1");
    assert!(result["value"].as_f64() > Some(20.0));
    // The name of the previous version, with a hint.
    let text = lineup(&[
        "derive",
        "2*(mem-hit)/path",
        "mem=644.09±11.39",
        "hit=88.16±1.35",
        "path=16535.11±1677.71",
    ]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("= 0.0672 ± 0.0070"));
    assert!(String::from_utf8_lossy(&text.stderr).contains("is `lineup measure --derive` now"));
}

/// The longest wait of a test for an event, on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command lines of all processes.
fn processes() -> String {
    let listing = Command::new("ps").args(["-ww", "-eo", "args"]).output();
    String::from_utf8_lossy(&listing.expect("ps: apt-get install procps").stdout).into_owned()
}

/// Waits until no process has this text on its command line.
fn assert_all_gone(mark: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = processes();
        let left: Vec<&str> = text.lines().filter(|line| line.contains(mark)).collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "still there: {left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(child: &std::process::Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
}

/// Waits until the process has a handler for SIGTERM.
fn wait_for_handler(child: &std::process::Child) {
    const SIGTERM_BIT: u64 = 1 << 14;
    let status = format!("/proc/{}/status", child.id());
    loop {
        let text = std::fs::read_to_string(&status).expect("the child's status");
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("caught signals");
        if u64::from_str_radix(caught.trim(), 16).expect("a mask") & SIGTERM_BIT != 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_interrupted_comparison_keeps_its_blocks_and_leaves_no_child() {
    let directory = tempfile::tempdir().expect("a directory");
    let count = directory.path().join("count");
    let pause = format!("sleep 0.0271{}", std::process::id());
    let program = format!("sh -c 'echo x >> {}; {pause}'", count.display());
    for name in ["-INT", "-TERM", "-HUP"] {
        std::fs::write(&count, "").expect("a file");
        let child = command(&["compare", "-n", "500", "--json", "--warm-up", "0", &program, &program])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("lineup starts");
        // Three complete blocks of four runs, and the next under way.
        while std::fs::read_to_string(&count).expect("the count").lines().count() < 14 {
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(&child, name);
        let output = child.wait_with_output().expect("lineup ends");
        assert_eq!(output.status.code(), Some(2));
        let result = json(&output);
        assert!(result["blocks"].as_u64() >= Some(3));
        assert!(result["interrupted_by_signal"].is_i64());
        assert_all_gone(&pause);
    }
}

#[test]
fn a_comparison_that_is_interrupted_early_gives_the_times_until_then() {
    let directory = tempfile::tempdir().expect("a directory");
    let count = directory.path().join("count");
    let program = format!("sh -c 'echo x >> {}; sleep 0.2'", count.display());
    let child = command(&["compare", "--warm-up", "0", &program, &program])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lineup starts");
    // The third run of four in the first block.
    while std::fs::read_to_string(&count).unwrap_or_default().lines().count() < 3 {
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "-INT");
    let output = child.wait_with_output().expect("lineup ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in ["nothing is judged", "A ran 2", "B ran 2", "in 1 run", "interrupted by SIGINT"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_killed_measurement_takes_its_child_along() {
    let seconds = format!("86.{}", std::process::id());
    let mark = format!("sleep {seconds}");
    let mut child =
        command(&["measure", "--", "sleep", &seconds]).stdout(Stdio::null()).spawn().expect("lineup starts");
    let deadline = Instant::now() + PATIENCE;
    // Lineup has the same words on its own command line, after its own name.
    while !processes().lines().any(|line| line == mark) {
        assert!(Instant::now() < deadline, "the program has not started");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("killed");
    child.wait().expect("reaped");
    assert_all_gone(&mark);
}

#[test]
fn load_ends_by_time_and_by_signal_and_reports_what_it_did() {
    let output = lineup(&["load", "--vm", "1", "--vm-bytes", "1M", "--time", "250ms", "--every", "100ms"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("%idle") && text.contains("Average"), "{text}");
    let trips = lineup(&["load", "--ping-pong", "500"]);
    assert!(String::from_utf8_lossy(&trips.stdout).starts_with("500 round trips in "));
    let seed = format!("862710{}", std::process::id());
    let mut child = command(&["load", "--thrash-random", "1", "--seed", &seed]).spawn().expect("load starts");
    wait_for_handler(&child);
    signal(&child, "-TERM");
    assert!(child.wait().expect("load ends").success());
    assert_all_gone(&format!("--seed {seed}"));
}

#[test]
fn weighted_groups_run_in_real_control_groups_or_are_refused() {
    let mut child = command(&["load", "--group", "2:2", "--group", "1024:1", "--seed", "862711"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("load starts");
    let own = format!("lineup-{}-", child.id());
    let groups = || {
        let listing = Command::new("find").args(["/sys/fs/cgroup", "-name", &format!("{own}*")]).output();
        let text = String::from_utf8_lossy(&listing.expect("find").stdout).into_owned();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let has_tasks = |group: &String| {
        std::fs::read_to_string(format!("{group}/cgroup.procs")).is_ok_and(|tasks| !tasks.is_empty())
    };
    let all_work = || groups().iter().filter(|group| has_tasks(group)).count() == 2;
    while !all_work() && child.try_wait().expect("the load's state").is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let made = groups();
    // The load may have refused already; then the signal finds nobody.
    let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).stderr(Stdio::null()).status();
    let output = child.wait_with_output().expect("load ends");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        assert_eq!(made.len(), 2, "{made:?}");
    } else {
        assert!(message.contains("control group") || message.contains("Weighted groups"), "{message}");
    }
    assert_eq!(groups(), Vec::<String>::new());
    assert_all_gone(&format!("--seed={}", 862_711));
}

#[test]
fn both_variants_run_under_the_load_and_it_ends_with_them() {
    let load = "load --vm 1 --vm-bytes 1M --seed 862712";
    let result = json(&lineup(&["compare", "-n", "2", "--json", "--under", load, "true", "true"]));
    assert_eq!(result["under"], load);
    assert_all_gone("--seed 862712");
}

/// A command's output on standard error, which is not a terminal.
fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_takes_over_two_seconds_is_a_line_with_its_time_in_a_pipe() {
    let sleep = "sleep 0.6";
    let slow = said(&lineup(&["compare", "--blocks", "2", "--warm-up", "0", sleep, sleep]));
    let line = slow.lines().find(|line| line.starts_with("lineup: running the variants in turn: "));
    assert!(line.is_some_and(|line| line.ends_with(" s")), "{slow}");
    let slow = said(&lineup(&["measure", "-r", "4", "--", "sleep", "0.6"]));
    assert!(slow.contains("lineup: running the program: "), "{slow}");
    let slow = said(&lineup(&["effects", "--", "sleep", "2.1"]));
    assert!(slow.contains("lineup: observing the effects of the processes: "), "{slow}");
}

#[test]
fn on_a_terminal_a_comparison_shows_how_many_of_its_runs_are_done() {
    // `script` gives the command a terminal.
    let line = format!(
        "{} compare --blocks 3 --warm-up 0 'sleep 0.3' 'sleep 0.3' > /dev/null",
        env!("CARGO_BIN_EXE_lineup")
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).env("TERM", "xterm");
    let output = terminal.output();
    let shown = String::from_utf8_lossy(&output.expect("script runs, of util-linux").stdout).into_owned();
    assert!(shown.contains("running the variants in turn") && shown.contains("/6"), "{shown:?}");
}

#[test]
fn a_comparison_of_many_metrics_fits_on_a_screen_unless_all_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("result.txt");
    let file_name = file.to_str().expect("a path of text");
    let printing = |by: u32| {
        let metrics: String =
            (0..30).map(|n| format!("echo lineup-metric cost{n} {} units; ", n + by)).collect();
        format!("sh -c '{metrics}'")
    };
    let (cheap, dear) = (printing(100), printing(105));
    let text = |more: &[&str]| {
        let arguments = ["compare", "-n", "2", "-w", "0", "--primary", "cost7", "--metric", "(x)"];
        let output = lineup(&[&arguments, more, &[&cheap, &dear]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let first = text(&[]);
    assert!(first.lines().count() <= 40, "{first}");
    assert!(
        first.contains("cost7 (decides)") && first.contains("cost0 (does not decide)  B: +5.00 %"),
        "{first}"
    );
    assert!(first.contains("lines more: --full"), "{first}");
    for all in
        [text(&["--full"]), { text(&["-o", file_name]) + &std::fs::read_to_string(&file).expect("it") }]
    {
        assert!(all.contains("median 134.") && all.lines().count() > 100, "{all}");
    }
}

/// A program that fails at once would seem faster.
#[test]
fn runs_that_fail_are_named_before_any_figure() {
    let output = lineup(&["compare", "-n", "3", "true", "sh -c 'exit 3'"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let at = |words: &str| text.lines().position(|line| line.contains(words));
    let failed = at("B failed in 6 of 6 runs: exit status 3").unwrap_or_else(|| panic!("{text}"));
    assert!(Some(failed) < at("(decides)"), "{text}");
    assert_eq!(output.status.code(), Some(2), "B ended otherwise than A");
    let alike = lineup(&["compare", "-n", "3", "false", "false"]);
    assert_eq!(alike.status.code(), Some(0), "both end as each other");
    let killed = lineup(&["measure", "-r", "2", "--", "sh", "-c", "kill -9 $$"]);
    let text = String::from_utf8_lossy(&killed.stdout).into_owned();
    let failed = text.find("the program failed in 2 of 2 runs: SIGKILL");
    assert!(failed.is_some() && failed < text.find("task-clock"), "{text}");
    assert_eq!(killed.status.code(), Some(2));
    let steady = lineup(&["measure", "-r", "2", "--", "false"]);
    let text = String::from_utf8_lossy(&steady.stdout).into_owned();
    assert!(text.contains("the program failed in 2 of 2 runs: exit status 1"), "{text}");
    assert_eq!(steady.status.code(), Some(0));
}

/// An interval within the margin is a result, however wide both are.
#[test]
fn a_verdict_stands_with_its_figures() {
    let output = lineup(&["compare", "--margin", "1000%", "-n", "10", "true", "true"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_odd = |line: &str| line.contains("no estimate") && line.contains("equivalent within");
    assert!(!text.lines().any(is_odd), "{text}");
}
