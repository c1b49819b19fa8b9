//! Comments, macros and shapes of types as contracts: members that are pinned, kept together or refused, with the
//! reason quoted.

use crate::pahole;
use crate::pahole::{Folder, integer, member, push, structure, typedef};
use lineup_advise::advise;
use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::{Advice, OrderProposal};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{Aggregate, AggregateKind, Language, Member, MemberRole, TypeId, TypeKind, Types};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

/// The use of some members of one object of `struct rec` in every call.
fn usage(types: &Types, id: TypeId, hot: &[&str]) -> Usage {
    let (_, aggregate) = types.aggregate(id).expect("a struct");
    let is_hot = |member: &&Member| hot.contains(&member.name.as_deref().unwrap_or(""));
    let touched = |member: &Member| ByteUse {
        offset: member.offset_bytes().expect("placed"),
        size_bytes: types.size_bytes(member.ty).unwrap_or(1).max(1),
        loads: 1,
        stores: 0,
    };
    let bytes: Vec<ByteUse> = aggregate.members.iter().filter(is_hot).map(touched).collect();
    assert_eq!(bytes.len(), hot.len(), "all hot members exist");
    let patterns = vec![ObjectPattern::alone(0, bytes, 10)];
    let used = TypeUse { region: RegionId(0), ty: id, calls: 10, patterns, used_as: BTreeSet::new() };
    Usage {
        regions: Regions::from_iter([Region::named("hot")]),
        types: vec![used],
        ..Usage::empty(Abi::X86_64)
    }
}

/// Advice on `struct rec` with these members, compiled by the compiler.
fn advice_on(members: &str, hot: &[&str], options: &Options) -> Advice {
    declared(&format!("struct rec {{\n{members}}};\nstruct rec *r;\n"), hot, options)
}

fn declared(text: &str, hot: &[&str], options: &Options) -> Advice {
    let mut folder = Folder::new(&[("a.c", text)], "a.c", &["rec"]);
    folder.write(&Default::default());
    let types = folder.types(Abi::X86_64).expect("compiles");
    let id = types.by_name()["rec"][0];
    let sources = Sources::new(folder.files.clone());
    advise(&usage(&types, id, hot), &types, &sources, options, &mut folder).expect("advice")
}

fn proposed(advice: &Advice) -> &OrderProposal {
    assert_eq!(advice.refusals, []);
    advice.orders.first().expect("a proposal")
}

/// The constraint of this kind that the advice names, obeyed or refusing.
fn named(advice: &Advice, constraint: Constraint) -> &Binding {
    let obeyed = advice.orders.iter().flat_map(|order| &order.obeyed);
    let refusing = advice.refusals.iter().flat_map(|refusal| &refusal.constraints);
    let mut found = obeyed.chain(refusing).filter(|binding| binding.constraint == constraint);
    found.next().unwrap_or_else(|| panic!("no {constraint:?} in {:?} {:?}", advice.orders, advice.refusals))
}

fn place(advice: &Advice, member: &str) -> usize {
    let order = &proposed(advice).new_order;
    order.iter().position(|known| known == member).expect("a member")
}

/// Two hot members, far apart.
const HOT: [&str; 2] = ["b", "z"];

fn spread(first: &str) -> String {
    format!("{first}\tchar cold[120];\n\tlong b;\n\tchar colder[120];\n\tlong z;\n\tlong rest;\n")
}

#[test]
fn a_member_that_must_be_first_stays_first_and_the_words_are_quoted() {
    let members = spread("\t/* must be first, see list_of() */\n\tlong link;\n");
    let advice = advice_on(&members, &HOT, &Options::default());
    assert_eq!(place(&advice, "link"), 0);
    let binding = named(&advice, Constraint::Comment);
    assert_eq!(binding.names, ["link"]);
    assert_eq!(binding.detail.as_deref(), Some("“must be first, see list_of()”"));
    assert_eq!(binding.at.as_ref().map(|at| at.line), Some(2));
}

#[test]
fn a_comment_inside_a_condition_holds_the_members_of_the_condition() {
    let first = "#if 1\n\t/*\n\t * For reasons of header soup this must be\n\t * the first element of rec.\n\t */\n\tlong info;\n#endif\n";
    let advice = advice_on(&spread(first), &HOT, &Options::default());
    assert_eq!(place(&advice, "info"), 0);
    assert_eq!(named(&advice, Constraint::Comment).names, ["info"]);
}

