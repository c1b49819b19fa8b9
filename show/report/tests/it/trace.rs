//! Reports on the tracer's traces: every figure with its table, and hostile names are text.

use lineup_report::text::{Extent, SCREEN_LINES, TextStyle};
use lineup_report::trace::{TracedRun, attributions_text, high_water_listing, trace_page, traces_text};
use lineup_trace::attribution::{Attribution, attribute};
use lineup_trace::estimate::Level;
use lineup_trace::layout::mode;
use lineup_trace::tail::Tail;
use lineup_trace::{Arm, Event, HighWater, Histogram, Kind, Name, NameKind, Rung, ThreadTrace, Trace};
use scraper::{Html, Selector};

const HOSTILE: &str = "<script>alert(1)</script>\u{1b}[2J\u{202e}\"'&";

fn event(number: u64, name: u16, kind: Kind, arm: Arm, duration_ns: u64, lock_wait_ns: u64) -> Event {
    Event {
        number,
        kind,
        name,
        start_ns: 1_000 * number,
        duration_ns,
        lock_wait_ns,
        argument: 0,
        cpu: None,
        arm,
        depth: 0,
        counters: [duration_ns as u32 / 3, 0, 0, 0],
    }
}

/// A region of that name whose calls have these arms in turn, a lock that sometimes waits, and a new maximum.
fn run(name: &str, arms: &[Arm]) -> TracedRun {
    let call = |number: u64| {
        let arm = arms[number as usize % arms.len()];
        let slow = if number % 20 == 3 { 4_000 } else { 0 };
        let added = if arm == Arm::FlushCode { 700 } else { 0 };
        event(number, 0, Kind::Region, arm, 1_000 + number * 37 % 400 + slow + added, number % 7 * 30)
    };
    let locks = (0..100).map(|number| event(5_000 + number, 1, Kind::Lock, Arm::None, 200, number % 3 * 50));
    let names = [(0, NameKind::Region), (1, NameKind::Lock), (2, NameKind::Mark)].map(|(index, kind)| Name {
        index,
        text: name.to_owned(),
        kind,
        arms_mask: u32::from(kind == NameKind::Region),
        code: None,
        data: None,
        give_up_ns: 0,
    });
    let inner = vec![event(2, 2, Kind::Mark, Arm::None, 0, 0)];
    let events: Vec<Event> = (0..2_000).map(call).chain(locks).collect();
    let thread = ThreadTrace {
        tid: 7,
        name: name.to_owned(),
        high_water: vec![HighWater { event: events[3], inner, inner_dropped: 0 }],
        events,
        losses: Default::default(),
        histograms: Vec::new(),
    };
    let trace = Trace {
        pid: 1,
        rung: Rung::SoftwareEvents,
        counters: [Some(name.to_owned()), None, None, None],
        modes: mode::EVENTS,
        stops_when_full: false,
        start_ns: 0,
        start_realtime_ns: 0,
        uses_counter: true,
        names: names.to_vec(),
        names_refused: 0,
        threads: vec![thread],
        threads_refused: 0,
        lost_without_area: 0,
    };
    TracedRun { label: name.to_owned(), trace }
}

fn causes(run: &TracedRun) -> Vec<Attribution> {
    vec![attribute(&run.trace, &run.label, Tail::default(), Level::default()).expect("the region is there")]
}

fn count(page: &str, selector: &str) -> usize {
    Html::parse_document(page).select(&Selector::parse(selector).expect("a selector")).count()
}

