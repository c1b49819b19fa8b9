//! The page of threads: who reads and writes each byte, in words and not by colour alone, and safe against hostile names.

use lineup_explain::threads::{
    Beside, BesideHot, BetweenThreads, CallWaits, CallsInWindows, FalseSharing, LineBetween, LockKind,
    LockPlaces, LockReport, LockSection, LockWait, Matrix, Needed, NeededData, NotSeen, Of, PairBetween,
    PartBetween, Remedy, SharedCounter, TaskBetween, TaskMatrix, ThreadSeen, UseOf, WaitedFor, Waits,
    WaitsByOrder,
};
use lineup_report::threads::{ThreadsReport, threads_page};
use scraper::{Html, Selector};

const HOSTILE: &str = "<script>alert(1)</script>\u{202e}";

fn waits(of_same_bytes: u64, of_line_alone: u64) -> Waits {
    Waits { of_same_bytes, of_line_alone }
}

fn between() -> BetweenThreads {
    let part = |offset, name: &str, readers: &[u32], writers: &[u32]| PartBetween {
        offset,
        size_bytes: 8,
        name: name.to_owned(),
        readers: readers.to_vec(),
        writers: writers.to_vec(),
    };
    let parts = vec![part(0, HOSTILE, &[0], &[0]), part(8, "b", &[0, 1], &[1]), part(12, "c", &[1], &[])];
    let by_order = WaitsByOrder { recorded: waits(1, 2000), fewest: waits(1, 0), most: waits(1, 9000) };
    let of =
        |thread| UseOf { thread, function: HOSTILE.into(), place: Some("a.c:7".into()), part: "b".into() };
    let thread = |thread| ThreadSeen {
        thread,
        calls: 1,
        accesses: 5000,
        accesses_to_shared_lines: 5000,
        time: 7,
        time_beside_others: 7,
        region: HOSTILE.into(),
    };
    BetweenThreads {
        line_bytes: 64,
        threads: vec![thread(0), thread(1)],
        of: Of::Threads,
        accesses: 10_000,
        waits: by_order,
        false_sharing: vec![FalseSharing {
            owners: vec![HOSTILE.into()],
            lines: 1,
            waits: by_order,
            per_thousand_accesses: 200.0,
            per_thousand_accesses_at_most: 900.0,
            parts: parts.clone(),
            remedy: Remedy::AlignAllocations,
        }],
        beside_hot: vec![BesideHot {
            owner: HOSTILE.into(),
            lines: 1,
            waits: 400,
            per_thousand_accesses: 40.0,
            read: vec![NeededData { name: HOSTILE.into(), waits: 400 }],
            written: vec![NeededData { name: HOSTILE.into(), waits: 400 }],
        }],
        lines: vec![LineBetween {
            process: 0,
            address: 0x1040,
            owners: vec![HOSTILE.into()],
            waits: by_order,
            invalidations: 3,
            transfers: 3,
            parts,
            pairs: vec![PairBetween { taken_by: of(0), needed_by: of(1), waits: waits(1, 2000) }],
        }],
        matrix: vec![Matrix { taken_by: 0, needed_by: 1, waits: waits(1, 2000) }],
        tasks: vec![TaskBetween {
            name: HOSTILE.into(),
            pid: Some(3),
            stack: Some(HOSTILE.into()),
            cpus: vec![0, 1],
            accesses_to_shared_lines: 9,
            took: waits(1, 2000),
            needed: waits(1, 2000),
        }],
        task_matrix: vec![TaskMatrix { taken_by: 0, needed_by: 0, waits: waits(1, 2000) }],
        calls_in_windows: vec![CallsInWindows {
            region: HOSTILE.into(),
            above_instructions: 100.0,
            usual: CallWaits { calls: 4, waits: by_order },
            tail: CallWaits { calls: 2, waits: by_order },
            data: vec![WaitedFor { name: HOSTILE.into(), usual: waits(2, 2), tail: waits(3, 3) }],
        }],
        counters: vec![SharedCounter { name: HOSTILE.into(), threads: 2, waits: 6 }],
        locks: vec![LockReport {
            name: HOSTILE.into(),
            kind: LockKind::CLibrary,
            address: 0x2000,
            taken: 7,
            held_time: 70,
            longest_held_time: 20,
            asked_time: 0,
            threads: 2,
            waits: vec![LockWait { thread: 1, waits_for: 0, times: 2, time: 30, longest_time: 20 }],
            sections: vec![LockSection { function: HOSTILE.into(), ..LockSection::default() }],
            line_waits: waits(4, 5),
            data_on_its_line: vec![HOSTILE.into()],
            needed_while_held: vec![Needed { name: HOSTILE.into(), waits: waits(6, 0) }],
            within: None,
            places: Some(LockPlaces {
                as_it_lies: waits(9, 9),
                alone: waits(8, 8),
                beside: Some(Beside { name: HOSTILE.into(), waits: waits(7, 7) }),
            }),
        }],
        placements: Vec::new(),
        in_pairs_of_lines: waits(1, 2000),
        not_seen: NotSeen::default(),
    }
}

