//! Neighbours that a reader takes for one thing: a small patch moves both or neither.

use crate::pahole::{integer, member, push, structure};
use lineup_advise::advise;
use lineup_advise::constraint::Constraint;
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::OrderProposal;
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{Aggregate, AggregateKind, Member, TypeId, TypeKind, Types};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

/// `struct rec`, member by member, with its text.
#[derive(Default)]
struct Rec {
    types: Types,
    members: Vec<Member>,
    text: String,
    hot: Vec<ByteUse>,
    bytes: u64,
}

impl Rec {
    fn add(mut self, ty: TypeId, name: &str, text: &str) -> Rec {
        let size_bytes = self.types.size_bytes(ty).expect("a size");
        let name = (!name.is_empty()).then(|| name.into());
        self.members.push(Member { name, ..member("", ty, 8 * self.bytes) });
        self.text += &format!("\t{text};\n");
        self.bytes += size_bytes;
        self
    }

    /// Every call uses the member that was added last.
    fn hot(mut self) -> Rec {
        let last = self.members.last().and_then(Member::offset_bytes).expect("a member");
        self.hot.push(ByteUse { offset: last, size_bytes: self.bytes - last, loads: 1, stores: 0 });
        self
    }

    fn word(mut self, name: &str) -> Rec {
        let word = integer(&mut self.types, "long", 8);
        self.add(word, name, &format!("long {name}"))
    }

    fn words(mut self, name: &str, count: u64) -> Rec {
        let element = integer(&mut self.types, "long", 8);
        let array = push(&mut self.types, "", None, TypeKind::Array { element, counts: vec![Some(count)] });
        self.add(array, name, &format!("long {name}[{count}]"))
    }

    fn number(mut self, name: &str) -> Rec {
        let number = integer(&mut self.types, "int", 4);
        self.add(number, name, &format!("int {name}"))
    }

    fn enumeration(mut self, name: &str) -> Rec {
        let held = push(&mut self.types, "held", Some(4), TypeKind::Enum);
        self.add(held, name, &format!("enum held {name}"))
    }

    /// An anonymous union of four bytes.
    fn union(mut self) -> Rec {
        let number = integer(&mut self.types, "int", 4);
        let members = vec![member("rt_gw4", number, 0), member("rt_gw6", number, 0)];
        let union = Aggregate {
            kind: AggregateKind::Union,
            members,
            static_members: Vec::new(),
            is_declaration: false,
        };
        let union = push(&mut self.types, "", Some(4), TypeKind::Aggregate(union));
        self.add(union, "", "union {\n\t\tint rt_gw4;\n\t\tint rt_gw6;\n\t}")
    }

    fn order(mut self, most_moved: Option<usize>) -> Option<OrderProposal> {
        let id = structure(&mut self.types, "rec", self.bytes, self.members);
        let patterns = vec![ObjectPattern::alone(0, self.hot, 10)];
        let used = TypeUse { region: RegionId(0), ty: id, calls: 10, patterns, used_as: BTreeSet::new() };
        let usage = Usage {
            regions: Regions::from_iter([Region::named("hot")]),
            types: vec![used],
            ..Usage::empty(Abi::X86_64)
        };
        let options = Options { most_moved, ..Options::default() };
        let sources = Sources::new([("a.h".to_string(), format!("struct rec {{\n{}}};\n", self.text))]);
        let mut advice = advise(&usage, &self.types, &sources, &options, &mut NoCompiler).expect("advice");
        advice.orders.pop()
    }
}

fn is_held(order: &OrderProposal) -> bool {
    order.obeyed.iter().any(|binding| binding.constraint == Constraint::OneThing)
}

/// As the kernel's `rtable`: calls use the union, and not always the tag.
fn route(tag: impl Fn(Rec) -> Rec, most_moved: Option<usize>) -> OrderProposal {
    let rec = tag(Rec::default().words("dst", 7).word("rt_genid").hot().words("rt_cold", 7)).union().hot();
    rec.words("rt_list", 9).order(most_moved).expect("an order")
}

