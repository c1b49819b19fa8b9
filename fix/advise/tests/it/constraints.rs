//! Each constraint at work, checked with the compiler: orders that obey it, edits that are rewritten, and refusals.

use crate::pahole::{self, Folder, integer, member, structure};
use lineup_advise::advise;
use lineup_advise::constraint::Constraint;
use lineup_advise::options::Options;
use lineup_advise::proposal::{Advice, OrderProposal, RegionLines};
use lineup_advise::shuffle;
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{AggregateKind, Language, Member, SourceLocation, Type, TypeId, TypeKind, Types};
use lineup_model::usage::{AlignedUse, ByteUse, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

/// A struct of which the regions touch the first and the last of `hot`, far apart.
struct Case {
    folder: Folder,
    options: Options,
    used_as: BTreeSet<TypeId>,
    /// Offset, size and asked alignment of bytes that a recorded instruction used, and whether in one step.
    aligned: Vec<(u64, u64, u64, bool)>,
    language: Language,
}

impl Case {
    fn c(text: &str) -> Self {
        let folder = Folder::new(&[("a.c", text)], "a.c", &["rec"]);
        let aligned = Vec::new();
        Case { folder, options: Options::default(), used_as: BTreeSet::new(), aligned, language: Language::C }
    }

    fn cpp(text: &str) -> Self {
        let mut folder = Folder::new(&[("a.cc", text)], "a.cc", &["rec"]);
        folder.flags.push("-Wreorder".into());
        let aligned = Vec::new();
        Case {
            folder,
            options: Options::default(),
            used_as: BTreeSet::new(),
            aligned,
            language: Language::Cpp,
        }
    }

    /// Advice when every call touches these members of one object.
    fn advise(&mut self, hot: &[&str]) -> Advice {
        self.advise_of(hot, |_| ())
    }

    /// The same of a type that debug information describes otherwise.
    fn advise_of(&mut self, hot: &[&str], change: impl FnOnce(&mut Type)) -> Advice {
        self.advise_among(hot, |types, id| change(types.get_mut(id).expect("known")))
    }

    /// The same of a type among others.
    fn advise_among(&mut self, hot: &[&str], change: impl FnOnce(&mut Types, TypeId)) -> Advice {
        self.folder.write(&Default::default());
        let mut types: Types = self.folder.types(Abi::X86_64).expect("compiles");
        let id = types.by_name()["rec"][0];
        change(&mut types, id);
        types.get_mut(id).expect("known").language = self.language;
        let (_, aggregate) = types.aggregate(id).expect("a struct");
        let mut bytes: Vec<ByteUse> = aggregate
            .members
            .iter()
            .filter(|member| hot.contains(&member.name.as_deref().unwrap_or("")))
            .map(|member| ByteUse {
                offset: member.offset_bytes().expect("placed"),
                size_bytes: types.size_bytes(member.ty).unwrap_or(1).max(1),
                loads: 1,
                stores: 0,
            })
            .collect();
        assert_eq!(bytes.len(), hot.len(), "all hot members exist");
        bytes.sort();
        let patterns = vec![ObjectPattern::alone(0, bytes, 10)];
        let used =
            TypeUse { region: RegionId(0), ty: id, calls: 10, patterns, used_as: self.used_as.clone() };
        let aligned = self.aligned.iter().map(|&(offset, size_bytes, asked_bytes, is_atomic)| AlignedUse {
            ty: id,
            offset,
            size_bytes,
            asked_bytes,
            is_atomic,
        });
        let usage = Usage {
            regions: Regions::from_iter([Region::named("hot")]),
            types: vec![used],
            aligned_uses: aligned.collect(),
            ..Usage::empty(Abi::X86_64)
        };
        let sources = Sources::new(self.folder.files.clone());
        advise(&usage, &types, &sources, &self.options, &mut self.folder)
            .expect("nothing but candidates fails")
    }
}

fn proposed(advice: &Advice) -> &OrderProposal {
    assert_eq!(advice.refusals, []);
    advice.orders.first().expect("a proposal")
}

fn refused(advice: &Advice) -> Constraint {
    assert!(advice.orders.is_empty(), "{:?}", advice.orders);
    advice.refusals.first().expect("a refusal").constraints[0].constraint
}

fn obeys(advice: &Advice, constraint: Constraint) -> bool {
    proposed(advice).obeyed.iter().any(|binding| binding.constraint == constraint)
}

const COLD: &str = "\tchar cold[120];\n";

fn record(first: &str, last: &str, rest: &str) -> String {
    format!(
        "#include <stddef.h>\n#include <string.h>\nstruct rec {{\n{first}{COLD}{last}}};\nstruct rec *r;\n{rest}"
    )
}

#[test]
fn positional_initialisers_become_designated_ones() {
    let text = record(
        "\tlong a;\n",
        "\tlong b;\n\tlong c;\n",
        "struct rec one = { 1, \"x\", /* b */ 2, .c = 3 };\nstruct rec table[] = { { 4, \"y\", 5, 6 }, [2] = { 7 } };\nstruct rec zero = { 0 };\n",
    );
    let mut case = Case::c(&text);
    let advice = case.advise(&["a", "b"]);
    let new = &proposed(&advice).edited["a.c"];
    assert!(new.contains("struct rec one = { .a = 1, .cold = \"x\", /* b */ .b = 2, .c = 3 };"), "{new}");
    assert!(new.contains("{ { .a = 4, .cold = \"y\", .b = 5, .c = 6 }, [2] = { .a = 7 } }"), "{new}");
    assert!(new.contains("struct rec zero = { 0 };"));
}

#[test]
fn initialisers_that_cannot_be_designated_are_refused_with_their_place() {
    let text =
        record("\tlong a;\n", "\tlong b;\n", "#define INIT(x) { x, \"\", 2 }\nstruct rec one = INIT(1);\n");
    let advice = Case::c(&text).advise(&["a", "b"]);
    assert_eq!(refused(&advice), Constraint::PositionalInitialiser);
    assert_eq!(advice.refusals[0].constraints[0].at.as_ref().map(|at| at.line), Some(9));
}

#[test]
fn a_pointer_to_one_of_two_types_of_a_name_gives_no_values() {
    let of = |values: &str| {
        let rest = format!(
            "int g(void);\nint g(void) {{ struct rec {{ int other; }} z; z.other = 1; return z.other; }}
            void f(struct rec *x);\nvoid f(struct rec *x) {{ struct rec {values}; r = x; }}\n"
        );
        let inner = "struct rec {\n\tint other; /* 0 4 */\n\n\t/* size: 4, cachelines: 1, members: 1 */";
        let both = |types: &mut Types, id: TypeId| {
            let at = SourceLocation { file: "a.c".into(), line: 3 };
            types.get_mut(id).expect("known").declared_at = Some(at);
            pahole::read(types, inner, "rec", Abi::X86_64);
        };
        Case::c(&record("\tlong a;\n", "\tlong b;\n", &rest)).advise_among(&["a", "b"], both)
    };
    assert_eq!(proposed(&of("*y = &x[1]; y->a = 1")).new_order.len(), 3);
    assert_eq!(proposed(&of("y = { 0 }; *x = y")).new_order.len(), 3);
    assert_eq!(refused(&of("y = { 1, { 0 }, 2 }; *x = y")), Constraint::PositionalInitialiser);
}

#[test]
fn a_flexible_array_stays_last() {
    let advice = Case::c(&record("\tlong a;\n", "\tlong b;\n\tchar tail[];\n", "")).advise(&["a", "b"]);
    assert_eq!(proposed(&advice).new_order.last().map(String::as_str), Some("tail"));
    assert!(obeys(&advice, Constraint::FlexibleArrayLast));
}

#[test]
fn a_cast_to_the_first_members_type_pins_it() {
    let rest =
        "void f(struct base *);\nvoid g(struct rec *x);\nvoid g(struct rec *x) { f((struct base *)x); }\n";
    let record = record("\tstruct base base;\n\tlong a;\n", "\tlong b;\n", rest);
    let text = format!("struct base {{ long x[8]; }};\n{record}");
    let advice = Case::c(&text).advise(&["a", "b"]);
    assert_eq!(proposed(&advice).new_order[0], "base");
    assert!(obeys(&advice, Constraint::FirstMemberIsObject));
    let advice = Case::c(&text.replace("(struct base *)x", "&x->base")).advise(&["a", "b"]);
    assert!(!obeys(&advice, Constraint::FirstMemberIsObject));
}

#[test]
fn pins_and_keeps_are_obeyed_and_named() {
    let text = record("\tlong a;\n\tlong b;\n", "\tlong c;\n", "");
    let mut case = Case::c(&text);
    case.options.pins = vec![("rec".to_string(), "c".to_string())];
    let advice = case.advise(&["a", "c"]);
    assert_eq!(proposed(&advice).new_order, ["b", "cold", "a", "c"], "c stays at 136, so a comes to it");
    assert!(obeys(&advice, Constraint::Pinned));
    let mut case = Case::c(&text);
    case.options.keeps = vec!["rec".to_string()];
    assert_eq!(refused(&case.advise(&["a", "c"])), Constraint::Kept);
}

#[test]
fn spans_files_and_assembly_forbid() {
    let rest = "void f(void);\nvoid f(void) { memset(r, 0, offsetof(struct rec, b)); }\n";
    let advice = Case::c(&record("\tlong a;\n", "\tlong b;\n", rest)).advise(&["a", "b"]);
    assert_eq!(refused(&advice), Constraint::MemorySpan);
    assert_eq!(
        advice.refusals[0].lines.iter().find(|row| row.line_bytes == 64).map(|row| (row.before, row.after)),
        Some((Some(2.0), 1.0)),
        "what it costs"
    );
    let rest =
        "#include <stdio.h>\nvoid f(void);\nvoid f(void) { fwrite(r, sizeof(struct rec), 1, stdout); }\n";
    assert_eq!(
        refused(&Case::c(&record("\tlong a;\n", "\tlong b;\n", rest)).advise(&["a", "b"])),
        Constraint::CrossesAbi
    );
    let mut case = Case::c(&record("\tlong a;\n", "\tlong b;\n", ""));
    case.folder.files.insert("b.S".into(), "mov rec_b(%rdi), %rax\n".into());
    assert_eq!(refused(&case.advise(&["a", "b"])), Constraint::Assembly);
}

#[test]
fn group_markers_are_barriers() {
    let text = record("\tlong a;\n", "\tchar group_end[0];\n\tlong b;\n", "");
    let advice = Case::c(&text).advise(&["a", "b"]);
    assert_eq!(refused(&advice), Constraint::GroupMarker);
    let text = record("\tchar group_begin[0];\n\tlong a;\n", "\tlong b;\n", "");
    let advice = Case::c(&text).advise(&["a", "b"]);
    assert_eq!(proposed(&advice).new_order[0], "group_begin");
}

#[test]
fn aligned_members_and_unnamed_bit_fields_are_predicted_as_the_compiler_lays_them_out() {
    let first = "\tchar a;\n\tunsigned x:3;\n\tunsigned :0;\n\tunsigned y:4;\n\tint big __attribute__((aligned(32)));\n";
    let advice = Case::c(&record(first, "\tlong b;\n\tshort c;\n", "")).advise(&["a", "b"]);
    let proposal = proposed(&advice);
    let at = |name: &str| proposal.new_order.iter().position(|member| member == name);
    assert_eq!(at("y"), at("x").map(|x| x + 1), "the run stays whole");
    assert!(obeys(&advice, Constraint::BitFieldRun));
}

#[test]
fn conditional_and_macro_members_move_as_units() {
    let text = format!(
        "#define HEAD void *next; unsigned char tag\n#define BITS(name) unsigned long name[2]\nstruct rec {{\n\tHEAD;\n{COLD}#ifdef NEVER\n\tint n;\n#else\n\tlong c1;\n\tlong c2;\n#endif\n\tBITS(bits);\n}};\nstruct rec r;\n"
    );
    let advice = Case::c(&text).advise(&["next", "c1", "c2"]);
    let proposal = proposed(&advice);
    assert_eq!(&proposal.new_order[..2], ["next", "tag"], "the macro's members stay first");
    assert!(obeys(&advice, Constraint::Conditional) && obeys(&advice, Constraint::MacroMembers));
}

#[test]
fn members_that_debug_info_does_not_know_stop_the_edit() {
    let mut case = Case::c(&record("\tlong a;\n", "\tlong b;\n", ""));
    let stale = case.folder.files["a.c"].replace("\tlong b;\n", "\tlong renamed;\n");
    case.folder.write(&Default::default());
    let types = case.folder.types(Abi::X86_64).expect("compiles");
    let id = types.by_name()["rec"][0];
    let bytes = vec![
        ByteUse { offset: 0, size_bytes: 8, loads: 1, stores: 0 },
        ByteUse { offset: 128, size_bytes: 8, loads: 1, stores: 0 },
    ];
    let patterns = vec![ObjectPattern::alone(0, bytes, 1)];
    let usage = Usage {
        regions: Regions::from_iter([Region::named("hot")]),
        types: vec![TypeUse { region: RegionId(0), ty: id, calls: 1, patterns, used_as: BTreeSet::new() }],
        ..Usage::empty(Abi::X86_64)
    };
    let sources = Sources::new([("a.c".to_string(), stale)]);
    let advice = advise(&usage, &types, &sources, &Options::default(), &mut case.folder)
        .expect("nothing but candidates fails");
    assert_eq!(refused(&advice), Constraint::StaleDebugInfo);
}

#[test]
fn cpp_initialiser_lists_follow_and_sections_hold() {
    let text = format!(
        "class rec {{\n public:\n  explicit rec(long v) : a(v), cold{{}}, b(v + 1), c(2) {{}}\n  long get() const {{ return a + b; }}\n private:\n  long a;\n{COLD}  long b = 3;\n  long c{{4}};\n}};\nrec r(1);\nlong g;\nvoid f() {{ g = r.get(); }}\n"
    );
    let advice = Case::cpp(&text).advise(&["a", "b"]);
    let new = &proposed(&advice).edited["a.cc"];
    assert!(
        new.contains(": a(v), b(v + 1), cold{}, c(2) {}")
            || new.contains(": cold{}, a(v), b(v + 1), c(2) {}"),
        "{new}"
    );
    assert!(new.contains("long get() const { return a + b; }\n private:\n"));
}

#[test]
fn cpp_members_whose_initialisers_read_others_keep_their_order() {
    let text = format!(
        "class rec {{\n public:\n  explicit rec(long v) : a(v), b(a + 1) {{}}\n  long a;\n{COLD}  long b;\n  long c = 0;\n}};\nrec r(1);\n"
    );
    let advice = Case::cpp(&text).advise(&["b", "a"]);
    let proposal = proposed(&advice);
    let at = |name: &str| proposal.new_order.iter().position(|member| member == name);
    assert!(at("a") < at("b"));
    assert!(obeys(&advice, Constraint::ConstructorOrder));
}

#[test]
fn cpp_aggregates_are_refused_where_values_are_given_by_position() {
    let text = format!("struct rec {{\n  long a;\n{COLD}  long b;\n}};\nrec r = {{1, \"x\", 2}};\n");
    assert_eq!(refused(&Case::cpp(&text).advise(&["a", "b"])), Constraint::PositionalInitialiser);
    let text =
        format!("struct rec {{\n  long a;\n{COLD}  long b;\n}};\nrec make() {{ return {{1, \"x\", 2}}; }}\n");
    assert_eq!(refused(&Case::cpp(&text).advise(&["a", "b"])), Constraint::PositionalInitialiser);
}

/// A compiler that read all units knows the types of values without a written one, except in templates.
#[test]
fn values_without_a_type_hold_where_no_compiler_knows_theirs() {
    let lists = [
        ("struct point { long x, y; };\npoint middle() { return {1, 2}; }", false),
        ("struct range { long from, to; };\nvoid use(range);\nvoid push() { use({1, 2}); }", false),
        ("template <class T> T make() { return {1, \"x\", 2}; }", true),
        ("template <class T> struct maker { static T make() { return T{1, \"x\", 2}; } };", true),
        ("auto make = [](auto give) { give({1, \"x\", 2}); };", true),
    ];
    for (list, is_held) in lists {
        let text = format!("struct rec {{\n  long a;\n{COLD}  long b;\n}};\nrec r;\n{list}\n");
        let mut case = Case::cpp(&text);
        assert_eq!(refused(&case.advise(&["a", "b"])), Constraint::PositionalInitialiser, "{list}");
        case.options.meaning.is_of_all_units = true;
        let advice = case.advise(&["a", "b"]);
        match is_held {
            true => assert_eq!(refused(&advice), Constraint::PositionalInitialiser, "{list}"),
            false => assert_eq!(proposed(&advice).new_order[..2], ["a", "b"], "{list}"),
        }
    }
}

/// Two halves of a line, `a` and `b`, with this before the first: only without it do both fit on one line.
fn halves(first: &str, rest: &str) -> String {
    record(&format!("{first}\tlong a[4];\n"), "\tlong b[4];\n\tint last;\n", rest)
}

/// Lines of 64 bytes that a call needs with the proposed order, on the recorded machine.
fn lines_after(advice: &Advice) -> f64 {
    let of_size = |row: &&RegionLines| row.line_bytes == 64 && row.data_model == "LP64";
    proposed(advice).lines.iter().find(of_size).expect("64-byte lines").after
}

#[test]
fn an_asserted_offset_holds_its_member_and_says_so() {
    let assertion = "_Static_assert(offsetof(struct rec, c) == 136, \"of the file format\");\n";
    let advice = Case::c(&record("\tlong a;\n\tlong b;\n", "\tlong c;\n", assertion)).advise(&["a", "c"]);
    assert_eq!(proposed(&advice).new_order, ["b", "cold", "a", "c"], "c stays at 136");
    assert!(obeys(&advice, Constraint::AssertedOffset) && !obeys(&advice, Constraint::Pinned));
}

#[test]
fn a_pin_holds_the_member_that_it_names_and_no_other() {
    for (ty, member) in [("rec", "nosuch"), ("other", "c")] {
        let mut case = Case::c(&record("\tlong a;\n\tlong b;\n", "\tlong c;\n", ""));
        case.options.pins = vec![(ty.to_string(), member.to_string())];
        assert!(!obeys(&case.advise(&["a", "c"]), Constraint::Pinned), "{ty}.{member}");
    }
}

#[test]
fn what_stands_for_the_object_stays_first_though_it_costs_a_line() {
    let cast =
        "void f(struct base *);\nvoid g(struct rec *x);\nvoid g(struct rec *x) { f((struct base *)x); }\n";
    let text = "struct base { long x[4]; };\n".to_string() + &halves("\tstruct base base;\n", cast);
    let held = Case::c(&text).advise(&["a", "b"]);
    assert_eq!((proposed(&held).new_order[0].as_str(), lines_after(&held)), ("base", 2.0));
    let free = Case::c(&text.replace("(struct base *)x", "&x->base")).advise(&["a", "b"]);
    assert_eq!(lines_after(&free), 1.0);
}

#[test]
fn members_of_a_macro_at_the_start_stay_there_though_it_costs_a_line() {
    let held = Case::c(&format!("#define HEAD long x[4]\n{}", halves("\tHEAD;\n", ""))).advise(&["a", "b"]);
    assert_eq!((proposed(&held).new_order[0].as_str(), lines_after(&held)), ("x", 2.0));
    let free = Case::c(&halves("\tlong x[4];\n", "")).advise(&["a", "b"]);
    assert_eq!(lines_after(&free), 1.0);
}

/// Members declared by macros, and a type whose name is a macro for another, as in kernels.
#[test]
fn members_that_kernels_declare_by_macros_move_whole() {
    let macros = "#define DECLARE_BITMAP(name, bits) unsigned long name[(bits) / 64]\n\
        #define DECLARE_HASHTABLE(name, bits) struct hlist_head name[1 << (bits)]\n\
        struct hlist_head { void *first; };\n#define rcu_head callback_head\n\
        struct callback_head { struct callback_head *next; void (*func)(struct callback_head *); } __attribute__((aligned(sizeof(void *))));\n";
    let last = "\tDECLARE_BITMAP(bits, 64);\t/* who waits */\n\tstruct rcu_head rcu;\n\tDECLARE_HASHTABLE(table, 2);\n\tlong b;\n";
    let text = macros.to_string() + &record("\tlong a;\n", last, "");
    let advice = Case::c(&text).advise(&["a", "bits", "rcu"]);
    let proposal = proposed(&advice);
    let at = |name: &str| proposal.new_order.iter().position(|member| member == name).expect("a member");
    assert_eq!(proposal.new_order.len(), 6);
    assert!(at("cold") > at("a").max(at("bits")).max(at("rcu")), "{:?}", proposal.new_order);
    let new = &proposal.edited["a.c"];
    for line in last.lines() {
        assert!(new.contains(&format!("{line}\n")), "{line}: {new}");
    }
}

#[test]
fn a_union_and_an_instance_of_a_template_are_refused() {
    let text = "struct rec { long a; char cold[200]; long b; };\nstruct rec r;\n";
    let union = |ty: &mut Type| match &mut ty.kind {
        TypeKind::Aggregate(aggregate) => aggregate.kind = AggregateKind::Union,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&Case::c(text).advise_of(&["a", "b"], union)), Constraint::Union);
    let instance = |ty: &mut Type| ty.name = Some("rec<int>".into());
    assert_eq!(refused(&Case::cpp(text).advise_of(&["a", "b"], instance)), Constraint::UnclearSource);
    assert!(Case::c(text).advise(&["a", "b"]).refusals.is_empty());
}