#[test]
fn each_byte_says_who_reads_and_writes_it_in_words() {
    let between = between();
    let report = ThreadsReport {
        schema: "lineup.threads/1",
        recording: HOSTILE.into(),
        wait_cycles: 100,
        calls_cut: Some(1),
        between: &between,
    };
    let page = threads_page(&report, 5);
    assert!(!page.contains("<script") && !page.contains('\u{202e}'));
    let page = Html::parse_document(&page);
    let selector = Selector::parse(".bytes .cell").expect("a selector");
    let cells: Vec<(String, String)> = page
        .select(&selector)
        .map(|cell| (cell.attr("class").unwrap_or_default().to_owned(), cell.text().collect::<String>()))
        .collect();
    assert!(cells[0].0.ends_with("thread0") && cells[0].1.ends_with("R 0 W 0"), "{cells:?}");
    assert!(cells[1].0.ends_with("shared") && cells[1].1.starts_with('⇄'), "{cells:?}");
    assert!(cells[1].1.ends_with("R 0 1 W 1"), "{cells:?}");
    // Where two accesses overlap both names stand, and the second half of `c` is read only.
    assert!(cells[2].1.contains("b, c") && cells[3].0.ends_with("cold"), "{cells:?}");
    let locks = Selector::parse("#locks td").expect("a selector");
    let locks: Vec<String> = page.select(&locks).map(|cell| cell.text().collect()).collect();
    assert!(locks.contains(&"thread 1 for 0: 2 ×, 30 cycles".to_owned()), "{locks:?}");
    let lines = Selector::parse(".line").expect("a selector");
    let label = page.select(&lines).next().and_then(|line| line.attr("aria-label")).expect("a label");
    assert!(label.contains("bytes 8 to 11: b, R 0 1 W 1"), "{label}");
}

#[test]
fn a_lock_that_all_threads_hold_for_most_of_their_time_serialises_them() {
    let with = |time: u64, held_time: u64, asked_time: u64, threads: u64, kind| {
        let mut between = between();
        between.threads.iter_mut().for_each(|thread| thread.time = time);
        let lock = &mut between.locks[0];
        (lock.held_time, lock.asked_time, lock.threads, lock.kind) = (held_time, asked_time, threads, kind);
        between
    };
    let busy = with(500, 600, 100, 2, LockKind::CLibrary);
    let found = busy.serialising();
    assert_eq!((found.len(), found[0].held, found[0].asked), (1, 0.6, 0.1));
    assert_eq!(found[0].most_threads(), Some(1.5), "nine tenths are work, six of them with the lock");
    let waited_for = with(500, 20, 400, 2, LockKind::SpinLoop);
    assert_eq!(waited_for.serialising().first().map(|one| one.most_threads()), Some(None));
    assert_eq!(with(500, 400, 0, 2, LockKind::CLibrary).serialising(), [], "two threads have room for both");
    assert_eq!(with(500, 20, 20, 2, LockKind::CLibrary).serialising(), []);
    assert_eq!(with(500, 600, 0, 1, LockKind::CLibrary).serialising(), [], "of one thread alone");
    assert_eq!(
        with(500, 600, 0, 2, LockKind::CLibraryReadWrite).serialising(),
        [],
        "readers have it together"
    );
}

#[test]
fn what_a_study_has_no_edit_for_is_not_said_to_be_tried() {
    let variables = |count: u64| Remedy::AlignVariables {
        variables: Vec::new(),
        places: (0..count).map(|at| (0, variable(at))).collect(),
    };
    fn variable(at: u64) -> lineup_model::usage::VariableRef {
        lineup_model::usage::VariableRef { name: format!("v{at}"), address: 8 * at, size_bytes: 8 }
    }
    assert!(variables(2).has_edit() && !variables(17).has_edit() && !variables(0).has_edit());
    assert!(!Remedy::AlignAllocations.has_edit());
    assert!(!Remedy::SpreadArray { variable: "a".into(), place: None }.has_edit());
}
