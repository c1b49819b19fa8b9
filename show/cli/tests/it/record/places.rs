//! Signals: wherever in the copies of the code they interrupt a thread, its handler sees a possible place in the
//! program, with the stack and the registers of that place.

use super::program::{Program, Recorded, X86_64, c};

fn program(options: &[&str]) -> Program {
    c(X86_64, include_str!("places.c"), options)
}

fn nothing_is_wrong(recorded: &Recorded) {
    assert_eq!(["wrong", "whole"].map(|name| recorded.value(name)), [0, 1], "{}", recorded.said);
    assert!(recorded.value("places") > 3, "{}", recorded.said);
}

#[test]
fn handlers_are_shown_where_the_program_is_when_its_calls_are_recorded() {
    let options = ["--engine", "native", "--region", "paths_kept", "--calls", "1000000"];
    nothing_is_wrong(&program(&["-DROUNDS=20", "-DTICKS=1000"]).record(&options));
}

#[test]
fn handlers_are_shown_where_the_program_is_when_all_of_it_is_counted() {
    nothing_is_wrong(&program(&[]).record(&["--whole-program", "--engine", "native"]));
}

#[test]
fn handlers_are_shown_where_the_program_is_when_all_of_it_is_logged() {
    nothing_is_wrong(&program(&[]).record(&["--whole-program", "--log", "lineup.rec"]));
}