#[test]
fn a_member_that_must_be_last_stays_last() {
    let members = spread("").replace("\tlong rest;", "\tlong rest; /* Keep this last. */");
    let advice = advice_on(&members, &["b", "rest"], &Options::default());
    assert_eq!(named(&advice, Constraint::Comment).names, ["rest"]);
    assert_eq!(
        advice.orders.iter().flat_map(|order| order.new_order.last()).find(|last| *last != "rest"),
        None
    );
}

#[test]
fn members_that_must_stay_in_order_do_not_move_until_lifted() {
    let members =
        "\t/* do not reorder: the assembly counts on it */\n\tlong a;\n\tchar cold[120];\n\tlong b;\n";
    let kept = advice_on(members, &["a", "b"], &Options::default());
    assert!(kept.orders.is_empty(), "{:?}", kept.orders);
    assert_eq!(named(&kept, Constraint::Comment).names, ["a", "b", "cold"]);
    for lifts in [vec![("rec".to_string(), None)], vec![("rec".to_string(), Some("cold".to_string()))]] {
        let lifted = Options { lifts, ..Options::default() };
        assert!(!advice_on(members, &["a", "b"], &lifted).orders.is_empty());
    }
}

#[test]
fn a_member_with_an_attribute_that_pins_it_stays_where_it_is() {
    let members = spread("\tlong link __attribute__((packed));\n");
    let advice = advice_on(&members, &HOT, &Options::default());
    assert_eq!(place(&advice, "link"), 0);
    let binding = named(&advice, Constraint::Comment);
    assert_eq!(
        (binding.names.as_slice(), binding.detail.as_deref()),
        (&["link".to_owned()][..], Some("packed"))
    );
    let lifts = vec![("rec".to_string(), Some("link".to_string()))];
    let lifted = advice_on(&members, &HOT, &Options { lifts, ..Options::default() });
    assert!(
        lifted.orders.iter().flat_map(|order| &order.obeyed).all(|one| one.constraint != Constraint::Comment)
    );
}

#[test]
fn a_comment_above_the_type_holds_all_of_it() {
    let text = format!(
        "/* Keep in sync with struct wire_rec. */\nstruct rec {{\n{}}};\nstruct rec *r;\n",
        spread("")
    );
    let advice = declared(&text, &HOT, &Options::default());
    assert!(advice.orders.is_empty());
    assert_eq!(named(&advice, Constraint::Comment).names, Vec::<String>::new());
}

#[test]
fn a_comment_that_only_explains_holds_nothing() {
    let members = spread("\t/* the first free entry, or -1 */\n\tlong free;\n");
    let advice = advice_on(&members, &HOT, &Options::default());
    assert!(proposed(&advice).obeyed.is_empty(), "{:?}", proposed(&advice).obeyed);
}

#[test]
fn members_under_a_heading_stay_together_and_no_other_comes_under_it() {
    let members =
        "\t/* Protected by the table's lock: */\n\tlong a;\n\tlong b;\n\n\tchar cold[120];\n\tlong z;\n";
    let advice = advice_on(members, &["a", "z"], &Options::default());
    let text = &proposed(&advice).edited["a.c"];
    assert!(text.contains("lock: */\n\tlong a;\n\tlong b;\n\n"), "{text}");
    assert_eq!(named(&advice, Constraint::Heading).names, ["a", "b"]);
    assert_eq!(place(&advice, "b"), place(&advice, "a") + 1);
}

#[test]
fn members_do_not_cross_a_comment_that_stands_alone() {
    let members =
        "\tlong a;\n\n\t/* What follows belongs to the reader. */\n\n\tchar cold[120];\n\tlong z;\n";
    let advice = advice_on(members, &["a", "z"], &Options::default());
    assert_eq!(advice.orders.iter().filter(|order| order.new_order[0] != "a").count(), 0);
    named(&advice, Constraint::Heading);
}