/// Two members that a call uses, between arrays that it does not.
fn two_hot_and_cold() -> Rec {
    Rec::default()
        .words("cold", 32)
        .word("hot")
        .hot()
        .word("warm")
        .hot()
        .words("filler", 15)
        .words("more", 15)
}

#[test]
fn a_union_stays_beside_what_tells_its_alternative() {
    for (name, is_enumeration) in
        [("rt_gw_family", false), ("rt_type", false), ("version", false), ("rt_held", true)]
    {
        let tag = |rec: Rec| if is_enumeration { rec.enumeration(name) } else { rec.number(name) };
        let order = route(tag, Some(1));
        assert!(is_held(&order), "{name}");
        let at = order.new_order.iter().position(|known| known == name).expect("the tag");
        assert_eq!(order.new_order[at + 1], "(anonymous)", "{name}");
        assert!(
            order.moved.is_empty() || order.moved == [name, "(anonymous)"] || order.moved == ["rt_genid"],
            "{:?}",
            order.moved
        );
        assert!(order.edited["a.h"].contains(&format!(" {name};\n\tunion {{\n\t\tint rt_gw4;")), "{order:?}");
    }
}

/// A number that only happens to lie before a union; and an order that nobody asked to be small.
#[test]
fn a_union_leaves_what_does_not_speak_of_it() {
    assert!(!is_held(&route(|rec| rec.number("rt_cost"), Some(1))));
    assert!(!is_held(&route(|rec| rec.number("rt_gw_family"), None)));
}

/// A beginning that most members have says nothing, nor does a letter.
#[test]
fn neighbours_of_one_name_move_as_one() {
    for (first, second, is_one) in [
        ("uncached", "uncached_list", true),
        ("gp_seq", "gp_seq_needed", true),
        ("buf_len", "buf_size", true),
        ("hash1", "hash2", true),
        ("next_tick", "next_timer", false),
        ("sk_err", "sk_flags", false),
        ("a", "a_len", false),
    ] {
        let rec = Rec::default()
            .words("sk_cold", 32)
            .word("sk_hot")
            .hot()
            .word("sk_warm")
            .hot()
            .words("sk_filler", 30);
        let order = rec.word(first).hot().word(second).words("sk_last", 31).order(Some(1)).expect("an order");
        let moved: &[&str] = if is_one { &[first, second] } else { &[first] };
        assert_eq!(order.moved, moved, "{first} {second}");
        assert_eq!(is_held(&order), is_one);
    }
}

/// As the kernel's `task_struct`: `pid` and `tgid` between blank lines, the three priorities, the members for `exit`.
#[test]
fn short_paragraphs_and_neighbours_that_share_a_word_stay_whole() {
    for (members, is_one) in [
        ("\tlong pid;\n\tlong tgid;\n", true),
        ("\tlong pid;\n\tlong b;\n\tlong c;\n\tlong d;\n", true),
        ("\tlong pid;\n\tlong b;\n\tlong c;\n\tlong d;\n\tlong e;\n", false),
        ("\tlong prio;\n\tlong static_prio;\n\tlong normal_prio;\n\tlong d;\n\tlong e;\n", true),
        ("\tlong exit_state;\n\tlong exit_code;\n\tlong exit_signal;\n\tlong d;\n\tlong e;\n", true),
        ("\tlong state;\n\tlong exit_code;\n\tlong exit_signal;\n\tlong d;\n\tlong e;\n", false),
        ("\tlong a_len;\n\tlong b_len;\n\tlong c_len;\n\tlong d;\n\tlong e;\n", false),
    ] {
        let mut rec = two_hot_and_cold();
        let names: Vec<&str> = members.lines().filter_map(|line| line.split([' ', ';']).nth(1)).collect();
        for (at, name) in names.iter().enumerate() {
            rec = rec.word(name);
            rec = if at == 0 { rec.hot() } else { rec };
        }
        let mut rec = rec.words("last", 31);
        rec.text = rec.text.replace(members, &format!("\n{members}\n"));
        let order = rec.order(Some(1)).expect("an order");
        assert_eq!(order.moved[0], names[0]);
        assert_eq!(order.moved.len() > 1, is_one, "{members}: {:?}", order.moved);
        assert_eq!(is_held(&order), is_one, "{members}");
    }
}

