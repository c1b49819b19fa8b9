//! The body of a struct or class cut into pieces that can move and pieces that cannot.
//!
//! A piece is one declaration (or one `#if` group) with the comments that belong to it: those directly
//! above it, and those after it on its line. Everything else is a gap, and gaps stay where they are.

use crate::text::attributes::{self, Meaning};
use crate::text::comments_below;
use crate::text::declarator::{self, Shape};
use crate::text::language::SourceLanguage;
use crate::text::lex::{Kind, Lexed, Token, directive_word};
use crate::text::lines::{column, indent, newlines, starts_line};
use std::ops::Range;

/// The kind of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyPartKind {
    /// Declares data members, by name.
    Data,
    /// Declares bit-fields.
    Bits,
    /// An anonymous struct or union, or a `struct_group`.
    Anonymous,
    /// `#if … #endif` with declarations inside.
    Conditional,
    /// A macro that may declare members.
    Macro,
    /// A zero-length group marker written as a macro.
    Marker,
    /// A nested type that data members may use.
    NestedType,
    /// `public:` and the like.
    Access,
    /// A method, a static member, a directive without members, …
    Fixed,
}

/// One piece of a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BodyPart {
    pub(crate) kind: BodyPartKind,
    /// Tokens of the declaration itself.
    pub(crate) tokens: Range<usize>,
    /// Bytes of the declaration with the comments that belong to it.
    pub(crate) span: Range<usize>,
    /// Names it declares, in order.
    pub(crate) names: Vec<String>,
}

impl BodyPart {
    /// True when the piece takes room in objects.
    pub(crate) fn is_data(&self) -> bool {
        use BodyPartKind::*;
        matches!(self.kind, Data | Bits | Anonymous | Conditional | Macro)
            || (self.kind == Marker && !self.names.is_empty())
    }
}

/// Cuts the tokens between the braces of a declaration. `None` when brackets or `#if` do not match.
///
/// `members` are the member names that debug info knows; empty means unknown.
pub(crate) fn cut(
    lexed: &Lexed<'_>,
    body: Range<usize>,
    language: SourceLanguage,
    members: &[&str],
) -> Option<Vec<BodyPart>> {
    let mut cutter =
        Cutter { lexed, body: body.clone(), language, members, pieces: Vec::new(), at: body.start };
    while cutter.at < body.end {
        cutter.step()?;
    }
    attach_comments(lexed, &body, &mut cutter.pieces);
    Some(cutter.pieces)
}

struct Cutter<'l, 'a> {
    lexed: &'l Lexed<'a>,
    body: Range<usize>,
    language: SourceLanguage,
    members: &'l [&'l str],
    pieces: Vec<BodyPart>,
    at: usize,
}

impl Cutter<'_, '_> {
    fn step(&mut self) -> Option<()> {
        let token = self.lexed.tokens.get(self.at)?;
        let (end, kind, names) = match token.kind {
            Kind::BlockComment | Kind::LineComment => {
                self.at += 1;
                return Some(());
            }
            Kind::Directive => self.directive()?,
            _ if self.is_access_label() => (self.after_label()?, BodyPartKind::Access, Vec::new()),
            _ => self.declaration()?,
        };
        self.push(self.at..end, kind, names);
        self.at = end;
        Some(())
    }

    fn push(&mut self, tokens: Range<usize>, kind: BodyPartKind, names: Vec<String>) {
        let text = &self.lexed.tokens;
        let span = text[tokens.start].start()..text[tokens.end - 1].end();
        self.pieces.push(BodyPart { kind, tokens, span, names });
    }

    fn directive(&self) -> Option<(usize, BodyPartKind, Vec<String>)> {
        if !directive_word(self.lexed.str(self.at)).starts_with("if") {
            let includes = directive_word(self.lexed.str(self.at)) == "include";
            let kind = if includes { BodyPartKind::Macro } else { BodyPartKind::Fixed };
            return Some((self.at + 1, kind, Vec::new()));
        }
        let end = conditional_end(self.lexed, self.at, self.body.end)?;
        brackets_balance(self.lexed, self.at..end).then_some(())?;
        if self.has_only_methods(self.at + 1..end - 1) {
            return Some((end, BodyPartKind::Fixed, Vec::new()));
        }
        let names = declarator::words_among(self.lexed, self.at..end, self.members);
        let declares = (self.at..end).any(|index| self.lexed.is_code(index) && self.lexed.str(index) == ";");
        let kind =
            if declares || !names.is_empty() { BodyPartKind::Conditional } else { BodyPartKind::Fixed };
        Some((end, kind, names))
    }

    /// Text between `#if` and `#endif` that takes no room in objects.
    fn has_only_methods(&self, inside: Range<usize>) -> bool {
        let parts = cut(self.lexed, inside, self.language, self.members);
        self.language == SourceLanguage::Cpp
            && parts.is_some_and(|parts| !parts.iter().any(BodyPart::is_data))
    }