#[test]
fn group_macros_without_a_semicolon_do_not_move_with_the_next_member() {
    let text = format!(
        "#define randomized_struct_fields_start\n#define randomized_struct_fields_end\nstruct rec {{\n\tlong state;\n\
         \trandomized_struct_fields_start\n{}\trandomized_struct_fields_end\n\tlong tail;\n}};\nstruct rec *r;\n",
        spread("")
    );
    let advice = declared(&text, &HOT, &Options::default());
    let new = &proposed(&advice).edited["a.c"];
    assert!(new.contains("\tlong state;\n\trandomized_struct_fields_start\n"), "{new}");
    assert!(new.contains("\trandomized_struct_fields_end\n\tlong tail;\n"), "{new}");
    named(&advice, Constraint::GroupMarker);
}

#[test]
fn members_kept_on_lines_of_their_own_stay_apart() {
    let members = "\tlong a;\n\tlong read_only;\n\tlong written __attribute__((aligned(64)));\n\tchar cold[120];\n\tlong z;\n";
    let advice = advice_on(members, &["a", "z"], &Options::default());
    for order in &advice.orders {
        let at = |name: &str| order.new_order.iter().position(|known| known == name).expect("a member");
        assert!(at("a") < at("written") && at("written") < at("z"), "{:?}", order.new_order);
    }
    assert!(advice.orders.is_empty() || named(&advice, Constraint::KeptApart).names == ["written"]);
}

/// Types and sources that no compiler has to see.
fn predicted(types: &Types, id: TypeId, text: &str, hot: &[&str]) -> Advice {
    let sources = Sources::new([("a.c".to_string(), text.to_string())]);
    advise(&usage(types, id, hot), types, &sources, &Options::default(), &mut NoCompiler).expect("advice")
}

#[test]
fn two_types_that_begin_alike_keep_their_beginning() {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let cold = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(112)] });
    let both = || vec![member("next", word, 0), member("prev", word, 64)];
    structure(&mut types, "queue", 24, [both(), vec![member("length", word, 128)]].concat());
    let own =
        [both(), vec![member("cold", cold, 128), member("a", word, 1024), member("z", word, 1088)]].concat();
    let id = structure(&mut types, "rec", 144, own);
    let text = "struct rec { long next; long prev; char cold[112]; long a; long z; };\n";
    let advice = predicted(&types, id, text, &["prev", "a", "z"]);
    assert_eq!(proposed(&advice).new_order[..2], ["next", "prev"]);
    let binding = named(&advice, Constraint::SharedBeginning);
    assert_eq!(
        (binding.names.as_slice(), binding.detail.as_deref()),
        (["next", "prev"].map(String::from).as_slice(), Some("queue begins alike"))
    );
}

#[test]
fn one_common_member_is_no_common_beginning() {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let cold = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(120)] });
    structure(&mut types, "queue", 16, vec![member("next", word, 0), member("length", word, 64)]);
    let own = vec![member("next", word, 0), member("cold", cold, 64), member("a", word, 1024)];
    let id = structure(&mut types, "rec", 136, own);
    let advice =
        predicted(&types, id, "struct rec { long next; char cold[120]; long a; };\n", &["next", "a"]);
    assert!(proposed(&advice).obeyed.is_empty());
}

#[test]
fn a_table_at_the_end_stays_there() {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let cold = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(56)] });
    let nodes = push(&mut types, "", None, TypeKind::Array { element: word, counts: vec![Some(4)] });
    let own = vec![
        member("a", word, 0),
        member("cold", cold, 64),
        member("y", word, 512),
        member("colder", cold, 576),
        member("z", word, 1024),
        member("node", nodes, 1088),
    ];
    let id = structure(&mut types, "rec", 168, own);
    let text = "struct rec { long a; char cold[56]; long y; char colder[56]; long z; long node[4]; };\n";
    let advice = predicted(&types, id, text, &["a", "y", "z", "node"]);
    assert_eq!(proposed(&advice).new_order.last().map(String::as_str), Some("node"));
    assert_eq!(named(&advice, Constraint::FlexibleArrayLast).names, ["node"]);
}

#[test]
fn declarations_that_cannot_be_read_are_counted_with_the_reason() {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let cold = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(120)] });
    let own = vec![member("a", word, 0), member("cold", cold, 64), member("z", word, 1024)];
    let id = structure(&mut types, "rec", 136, own);
    let advice = predicted(&types, id, "int nothing;\n", &["a", "z"]);
    assert_eq!(advice.types_touched, 1);
    let [(name, binding)] = advice.types_not_read.as_slice() else { panic!("{:?}", advice.types_not_read) };
    assert_eq!((name.as_str(), binding.constraint), ("rec", Constraint::OutsideSource));
    let readable = predicted(&types, id, "struct rec { long a; char cold[120]; long z; };\n", &["a", "z"]);
    assert_eq!((readable.types_touched, readable.types_not_read.len()), (1, 0));
}

