//! The body of one declaration as units of text that move, and the constraints that keep them in place.

use crate::constraints::constraint::{Binding, Constraint};
use crate::layout::placement;
use crate::text::attributes::{self, Meaning};
use crate::text::body_parts::{self, BodyPart, BodyPartKind};
use crate::text::language::SourceLanguage;
use crate::text::lex::{Kind, Token};
use crate::text::located_declaration::LocatedDeclaration;
use crate::text::{lines, one_declaration, pack_pragma};
use std::ops::Range;

/// A unit of text that moves as one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TextUnit {
    /// Indices into [`Body::pieces`].
    pub(crate) pieces: Range<usize>,
    /// Names it is known to declare.
    pub(crate) names: Vec<String>,
    /// Units move within their segment only.
    pub(crate) segment: u32,
    /// The kind of the unit, by its first piece.
    pub(crate) kind: BodyPartKind,
    /// True when a comment heads its members: others stay apart by a blank line.
    pub(crate) is_headed: bool,
    /// The number of comments at its start that head the section that it is the first of: they stay there when it
    /// moves.
    pub(crate) comments_left: usize,
    /// It shares a line with such a comment, and so stays with it.
    pub(crate) is_heading_line: bool,
    /// Others may pass it, but it is not itself among the members that move.
    pub(crate) is_still: bool,
    /// It is the last of the members below a comment: others that come behind it stand apart.
    pub(crate) ends_group: bool,
}

/// The way text moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Whole lines are cut and inserted.
    Lines,
    /// Declarations share lines: their texts change places.
    Slots,
}

/// A declaration's body.
#[derive(Clone, Debug)]
pub(crate) struct Body<'a> {
    pub(crate) found: LocatedDeclaration<'a>,
    pub(crate) pieces: Vec<BodyPart>,
    pub(crate) units: Vec<TextUnit>,
    pub(crate) mode: Mode,
    /// Constraints that come from the text, on the units they concern.
    pub(crate) bindings: Vec<Binding>,
}

impl<'a> Body<'a> {
    /// Reads the body of a declaration. `members` are the names debug info knows, if any.
    pub(crate) fn read(found: LocatedDeclaration<'a>, members: &[&str]) -> Result<Self, Binding> {
        let (path, line) = (found.path.clone(), found.line());
        let unclear =
            |why: &str| Binding::new(Constraint::UnclearSource).at(&path, line).because(why.to_string());
        let tokens = found.declaration.open + 1..found.declaration.close;
        let pieces = body_parts::cut(&found.lexed, tokens, found.language, members)
            .ok_or_else(|| unclear("brackets or #if do not match inside the body"))?;
        if let Some(word) = forbidding_word(&found) {
            return Err(word);
        }
        let mut body = Body { found, pieces, units: Vec::new(), mode: Mode::Lines, bindings: Vec::new() };
        body.mode = body.choose_mode()?;
        body.make_units();
        match body.units.iter().find(|unit| body.shares_lines(unit)) {
            Some(_) => Err(unclear("a member shares its line with something that does not move")),
            None => Ok(body),
        }
    }

    /// Lets the declarators of the only declaration move, where their texts can change places. Their types have to be
    /// one: a macro before the first may say more of it than of the others.
    pub(crate) fn part_declarators(&mut self) {
        let Some(pieces) = one_declaration::split(&self.found.lexed, &self.pieces) else { return };
        self.pieces = pieces;
        self.mode = Mode::Slots;
        self.units.clear();
        self.bindings.clear();
        self.make_units();
    }