    fn is_access_label(&self) -> bool {
        self.language == SourceLanguage::Cpp
            && matches!(self.lexed.str(self.at), "public" | "private" | "protected" | "signals" | "Q_SIGNALS")
            && self.after_label().is_some()
    }

    /// The token after `public:` or `private slots:`.
    fn after_label(&self) -> Option<usize> {
        let next = self.lexed.next_code(self.at + 1, self.body.end)?;
        let next =
            if self.lexed.is_word(next) { self.lexed.next_code(next + 1, self.body.end)? } else { next };
        (self.lexed.str(next) == ":").then_some(next + 1)
    }

    /// The token after a marker macro that no `;` ends, which would else become part of the next declaration.
    fn bare_marker(&self) -> Option<usize> {
        let word = self.lexed.str(self.at);
        let after = match is_marker_macro(word) {
            true => {
                let next = self.lexed.next_code(self.at + 1, self.body.end);
                let open = next.filter(|&open| self.lexed.str(open) == "(");
                match open {
                    Some(open) => self.lexed.closing(open, self.body.end)? + 1,
                    None => self.at + 1,
                }
            }
            false => return None,
        };
        let next = self.lexed.next_code(after, self.body.end);
        next.is_none_or(|next| self.lexed.str(next) != ";").then_some(after)
    }

    fn declaration(&self) -> Option<(usize, BodyPartKind, Vec<String>)> {
        if let Some(end) = self.bare_marker() {
            return Some((end, BodyPartKind::Marker, self.markers(self.at..end)));
        }
        let end = self.declaration_end()?;
        let declarator =
            declarator::read(self.lexed, self.at..end, self.language == SourceLanguage::Cpp, self.members);
        if matches!(declarator.shape, Shape::Macro) && is_marker_macro(self.lexed.str(self.at)) {
            return Some((end, BodyPartKind::Marker, self.markers(self.at..end)));
        }
        let kind = match declarator.shape {
            Shape::Data => BodyPartKind::Data,
            Shape::Bits => BodyPartKind::Bits,
            Shape::Anonymous => BodyPartKind::Anonymous,
            Shape::Macro => BodyPartKind::Macro,
            Shape::NestedType => BodyPartKind::NestedType,
            Shape::Function | Shape::Static => BodyPartKind::Fixed,
        };
        Some((end, kind, declarator.names.into_iter().map(|name| self.member_named(name)).collect()))
    }

    /// The members without a size that a marker macro declares, where debug info has them.
    fn markers(&self, tokens: Range<usize>) -> Vec<String> {
        let macro_name = self.lexed.str(tokens.start);
        let words = tokens.clone().skip(1).filter(|&index| self.lexed.is_word(index));
        let spelled = words.flat_map(|index| {
            let word = self.lexed.str(index);
            [word.to_string(), format!("{macro_name}__{word}")]
        });
        spelled.filter(|name| self.members.contains(&name.as_str())).collect()
    }

    /// Debug info's name of a member: the kernel's `rcu_head` is a macro for another name, also where a member has it.
    fn member_named(&self, name: String) -> String {
        const NAMED: &str = "callback_head";
        let is_other = name == "rcu_head" && !self.members.contains(&&*name) && self.members.contains(&NAMED);
        if is_other { NAMED.into() } else { name }
    }

    /// The token after the declaration that starts at `self.at`: after its `;`, or after the body of a
    /// function.
    fn declaration_end(&self) -> Option<usize> {
        let (mut at, mut seen_parameters) = (self.at, false);
        while let Some(index) = self.lexed.next_code(at, self.body.end) {
            match self.lexed.str(index) {
                ";" => return Some(index + 1),
                "(" => {
                    seen_parameters |= self.is_parameter_list(index);
                    at = self.lexed.closing(index, self.body.end)? + 1;
                }
                "[" => at = self.lexed.closing(index, self.body.end)? + 1,
                "{" => {
                    let close = self.lexed.closing(index, self.body.end)?;
                    at = close + 1;
                    if seen_parameters && self.is_function_body(close) {
                        return Some(at);
                    }
                }
                ")" | "]" | "}" => return None,
                _ => at = index + 1,
            }
        }
        None
    }

    fn is_parameter_list(&self, open: usize) -> bool {
        let before = self.lexed.previous_code(open).map_or("", |index| self.lexed.str(index));
        self.language == SourceLanguage::Cpp && !attributes::is(before, Meaning::Arguments)
    }

    /// In a constructor's initialiser list `a{1}` is followed by `,` or `{`; a body is not.
    fn is_function_body(&self, close: usize) -> bool {
        let next = self.lexed.next_code(close + 1, self.body.end).map_or("", |index| self.lexed.str(index));
        !matches!(next, "," | "{")
    }
}

