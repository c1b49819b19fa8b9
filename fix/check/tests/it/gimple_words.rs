//! Words of a line of a GIMPLE dump.

// The library's own file, which the library shows nobody.
#[path = "../../src/gimple/lexer.rs"]
#[allow(dead_code, unreachable_pub)]
mod lexer;

use lexer::{Token, words};

#[test]
fn a_line_becomes_words_and_a_place() {
    let (found, place) = words("  [a b.c:11:72] _4 = [a b.c:11:72] n->arr[k] + -8;");
    assert_eq!(place, Some("a b.c:11:72"));
    let text: Vec<String> = found.iter().map(|word| format!("{word:?}")).collect();
    assert_eq!(
        text.join(" "),
        concat!(
            "Name(\"_4\") Other(\"=\") Name(\"n\") Other(\"->\") Name(\"arr\") Other(\"[\") Name(\"k\") ",
            "Other(\"]\") Other(\"+\") Int(-8) Other(\";\")"
        )
    );
}

#[test]
fn a_bracket_around_a_place_is_none() {
    let (found, place) = words("MEM[(int *)[x.c:3:33] &y + 4B]");
    assert_eq!((found.len(), place), (11, Some("x.c:3:33")), "{found:?}");
}

#[test]
fn numbers_of_gcc_are_part_of_a_name_and_zero_is_a_number() {
    assert_eq!(words("D.3225 = 0B").0, [Token::Name("D.3225"), Token::Other("="), Token::Int(0)]);
    assert_eq!(words("2.0e+0 \"a\\\" b\"").0, [Token::Other("2.0e+0"), Token::Other("\"a\\\" b\"")]);
}
