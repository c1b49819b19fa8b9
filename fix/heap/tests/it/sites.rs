//! Pools of sites.

use crate::place::{Place, said};
use lineup_heap_plan::{Profile, Style, plan_of};

#[test]
fn sites_of_a_library_that_is_loaded_late_are_found() {
    let place = Place::new("sites.c");
    let library = place.compile("late.c", "late.so", &["-shared", "-fPIC"]);
    let library = library.to_str().expect("a name");
    let (output, text) = place.profiled(&[library]);
    said(&output);
    let mut profile = Profile::default();
    profile.add(&text).expect("a profile");
    let plan = plan_of(&profile, Style::BySite, false).expect("a plan");
    let lines: Vec<&str> = plan.lines().filter(|line| line.contains("sizes 72-72")).collect();
    assert_eq!(lines.len(), 1, "{plan}");
    assert_eq!(said(&place.with(&plan, &[library])), "48 80");
}

#[test]
fn a_site_of_another_build_is_no_site_of_this_one() {
    let place = Place::new("sites.c");
    let (_, text) = place.profiled(&[]);
    let mut profile = Profile::default();
    profile.add(&text).expect("a profile");
    let plan = plan_of(&profile, Style::BySite, false).expect("a plan");
    place.compile("sites.c", "program", &["-DANOTHER", "-O1"]);
    assert_ne!(said(&place.with(&plan, &[])), "48 0");
}
