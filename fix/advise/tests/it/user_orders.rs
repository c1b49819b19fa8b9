//! Orders that a person gives, written into a kernel's declarations: groups and alignment in its own style.

use crate::pahole::{integer, member, push, structure};
use lineup_advise::advise;
use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::error::AdviseError;
use lineup_advise::judge::NoCompiler;
use lineup_advise::meaning::{Effect, Hold, Meaning, TypeMeaning};
use lineup_advise::options::Options;
use lineup_advise::order_file::{Work, grouped, parse};
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

const CACHE_H: &str = "#define __cacheline_group_begin(GROUP) __u8 __cacheline_group_begin__##GROUP[0]\n\
                       #define __cacheline_group_begin_aligned(GROUP, ...) __cacheline_group_begin(GROUP)\n";

const DECLARED: &str = "struct rec {\n\tlong first;\n\t/* what sending needs */\n\tlong sent;\n\tlong cold;\n\tlong read;\t/* by all */\n};\n";

/// Advice on a struct of four words, with these orders and this header of macros next to it.
fn given(orders: &str, macros: &str, declared: &str, markers: &[(&str, u64)]) -> Result<Advice, AdviseError> {
    advised(orders, macros, declared, markers, &[])
}

/// The same where comments hold nothing in these types.
fn advised(
    orders: &str,
    macros: &str,
    declared: &str,
    markers: &[(&str, u64)],
    lifted: &[&str],
) -> Result<Advice, AdviseError> {
    let mut types = Types::new();
    let word = integer(&mut types, "long", 8);
    let byte = integer(&mut types, "unsigned char", 1);
    let none = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(0)] });
    let mut members: Vec<_> = ["first", "sent", "cold", "read"]
        .iter()
        .zip(0..)
        .map(|(name, at)| member(name, word, at * 64))
        .collect();
    for (name, at) in markers {
        let before =
            members.iter().position(|one| one.offset_bits >= Some(*at * 64)).unwrap_or(members.len());
        members.insert(before, member(name, none, at * 64));
    }
    structure(&mut types, "rec", 32, members);
    let sources = Sources::new([
        ("include/cache.h".to_owned(), macros.to_owned()),
        ("include/rec.h".to_owned(), declared.to_owned()),
        (
            "net/check.c".to_owned(),
            "void check(void)\n{\n\tCACHELINE_ASSERT_GROUP_MEMBER(struct rec, old, first);\n}\n".to_owned(),
        ),
    ]);
    let lifts = lifted.iter().map(|ty| ((*ty).to_owned(), None)).collect();
    let options = Options { orders: parse("orders", orders)?, lifts, ..Options::default() };
    advise(&Usage::empty(Abi::X86_64), &types, &sources, &options, &mut NoCompiler)
}

fn text<'a>(advice: &'a Advice, path: &str) -> &'a str {
    advice.edited.get(path).map_or_else(|| panic!("{:?}", advice.refusals), String::as_str)
}

#[test]
fn an_order_that_the_declaration_has_already_is_no_patch() {
    for order in ["rec: first, sent, rest", "rec: first, sent, cold, read"] {
        let advice = given(order, CACHE_H, DECLARED, &[]).expect("advice");
        assert_eq!((advice.already_good.join(" "), advice.orders.len()), ("rec".to_owned(), 0), "{order}");
        assert!(advice.edited.is_empty() && advice.refusals.is_empty(), "{:?}", advice.refusals);
    }
    assert_eq!(given("rec: sent, first, rest", CACHE_H, DECLARED, &[]).expect("advice").orders.len(), 1);
}