/// `struct rec` of these members and cold ones, then `z`; the members are of eight bytes.
fn of_words(types: &mut Types, first: &[&str]) -> (TypeId, String) {
    let (byte, word) = (integer(types, "char", 1), integer(types, "long", 8));
    let cold = push(types, "", None, TypeKind::Array { element: byte, counts: vec![Some(120)] });
    let mut members: Vec<Member> = Vec::new();
    for name in first {
        members.push(member(name, word, 64 * members.len() as u64));
    }
    let end = 8 * first.len() as u64;
    members.extend([member("cold", cold, 8 * end), member("z", word, 8 * (end + 120))]);
    let id = structure(types, "rec", end + 128, members);
    let text: String = first.iter().map(|name| format!("long {name}; ")).collect();
    (id, format!("struct rec {{ {text}char cold[120]; long z; }};\n"))
}

#[test]
fn a_type_is_kept_by_any_of_its_names() {
    for name in ["rec", "record_t"] {
        let mut types = Types::new();
        let (id, text) = of_words(&mut types, &["a"]);
        typedef(&mut types, "record_t", id);
        let sources = Sources::new([("a.c".to_string(), text)]);
        let options = Options { keeps: vec![name.to_string()], ..Options::default() };
        let advice = advise(&usage(&types, id, &["a", "z"]), &types, &sources, &options, &mut NoCompiler);
        named(&advice.expect("advice"), Constraint::Kept);
    }
}

#[test]
fn base_classes_stay_before_members() {
    let mut types = Types::new();
    let (id, _) = of_words(&mut types, &["a", "b"]);
    let base = structure(&mut types, "base", 8, Vec::new());
    let (_, aggregate) = types.aggregate(id).expect("a struct");
    let mut aggregate = aggregate.clone();
    aggregate.members[0] =
        Member { name: None, ty: base, role: MemberRole::Base, ..aggregate.members[0].clone() };
    types.get_mut(id).expect("known").kind = TypeKind::Aggregate(aggregate);
    let text = "struct rec : base { long b; char cold[120]; long z; };\n";
    let advice = predicted(&types, id, text, &["b", "z"]);
    assert_eq!(proposed(&advice).field_order[0], 0);
    assert_ne!(proposed(&advice).field_order, [0, 1, 2, 3]);
}

#[test]
fn a_first_member_with_an_alignment_of_its_own_is_apart_from_nothing() {
    for (apart, is_named) in [(0, false), (1, true)] {
        let mut types = Types::new();
        let word = integer(&mut types, "long", 8);
        let names = ["a", "b", "cold", "z"];
        let mut members: Vec<Member> =
            names.iter().zip([0, 512, 576, 1536]).map(|(name, at)| member(name, word, at)).collect();
        members[2].ty = push(&mut types, "", None, TypeKind::Array { element: word, counts: vec![Some(15)] });
        members[apart].declared_align = Some(64);
        if apart == 0 {
            members
                .iter_mut()
                .skip(1)
                .for_each(|member| member.offset_bits = member.offset_bits.map(|at| at - 448));
        }
        let size_bytes = if apart == 0 { 192 } else { 256 };
        let id = structure(&mut types, "rec", size_bytes, members);
        let aligned = |at: usize| if at == apart { " __attribute__((aligned(64)))" } else { "" };
        let text =
            format!("struct rec {{ long a{}; long b{}; long cold[15]; long z; }};\n", aligned(0), aligned(1));
        let advice = predicted(&types, id, &text, &["a", "z"]);
        let told = format!("{:?} {:?}", advice.orders, advice.refusals);
        assert_eq!(told.contains("KeptApart"), is_named, "{told}");
    }
}

#[test]
fn a_cast_to_a_type_that_begins_with_the_same_member_holds_it() {
    for (other, is_held) in [("key", true), ("number", false)] {
        let mut types = Types::new();
        let (id, text) = of_words(&mut types, &["key", "a"]);
        let word = types.aggregate(id).expect("a struct").1.members[0].ty;
        structure(&mut types, "node", 8, vec![member(other, word, 0)]);
        let text = text + "void f(struct node *);\nvoid g(struct rec *r) { f((struct node *)r); }\n";
        let advice = predicted(&types, id, &text, &["a", "z"]);
        let obeyed = &proposed(&advice).obeyed;
        let is_first = |binding: &Binding| binding.constraint == Constraint::FirstMemberIsObject;
        assert_eq!(obeyed.iter().any(is_first), is_held, "{obeyed:?}");
    }
}

