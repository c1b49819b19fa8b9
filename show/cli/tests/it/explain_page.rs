//! `lineup explain --html`: the page of a recording of calls.

use crate::place::Place;
use crate::whole_system;
use lineup_recording::Mode;
use std::process::Output;

/// Devices of which a walk reads two members.
const PROGRAM: &str = r#"
#include <stdio.h>
struct device { long id; char name[48]; long hits; char more[60]; int flags; };
static struct device devices[40] __attribute__((aligned(64)));
__attribute__((noinline)) long walk(int turn) { long sum = 0; for (int i = 0; i < 40; i++) { sum += devices[i].hits; if (devices[i].flags > turn) devices[i].flags--; } return sum; }
int main(void)
{
	long sum = 0;
	for (int turn = 0; turn < 60; turn++) sum += walk(turn);
	printf("%ld\n", sum);
	return 0;
}
"#;

fn run(place: &Place, arguments: &[&str]) -> Output {
    place.lineup(arguments).output().expect("lineup runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_recordings_page_has_its_types_and_says_that_nothing_is_proven() {
    let place = Place::new(PROGRAM, &[]);
    let words = ["record", "--engine", "native", "--region", "walk", "--out", "calls.rec", "--", "./program"];
    let recorded = run(&place, &words);
    assert!(recorded.status.success(), "{}", said(&recorded));
    let written = run(&place, &["explain", "--html", "page.html", "calls.rec"]);
    assert_eq!((written.status.code(), written.stdout.len()), (Some(0), 0), "{}", said(&written));
    let page = std::fs::read_to_string(place.source().join("page.html")).expect("the page");
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    for text in ["device", "nothing on this page is proven", "lineup explain --html page.html calls.rec"] {
        assert!(page.contains(text), "{text} is not on the page");
    }
    place.assert_clean();
}

#[test]
fn of_other_recordings_the_command_that_writes_their_page_is_named() {
    let place = Place::new(PROGRAM, &[]);
    std::fs::write(place.source().join("other.rec"), whole_system::recording(Mode::System, 1))
        .expect("a file");
    let refused = run(&place, &["explain", "--html", "page.html", "other.rec"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("lineup trace report --html"), "{}", said(&refused));
    assert!(!place.source().join("page.html").exists());
}