#[test]
fn groups_are_written_with_the_macros_that_the_sources_have() {
    let order = "rec: first, align(64) group rec_tx { read, sent }, rest";
    let advice = given(order, CACHE_H, DECLARED, &[]).expect("advice");
    assert_eq!(
        text(&advice, "include/rec.h"),
        "struct rec {\n\tlong first;\n\t__cacheline_group_begin_aligned(rec_tx, 64);\n\tlong read;\t/* by all */\n\
         \t/* what sending needs */\n\tlong sent;\n\t__cacheline_group_end_aligned(rec_tx, 64);\n\tlong cold;\n};\n"
    );
    let [order] = advice.orders.as_slice() else { panic!("one order") };
    assert_eq!(order.new_offsets_bits, [0, 512, 576, 1024]);
    assert_eq!(order.sizes[0].after_bytes, 192);
    assert!(
        text(&advice, "net/check.c").contains(
            "\tCACHELINE_ASSERT_GROUP_MEMBER(struct rec, rec_tx, read);\n\tCACHELINE_ASSERT_GROUP_MEMBER(struct rec, rec_tx, sent);\n}"
        ),
        "{}",
        text(&advice, "net/check.c")
    );
}

#[test]
fn without_the_macros_groups_are_comments_and_alignment_is_an_attribute() {
    let order = "rec: first, align(64) group rec_tx { read, sent }, rest";
    let advice = given(order, "#define __aligned(x) __attribute__((__aligned__(x)))\n", DECLARED, &[]);
    assert_eq!(
        text(&advice.expect("advice"), "include/rec.h"),
        "struct rec {\n\tlong first;\n\t/* rec_tx */\n\tlong read __aligned(64);\t/* by all */\n\
         \t/* what sending needs */\n\tlong sent;\n\tlong cold __aligned(64);\n};\n"
    );
}

#[test]
fn members_stay_in_the_groups_that_the_declaration_has() {
    let markers = [("__cacheline_group_begin__old", 1), ("__cacheline_group_end__old", 3)];
    let declared = "struct rec {\n\tlong first;\n\t__cacheline_group_begin(old);\n\tlong sent;\n\tlong cold;\n\
                    \t__cacheline_group_end(old);\n\tlong read;\n};\n";
    let inside = given("rec: first, group old { cold, sent }, read", CACHE_H, declared, &markers);
    assert_eq!(
        text(&inside.expect("advice"), "include/rec.h"),
        declared.replace("\tlong sent;\n\tlong cold;\n", "\tlong cold;\n\tlong sent;\n")
    );
    let outside =
        given("rec: first, group old { cold, read }, sent", CACHE_H, declared, &markers).expect("advice");
    assert!(outside.edited.is_empty(), "{:?}", outside.edited);
    let said = format!("{:?}", outside.refusals);
    assert!(said.contains("moves what has to stay") && said.contains("separates groups"), "{said}");
}

#[test]
fn members_of_a_lifted_type_pass_a_define_that_none_of_them_needs() {
    let declared = "struct rec {\n\tlong first;\n\tlong sent;\n\n\t/* of sent */\n#define SENT_MAX 65536\n\tlong cold;\n\
                    \tlong read;\n};\n";
    let order = "rec: read, cold, first, sent";
    let advice = advised(order, "", declared, &[], &["rec"]).expect("advice");
    assert_eq!(
        text(&advice, "include/rec.h"),
        "struct rec {\n\tlong read;\n\tlong cold;\n\tlong first;\n\tlong sent;\n\n\t/* of sent */\n#define SENT_MAX 65536\n};\n"
    );
    let held = given(order, "", declared, &[]).expect("advice");
    assert!(held.edited.is_empty() && !held.refusals.is_empty(), "{:?}", held.edited);
    let needed = declared.replace("long read;", "long read[SENT_MAX];");
    let held = advised(order, "", &needed, &[], &["rec"]).expect("advice");
    assert!(held.edited.is_empty() && !held.refusals.is_empty(), "{:?}", held.edited);
}

#[test]
fn an_order_of_no_type_is_an_error_and_nothing_else_is_proposed() {
    let error = given("\nother: rest", CACHE_H, DECLARED, &[]).expect_err("no such type");
    assert_eq!(error.to_string(), "orders, line 2: no type other was recorded");
}