#[test]
fn an_array_of_one_element_inside_the_last_member_is_its_tail_only_at_its_end() {
    for (order, is_tail) in [(["one", "n"], false), (["n", "one"], true)] {
        let mut types = Types::new();
        let word = integer(&mut types, "long", 8);
        let one = push(&mut types, "", None, TypeKind::Array { element: word, counts: vec![Some(1)] });
        let inner = order.map(|name| if name == "one" { one } else { word });
        let inner = vec![member(order[0], inner[0], 0), member(order[1], inner[1], 64)];
        let inner = structure(&mut types, "inner", 16, inner);
        let (id, text) = of_words(&mut types, &["a"]);
        let (_, aggregate) = types.aggregate(id).expect("a struct");
        let mut aggregate = aggregate.clone();
        aggregate.members.push(member("last", inner, 1088));
        *types.get_mut(id).expect("known") = {
            let mut ty = types.get(id).expect("known").clone();
            (ty.size_bytes, ty.kind) = (Some(152), TypeKind::Aggregate(aggregate));
            ty
        };
        let advice =
            predicted(&types, id, &text.replace("long z;", "long z; struct inner last;"), &["a", "last"]);
        let told = format!("{:?} {:?}", advice.orders, advice.refusals);
        assert_eq!(told.contains("FlexibleArrayLast"), is_tail, "{told}");
    }
}

/// Tree-sitter and tokens read a real class: the order of its data changes, the rest stays.
#[test]
fn a_class_with_methods_comments_and_nested_classes_is_reordered() {
    let text = "struct outer { struct rec; int x; };\n\
        struct outer::rec\n{\n    long a ;\n    // Looks one up.\n    rec *find(const rec &key) const { return nullptr; }\n\n    \
        // Compares.\n    bool operator==(const rec &other) const { return a == other.a; }\n    \
        class inner { int y; };\n    char cold[120] __attribute__((unused));\n    \
        [[maybe_unused]] long z;\n    int (*call)(void *, int);\n};\nouter::rec r;\n";
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let cold = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(120)] });
    let function = pahole::pointer(&mut types, Abi::X86_64);
    let own = vec![
        member("a", word, 0),
        member("cold", cold, 64),
        member("z", word, 1024),
        member("call", function, 1088),
    ];
    let id = structure(&mut types, "outer::rec", 144, own);
    let sources = Sources::new([("a.cc".to_string(), text.to_string())]);
    let advice =
        advise(&usage(&types, id, &["a", "z"]), &types, &sources, &Options::default(), &mut NoCompiler);
    let advice = advice.expect("advice");
    let new = &proposed(&advice).edited["a.cc"];
    let at = |part: &str| new.find(part).unwrap_or_else(|| panic!("{part} in {new}"));
    assert!(at("long z;") < at("char cold") || at("char cold") < at("long a ;"), "{new}");
    for kept in [
        "rec *find(const rec &key) const { return nullptr; }",
        "class inner { int y; };",
        "// Compares.\n    bool operator==",
    ] {
        assert!(new.contains(kept), "{new}");
    }
}

/// Methods under a condition stay in their access section; members under one move with it.
#[test]
fn a_condition_around_methods_stays_where_it_is() {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let cold = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(120)] });
    let own = vec![member("alpha", word, 0), member("cold", cold, 64), member("zeta", word, 1024)];
    let id = structure(&mut types, "rec", 136, own);
    let advised = |inside: &str| {
        let text = format!(
            "class rec {{\npublic:\n#if WIDE\n    {inside}\n#endif\nprivate:\n    long alpha;\n    char cold[120];\n    long zeta;\n}};\nrec r;\n"
        );
        let sources = Sources::new([("a.cc".to_string(), text)]);
        let usage = usage(&types, id, &["alpha", "zeta"]);
        advise(&usage, &types, &sources, &Options::default(), &mut NoCompiler).expect("advice")
    };
    let advice = advised("rec(long value);\n    long get() const { return alpha; }");
    let new = &proposed(&advice).edited["a.cc"];
    assert!(new.starts_with("class rec {\npublic:\n#if WIDE\n    rec(long value);"), "{new}");
    assert!(
        !format!("{:?}", proposed(&advice).obeyed).contains("Conditional"),
        "{:?}",
        proposed(&advice).obeyed
    );
    let advice = advised("long wide;");
    let told = format!("{:?} {:?}", advice.orders, advice.refusals);
    assert!(told.contains("Conditional"), "{told}");
}

