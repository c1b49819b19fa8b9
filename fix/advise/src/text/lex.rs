//! C and C++ text cut into tokens, comments and preprocessor lines, with their byte ranges.
//!
//! The syntax tree gives up on unknown macros (`spinlock_t lock ____aligned;`); tokens do not. Edits that move text are
//! therefore decided on tokens, and the tree answers questions of scope.

use std::ops::Range;
use std::sync::Arc;

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Identifier or keyword.
    Word,
    /// Number.
    Number,
    /// String or character literal.
    Text,
    /// `/* … */`.
    BlockComment,
    /// `// …`, without the newline.
    LineComment,
    /// A preprocessor line with its continuations, without the last newline.
    Directive,
    /// One character of punctuation; `::` is one token.
    Punct,
}

/// A token and where it is, in twelve bytes: a kernel's sources have tens of millions. Texts are below 4 GiB.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    start: u32,
    end: u32,
}

impl Token {
    fn new(kind: Kind, range: Range<usize>) -> Self {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Token { kind, start: place(range.start), end: place(range.end) }
    }

    /// The first byte.
    pub(crate) fn start(&self) -> usize {
        self.start as usize
    }

    /// The byte after the last.
    pub(crate) fn end(&self) -> usize {
        self.end as usize
    }

    /// Its bytes.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start()..self.end()
    }

    pub(crate) fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::BlockComment | Kind::LineComment)
    }
}

/// A text and its tokens, comments and directives included.
#[derive(Clone, Debug)]
pub(crate) struct Lexed<'a> {
    pub(crate) text: &'a str,
    pub(crate) tokens: Arc<[Token]>,
}