/// Ten calls of a region that load, or store, eight bytes at each of these offsets of `rec`.
fn used(region: u16, ty: TypeId, loads: &[u64], stores: &[u64]) -> TypeUse {
    let load = loads.iter().map(|offset| (*offset, 10, 0));
    let mut bytes: Vec<ByteUse> = load
        .chain(stores.iter().map(|offset| (*offset, 0, 10)))
        .map(|(offset, loads, stores)| ByteUse { offset, size_bytes: 8, loads, stores })
        .collect();
    bytes.sort_by_key(|bytes| bytes.offset);
    let patterns = vec![ObjectPattern::alone(0, bytes, 10)];
    TypeUse { region: RegionId(region), ty, calls: 10, patterns, used_as: BTreeSet::new() }
}

#[test]
fn groups_part_what_is_written_from_what_is_read_and_one_kind_of_work_from_the_other() {
    let mut types = Types::new();
    let word = integer(&mut types, "long", 8);
    let head = structure(&mut types, "head", 8, vec![member("word", word, 0)]);
    let names = ["cold", "sequence", "window", "limit", "stamp"];
    let mut members = vec![member("head", head, 0)];
    members.extend(names.iter().zip(1..).map(|(name, at)| member(name, word, at * 64)));
    let id = structure(&mut types, "rec", 48, members);
    let usage = Usage {
        regions: Regions::from_iter([Region::named("send"), Region::named("receive")]),
        types: vec![used(0, id, &[0, 24, 32], &[16]), used(1, id, &[32, 16], &[40])],
        ..Usage::empty(Abi::X86_64)
    };
    let work =
        |name: &str, region| Work { name: name.to_owned(), regions: BTreeSet::from([RegionId(region)]) };
    let order = grouped(&types, &usage, id, &[work("tx", 0), work("rx", 1)], 64).expect("groups");
    let text = order.to_string();
    assert_eq!(
        text,
        "rec:\n    head,\n    group rec_read_tx {\n        align(64) window\n    },\n    group rec_read_txrx {\n        limit\n    },\n    \
         group rec_write_txrx {\n        align(64) sequence\n    },\n    group rec_write_rx {\n        stamp\n    },\n    rest\n"
    );
    let read = parse("", &text).expect("what is written can be read");
    assert_eq!((&read[0].items, &read[0].groups), (&order.items, &order.groups));
    assert!(
        grouped(&types, &Usage::empty(Abi::X86_64), id, &[work("tx", 0)], 64).is_none(),
        "nothing is used"
    );
}

#[test]
fn lines_are_counted_of_objects_that_lie_in_others() {
    let mut types = Types::new();
    let word = integer(&mut types, "long", 8);
    let mut words =
        |count| push(&mut types, "", None, TypeKind::Array { element: word, counts: vec![Some(count)] });
    let (cold, before) = (words(15), words(8));
    let members = vec![member("head", word, 0), member("cold", cold, 64), member("hot", word, 1024)];
    let id = structure(&mut types, "rec", 136, members);
    let members = vec![member("before", before, 0), member("inner", id, 512)];
    let outer = structure(&mut types, "outer", 200, members);
    let usage = Usage {
        regions: Regions::from_iter([Region::named("send")]),
        types: vec![used(0, outer, &[0, 64, 192], &[])],
        ..Usage::empty(Abi::X86_64)
    };
    let order = &parse("orders", "rec: head, hot, rest").expect("an order")[0];
    let (_, aggregate) = types.aggregate(id).expect("a struct");
    let lines = order.resolve(aggregate).expect("its members").lines(&types, &usage, id);
    let of_64 = lines.iter().find(|row| row.line_bytes == 64 && row.data_model == "LP64").expect("a row");
    assert_eq!((of_64.before, of_64.after), (Some(2.0), 1.0));
    let work = Work { name: "tx".to_owned(), regions: BTreeSet::from([RegionId(0)]) };
    let found = grouped(&types, &usage, id, &[work], 64).expect("groups").to_string();
    assert_eq!(found, "rec:\n    group rec_read_tx {\n        align(64) head, hot\n    },\n    rest\n");
}

const HELD: &str = "struct rec {\n\tlong first;\n\tlong low __attribute__((aligned(64)));\n\tstruct none none;\n\tstruct sack one[1];\n\
                    \tstruct sack four[4];\n\tlong read;\n};\n";