#[test]
fn the_page_has_every_figure_and_each_has_its_table() {
    let tried = run("tick", &[Arm::None, Arm::FlushCode, Arm::PrefetchCode, Arm::RemoveAll]);
    let page = trace_page(&[run("tick", &[Arm::None]), tried.clone()], &causes(&tried));
    for anchor in ["causes", "modes", "distributions", "scattergrams", "maxima", "recorded"] {
        assert_eq!(count(&page, &format!("section#{anchor}")), 1, "{anchor}");
    }
    // Duration, lock wait and one counter: two runs over each other, then four arms; each unscaled and rescaled.
    assert_eq!(count(&page, "#distributions figure"), 3 * 2 * 2);
    assert_eq!(count(&page, "#distributions path.outline[d^=M52]"), 3 * 2 * 2 * (2 + 4));
    // Against lock wait and against the counter.
    assert_eq!(count(&page, "#scattergrams svg.chart"), 2);
    assert_eq!(count(&page, "figure"), count(&page, "figure details table"));
    assert_eq!(count(&page, "#recorded tbody tr"), 2);
    assert!(page.contains("unexplained") && page.contains("flush code, 500 calls"));
}

#[test]
fn hostile_names_are_text() {
    let hostile = run(HOSTILE, &[Arm::None, Arm::FlushCode]);
    let page = trace_page(&[hostile.clone(), hostile.clone()], &causes(&hostile));
    assert_eq!(count(&page, "script"), 0);
    assert!(page.contains("&lt;script&gt;") && page.contains("default-src 'none'"));
    let texts = [
        traces_text(std::slice::from_ref(&hostile), TextStyle::Plain, Extent::All),
        attributions_text(&causes(&hostile), TextStyle::Plain, Extent::All),
        high_water_listing(&hostile.trace),
    ];
    for text in texts.iter().chain([&page]) {
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
    }
    for text in &texts {
        assert!(text.contains(r"\u{202e}"), "{text}");
    }
}

/// A trace of histograms alone has counts and no calls.
#[test]
fn histograms_are_shown_with_their_counts() {
    let mut only = run("tick", &[Arm::None]);
    only.trace.modes = mode::HISTOGRAMS;
    let mut histogram = Histogram::default();
    histogram.add(1_000, 3_000_000_000);
    histogram.add(9_000, 5);
    only.trace.threads[0] = ThreadTrace {
        events: Vec::new(),
        high_water: Vec::new(),
        histograms: vec![(0, 0, histogram)],
        ..only.trace.threads[0].clone()
    };
    let page = trace_page(&[only], &[]);
    assert!(page.contains("3,000,000,005 calls"));
    assert_eq!(count(&page, "#distributions figure"), 1);
    assert_eq!(count(&page, "#scattergrams"), 0);
}

#[test]
fn an_empty_trace_is_a_page() {
    let mut empty = run("tick", &[Arm::None]);
    empty.trace.threads.clear();
    let page = trace_page(&[empty], &[]);
    assert!(count(&page, "#recorded") == 1 && count(&page, "figure") == 0, "{page}");
    assert!(!page.contains("NaN"));
}

#[test]
fn first_screens_have_at_most_40_lines_of_80_characters_however_much_was_traced() {
    let long =
        "std::_Hashtable<std::pair<const char*, size_t>, std::allocator<char> >::_M_insert_unique_node";
    let screen = TextStyle::Terminal { columns: 80 };
    for count in [1, 3, 60] {
        let tried = run(long, &[Arm::None, Arm::FlushCode]);
        let causes = vec![causes(&tried).remove(0); count];
        let runs = vec![tried; count];
        for style in [screen, TextStyle::Plain] {
            let texts = [
                traces_text(&runs, style, Extent::FirstScreen),
                attributions_text(&causes, style, Extent::FirstScreen),
            ];
            for text in &texts {
                assert!(text.lines().count() <= SCREEN_LINES, "{text}");
                let fits =
                    |line: &str| line.chars().count() <= 80 || line.split(' ').any(|word| word == long);
                assert!(style == TextStyle::Plain || text.lines().all(fits), "{text}");
            }
            assert!(texts[0].contains("--full") && texts[0].contains("median"), "{}", texts[0]);
        }
        let all = traces_text(&runs, screen, Extent::All);
        assert!(all.matches("wait ns").count() == 2 * count && all.contains("# start"), "{all}");
    }
}
