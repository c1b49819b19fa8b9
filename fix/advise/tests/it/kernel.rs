//! Small examples of the order of members in a kernel's declarations, with types as BTF gives them: without alignments
//! and places.

use crate::pahole::{integer, member, push, structure};
use lineup_advise::advise;
use lineup_advise::constraint::Constraint;
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{
    Aggregate, AggregateKind, Language, SourceLocation, Type, TypeId, TypeKind, Types,
};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

/// A type of `long` members and cold arrays of them, and its declaration.
struct Case {
    types: Types,
    members: Vec<lineup_model::types::Member>,
    bytes: u64,
}

impl Case {
    fn new() -> Case {
        Case { types: Types::new(), members: Vec::new(), bytes: 0 }
    }

    fn add(mut self, name: &str, ty: TypeId, bytes: u64) -> Case {
        self.members.push(member(name, ty, self.bytes * 8));
        self.bytes += bytes;
        self
    }

    fn word(mut self, name: &str) -> Case {
        let word = integer(&mut self.types, "long", 8);
        self.add(name, word, 8)
    }

    fn words(mut self, name: &str, count: u64) -> Case {
        let word = integer(&mut self.types, "long", 8);
        let array =
            push(&mut self.types, "", None, TypeKind::Array { element: word, counts: vec![Some(count)] });
        self.add(name, array, count * 8)
    }

    /// Advice when every call uses these members, on the declaration in this file.
    fn advise(self, path: &str, text: &str, hot: &[&str]) -> Advice {
        self.advise_on(|_, _| Sources::new([(path.to_string(), text.to_string())]), None, hot)
    }

    /// The same on sources that consist of the type, which debug information says is declared there.
    fn advise_on(
        mut self,
        sources: impl FnOnce(&Types, TypeId) -> Sources,
        declared_at: Option<SourceLocation>,
        hot: &[&str],
    ) -> Advice {
        let aggregate = Aggregate {
            kind: AggregateKind::Struct,
            members: self.members.clone(),
            static_members: Vec::new(),
            is_declaration: false,
        };
        let id = self.types.push(Type {
            name: Some("rec".into()),
            size_bytes: Some(self.bytes),
            declared_align: None,
            declared_at,
            unit: None,
            language: Language::C,
            kind: TypeKind::Aggregate(aggregate),
        });
        let sources = sources(&self.types, id);
        let touched =
            self.members.iter().filter(|member| hot.contains(&member.name.as_deref().unwrap_or("")));
        let touched = touched.map(|member| ByteUse {
            offset: member.offset_bytes().expect("placed"),
            size_bytes: 8,
            loads: 1,
            stores: 0,
        });
        let bytes: Vec<ByteUse> = touched.collect();
        assert_eq!(bytes.len(), hot.len(), "all hot members exist");
        let patterns = vec![ObjectPattern::alone(0, bytes, 10)];
        let used = TypeUse { region: RegionId(0), ty: id, calls: 10, patterns, used_as: BTreeSet::new() };
        let usage = Usage {
            regions: Regions::from_iter([Region::named("hot")]),
            types: vec![used],
            ..Usage::empty(Abi::X86_64)
        };
        advise(&usage, &self.types, &sources, &Options::default(), &mut NoCompiler).expect("advice")
    }
}

fn holds(advice: &Advice, constraint: Constraint, names: &[&str]) {
    let obeyed = advice.orders.iter().flat_map(|order| &order.obeyed);
    let refusing = advice.refusals.iter().flat_map(|refusal| &refusal.constraints);
    let found: Vec<_> = obeyed.chain(refusing).collect();
    assert!(
        found.iter().any(|binding| binding.constraint == constraint && binding.names == names),
        "no {constraint:?} on {names:?} in {found:?}"
    );
}

/// The place of a member in the proposal; without a proposal it stays where it was.
fn offsets(advice: &Advice, names: &[&str]) -> Option<Vec<usize>> {
    let order = &advice.orders.first()?.new_order;
    Some(names.iter().map(|name| order.iter().position(|known| known == name).expect("a member")).collect())
}

