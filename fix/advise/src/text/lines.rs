//! Lines and columns of bytes in a text.

use crate::text::lex::{Lexed, Token};

pub(crate) fn newlines(lexed: &Lexed<'_>, from: &Token, to: &Token) -> usize {
    lexed.text.as_bytes()[from.end()..to.start()].iter().filter(|&&byte| byte == b'\n').count()
}

/// True when only blanks precede `offset` on its line.
pub(crate) fn starts_line(text: &str, offset: usize) -> bool {
    let line = &text.as_bytes()[line_start(text, offset)..offset];
    line.iter().all(u8::is_ascii_whitespace)
}

/// Byte offset of the start of the line that holds `offset`.
pub(crate) fn line_start(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1)
}

/// The column of a byte as an editor shows it, with tab stops every eight.
pub(crate) fn column(text: &str, offset: usize) -> usize {
    let line = &text.as_bytes()[line_start(text, offset)..offset];
    line.iter().fold(0, |at, &byte| if byte == b'\t' { (at / 8 + 1) * 8 } else { at + 1 })
}

/// The column of the first byte on a line that is no blank.
pub(crate) fn indent(text: &str, offset: usize) -> usize {
    let start = line_start(text, offset);
    let blanks = text.as_bytes()[start..offset].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    column(text, start + blanks)
}
