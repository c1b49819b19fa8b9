//! The usual questions, over stores whose answers are known.

use crate::planted::{Recorded, labels, new_store, of, words};
use lineup_fleet::engine::{Engine, MEMORY_BYTES};
use lineup_fleet::print::{Form, text};
use lineup_fleet::store::Store;
use serde_json::json;

const OLD: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "hot", "cold"];
const NEW: [&str; 10] = ["hot", "a", "b", "c", "d", "e", "f", "g", "h", "cold"];

fn ask(store: &Store, sql: &str) -> String {
    let engine = Engine::over(store, MEMORY_BYTES).expect("an engine");
    text(&engine.ask(sql).expect("an answer"), Form::Csv).expect("text")
}

/// Two services with builds of two commits.
fn fleet() -> (tempfile::TempDir, Store) {
    let (folder, store) = new_store();
    let old = Recorded {
        number: 1,
        build_id: "01",
        region: "serve",
        calls_per_second: Some(100.0),
        data_lines: 2.0,
        layout: words("task", "01", &OLD),
        together: &[(&[0, 8], 30), (&[0], 10)],
    };
    store.add(&old.input(&labels("web", "one", ("c1", 10)))).expect("added");
    let new =
        Recorded { number: 2, build_id: "02", data_lines: 1.0, layout: words("task", "02", &NEW), ..old };
    let new = Recorded { together: &[(&[0, 1], 30), (&[1], 10)], ..new };
    store.add(&new.input(&labels("web", "two", ("c2", 20)))).expect("added");
    let other = Recorded { number: 3, region: "scan", data_lines: 1.5, together: &[(&[9], 5)], ..new };
    store.add(&other.input(&labels("batch", "two", ("c2", 20)))).expect("added");
    (folder, store)
}

#[test]
fn the_hottest_members_are_counted_over_all_hosts() {
    let (_folder, store) = fleet();
    let answer = ask(
        &store,
        "SELECT owner, member, hosts, services, accesses FROM hottest_members ORDER BY accesses DESC, member",
    );
    let expected =
        "owner,member,hosts,services,accesses\ntask,a,2,1,80.0\ntask,hot,2,1,60.0\ntask,cold,1,1,5.0\n";
    assert_eq!(answer, expected);
}

#[test]
fn a_member_on_another_line_has_moved_and_others_have_not() {
    let (_folder, store) = fleet();
    let answer = ask(
        &store,
        "SELECT member, line_before, line_after, commit_before, commit_after FROM moved_members ORDER BY member",
    );
    assert_eq!(
        answer,
        "member,line_before,line_after,commit_before,commit_after\nh,0,1,c1,c2\nhot,1,0,c1,c2\n"
    );
}

#[test]
fn a_region_has_grown_only_where_it_needs_more_lines_than_before() {
    let (_folder, store) = fleet();
    assert_eq!(
        ask(&store, "SELECT COUNT(*) AS n FROM grown_regions"),
        "n\n0\n",
        "the lines went from two to one"
    );
    let back = Recorded {
        number: 4,
        build_id: "03",
        region: "serve",
        calls_per_second: None,
        data_lines: 3.5,
        layout: words("task", "03", &OLD),
        together: &[(&[0, 8], 30)],
    };
    store.add(&back.input(&labels("web", "one", ("c3", 30)))).expect("added");
    let answer =
        ask(&store, "SELECT service, region, commit_before, commit_after, grown_by_lines FROM grown_regions");
    assert_eq!(answer, "service,region,commit_before,commit_after,grown_by_lines\nweb,serve,c2,c3,2.5\n");
}

