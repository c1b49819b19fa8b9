//! The page of `lineup find`: names may hold anything, and every link leads somewhere.

use lineup_find::{
    AllocationPair, AllocationStalls, BetweenThreads, BurstShare, BurstShares, Bursts, BurstsTaken,
    ClassShare, ClockContradiction, ContextStalls, Coverage, Evidence, Finding, Findings, Footprint,
    FunctionLines, HugePages, Kind, LaidMember, LockWaits, MemberMap, MemberStalls, NoFinding, OwnerStalls,
    PageCosts, PageStalls, PairedSite, ParallelArrays, PlacementKind, PlacementTrial, Placements, Ranked,
    Sample, Sign, Stack, StackObject, Stalls, Stretch, ThreadWaits, TimeSource, Trial, WithoutFinding,
};
use lineup_report::find::{find_page, words};
use scraper::{Html, Selector};

const HOSTILE: &str = "</style><script>alert(1)</script>\u{202e}<b title='x'>";

fn member(path: &str, offset: u64, offset_after: Option<u64>, uses: &[(usize, f64, f64)]) -> LaidMember {
    LaidMember { path: path.to_owned(), offset, size_bytes: 8, offset_after, uses: uses.to_vec() }
}

/// A type with three members, of which only the second is used.
fn finding(name: &str) -> Finding {
    Finding {
        subject: Some(name.to_owned()),
        kind: Kind::Order,
        stalls: 0.5,
        gain: 0.25,
        gains: vec![0.25, -0.01],
        sign: Sign::DependsOn(vec!["small".to_owned()]),
        evidence: Evidence::Type {
            size_bytes: 80,
            lines: 2,
            largest_variant: None,
            lines_needed: 1,
            used_bytes: 8,
            hole_bytes: 0,
            used: vec![HOSTILE.to_owned()],
            unused: 2,
            objects: 7,
            in_arrays: 0.5,
            used_bytes_per_line: Some(8.0),
        },
        trials: vec![Trial { kind: Kind::Order, gain: 0.25 }, Trial { kind: Kind::Columns, gain: 0.2 }],
        functions: vec![HOSTILE.to_owned()],
        next: format!("lineup study --region '{HOSTILE}' -- ./a"),
        by_hand: Some(format!("by hand: {HOSTILE}")),
        is_written: false,
        instead: None,
        map: Some(MemberMap {
            size_bytes: 80,
            size_bytes_after: Some(80),
            line_bytes: 64,
            start_in_line: None,
            functions: vec![HOSTILE.to_owned()],
            members: vec![
                member("first", 0, Some(8), &[]),
                member(HOSTILE, 72, Some(0), &[(0, 30.0, 10.0)]),
                member("last", 8, None, &[]),
            ],
        }),
        clock: Some(ClockContradiction {
            function: HOSTILE.to_owned(),
            of_subject: 1.0,
            of_cycles: 0.22,
            share: 0.49,
            low: 0.47,
            high: 0.51,
        }),
    }
}

const WAITS: ThreadWaits = ThreadWaits { of_same_bytes: 1.0, of_line_alone: 20.0 };

const PAGES: PageStalls =
    PageStalls { first_touches: 3, dtlb_l1_misses: 20, dtlb_l2_misses: 5, stall_cycles: 4755 };

fn placement(kind: PlacementKind, gain: f64) -> PlacementTrial {
    PlacementTrial {
        kind,
        can_be_made: kind.can_be_made(),
        l1_misses: 40,
        l2_misses: 20,
        dtlb_l1_misses: 10,
        dtlb_l2_misses: 5,
        pages: 2,
        stall_cycles: 5e8,
        touch_cycles: 1e6,
        gain,
        more_bytes: -2048,
    }
}