impl<'a> Lexed<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut scanner = Scanner { bytes: text.as_bytes(), at: 0, line_is_blank: true };
        let mut tokens = Vec::new();
        while let Some(token) = scanner.next_token() {
            tokens.push(token);
        }
        Lexed { text, tokens: tokens.into() }
    }

    /// The text of token `index`; empty past the end.
    pub(crate) fn str(&self, index: usize) -> &'a str {
        self.tokens.get(index).and_then(|token| self.text.get(token.range())).unwrap_or("")
    }

    /// The line of a byte offset, from 1.
    pub(crate) fn line_at(&self, offset: usize) -> u32 {
        line_at(self.text, offset)
    }

    pub(crate) fn is_word(&self, index: usize) -> bool {
        self.tokens.get(index).is_some_and(|token| token.kind == Kind::Word)
    }

    /// True for tokens the compiler sees in the middle of a line: no comment, no directive.
    pub(crate) fn is_code(&self, index: usize) -> bool {
        self.tokens.get(index).is_some_and(|token| !token.is_comment() && token.kind != Kind::Directive)
    }

    /// The first code token at or after `index`, before `end`.
    pub(crate) fn next_code(&self, index: usize, end: usize) -> Option<usize> {
        (index..end.min(self.tokens.len())).find(|&index| self.is_code(index))
    }

    /// The last code token before `index`.
    pub(crate) fn previous_code(&self, index: usize) -> Option<usize> {
        (0..index.min(self.tokens.len())).rev().find(|&index| self.is_code(index))
    }

    /// The first byte of a token that is punctuation.
    pub(crate) fn punctuation(&self, index: usize) -> Option<u8> {
        let token = self.tokens.get(index).filter(|token| token.kind == Kind::Punct)?;
        self.text.as_bytes().get(token.start()).copied()
    }

    /// The token that closes the bracket at `open`, before `end`. `None` when brackets do not match.
    pub(crate) fn closing(&self, open: usize, end: usize) -> Option<usize> {
        let mut expected: Vec<u8> = Vec::new();
        for index in open..end.min(self.tokens.len()) {
            match self.punctuation(index) {
                Some(b'(') => expected.push(b')'),
                Some(b'[') => expected.push(b']'),
                Some(b'{') => expected.push(b'}'),
                Some(close @ (b')' | b']' | b'}')) => {
                    if expected.pop() != Some(close) {
                        return None;
                    }
                    if expected.is_empty() {
                        return Some(index);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// The line of a byte offset, from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> u32 {
    let before = text.as_bytes().get(..offset.min(text.len())).unwrap_or(&[]);
    u32::try_from(before.iter().filter(|&&byte| byte == b'\n').count()).unwrap_or(u32::MAX).saturating_add(1)
}

/// True for bytes that identifiers consist of; bytes of non-ASCII letters included.
pub(crate) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    line_is_blank: bool,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn next_token(&mut self) -> Option<Token> {
        while self.at < self.bytes.len() && self.peek(0).is_ascii_whitespace() {
            self.line_is_blank |= self.peek(0) == b'\n';
            self.at += 1;
        }
        let start = self.at;
        if start >= self.bytes.len() {
            return None;
        }
        let kind = self.scan();
        if !matches!(kind, Kind::BlockComment) {
            self.line_is_blank = false;
        }
        Some(Token::new(kind, start..self.at))
    }

    fn scan(&mut self) -> Kind {
        match (self.peek(0), self.peek(1)) {
            (b'/', b'*') => {
                self.block_comment();
                Kind::BlockComment
            }
            (b'/', b'/') => {
                self.skip_to_line_end(false);
                Kind::LineComment
            }
            (b'#', _) if self.line_is_blank => {
                self.skip_to_line_end(true);
                Kind::Directive
            }
            (quote @ (b'"' | b'\''), _) => {
                self.quoted(quote);
                Kind::Text
            }
            (byte, next) if byte.is_ascii_digit() || (byte == b'.' && next.is_ascii_digit()) => {
                self.number();
                Kind::Number
            }
            (byte, _) if is_word_byte(byte) => self.word(),
            (b':', b':') => {
                self.at += 2;
                Kind::Punct
            }
            _ => {
                self.at += 1;
                Kind::Punct
            }
        }
    }

    fn block_comment(&mut self) {
        self.at += 2;
        while self.at < self.bytes.len() && (self.peek(0), self.peek(1)) != (b'*', b'/') {
            self.at += 1;
        }
        self.at = (self.at + 2).min(self.bytes.len());
    }

    /// To the end of the line, across backslash-newline; in a directive also across block comments.
    fn skip_to_line_end(&mut self, is_directive: bool) {
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            match (self.peek(0), self.peek(1), self.peek(2)) {
                (b'\\', b'\r', b'\n') => self.at += 3,
                (b'\\', b'\n', _) => self.at += 2,
                (b'/', b'*', _) if is_directive => self.block_comment(),
                (b'/', b'/', _) if is_directive => self.skip_to_line_end(false),
                _ => self.at += 1,
            }
        }
        if self.at > 0 && self.at <= self.bytes.len() && self.bytes[self.at - 1] == b'\r' {
            self.at -= 1;
        }
        self.at = self.at.min(self.bytes.len());
    }

    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        while self.at < self.bytes.len() && self.peek(0) != quote && self.peek(0) != b'\n' {
            self.at += if self.peek(0) == b'\\' { 2 } else { 1 };
        }
        let closes = self.peek(0) == quote;
        self.at = (self.at + usize::from(closes)).min(self.bytes.len());
    }

    fn number(&mut self) {
        while is_word_byte(self.peek(0)) || self.peek(0) == b'.' || self.is_inner_sign_or_quote() {
            self.at += 1;
        }
    }

    /// An exponent's sign, or a C++ digit separator.
    fn is_inner_sign_or_quote(&self) -> bool {
        let before = self.bytes.get(self.at.wrapping_sub(1)).copied().unwrap_or(0);
        match self.peek(0) {
            b'+' | b'-' => matches!(before, b'e' | b'E' | b'p' | b'P'),
            b'\'' => before.is_ascii_alphanumeric() && self.peek(1).is_ascii_alphanumeric(),
            _ => false,
        }
    }

    fn word(&mut self) -> Kind {
        let start = self.at;
        while is_word_byte(self.peek(0)) {
            self.at += 1;
        }
        let word = &self.bytes[start..self.at];
        if word.len() > 3 || !matches!(self.peek(0), b'"' | b'\'') {
            return Kind::Word;
        }
        match word {
            b"R" | b"LR" | b"uR" | b"UR" | b"u8R" if self.peek(0) == b'"' => {
                self.raw_string();
                Kind::Text
            }
            b"L" | b"u" | b"U" | b"u8" => {
                self.quoted(self.peek(0));
                Kind::Text
            }
            _ => Kind::Word,
        }
    }

    fn raw_string(&mut self) {
        let open = self.at + 1;
        let delimiter_end =
            self.bytes[open..].iter().position(|&byte| byte == b'(').map_or(self.bytes.len(), |n| open + n);
        let mut close = vec![b')'];
        close.extend_from_slice(&self.bytes[open..delimiter_end]);
        close.push(b'"');
        let found = self.bytes[delimiter_end..].windows(close.len()).position(|window| window == close);
        self.at = found.map_or(self.bytes.len(), |n| delimiter_end + n + close.len());
    }
}

/// `if`, `ifdef`, `endif`, `define`, … of a directive's text.
pub(crate) fn directive_word(directive: &str) -> &str {
    let rest = directive.trim_start_matches('#').trim_start();
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    &rest[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        let lexed = Lexed::new(text);
        lexed.tokens.iter().map(|token| (token.kind, &text[token.range()])).collect()
    }

    #[test]
    fn comments_directives_and_literals_are_single_tokens() {
        assert_eq!(
            kinds("#if A /* x\n y */ B\nint a; // ; not here\nchar b = ';';\n"),
            [
                (Kind::Directive, "#if A /* x\n y */ B"),
                (Kind::Word, "int"),
                (Kind::Word, "a"),
                (Kind::Punct, ";"),
                (Kind::LineComment, "// ; not here"),
                (Kind::Word, "char"),
                (Kind::Word, "b"),
                (Kind::Punct, "="),
                (Kind::Text, "';'"),
                (Kind::Punct, ";"),
            ]
        );
    }

    #[test]
    fn a_hash_inside_a_line_is_no_directive_and_continuations_belong_to_theirs() {
        assert_eq!(kinds("#define X \\\n 1\r\na # b").len(), 4);
        assert_eq!(kinds("#define X \\\n 1\r\na # b")[0].1, "#define X \\\n 1");
    }

    #[test]
    fn raw_strings_and_digit_separators_do_not_end_early() {
        assert_eq!(kinds("R\"x(a)\" b)x\" 1'000'000 L'\\''").len(), 3);
    }

    #[test]
    fn brackets_that_do_not_match_have_no_closing() {
        let lexed = Lexed::new("{ ( } )");
        assert_eq!(lexed.closing(0, lexed.tokens.len()), None);
        let lexed = Lexed::new("{ ( [ ] ) }");
        assert_eq!(lexed.closing(0, lexed.tokens.len()), Some(5));
    }

    proptest::proptest! {
        #[test]
        fn tokens_are_in_order_and_leave_out_only_white_space(text in "[a-z0-9 #/*\"'\\\\\n;{}()é]{0,80}") {
            let lexed = Lexed::new(&text);
            let mut at = 0;
            for token in lexed.tokens.iter() {
                proptest::prop_assert!(text[at..token.start()].trim().is_empty());
                proptest::prop_assert!(token.end() > token.start());
                at = token.end();
            }
            proptest::prop_assert!(text[at..].trim().is_empty());
        }
    }
}
