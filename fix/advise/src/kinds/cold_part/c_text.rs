//! Text of C that the edits of a struct with a cold part have in common.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::groundwork::Groundwork;
use crate::patch::text_edits::Edit;
use crate::text::declaration::Declaration;
use crate::text::lex::{Kind, Lexed, directive_word};
use crate::text::located_declaration::LocatedDeclaration;
use crate::text::sources::Sources;
use std::fmt::Write;
use std::ops::Range;

/// The style of the names that a struct has.
pub(crate) struct Naming {
    /// The struct, as the sources spell it.
    pub(crate) whole: String,
    /// Its name without marks of a type.
    base: String,
    is_camel: bool,
}

impl Naming {
    pub(crate) fn of(declaration: &Declaration) -> Naming {
        let tag = declaration.tag.as_deref();
        let typedef = declaration.typedefs.first().map(String::as_str);
        let base = tag.or(typedef).unwrap_or("object").trim_start_matches('_');
        let base = base.strip_suffix("_t").unwrap_or(base);
        let is_camel = is_camel(base);
        let whole = match tag {
            Some(tag) => format!("struct {tag}"),
            None => typedef.unwrap_or(base).to_owned(),
        };
        Naming { whole, base: base.to_owned(), is_camel }
    }

    /// The name of something that belongs to the struct.
    pub(crate) fn joined(&self, words: &[&str]) -> String {
        match self.is_camel {
            true => words.iter().fold(self.base.clone(), |name, word| name + &capitalised(word)),
            false => words.iter().fold(self.base.clone(), |name, word| name + "_" + word),
        }
    }
}

/// The name of something that belongs to a variable.
pub(crate) fn after_variable(name: &str, word: &str) -> String {
    if is_camel(name) { name.to_owned() + &capitalised(word) } else { format!("{name}_{word}") }
}

fn is_camel(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.contains(|c: char| c.is_ascii_lowercase())
        && !name.contains('_')
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The comment above the struct of the cold members.
pub(crate) fn cold_comment(whole: &str) -> String {
    format!("Members of {whole} that hot loops leave alone.")
}

/// The struct with the members in these lines, below a comment.
pub(crate) fn part_declaration(comment: &str, part: &str, (text, spans): (&str, &[Range<usize>])) -> String {
    let mut out = format!("/* {comment} */\n");
    let _ = writeln!(out, "struct {part} {{");
    for span in spans {
        let rows = text[span.clone()].split_inclusive('\n');
        out.extend(rows.filter(|row| !row.trim().is_empty()));
    }
    out.push_str("};\n");
    out
}

/// The start of the line behind the struct's declaration, which has no line in common with other code.
pub(crate) fn declaration_end(found: &LocatedDeclaration<'_>) -> Result<usize, Binding> {
    let end = found.lexed.tokens.get(found.declaration.tail.end).map(|end| end.range());
    let end = end.filter(|end| &found.lexed.text[end.clone()] == ";");
    end.and_then(|end| line_behind(found.lexed.text, end.end)).ok_or_else(|| {
        let why = "its declaration shares a line with others";
        Binding::new(Constraint::UnclearSource).at(&found.path, found.line()).because(why)
    })
}

/// The start of the next line; `None` where more than a comment stands before it.
pub(crate) fn line_behind(text: &str, at: usize) -> Option<usize> {
    let end = next_line(text, at);
    let rest = text[at..end].trim();
    (rest.is_empty() || (rest.starts_with("/*") && rest.ends_with("*/")) || rest.starts_with("//"))
        .then_some(end)
}

fn next_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

/// The start of the line behind the last `#include` before a line, outside of `#if`.
pub(crate) fn after_includes(sources: &Sources, path: &str, line: u32) -> Option<usize> {
    let lexed = sources.lexed(path)?;
    let (mut depth, mut found) = (0_u32, None);
    for token in lexed.tokens.iter().filter(|token| token.kind == Kind::Directive) {
        if lexed.line_at(token.start()) >= line {
            break;
        }
        match directive_word(&lexed.text[token.range()]) {
            "if" | "ifdef" | "ifndef" => depth += 1,
            "endif" => depth = depth.saturating_sub(1),
            "include" if depth == 0 => found = Some(next_line(lexed.text, token.end())),
            _ => {}
        }
    }
    found
}

/// `#include <stdlib.h>` before the struct's declaration, where the file does not have it.
pub(crate) fn missing_include(ground: &Groundwork<'_>) -> Option<Edit> {
    let found = &ground.body.found;
    include_before(&found.lexed, found.lexed.tokens[found.declaration.keyword].start())
}

fn include_before(lexed: &Lexed<'_>, declaration: usize) -> Option<Edit> {
    const HEADER: &str = "<stdlib.h>";
    let (mut depth, mut last, mut is_there) = (0_u32, None, false);
    let mut includes: Vec<(u32, usize)> = Vec::new();
    for token in lexed.tokens.iter().filter(|token| token.kind == Kind::Directive) {
        if token.start() > declaration {
            break;
        }
        let text = &lexed.text[token.range()];
        match directive_word(text) {
            "if" | "ifdef" | "ifndef" => depth += 1,
            "endif" => depth = depth.saturating_sub(1),
            "include" => {
                is_there |= text.contains(HEADER);
                includes.push((depth, token.end()));
            }
            "define" if last.is_none() => last = Some(token.end()),
            _ => {}
        }
    }
    if is_there {
        return None;
    }
    let include = includes.iter().rev().find(|(own, _)| *own == depth).map(|(_, end)| *end);
    let at = include.or(last).map_or(0, |end| next_line(lexed.text, end));
    Some((at..at, format!("#include {HEADER}\n")))
}

/// The style of a file's functions.
pub(crate) struct Style {
    step: String,
    /// The brace that opens a function stands on a line of its own.
    has_own_line: bool,
    linkage: Linkage,
}

/// Declarations, for the header of a struct, of functions that files share: those that make objects, and one that ends
/// them.
pub(crate) fn prototypes<'n>(
    whole: &str,
    makers: impl IntoIterator<Item = &'n String>,
    ender: Option<&String>,
) -> String {
    let makers: String = makers.into_iter().map(|maker| format!("{whole} *{maker}(void);\n")).collect();
    let ender = ender.map(|ender| format!("void {ender}({whole} *ended);\n"));
    format!("\n{makers}{}", ender.unwrap_or_default())
}

