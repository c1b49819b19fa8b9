//! Hints from branches whose counts and places are given.

use lineup_advise::hints::{Hints, hints};
use lineup_advise::sources::Sources;
use lineup_model::branch::{Branch, Evidence, NeverCalled, Side, SourcePosition};
use lineup_model::types::SourceLocation;

/// A place by the mark before which it stands in the text.
fn place(text: &str, mark: &str) -> SourcePosition {
    let at = text.find(mark).unwrap_or_else(|| panic!("no {mark}"));
    let line = text[..at].matches('\n').count() as u32 + 1;
    let column = (at - text[..at].rfind('\n').map_or(0, |end| end + 1)) as u32 + 1;
    SourcePosition { line, column: Some(column) }
}

/// A branch at a mark; each side goes to a mark so often.
fn branch(text: &str, at: &str, sides: [(&str, u64); 2]) -> Branch {
    Branch {
        function: "f".into(),
        file: "a.c".into(),
        place: place(text, at),
        sides: sides.map(|(mark, times)| Side { times, places: vec![place(text, mark)] }),
        is_estimated: false,
    }
}

fn of(text: &str, branches: &[Branch]) -> Hints {
    let evidence = Evidence { branches: branches.to_vec(), ..Evidence::default() };
    hints(&evidence, &Sources::new([("a.c".to_owned(), text.to_owned())]))
}

fn edited(hints: &Hints) -> &str {
    &hints.edited["a.c"]
}

fn refusal(hints: &Hints) -> &str {
    assert!(hints.given.is_empty(), "{:?}", hints.given);
    &hints.refused.first().expect("a refusal").because
}

const PLAIN: &str = "int f(int y) {\n\tif (x == 7)\n\t\tAAA(x);\n\telse\n\t\tBBB(x);\n\treturn CCC;\n}\n";

#[test]
fn the_side_that_is_in_the_body_tells_which_way_the_condition_comes_out() {
    for (sides, value) in [([("AAA", 2), ("BBB", 90_000)], 0), ([("BBB", 0), ("AAA", 90_000)], 1)] {
        let hints = of(PLAIN, &[branch(PLAIN, "x == 7", sides)]);
        assert!(edited(&hints).contains(&format!("if (__builtin_expect(!!(x == 7), {value}))")), "{hints:?}");
        assert_eq!(hints.given[0].at.line, 2);
    }
    // With an `else`, code behind the whole proves neither outcome.
    let hints = of(PLAIN, &[branch(PLAIN, "x == 7", [("AAA", 0), ("CCC", 90_000)])]);
    assert_eq!(refusal(&hints), "its machine code does not show which side is which");
}

#[test]
fn what_is_not_beyond_doubt_gets_nothing() {
    for (few, many) in [(0, 9_999), (5, 10_000), (60, 60_000), (30_000, 30_000)] {
        let hints = of(PLAIN, &[branch(PLAIN, "x == 7", [("AAA", few), ("BBB", many)])]);
        assert_eq!(hints, Hints::default(), "{few} of {many}");
    }
}

#[test]
fn copies_are_added_up_and_one_that_comes_out_differently_forbids_the_hint() {
    let usual = branch(PLAIN, "x == 7", [("AAA", 1), ("BBB", 90_000)]);
    let alike = [usual.clone(), branch(PLAIN, "x == 7", [("BBB", 50), ("AAA", 0)])];
    assert_eq!(of(PLAIN, &alike).given[0].because, "held 1 times of 90,051, in 2 copies");
    let differently = [usual, branch(PLAIN, "x == 7", [("BBB", 10), ("AAA", 40)])];
    assert_eq!(refusal(&of(PLAIN, &differently)), "copies of it in the machine code come out differently");
    let estimated = Branch { is_estimated: true, ..branch(PLAIN, "x == 7", [("AAA", 0), ("BBB", 90_000)]) };
    assert_eq!(refusal(&of(PLAIN, &[estimated])), "several answers fit its counts");
}

#[test]
fn a_condition_of_several_or_with_lines_of_the_preprocessor_is_left() {
    let several = PLAIN.replace("x == 7", "x == 7 && x");
    let lines = PLAIN.replace("x == 7", "x\n#if 1\n == 7\n#endif\n");
    for (text, why) in [
        (several, "its condition consists of several"),
        (lines, "its condition has preprocessor lines in it"),
    ] {
        // The beginning of the condition.
        let hints = of(&text, &[branch(&text, "(x", [("AAA", 0), ("BBB", 90_000)])]);
        assert_eq!(refusal(&hints), why);
    }
    // In the body of a macro no `if` is a statement of the text.
    let text = "#define CHECK(x) if ((x) == 7) AAA(x)\nint f(int x) { CHECK(x); return CCC; }\n";
    assert_eq!(of(text, &[branch(text, "CHECK(x);", [("AAA", 0), ("CCC", 90_000)])]), Hints::default());
}

