//! Writing the cold part of a struct of C: its declaration, the pointer to it, the functions that make and end both
//! parts, and each use of what it holds.
//!
//! `malloc` hands out memory in the order of its calls: asked for each part in turn, it would put cold parts between
//! hot ones, and no line would hold more of them than before. So hot parts of single objects come from blocks, which a
//! program of one thread can keep without a lock.

use crate::cold_part_text::{self, ColdText, Edit, STEMS, is_free, member_in_style, place, taken};
use crate::constraint::{Binding, Constraint};
use crate::groundwork::Groundwork;
use crate::heap_calls::MakingCall;
use crate::lex::{Kind, Lexed};
use crate::meaning::{HeapCall, HeapFunction, SplitMeaning};
use crate::proposal::HeapChange;
use crate::sources::Sources;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

/// Hot parts in a block.
pub(crate) const BLOCK: u32 = 64;

/// The texts with these units in a cold part.
pub(crate) fn write(
    sources: &Sources,
    ground: &Groundwork<'_>,
    units: &[usize],
    moved: &BTreeSet<String>,
    meaning: &SplitMeaning,
) -> Result<ColdText, Binding> {
    let body = &ground.body;
    let path = &body.found.path;
    let spans = cold_part_text::leaving_lines(ground, units)?;
    let names = Names::of(sources, ground)?;
    let mut edits = cold_part_text::through(sources, meaning, moved, &names.member)?;
    let mut calls = Calls::read(sources, &meaning.heap_calls)?;
    calls.makes.in_blocks = !calls.makes.several && meaning.has_one_thread;
    for (path, edit) in calls.edits(&names) {
        edits.entry(path).or_default().push(edit);
    }
    let lexed = &body.found.lexed;
    let first = &lexed.text[spans[0].clone()];
    let own = edits.entry(path.clone()).or_default();
    own.extend(cold_part_text::replaced(&spans, names.pointer(first)));
    let end = declaration_end(ground)
        .ok_or_else(|| cold_part_text::unclear(ground, "its declaration shares a line with others"))?;
    let mut below = names.part_declaration(lexed.text, &spans);
    let files: BTreeSet<&str> = meaning.heap_calls.iter().map(|call| call.path.as_str()).collect();
    let (only, is_header) = (files.first().copied().unwrap_or_default(), !path.ends_with(".c"));
    let place = match (files.len(), only == path) {
        (1, false) => after_includes(sources, only, &meaning.heap_calls),
        _ => None,
    };
    let functions = |path: &str, is_inline: bool| {
        let style = Style::of(sources.get(path).unwrap_or_default(), first, is_inline);
        names.functions(&style, &calls.makes)
    };
    match place {
        Some(at) => {
            let text = format!("\n{}", functions(only, false));
            edits.entry(only.to_owned()).or_default().push((at..at, text));
        }
        None => {
            below.push('\n');
            below.push_str(&functions(path, is_header));
            if let Some(include) =
                missing_include(lexed, lexed.tokens[body.found.declaration.keyword].start())
            {
                edits.entry(path.clone()).or_default().push(include);
            }
        }
    }
    edits.entry(path.clone()).or_default().push((end..end, format!("\n{below}")));
    let heap =
        HeapChange { makes: calls.making.len(), ends: calls.ending.len(), in_blocks: calls.makes.in_blocks };
    Ok(ColdText {
        member: names.member,
        heap: Some(heap),
        texts: cold_part_text::applied(sources, edits, ground)?,
    })
}

/// The start of the line behind a declaration; `None` where more stands on its last line.
fn declaration_end(ground: &Groundwork<'_>) -> Option<usize> {
    let found = &ground.body.found;
    let text = found.lexed.text;
    let end = found.lexed.tokens.get(found.declaration.tail.end).filter(|end| &text[end.range()] == ";")?;
    let line_end = text[end.end()..].find('\n').map_or(text.len(), |at| end.end() + at + 1);
    let rest = text[end.end()..line_end].trim();
    (rest.is_empty() || (rest.starts_with("/*") && rest.ends_with("*/")) || rest.starts_with("//"))
        .then_some(line_end)
}