/// True when every bracket in `tokens` closes inside.
fn brackets_balance(lexed: &Lexed<'_>, tokens: Range<usize>) -> bool {
    let mut at = tokens.start;
    while let Some(index) = lexed.next_code(at, tokens.end) {
        at = match lexed.str(index) {
            "(" | "[" | "{" => match lexed.closing(index, tokens.end) {
                Some(close) => close + 1,
                None => return false,
            },
            ")" | "]" | "}" => return false,
            _ => index + 1,
        };
    }
    true
}

/// The token after the `#endif` that belongs to the `#if` at `start`.
fn conditional_end(lexed: &Lexed<'_>, start: usize, end: usize) -> Option<usize> {
    let mut depth = 0usize;
    for index in start..end {
        if lexed.tokens[index].kind != Kind::Directive {
            continue;
        }
        match directive_word(lexed.str(index)) {
            word if word.starts_with("if") => depth += 1,
            "endif" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(index + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn is_marker_macro(word: &str) -> bool {
    word.starts_with(crate::text::marker_names::MARKER)
        || matches!(
            word,
            "CACHELINE_PADDING"
                | "ZONE_PADDING"
                | "randomized_struct_fields_start"
                | "randomized_struct_fields_end"
        )
}

/// Widens each piece's span over the comments that belong to it.
fn attach_comments(lexed: &Lexed<'_>, body: &Range<usize>, pieces: &mut [BodyPart]) {
    let are_below = comments_below::are_usual(lexed, body);
    let mut floor = body.start;
    for index in 0..pieces.len() {
        let ceiling = pieces.get(index + 1).map_or(body.end, |next| next.tokens.start);
        let piece = &mut pieces[index];
        let mut tokens = with_comments(lexed, &piece.tokens, floor..ceiling);
        while tokens.end < ceiling && comments_below::belongs_above(lexed, tokens.end, are_below) {
            tokens.end += 1;
        }
        piece.span = lexed.tokens[tokens.start].start()..lexed.tokens[tokens.end - 1].end();
        floor = tokens.end;
    }
}

/// The tokens of a declaration with the comments that belong to it, within `room`.
pub(crate) fn with_comments(lexed: &Lexed<'_>, tokens: &Range<usize>, room: Range<usize>) -> Range<usize> {
    let mut start = tokens.start;
    while start > room.start && leads(lexed, start - 1, start) {
        start -= 1;
    }
    let mut end = tokens.end;
    while end < room.end && (trails(lexed, tokens.end, end) || lies_below(lexed, tokens, end)) {
        end += 1;
    }
    start..end
}

/// True when comment token `comment` stands directly above (or before) token `next`.
fn leads(lexed: &Lexed<'_>, comment: usize, next: usize) -> bool {
    let token = &lexed.tokens[comment];
    token.is_comment()
        && !points_back(lexed.str(comment))
        && newlines(lexed, token, &lexed.tokens[next]) <= 1
        && starts_line(lexed.text, token.start())
}

/// True when comment token `comment` belongs to the declaration that ends before token `end`.
fn trails(lexed: &Lexed<'_>, end: usize, comment: usize) -> bool {
    let token = &lexed.tokens[comment];
    if !token.is_comment() || comment == 0 {
        return false;
    }
    let newlines_before = newlines(lexed, &lexed.tokens[comment - 1], token);
    if newlines_before == 0 || (newlines_before == 1 && points_back(lexed.str(comment))) {
        return true;
    }
    // The rest of a comment that begins next to a member, in comments of their own below it.
    let continues_comment = comment > end
        && token.kind == lexed.tokens[comment - 1].kind
        && column(lexed.text, token.start()) == column(lexed.text, lexed.tokens[comment - 1].start())
        && !starts_line(lexed.text, lexed.tokens[end].start());
    newlines_before == 1 && continues_comment
}

/// True for a comment below the declaration that is indented deeper than the declaration, and deeper than the text
/// behind it.
fn lies_below(lexed: &Lexed<'_>, declaration: &Range<usize>, comment: usize) -> bool {
    let token = &lexed.tokens[comment];
    let is_below = token.is_comment()
        && starts_line(lexed.text, token.start())
        && newlines(lexed, &lexed.tokens[comment - 1], token) == 1;
    let depth = column(lexed.text, token.start());
    let next = lexed.tokens[comment..].iter().find(|token| !token.is_comment());
    let is_deeper = |other: &Token| indent(lexed.text, other.start()) < depth;
    is_below && is_deeper(&lexed.tokens[declaration.start]) && next.is_none_or(is_deeper)
}

/// Doxygen comments that describe the member before them.
fn points_back(comment: &str) -> bool {
    ["/**<", "/*!<", "///<", "//!<"].iter().any(|start| comment.starts_with(start))
}