/// A comment's demand on a constant, or on the steps in a method, is no demand on members that it does not name.
#[test]
fn a_comment_of_a_constant_or_of_code_holds_only_the_members_that_it_names() {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let cold = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(120)] });
    let own = vec![member("alpha", word, 0), member("cold", cold, 64), member("zeta", word, 1024)];
    let id = structure(&mut types, "rec", 136, own);
    let advised = |constant: &str, step: &str| {
        let text = format!(
            "class rec {{\n    // {constant}\n    static constexpr long most = 5;\npublic:\n    void go() {{\n        // {step}\n        \
            alpha = zeta;\n    }}\n\n#if 1\n#endif\n    long alpha;\n    char cold[120];\n    long zeta;\n}};\nrec r;\n"
        );
        let sources = Sources::new([("a.cc".to_string(), text)]);
        let usage = usage(&types, id, &["alpha", "zeta"]);
        let advice = advise(&usage, &types, &sources, &Options::default(), &mut NoCompiler).expect("advice");
        advice.orders.len()
    };
    assert_eq!(advised("The constant is hard-coded.", "From here we need to start the copy."), 1);
    for (constant, step) in [
        ("Hard-coded like cold and zeta.", "Copies."),
        ("A limit.", "We need to start with alpha, cold and zeta."),
        ("A limit.", "Do not reorder."),
    ] {
        assert_eq!(advised(constant, step), 0, "{constant} {step}");
    }
}

/// A member's type in C++, by its kind and name, with a base class or a member of this type.
fn cpp_type(
    types: &mut Types,
    kind: AggregateKind,
    name: &str,
    inside: Option<(MemberRole, TypeId)>,
) -> TypeId {
    let id = structure(types, name, 8, Vec::new());
    let members: Vec<Member> =
        inside.map(|(role, ty)| Member { role, ..member("inside", ty, 0) }).into_iter().collect();
    let ty = types.get_mut(id).expect("known");
    ty.language = Language::Cpp;
    ty.kind =
        TypeKind::Aggregate(Aggregate { kind, members, static_members: Vec::new(), is_declaration: false });
    id
}

/// Two members of a type, hot and apart: true when the order in which they are constructed is kept.
fn keeps_construction_order(make: impl Fn(&mut Types) -> TypeId) -> bool {
    let mut types = Types::new();
    let ty = make(&mut types);
    let (id, _) = of_words(&mut types, &["a", "b"]);
    let whole = types.get_mut(id).expect("known");
    whole.language = Language::Cpp;
    let TypeKind::Aggregate(aggregate) = &mut whole.kind else { panic!("a struct") };
    aggregate.members[0].ty = ty;
    aggregate.members[3].ty = ty;
    let text = "struct rec { item a; long b; char cold[120]; item z; };\n";
    let sources = Sources::new([("a.cc".to_string(), text.to_string())]);
    let advice =
        advise(&usage(&types, id, &["a", "z"]), &types, &sources, &Options::default(), &mut NoCompiler);
    let advice = advice.expect("advice");
    let order = &proposed(&advice).new_order;
    let is_named = proposed(&advice).obeyed.iter().any(|binding| binding.names == ["a", "z"]);
    let at = |name: &str| order.iter().position(|member| member == name);
    assert!(!is_named || at("a") < at("z"), "{order:?}");
    is_named
}

