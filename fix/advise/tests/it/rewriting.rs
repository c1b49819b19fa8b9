//! Writing members in another order: members that move, members that stay, and refusals.

use lineup_advise::constraint::Constraint;
use lineup_advise::rewrite::{reorder, units};
use lineup_advise::sources::Sources;

const CLOCKCHIPS: &str = include_str!("texts/clockchips.h");

fn c(text: &str) -> Sources {
    Sources::new([("a.c".to_string(), text.to_string())])
}

fn cpp(text: &str) -> Sources {
    Sources::new([("a.cc".to_string(), text.to_string())])
}

fn reordered(sources: &Sources, name: &str, order: &[usize]) -> String {
    reorder(sources, name, order).expect("reorders").1
}

fn refusal(sources: &Sources, name: &str) -> Constraint {
    units(sources, name).expect_err("refused").constraint
}

#[test]
fn a_moved_member_takes_its_comments_along_and_groups_keep_their_blank_lines() {
    let text = "struct s {\n\t/* first */\n\tint a; /* about a */\n\n\t/* why b */\n\t// is here\n\tlong b; // about b\n\t        // in two lines\n\tchar c;\n\n\tchar d;\n};\n";
    assert_eq!(
        reordered(&c(text), "s", &[1, 0, 2, 3]),
        "struct s {\n\t/* why b */\n\t// is here\n\tlong b; // about b\n\t        // in two lines\n\t/* first */\n\tint a; /* about a */\n\n\tchar c;\n\n\tchar d;\n};\n"
    );
}

/// As in compressors: a comment on a member stands below it, before a blank line.
#[test]
fn a_comment_below_a_member_belongs_to_that() {
    let text = "struct s {\n    int heap_max; /* largest */\n    /* sons of n are 2n and 2n+1\n     */\n\n    char depth[9];\n    /* depth of each */\n\n    int size;\n    /* entries of the buffer */\n    int matches; /* in the\n                    block */\n    int last;\n};\n";
    let moved = reordered(&c(text), "s", &[4, 1, 0, 2, 3]);
    assert_eq!(
        moved,
        "struct s {\n    int last;\n    char depth[9];\n    /* depth of each */\n    int heap_max; /* largest */\n    /* sons of n are 2n and 2n+1\n     */\n\n    int size;\n    /* entries of the buffer */\n    int matches; /* in the\n                    block */\n};\n"
    );
    // If comments stand above members, a blank line below one parts it from the next.
    let above = "struct s {\n    /* the key */\n    int key;\n    /* not used */\n\n    /* the value */\n    int value;\n};\n";
    assert_eq!(
        units(&c(above), "s").expect("parses"),
        ["    /* the key */\n    int key;\n    /* not used */\n", "    /* the value */\n    int value;\n"]
    );
    let heading = "struct s {\n    int key;\n    /* statistics: */\n\n    int hits;\n};\n";
    assert_eq!(units(&c(heading), "s").expect("parses")[0], "    int key;\n");
}

#[test]
fn members_that_keep_their_relative_order_are_not_touched() {
    let text = reordered(&Sources::new([("c.h".into(), CLOCKCHIPS.into())]), "clock_event_device", &{
        let mut order: Vec<usize> = (0..units_of_clockchips()).collect();
        let list = order.remove(26);
        order.insert(8, list);
        order
    });
    let (old, new): (Vec<&str>, Vec<&str>) = (CLOCKCHIPS.lines().collect(), text.lines().collect());
    let moved: Vec<&&str> = old.iter().zip(&new).filter(|(a, b)| a != b).map(|(a, _)| a).collect();
    assert!(!moved.is_empty());
    assert_eq!(old.len(), new.len());
    let at = |lines: &[&str], what: &str| lines.iter().position(|line| line.contains(what)).expect("there");
    assert_eq!(at(&new, "list_head\tlist;"), at(&new, "mult_adjusted;") + 1);
    assert_eq!(at(&new, "@list:"), at(&new, "@mult_adjusted:") + 1, "the kernel-doc follows");
}

fn units_of_clockchips() -> usize {
    units(&Sources::new([("c.h".into(), CLOCKCHIPS.into())]), "clock_event_device").expect("parses").len()
}

#[test]
fn the_2016_struct_is_28_units_with_its_bit_fields_as_one() {
    assert_eq!(units_of_clockchips(), 28);
}

#[test]
fn the_identity_order_gives_the_identical_file() {
    for text in [
        CLOCKCHIPS,
        "struct clock_event_device { int a; char b; };",
        "struct clock_event_device {\r\n int a;\r\n\r\n int b;\r\n};\r\n",
    ] {
        let sources = Sources::new([("c.h".to_string(), text.to_string())]);
        let count = units(&sources, "clock_event_device").expect("parses").len();
        assert_eq!(reordered(&sources, "clock_event_device", &(0..count).collect::<Vec<_>>()), text);
    }
}

#[test]
fn a_struct_on_one_line_exchanges_texts() {
    assert_eq!(
        reordered(&c("struct p { char c; long l; int i; } x;"), "p", &[1, 2, 0]),
        "struct p { long l; int i; char c; } x;"
    );
}

#[test]
fn conditional_groups_unions_and_macros_move_whole() {
    let text = "struct s {\n  CommonHeader;\n#if A /* { */\n  int a;\n#else\n  long a;\n#endif\n  union {\n    int u;\n    char v;\n  };\n  DECLARE_BITMAP(bits, 64);\n  spinlock_t lock ____cacheline_aligned_in_smp;\n};\n";
    let sources = c(text);
    assert_eq!(units(&sources, "s").expect("parses").len(), 5);
    assert_eq!(
        reordered(&sources, "s", &[0, 4, 2, 1, 3]),
        "struct s {\n  CommonHeader;\n  spinlock_t lock ____cacheline_aligned_in_smp;\n  union {\n    int u;\n    char v;\n  };\n#if A /* { */\n  int a;\n#else\n  long a;\n#endif\n  DECLARE_BITMAP(bits, 64);\n};\n"
    );
}