#[test]
fn members_that_recorded_instructions_ask_to_be_aligned_keep_their_place() {
    let text = record("\tlong one;\n\tlong two;\n\tfloat v[4];\n\tlong a;\n", "\tlong b;\n\tlong c;\n", "");
    let held = |aligned: (u64, u64, u64, bool)| {
        let mut case = Case::c(&text);
        case.aligned = vec![aligned];
        let advice = case.advise(&["a", "b"]);
        let obeyed = proposed(&advice).obeyed.iter();
        let asked = obeyed.filter(|binding| binding.constraint == Constraint::AskedAlignment);
        asked.flat_map(|binding| binding.names.clone()).collect::<Vec<String>>()
    };
    assert_eq!(held((16, 16, 16, false)), ["v", "c"]);
    assert_eq!(held((0, 16, 16, true)), ["one", "c", "two", "c"], "changed in one step");
    assert_eq!(held((0, 16, 16, false)), [""; 0], "stores that a compiler joined");
}

/// Threads write all bit-fields of one run at once: two runs never become one.
#[test]
fn bit_fields_that_members_part_stay_apart() {
    let mut types = Types::new();
    let int = integer(&mut types, "int", 4);
    let bit = |name: &str, at| Member { bit_size: Some(1), ..member(name, int, at) };
    let own = vec![bit("a", 0), member("mid", int, 32), bit("b", 64), member("tail", int, 96)];
    let id = structure(&mut types, "rec", 16, own);
    let text = "struct rec {\n\tint a:1;\n\tint mid;\n\tint b:1;\n\tint tail;\n};\nstruct rec r;\n";
    let sources = Sources::new([("a.c".to_string(), text.to_string())]);
    let mut state = 1_usize;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (abi, options) = (Abi::X86_64, Options::default());
    for _ in 0..20 {
        let order = shuffle::random_order(&types, abi, id, &sources, &options, &mut random);
        let order = order.expect("movable").expect("another order");
        let place = |unit| order.iter().position(|&one| one == unit).expect("every unit");
        assert!(place(0_usize).abs_diff(place(2)) > 1, "{order:?}");
    }
}
