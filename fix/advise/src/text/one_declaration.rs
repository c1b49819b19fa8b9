//! A body whose members are all declared at once: `node *first, *last;`. The declarators move there.

use crate::text::body_parts::{BodyPart, BodyPartKind};
use crate::text::lex::Lexed;
use std::ops::Range;

/// The declarators of the only declaration of members among these pieces, each as a piece; `None` where they cannot
/// change places by their text: one has a value, a bit width, an attribute or a comment of its own, or is more than
/// `*name[n]`.
pub(crate) fn split(lexed: &Lexed<'_>, pieces: &[BodyPart]) -> Option<Vec<BodyPart>> {
    let mut members = pieces.iter().enumerate().filter(|(_, piece)| piece.is_data());
    let (at, only) = members.next().filter(|_| members.next().is_none())?;
    if only.kind != BodyPartKind::Data || only.names.len() < 2 {
        return None;
    }
    let parts = declarators(lexed, only)?;
    let (before, after) = (&pieces[..at], &pieces[at + 1..]);
    Some([before, &parts, after].concat())
}

fn declarators(lexed: &Lexed<'_>, declaration: &BodyPart) -> Option<Vec<BodyPart>> {
    let tokens = declaration.tokens.clone();
    let own = lexed.tokens[tokens.start].start()..lexed.tokens[tokens.end - 1].end();
    let is_plain =
        |index: usize| lexed.is_code(index) && !matches!(lexed.str(index), "{" | "(" | "<" | "=" | ":");
    if declaration.span != own || !tokens.clone().all(is_plain) {
        return None;
    }
    let ends: Vec<usize> = tokens.clone().filter(|&index| matches!(lexed.str(index), "," | ";")).collect();
    let mut start = tokens.start;
    let mut parts = Vec::new();
    for (end, name) in ends.iter().zip(&declaration.names) {
        let found = declarator(lexed, start..*end, name)?;
        // Behind the type stands the first one only.
        if found.start != start && !parts.is_empty() {
            return None;
        }
        let span = lexed.tokens[found.start].start()..lexed.tokens[found.end - 1].end();
        parts.push(BodyPart { kind: BodyPartKind::Data, tokens: found, span, names: vec![name.clone()] });
        start = end + 1;
    }
    (ends.len() == declaration.names.len() && start == tokens.end).then_some(parts)
}

/// The tokens of `**name[n]` at the end of these.
fn declarator(lexed: &Lexed<'_>, tokens: Range<usize>, name: &str) -> Option<Range<usize>> {
    let at = tokens.clone().find(|&index| lexed.str(index) == name)?;
    let mut after = at + 1;
    while after < tokens.end {
        if lexed.str(after) != "[" {
            return None;
        }
        after = lexed.closing(after, tokens.end)? + 1;
    }
    let stars = tokens.start..at;
    let start = stars.rev().take_while(|&index| lexed.str(index) == "*").last().unwrap_or(at);
    Some(start..tokens.end)
}

#[cfg(test)]
mod tests {
    use crate::constraints::constraint::Binding;
    use crate::patch::rewrite;
    use crate::text::body::Body;
    use crate::text::located_declaration;
    use crate::text::sources::Sources;

    fn turned(path: &str, text: &str) -> Result<String, Binding> {
        let sources = Sources::new([(path.to_string(), text.to_string())]);
        let mut body = Body::read(located_declaration::find(&sources, "t", None)?, &[])?;
        body.part_declarators();
        let order: Vec<usize> = (0..body.units.len()).rev().collect();
        Ok(rewrite::apply(&body, &order))
    }

    #[test]
    fn members_that_are_declared_at_once_change_places() {
        for (text, wanted) in [
            ("struct t {\n    node *first, *last;\n};\n", "struct t {\n    node *last, *first;\n};\n"),
            ("struct t { int a[2][3], b[2][3] ; };\n", "struct t { int b[2][3], a[2][3] ; };\n"),
            (
                "struct t {\n  const char **a,\n       **b;\n};\n",
                "struct t {\n  const char **b,\n       **a;\n};\n",
            ),
            ("struct t {\n  // Both.\n\n  int a, b;\n};\n", "struct t {\n  // Both.\n\n  int b, a;\n};\n"),
        ] {
            assert_eq!(turned("a.c", text).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn declarators_that_hold_more_than_a_name_move_as_one() {
        for text in [
            "struct t { int (*a)(int), (*b)(int); };\n",
            "struct t {\n  int a, /* the other */ b;\n};\n",
            "struct t {\n  int a, b; /* both */\n};\n",
            "struct t {\n  int a __attribute__((aligned(8))), b;\n};\n",
            "struct t {\n  int *const a, *const b;\n};\n",
            "struct t {\n  int a, b ALIGNED;\n};\n",
            "struct t {\n  struct { int x; } a, b;\n};\n",
            "struct t {\n  int a, b,\n#ifdef C\n  c,\n#endif\n  d;\n};\n",
        ] {
            assert_eq!(turned("a.c", text).as_deref(), Ok(text), "{text}");
        }
        let text = "struct t {\n  int a = 1, b = 2;\n};\n";
        assert_eq!(turned("a.cc", text).as_deref(), Ok(text));
    }
}