#[test]
fn members_whose_construction_may_do_something_keep_their_order() {
    use AggregateKind::{Class, Struct};
    let plain = |types: &mut Types| integer(types, "long", 8);
    assert!(!keeps_construction_order(plain));
    assert!(keeps_construction_order(|types| cpp_type(types, Class, "item", None)));
    assert!(keeps_construction_order(|types| cpp_type(types, Struct, "std::mutex", None)));
    assert!(!keeps_construction_order(|types| cpp_type(types, Struct, "item", None)));
    assert!(!keeps_construction_order(|types| cpp_type(types, Class, "std::atomic<long>", None)));
    let base = |types: &mut Types| {
        let base = cpp_type(types, Struct, "base", None);
        cpp_type(types, Struct, "item", Some((MemberRole::Base, base)))
    };
    assert!(keeps_construction_order(base));
    let nested = |types: &mut Types| {
        let inner = cpp_type(types, Class, "inner", None);
        cpp_type(types, Struct, "item", Some((MemberRole::Field, inner)))
    };
    assert!(keeps_construction_order(nested));
    let array = |types: &mut Types| {
        let element = cpp_type(types, Class, "inner", None);
        push(types, "", Some(8), TypeKind::Array { element, counts: vec![Some(1)] })
    };
    assert!(keeps_construction_order(array));
    let in_c = |types: &mut Types| {
        let id = cpp_type(types, Class, "item", None);
        types.get_mut(id).expect("known").language = Language::C;
        id
    };
    assert!(!keeps_construction_order(in_c));
}

#[test]
fn members_do_not_leave_the_heading_that_a_blank_line_parts_from_them() {
    let members = "\tlong a;\n\tchar cold[120];\n\n\t/* Protocol-specific variables */\n\n\tlong b;\n\tlong c;\n\n\
                   \tchar colder[120];\n\tlong z;\n";
    let advice = advice_on(members, &["b", "z"], &Options::default());
    let under: BTreeSet<&str> = proposed(&advice).new_order[2..4].iter().map(String::as_str).collect();
    assert_eq!(under, BTreeSet::from(["b", "c"]));
    named(&advice, Constraint::Heading);
}

#[test]
fn a_comment_that_heads_a_section_stays_on_top_of_it() {
    let members = "\tlong a;\n\tchar cold[120];\n\n/*\n * Used on the receive path\n */\n\t/* Its address. */\n\tlong b;\n\n\
                   \tchar colder[120];\n\tlong z;\n";
    let advice = advice_on(members, &["a", "b", "z"], &Options::default());
    for order in &advice.orders {
        let text = &order.edited["a.c"];
        let section = text.split("receive path").nth(1).expect("the heading");
        assert!(text.contains("\t/* Its address. */\n\tlong b;\n"), "{text}");
        let under: BTreeSet<&str> =
            section.lines().map(str::trim).filter(|line| line.ends_with(';')).collect();
        assert_eq!(
            under,
            BTreeSet::from(["long b;", "char colder[120];", "long z;", "struct rec *r;", "};"]),
            "{text}"
        );
        assert!(section.starts_with("\n */\n\t"), "{text}");
    }
    named(&advice, Constraint::Heading);
}

/// As the kernel's RCU writes them: a comment next to a member continues in comments of their own.
#[test]
fn a_comment_that_goes_on_below_its_member_stays_with_it() {
    let members = "\tlong a;\n\tlong ticks;\t\t/* The number of ticks that */\n\t\t\t\t/* this one has handled */\n\
                   \t\t\t\t/* during the last period. */\n\tchar cold[120];\n\tlong z;\t/* last */\n\tlong rest;\n";
    let advice = advice_on(members, &["ticks", "z"], &Options::default());
    let text = &proposed(&advice).edited["a.c"];
    assert!(
        text.contains(
            "ticks that */\n\t\t\t\t/* this one has handled */\n\t\t\t\t/* during the last period. */\n"
        ),
        "{text}"
    );
    assert_eq!(place(&advice, "ticks").abs_diff(place(&advice, "z")), 1, "{text}");
}

/// Sections that are numbered keep their order, and their members, including those behind a comment.
#[test]
fn members_do_not_leave_a_numbered_section() {
    let members = "\t/* 1) quiescent states : */\n\tlong a;\n\tchar cold[120];\n\n\t/* 2) batch handling */\n\tlong b;\n\tlong c;\n\
                   \t\t\t\t/* number at last check */\n\tlong rest;\n\tchar colder[120];\n\n\t/* 3) interface. */\n\tlong z;\n\tlong last;\n";
    for hot in [["a", "b"], ["a", "z"], ["b", "z"], ["rest", "z"]] {
        let advice = advice_on(members, &hot, &Options::default());
        let section = |member: &str| match member {
            "a" | "cold" => 1,
            "b" | "c" | "rest" | "colder" => 2,
            _ => 3,
        };
        for order in &advice.orders {
            let sections: Vec<i32> = order.new_order.iter().map(|member| section(member)).collect();
            assert!(sections.is_sorted(), "{hot:?}: {:?}", order.new_order);
        }
    }
}