#[test]
fn members_on_lines_of_their_own_for_other_processors_stay_there_though_btf_tells_no_alignment() {
    for macro_name in [
        "____cacheline_aligned_in_smp",
        "____cacheline_aligned",
        "__aligned(SMP_CACHE_BYTES)",
        "__aligned(64)",
    ] {
        let case = Case::new()
            .word("device")
            .words("cold", 7)
            .word("lock")
            .word("owner")
            .words("colder", 7)
            .word("stamp");
        let text = format!(
            "struct rec {{\n\tlong device;\n\tlong cold[7];\n\n\tlong lock {macro_name};\n\tlong owner;\n\
             \tlong colder[7];\n\tlong stamp;\n}};\n"
        );
        let advice = case.advise("netdevice.h", &text, &["device", "lock", "owner", "stamp"]);
        if let Some(places) = offsets(&advice, &["device", "lock", "owner", "stamp"]) {
            assert!(
                places[0] < places[1] && places[1] < places[2].min(places[3]),
                "{macro_name}: {places:?}"
            );
            assert_eq!(places[1], 2, "{macro_name}: the lock still begins its line");
        }
        holds(&advice, Constraint::KeptApart, &["lock"]);
    }
}

#[test]
fn headers_for_user_space_are_never_changed() {
    let text = "struct rec {\n\tlong a;\n\tlong cold[15];\n\tlong z;\n};\n";
    let advised =
        |path: &str| Case::new().word("a").words("cold", 15).word("z").advise(path, text, &["a", "z"]);
    let advice = advised("include/uapi/linux/rec.h");
    assert!(advice.orders.is_empty() && advice.edited.is_empty());
    holds(&advice, Constraint::CrossesAbi, &[]);
    assert_eq!(advised("include/linux/rec.h").orders.len(), 1);
}

#[test]
fn an_array_of_one_element_and_the_one_that_it_is_indexed_into_are_not_parted() {
    let case = Case::new()
        .word("a")
        .words("cold", 15)
        .words("first", 1)
        .words("others", 4)
        .words("colder", 15)
        .word("z");
    let text = "struct rec {\n\tlong a;\n\tlong cold[15];\n\tlong first[1];\n\tlong others[4];\n\tlong colder[15];\n\tlong z;\n};\n";
    let advice = case.advise("tcp.h", text, &["a", "first", "z"]);
    if let Some(places) = offsets(&advice, &["first", "others"]) {
        assert_eq!(places[1], places[0] + 1);
    }
    holds(&advice, Constraint::MemorySpan, &["first", "others"]);
}

#[test]
fn storage_behind_a_struct_that_ends_in_an_array_without_a_size_stays_behind_it() {
    let mut case = Case::new().word("a").words("cold", 15);
    let word = integer(&mut case.types, "long", 8);
    let open = push(&mut case.types, "", None, TypeKind::Array { element: word, counts: vec![None] });
    let group =
        structure(&mut case.types, "group", 8, vec![member("level", word, 0), member("ancestors", open, 64)]);
    let case = case.add("group", group, 8).word("storage").words("colder", 15).word("z");
    let text = "struct rec {\n\tlong a;\n\tlong cold[15];\n\tstruct group group;\n\tlong storage;\n\tlong colder[15];\n\tlong z;\n};\n";
    let advice = case.advise("cgroup.h", text, &["a", "storage", "z"]);
    if let Some(places) = offsets(&advice, &["group", "storage"]) {
        assert_eq!(places[1], places[0] + 1);
    }
    holds(&advice, Constraint::FlexibleArrayLast, &["group", "storage"]);
}

#[test]
fn an_array_of_a_type_with_lines_of_its_own_does_not_move_into_a_hole() {
    let mut case = Case::new().word("active").words("cold", 7);
    let word = integer(&mut case.types, "long", 8);
    let base = structure(
        &mut case.types,
        "base",
        64,
        (0..8).map(|n| member(&format!("m{n}"), word, n * 64)).collect(),
    );
    let array = push(&mut case.types, "", None, TypeKind::Array { element: base, counts: vec![Some(2)] });
    let case = case.add("bases", array, 128).word("stamp");
    let text = "struct base {\n\tlong m0, m1, m2, m3, m4, m5, m6, m7;\n} __base_align;\n\
                struct rec {\n\tlong active;\n\tlong cold[7];\n\tstruct base bases[2];\n\tlong stamp;\n};\n";
    let advice = case.advise("hrtimer.h", text, &["active", "bases", "stamp"]);
    if let Some(places) = offsets(&advice, &["active", "cold", "bases", "stamp"]) {
        assert_eq!(places, [0, 1, 2, 3]);
    }
    assert!(advice.orders.is_empty(), "{:?}", advice.orders);
}