/// Who sees a function of a patch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Linkage {
    /// The file that it stands in.
    File,
    /// Every file that includes the header that it stands in, each with a copy.
    Header,
    /// All files.
    Program,
}

impl Style {
    pub(crate) fn of(text: &str, member: &str, linkage: Linkage) -> Style {
        let blank = member.len() - member.trim_start_matches([' ', '\t']).len();
        let step = if blank == 0 { "    ".to_owned() } else { member[..blank].to_owned() };
        let own = text.lines().filter(|line| line.trim_end() == "{").count();
        let shared =
            text.lines().filter(|line| line.trim_end().ends_with(") {") && !line.starts_with([' ', '\t']));
        Style { step, has_own_line: own >= shared.count(), linkage }
    }

    /// A function whose body is indented by tabs, in the style of the file.
    pub(crate) fn function(&self, head: &str, body: &str) -> String {
        let linkage = match self.linkage {
            Linkage::File => "static ",
            Linkage::Header => "static inline ",
            Linkage::Program => "",
        };
        let brace = if self.has_own_line { "\n{\n" } else { " {\n" };
        format!("{linkage}{head}{brace}{}", self.indented(&format!("{body}}}\n")))
    }

    /// A text that is indented by tabs, in the style of the file.
    pub(crate) fn indented(&self, text: &str) -> String {
        text.replace('\t', &self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_header_follows_the_others_or_the_guard() {
        let edited = |text: &str| {
            let lexed = Lexed::new(text);
            let declaration = text.find("struct").expect("a declaration");
            include_before(&lexed, declaration)
                .map(|(at, by)| format!("{}{by}{}", &text[..at.start], &text[at.end..]))
        };
        assert_eq!(
            edited("#ifndef H\n#define H\nstruct t;\n#endif\n").as_deref(),
            Some("#ifndef H\n#define H\n#include <stdlib.h>\nstruct t;\n#endif\n")
        );
        assert_eq!(
            edited("#include <stdio.h>\n#ifdef X\n#include \"x.h\"\n#endif\nstruct t;\n").as_deref(),
            Some("#include <stdio.h>\n#include <stdlib.h>\n#ifdef X\n#include \"x.h\"\n#endif\nstruct t;\n")
        );
        assert_eq!(edited("#include <stdlib.h>\nstruct t;\n"), None);
    }
}
