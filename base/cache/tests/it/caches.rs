//! Properties of every cache, and a slow model that the fast one must agree with.

use lineup_cache::{Cache, CacheLevel, CacheSpec, Hierarchy, Missed, MostRecent, SpecError, expected_misses};
use lineup_model::line::LineSize;
use proptest::prelude::*;

fn spec(sets: u64, ways: u32, line: u32) -> CacheSpec {
    let line = LineSize::new(line).unwrap();
    CacheSpec::new(CacheLevel::L1d, sets * u64::from(ways) * line.bytes(), ways, line).unwrap()
}

/// Least recently used, by the book: one list per set with the newest at its end.
fn misses_by_the_book(spec: &CacheSpec, lines: &[u64]) -> usize {
    let mut sets = vec![Vec::<u64>::new(); spec.sets() as usize];
    let mut misses = 0;
    for line in lines {
        let set = &mut sets[(line % spec.sets()) as usize];
        match set.iter().position(|held| held == line) {
            Some(at) => {
                set.remove(at);
            }
            None => {
                misses += 1;
                if set.len() == spec.ways() as usize {
                    set.remove(0);
                }
            }
        }
        set.push(*line);
    }
    misses
}

fn misses(spec: &CacheSpec, lines: &[u64]) -> usize {
    let mut cache = Cache::new(spec);
    lines.iter().filter(|line| !cache.touch(**line)).count()
}

fn any_lines() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0u64..64, 0..400)
}

proptest! {
    #[test]
    fn the_model_agrees_with_the_book(lines in any_lines(), sets in 0u32..4, ways in 1u32..6) {
        let spec = spec(1 << sets, ways, 64);
        prop_assert_eq!(misses(&spec, &lines), misses_by_the_book(&spec, &lines));
    }

    #[test]
    fn more_ways_never_miss_more(lines in any_lines(), sets in 0u32..4, ways in 1u32..8) {
        prop_assert!(
            misses(&spec(1 << sets, ways + 1, 64), &lines) <= misses(&spec(1 << sets, ways, 64), &lines)
        );
    }

    #[test]
    fn a_wider_cache_holds_all_that_a_narrower_one_holds(lines in any_lines(), ways in 1u32..6) {
        let (mut narrow, mut wide) = (Cache::new(&spec(4, ways, 64)), Cache::new(&spec(4, ways + 2, 64)));
        for line in &lines {
            narrow.touch(*line);
            wide.touch(*line);
            prop_assert!((0..64).all(|held| !narrow.holds(held) || wide.holds(held)));
        }
    }

    #[test]
    fn misses_are_at_least_the_distinct_lines(lines in any_lines(), ways in 1u32..6) {
        let distinct = lines.iter().collect::<std::collections::BTreeSet<_>>().len();
        prop_assert!(misses(&spec(4, ways, 64), &lines) >= distinct);
        prop_assert_eq!(misses(&spec(1, 64, 64), &lines), distinct);
    }

    /// The accesses that the filter passes over would not change the cache.
    #[test]
    fn uses_of_the_most_recent_lines_are_hits_that_change_nothing(
        accesses in prop::collection::vec((0u64..1024, 1u64..200), 0..400), sets in 0u32..4, ways in 1u32..6,
    ) {
        let spec = spec(1 << sets, ways, 64);
        let (mut cache, mut recent) = (Cache::new(&spec), MostRecent::new(&spec));
        for (address, size_bytes) in accesses {
            let lines = recent.lines(address, size_bytes);
            let before = cache.clone();
            let passes_over = recent.passes_over(lines);
            let hit = cache.access(address, size_bytes);
            prop_assert!(!passes_over || (hit && cache == before));
            prop_assert_eq!(recent.uses_again(lines), passes_over);
            prop_assert!(lines.more() > 0 || recent.passes_over(lines));
        }
    }

    /// The caches need not know who asks first.
    #[test]
    fn what_levels_pass_over_is_a_hit_that_changes_none_of_them(
        accesses in prop::collection::vec((0u64..4096, 1u64..80, any::<bool>()), 0..400),
    ) {
        let mut levels = Hierarchy::new(&["l1i=512,2,64", "l1d=1K,4,64", "l2=2K,4,64"].map(|text| text.parse().unwrap()));
        for (address, size_bytes, is_code) in accesses {
            let before = levels.clone();
            let (passes_over, missed) = match is_code {
                true => (levels.passes_over_code(address, size_bytes), levels.fetch(address, size_bytes)),
                false => (levels.passes_over_data(address, size_bytes), levels.data(address, size_bytes)),
            };
            prop_assert!(!passes_over || (missed == Missed::Nothing && levels == before));
        }
        prop_assert!(!Hierarchy::new(&[]).passes_over_code(0, 1), "without a level there is nothing to ask");
    }

    #[test]
    fn expected_misses_grow_with_pressure_up_to_the_footprint(
        lines in prop::collection::btree_set(0u64..4096, 0..60),
        pressure in 0u64..1 << 22,
        more in 0u64..1 << 20,
    ) {
        let spec = spec(64, 8, 64);
        let (low, high) = (
            expected_misses(&spec, lines.iter().copied(), pressure),
            expected_misses(&spec, lines.iter().copied(), pressure + more),
        );
        prop_assert!(low <= high + 1e-9);
        prop_assert!(high <= lines.len() as f64 + 1e-9);
        prop_assert!(low >= -1e-9);
    }
}

