//! The comment: its content, that it stays short, and that names from a program cannot act in it.

use lineup_model::abi::Abi;
use lineup_model::line::LineSize;
use lineup_model::types::{
    Aggregate, AggregateKind, Language, Member, MemberRole, ScalarKind, SourceLocation, Type, TypeId,
    TypeKind, Types,
};
use lineup_review::{
    BuiltFile, CallMeans, FailIf, FindingOfRun, Options, RegionFigures, Review, Rule, Side, markdown, review,
};
use std::collections::BTreeMap;

const ROOT: &str = "/tmp/built";

/// A table in which each of these types has members of eight bytes at these offsets.
fn types(all: &[(&str, &[(&str, u64)])]) -> Types {
    let mut types = Types::new();
    let plain = |name: &str, size_bytes, kind| Type {
        name: Some(name.into()),
        size_bytes: Some(size_bytes),
        declared_align: None,
        declared_at: Some(SourceLocation { file: format!("{ROOT}/src/a.h").into(), line: 7 }),
        unit: None,
        language: Language::C,
        kind,
    };
    let word = types.push(plain("long", 8, TypeKind::Scalar(ScalarKind::Integer { signed: true })));
    for (name, members) in all {
        let end = members.iter().map(|(_, offset)| offset + 8).max().unwrap_or_default();
        let members = members.iter().map(|(name, offset)| member(name, word, *offset)).collect();
        let aggregate = Aggregate {
            kind: AggregateKind::Struct,
            members,
            static_members: Vec::new(),
            is_declaration: false,
        };
        types.push(plain(name, end, TypeKind::Aggregate(aggregate)));
    }
    types
}

fn member(name: &str, ty: TypeId, offset: u64) -> Member {
    Member {
        name: Some(name.into()),
        ty,
        offset_bits: Some(offset * 8),
        bit_size: None,
        declared_align: None,
        role: MemberRole::Field,
        declared_at: Some(SourceLocation { file: format!("{ROOT}/src/a.h").into(), line: 9 }),
    }
}

fn region(name: &str, lines: f64, of_type: (&str, f64)) -> RegionFigures {
    RegionFigures {
        name: name.to_owned(),
        place: None,
        runs: [-1.0, 0.0, 1.0].map(|run| means(lines, 100.0 + run)).to_vec(),
        type_lines_per_call: BTreeMap::from([(of_type.0.to_owned(), of_type.1)]),
    }
}

fn means(data_lines_per_call: f64, instructions_per_call: f64) -> CallMeans {
    CallMeans {
        calls_made: Some(10),
        calls: 10,
        instructions_per_call,
        data_lines_per_call,
        code_lines_per_call: 4.0,
    }
}

fn side(types: &Types, regions: Vec<RegionFigures>, found: Vec<FindingOfRun>) -> Side<'_> {
    Side {
        title: "a1b2c3d A change",
        root: ROOT.as_ref(),
        files: vec![BuiltFile { name: "program", types, abi: Abi::X86_64 }],
        regions,
        regions_missing: Vec::new(),
        found: Some(found),
    }
}

fn reviewed(base: &Side<'_>, head: &Side<'_>, fail_if: &[FailIf]) -> Review {
    review(base, head, &Options { types: &[], line: LineSize::B64, guard: None, fail_if })
}

#[test]
fn it_says_what_grew_and_where_it_is_declared() {
    let (old, new) = (types(&[("rec", &[("a", 0), ("b", 8)])]), types(&[("rec", &[("a", 0), ("b", 64)])]));
    let (base, head) = (
        side(&old, vec![region("walk", 2.0, ("rec", 1.0))], Vec::new()),
        side(&new, vec![region("walk", 3.0, ("rec", 2.0))], Vec::new()),
    );
    let found = reviewed(&base, &head, &[FailIf::any(Rule::Growth)]);
    assert!(found.fails());
    assert_eq!(
        markdown(&found),
        "### Lineup: 1 thing got worse, and fails; 1 more\n\n\
         Head `a1b2c3d A change`, base `a1b2c3d A change`.\n\n\
         | | regression | where |\n|---|---|---|\n\
         | **fails** growth | rec covers 2 cache lines instead of 1: 72 bytes instead of 16 | `src/a.h:7` |\n\
         |  lines | a call of walk needs 3.00 cache lines of data instead of 2.00 (2.00 instead of 1.00 of rec) |  |\n\n\
         **Types**: 1 changed, 0 the same.\n\n\
         | type | bytes | lines | members |\n|---|---:|---:|---|\n\
         | `rec` | 16 → 72 | 1 → 2 | `b` line 0 → 1 |\n\n\
         | per call of | calls | lines of data | lines of code | instructions | lines of types |\n\
         |---|---:|---:|---:|---:|---|\n\
         | `walk` | 30 | 2.00 → 3.00 (+50.0 %) | 4.00 | 100.00 | `rec` 1.00 → 2.00 |\n\n\
         - Not observed: no promises were checked: the head has no lineup.lock.\n"
    );
}