/// Inlined code has no columns: the line must belong to one part.
#[test]
fn a_line_alone_tells_where_it_belongs_to_one_part() {
    let line_of = |text: &str, mark: &str| Side {
        times: 0,
        places: vec![SourcePosition { column: None, ..place(text, mark) }],
    };
    let counted = branch(PLAIN, "x == 7", [("AAA", 0), ("BBB", 90_000)]);
    let with = |text: &str, mark| Branch {
        sides: [line_of(text, mark), counted.sides[1].clone()],
        ..counted.clone()
    };
    assert_eq!(of(PLAIN, &[with(PLAIN, "AAA")]).given.len(), 1);
    assert_eq!(
        refusal(&of(PLAIN, &[with(PLAIN, "x == 7")])),
        "its machine code does not show which side is which"
    );
}

#[test]
fn the_projects_own_words_are_used_where_the_text_uses_them() {
    let text =
        format!("#define rare(x) __builtin_expect(!!(x), 0)\nint g(int x) {{ return rare(x); }}\n{PLAIN}");
    let text = text.replace("x == 7", "g(x, 7)");
    let hints = of(&text, &[branch(&text, "g(x, 7)", [("AAA", 0), ("BBB", 90_000)])]);
    assert!(edited(&hints).contains("if (rare((g(x, 7))))"), "{hints:?}");
    let hinted = text.replace("if (g(x, 7))", "if (unlikely(g(x, 7)))");
    assert_eq!(of(&hinted, &[branch(&hinted, "g(x, 7)", [("AAA", 0), ("BBB", 90_000)])]), Hints::default());
}

fn never_called(function: &str, decisions: u64) -> NeverCalled {
    let defined_at = SourceLocation { file: "a.c".into(), line: 9 };
    NeverCalled { function: function.into(), defined_at, callers: vec!["f".into()], decisions }
}

fn passed_by(function: &str, decisions: u64) -> Evidence {
    Evidence { never_called: vec![never_called(function, decisions)], ..Evidence::default() }
}

#[test]
fn a_cold_function_is_marked_where_its_callers_see_it() {
    let header = "extern int fail(int);\nint other(int);\n";
    let text = "#include \"a.h\"\nstatic void own(void);\n/* fail(x) */\nint (fail) (int x)\n{\n\treturn fail(x);\n}\n\
                static void own(void) { }\nint alone(int x) { return x; }\n";
    let sources =
        Sources::new([("a.c", text), ("a.h", header)].map(|(path, text)| (path.to_owned(), text.to_owned())));
    let passed = ["fail", "own", "alone"].map(|name| never_called(name, 20_000));
    let hints = hints(&Evidence { never_called: passed.into(), ..Evidence::default() }, &sources);
    assert_eq!(hints.edited["a.h"], format!("__attribute__((cold)) {header}"));
    let expected = text
        .replace("static void own(void);", "__attribute__((cold)) static void own(void);")
        .replace("int alone", "__attribute__((cold)) int alone");
    assert_eq!(hints.edited["a.c"], expected);
    assert_eq!(hints.given.len(), 3);
}

#[test]
fn a_function_that_was_seldom_passed_by_or_is_not_found_is_left() {
    let sources = Sources::new([("a.c".to_owned(), "int alone(int x) { return x; }\n".to_owned())]);
    assert_eq!(hints(&passed_by("alone", 9_999), &sources), Hints::default());
    let hints = hints(&passed_by("made_by_a_macro", 20_000), &sources);
    assert!(hints.edited.is_empty() && hints.refused.len() == 1, "{hints:?}");
}

/// A compiler skips a condition that an earlier one has decided, so the counts of its own branch are not complete.
#[test]
fn code_that_ran_more_often_than_its_branch_tells_forbids_the_hint() {
    let with = |text: &str, branch: Branch, mark: &str, times: u64| {
        let places = [(place(text, mark), times)].into();
        let evidence = Evidence {
            branches: vec![branch],
            executed: [("a.c".to_owned(), places)].into(),
            ..Evidence::default()
        };
        hints(&evidence, &Sources::new([("a.c".to_owned(), text.to_owned())]))
    };
    let rare = branch(PLAIN, "x == 7", [("AAA", 0), ("BBB", 90_000)]);
    let told = with(PLAIN, rare.clone(), "AAA", 50_075);
    assert_eq!(
        refusal(&told),
        "code of its rarer outcome ran 50,075 times, more often than its branch shows"
    );
    assert_eq!(with(PLAIN, rare, "BBB", 140_000).given.len(), 1);
    let usual = branch(PLAIN, "x == 7", [("AAA", 90_000), ("BBB", 0)]);
    assert_eq!(with(PLAIN, usual, "BBB", 50_075).given.len(), 0);
    // Without an `else` nothing can be counted where the condition does not hold.
    let alone = PLAIN.replace("\telse\n\t\tBBB(x);\n", "");
    let usual = branch(&alone, "x == 7", [("AAA", 90_000), ("CCC", 0)]);
    assert_eq!(refusal(&of(&alone, &[usual])), "only its branch shows how often it does not hold");
}
