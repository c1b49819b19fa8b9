//! Members laid out on lines.

use lineup_report::study::*;

fn member(name: &str, offset: u64, size_bytes: u64, loads: f64, stores: f64) -> MemberUse {
    let uses = match loads + stores {
        0.0 => Vec::new(),
        _ => vec![RegionUse { region: 0, loads_per_call: loads, stores_per_call: stores }],
    };
    MemberUse { name: name.into(), offset, size_bytes, touched: Vec::new(), uses, sharing: None }
}

/// `in_line+size name:class` of each cell.
fn drawn(line: &Line) -> String {
    let cell = |cell: &Cell| {
        let name = cell.name.as_deref().unwrap_or("-");
        let more = if cell.continued { "…" } else { "" };
        format!("{}+{} {more}{name}:{:?}", cell.in_line, cell.size_bytes, cell.class)
    };
    line.cells.iter().map(cell).collect::<Vec<_>>().join(", ")
}

#[test]
fn every_byte_of_a_line_is_accounted_for() {
    let members = [
        member("a", 0, 4, 1.0, 0.0),
        member("b", 8, 8, 1.0, 1.0),
        member("c", 60, 8, 0.0, 0.0),
        member("d", 68, 1, 0.0, 2.0),
    ];
    let lines = ObjectLines::new(72, 64, 0, &members);
    assert_eq!(
        drawn(&lines.lines[0]),
        "0+4 a:Loaded, 4+4 -:Padding, 8+8 b:Stored, 16+44 -:Padding, 60+4 c:Cold"
    );
    assert_eq!(drawn(&lines.lines[1]), "0+4 …c:Cold, 4+1 d:Stored, 5+3 -:Padding, 8+56 -:Outside");
    for line in &lines.lines {
        assert_eq!(line.cells.iter().map(|cell| cell.size_bytes).sum::<u32>(), 64);
    }
    assert_eq!((lines.lines[0].used_bytes, lines.lines[0].fetched_bytes), (12, 64));
    assert_eq!(lines.lines[0].cold_riders, ["c"]);
    assert_eq!(lines.used_of_fetched(), (13, 128));
}

#[test]
fn an_object_may_start_inside_a_line() {
    let lines = ObjectLines::new(16, 32, 24, &[member("a", 0, 8, 1.0, 0.0), member("b", 8, 8, 1.0, 0.0)]);
    assert_eq!(drawn(&lines.lines[0]), "0+24 -:Outside, 24+8 a:Loaded");
    assert_eq!(drawn(&lines.lines[1]), "0+8 b:Loaded, 8+24 -:Outside");
    assert_eq!(lines.touched_lines(), 2);
}

#[test]
fn a_line_that_no_region_touches_is_not_fetched() {
    let lines = ObjectLines::new(128, 64, 0, &[member("a", 0, 8, 0.5, 0.0), member("b", 64, 64, 0.0, 0.0)]);
    assert_eq!(lines.lines[1].fetched_bytes, 0);
    assert!(lines.lines[1].cold_riders.is_empty());
}

#[test]
fn members_that_share_bytes_become_one_cell() {
    let members =
        [member("state", 0, 1, 1.0, 0.0), member("flags", 0, 4, 2.0, 1.0), member("next", 4, 4, 0.0, 0.0)];
    let lines = ObjectLines::new(8, 64, 0, &members);
    assert_eq!(drawn(&lines.lines[0]), "0+4 state | flags:Stored, 4+4 next:Cold, 8+56 -:Outside");
    assert_eq!(lines.lines[0].used_bytes, 4);
    let cell = &lines.lines[0].cells[0];
    assert_eq!(cell.uses, [RegionUse { region: 0, loads_per_call: 3.0, stores_per_call: 1.0 }]);
}

#[test]
fn only_the_touched_part_of_an_array_is_used() {
    let mut array = member("array", 0, 256, 2.0, 0.0);
    array.touched = vec![64..72, 68..80];
    let lines = ObjectLines::new(256, 64, 0, &[array]);
    let used: Vec<u64> = lines.lines.iter().map(|line| line.used_bytes).collect();
    assert_eq!(used, [0, 16, 0, 0]);
    assert_eq!(lines.lines[0].cells[0].class, UseClass::Cold);
}

#[test]
fn sharing_needs_a_writer_and_someone_else() {
    let shared = |readers: &[u32], writers: &[u32]| {
        Sharing { readers: readers.into(), writers: writers.into(), handovers: 1 }.crosses_threads()
    };
    assert!(shared(&[1], &[0]));
    assert!(shared(&[], &[0, 1]));
    assert!(!shared(&[0], &[0]));
    assert!(!shared(&[0, 1, 2], &[]));
}

#[test]
fn a_huge_object_is_cut_not_drawn() {
    let lines = ObjectLines::new(u64::MAX, 64, 0, &[member("a", u64::MAX - 8, 80, 1.0, 0.0)]);
    assert_eq!(lines.lines.len() as u64, MOST_LINES);
    assert_eq!(lines.lines_not_listed, (1 << 58) - MOST_LINES);
}

#[test]
fn members_that_fill_all_addresses_have_as_many_lines_as_can_be_counted() {
    let members: Vec<MemberUse> = (0..40).map(|_| member("a", 0, u64::MAX, 1.0, 0.0)).collect();
    let lines = ObjectLines::at_addresses(32, &members);
    assert_eq!((lines.lines.len() as u64, lines.lines_not_listed), (MOST_LINES, u64::MAX));
}