    /// True when the bytes to move hold more than the unit and its comments.
    fn shares_lines(&self, unit: &TextUnit) -> bool {
        let span = self.span(unit);
        let pieces = &self.pieces[unit.pieces.clone()];
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return false };
        let blank = |range: Range<usize>| self.text()[range].trim().is_empty();
        !blank(span.start..first.span.start) || !blank(last.span.end..span.end)
    }

    fn text(&self) -> &'a str {
        self.found.lexed.text
    }

    /// The bytes of a unit, with the comments that belong to it; whole lines when lines move.
    pub(crate) fn span(&self, unit: &TextUnit) -> Range<usize> {
        let pieces = &self.pieces[unit.pieces.clone()];
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return 0..0 };
        let span = self.start(unit, first)..last.span.end;
        match self.mode {
            Mode::Slots => span,
            Mode::Lines => lines::line_start(self.text(), span.start)..line_end(self.text(), span.end),
        }
    }

    /// The start of the text of a unit with this first piece.
    fn start(&self, unit: &TextUnit, first: &BodyPart) -> usize {
        let tokens = &self.found.lexed.tokens[..first.tokens.end];
        let own = tokens.partition_point(|token| token.start() < first.span.start);
        tokens.get(own + unit.comments_left).map_or(first.span.start, Token::start)
    }

    /// The comments before the declaration of a unit, by token.
    pub(crate) fn leading_comments(&self, unit: &TextUnit) -> Range<usize> {
        let first = &self.pieces[unit.pieces.start];
        let start = self.start(unit, first);
        let lexed = &self.found.lexed;
        let comments = (0..first.tokens.start)
            .rev()
            .take_while(|&index| lexed.tokens[index].is_comment() && lexed.tokens[index].start() >= start);
        comments.last().unwrap_or(first.tokens.start)..first.tokens.start
    }

    /// The comments that belong to a unit.
    pub(crate) fn comments_of(&self, unit: &TextUnit) -> impl Iterator<Item = &'a str> {
        let span = self.span(unit);
        let tokens = self.found.lexed.tokens.iter();
        let is_own = move |token: &&Token| {
            token.is_comment() && span.start <= token.start() && token.end() <= span.end
        };
        tokens.filter(is_own).filter_map(|token| self.text().get(token.range()))
    }

    /// The words of a unit's declaration.
    pub(crate) fn code_words(&self, unit: &TextUnit) -> impl Iterator<Item = &'a str> {
        let tokens = self.pieces[unit.pieces.clone()].iter().flat_map(|piece| piece.tokens.clone());
        let lexed = &self.found.lexed;
        tokens
            .filter(|&index| lexed.is_word(index))
            .filter_map(|index| lexed.text.get(lexed.tokens[index].range()))
    }

    fn has_whole_lines(&self, piece: &BodyPart) -> bool {
        let after = &self.text()[piece.span.end..];
        let rest = after.split('\n').next().unwrap_or("");
        lines::starts_line(self.text(), piece.span.start) && rest.trim().is_empty() && after.contains('\n')
    }

    fn choose_mode(&self) -> Result<Mode, Binding> {
        let data: Vec<&BodyPart> = self.pieces.iter().filter(|piece| piece.is_data()).collect();
        if data.iter().all(|piece| self.has_whole_lines(piece)) {
            return Ok(Mode::Lines);
        }
        let (Some(first), Some(last)) = (data.first(), data.last()) else { return Ok(Mode::Lines) };
        let ends_line =
            self.text()[last.span.end..].split('\n').next().is_some_and(|rest| rest.trim().is_empty());
        if lines::starts_line(self.text(), first.span.start) && ends_line {
            return Ok(Mode::Lines);
        }
        let declaration = &self.found.declaration;
        let tokens = &self.found.lexed.tokens[declaration.open..declaration.close];
        if tokens.iter().all(|token| !matches!(token.kind, Kind::LineComment | Kind::Directive)) {
            return Ok(Mode::Slots);
        }
        Err(Binding::new(Constraint::UnclearSource)
            .at(&self.found.path, self.found.line())
            .because("members share lines with braces, and line comments or directives stand between them"))
    }

    /// One unit per data piece; runs of bit-fields, and pieces on one line, are joined.
    fn make_units(&mut self) {
        let mut segment = 0;
        let mut access = "";
        for index in 0..self.pieces.len() {
            let piece = &self.pieces[index];
            if !piece.is_data() {
                segment += u32::from(self.separates(index, &mut access));
                continue;
            }
            let (kind, names) = (piece.kind, piece.names.clone());
            if let Some(constraint) = self.joins_previous(index, segment) {
                self.add_to_last(index, names, constraint);
                continue;
            }
            let unit = TextUnit {
                pieces: index..index + 1,
                names: names.clone(),
                segment,
                kind,
                is_headed: false,
                comments_left: 0,
                is_heading_line: false,
                is_still: false,
                ends_group: false,
            };
            self.bind_alone(&unit);
            self.units.push(unit);
        }
    }

    /// The constraint that a unit of this kind is under.
    fn bind_alone(&mut self, unit: &TextUnit) {
        let constraint = match unit.kind {
            BodyPartKind::Conditional => Constraint::Conditional,
            BodyPartKind::Anonymous => Constraint::Anonymous,
            BodyPartKind::Macro => Constraint::MacroMembers,
            BodyPartKind::Data if unit.names.len() > 1 => Constraint::OneDeclaration,
            BodyPartKind::Bits if unit.names.len() > 1 => Constraint::BitFieldRun,
            _ => return,
        };
        let line = self.found.lexed.line_at(self.pieces[unit.pieces.start].span.start);
        let binding = Binding::new(constraint).on(unit.names.clone()).at(&self.found.path, line);
        self.bindings.push(binding);
    }

    fn joins_previous(&self, index: usize, segment: u32) -> Option<Constraint> {
        let previous = self.units.last()?;
        let before = self.pieces.get(previous.pieces.end.checked_sub(1)?)?;
        let piece = &self.pieces[index];
        if previous.segment != segment || previous.pieces.end != index {
            return None;
        }
        if before.kind == BodyPartKind::Bits && piece.kind == BodyPartKind::Bits {
            return Some(Constraint::BitFieldRun);
        }
        let between = &self.text()[before.span.end..piece.span.start];
        (self.mode == Mode::Lines && !between.contains('\n')).then_some(Constraint::OneDeclaration)
    }

    fn add_to_last(&mut self, index: usize, names: Vec<String>, constraint: Constraint) {
        let line = self.found.lexed.line_at(self.pieces[index].span.start);
        let path = self.found.path.clone();
        let Some(unit) = self.units.last_mut() else { return };
        unit.pieces.end = index + 1;
        unit.names.extend(names);
        let names = unit.names.clone();
        let same = |binding: &Binding| {
            binding.constraint == constraint && binding.names.iter().all(|name| names.contains(name))
        };
        self.bindings.retain(|binding| !same(binding));
        self.bindings.push(Binding::new(constraint).on(names).at(&path, line));
    }

    /// True when members may not cross a piece that declares none.
    fn separates(&mut self, index: usize, access: &mut &'a str) -> bool {
        let piece = &self.pieces[index];
        let lexed = &self.found.lexed;
        let (constraint, separates) = match piece.kind {
            BodyPartKind::Access => {
                let word = lexed.text.get(lexed.tokens[piece.tokens.start].range()).unwrap_or("");
                (Constraint::AccessSection, std::mem::replace(access, word) != word && index > 0)
            }
            BodyPartKind::NestedType => (Constraint::NestedType, self.is_used_later(index)),
            BodyPartKind::Marker => (Constraint::GroupMarker, true),
            _ => {
                let directive = lexed.tokens[piece.tokens.start].kind == Kind::Directive;
                (Constraint::UnclearSource, directive)
            }
        };
        if separates && !self.units.is_empty() && constraint != Constraint::UnclearSource {
            let line = lexed.line_at(piece.span.start);
            let binding = Binding::new(constraint).at(&self.found.path, line);
            self.bindings.push(binding);
        }
        separates
    }

    /// True when a word of a nested type's declaration is used by a member after it.
    fn is_used_later(&self, index: usize) -> bool {
        let lexed = &self.found.lexed;
        let words: Vec<&str> = self.pieces[index]
            .tokens
            .clone()
            .filter(|&token| lexed.is_word(token))
            .map(|t| lexed.str(t))
            .collect();
        self.pieces[index + 1..].iter().filter(|piece| piece.is_data()).any(|piece| {
            piece.tokens.clone().any(|token| {
                let word = lexed.str(token);
                lexed.is_word(token) && words.contains(&word) && !is_common_word(word)
            })
        })
    }

    /// True when a constructor of the class is declared in the body: `class API value { value(int); }`, where the
    /// grammar does not know which word is the class, too.
    pub(crate) fn declares_constructor(&self, class: &str) -> bool {
        let lexed = &self.found.lexed;
        let is_word_before = |word: &str| matches!(word, "explicit" | "constexpr" | "inline");
        let methods = self.pieces.iter().filter(|piece| piece.kind == BodyPartKind::Fixed);
        methods.into_iter().any(|piece| {
            let code =
                piece.tokens.clone().filter(|&index| lexed.is_code(index)).map(|index| lexed.str(index));
            let mut words = code.skip_while(|word| is_word_before(word));
            words.next() == Some(class) && words.next() == Some("(")
        })
    }

    /// True when the text puts a unit on a cache line of its own, which BTF does not contain:
    /// `____cacheline_aligned_in_smp`, `__aligned(SMP_CACHE_BYTES)`, `aligned(64)`.
    pub(crate) fn is_line_aligned(&self, unit: &TextUnit) -> bool {
        let lexed = &self.found.lexed;
        let (Some(first), Some(last)) = (
            self.pieces.get(unit.pieces.start),
            unit.pieces.end.checked_sub(1).and_then(|at| self.pieces.get(at)),
        ) else {
            return false;
        };
        let tokens = first.tokens.start..last.tokens.end;
        let words = tokens.clone().filter(|&index| lexed.is_word(index));
        words.into_iter().any(|index| match lexed.str(index).trim_matches('_') {
            word if attributes::begins_line(word) => true,
            "aligned" => {
                let close = lexed.closing(index + 1, tokens.end).unwrap_or(index);
                (index + 1..close).any(|inside| is_line_size(lexed.str(inside)))
            }
            _ => false,
        })
    }

    /// Joins units into one that moves under its heading.
    pub(crate) fn join_headed(&mut self, range: Range<usize>) {
        let at = range.start;
        self.join(range, BodyPartKind::Data);
        if let Some(unit) = self.units.get_mut(at) {
            unit.is_headed = true;
        }
    }

    /// Joins units of data into one.
    pub(crate) fn join_neighbours(&mut self, range: Range<usize>) {
        self.join(range, BodyPartKind::Data);
    }

    /// The line on which a unit begins.
    pub(crate) fn line_of(&self, unit: usize) -> u32 {
        self.found.lexed.line_at(self.pieces[self.units[unit].pieces.start].span.start)
    }

    /// Joins units `from..to` into one, because debug info cannot distinguish their members.
    pub(crate) fn join_units(&mut self, range: Range<usize>) {
        self.join(range, BodyPartKind::Macro);
    }

    fn join(&mut self, range: Range<usize>, kind: BodyPartKind) {
        if range.len() < 2 {
            return;
        }
        let joined: Vec<TextUnit> = self.units.drain(range.clone()).collect();
        if let (Some(first), Some(last)) = (joined.first(), joined.last()) {
            let unit = TextUnit {
                pieces: first.pieces.start..last.pieces.end,
                names: joined.iter().flat_map(|unit| unit.names.clone()).collect(),
                segment: first.segment,
                kind,
                is_headed: false,
                comments_left: first.comments_left,
                is_heading_line: first.is_heading_line,
                is_still: joined.iter().any(|unit| unit.is_still),
                ends_group: false,
            };
            self.units.insert(range.start, unit);
        }
    }
}

