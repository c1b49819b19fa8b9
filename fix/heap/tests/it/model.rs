//! Objects hold what was put into them, whatever other threads and processes do.

use crate::place::{BY_SIZE, HUGE, PACKED, Place, said};

#[test]
fn random_operations_of_several_threads_do_what_a_model_says() {
    let place = Place::new("model.c");
    for (seed, plan) in (1..).zip([BY_SIZE, HUGE]) {
        // Rounds of new threads take the lanes of earlier ones.
        for threads in ["1", "4"] {
            let seed = seed.to_string();
            assert_eq!(said(&place.with(plan, &[&seed, threads, "20000", "3"])), "as the model says");
        }
    }
}

#[test]
fn children_of_a_program_with_threads_free_and_allocate() {
    let place = Place::new("forks.c");
    assert_eq!(said(&place.with(BY_SIZE, &[])), "all children ended well");
}

#[test]
fn memory_is_given_back_when_others_free_what_ended_threads_left() {
    let place = Place::new("given_back.c");
    for (plan, argument, share) in [(BY_SIZE, "", 4), (BY_SIZE, "trim", 10), (HUGE, "trim", 5)] {
        let kib = said(&place.with(plan, &[argument]));
        let kib: Vec<i64> = kib.split(' ').map(|kib| kib.parse().expect("a number")).collect();
        let [most, left] = kib[..] else { panic!("{kib:?}") };
        assert!(most > 80_000 && left < most / share, "{argument}: {left} of {most} KiB are left");
    }
}

#[test]
fn every_form_of_new_has_its_delete_and_its_alignment() {
    let place = Place::new("forms.cc");
    for plan in [BY_SIZE, HUGE] {
        assert_eq!(said(&place.with(plan, &[])), "aligned 69120");
    }
}

#[test]
fn aligned_objects_lie_as_close_in_pools_as_their_alignment_allows() {
    let place = Place::new("aligned.c");
    for plan in [BY_SIZE, HUGE] {
        assert_eq!(said(&place.with(plan, &[])), "128 128, 128 128, 128 128, 512 512");
    }
}

#[test]
fn a_plan_may_pack_below_what_malloc_promises() {
    let place = Place::new("packed.c");
    assert_eq!(said(&place.with(PACKED, &[])), "24 40 128");
    assert_eq!(said(&place.with(BY_SIZE, &[])), "32 48 128");
}
