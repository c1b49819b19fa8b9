//! Scenarios that are refused, each with its line and reason, and the short forms of the command line.

use lineup_sched::error::Error;
use lineup_sched::scenario::{
    Clock, Mechanism, Pattern, ROOT, Span, parse_duration_ns, parse_file, parse_group, parse_span,
};
use proptest::prelude::*;

/// The line and reason of a file that must be refused.
fn refusal(text: &str) -> (usize, String) {
    match parse_file(text) {
        Err(Error::File { line, reason }) => (line, reason),
        other => panic!("not refused at a line: {other:?}"),
    }
}

fn assert_refused(text: &str, at_line: usize, because: &str) {
    let (line, reason) = refusal(text);
    assert!(line == at_line && reason.contains(because), "line {line}: {reason}");
}

const ONE_TASK: &str = "[[group]]\nname = \"g\"\n[[group.tasks]]\ncount = 1\n";

#[test]
fn a_full_file() {
    let scenario = parse_file(
        r#"
        cpus = 8
        domains = [2, 8]
        smt = false
        resolution = 10
        time = "2s"
        warmup = "500ms"
        without = ["floor", "active"]
        with = ["prefer-sibling"]

        [tunables]
        hz = 250
        latency = "12ms"
        imbalance-percent = [125]

        [[group]]
        name = "outer"
        shares = 2048

        [[group]]
        name = "inner"
        parent = "outer"
        [[group.tasks]]
        count = 3
        nice = -5
        busy = "~10ms"
        sleep = "5ms..15ms"
        clock = "cpu"
        [[group.tasks]]
        count = 2
        script = ["1ms", "2ms", "3ms", "4ms"]
        "#,
    )
    .expect("a valid file");
    assert_eq!((scenario.tasks(), scenario.topology.smt, scenario.tunables.hz), (5, false, 250));
    assert!(!scenario.mechanisms.has(Mechanism::Floor) && scenario.mechanisms.has(Mechanism::PreferSibling));
    let tasks = &scenario.groups[1].tasks;
    let sleep = Span::Uniform { low: 5_000_000, high: 15_000_000 };
    assert_eq!(tasks[0].pattern, Pattern::Random { busy: Span::around(10_000_000), sleep });
    assert_eq!((tasks[0].clock, tasks[1].clock), (Clock::Cpu, Clock::Wall));
    assert_eq!(tasks[1].pattern, Pattern::Script(vec![(1_000_000, 2_000_000), (3_000_000, 4_000_000)]));
}

#[test]
fn bad_files_are_refused_with_the_line_and_the_reason() {
    let with = |head: &str| format!("{head}\n{ONE_TASK}");
    assert_refused(&with("cpus = 0"), 1, "0 is not in 1 to 65536");
    assert_refused(&with("cpus = 4\ncolour = 3"), 2, "unknown field `colour`");
    assert_refused(&with("cpus = 16\ndomains = [2, 3, 16]"), 2, "3 is no multiple of 2");
    assert_refused(&with("cpus = 16\ndomains = [8, 2]"), 2, "sizes must grow");
    assert_refused(&with("cpus = 4\nresolution = 21"), 2, "more than 20");
    assert_refused(&with("cpus = 4\n\ntime = \"99999999999999999s\""), 3, "too long for 64 bits");
    assert_refused(&with("cpus = 4\ntime = \"90\""), 2, "needs a unit");
    assert_refused(&with("cpus = 4\nwithout = [\"florr\"]"), 2, "no such mechanism");
    assert_refused(&with("cpus = \"four\""), 1, "invalid type");
    assert_refused(&with("cpus = 99999999999999999999"), 1, "99999999999999999999 does not fit into 64 bits");
    assert_refused("cpus = 4\n[[group]\n", 2, "");
    assert_refused("cpus = 4\n", 1, "no task");
    assert_refused(&format!("cpus = 4\n{ONE_TASK}nice = 20"), 6, "20 is not in -20 to 19");
    assert_refused(&format!("cpus = 4\n{ONE_TASK}busy = \"1ms\""), 5, "busy and sleep");
    assert_refused(&format!("cpus = 4\n{ONE_TASK}script = [\"1ms\"]"), 6, "one is missing");
    assert_refused(&format!("cpus = 4\n{ONE_TASK}{ONE_TASK}"), 7, "another group has this name");
    let shares = "cpus = 4\n[[group]]\nname = \"g\"\nshares = 1\n[[group.tasks]]\ncount = 1";
    assert_refused(shares, 4, "1 is not in 2 to 262144");
}

#[test]
fn circles_and_orphans_among_groups_are_refused() {
    let circle = "cpus = 2\n[[group]]\nname = \"a\"\nparent = \"b\"\n[[group.tasks]]\ncount = 1\n\
                  [[group]]\nname = \"b\"\nparent = \"a\"\n";
    assert_refused(circle, 4, "a in b in a");
    let itself = "cpus = 2\n[[group]]\nname = \"a\"\nparent = \"a\"\n[[group.tasks]]\ncount = 1\n";
    assert_refused(itself, 4, "circle");
    let orphan = "cpus = 2\n[[group]]\nname = \"a\"\nparent = \"z\"\n[[group.tasks]]\ncount = 1\n";
    assert_refused(orphan, 4, "no group is named `z`");
}

#[test]
fn weights_that_would_overflow_are_refused() {
    let text = "cpus = 4\nresolution = 20\n[[group]]\nname = \"g\"\nshares = 262144\n\
                [[group.tasks]]\ncount = 1000000\nnice = -20\n";
    assert_refused(text, 2, "exceed 63 bits");
}

#[test]
fn short_forms() {
    let group = parse_group("low:shares=2,tasks=50,busy=~100ms,sleep=1s").expect("valid");
    assert_eq!((group.name.as_str(), group.parent.as_str(), group.shares), ("low", ROOT, 2));
    let pattern = Pattern::Random { busy: Span::around(100_000_000), sleep: Span::Fixed(1_000_000_000) };
    assert_eq!(group.tasks[0].pattern, pattern);
    assert_eq!(parse_duration_ns("0.25us"), Ok(250));
    for bad in ["g:tasks", "g:tasks=x", "g:colour=1", "g:tasks=1,tasks=2", "g:busy=1ms", "g:clock=sun"] {
        assert!(parse_group(bad).is_err(), "{bad}");
    }
    for bad in ["", "ms", "1", "1.2.3ms", "1e9s", "~~1ms", "5ms..", "-1ms"] {
        assert!(parse_span(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in ".{0,80}") {
        let _ = parse_file(&text);
        let _ = parse_group(&text);
        let _ = parse_span(&text);
    }

    #[test]
    fn a_duration_is_its_number_times_its_unit(number in 0_u64..1_000_000) {
        prop_assert_eq!(parse_duration_ns(&format!("{number}us")), Ok(number * 1_000));
        prop_assert_eq!(parse_duration_ns(&format!("{number}.5ms")), Ok(number * 1_000_000 + 500_000));
    }
}