/// `64`, or a constant's name that mentions caches.
fn is_line_size(word: &str) -> bool {
    word.parse::<u64>().is_ok_and(|bytes| bytes >= placement::APART_BYTES) || word.contains("CACHE")
}

/// Byte offset after the newline that ends the line holding `offset`.
fn line_end(text: &str, offset: usize) -> usize {
    text.as_bytes()[offset..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |n| offset + n + 1)
}

fn is_common_word(word: &str) -> bool {
    matches!(
        word,
        "int"
            | "char"
            | "short"
            | "long"
            | "unsigned"
            | "signed"
            | "float"
            | "double"
            | "bool"
            | "void"
            | "const"
            | "struct"
            | "union"
            | "enum"
            | "class"
            | "typedef"
            | "using"
            | "volatile"
            | "public"
            | "private"
            | "protected"
    )
}

/// Words around the declaration that forbid any reordering.
fn forbidding_word(found: &LocatedDeclaration<'_>) -> Option<Binding> {
    let declaration = &found.declaration;
    let head = declaration.keyword..declaration.open;
    let words = head.chain(declaration.tail.clone()).map(|index| (index, found.lexed.str(index)));
    for (index, word) in words {
        let line = || found.lexed.line_at(found.lexed.tokens[index].start());
        if attributes::is(word, Meaning::Packs) {
            return Some(Binding::new(Constraint::Packed).at(&found.path, line()));
        }
        if attributes::is(word, Meaning::Foreign) {
            return Some(Binding::new(Constraint::CrossesAbi).at(&found.path, line()).because(word));
        }
    }
    user_space_header(found).or_else(|| pack_pragma::in_force(found))
}

/// Headers that Linux shows to user space never change.
fn user_space_header(found: &LocatedDeclaration<'_>) -> Option<Binding> {
    let is_shown = found.path.split('/').any(|folder| folder == "uapi");
    let binding = Binding::new(Constraint::CrossesAbi).at(&found.path, found.line());
    is_shown.then(|| binding.because("a header for user space"))
}

/// True when the language initialises members in declaration order.
pub(crate) fn has_construction_order(language: SourceLanguage) -> bool {
    language == SourceLanguage::Cpp
}
