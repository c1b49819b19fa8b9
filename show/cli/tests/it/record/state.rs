//! Instructions that keep the processor's state in memory, or load it: the recording has exactly the processor's
//! writes.

use super::program::{Program, Recorded, X86_64, c};
use lineup_model::access::{AccessKind, Call};
use lineup_model::region::RegionId;

const UNIT: u64 = 32;
/// The area's head.
const HEAD: u128 = 1 << 16;
const HEAD_OF_COMPACT: u128 = 3 << 16;

/// The units of the area that a call has accessed in this way.
fn units(call: &Call, area: u64, kind: AccessKind) -> u128 {
    let own = call.accesses.iter().filter(|access| access.kind == kind);
    let within = own.filter(|access| (area..area + 4096).contains(&access.address));
    within.fold(0, |all, access| {
        let (first, end) = (access.address - area, access.address - area + u64::from(access.size_bytes));
        (first / UNIT..end.div_ceil(UNIT)).fold(all, |all, unit| all | 1 << unit)
    })
}

fn of_region(recorded: &Recorded, number: u16) -> Vec<&Call> {
    recorded.calls().iter().filter(|call| call.region == RegionId(number)).collect()
}

#[test]
fn what_is_recorded_of_kept_state_is_what_the_processor_writes() {
    if !std::is_x86_feature_detected!("avx") || !std::is_x86_feature_detected!("xsave") {
        assert!(std::env::var_os("CI").is_none(), "a processor without AVX");
        eprintln!("skipped: the processor has no AVX");
        return;
    }
    let program = c(X86_64, include_str!("state.c"), &["-mgeneral-regs-only"]);
    let regions = ["--region", "save", "--region", "save_compact", "--region", "restore"];
    let recorded = record(&program, &regions);
    let (area, count) = (recorded.value("area"), recorded.value("count"));
    let expected = |name: &str, number: u64| {
        let half = |half: &str| u128::from(recorded.value(&format!("{name}_{half}_{number}")));
        half("low") | half("high") << 64
    };
    let has_compact = recorded.value("has_compact") == 1;
    let (saves, compact, restores) =
        (of_region(&recorded, 0), of_region(&recorded, 1), of_region(&recorded, 2));
    assert_eq!(saves.len() as u64, 3 * count);
    assert_eq!(compact.len() as u64, if has_compact { 3 * count } else { 0 });
    let (mut kinds, mut others) = (std::collections::BTreeSet::new(), 0);
    for number in 0..count {
        let save = saves[3 * number as usize + 2];
        // The head is read and written, and may keep its value.
        let stores = units(save, area, AccessKind::Store);
        assert_eq!(stores, expected("save", number) | HEAD, "save {number}");
        assert_eq!(units(save, area, AccessKind::Load), HEAD, "save {number}");
        let restores_of = if has_compact { 2 } else { 1 };
        let loads = units(restores[restores_of * number as usize], area, AccessKind::Load);
        assert_eq!(loads & !stores, 0, "restore {number}");
        assert_ne!(loads & HEAD, 0, "restore {number}");
        kinds.insert(stores);
        if has_compact {
            let save = compact[3 * number as usize + 2];
            let stores = units(save, area, AccessKind::Store);
            assert_eq!(units(save, area, AccessKind::Load), 0, "compact {number}");
            let loads = units(restores[2 * number as usize + 1], area, AccessKind::Load);
            let is_same = stores == expected("compact", number) | HEAD && loads == stores | HEAD_OF_COMPACT;
            others += u64::from(!is_same);
            kinds.insert(stores);
        }
    }
    // The processor's view of the state in use may change when the thread is interrupted between two of the calls.
    assert!(others <= count / 5, "{others} of {count}");
    assert!(kinds.len() > 5, "{kinds:?}");
    assert!(!recorded.said.contains("not recorded"), "{}", recorded.said);
}

fn record(program: &Program, regions: &[&str]) -> Recorded {
    program.record(&[&["--engine", "native"], regions].concat())
}

/// A program that is counted as a whole has the same accesses, and the loader's own are counted.
#[test]
fn state_that_is_kept_is_counted_in_whole_programs() {
    if !std::is_x86_feature_detected!("avx") || !std::is_x86_feature_detected!("xsave") {
        assert!(std::env::var_os("CI").is_none(), "a processor without AVX");
        eprintln!("skipped: the processor has no AVX");
        return;
    }
    let program = c(X86_64, include_str!("state.c"), &["-mgeneral-regs-only", "-Wl,-z,lazy"]);
    let recorded = program.record(&["--whole-program", "--engine", "native"]);
    assert!(recorded.said.contains("area") && !recorded.said.contains("not recorded"), "{}", recorded.said);
}