/// Two threads that use different members.
fn fight() -> Finding {
    Finding {
        kind: Kind::OwnLines,
        gains: vec![0.25],
        sign: Sign::Steady,
        evidence: Evidence::Fight {
            lines: 1,
            threads: 2,
            of_one_object: true,
            members: vec![HOSTILE.to_owned()],
            waits: WAITS,
        },
        trials: vec![Trial { kind: Kind::OwnLines, gain: 0.25 }],
        map: None,
        ..finding(HOSTILE)
    }
}

/// A type whose objects lie in the first level.
fn footprint() -> Footprint {
    let Finding { kind, evidence, functions, next, by_hand, map, .. } = finding("resident");
    let lines = FunctionLines {
        function: HOSTILE.to_owned(),
        time: 0.3,
        per: Stretch::Call,
        stretches: 100,
        lines: 4.0,
        lines_after: 1.0,
    };
    Footprint {
        subject: "resident".to_owned(),
        kind,
        time: 0.3,
        bound: 0.2,
        lines: vec![lines],
        split_accesses: 0.125,
        evidence,
        functions,
        next,
        by_hand,
        map,
    }
}

fn findings() -> Findings {
    let frames = ["data", HOSTILE, "used", "f"].map(str::to_owned).to_vec();
    Findings {
        schema: "lineup.find/1",
        command: vec![HOSTILE.to_owned()],
        recorder: HOSTILE.to_owned(),
        caches: vec!["l1d=32K,8,64".to_owned()],
        l2_cycles: 14,
        memory_cycles: 200,
        instructions: 1000,
        stalls: Stalls { code_cycles: 100, data_cycles: 900 },
        pages: Some(PAGES),
        page_costs: PageCosts::default(),
        coverage: Coverage {
            of_all: Some(1.0),
            named: Some(1.0),
            lack: None,
            classes: vec![ClassShare { class: "member", share: 1.0 }],
        },
        sample: Sample { windows: 1, accesses: 10, of_accesses: 10, stall_cycles: 1000 },
        configurations: vec!["as modelled".to_owned(), "small".to_owned()],
        findings: vec![finding(HOSTILE), finding("other"), fight()],
        footprints: vec![footprint()],
        ranking: [0, 1]
            .map(Ranked::Findings)
            .into_iter()
            .chain([Ranked::Footprints(0), Ranked::Findings(2)])
            .collect(),
        allocation_pairs: vec![AllocationPair {
            function: HOSTILE.to_owned(),
            sites: [120, 240].map(|bytes| PairedSite { line: HOSTILE.to_owned(), objects: 10, bytes }),
            together: 0.75,
            accesses: 0.3,
            share: 0.4,
        }],
        stack_objects: vec![StackObject {
            name: HOSTILE.to_owned(),
            variables: vec![HOSTILE.to_owned()],
            size_bytes: 16_024,
            used_bytes: 140,
            accesses: 0.2,
            functions: vec![HOSTILE.to_owned()],
        }],
        parallel_arrays: vec![ParallelArrays {
            names: vec![HOSTILE.to_owned(), "other".to_owned()],
            function: HOSTILE.to_owned(),
            size_bytes: 8,
            lines: 2.0,
            lines_after: 1.0625,
            accesses: 0.1,
            share: 0.2,
        }],
        locks: vec![LockWaits {
            name: HOSTILE.to_owned(),
            functions: vec![HOSTILE.to_owned()],
            waits: WAITS,
            share: 0.4,
            next: HOSTILE.to_owned(),
        }],
        below_threshold: 1,
        time_source: TimeSource::Clock,
        without_finding: vec![WithoutFinding {
            name: HOSTILE.to_owned(),
            share: 0.1,
            time: 0.2,
            reason: NoFinding::NoGain,
            by_hand: Some(format!("by hand: {HOSTILE}")),
        }],
        owners: vec![OwnerStalls {
            name: HOSTILE.to_owned(),
            class: "member",
            size_bytes: Some(80),
            accesses: 40.0,
            l1_misses: 4.0,
            l2_misses: 4.0,
            stall_cycles: 900.0,
            share: 0.9,
            time: 0.4,
            used_bytes_per_line: Some(8.0),
            thread_waits: Some(WAITS),
            members: vec![MemberStalls {
                path: "used".to_owned(),
                stall_cycles: 900.0,
                share: 0.9,
                ..MemberStalls::default()
            }],
            functions: vec![(HOSTILE.to_owned(), 1.0)],
        }],
        allocation_sites: Some(vec![AllocationStalls {
            function: HOSTILE.to_owned(),
            image: HOSTILE.to_owned(),
            line: Some(HOSTILE.to_owned()),
            caller: Some(HOSTILE.to_owned()),
            chains: 1,
            objects: 2,
            bytes: 160,
            most_bytes: 80,
            accesses: 40.0,
            l1_misses: 4,
            l2_misses: 4,
            stall_cycles: 900,
            share: 0.9,
            used_bytes_per_line: None,
            taken_bytes: Some(192),
            pages: Some(PAGES),
            live_bytes_per_line: Some(53.0),
            visits_in_order: Some(0.5),
            types: vec![(HOSTILE.to_owned(), 1.0)],
        }]),
        huge_pages: None,
        placements: Some(Placements {
            instructions: 1_000_000_000,
            first_touches: 0,
            large_pages: 0,
            objects: 3,
            unobserved: 0.0,
            as_is: placement(PlacementKind::AsIs, 0.0),
            trials: vec![
                placement(PlacementKind::FirstVisit, 0.5),
                placement(PlacementKind::PoolsBySize, 0.25),
            ],
            gains: vec![0.25, -0.01],
            next: format!("lineup study --placement -- '{HOSTILE}'"),
        }),
        between_threads: Some(BetweenThreads { threads: 2, wait_cycles: 100.0, waits: WAITS }),
        contexts: Some(vec![ContextStalls {
            cpu: 1,
            is_interrupt: false,
            task: Some(HOSTILE.to_owned()),
            pid: Some(7),
            stack: Some(HOSTILE.to_owned()),
            stalls: Stalls { code_cycles: 100, data_cycles: 900 },
            share: 1.0,
            functions: vec![(HOSTILE.to_owned(), 1.0)],
        }]),
        functions: Vec::new(),
        stacks: vec![
            Stack { frames, cycles: 900 },
            Stack { frames: vec!["code".to_owned(), HOSTILE.to_owned()], cycles: 100 },
        ],
        clock_samples: None,
        clock_event: None,
        forked: None,
        bursts: Some(Bursts {
            taken: BurstsTaken { process: 7, bursts: 9, kept: 9, ..BurstsTaken::default() },
            shares: BurstShares {
                owners: vec![BurstShare {
                    name: HOSTILE.to_owned(),
                    share: 0.5,
                    low: Some(0.4),
                    high: Some(0.6),
                    if_hits: 0.3,
                    if_misses: 0.7,
                }],
                ..BurstShares::default()
            },
        }),
        notes: vec![HOSTILE.to_owned()],
    }
}

