//! Advice for planted services, with one known best order or none.

use crate::planted::{Recorded, Together, labels, new_store, of, words};
use lineup_advise::order_file;
use lineup_fleet::FleetError;
use lineup_fleet::advise::{self, Answer, FleetAdvice, Question, ServiceLines, Weigh};
use lineup_fleet::engine::{Engine, MEMORY_BYTES};
use lineup_fleet::store::Store;
use lineup_model::line::LineSize;
use serde_json::json;

const MEMBERS: [&str; 24] = [
    "alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett", "kilo",
    "lima", "mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango", "uniform", "victor",
    "whiskey", "xray",
];

fn question(weigh: Weigh) -> Question {
    Question { type_name: "task".into(), weigh, least_share: 0.01, pins: Vec::new(), line: LineSize::B64 }
}

fn recorded<'r>(number: u64, per_second: Option<f64>, together: &'r [Together<'r>]) -> Recorded<'r> {
    Recorded {
        number,
        build_id: "01",
        region: "serve",
        calls_per_second: per_second,
        data_lines: 1.0,
        layout: words("task", "01", &MEMBERS),
        together,
    }
}

/// A recording of one service on one host.
fn add(store: &Store, number: u64, service: &str, per_second: Option<f64>, together: &[Together<'_>]) {
    let recorded = recorded(number, per_second, together);
    store.add(&recorded.input(&labels(service, "one", ("c1", 1)))).expect("added");
}

fn ask(store: &Store, question: &Question) -> FleetAdvice {
    let engine = Engine::over(store, MEMORY_BYTES).expect("an engine");
    advise::advise(&engine, question).expect("advice")
}

fn service<'a>(advice: &'a FleetAdvice, name: &str) -> &'a ServiceLines {
    advice.services.iter().find(|one| one.service == name).expect("the service")
}

#[test]
fn the_best_common_order_of_three_services_is_found() {
    let (_folder, store) = new_store();
    add(&store, 1, "web", Some(1000.0), &[(&[0, 9], 50)]);
    add(&store, 2, "batch", Some(10.0), &[(&[9, 17], 50)]);
    add(&store, 3, "index", Some(300.0), &[(&[17, 23], 40), (&[23], 10)]);
    let advice = ask(&store, &question(Weigh::Calls));
    let Answer::Order { order, .. } = &advice.answer else { panic!("{advice:?}") };
    // Four members that are used fit on one line, so that no call needs two.
    let line = |member: &str| order.iter().position(|own| own == member).expect("the member") / 8;
    let lines: Vec<usize> = ["alpha", "juliett", "romeo", "xray"].into_iter().map(line).collect();
    assert_eq!(lines, [lines[0]; 4], "{order:?}");
    for one in &advice.services {
        assert_eq!((one.after, one.at_best), (1.0, 1.0), "{one:?}");
    }
    assert_eq!(service(&advice, "web").before, 2.0);
    assert!((service(&advice, "index").before - 1.0).abs() < 1e-9, "both lie on the third line");
    assert_eq!(advice.recordings, 3);
    let written = advise::order_file(&advice).expect("an order");
    let read = order_file::parse("fleet.order", &written).expect("what lineup advise --order reads");
    let names: Vec<&str> = read[0].items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!((read[0].type_name.as_str(), names), ("task", order.iter().map(String::as_str).collect()));
}

/// The first and the last member are used, and bytes behind the objects as well.
#[test]
fn a_line_that_calls_need_anyway_is_not_saved() {
    let (_folder, store) = new_store();
    let mut document = recorded(1, Some(1.0), &[(&[0, 23], 50)]).document();
    document["uses"][0]["patterns"][0]["needed_anyway"] =
        json!({ "first": [0, 0, 0], "last": [0, 50, 50], "both": [0, 0, 0] });
    store.add(&of(&document.to_string(), &labels("web", "one", ("c1", 1)))).expect("added");
    let advice = ask(&store, &question(Weigh::Calls));
    let Answer::Order { order, .. } = &advice.answer else { panic!("{advice:?}") };
    let line = |member: &str| order.iter().position(|own| own == member).expect("the member") / 8;
    assert_eq!((line("alpha"), line("xray")), (2, 2), "{order:?}");
    let one = service(&advice, "web");
    assert_eq!((one.before, one.after), (1.0, 0.0));
}

/// Six members are common to both, three are one service's and three the other's: nine do not fit on a line of eight.
const WEB: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
const BATCH: [usize; 8] = [2, 3, 4, 5, 6, 7, 8, 9];

#[test]
fn services_that_conflict_are_told_so() {
    let (_folder, store) = new_store();
    add(&store, 1, "web", Some(100.0), &[(&WEB, 50)]);
    add(&store, 2, "batch", Some(900.0), &[(&BATCH, 50)]);
    let advice = ask(&store, &question(Weigh::Calls));
    let Answer::Refused { losers, .. } = &advice.answer else { panic!("{advice:?}") };
    assert_eq!(losers, &["web"]);
    let (web, batch) = (service(&advice, "web"), service(&advice, "batch"));
    assert_eq!((web.before, web.after, web.at_best), (1.0, 2.0, 1.0));
    assert_eq!((batch.before, batch.after, batch.at_best), (2.0, 1.0, 1.0));
    let told = advise::text(&advice);
    assert!(
        told.starts_with("task: no order was found that is good for all services that matter."),
        "{told}"
    );
    assert!(told.contains("web would need more than now"), "{told}");
    assert_eq!(advise::order_file(&advice), None, "what is refused is not written");
}

