//! A study as text and as JSON.

use crate::sample;
use lineup_report::html::study_page;
use lineup_report::study::{
    CodeFigure, CodePerCall, CodeReport, ColdCall, ColdCalls, ColdTime, Fact, Figure, MemberUse,
    NotOptimised, ObjectLines, Optimised, OptimisedPair, Optimisers, OutputCheck, RegionUse, STUDY_SCHEMA,
    StudyReport, TimeRatio, TimeVerdict, Together,
};
use lineup_report::text::{Telling, TextStyle, study_text};
use std::collections::BTreeSet;

const SCREEN: TextStyle = TextStyle::Terminal { columns: 80 };

fn full(style: TextStyle) -> Telling {
    Telling { style, is_full: true, all_data_models: false }
}

fn first_screen(style: TextStyle) -> Telling {
    Telling { style, is_full: false, all_data_models: false }
}

/// The sample with this many regions, proposals and other things, all with long names.
fn large(count: usize) -> StudyReport {
    let mut report = sample::study();
    let long =
        "std::_Hashtable<std::pair<const char*, size_t>, std::allocator<char> >::_M_insert_unique_node "
            .repeat(4);
    report.title = long.clone();
    report.regions = report.regions.iter().cycle().take(count).cloned().collect();
    report.regions.iter_mut().for_each(|region| region.name = long.clone());
    report.proposals = report.proposals.iter().cycle().take(count).cloned().collect();
    report.proposals.iter_mut().for_each(|one| (one.target, one.summary) = (long.clone(), long.clone()));
    report.refusals = report.refusals.iter().cycle().take(count).cloned().collect();
    report.refusals.iter_mut().for_each(|one| one.target = long.clone());
    report.not_observed = report.not_observed.iter().cycle().take(count).cloned().collect();
    report.not_observed.iter_mut().for_each(|one| one.what = long.clone());
    report.side_effects = vec![long; count];
    report
}

