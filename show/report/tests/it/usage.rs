//! From the regions' accesses to bytes to the line map of a type and of variables.

use crate::program::{bytes, device, use_of};
use lineup_model::access::ThreadId;
use lineup_model::line::LineSize;
use lineup_model::region::RegionId;
use lineup_model::types::TypeId;
use lineup_model::usage::{self, VariablePattern, VariableRef, VariableUse};
use lineup_report::study::{LineMap, ObjectUse, Owner, OwnerKind, RegionUse, UseClass};

/// `offset name class` of every cell of the first line, except for cells outside the object.
fn drawn(used: &ObjectUse) -> Vec<String> {
    let cells = used.lines.lines[0].cells.iter().filter(|cell| cell.class != UseClass::Outside);
    let text = |cell: &lineup_report::study::Cell| {
        let name = cell.name.as_deref().unwrap_or("-");
        format!("{} {name} {}", cell.offset.expect("an offset"), cell.class.word())
    };
    cells.map(text).collect()
}

#[test]
fn structs_are_told_apart_where_they_are_touched() {
    let (types, device) = device();
    let uses = [use_of(
        device,
        0,
        10,
        vec![(0, 40, vec![bytes(8, 4, 40, 0), bytes(16, 4, 0, 20), bytes(24, 1, 5, 0)])],
    )];
    let used = ObjectUse::of_type(&types, device, &uses, &[], LineSize::B64).expect("a struct");
    assert_eq!(
        drawn(&used),
        [
            "0 id cold",
            "8 rate.mult read",
            "12 rate.shift cold",
            "16 a | b written",
            "24 state | flags read",
            "26 - padding",
            "32 spare cold"
        ]
    );
    assert_eq!(used.objects_per_call, [(0, 4.0)]);
    assert_eq!(used.notes, ["Every object used starts on a line."]);
    let mult = &used.lines.lines[0].cells[1];
    assert_eq!(mult.uses, [RegionUse { region: 0, loads_per_call: 4.0, stores_per_call: 0.0 }]);
}

#[test]
fn regions_are_counted_apart_and_an_access_may_reach_over_members() {
    let (types, device) = device();
    let uses = [
        use_of(device, 0, 10, vec![(0, 10, vec![bytes(0, 16, 10, 0)])]),
        use_of(device, 1, 4, vec![(0, 2, vec![bytes(0, 8, 0, 2)])]),
        use_of(TypeId(0), 1, 4, vec![(0, 2, vec![bytes(32, 8, 0, 2)])]),
    ];
    let used = ObjectUse::of_type(&types, device, &uses, &[], LineSize::B64).expect("a struct");
    let cells = &used.lines.lines[0].cells;
    let one = |region, loads_per_call, stores_per_call| RegionUse { region, loads_per_call, stores_per_call };
    assert_eq!(cells[0].uses, [one(0, 1.0, 0.0), one(1, 0.0, 0.5)]);
    assert_eq!(cells[1].uses, [one(0, 1.0, 0.0)]);
    assert_eq!(used.lines.lines[0].used_bytes, 16, "the other type's bytes are not this one's");
}

#[test]
fn the_map_shows_where_most_objects_start() {
    let (types, device) = device();
    let uses =
        [use_of(device, 0, 1, vec![(16, 1, vec![bytes(0, 8, 1, 0)]), (112, 3, vec![bytes(0, 8, 3, 0)])])];
    let used = ObjectUse::of_type(&types, device, &uses, &[], LineSize::B64).expect("a struct");
    assert_eq!((used.lines.start_in_line, used.lines.lines.len()), (48, 2));
    assert!(
        used.notes[0].contains("2 different places") && used.notes[0].contains("75.0 %"),
        "{:?}",
        used.notes
    );
}