fn page() -> Html {
    Html::parse_document(&find_page(&findings(), HOSTILE, HOSTILE))
}

fn count(page: &Html, selector: &str) -> usize {
    page.select(&Selector::parse(selector).unwrap()).count()
}

#[test]
fn names_stay_text() {
    let text = find_page(&findings(), HOSTILE, HOSTILE);
    let page = page();
    assert_eq!((count(&page, "script"), count(&page, "[title=x]"), count(&page, "style")), (0, 0, 1));
    assert!(!text.contains('\u{202e}') && text.contains("alert(1)"));
}

#[test]
fn every_link_leads_to_something_on_the_page() {
    let page = page();
    let mut links = 0;
    for link in page.select(&Selector::parse("a[href]").unwrap()) {
        let target = link.value().attr("href").unwrap().strip_prefix('#').expect("a place on the page");
        let ids = Selector::parse("[id]").unwrap();
        let found = page.select(&ids).filter(|at| at.value().id() == Some(target));
        assert_eq!(found.count(), 1, "{target}");
        links += 1;
    }
    // The contents, the way past them, the type's box, and the commands of all findings but the first.
    assert_eq!(links, 8 + 1 + 1 + 3);
}

#[test]
fn a_finding_has_the_lines_of_its_type_before_and_after() {
    let page = page();
    // Before, the used member is on the second line; after, on the first. All three findings of types have both.
    let heads: Vec<String> =
        page.select(&Selector::parse(".line-head b").unwrap()).map(|head| head.text().collect()).collect();
    assert_eq!(heads, ["line 1", "line 0", "line 1", "line 0", "line 1", "line 0"]);
    assert_eq!(count(&page, ".stacks .d0"), 2);
    let share: String =
        page.select(&Selector::parse(".stacks .d1 b").unwrap()).next().unwrap().text().collect();
    assert_eq!(share, "90.0 %");
}