#[test]
fn a_service_that_is_too_small_to_matter_is_not_asked_but_told() {
    let (_folder, store) = new_store();
    add(&store, 1, "web", Some(1.0), &[(&WEB, 50)]);
    add(&store, 2, "batch", Some(900.0), &[(&BATCH, 50)]);
    let advice = ask(&store, &question(Weigh::Calls));
    assert!(matches!(advice.answer, Answer::Order { .. }), "{advice:?}");
    let web = service(&advice, "web");
    assert!(web.loses() && !web.matters, "{web:?}");
}

#[test]
fn an_order_that_is_a_little_worse_over_all_is_taken_when_nobody_loses_with_it() {
    let (_folder, store) = new_store();
    // Web's members lie on one line. Batch and scan want members that do not fit on web's line, along with some that
    // are on it.
    add(&store, 1, "web", Some(100.0), &[(&WEB, 50)]);
    add(&store, 2, "batch", Some(900.0), &[(&BATCH, 50)]);
    add(&store, 3, "scan", Some(200.0), &[(&[10, 20], 50)]);
    let advice = ask(&store, &question(Weigh::Calls));
    let Answer::Order { .. } = &advice.answer else { panic!("{advice:?}") };
    assert!(advice.services.iter().all(|one| !one.loses()), "{advice:?}");
    let scan = service(&advice, "scan");
    assert_eq!((scan.before, scan.after), (2.0, 1.0));
}

#[test]
fn patterns_of_an_older_build_count_at_the_places_of_the_newest() {
    let (_folder, store) = new_store();
    let mut turned = MEMBERS;
    turned.reverse();
    let old = Recorded {
        number: 1,
        build_id: "00",
        region: "serve",
        calls_per_second: Some(10.0),
        data_lines: 2.0,
        layout: words("task", "00", &turned),
        together: &[(&[23, 14], 50)],
    };
    store.add(&old.input(&labels("web", "one", ("c0", 0)))).expect("added");
    add(&store, 2, "batch", Some(10.0), &[(&[0], 50)]);
    let advice = ask(&store, &question(Weigh::Calls));
    let Answer::Order { order, .. } = &advice.answer else { panic!("{advice:?}") };
    let line = |member: &str| order.iter().position(|own| own == member).expect("the member") / 8;
    assert_eq!(line("alpha"), line("juliett"), "what the older build has at 23 and 14");
    assert_eq!(service(&advice, "web").after, 1.0);
}

#[test]
fn a_hundred_recordings_of_one_host_weigh_as_one() {
    let (_folder, store) = new_store();
    for number in 0..20 {
        add(&store, number, "web", Some(100.0), &[(&[0, 9], 50)]);
    }
    add(&store, 50, "batch", Some(150.0), &[(&[9, 17], 50)]);
    let advice = ask(&store, &question(Weigh::Calls));
    let weights: Vec<f64> = advice.services.iter().map(|one| one.weight).collect();
    assert_eq!(weights, [150.0, 100.0], "the mean of a host's recordings");
}

#[test]
fn what_has_no_weight_is_left_out_and_told() {
    let (_folder, store) = new_store();
    add(&store, 1, "web", None, &[(&[0, 9], 50)]);
    let engine = Engine::over(&store, MEMORY_BYTES).expect("an engine");
    let error = advise::advise(&engine, &question(Weigh::Calls)).expect_err("no weight");
    assert!(matches!(&error, FleetError::NoAdvice { why, .. } if why.contains("--seconds")), "{error}");
    let samples = json!({ "schema": "lineup.samples/1", "host": "one", "events": [{ "samples": 10 }],
        "functions": [{ "event": 0, "name": "serve", "samples": 3, "share": 0.3 }], "data": [], "files": [] });
    store.add(&of(&samples.to_string(), &labels("web", "one", ("c1", 1)))).expect("added");
    let advice = ask(&store, &question(Weigh::Time));
    assert_eq!(service(&advice, "web").weight, 0.3);
    assert!(matches!(advice.answer, Answer::Order { .. }));
    add(&store, 2, "batch", None, &[(&[0], 50)]);
    let advice = ask(&store, &question(Weigh::Time));
    assert_eq!(advice.left_out, ["serve of batch: the store does not have its hosts' time"]);
}

#[test]
fn a_member_that_is_pinned_stays() {
    let (_folder, store) = new_store();
    add(&store, 1, "web", Some(10.0), &[(&[0, 9], 50)]);
    let pinned = Question { pins: vec!["alpha".into(), "bravo".into()], ..question(Weigh::Calls) };
    let advice = ask(&store, &pinned);
    let Answer::Order { order, .. } = &advice.answer else { panic!("{advice:?}") };
    assert_eq!(order[..2], ["alpha", "bravo"]);
}

#[test]
fn a_type_that_nobody_used_has_no_advice() {
    let (_folder, store) = new_store();
    let engine = Engine::over(&store, MEMORY_BYTES).expect("an engine");
    let injected = Question { type_name: "it's".into(), ..question(Weigh::Calls) };
    let error = advise::advise(&engine, &injected).expect_err("no such type").to_string();
    assert_eq!(error, "it's: no recording in the store used it");
}
