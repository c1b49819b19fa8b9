//! What keys do, what is shown, and that no name steers a terminal: without one.

use lineup_model::region::RegionId;
use lineup_report::study::{LineMap, MemberUse, ObjectLines, Owner, OwnerKind, RegionReport, RegionUse};
use lineup_view::{CallRow, Key, List, Subject, View, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const HOSTILE: &str = "walk\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}\r\n\u{9b}31m";

fn region(name: &str) -> RegionReport {
    RegionReport {
        id: RegionId(0),
        name: name.into(),
        weight: 1.0,
        calls_recorded: 3,
        calls_made: None,
        calls_abandoned: 0,
        calls_per_second: None,
        instructions_per_call: None,
        footprints: Vec::new(),
        misses: Vec::new(),
        time: None,
    }
}

fn map(name: &str) -> LineMap {
    let member = |name: &str, offset, uses| MemberUse {
        name: name.into(),
        offset,
        size_bytes: 8,
        touched: Vec::new(),
        uses,
        sharing: None,
    };
    let hits = vec![RegionUse { region: 0, loads_per_call: 400.0, stores_per_call: 2.0 }];
    let members = [member("id", 0, Vec::new()), member("hits", 72, hits)];
    LineMap {
        owner: Owner { kind: OwnerKind::Type, name: name.into(), declared_at: None },
        line_bytes: 64,
        objects_per_call: Vec::new(),
        notes: Vec::new(),
        before: ObjectLines::new(128, 64, 0, &members),
        after: None,
    }
}

fn call(region: usize, number: u64, data_lines: u64) -> CallRow {
    CallRow {
        region,
        number,
        thread: 0,
        instructions: 100 - data_lines,
        data_lines,
        code_lines: 2,
        ended: None,
    }
}

fn subject() -> Subject {
    Subject {
        title: "calls.rec".into(),
        notes: vec!["The file was cut off after 900 bytes.".into()],
        regions: vec![region("walk"), region("list")],
        maps: vec![map("struct device"), map("struct node")],
        calls: vec![call(0, 0, 5), call(1, 0, 9), call(0, 1, 7)],
    }
}

/// The view on a terminal of so many cells.
fn shown(view: &View, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("cells");
    terminal
        .draw(|frame| {
            draw(view, frame);
        })
        .expect("drawn");
    let buffer = terminal.backend().buffer();
    let row = |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..rows).map(row).collect()
}

fn names(view: &View) -> Vec<String> {
    (0..view.rows()).filter_map(|index| view.row(index)).map(|row| row.name.trim().to_owned()).collect()
}

#[test]
fn a_function_opens_its_calls_and_back_shows_all_again() {
    let mut view = View::new(subject());
    assert_eq!(
        (view.list(), names(&view)),
        (List::Functions, vec!["A walk".to_owned(), "B list".to_owned()])
    );
    view.press(Key::Enter, 10);
    assert_eq!((view.list(), names(&view)), (List::Calls, vec!["#0 walk".to_owned(), "#1 walk".to_owned()]));
    assert!(view.heading().starts_with("2 calls of walk"), "{}", view.heading());
    view.press(Key::Back, 10);
    assert_eq!(view.list(), List::Functions);
    view.press(Key::List(List::Calls), 10);
    assert_eq!(view.rows(), 3);
}

#[test]
fn a_type_opens_its_lines_with_each_member_and_its_use() {
    let mut view = View::new(subject());
    view.press(Key::Next, 10);
    view.press(Key::Down, 10);
    view.press(Key::Enter, 10);
    assert_eq!((view.list(), view.heading()), (List::Lines, "lines of struct node".to_owned()));
    let expected =
        ["line 0: not touched", "id", "padding", "line 1: 8 of 64 bytes used", "padding", "hits", "padding"];
    assert_eq!(names(&view), expected);
    let hits = view.row(5).expect("the row");
    assert_eq!(hits.cells, ["72", "8", "written", "A 400L 2S"]);
    view.press(Key::Back, 10);
    assert_eq!((view.list(), view.chosen()), (List::Types, 1));
}

#[test]
fn calls_are_sorted_by_lines_then_by_instructions_then_as_they_were_made() {
    let mut view = View::new(subject());
    view.press(Key::List(List::Calls), 10);
    let mut orders = Vec::new();
    for _ in 0..4 {
        orders.push(names(&view).join(" "));
        view.press(Key::Sort, 10);
    }
    let as_made = "#0 walk #0 list #1 walk";
    assert_eq!(orders, [as_made, "#0 list #1 walk #0 walk", "#0 walk #1 walk #0 list", as_made]);
}