#[test]
fn threads_that_share_a_member_are_joined() {
    let (types, device) = device();
    let threads = |all: &[u32]| all.iter().map(|thread| ThreadId(*thread)).collect();
    let shared = |offset, readers: &[u32], writers: &[u32]| usage::Sharing {
        owner: usage::Owner::Type(device),
        offset,
        size_bytes: 4,
        readers: threads(readers),
        writers: threads(writers),
        handovers: 3,
    };
    let uses = [use_of(device, 0, 1, vec![(0, 1, vec![bytes(0, 8, 1, 1)])])];
    let sharing = [shared(0, &[1], &[0]), shared(4, &[2], &[0])];
    let used = ObjectUse::of_type(&types, device, &uses, &sharing, LineSize::B64).expect("a struct");
    let cell = &used.lines.lines[0].cells[0];
    assert_eq!(cell.class, UseClass::Shared);
    let sharing = cell.sharing.as_ref().expect("threads share it");
    assert_eq!(
        (sharing.readers.as_slice(), sharing.writers.as_slice(), sharing.handovers),
        (&[1, 2][..], &[0][..], 6)
    );
}

#[test]
fn what_is_no_aggregate_has_no_map() {
    let (types, _) = device();
    assert!(ObjectUse::of_type(&types, TypeId(0), &[], &[], LineSize::B64).is_none());
    assert!(ObjectUse::of_type(&types, TypeId(999), &[], &[], LineSize::B64).is_none());
}

#[test]
fn variables_are_drawn_where_the_linker_put_them() {
    let (types, device) = device();
    let variable = |name: &str, address, size_bytes| VariableRef { name: name.into(), address, size_bytes };
    let (cd, mask) = (variable("cd", 0x4060, 40), variable("mask", 0x40c8, 8));
    let irqtime = variable("irqtime", 0x4090, 4);
    let far = variable("far", 0x9000, 4);
    let pattern = VariablePattern {
        variables: vec![
            (cd.clone(), vec![bytes(0, 8, 5, 0), bytes(32, 4, 5, 0)]),
            (mask.clone(), vec![bytes(0, 8, 5, 0)]),
        ],
        occurrences: 5,
    };
    let uses = [VariableUse { region: RegionId(0), calls: 5, patterns: vec![pattern] }];
    let kinds = [(cd, device)];
    let used = ObjectUse::of_variables(&types, &uses, &kinds, &[irqtime, far, mask], &[], LineSize::B64);
    let seen: Vec<(u64, u64, Vec<&str>)> = used
        .lines
        .lines
        .iter()
        .map(|line| (line.index * 64, line.used_bytes, line.cold_riders.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(
        seen,
        [
            (0x4040, 8, vec!["cd.rate", "cd.a | cd.b", "cd.state | cd.flags"]),
            (0x4080, 4, vec!["cd.spare.shift", "irqtime"]),
            (0x40c0, 8, vec![]),
        ]
    );
    let owner = Owner { kind: OwnerKind::Variables, name: "of sched_clock".into(), declared_at: None };
    let map = LineMap::new(owner, LineSize::B64, used, None);
    assert_eq!(map.owner.kind.line_text(map.before.lines[0].index, map.line_bytes), "0x4040");
    assert_eq!(map.owner.kind.offset_text(0x4060), "0x4060");
    assert!(map.before.lines.iter().flat_map(|line| &line.cells).all(|cell| cell.class != UseClass::Padding));
}

#[test]
fn bytes_at_the_end_of_the_address_space_do_no_harm() {
    let (types, _) = device();
    let variable = VariableRef { name: "last".into(), address: u64::MAX - 4, size_bytes: 64 };
    let pattern = VariablePattern { variables: vec![(variable, vec![bytes(0, 64, 1, 0)])], occurrences: 1 };
    let uses = [VariableUse { region: RegionId(0), calls: 1, patterns: vec![pattern] }];
    let used = ObjectUse::of_variables(&types, &uses, &[], &[], &[], LineSize::B64);
    assert_eq!(used.lines.lines.len(), 1);
}
