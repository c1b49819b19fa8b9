//! `#define` between members. It takes no room: members may pass it when none of them is spelled with it, and when the
//! user allows it to stand apart from them.

use crate::constraints::comment_rules::Lifts;
use crate::text::body::Body;
use crate::text::body_parts::{BodyPart, BodyPartKind};
use crate::text::lex::{Kind, Lexed, directive_word};
use crate::text::word_set::has_word;
use std::collections::BTreeSet;

/// Lets members cross the places that only such a `#define` parts.
pub(crate) fn lift(body: &mut Body<'_>, lifts: Lifts<'_>) {
    if !lifts.frees(&[]) {
        return;
    }
    let passed: Vec<usize> = (0..body.pieces.len()).filter(|&piece| is_passed(body, piece)).collect();
    for unit in &mut body.units {
        let before = passed.iter().zip(1..).take_while(|(piece, _)| **piece < unit.pieces.start);
        unit.segment = unit.segment.saturating_sub(before.last().map_or(0, |(_, count)| count));
    }
}

/// True for a `#define` of which no member depends on the side. Bit-fields on both sides would become one run.
fn is_passed(body: &Body<'_>, piece: usize) -> bool {
    let lexed = &body.found.lexed;
    let Some(name) = defined(lexed, body.pieces[piece].tokens.start) else { return false };
    let (before, after) = (&body.pieces[..piece], &body.pieces[piece + 1..]);
    let data =
        [before.iter().rev().find(|piece| piece.is_data()), after.iter().find(|piece| piece.is_data())];
    if data.iter().all(|piece| piece.is_some_and(|piece| piece.kind == BodyPartKind::Bits)) {
        return false;
    }
    let names = made_with(lexed, name);
    let spells = |piece: &BodyPart| {
        let texts = piece.tokens.clone().filter(|&token| !lexed.tokens[token].is_comment());
        texts.map(|token| lexed.str(token)).any(|text| names.iter().any(|name| has_word(text, name)))
    };
    !body.pieces.iter().any(|piece| piece.kind != BodyPartKind::Fixed && spells(piece))
}

/// The macro's name, and those of the file's macros that are made with it.
fn made_with<'a>(lexed: &Lexed<'a>, name: &'a str) -> BTreeSet<&'a str> {
    let all: Vec<(&str, &str)> = (0..lexed.tokens.len())
        .filter_map(|token| defined(lexed, token).map(|name| (name, lexed.str(token))))
        .collect();
    let mut names = BTreeSet::from([name]);
    loop {
        let more = all.iter().filter(|(_, text)| names.iter().any(|name| has_word(text, name)));
        let more: BTreeSet<&str> = more.map(|(name, _)| *name).chain([name]).collect();
        if more.len() == names.len() {
            return names;
        }
        names = more;
    }
}

/// The name that a `#define` defines.
fn defined<'a>(lexed: &Lexed<'a>, token: usize) -> Option<&'a str> {
    let is_directive = lexed.tokens.get(token)?.kind == Kind::Directive;
    let text = lexed.str(token);
    let after = text.trim_start_matches('#').trim_start().strip_prefix("define")?;
    let name = after.trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    (is_directive && directive_word(text) == "define" && end > 0).then(|| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::located_declaration;
    use crate::text::sources::Sources;

    /// The number of pieces that members may pass between the members of `s`.
    fn passed(before: &str, inside: &str) -> usize {
        let text = format!("{before}struct s {{\n{inside}}};\n");
        let sources = Sources::new([("s.h".to_owned(), text)]);
        let found = located_declaration::find(&sources, "s", None).expect("declared");
        let body = Body::read(found, &[]).expect("read");
        (0..body.pieces.len()).filter(|&piece| is_passed(&body, piece)).count()
    }

    #[test]
    fn values_that_no_member_is_spelled_with_are_passed() {
        assert_eq!(
            passed("", "\tint a;\n#define A_MAX 8\n/* twice */\n# define A_TWICE (2 * A_MAX)\n\tint b;\n"),
            2
        );
        assert_eq!(passed("", "\tint a;\n#define A(x) \\\n\t(x)\n\tint b; /* by A */\n"), 1);
    }

    #[test]
    fn what_a_member_is_spelled_with_is_not() {
        for inside in [
            "\tint a;\n#define N 4\n\tint b[N];\n",
            "\tint b[N];\n#define N 4\n\tint a;\n",
            "\tint a;\n#define N 4\n#define M (N + 1)\n\tint b[M];\n",
            "\tint a;\n#define N 4\n#if N > 2\n\tint b;\n#endif\n",
            "\tint a;\n#define b c\n\tint b;\n",
        ] {
            assert_eq!(passed("", inside), 0, "{inside}");
        }
        assert_eq!(
            passed("#define M (N + 1)\n", "\tint a;\n#define N 4\n\tint b[M];\n"),
            0,
            "of another macro"
        );
    }

    #[test]
    fn nor_is_another_directive_or_one_between_bit_fields() {
        for inside in [
            "\tint a;\n#undef N\n\tint b;\n",
            "\tint a;\n#pragma GCC poison c\n\tint b;\n",
            "\tint a:1;\n#define N 4\n\tint b:1;\n",
        ] {
            assert_eq!(passed("", inside), 0, "{inside}");
        }
        assert_eq!(passed("", "\tint a:1;\n#define N 4\n\tint b;\n"), 1);
    }
}