#[test]
fn bit_field_runs_and_shared_lines_are_single_units() {
    let text = "struct s {\n  unsigned a:1;\n  unsigned :0;\n  unsigned b:2;\n  int c; int d;  /* both */\n  int e,\n      f;\n};\n";
    let units = units(&c(text), "s").expect("parses");
    assert_eq!(units.len(), 3);
    assert_eq!(units[1], "  int c; int d;  /* both */\n");
}

#[test]
fn methods_stay_and_access_sections_are_not_crossed() {
    let text = "class C {\n public:\n  C(int v) : a_(v), b_{1} { f(); }\n  void f() const;\n private:\n  char a_ = 1;\n  int g() { return 1; }\n  std::vector<int> b_;\n  static int s_;\n  long c_{2};\n public:\n  int d;\n};\n";
    let sources = cpp(text);
    assert_eq!(units(&sources, "C").expect("parses").len(), 4);
    let new = reordered(&sources, "C", &[2, 0, 1, 3]);
    assert!(new.contains("private:\n  long c_{2};\n  char a_ = 1;\n  int g()"), "{new}");
    assert_eq!(
        reorder(&sources, "C", &[3, 0, 1, 2]).expect_err("crosses").constraint,
        Constraint::AccessSection
    );
}

#[test]
fn packed_and_unclear_declarations_are_refused_by_name() {
    assert_eq!(refusal(&c("struct s { int a; } __attribute__((packed));"), "s"), Constraint::Packed);
    assert_eq!(refusal(&c("struct s { int a; } __packed;"), "s"), Constraint::Packed);
    assert_eq!(
        refusal(&c("#pragma pack(push, 1)\nstruct s { int a; };\n#pragma pack(pop)\n"), "s"),
        Constraint::Packed
    );
    let swapped = "__attribute__((scalar_storage_order(\"big-endian\")))";
    assert_eq!(refusal(&c(&format!("struct s {{ int a; }} {swapped};")), "s"), Constraint::CrossesAbi);
    let natural = c("#pragma pack(push, 8)\nstruct s {\n  int a;\n  long b;\n};\n#pragma pack(pop)\n");
    assert!(reordered(&natural, "s", &[1, 0]).contains("long b;\n  int a;"));
    assert_eq!(refusal(&c("struct s {\n#if A\nint a;\n};\n"), "s"), Constraint::UnclearSource);
    assert_eq!(refusal(&c("struct s { int a; // x\n int b; };"), "s"), Constraint::UnclearSource);
    assert_eq!(refusal(&c("int x;"), "s"), Constraint::OutsideSource);
}

#[test]
fn a_pragma_packs_what_follows_it_under_some_outcome_of_the_conditions() {
    let body = "struct s {\n  int a;\n  long b;\n};\n";
    let opens = "#if OLD\n# ifdef IBM\n#  pragma pack(1)\n# else\n#  pragma pack(push, 1)\n# endif\n#endif\n";
    let closes = "#if OLD\n# pragma pack(pop)\n#endif\n";
    let free = c(&format!("{opens}struct other {{ int x; }};\n{closes}{body}"));
    assert!(reordered(&free, "s", &[1, 0]).contains("long b;\n  int a;"));
    let held = [
        format!("{opens}{body}{closes}"),
        format!("{opens}{}{body}", closes.replace("OLD", "OTHER")),
        format!("#if A\n#elif B\n#pragma pack(1)\n#else\n#pragma pack(8)\n#endif\n{body}"),
        format!("#ifdef A\n#else\n#pragma pack(1)\n#endif\n{body}"),
    ];
    for text in held {
        assert_eq!(refusal(&c(&text), "s"), Constraint::Packed, "{text}");
    }
}

#[test]
fn an_order_that_is_no_permutation_is_refused() {
    let sources = c("struct s { int a; int b; };");
    for order in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2]] {
        assert!(reorder(&sources, "s", order).is_err(), "{order:?}");
    }
}

#[test]
fn directives_between_members_are_not_crossed() {
    let text = "struct s {\n  int a;\n#define N 4\n  int b[N];\n};\n";
    assert!(reorder(&c(text), "s", &[1, 0]).is_err());
}

proptest::proptest! {
    #[test]
    fn member_texts_are_only_permuted(seed in proptest::collection::vec(0usize..1000, 28)) {
        let sources = Sources::new([("c.h".to_string(), CLOCKCHIPS.to_string())]);
        let mut order: Vec<usize> = (0..28).collect();
        order.sort_by_key(|&unit| seed[unit]);
        let new = reordered(&sources, "clock_event_device", &order);
        let again = Sources::new([("c.h".to_string(), new.clone())]);
        let before = units(&sources, "clock_event_device").expect("parses");
        let after = units(&again, "clock_event_device").expect("parses");
        let expected: Vec<&String> = order.iter().map(|&unit| &before[unit]).collect();
        proptest::prop_assert_eq!(after.iter().collect::<Vec<_>>(), expected);
        let sorted = |text: &str| { let mut lines: Vec<String> = text.lines().filter(|l| !l.trim().is_empty()).map(str::to_string).collect(); lines.sort(); lines };
        proptest::prop_assert_eq!(sorted(&new), sorted(CLOCKCHIPS));
    }
}