/// As the kernel's `rcu_data`: the heading of a section stays on top of it, though its first member moves inside it.
#[test]
fn a_section_keeps_its_heading_when_its_first_member_moves() {
    let members = "\t/* 1) quiescent states : */\n\tlong a;\n\tlong rest;\n\n\t/* 2) batch handling */\n\tlong first;\t/* segmented */\n\
                   \tchar cold[60];\n\tchar colder[60];\n\tlong z;\n\tlong count;\n\n\t/* 3) interface. */\n\tlong last;\n";
    let options = Options { most_moved: Some(1), ..Options::default() };
    let advice = advice_on(members, &["first", "z", "count"], &options);
    let text = &proposed(&advice).edited["a.c"];
    assert!(
        text.contains(
            "\n\n\t/* 2) batch handling */\n\tchar cold[60];\n\tchar colder[60];\n\tlong z;\n\tlong count;\n\tlong first;\t/* segmented */\n\n\t/* 3)"
        ) || text.contains(
            "\n\n\t/* 2) batch handling */\n\tchar cold[60];\n\tchar colder[60];\n\tlong first;\t/* segmented */\n\tlong z;\n\tlong count;\n\n\t/* 3)"
        ),
        "{text}"
    );
    assert_eq!(proposed(&advice).moved, ["first"]);
}

/// The same for a type that begins with a numbered section, and for headings of line comments.
#[test]
fn the_first_heading_stays_behind_the_brace() {
    let members = "\t// 1) batch handling,\n\t// by one thread\n\tlong first;\n\n\tchar cold[64];\n\tchar colder[64];\n\tlong z;\n\tlong count;\n\tlong rest;\n";
    let options = Options { most_moved: Some(1), ..Options::default() };
    let advice = advice_on(members, &["first", "z", "count"], &options);
    let text = &proposed(&advice).edited["a.c"];
    assert!(text.contains("{\n\t// 1) batch handling,\n\t// by one thread\n\tchar cold[64];\n"), "{text}");
    assert_eq!(proposed(&advice).moved, ["first"]);
}

/// As the kernel's `rcu_data`: comments below a member, indented deeper, are the member's.
#[test]
fn a_comment_below_its_member_and_deeper_moves_with_it() {
    let members = "\tlong a;\n\tlong qlen;\n\t\t\t\t/* qlen at last check */\n\t\t\t\t/* for forcing */\n\
                   \tlong lock;\t\t/* Exclusion of */\n\t\t\t\t    /* spawning */\n\tchar cold[60];\n\tchar colder[60];\n\tlong z;\n\tlong rest;\n";
    for (hot, its) in [
        ("qlen", "\tlong qlen;\n\t\t\t\t/* qlen at last check */\n\t\t\t\t/* for forcing */\n"),
        ("lock", "\tlong lock;\t\t/* Exclusion of */\n\t\t\t\t    /* spawning */\n"),
    ] {
        let options = Options { most_moved: Some(1), ..Options::default() };
        let advice = advice_on(members, &[hot, "z", "rest"], &options);
        let text = &proposed(&advice).edited["a.c"];
        assert!(text.contains(its), "{text}");
        assert_eq!(proposed(&advice).moved, [hot]);
        assert_eq!(place(&advice, hot).abs_diff(place(&advice, "z")), 1, "{text}");
    }
}

/// A comment that is indented as deep as the member behind it refers to that member.
#[test]
fn a_deeper_comment_above_a_member_that_is_as_deep_moves_with_that() {
    let members = "\tlong a;\n\t\t/* the number of them */\n\t\tlong hot;\n\tchar cold[60];\n\tchar colder[60];\n\tlong z;\n\tlong rest;\n";
    let options = Options { most_moved: Some(1), ..Options::default() };
    let advice = advice_on(members, &["hot", "z", "rest"], &options);
    let text = &proposed(&advice).edited["a.c"];
    assert!(text.contains("\t\t/* the number of them */\n\t\tlong hot;\n"), "{text}");
    assert_eq!(proposed(&advice).moved, ["hot"]);
}