/// The start of the line behind the last `#include` before the first of these calls, outside of `#if`.
fn after_includes(sources: &Sources, path: &str, calls: &[HeapCall]) -> Option<usize> {
    let lexed = sources.lexed(path)?;
    let first = calls.iter().map(|call| call.line).min()?;
    let (mut depth, mut found) = (0_u32, None);
    for token in lexed.tokens.iter().filter(|token| token.kind == Kind::Directive) {
        if lexed.line_at(token.start()) >= first {
            break;
        }
        match crate::body_parts::directive_word(&lexed.text[token.range()]) {
            "if" | "ifdef" | "ifndef" => depth += 1,
            "endif" => depth = depth.saturating_sub(1),
            "include" if depth == 0 => {
                let end = token.end();
                found = Some(lexed.text[end..].find('\n').map_or(lexed.text.len(), |at| end + at + 1));
            }
            _ => {}
        }
    }
    found
}

/// `#include <stdlib.h>` before a declaration, where the file does not have it.
fn missing_include(lexed: &Lexed<'_>, declaration: usize) -> Option<Edit> {
    const HEADER: &str = "<stdlib.h>";
    let (mut depth, mut last, mut is_there) = (0_u32, None, false);
    let mut includes: Vec<(u32, usize)> = Vec::new();
    for token in lexed.tokens.iter().filter(|token| token.kind == Kind::Directive) {
        if token.start() > declaration {
            break;
        }
        let text = &lexed.text[token.range()];
        match crate::body_parts::directive_word(text) {
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
    let line_behind = |end: usize| lexed.text[end..].find('\n').map_or(lexed.text.len(), |at| end + at + 1);
    let at = include.or(last).map_or(0, line_behind);
    Some((at..at, format!("#include {HEADER}\n")))
}

/// The calls that change.
struct Calls {
    making: Vec<(String, HeapFunction, MakingCall)>,
    /// The names of the functions that end objects, in bytes.
    ending: Vec<(String, Range<usize>)>,
    makes: Makes,
}

/// The functions that are needed.
#[derive(Default)]
struct Makes {
    /// By `malloc`, by `calloc`.
    by: BTreeSet<HeapFunction>,
    /// Some calls make several objects at once.
    several: bool,
    ends: bool,
    /// Hot parts come from blocks.
    in_blocks: bool,
}

impl Calls {
    fn read(sources: &Sources, calls: &[HeapCall]) -> Result<Calls, Binding> {
        let (mut making, mut ending, mut makes) = (Vec::new(), Vec::new(), Makes::default());
        for call in calls {
            let name = call.function.name();
            let at = place(sources, &call.path, (call.line, call.column), name)?;
            if call.function == HeapFunction::Free {
                makes.ends = true;
                ending.push((call.path.clone(), at..at + name.len()));
                continue;
            }
            let lexed = sources.lexed(&call.path);
            let made = lexed.and_then(|lexed| {
                let token = lexed.tokens.partition_point(|token| token.start() < at);
                MakingCall::read(&lexed, token, call.function)
            });
            let made = made.ok_or_else(|| {
                let why = "the number of objects that a call makes is not understood";
                Binding::new(Constraint::UnclearSource).at(&call.path, call.line).because(why)
            })?;
            makes.by.insert(call.function);
            makes.several |= made.count.is_some();
            making.push((call.path.clone(), call.function, made));
        }
        Ok(Calls { making, ending, makes })
    }

    /// The calls of the new functions in place of those of the library's, by path.
    fn edits(&self, names: &Names) -> Vec<(String, Edit)> {
        let mut edits: Vec<(String, Edit)> = Vec::new();
        for (path, function, call) in &self.making {
            let name = names.maker(*function);
            let whole = call.whole.clone();
            match &call.count {
                Some(count) => {
                    edits.push((path.clone(), (whole.start..count.start, format!("{name}("))));
                    edits.push((path.clone(), (count.end..whole.end, ")".to_owned())));
                }
                None => {
                    let count = if self.makes.several { "1" } else { "" };
                    edits.push((path.clone(), (whole, format!("{name}({count})"))));
                }
            }
        }
        edits.extend(self.ending.iter().map(|(path, at)| (path.clone(), (at.clone(), names.ender.clone()))));
        edits
    }
}

/// The names that the edit gives.
struct Names {
    /// The struct, as the sources spell it.
    whole: String,
    /// The struct of the cold members.
    part: String,
    /// The pointer to one.
    member: String,
    /// The functions that make objects, as `malloc` and as `calloc` do, and the one that ends them.
    maker: String,
    zeroed_maker: String,
    ender: String,
    /// The variable that leads to hot parts which no object uses.
    spare: String,
}

impl Names {
    /// Names in the style of the struct that no source has.
    fn of(sources: &Sources, ground: &Groundwork<'_>) -> Result<Names, Binding> {
        let declaration = &ground.body.found.declaration;
        let tag = declaration.tag.as_deref();
        let typedef = declaration.typedefs.first().map(String::as_str);
        let base = tag.or(typedef).unwrap_or("object").trim_start_matches('_');
        let base = base.strip_suffix("_t").unwrap_or(base);
        let is_camel = base.starts_with(|c: char| c.is_ascii_uppercase())
            && base.contains(|c: char| c.is_ascii_lowercase())
            && !base.contains('_');
        let joined = |words: &[&str]| match is_camel {
            true => words.iter().fold(base.to_owned(), |name, word| name + &capitalised(word)),
            false => words.iter().fold(base.to_owned(), |name, word| name + "_" + word),
        };
        let whole = match tag {
            Some(tag) => format!("struct {tag}"),
            None => typedef.unwrap_or(base).to_owned(),
        };
        for stem in STEMS {
            for (maker, ender) in [("new", "free"), ("alloc", "release"), ("make", "drop")] {
                let names = Names {
                    whole: whole.clone(),
                    part: joined(&[stem]),
                    member: member_in_style(ground, stem),
                    maker: joined(&[maker]),
                    zeroed_maker: joined(&[maker, "zeroed"]),
                    ender: joined(&[ender]),
                    spare: joined(&["spare"]),
                };
                if names.all().into_iter().all(|name| is_free(sources, name)) {
                    return Ok(names);
                }
            }
        }
        Err(taken(ground))
    }

    /// The names that are new.
    fn all(&self) -> [&String; 6] {
        [&self.part, &self.member, &self.spare, &self.maker, &self.zeroed_maker, &self.ender]
    }

    fn maker(&self, function: HeapFunction) -> &str {
        match function {
            HeapFunction::Calloc => &self.zeroed_maker,
            _ => &self.maker,
        }
    }

    /// The pointer, in place of the first unit.
    fn pointer(&self, first: &str) -> String {
        let blank = first.len() - first.trim_start_matches([' ', '\t']).len();
        format!("{}struct {} *{};\n", &first[..blank], self.part, self.member)
    }

    fn part_declaration(&self, text: &str, spans: &[Range<usize>]) -> String {
        let mut out = format!("/* Members of {} that hot loops leave alone. */\n", self.whole);
        let _ = writeln!(out, "struct {} {{", self.part);
        for span in spans {
            let rows = text[span.clone()].split_inclusive('\n');
            out.extend(rows.filter(|row| !row.trim().is_empty()));
        }
        out.push_str("};\n");
        out
    }

    fn functions(&self, style: &Style, makes: &Makes) -> String {
        let mut all: Vec<String> = Vec::new();
        if makes.in_blocks {
            all.push(format!(
                "/* Hot parts that no object uses: they come in blocks, side by side, and are kept. */\nstatic {} *{};\n",
                self.whole, self.spare
            ));
            all.push(self.block_maker_text(style));
            all.extend(makes.by.contains(&HeapFunction::Calloc).then(|| self.block_zeroed_text(style)));
            all.extend(makes.ends.then(|| self.block_ender_text(style)));
        } else {
            all.extend(makes.by.iter().map(|&by| self.maker_text(style, by, makes.several)));
            all.extend(makes.ends.then(|| self.ender_text(style)));
        }
        all.join("\n")
    }

    /// The function that makes objects with both parts. The memory for no object is that for one: `free` reads it.
    fn maker_text(&self, style: &Style, function: HeapFunction, several: bool) -> String {
        let (whole, part, member, name) = (&self.whole, &self.part, &self.member, self.maker(function));
        let allocated = |of: &str| match (function, several) {
            (HeapFunction::Calloc, true) => format!("calloc(count ? count : 1, sizeof *{of})"),
            (HeapFunction::Calloc, false) => format!("calloc(1, sizeof *{of})"),
            (_, true) => format!("malloc((count ? count : 1) * sizeof *{of})"),
            (_, false) => format!("malloc(sizeof *{of})"),
        };
        let (made, cold) = (allocated("made"), allocated("part"));
        let (counter, rest, parameters) = match several {
            true => (
                "\tsize_t at;\n",
                format!("\tfor (at = 1; at < count; at++)\n\t\tmade[at].{member} = part + at;\n"),
                "size_t count",
            ),
            false => ("", String::new(), "void"),
        };
        style.function(
            &format!("{whole} *{name}({parameters})"),
            &format!(
                "\t{whole} *made = {made};\n\tstruct {part} *part = {cold};\n{counter}\n\tif (!made || !part) {{\n\t\tfree(made);\n\
                 \t\tfree(part);\n\t\treturn NULL;\n\t}}\n\tmade->{member} = part;\n{rest}\treturn made;\n"
            ),
        )
    }

    fn ender_text(&self, style: &Style) -> String {
        let (whole, member) = (&self.whole, &self.member);
        style.function(
            &format!("void {}({whole} *ended)", self.ender),
            &format!("\tif (ended)\n\t\tfree(ended->{member});\n\tfree(ended);\n"),
        )
    }

    /// The same with hot parts from blocks. Those that no object uses are in a list, linked by the pointer to the part.
    fn block_maker_text(&self, style: &Style) -> String {
        let Names { whole, part, member, maker, spare, .. } = self;
        style.function(
            &format!("{whole} *{maker}(void)"),
            &format!(
                "\tconst size_t count = {BLOCK};\n\tstruct {part} *part = malloc(sizeof *part);\n\t{whole} *made = {spare};\n\
                 \tsize_t at;\n\n\tif (part && !made) {{\n\t\tmade = malloc(count * sizeof *made);\n\
                 \t\tfor (at = 0; made && at < count; at++)\n\
                 \t\t\tmade[at].{member} = at + 1 < count ? (void *)(made + at + 1) : NULL;\n\t}}\n\
                 \tif (!part || !made) {{\n\t\tfree(part);\n\t\treturn NULL;\n\t}}\n\
                 \t{spare} = (void *)made->{member};\n\tmade->{member} = part;\n\treturn made;\n"
            ),
        )
    }

    fn block_zeroed_text(&self, style: &Style) -> String {
        let Names { whole, part, member, maker, zeroed_maker, .. } = self;
        style.function(
            &format!("{whole} *{zeroed_maker}(void)"),
            &format!(
                "\tstatic const {whole} none;\n\tstatic const struct {part} nothing;\n\t{whole} *made = {maker}();\n\
                 \tstruct {part} *part;\n\n\tif (made) {{\n\t\tpart = made->{member};\n\t\t*made = none;\n\
                 \t\t*part = nothing;\n\t\tmade->{member} = part;\n\t}}\n\treturn made;\n"
            ),
        )
    }

    fn block_ender_text(&self, style: &Style) -> String {
        let Names { whole, member, ender, spare, .. } = self;
        style.function(
            &format!("void {ender}({whole} *ended)"),
            &format!(
                "\tif (!ended)\n\t\treturn;\n\tfree(ended->{member});\n\tended->{member} = (void *){spare};\n\
                 \t{spare} = ended;\n"
            ),
        )
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The style of a file's functions.
struct Style {
    step: String,
    /// The brace that opens a function stands on a line of its own.
    has_own_line: bool,
    is_inline: bool,
}

impl Style {
    fn of(text: &str, member: &str, is_inline: bool) -> Style {
        let blank = member.len() - member.trim_start_matches([' ', '\t']).len();
        let step = if blank == 0 { "    ".to_owned() } else { member[..blank].to_owned() };
        let own = text.lines().filter(|line| line.trim_end() == "{").count();
        let shared =
            text.lines().filter(|line| line.trim_end().ends_with(") {") && !line.starts_with([' ', '\t']));
        Style { step, has_own_line: own >= shared.count(), is_inline }
    }

    /// A function whose body is indented by tabs, in the style of the file.
    fn function(&self, head: &str, body: &str) -> String {
        let inline = if self.is_inline { "inline " } else { "" };
        let brace = if self.has_own_line { "\n{\n" } else { " {\n" };
        format!("static {inline}{head}{brace}{}}}\n", body.replace('\t', &self.step))
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
            missing_include(&lexed, declaration)
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