#[test]
fn a_region_has_the_mean_of_its_recordings_and_counts_these_and_their_hosts() {
    let (_folder, store) = new_store();
    let hosts = ["one", "one", "two"];
    for (number, (host, data_lines)) in (1..).zip(hosts.into_iter().zip([1.0, 2.0, 4.5])) {
        let recorded = Recorded {
            number,
            build_id: "01",
            region: "serve",
            calls_per_second: (number != 2).then_some(50.0 * number as f64),
            data_lines,
            layout: words("task", "01", &OLD),
            together: &[(&[0], 1)],
        };
        store.add(&recorded.input(&labels("web", host, ("c1", 10)))).expect("added");
    }
    let answer = ask(
        &store,
        "SELECT service, region, commit_id, time_s, runs, hosts, data_lines, code_lines, calls_per_second FROM regions_by_commit",
    );
    let expected = "service,region,commit_id,time_s,runs,hosts,data_lines,code_lines,calls_per_second\n\
                    web,serve,c1,10,3,2,2.5,,100.0\n";
    assert_eq!(answer, expected, "nobody tells lines of code, and one of the three no calls per second");
}

#[test]
fn services_without_a_common_member_dispute_a_type_and_alike_ones_do_not() {
    let (_folder, store) = fleet();
    let answer = ask(&store, "SELECT type_name, service_a, service_b, overlap FROM disputed_types");
    assert_eq!(answer, "type_name,service_a,service_b,overlap\ntask,batch,web,0.0\n");
    let alike = Recorded {
        number: 5,
        build_id: "02",
        region: "serve",
        calls_per_second: None,
        data_lines: 1.0,
        layout: words("task", "02", &NEW),
        together: &[(&[0], 3), (&[1], 4)],
    };
    store.add(&alike.input(&labels("web2", "one", ("c2", 20)))).expect("added");
    let answer = ask(
        &store,
        "SELECT service_a, service_b, overlap FROM disputed_types WHERE service_b = 'web2' ORDER BY service_a",
    );
    let expected = "service_a,service_b,overlap\nbatch,web2,0.0\nweb,web2,1.0\n";
    assert_eq!(answer, expected, "both use a and hot as 4 to 3");
}

#[test]
fn a_guard_catches_the_builds_that_break_it() {
    let (_folder, store) = fleet();
    let lock = "schema = \"lineup.lock/1\"\n[[group]]\ntype = \"task\"\nline_bytes = 64\ndata_model = \"LP64\"\nmembers = [\"a\", \"hot\"]\n";
    store.add(&of(lock, &labels("web", "one", ("c0", 1)))).expect("added");
    let answer = ask(&store, "SELECT DISTINCT build_id, first_line, last_line, found FROM guard_breaks");
    assert_eq!(answer, "build_id,first_line,last_line,found\n01,0,1,2\n");
    let gone = lock.replace("\"hot\"", "\"hot\", \"removed\"");
    store.add(&of(&gone, &labels("web", "one", ("c0", 1)))).expect("added");
    let answer = ask(&store, "SELECT COUNT(*) AS n FROM guard_breaks WHERE found < members");
    assert_eq!(answer, "n\n3\n", "no build has the third member");
}

#[test]
fn a_guard_of_another_data_model_is_not_held_against_a_build() {
    let (_folder, store) = fleet();
    let lock = "schema = \"lineup.lock/1\"\n[[group]]\ntype = \"task\"\nline_bytes = 64\ndata_model = \"ILP32\"\nmembers = [\"a\", \"hot\"]\n";
    store.add(&of(lock, &labels("web", "one", ("c0", 1)))).expect("added");
    assert_eq!(ask(&store, "SELECT COUNT(*) AS n FROM guard_breaks"), "n\n0\n");
}