#[test]
fn a_difference_that_runs_of_one_side_have_as_well_is_no_change() {
    let same = types(&[("rec", &[("a", 0)])]);
    let of = |lines: [f64; 3]| RegionFigures {
        runs: lines.map(|lines| means(lines, 100.0)).to_vec(),
        ..region("walk", 0.0, ("rec", 1.0))
    };
    let reviewed_with = |before, after| {
        let (base, head) =
            (side(&same, vec![of(before)], Vec::new()), side(&same, vec![of(after)], Vec::new()));
        let found = reviewed(&base, &head, &[FailIf::any(Rule::Lines)]);
        (found.fails(), markdown(&found))
    };
    let (fails, comment) = reviewed_with([4.0, 4.2, 4.4], [4.3, 4.1, 4.5]);
    assert!(!fails && comment.contains("4.20 → 4.30 (no difference found)"), "{comment}");
    let (fails, comment) = reviewed_with([4.0, 4.01, 4.02], [5.0, 5.01, 5.02]);
    assert!(fails && comment.contains("4.01 → 5.01 (+24.9 % ["), "{comment}");
}

#[test]
fn nothing_got_worse_where_nothing_changed() {
    let same = types(&[("rec", &[("a", 0)])]);
    let both = side(&same, Vec::new(), Vec::new());
    let found = reviewed(&both, &both, &[FailIf::any(Rule::Growth)]);
    assert!(!found.fails() && markdown(&found).starts_with("### Lineup: nothing got worse\n"));
}

#[test]
fn what_is_found_only_after_the_change_is_told() {
    let same = types(&[("rec", &[("a", 0)])]);
    let of = |subject: &str| FindingOfRun { subject: subject.to_owned(), gain: 0.12, place: None };
    let found = reviewed(
        &side(&same, Vec::new(), vec![of("old")]),
        &side(&same, Vec::new(), vec![of("old"), of("queue")]),
        &[],
    );
    let rules: Vec<(Rule, &str)> =
        found.findings.iter().map(|finding| (finding.rule, finding.subject.as_str())).collect();
    assert_eq!(rules, [(Rule::Finding, "queue")]);
}

#[test]
fn it_has_sixty_lines_at_most_and_no_name_acts_in_it() {
    let hostile = "x`|<img src=x onerror=alert(1)>\n# h\u{202e}@all [l](javascript:0)";
    let names: Vec<String> = (0..300).map(|n| format!("{hostile}{n}")).collect();
    let old: Vec<(&str, &[(&str, u64)])> =
        names.iter().map(|name| (name.as_str(), &[("a", 0)][..])).collect();
    let new: Vec<(&str, &[(&str, u64)])> =
        names.iter().map(|name| (name.as_str(), &[("a", 0), ("`|b", 124)][..])).collect();
    let (old, new) = (types(&old), types(&new));
    let calls = |lines| names.iter().map(|name| region(name, lines, (name, lines))).collect::<Vec<_>>();
    let found = names.iter().map(|name| FindingOfRun { subject: name.clone(), gain: 0.5, place: None });
    let (base, head) = (side(&old, calls(1.0), Vec::new()), side(&new, calls(2.0), found.collect()));
    let comment = markdown(&reviewed(&base, &head, &[FailIf::any(Rule::Growth)]));
    assert!(comment.lines().count() <= 60, "{}", comment.lines().count());
    for line in comment.lines().filter(|line| line.starts_with("| ") && line.contains("onerror")) {
        let outside: String = line.split('`').step_by(2).collect();
        assert!(!outside.contains('<') && !line.contains('\u{202e}'), "{line}");
        assert!(!outside.contains(" [l]") && !outside.contains(" @all"), "{line}");
        let cells = line.replace("\\|", "").matches('|').count();
        assert!([4, 5, 7].contains(&cells), "{cells}: {line}");
    }
}
