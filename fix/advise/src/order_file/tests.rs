use super::*;
use lineup_model::types::{AggregateKind, Member, MemberRole};

fn aggregate(names: &[&str]) -> Aggregate {
    let member = |name: &&str| Member {
        name: (!name.is_empty()).then(|| (*name).into()),
        ty: TypeId(0),
        offset_bits: None,
        bit_size: None,
        declared_align: None,
        role: MemberRole::Field,
        declared_at: None,
    };
    Aggregate {
        kind: AggregateKind::Struct,
        members: names.iter().map(member).collect(),
        static_members: Vec::new(),
        is_declaration: false,
    }
}

fn resolved(text: &str, names: &[&str]) -> Result<Arrangement, String> {
    let orders = parse("orders", text).map_err(|error| error.to_string())?;
    orders[0].resolve(&aggregate(names)).map_err(|error| error.to_string())
}

#[test]
fn groups_alignment_and_the_rest_are_told() {
    let text = "# by hand\nstruct sock: align(64) group sock_read { b, align(16) d },\n  rest, (anonymous),\nrq: x\n";
    let orders = parse("orders", text).expect("an order");
    assert_eq!((orders.len(), orders[1].type_name.as_str(), orders[1].line), (2, "rq", 4));
    let found = orders[0].resolve(&aggregate(&["a", "b", "", "c", "d"])).expect("resolves");
    assert_eq!(found.order, [1, 4, 0, 3, 2]);
    assert_eq!(found.align_bytes, [None, Some(16), None, None, None]);
    assert_eq!(found.groups, [Group { name: "sock_read".into(), align_bytes: Some(64), members: 0..2 }]);
    assert_eq!(found.alignments(), [Some(64), Some(16), Some(64), None, None]);
}

#[test]
fn lines_of_members_alone_are_orders_one_after_the_other() {
    let orders = parse("orders", "list_head: next, prev\n\nrq: b, a").expect("orders");
    let names: Vec<&str> = orders.iter().map(|order| order.type_name.as_str()).collect();
    assert_eq!(names, ["list_head", "rq"]);
    assert_eq!(orders[0].resolve(&aggregate(&["next", "prev"])).expect("resolves").order, [0, 1]);
}

#[test]
fn members_called_as_our_words_are_members() {
    assert_eq!(resolved("x: rest, group", &["group", "rest"]).expect("an order").order, [1, 0]);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, said) in [
        ("list_head: next", "line 1: list_head has 2 members, and 1 are in the order"),
        ("list_head: next, next", "no member next, or not so often"),
        ("\nlist_head: nxt, prev", "line 2: list_head has no member nxt"),
        ("list_head: rest, rest", "rest stands for all that is left, once"),
        ("list_head next", "a colon, not next"),
        ("list_head: group a { }", "the group a has no member"),
        ("list_head: group a { next prev }", "a comma between two members, or }, not prev"),
        ("list_head: align(48) next, prev", "a power of two of at most 4096, not align(48)"),
        ("list_head: next,\n, prev", "line 2: the name of a member, not ,"),
        ("list_head:", "the name of a member, not the end"),
    ] {
        let found = resolved(text, &["next", "prev"]).expect_err(text);
        assert!(found.contains(said), "{text:?}: {found}");
    }
}
