//! A program that frees a wrong address ends, with a message.

use crate::place::{BY_SIZE, Place, said};
use std::os::unix::process::ExitStatusExt;

/// `SIGABRT`.
const ABORTED: Option<i32> = Some(6);

#[test]
fn a_double_free_and_an_address_that_is_no_object_end_the_program() {
    let place = Place::new("faults.c");
    for (fault, words) in [
        ("double", "double free"),
        ("double, realloc", "use of a freed object"),
        ("elsewhere", "double free"),
        ("twice elsewhere", "double free"),
        ("unused", "double free"),
        ("inside", "no object"),
        ("unused run", "no object"),
        ("run given back", "no object"),
        ("beyond", "never an object"),
        // The next allocator's own words.
        ("foreign", "invalid pointer"),
    ] {
        let output = place.with(BY_SIZE, &[fault]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), ABORTED, "{fault}: {error}");
        assert!(error.contains(words), "{fault}: {error}");
    }
    assert_eq!(said(&place.with(BY_SIZE, &["none"])), "unnoticed");
}

#[test]
fn a_plan_that_cannot_be_used_is_said_and_the_program_runs_as_without_it() {
    let place = Place::new("faults.c");
    for (plan, words) in [("", "empty"), ("pools\n", "line 1"), ("lineup heap plan 1\npool\n", "line 2")] {
        let output = place.with(plan, &["none"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && error.contains("the program runs as without it"), "{error}");
        assert!(error.contains(words), "{error}");
    }
}