/// Two members between blank lines of which one is a number and the other an array have nothing in common.
#[test]
fn a_short_paragraph_of_several_types_does_not_move_as_one() {
    let rec = Rec::default().words("cold", 32).word("hot").hot().word("warm").hot().words("filler", 30);
    let mut rec = rec.word("pid").hot().words("b", 2).words("last", 31);
    rec.text = rec.text.replace("\tlong pid;\n\tlong b[2];\n", "\n\tlong pid;\n\tlong b[2];\n\n");
    assert_eq!(rec.order(Some(1)).expect("an order").moved, ["pid"]);
}

/// As the kernel's `rq`: the queues of the scheduler's classes stand together.
#[test]
fn neighbours_of_sibling_types_move_as_one() {
    for (types, is_one) in [(["cfs_rq", "rt_rq", "dl_rq"], true), (["cfs_rq", "rt_rq", "dl_timer"], false)] {
        let mut rec =
            Rec::default().words("cold", 32).word("hot").hot().word("warm").hot().words("filler", 30);
        for (at, ty) in types.into_iter().enumerate() {
            let word = integer(&mut rec.types, "long", 8);
            let id = structure(&mut rec.types, ty, 8, vec![member("count", word, 0)]);
            let name = ty.split('_').next().expect("a word");
            rec = rec.add(id, &format!("{name}{at}"), &format!("struct {ty} {name}{at}"));
            rec = if at == 0 { rec.hot() } else { rec };
        }
        let order = rec.words("last", 31).order(Some(1)).expect("an order");
        assert_eq!(order.moved.len(), if is_one { 3 } else { 1 }, "{:?}", order.moved);
    }
}

/// As the kernel's `net_device`: "Protocol-specific pointers" heads the pointers below it up to a blank line.
#[test]
fn the_first_of_several_members_stays_below_the_comment_above_them() {
    for (second_comment, stays) in [("", true), ("\t/* of the other */\n", false)] {
        let rec = Rec::default().words("cold", 32).word("hot").hot().word("warm").hot().words("filler", 30);
        let mut rec = rec.word("ip").hot().words("vlan", 2).words("last", 31);
        let from = "\tlong ip;\n\tlong vlan[2];\n";
        let to = format!("\n\t/* Pointers of protocols */\n\tlong ip;\n{second_comment}\tlong vlan[2];\n\n");
        rec.text = rec.text.replace(from, &to);
        let order = rec.order(Some(1));
        let moved = order.map(|order| order.moved);
        assert_eq!(moved.is_some_and(|moved| moved == ["ip"]), !stays, "{second_comment}");
    }
}

/// A member that an alignment or a comment of its own parts from its neighbour is not joined to it.
#[test]
fn what_stands_apart_is_not_joined() {
    for (from, to) in [
        ("\tlong gp_seq_needed;", "\n\t/* The users of it. */\n\n\tlong gp_seq_needed;"),
        ("gp_seq_needed;", "gp_seq_needed ____cacheline_aligned;"),
    ] {
        let rec = two_hot_and_cold();
        let mut rec = rec.word("gp_seq").hot().word("gp_seq_needed").words("last", 31);
        rec.text = rec.text.replace(from, to);
        let order = rec.order(Some(1));
        let held = |order: &OrderProposal| {
            let names = order.obeyed.iter().filter(|one| one.constraint == Constraint::OneThing);
            names.flat_map(|one| one.names.clone()).any(|name| name == "gp_seq")
        };
        assert!(order.is_none_or(|order| !held(&order)), "{to}");
    }
}