#[test]
fn each_row_of_owners_has_a_cell_for_each_head() {
    let page = page();
    let cells = |selector: &str| -> Vec<String> {
        page.select(&Selector::parse(selector).unwrap()).map(|cell| cell.text().collect()).collect()
    };
    let (heads, row) = (cells("#data th"), cells("#data-1 td"));
    assert_eq!(heads.len(), row.len());
    assert_eq!((heads[0].as_str(), heads[1].as_str()), ("stalls", "what"));
    assert!(row[0] == "90.0 %" && row[1].ends_with(" 80 B"), "{row:?}");
}

#[test]
fn what_threads_fight_over_is_told_without_caches_to_choose_from() {
    let page = page();
    let text: String = page.root_element().text().collect();
    assert!(
        text.contains("2 threads wait 20 times for 1 line of which none uses another's bytes, and once for"),
        "{text}"
    );
    assert!(
        text.contains("2 threads, side by side at one pace, wait once for bytes of each other and 20 times"),
        "{text}"
    );
    assert!(text.contains("of modelled stalls and waits of threads, upper bound"), "{text}");
    // The caches that a gain was tried under, of the other two.
    assert_eq!(text.matches("Under 2 caches").count(), 2);
}

#[test]
fn what_has_no_name_is_said_first_and_is_no_all_clear() {
    let with = |named: f64, class: &'static str| {
        let mut findings = findings();
        findings.coverage.of_all = Some(named);
        findings.owners[0].class = class;
        findings.owners[0].functions = vec![("poll".to_owned(), 1.0)];
        findings.findings.clear();
        findings.footprints.clear();
        findings.ranking.clear();
        findings
    };
    let much = with(0.0055, "unnamed");
    let first = words::unjudged(&much).expect("nearly nothing has a name");
    assert!(first.starts_with("99.5 % of modelled stalls") && first.contains("in poll"), "{first}");
    assert!(words::nothing_found(&much).contains("99.5 % of modelled stalls have no name"));
    assert!(find_page(&much, "a", "a").contains("without a name in poll"));
    let mut undescribed = much.clone();
    undescribed.coverage.lack = Some("no debug information; build with -g");
    let first = words::unjudged(&undescribed).expect("nothing has a type");
    assert!(first.contains("whose types are not known (no debug information; build with -g)"), "{first}");
    let mut computing = much.clone();
    computing.instructions = 1_000_000_000;
    computing.between_threads = None;
    assert!(
        words::nothing_found(&computing).starts_with("nothing is worth fixing"),
        "hardly anything stalls"
    );
    let little = words::little_to_win(&computing).expect("hardly anything stalls");
    assert!(little.starts_with("< 0.01 % of the modelled cycles stall"), "{little}");
    assert!(find_page(&computing, "a", "a").contains("of the modelled cycles stall"));
    assert_eq!(words::little_to_win(&much), None);
    let little = with(0.995, "member");
    assert_eq!(words::unjudged(&little), None);
    assert!(words::nothing_found(&little).starts_with("nothing is worth fixing"));
}

