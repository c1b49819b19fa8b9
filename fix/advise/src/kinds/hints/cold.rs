//! Selection of the functions that are marked cold.

use super::hint::{Edit, Hint, Hints, RefusedHint, is_beyond_doubt};
use crate::kinds::hints::macros::Macros;
use crate::text::language::SourceLanguage;
use crate::text::lex::{Kind, Lexed};
use crate::text::source_place::SourcePlace;
use crate::text::sources::Sources;
use lineup_model::branch::NeverCalled;
use lineup_model::figure;
use std::collections::{BTreeMap, BTreeSet};

/// The attribute for projects without a macro for it.
const COLD: &str = "__attribute__((cold))";
/// Callers that are named.
const MOST_CALLERS: usize = 3;

/// `cold` at the declarations of functions that were passed by often enough.
pub(super) fn functions(
    never_called: &[NeverCalled],
    sources: &Sources,
    macros: &Macros,
    hints: &mut Hints,
    edits: &mut BTreeMap<String, Vec<Edit>>,
) {
    let mut done: BTreeSet<(&str, usize)> = BTreeSet::new();
    for one in never_called.iter().filter(|one| is_beyond_doubt(0, one.decisions)) {
        let path = &*one.defined_at.file;
        if sources.get(path).is_none() {
            continue;
        }
        let at = SourcePlace { path: path.to_owned(), line: one.defined_at.line };
        let places = match declarations(one, sources) {
            Ok(places) => places,
            Err(because) => {
                hints.refused.push(RefusedHint { at, because: format!("{}: {because}", one.function) });
                continue;
            }
        };
        if places.iter().any(|(path, place)| !done.insert((path, *place))) {
            continue;
        }
        let word = |path: &str| macros.cold(sources.get(path)?);
        let hint = word(path).unwrap_or(COLD).to_owned();
        for (path, place) in places {
            let word = word(path).unwrap_or(COLD);
            let edit = Edit { bytes: place..place, text: format!("{word} ") };
            edits.entry(path.to_owned()).or_default().push(edit);
        }
        let mut callers = one.callers.iter().take(MOST_CALLERS).cloned().collect::<Vec<_>>().join(", ");
        if one.callers.len() > MOST_CALLERS {
            callers += &format!(" and {} others", one.callers.len() - MOST_CALLERS);
        }
        let because = format!("never called; {callers} could have {} times", figure::whole(one.decisions));
        hints.given.push(Hint { at, hint, of: one.function.clone(), because });
    }
}

/// The beginnings of a function's declarations: those that its callers see, or its definition if there is no other.
fn declarations<'s>(one: &'s NeverCalled, sources: &'s Sources) -> Result<Vec<(&'s str, usize)>, String> {
    let path = &*one.defined_at.file;
    if sources.language(path) != SourceLanguage::C {
        return Err("functions of C++ are left as they are".to_owned());
    }
    let (mut prototypes, mut definitions) = (Vec::new(), Vec::new());
    let mut is_static = false;
    for (other, _) in sources.that_may_name(&one.function).filter(|(other, _)| is_c(sources, other)) {
        for found in sources.lexed(other).iter().flat_map(|lexed| outermost(lexed, &one.function)) {
            match found {
                FunctionDeclaration { is_definition: true, begins_at, is_static: own } if other == path => {
                    definitions.push((other, begins_at));
                    is_static |= own;
                }
                // Another function of this name.
                FunctionDeclaration { is_definition: true, .. } => {}
                found => prototypes.push((other, found)),
            }
        }
    }
    if definitions.len() != 1 {
        return Err("its definition was not found in the text, or there are several".to_owned());
    }
    let own = prototypes.iter().filter(|(other, found)| match is_static || found.is_static {
        true => *other == path && is_static,
        false => true,
    });
    let own: Vec<(&str, usize)> = own.map(|(other, found)| (*other, found.begins_at)).collect();
    Ok(if own.is_empty() { definitions } else { own })
}

fn is_c(sources: &Sources, path: &str) -> bool {
    sources.language(path) == SourceLanguage::C
}

/// A declaration of a function in a text.
struct FunctionDeclaration {
    begins_at: usize,
    is_definition: bool,
    is_static: bool,
}

/// The declarations of a function outside all braces.
fn outermost(lexed: &Lexed<'_>, name: &str) -> Vec<FunctionDeclaration> {
    let code: Vec<usize> =
        (0..lexed.tokens.len()).filter(|index| !lexed.tokens[*index].is_comment()).collect();
    let text = |at: usize| code.get(at).map_or("", |index| lexed.str(*index));
    let is_directive =
        |at: usize| code.get(at).is_some_and(|index| lexed.tokens[*index].kind == Kind::Directive);
    let (mut found, mut depth, mut begins) = (Vec::new(), 0usize, 0usize);
    for at in 0..code.len() {
        match text(at) {
            _ if is_directive(at) && depth == 0 => begins = at + 1,
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    begins = at + 1;
                }
            }
            ";" if depth == 0 => begins = at + 1,
            word if depth == 0 && word == name => {
                // Lua and others write the name in parentheses, which keeps macros away.
                let after = if text(at + 1) == ")" { at + 2 } else { at + 1 };
                let words = || (begins..at).map(text);
                let is_declared =
                    text(after) == "(" && at > begins && !words().any(|word| matches!(word, "=" | "typedef"));
                let closing = code.get(after).and_then(|open| lexed.closing(*open, lexed.tokens.len()));
                let behind = closing.and_then(|closing| code.iter().position(|index| *index == closing));
                let end = behind.map_or("", |behind| text(behind + 1));
                if let Some(first) = code.get(begins).filter(|_| is_declared && matches!(end, "{" | ";")) {
                    found.push(FunctionDeclaration {
                        begins_at: lexed.tokens[*first].start(),
                        is_definition: end == "{",
                        is_static: words().any(|word| word == "static"),
                    });
                }
            }
            _ => {}
        }
    }
    found
}
