//! Objects next to which calls use other data: a background line at an object's end is not saved.

use crate::pahole::{integer, member, structure};
use lineup_advise::advise;
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::{Advice, OrderProposal};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::Types;
use lineup_model::usage::{ByteUse, NeededAnyway, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

const MEMBERS: [&str; 6] = ["refs", "size", "used", "free", "version", "mask"];

/// Advice for a head of 48 bytes that starts 40 bytes into a line, so that its first three members lie on that line. A
/// hundred calls use these members of `objects` objects each.
fn advice(used: &[&str], objects: u64, needed_anyway: NeededAnyway, distance: Option<u64>) -> Advice {
    let mut types = Types::default();
    let word = integer(&mut types, "long", 8);
    let members = MEMBERS.iter().enumerate();
    let members = members.map(|(at, name)| member(name, word, at as u64 * 64)).collect();
    let ty = structure(&mut types, "head", 48, members);
    let bytes = MEMBERS.iter().enumerate().filter(|(_, name)| used.contains(name));
    let bytes = bytes.map(|(at, _)| ByteUse { offset: at as u64 * 8, size_bytes: 8, loads: 1, stores: 0 });
    let pattern = ObjectPattern {
        needed_anyway,
        neighbour_distance_bytes: distance,
        ..ObjectPattern::alone(40, bytes.collect(), 100 * objects)
    };
    let used =
        TypeUse { region: RegionId(0), ty, calls: 100, patterns: vec![pattern], used_as: BTreeSet::new() };
    let usage = Usage {
        regions: Regions::from_iter([Region::named("collect")]),
        types: vec![used],
        ..Usage::empty(Abi::X86_64)
    };
    let text: String = MEMBERS.iter().map(|name| format!("\tlong {name};\n")).collect();
    let sources = Sources::new([("head.h".to_string(), format!("struct head {{\n{text}}};\n"))]);
    advise(&usage, &types, &sources, &Options::default(), &mut NoCompiler).expect("advice")
}

/// Lines of 64 bytes per call before and after.
fn lines(order: &OrderProposal) -> (Option<f64>, f64) {
    let row = order.lines.iter().find(|row| row.line_bytes == 64 && row.data_model == "LP64");
    row.map(|row| (row.before, row.after)).expect("a row")
}

/// This number of occurrences with data behind the object on its last line.
fn behind(occurrences: u64) -> NeededAnyway {
    NeededAnyway { last: [occurrences; 3], ..NeededAnyway::default() }
}

#[test]
fn a_line_that_is_needed_for_the_object_alone_is_saved() {
    let order = advice(&["refs", "mask"], 3, NeededAnyway::default(), None).orders.pop().expect("an order");
    assert_eq!(lines(&order), (Some(6.0), 3.0));
}

#[test]
fn a_line_that_calls_need_for_what_lies_behind_is_not() {
    let order = advice(&["refs", "mask"], 3, behind(300), None).orders.pop().expect("an order");
    // Both on the second line, which costs nothing; on the first they would save nothing.
    assert_eq!(lines(&order), (Some(3.0), 0.0), "{:?}", order.new_order);
    let at = |name: &str| order.new_order.iter().position(|member| member == name);
    assert!(at("refs") >= Some(3) && at("mask") >= Some(3), "{:?}", order.new_order);
}

#[test]
fn lines_that_are_needed_in_some_calls_are_saved_in_the_others() {
    let order = advice(&["refs", "mask"], 1, behind(25), None).orders.pop().expect("an order");
    // The second line is a background line for a quarter of the calls: members together on it cost three quarters of a
    // line.
    assert_eq!(lines(&order), (Some(1.75), 0.75));
}

#[test]
fn where_both_ends_are_needed_anyway_no_order_gains() {
    let both = NeededAnyway { first: [100; 3], last: [100; 3], both: [100; 3] };
    let advice = advice(&["refs", "mask"], 1, both, None);
    assert!(advice.orders.is_empty(), "{:?}", advice.orders);
}

/// Elements of an array whose last one has data behind it.
#[test]
fn objects_with_a_neighbour_keep_what_is_theirs() {
    let apart = advice(&["refs", "mask"], 1, NeededAnyway::default(), Some(4096)).orders.pop();
    let beside = advice(&["refs", "mask"], 1, behind(100), Some(4096)).orders.pop();
    assert_eq!(lines(&apart.expect("an order")), (Some(2.0), 1.0));
    assert_eq!(lines(&beside.expect("an order")), (Some(1.0), 0.0));
}
