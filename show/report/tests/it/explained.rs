//! From explanations of both variants to the parts of a report.

use crate::program::{bytes, device, use_of};
use lineup_explain::explanation::{
    Coverage as Naming, ExpectedMisses, Explanation, ImageUsage, LinesPerCall, RegionExplanation, Tells,
    UnnamedIn,
};
use lineup_explain::name::{Class, Evidence};
use lineup_explain::quantiles::{Quantiles, bars};
use lineup_explain::threads::Of;
use lineup_model::abi::Abi;
use lineup_model::line::LineSize;
use lineup_model::region::RegionId;
use lineup_model::types::Types;
use lineup_model::usage::{VariablePattern, VariableRef, VariableUse};
use lineup_report::study::{Coverage, LineKind, OwnerKind, RegionReport, VariantUse, maps};
use std::collections::BTreeMap;

fn region(data_lines: &[u64], misses_per_call: f64) -> RegionExplanation {
    let lines = LinesPerCall {
        line_bytes: 64,
        data: Quantiles::of(data_lines),
        code: None,
        data_distribution: bars(data_lines),
        code_distribution: vec![],
    };
    let misses = ExpectedMisses {
        cache: "l1d=32K,8,64".into(),
        pressure_bytes: 4096,
        misses_per_call,
        calls: data_lines.len() as u64,
    };
    RegionExplanation {
        id: RegionId(0),
        code: Vec::new(),
        name: "adjust".into(),
        weight: 2.0,
        calls: data_lines.len() as u64,
        unfinished: 0,
        abandoned: 1,
        missed_blocks: 0,
        calls_per_second: None,
        instructions: Quantiles::of(&[10, 30, 20]),
        lines: vec![lines],
        coverage: Naming::default(),
        unnamed: vec![UnnamedIn {
            function: "memcpy".into(),
            image: "libc.so.6".into(),
            accesses: 3,
            lacks: None,
        }],
        map: vec![],
        misses: vec![misses],
        folded_patterns: 0,
    }
}

#[test]
fn a_region_of_both_variants_stands_side_by_side() {
    let report =
        RegionReport::of_explained(&region(&[4, 4, 5], 3.5), Some(&region(&[2, 2, 2], 1.5)), Some(900));
    assert_eq!((report.calls_recorded, report.calls_made, report.calls_abandoned), (3, Some(900), 1));
    assert_eq!(report.calls_per_second, None);
    assert_eq!(report.footprints.len(), 1, "no code was recorded, so none is shown");
    let data = &report.footprints[0];
    assert_eq!((data.kind, data.line_bytes, data.before.max()), (LineKind::Data, 64, 5));
    assert_eq!(data.after.as_ref().map(|after| after.mean()), Some(2.0));
    assert_eq!((report.misses[0].before, report.misses[0].after), (3.5, Some(1.5)));
    assert_eq!(report.instructions_per_call.map(|spread| spread.median), Some(20.0));
}

#[test]
fn coverage_adds_up_and_lists_what_has_no_name() {
    let mut coverage = Naming::default();
    coverage.add(Class::Member, Evidence::LocatedRegister, 65);
    coverage.add(Class::Copied, Evidence::ProgramAddress, 5);
    coverage.add(Class::Stack, Evidence::Frame, 20);
    coverage.add(Class::Unnamed, Evidence::None, 10);
    let explained = Explanation {
        between: None,
        schema: "lineup.explain/1",
        tells: Tells { whole_calls: true, values: true, memory: true, registers: true, of: Of::Threads },
        line_bytes: 64,
        coverage: coverage.settle(),
        regions: vec![region(&[1], 0.0), region(&[1], 0.0)],
        shared_lines: vec![],
        threads: 1,
        usage: vec![],
    };
    let shown = Coverage::of_explained(&explained);
    assert_eq!((shown.accesses, shown.named, shown.share), (100, 90, Some(0.9)));
    assert_eq!(shown.share_off_stack, Some(0.875));
    let classes: Vec<(&str, u64)> =
        shown.by_class.iter().map(|one| (one.class.as_str(), one.accesses)).collect();
    assert_eq!(classes, [("members of objects", 65), ("stack", 20), ("copied for programs, and pages", 5)]);
    let unnamed: Vec<(&str, u64)> =
        shown.unnamed_by_function.iter().map(|one| (one.function.as_str(), one.accesses)).collect();
    assert_eq!(unnamed, [("memcpy", 6), ("other functions", 4)]);
    assert_eq!(shown.by_evidence.iter().map(|one| one.accesses).sum::<u64>(), shown.named);
}

/// One image whose region 0 loads eight bytes of a `device` and a variable of no known type.
fn usage(types: &Types, offset: u64) -> ImageUsage {
    let id = types.by_name()["device"][0];
    let jiffies = VariableRef { name: "jiffies".into(), address: 0x4000, size_bytes: 8 };
    let pattern = VariablePattern { variables: vec![(jiffies, vec![bytes(0, 8, 1, 0)])], occurrences: 1 };
    ImageUsage {
        objects: Vec::new(),
        image: "/build/clockevents".into(),
        index: 0,
        abi: Abi::X86_64,
        types: vec![use_of(id, 0, 1, vec![(0, 1, vec![bytes(offset, 8, 3, 0)])])],
        variables: vec![VariableUse { region: RegionId(0), calls: 1, patterns: vec![pattern] }],
        sharing: vec![],
        memory: None,
        thread_uses: vec![],
        fought_over: vec![],
        fought_variables: vec![],
        locks: vec![],
        elsewhere: None,
        slabs: Vec::new(),
        aligned_uses: Vec::new(),
        variable_types: vec![],
    }
}

#[test]
fn maps_of_both_variants_are_paired_by_name() {
    let (types, _) = device();
    let (old, new) = ([usage(&types, 0)], [usage(&types, 16)]);
    let tables = BTreeMap::from([(0, &types)]);
    let variables = BTreeMap::new();
    let side = |usage| VariantUse { usage, types: &tables, variables: &variables };
    let drawn = maps(side(&old), Some(side(&new)), LineSize::B64);
    let names: Vec<(OwnerKind, &str)> =
        drawn.iter().map(|map| (map.owner.kind, map.owner.name.as_str())).collect();
    assert_eq!(names, [(OwnerKind::Type, "struct device"), (OwnerKind::Variables, "of clockevents")]);
    let used = |lines: &lineup_report::study::ObjectLines| {
        let cell = lines.lines[0].cells.iter().find(|cell| !cell.uses.is_empty()).expect("a used cell");
        cell.name.clone().expect("a name")
    };
    assert_eq!(used(&drawn[0].before), "id");
    assert_eq!(used(drawn[0].after.as_ref().expect("the changed one")), "a | b");
    assert!(maps(side(&old), None, LineSize::B64).iter().all(|map| map.after.is_none()));
}