/// A struct with an aligned member, one of an empty type, and an array that continues in the next.
fn held(orders: &str, is_lifted: bool) -> Advice {
    let mut types = Types::new();
    let word = integer(&mut types, "long", 8);
    let sack = structure(&mut types, "sack", 8, vec![member("start", word, 0)]);
    let none = structure(&mut types, "none", 0, Vec::new());
    let mut sacks =
        |count| push(&mut types, "", None, TypeKind::Array { element: sack, counts: vec![Some(count)] });
    let (one, four) = (sacks(1), sacks(4));
    let mut low = member("low", word, 512);
    low.declared_align = Some(64);
    let members = vec![
        member("first", word, 0),
        low,
        member("none", none, 576),
        member("one", one, 576),
        member("four", four, 640),
        member("read", word, 896),
    ];
    structure(&mut types, "rec", 128, members);
    let sources = Sources::new([("rec.h".to_owned(), HELD.to_owned())]);
    let lifts = if is_lifted { vec![("rec".to_owned(), None)] } else { Vec::new() };
    let options = Options { orders: parse("orders", orders).expect("an order"), lifts, ..Options::default() };
    advise(&Usage::empty(Abi::X86_64), &types, &sources, &options, &mut NoCompiler).expect("advice")
}

#[test]
fn a_lifted_type_may_have_members_before_an_aligned_one_and_neighbours_elsewhere() {
    let order = "rec: first, one, four, read, low, rest";
    let advice = held(order, true);
    let [moved] = advice.orders.as_slice() else { panic!("{:?}", advice.refusals) };
    assert_eq!(moved.new_offsets_bits, [0, 64, 128, 384, 512, 576], "in the new order");
    let said = format!("{:?}", held(order, false).refusals);
    assert!(said.contains("members lie on lines of their own (low)"), "{said}");
}

/// A compiler's constraints on two members, in a type that may be ordered.
#[test]
fn members_that_code_steps_through_may_lie_elsewhere_side_by_side() {
    let ordered = |order: &str| {
        let mut types = Types::new();
        let word = integer(&mut types, "long", 8);
        let half = integer(&mut types, "int", 4);
        let members = vec![
            member("first", word, 0),
            member("low", half, 64),
            member("high", half, 96),
            member("last", word, 128),
        ];
        structure(&mut types, "rec", 24, members);
        let text = "struct rec {\n\tlong first;\n\tint low;\n\tint high;\n\tlong last;\n};\n";
        let sources = Sources::new([("rec.h".to_owned(), text.to_owned())]);
        let binding = Binding::new(Constraint::MemorySpan).on(["low", "high"]).because("stepped through");
        let hold = Hold { binding, effect: Effect::Adjacent };
        let held = TypeMeaning { names: vec!["rec".to_owned()], path: String::new(), holds: vec![hold] };
        let options = Options {
            orders: parse("orders", order).expect("an order"),
            lifts: vec![("rec".to_owned(), None)],
            meaning: Meaning { types: vec![held], ..Meaning::default() },
            ..Options::default()
        };
        advise(&Usage::empty(Abi::X86_64), &types, &sources, &options, &mut NoCompiler).expect("advice")
    };
    let beside = ordered("rec: low, high, last, first");
    assert_eq!(beside.orders.len(), 1, "{:?}", beside.refusals);
    for order in
        ["rec: low, last, high, first", "rec: high, low, last, first", "rec: low, align(8) high, last, first"]
    {
        let parted = ordered(order);
        let said = format!("{:?}", parted.refusals);
        assert!(parted.orders.is_empty() && said.contains("stepped through"), "{order}: {said}");
    }
}

#[test]
fn an_array_that_may_go_on_in_the_next_stays_beside_it() {
    let advice = held("rec: first, one, read, rest", true);
    let said = format!("{:?}", advice.refusals);
    assert!(advice.orders.is_empty() && said.contains("may go on in the next"), "{said}");
}