#[test]
fn samples_and_finds_stand_beside_recordings() {
    let (_folder, store) = fleet();
    let samples = json!({ "schema": "lineup.samples/1", "is_whole": true, "host": "three", "architecture": "x86_64",
        "events": [{ "samples": 10 }, { "samples": 4 }],
        "functions": [{ "event": 0, "name": "serve", "samples": 8, "share": 0.8 },
            { "event": 1, "name": "serve", "samples": 4, "share": 1.0 }],
        "data": [{ "name": "task", "kind": "member",
            "members": [{ "path": "hot", "offset": 0, "size_bytes": 8, "samples": 7, "loads": 7, "stores": 0, "weight": 700, "hitm": 2 }] }],
        "files": [{ "path": "/srv/program", "build_id": "02", "samples": 10 }] });
    store.add(&of(&samples.to_string(), &Default::default())).expect("added");
    let find = json!({ "schema": "lineup.find/1", "command": ["/srv/program"],
        "findings": [{ "subject": "task", "kind": "order", "stalls": 0.5, "gain": 0.25 }],
        "owners": [{ "name": "task", "class": "member", "members": [{ "path": "hot", "offset": 0, "size_bytes": 8,
            "accesses": 1.5, "l1_misses": 0.5, "l2_misses": 0.25, "stall_cycles": 12.0 }] }] });
    store.add(&of(&find.to_string(), &Default::default())).expect("added");
    let answer = ask(
        &store,
        "SELECT accesses, l1_misses, stall_cycles, sampled_weight, hitm, services FROM hottest_members WHERE member = 'hot'",
    );
    assert_eq!(
        answer,
        "accesses,l1_misses,stall_cycles,sampled_weight,hitm,services\n68.5,0.5,12.0,700,2,2\n"
    );
    let shares = ask(&store, "SELECT samples, sampled_share FROM regions WHERE samples IS NOT NULL");
    assert_eq!(shares, "samples,sampled_share\n8,0.8\n", "the event with most samples");
    assert_eq!(
        ask(&store, "SELECT subject, kind, rank, gain_share FROM findings"),
        "subject,kind,rank,gain_share\ntask,order,1,0.25\n"
    );
}

#[test]
fn verdicts_have_their_lines_and_times() {
    let (_folder, store) = new_store();
    let study = json!({ "schema": "lineup.study/1", "title": "the walk", "data_model": "LP64",
        "regions": [{ "name": "walk", "footprints": [
            { "kind": "data", "line_bytes": 64, "before": { "mean": 4.0 }, "after": { "mean": 1.0 } },
            { "kind": "code", "line_bytes": 64, "before": { "mean": 9.0 }, "after": null }] }],
        "proof": { "time": { "before_ns": [10.0, 30.0, 20.0], "after_ns": [5.0, 15.0], "ratio": 0.5, "ratio_low": 0.4,
            "ratio_high": 0.6, "verdict": "changed" } } });
    store.add(&of(&study.to_string(), &Default::default())).expect("added");
    let answer =
        ask(&store, "SELECT quantity, region, before, after, ratio, verdict FROM verdicts ORDER BY quantity");
    let expected = "quantity,region,before,after,ratio,verdict\ndata_lines,walk,4.0,1.0,0.25,\ntime,,20.0,10.0,0.5,changed\n";
    assert_eq!(answer, expected);
}

#[test]
fn a_question_may_read_and_nothing_else() {
    let (_folder, store) = fleet();
    let engine = Engine::over(&store, MEMORY_BYTES).expect("an engine");
    for sql in ["DROP TABLE runs", "CREATE TABLE x AS SELECT 1", "COPY runs TO 'x.csv'", "SET a = 1"] {
        assert!(engine.ask(sql).is_err(), "{sql}");
    }
    let wrong = engine.ask("SELECT nothing FROM runs").expect_err("no such column").to_string();
    assert!(wrong.starts_with("the question cannot be answered:") && wrong.contains("nothing"), "{wrong}");
}

#[test]
fn an_answer_has_three_forms() {
    let (_folder, store) = fleet();
    let engine = Engine::over(&store, MEMORY_BYTES).expect("an engine");
    let answer = engine
        .ask("SELECT service, COUNT(*) AS runs, NULL AS no FROM runs GROUP BY service ORDER BY 1")
        .expect("an answer");
    assert_eq!(answer.rows(), 2);
    assert_eq!(
        text(&answer, Form::Table).expect("text"),
        "service  runs  no\nbatch       1  –\nweb         2  –\n"
    );
    let document: serde_json::Value =
        serde_json::from_str(&text(&answer, Form::Json).expect("text")).expect("JSON");
    let expected = json!({ "schema": "lineup.fleet-query/1", "columns": ["service", "runs", "no"],
        "rows": [["batch", 1, null], ["web", 2, null]] });
    assert_eq!(document, expected);
}
