//! Counts by site, and plans made of them.

use crate::place::{Place, said};
use lineup_heap_plan::{Profile, Style, plan_of};

fn profile(text: &str) -> Profile {
    let mut profile = Profile::default();
    profile.add(text).expect("a profile");
    profile
}

#[test]
fn objects_are_counted_by_site_and_its_callers() {
    let place = Place::new("sites.c");
    let (output, text) = place.profiled(&[]);
    said(&output);
    let profile = profile(&text);
    let of_one_size = profile.sites.iter().filter(|site| site.objects == 3000 && site.largest == 40);
    let [one] = of_one_size.collect::<Vec<_>>()[..] else { panic!("one caller asks for 40 bytes:\n{text}") };
    assert_eq!((one.smallest, one.largest, one.live_objects, one.live_bytes), (40, 40, 3000, 120_000));
    assert_eq!((one.frees, one.bytes), (3000, 120_000));
    assert!(one.frames.len() > 2, "callers are named: {one:?}");
    assert!(one.frames[0].distance.is_some() && one.frames[0].module == one.frames[1].module);
    assert!(profile.classes[&48].objects >= 4500 && profile.classes[&64].objects >= 1500);
}

#[test]
fn a_plan_by_site_parts_the_callers_of_a_wrapper_and_works_in_the_next_run() {
    let place = Place::new("sites.c");
    let without = said(&place.with("lineup heap plan 1\n", &[]));
    let plan = plan_of(&profile(&place.profiled(&[]).1), Style::BySite, false).expect("a plan");
    // Neighbours of one caller lie side by side; without pools, the other caller's are between them.
    assert_eq!(said(&place.with(&plan, &[])), "48 0", "{plan}");
    assert_ne!(without, "48 0");
}
