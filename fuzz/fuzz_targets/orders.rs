//! Any file of orders: it is refused, or each order names the members of its type once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_advise::order_file::{WrittenOrder, parse};
use lineup_model::types::{Aggregate, AggregateKind, Member, MemberRole, TypeId};

fuzz_target!(|text: &str| {
    for order in parse("orders", text).unwrap_or_default() {
        let count = order.items.len();
        assert!(order.groups.iter().all(|group| !group.members.is_empty() && group.members.end <= count));
        let aggregate = named(&order);
        let Ok(arrangement) = order.resolve(&aggregate) else { continue };
        assert_eq!(arrangement.align_bytes.len(), arrangement.order.len());
        let mut places = arrangement.order;
        places.sort_unstable();
        assert!(places.into_iter().eq(0..aggregate.members.len()), "each member once");
    }
});

/// A type with the members that an order names, and one more.
fn named(order: &WrittenOrder) -> Aggregate {
    let names = order.items.iter().map(|item| item.name.as_str()).filter(|name| *name != "rest");
    let member = |name: &str| Member {
        name: (name != "(anonymous)").then(|| name.into()),
        ty: TypeId(0),
        offset_bits: None,
        bit_size: None,
        declared_align: None,
        role: MemberRole::Field,
        declared_at: None,
    };
    Aggregate {
        kind: AggregateKind::Struct,
        members: names.chain(["last"]).map(member).collect(),
        static_members: Vec::new(),
        is_declaration: false,
    }
}