#[test]
fn the_first_screen_of_a_terminal_tells_verdict_change_patch_and_what_to_type() {
    insta::assert_snapshot!(study_text(&sample::study(), first_screen(SCREEN)), @r#"
    Study of clockevents

    Verdict
    fewer lines (−64.00 per call), 2.84 % less time, of this one link
    Effects compared and equal: standard output, exit status; not compared: bytes
    written to standard error (all of it), different between two runs of the same
    program.
    Output and exit status equal in all 92 runs.
    Whole-process time −2.84 %, 95 % interval −3.29 % to −2.40 %, over 22 blocks:
    changed, of this one link (margin 1 %; 0.62 % would have been seen).
    Time of calls, of this one link: A −9.99 % [−10.02 %, −9.96 %] changed.

    Data lines of 64 bytes per call
    ────────────────────────────────────────────────────────────────────────────────
      region                        lines     change   modelled misses     calls/s
    ────────────────────────────────────────────────────────────────────────────────
      A clockevents_…_freqs      131 → 67   −48.85 %      128.4 → 64.6     118,300
      B clockevents_…_event   4.86 → 4.86    +0.00 %                 –   7,571,000
    ────────────────────────────────────────────────────────────────────────────────

    Patch: lineup-study/fix.patch, 1 file, +1 −1 lines
    - reorder members — struct clock_event_device: predicted of it alone: 64 fewer
      lines of 131 (48.9 %) per call of A; 256 → 192 bytes
      recorded with the whole patch, lines per call: A 131 → 67; B 4.86 → 4.86
    Refused:
    - struct timer_bank: an initialiser gives values by position: compare
      (src/timer.c:71)

    99.3 % of the data accesses are named.
    Not observed: The kernel's own accesses

    Next
      lineup study --region clockevents_adjust_all_freqs --region clockevents_program_event --source studies/clockevents --build make -- ./clockevents --devices 64    # Study both regions again
    "#);
}

#[test]
fn the_first_screen_has_at_most_40_lines_whatever_the_report_holds() {
    for style in [SCREEN, TextStyle::Plain] {
        for count in [0, 1, 7, 300] {
            let text = study_text(&large(count), first_screen(style));
            assert!(text.lines().count() <= 40, "{} lines:\n{text}", text.lines().count());
            let commands = text.lines().filter(|line| line.contains("# ")).count();
            let wide = text.lines().filter(|line| line.chars().count() > 80).count();
            assert!(style == TextStyle::Plain || wide <= commands, "{text}");
        }
    }
}

#[test]
fn figures_of_the_other_data_model_are_told_only_on_request() {
    let report = sample::study();
    let text = study_text(&report, full(TextStyle::Plain));
    assert!(text.contains("LP64, 64 B lines") && !text.contains("ILP32"));
    let all = Telling { all_data_models: true, ..full(TextStyle::Plain) };
    assert!(study_text(&report, all).contains("ILP32, 64 B lines"));
}

#[test]
fn an_array_over_many_lines_is_one_row() {
    let mut report = sample::study();
    let uses = vec![RegionUse { region: 0, loads_per_call: 4.0, stores_per_call: 0.0 }];
    let bucket = MemberUse {
        name: "buckets".into(),
        offset: 64,
        size_bytes: 64 * 100,
        touched: std::iter::once(64..6464).collect(),
        uses,
        sharing: None,
    };
    report.maps[0].before = ObjectLines::new(6464, 64, 0, &[bucket]);
    report.maps[0].after = None;
    let text = study_text(&report, full(TextStyle::Plain));
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("buckets")).collect();
    insta::assert_snapshot!(rows.join("\n"), @r#"
    1–100      64  6,400  buckets  read  A 4 L
    "#);
}

#[test]
fn a_pipe_gets_plain_columns() {
    insta::assert_snapshot!(study_text(&sample::study(), full(TextStyle::Plain)), @r#"
    Study of clockevents

    Verdict
    fewer lines (−64.00 per call), 2.84 % less time, of this one link
    Effects compared and equal: standard output, exit status; not compared: bytes written to standard error (all of it), different between two runs of the same program.
    Output and exit status equal in all 92 runs.
    Whole-process time −2.84 %, 95 % interval −3.29 % to −2.40 %, over 22 blocks: changed, of this one link (margin 1 %; 0.62 % would have been seen).
    Time of calls, of this one link: A −9.99 % [−10.02 %, −9.96 %] changed.

    Data lines of 64 bytes per call
    region                                lines    change  modelled misses    calls/s
    A clockevents_adjust_all_freqs     131 → 67  −48.85 %     128.4 → 64.6    118,300
    B clockevents_program_event     4.86 → 4.86   +0.00 %                –  7,571,000

    Patch: lineup-study/fix.patch, 1 file, +1 −1 lines
    - reorder members — struct clock_event_device: predicted of it alone: 64 fewer lines of 131 (48.9 %) per call of A; 256 → 192 bytes
      recorded with the whole patch, lines per call: A 131 → 67; B 4.86 → 4.86
    Refused:
    - struct timer_bank: an initialiser gives values by position: compare (src/timer.c:71)

    99.3 % of the data accesses are named.
    Not observed: The kernel's own accesses

    Next
      lineup study --region clockevents_adjust_all_freqs --region clockevents_program_event --source studies/clockevents --build make -- ./clockevents --devices 64    # Study both regions again

    Regions
       region                        weight    calls  abandoned    calls/s  instructions
    A  clockevents_adjust_all_freqs       1    2,000          0    118,300         1,102
    B  clockevents_program_event          1  128,000          0  7,571,000            46

    Lines per call (min / median / max)
         lines of           before            after  mean change
    A   32 B data  195 / 195 / 195  131 / 131 / 132          −64
    A   64 B data  131 / 131 / 132     67 / 67 / 68          −64
    A  128 B data  130 / 130 / 130     66 / 66 / 66          −64
    A   64 B code        3 / 3 / 3        3 / 3 / 3            0
    B   64 B data        3 / 5 / 5        3 / 5 / 5            0
    B   64 B code        2 / 4 / 4        2 / 4 / 4            0

    Time of a call, callees included, of this one link
       calls in a run    before     after   change  interval             verdict
    A           2,000  2.501 µs  2.252 µs  −9.99 %  −10.02 % to −9.96 %  changed

    struct clock_event_device (include/clockchips.h:46), 64-byte lines
    Every object starts at a multiple of 64 bytes.
    before: 256 bytes, 2 of 4 lines touched, 60 of 128 fetched bytes used
    line  offset  size  member                                                         use      per call
       0       8     8  set_next_event                                                 read     B 0.95 L
       0      24     8  next_event                                                     written  B 1 S
       0      32     8  max_delta_ns                                                   read     B 0.95 L
       0      48     4  min_delta_ticks_adjusted                                       read     B 0.95 L
       0      52     4  mult_adjusted                                                  written  A 64 S, B 0.95 L
       0      56     4  shift                                                          read     A 64 L, B 0.95 L
       0      60     1  state_use_accessors                                            read     B 2 L
       0      61     3  features                                                       read     A 64 L, B 1 L
       0                event_handler, set_next_ktime, max_delta_ticks                 cold
       2     148     4  mult                                                           read     A 64 L
       2     176    16  list                                                           read     A 64 L
       2                resume, name, min_delta_ticks, rating, irq, bound_on, cpumask  cold
    after: 192 bytes, 1 of 3 lines touched, 60 of 64 fetched bytes used
    line  offset  size  member                    use      per call
       0       0     8  set_next_event            read     B 0.95 L
       0       8     8  next_event                written  B 1 S
       0      16     8  max_delta_ns              read     B 0.95 L
       0      24     4  min_delta_ticks_adjusted  read     B 0.95 L
       0      28     4  mult_adjusted             written  A 64 S, B 0.95 L
       0      32     4  shift                     read     A 64 L, B 0.95 L
       0      36     1  state_use_accessors       read     B 2 L
       0      37     3  features                  read     A 64 L, B 1 L
       0      40    16  list                      read     A 64 L
       0      56     4  mult                      read     A 64 L

    timer_banks (src/timer.c:13), 64-byte lines
    before: 16 bytes, 2 of 2 lines touched, 16 of 128 fetched bytes used
    line  offset  size  member  use     per call
       0       0     8  banks   read    B 1 L
       1       8     8  armed   shared  B 1 L 1 S

    Lines between threads (* written)
           line at  touched                                 readers  writers  true handovers  false handovers
    0x5555555583c0  timer_bank.compare, timer_bank.armed *  0 2      1                    12            9,102

    Proposal: reorder members — struct clock_event_device (in the patch)
    Ten members that both regions use come first and share one 64-byte line; the others keep their order.
      clockevents_adjust_all_freqs: 64 fewer lines of 131 (48.9 %) per call
        modelled stalls not observed; 118,300 calls per second
    - clockevents_adjust_all_freqs touches lines 0 and 2 of each of 64 devices per call.
    - 60 bytes serve both regions; a line has 64.
      clockevents_adjust_all_freqs, LP64, 32 B lines: 195 → 131
      clockevents_adjust_all_freqs, LP64, 64 B lines: 131 → 67
      clockevents_adjust_all_freqs, LP64, 128 B lines: 130 → 66
      clockevents_program_event, LP64, 64 B lines: 4.86 → 4.86
      checked: offsets read back from the compiler under every data model named
      obeyed: a run of bit-fields moves whole: state_use_accessors, features (include/clockchips.h:57)

    Refused: struct timer_bank
    - an initialiser gives values by position: compare (src/timer.c:71)
      Name the members in the initialiser, then study again.

    Already as good as any allowed order: struct hrtimer

    Patch (lineup-study/fix.patch)
    --- a/include/clockchips.h
    +++ b/include/clockchips.h
    @@ -45,3 +45,3 @@ struct clock_event_device {
    -	void			(*event_handler)(struct clock_event_device *);
     	int			(*set_next_event)(unsigned long evt, struct clock_event_device *);
    +	void			(*event_handler)(struct clock_event_device *);

    Coverage
    99.3 % of the data accesses are named (1,696,471 of 1,708,475).
    Outside the stack: 99.1 %.
     accesses  to
    1,294,353  members of objects
      402,118  stack
     accesses  named by
    1,204,332  variable in the base register
      402,118  stack
       90,021  object map
       12,004  no name, in timer_set_next_event

    Not observed
    - The kernel's own accesses: System calls made inside a region touch lines that no figure here counts.

    To repeat
      lineup study --region clockevents_adjust_all_freqs --region clockevents_program_event --source studies/clockevents --build make -- ./clockevents --devices 64    # Study both regions again
    "#);
}

#[test]
fn a_terminal_gets_tables_that_fit() {
    let text = study_text(&sample::study(), full(TextStyle::Terminal { columns: 110 }));
    let table: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Regions")).take(17).collect();
    insta::assert_snapshot!(table.join("\n"), @r#"
    Regions
    ──────────────────────────────────────────────────────────────────────────────────────────────
          region                         weight     calls   abandoned     calls/s   instructions
    ──────────────────────────────────────────────────────────────────────────────────────────────
      A   clockevents_adjust_all_freqs        1     2,000           0     118,300          1,102
      B   clockevents_program_event           1   128,000           0   7,571,000             46
    ──────────────────────────────────────────────────────────────────────────────────────────────

    Lines per call (min / median / max)
    ────────────────────────────────────────────────────────────────────
            lines of            before             after   mean change
    ────────────────────────────────────────────────────────────────────
      A    32 B data   195 / 195 / 195   131 / 131 / 132           −64
      A    64 B data   131 / 131 / 132      67 / 67 / 68           −64
      A   128 B data   130 / 130 / 130      66 / 66 / 66           −64
      A    64 B code         3 / 3 / 3         3 / 3 / 3             0
      B    64 B data         3 / 5 / 5         3 / 5 / 5             0
    "#);
    let rules = text.lines().filter(|line| line.contains('─'));
    assert!(rules.clone().count() > 6 && rules.into_iter().all(|line| line.chars().count() <= 110));
}

#[test]
fn nothing_in_the_text_steers_the_terminal() {
    let mut report = sample::study();
    let hostile = "\u{1b}]0;owned\u{7}\u{202e}\r";
    report.title = hostile.into();
    report.regions.iter_mut().for_each(|region| region.name = hostile.into());
    report.maps.iter_mut().for_each(|map| map.owner.name = hostile.into());
    report.proposals.iter_mut().for_each(|proposal| proposal.summary = hostile.into());
    report.patch.iter_mut().for_each(|patch| patch.text = hostile.into());
    for style in [TextStyle::Plain, TextStyle::Terminal { columns: 80 }] {
        let text = study_text(&report, full(style));
        assert_eq!(text.chars().find(|c| (c.is_control() && !"\n\t".contains(*c)) || *c == '\u{202e}'), None);
    }
}

#[test]
fn json_names_its_schema_and_keeps_names_as_they_are() {
    let mut report = sample::study();
    let odd = "a\u{202e}<b>\"\\";
    report.setting = vec![Fact { name: odd.into(), value: String::new() }];
    let json: serde_json::Value = serde_json::from_str(&report.to_json().expect("JSON")).expect("valid JSON");
    assert_eq!(json["schema"], STUDY_SCHEMA);
    assert_eq!(json["setting"][0]["name"], odd);
    assert_eq!(json["regions"][0]["footprints"][1]["after"]["median"], 67);
    assert_eq!(json["regions"][0]["footprints"][1]["before"]["calls_by_lines"]["131"], 1990);
    assert_eq!(json["maps"][0]["before"]["lines"][0]["used_bytes"], 40);
    assert_eq!(json["proof"]["time"]["verdict"], "changed");
    assert_eq!(json["proof"]["output"]["outcome"], "equal");
    assert_eq!(json["proposals"][0]["status"], "in-patch");
}

#[test]
fn what_is_unknown_is_null_in_json() {
    let mut report = sample::study();
    report.regions[0].calls_per_second = None;
    report.proof = None;
    let json: serde_json::Value = serde_json::from_str(&report.to_json().expect("JSON")).expect("valid JSON");
    assert!(json["regions"][0]["calls_per_second"].is_null() && json["proof"].is_null());
}

/// The names of all fields, those of `calls_by_lines` left out: they are numbers of lines.
fn field_names(value: &serde_json::Value, names: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                names.insert(name.clone());
                if name != "calls_by_lines" {
                    field_names(value, names);
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| field_names(value, names)),
        _ => {}
    }
}

#[test]
fn every_field_is_documented() {
    let mut report = sample::study();
    report
        .proof
        .iter_mut()
        .for_each(|proof| proof.output = OutputCheck::NotRepeatable("bytes 3 to 5".into()));
    let json: serde_json::Value = serde_json::from_str(&report.to_json().expect("JSON")).expect("valid JSON");
    let mut names = BTreeSet::new();
    field_names(&json, &mut names);
    assert!(names.len() > 60, "the sample fills every part");
    let documented = include_str!("../../../../docs/json.md");
    let missing: Vec<&String> =
        names.iter().filter(|name| !documented.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/json.md does not speak of {missing:?}");
}

#[test]
fn calls_that_find_no_code_in_the_caches_stand_in_three_orders() {
    let time = ColdTime {
        typical_ns: [5100.0, 3900.0],
        ratio: 0.765,
        ratio_low: 0.71,
        ratio_high: 0.82,
        level: 0.95,
        verdict: TimeVerdict::Changed,
    };
    let call = |region: &str| ColdCall {
        region: region.into(),
        lines: [174.26, 80.5, 58.0],
        pages: [8.0, 3.0, 1.0],
        time: [Some(time), Some(time)],
    };
    let mut report = reordered();
    report.code.iter_mut().for_each(|code| {
        let regions = ["one", "two", "three", "four"].map(call).into();
        let not_timed = vec!["against the program in the order by counts: too few calls".into()];
        code.evidence = "calls";
        code.cold = Some(ColdCalls { recorded_calls: 77, regions, not_timed });
    });
    let text = study_text(&report, first_screen(SCREEN));
    let change = "one: 5.100 µs as linked, 3.900 µs by calls: −23.50 % (−29.00 % to −18.00 %),";
    for told in ["174.3  80.5  58", "8  3  1", "from the calls of"] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let whole = study_text(&report, full(TextStyle::Plain));
    for told in [change, "5.100 µs by counts", "four", "Not timed against the program"] {
        assert!(whole.contains(told), "{told}: {whole}");
    }
    assert!(text.lines().count() <= 40 && !text.contains("four"), "{text}");
    assert!(study_page(&report).contains("77 recorded calls"));
    let json: serde_json::Value = serde_json::from_str(&report.to_json().expect("JSON")).expect("valid");
    let mut names = BTreeSet::new();
    field_names(&json["code"], &mut names);
    let documented = include_str!("../../../../docs/json.md");
    assert!(names.iter().all(|name| documented.contains(&format!("`{name}`"))), "{names:?}");
}

/// A program whose code was put in another order.
fn reordered() -> StudyReport {
    let figure = |what: &str| CodeFigure { what: what.into(), before: 184_000, after: 60_000 };
    let call = |region: &str| CodePerCall { region: region.into(), lines: [174.26, 58.0], pages: [8.0, 1.0] };
    let mut report = sample::study();
    report.code = Some(CodeReport {
        optimiser: "Debian LLVM version 19.1.7".into(),
        optimiser_command: "llvm-bolt steps".into(),
        not_ordered: vec!["dispatch/1".into()],
        evidence: "counts",
        training: "steps 20000".into(),
        test: "steps 300000".into(),
        is_held_out: true,
        ways_exact: 226,
        ways_estimated: 3,
        whole_run: ["instructions", "modelled L1I misses", "a", "b", "c", "d"].map(figure).into(),
        calls: ["one", "two", "three", "four", "five", "six", "seven", "eight"].map(call).into(),
        cold: None,
        hints: None,
        patch: None,
        optimisers: None,
    });
    report
}

#[test]
fn code_in_another_order_stands_before_and_after_on_one_screen() {
    let text = study_text(&reordered(), first_screen(SCREEN));
    for told in ["Code of the test run", "184,000", "−67.39 %", "174.3 → 58", "from the counts of"] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(!text.contains("Patch") && !text.contains("eight"), "{text}");
    assert!(text.lines().count() <= 40, "{} lines:\n{text}", text.lines().count());
    assert!(study_text(&reordered(), full(TextStyle::Plain)).contains("judged by `steps 300000`.\n226 ways"));
    let mut flattered = reordered();
    flattered.code.iter_mut().for_each(|code| code.is_held_out = false);
    assert!(study_text(&flattered, first_screen(SCREEN)).contains("flatters it"));
    let json: serde_json::Value = serde_json::from_str(&reordered().to_json().expect("JSON")).expect("valid");
    let mut names = BTreeSet::new();
    field_names(&json["code"], &mut names);
    let documented = include_str!("../../../../docs/json.md");
    assert!(names.iter().all(|name| documented.contains(&format!("`{name}`"))), "{names:?}");
}

/// The program by four optimisers; one more is not in the table.
fn optimisers() -> Optimisers {
    let time =
        |ratio| TimeRatio { ratio, low: ratio - 0.01, high: ratio + 0.01, verdict: TimeVerdict::Changed };
    let row = |name: &str, ratio: Option<f64>| Optimised {
        name: name.into(),
        made: "by a tool".into(),
        effects: ratio.map(|_| "compared and equal: standard output, exit status".into()),
        figures: vec![Figure { what: "instructions".into(), count: 184_000 }],
        user_ns: Some(1.25e9),
        elapsed_ns: Some(2.5e9),
        user: ratio.map(time),
        elapsed: ratio.map(time),
    };
    let of = |of: &str, against: &str, ratio| OptimisedPair {
        of: of.into(),
        against: against.into(),
        user: Some(time(ratio)),
        elapsed: None,
    };
    Optimisers {
        rows: vec![
            row("as linked", None),
            row("functions in Lineup's order", Some(1.001)),
            row("BOLT from its own instrumented run", Some(0.93)),
            row("BOLT from Lineup's counts", Some(0.92)),
            row("GCC PGO, BOLT from Lineup's counts", Some(0.87)),
        ],
        pairs: vec![of("BOLT from Lineup's counts", "BOLT from its own instrumented run", 0.99)],
        not_observed: vec![NotOptimised { name: "GCC PGO".into(), why: "the build failed".into() }],
        together: Some(Together {
            names: ["GCC PGO".into(), "BOLT from Lineup's counts".into()],
            if_added: 0.828,
            seen: 0.87,
        }),
        patch_together: None,
        blocks: 15,
        level: 0.95,
        margin: 0.01,
    }
}

#[test]
fn one_table_holds_all_optimisers_and_names_what_is_not_in_it() {
    let mut report = reordered();
    report.code.iter_mut().for_each(|code| code.optimisers = Some(optimisers()));
    let text = study_text(&report, first_screen(SCREEN));
    assert!(text.lines().count() <= 40, "{} lines:\n{text}", text.lines().count());
    let all = study_text(&report, full(TextStyle::Plain));
    let both =
        ["as linked", "1.250 s", "−7.00 % (−8.00 % to −6.00 %)", "Not observed: GCC PGO: the build failed"];
    assert!(both.iter().all(|told| text.contains(told) && all.contains(told)), "{text}\n{all}");
    assert!(!text.contains("elapsed time") && all.contains("elapsed time"), "{text}");
    for told in [
        "BOLT from Lineup's counts against BOLT from its own instrumented run: −1.00 % (−2.00 % to +0.00 %) user time",
        "If the gains of GCC PGO and BOLT from Lineup's counts added up, user time would change by −17.20 %; with both it \
         changes by −13.00 %.",
        "- functions in Lineup's order: by a tool. Effects compared and equal: standard output, exit status.",
        "Code of the test run",
        "of 15 blocks of runs, of this one link.",
    ] {
        assert!(all.contains(told), "{told}:\n{all}");
    }
    let page = study_page(&report);
    for told in ["Against the optimisers", "GCC PGO: the build failed", "added up"] {
        assert!(page.contains(told), "{told}");
    }
    let json: serde_json::Value = serde_json::from_str(&report.to_json().expect("JSON")).expect("valid");
    let mut names = BTreeSet::new();
    field_names(&json["code"]["optimisers"], &mut names);
    let documented = include_str!("../../../../docs/json.md");
    assert!(names.iter().all(|name| documented.contains(&format!("`{name}`"))), "{names:?}");
}