#[test]
fn the_chosen_row_stays_in_the_list_and_on_the_screen() {
    let mut view =
        View::new(Subject { calls: (0..1000).map(|number| call(0, number, 1)).collect(), ..subject() });
    view.press(Key::List(List::Calls), 10);
    for (key, row) in [
        (Key::Up, 0),
        (Key::PageDown, 10),
        (Key::Down, 11),
        (Key::Last, 999),
        (Key::PageDown, 999),
        (Key::PageUp, 989),
        (Key::First, 0),
    ] {
        view.press(key, 10);
        assert_eq!(view.chosen(), row, "{key:?}");
        let first = view.first_shown(10);
        assert!((first..first + 10).contains(&row) && first <= 990, "{key:?}: from {first}");
    }
    assert!(!view.press(Key::Quit, 10));
}

#[test]
fn nothing_recorded_is_said_and_no_key_panics() {
    let mut view = View::new(Subject::default());
    let keys =
        [Key::Enter, Key::Down, Key::Last, Key::PageUp, Key::Sort, Key::Back, Key::Next, Key::Previous];
    for list in List::ALL {
        for key in keys {
            view.press(Key::List(list), 10);
            view.press(key, 0);
            view.press(Key::List(list), 10);
            assert!(
                shown(&view, 40, 10).join("\n").contains("nothing was recorded here"),
                "{list:?} {key:?}"
            );
        }
    }
}

#[test]
fn names_cannot_steer_the_terminal() {
    let hostile = Subject {
        title: HOSTILE.into(),
        notes: vec![HOSTILE.into()],
        regions: vec![region(HOSTILE)],
        maps: vec![map(HOSTILE)],
        calls: vec![call(0, 0, 1)],
    };
    let mut view = View::new(hostile);
    for list in List::ALL {
        view.press(Key::List(list), 10);
        let mut texts = names(&view);
        texts.push(view.heading());
        texts.extend(view.notes());
        texts.extend(shown(&view, 120, 20));
        let acts = |c: char| c.is_control() || c == '\u{202e}';
        assert!(texts.iter().all(|text| !text.contains(acts)), "{texts:?}");
        assert!(texts.iter().any(|text| text.contains(r"\u{1b}[2J")), "{texts:?}");
    }
}

#[test]
fn every_size_of_terminal_shows_the_chosen_row_and_what_the_keys_do() {
    let long =
        "std::_Hashtable<std::pair<const char*, size_t>, std::allocator<char> >::_M_insert_unique_node";
    let mut view = View::new(Subject {
        regions: vec![region(long), region("名前名前名前名前名前名前名前")],
        ..subject()
    });
    for list in List::ALL {
        view.press(Key::List(list), 10);
        for columns in [1, 2, 20, 40, 80, 200] {
            for rows in [1, 2, 5, 10, 50] {
                let screen = shown(&view, columns, rows);
                assert_eq!(screen.len(), usize::from(rows));
            }
        }
        let screen = shown(&view, 40, 10);
        assert!(screen[0].contains(&format!("[{}]", list.name())), "{screen:?}");
        assert!(screen[9].contains("q"), "{screen:?}");
        let chosen = view.row(0).expect("a row").name;
        let beginning: String = chosen.chars().take(8).collect();
        assert!(screen.iter().any(|row| row.contains(beginning.trim())), "{chosen}: {screen:?}");
    }
    view.press(Key::List(List::Functions), 10);
    let screen = shown(&view, 40, 10);
    assert!(screen.iter().any(|row| row.contains('…')), "a name that does not fit says so: {screen:?}");
}

#[test]
fn what_is_not_listed_is_said() {
    let element = MemberUse {
        name: "all".into(),
        offset: 0,
        size_bytes: 1 << 20,
        touched: Vec::new(),
        uses: vec![RegionUse { region: 0, loads_per_call: 1.0, stores_per_call: 0.0 }],
        sharing: None,
    };
    let large = LineMap { before: ObjectLines::new(1 << 20, 64, 0, &[element]), ..map("struct table") };
    let (listed, not_listed) = (large.before.lines.len(), large.before.lines_not_listed);
    assert!(not_listed > 0);
    let mut view = View::new(Subject { maps: vec![large], ..subject() });
    view.press(Key::List(List::Types), 10);
    assert_eq!(view.row(0).expect("the type").cells[1], format!("{listed}+ of 16,384"));
    view.press(Key::List(List::Lines), 10);
    let last = view.row(view.rows() - 1).expect("a row").name;
    assert!(last.ends_with("more lines are not listed"), "{last}");
}