/// A member of 32 bytes whose typedef is declared like this, behind hot and cold members.
fn with_typedef(declaration: &str) -> Advice {
    let mut case = Case::new().word("active").words("cold", 7);
    let word = integer(&mut case.types, "long", 8);
    let call = structure(
        &mut case.types,
        "call",
        32,
        (0..4).map(|n| member(&format!("m{n}"), word, n * 64)).collect(),
    );
    let typedef = push(&mut case.types, "call_t", Some(32), TypeKind::Typedef(Some(call)));
    let case = case.add("call", typedef, 32).word("stamp").words("colder", 7);
    let text = format!(
        "struct call {{\n\tlong m0, m1, m2, m3;\n}};\n{declaration}\nstruct rec {{\n\tlong active;\n\tlong cold[7];\n\
         \tcall_t call;\n\tlong stamp;\n\tlong colder[7];\n}};\n"
    );
    case.advise("sched.h", &text, &["active", "call", "stamp"])
}

/// BTF has no alignment of a typedef: the member stays at its offset if the text shows one, or shows nothing.
#[test]
fn a_member_whose_typedef_is_aligned_keeps_its_offset() {
    let aligned = with_typedef("typedef struct call call_t\n\t__aligned(sizeof(struct call));");
    holds(&aligned, Constraint::KeptApart, &["call"]);
    holds(&with_typedef(""), Constraint::KeptApart, &["call"]);
    for advice in [aligned, with_typedef("")] {
        assert!(offsets(&advice, &["call"]).is_none_or(|places| places == [2]), "{:?}", advice.orders);
    }
    let plain = with_typedef("typedef struct call call_t;");
    let bindings = plain.orders.iter().flat_map(|order| &order.obeyed);
    assert!(
        bindings.into_iter().all(|binding| binding.constraint != Constraint::KeptApart),
        "{:?}",
        plain.orders
    );
    assert_eq!(plain.orders.len(), 1, "nothing holds it");
}

/// Markers of groups are members without a size; the members behind them are still found.
#[test]
fn members_behind_the_markers_of_groups_are_found() {
    let case = || {
        Case::new()
            .words("__cacheline_group_begin__one", 0)
            .word("first")
            .words("cold", 15)
            .words("__cacheline_group_end__one", 0)
            .words("__cacheline_group_begin__two", 0)
            .word("program")
            .words("colder", 15)
            .word("last")
            .words("__cacheline_group_end__two", 0)
            .word("callback_head")
    };
    let text = "#define rcu_head callback_head\nstruct rec {\n\t__cacheline_group_begin(one);\n\tlong first;\n\tlong cold[15];\n\
        \t__cacheline_group_end(one);\n\n\t/* RX read-mostly hotpath */\n\t__cacheline_group_begin(two);\n\tlong program;\n\
        \tlong colder[15];\n\tlong last;\n\t__cacheline_group_end(two);\n\n\tlong rcu_head;\n};\n";
    let advice = case().advise("netdevice.h", text, &["program", "last"]);
    assert!(advice.refusals.is_empty(), "{:?}", advice.refusals);
    let places = offsets(&advice, &["program", "last"]).expect("an order");
    assert_eq!(places[0].abs_diff(places[1]), 1);

    let advice = case().advise("netdevice.h", text, &["first", "program"]);
    assert!(advice.orders.is_empty(), "no member leaves its group");
    let refused = advice.refusals.iter().flat_map(|refusal| &refusal.constraints);
    let already_good = advice.already_good.iter().any(|name| name == "rec");
    assert!(already_good || refused.into_iter().any(|found| found.constraint == Constraint::GroupMarker));
}

/// `a` and `b`, two lines apart.
fn apart() -> Case {
    Case::new().word("a").words("cold", 16).word("b")
}

#[test]
fn declarations_are_written_out_wherever_debug_information_says_that_they_stand() {
    let advice = |declared_at| {
        apart().advise_on(|types, id| Sources::written_out(types, [id]), declared_at, &["a", "b"])
    };
    let of_btf = advice(None);
    assert_eq!(of_btf.orders[0].path, "rec.h");
    assert_eq!(of_btf.orders[0].new_order, ["a", "b", "cold"]);
    let of_dwarf = advice(Some(SourceLocation { file: "kernel/sched/sched.h".into(), line: 737 }));
    assert_eq!(of_dwarf.orders, of_btf.orders);
}