#[test]
fn what_the_clock_says_against_the_model_stands_with_the_finding() {
    let against = words::against_model(&finding("entry")).expect("the clock contradicts the model");
    assert!(
        against.contains("takes 49.0 % of the time [47.0 %, 51.0 %]") && against.contains("22.0 %"),
        "{against}"
    );
    let text: String = page().root_element().text().collect();
    assert!(text.contains("the clock contradicts the model"));
}

/// It says that fewer lines are no stalls, and that the first level may hold them.
#[test]
fn a_type_that_does_not_stall_has_its_lines_by_function() {
    let page = page();
    let text = |selector: &str| -> String {
        page.select(&Selector::parse(selector).unwrap()).flat_map(|part| part.text()).collect()
    };
    let third = text("#finding-3");
    assert!(
        third.contains("resident") && third.contains("30.0 % of the time; lines 4 → 1 per call of "),
        "{third}"
    );
    assert!(
        third.contains("these are no stalls, and no time is promised")
            && third.contains("12.5 % of its accesses cross the end of a line"),
        "{third}"
    );
    let without = words::without_finding(&findings().without_finding[0], TimeSource::Model);
    assert!(
        without.contains(", 20.0 % of the modelled cycles, 10.0 % of modelled stalls, has no finding: "),
        "{without}"
    );
}

#[test]
fn what_a_person_changes_by_hand_has_its_evidence_and_its_edit() {
    let [pair, arrays, object] = words::habits(&findings()).try_into().expect("three");
    let [lock] = words::locks(&findings()).try_into().expect("one");
    assert!(lock[1].starts_with("they wait 21 times for its word, 40.0 % of all their waits"), "{lock:?}");
    assert!(
        pair[0].contains(": 10 objects of 12 B at ") && pair[0].contains(", and 10 objects of 24 B at "),
        "{pair:?}"
    );
    assert!(pair[1].ends_with("; 75.0 % of the visits of one are with the other"), "{pair:?}");
    assert!(arrays[0].contains("2 arrays with the same index: 2 → 1.06 lines for each index"), "{arrays:?}");
    assert!(object[0].contains(": 16,024 bytes on the stack, of which 140 are used"), "{object:?}");
    let text: String = page().root_element().text().collect();
    assert!([&pair, &arrays, &object].iter().all(|habit| text.contains(&habit[2])), "{text}");
    assert!(lock[2].strip_prefix(words::NEXT).is_some_and(|command| text.contains(command)), "{text}");
}

/// The best placement that can be made comes first, and the one that none can make is named as such.
#[test]
fn a_placement_is_a_finding_with_its_next_command() {
    let lines = words::placement(&findings());
    assert_eq!(
        lines[0],
        "heap: upper bound −25.00 % of stalls for caches and pages with pools by size, without headers; about \
         2 KiB of memory less"
    );
    assert_eq!(
        lines[2],
        "else objects in the order of their first visit −50.00 %, which no allocator can make"
    );
    assert_eq!(lines[3], "under 2 caches from +1.00 % to −25.00 %");
    assert!(lines[4].starts_with("→ lineup study --placement -- "), "{lines:?}");
    let without = Findings { placements: None, ..findings() };
    assert!(words::placement(&without).is_empty());
    let next = "lineup study --placement -- ./a".to_owned();
    let huge_pages = Some(HugePages { share: 0.77, gain: 0.7, next });
    let of_pages = Findings { huge_pages, ..without };
    let lines = words::placement(&of_pages);
    assert_eq!(
        lines[0],
        "pages: 77.0 % of the modelled cycles, at best −70.00 % with huge pages for all memory"
    );
    assert_eq!(lines[2], "→ lineup study --placement -- ./a");
    assert!(find_page(&of_pages, "a", "a").contains("lineup study --placement -- ./a"));
}