/// Pressure by the formula against pressure by simulation, with a fixed pseudo-random stream of others.
#[test]
fn expected_misses_are_what_the_model_counts() {
    let spec = spec(64, 8, 64);
    let own: Vec<u64> = (0..24).map(|line| line * 7).collect();
    let mut random = 88172645463325252u64;
    for pressure_lines in [128u64, 384, 640] {
        let mut cache = Cache::new(&spec);
        let (calls, mut missed) = (3000, 0);
        for _ in 0..calls {
            missed += own.iter().filter(|line| !cache.touch(**line)).count();
            for _ in 0..pressure_lines {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                cache.touch(1 << 40 | random >> 20);
            }
        }
        let counted = missed as f64 / f64::from(calls);
        let expected = expected_misses(&spec, own.iter().copied(), pressure_lines * 64);
        assert!((counted - expected).abs() < 0.25, "{pressure_lines}: {counted} against {expected}");
    }
}

#[test]
fn the_second_level_sees_what_the_first_missed() {
    let specs = ["l1i=128,1,64", "l1d=128,1,64", "l2=1K,2,64"].map(|text| text.parse().unwrap());
    let mut caches = Hierarchy::new(&specs);
    assert_eq!(caches.data(0x1000, 4), Missed::L2);
    assert_eq!(caches.data(0x1004, 4), Missed::Nothing);
    assert_eq!(caches.fetch(0x1000, 4), Missed::L1);
    assert_eq!(caches.data(0x1080, 4), Missed::L2);
    assert_eq!(caches.data(0x1000, 4), Missed::L1);
    caches.clear();
    assert_eq!(caches.data(0x1000, 4), Missed::L2);
}

#[test]
fn an_access_across_lines_misses_once_and_brings_both() {
    let mut cache = Cache::new(&spec(64, 8, 64));
    assert!(!cache.access(0x103c, 8));
    assert!(cache.access(0x1000, 64));
    assert!(cache.access(0x1040, 64));
}

#[test]
fn specifications_say_what_is_wrong_with_them() {
    for text in ["", "l1d", "l1d=32K", "l3=32K,8,64", "l1d=32K,8,64,1", "l1d=K,8,64", "l1d=32K,-8,64"] {
        assert_eq!(text.parse::<CacheSpec>(), Err(SpecError::Form(text.into())));
    }
    assert_eq!("l1d=32K,8,48".parse::<CacheSpec>(), Err(SpecError::Line(48)));
    for text in ["l1d=0,8,64", "l1d=32K,0,64", "l1d=33K,8,64", "l1d=96K,8,64", "l1d=100,1,64"] {
        assert!(matches!(text.parse::<CacheSpec>(), Err(SpecError::Sets { .. })), "{text}");
    }
    assert!(matches!("l2=9999999M,8,64".parse::<CacheSpec>(), Err(SpecError::TooLarge(_))));
}

#[test]
fn a_specification_reads_back() {
    for text in ["l1i=32K,8,64", "l1d=48K,12,64", "l2=1280K,20,64", "l2=2M,16,128", "l1d=512,2,32"] {
        assert_eq!(text.parse::<CacheSpec>().unwrap().to_string(), text);
    }
}
