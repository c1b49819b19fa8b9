//! Places in a text: bytes here, lines and UTF-16 code units in the protocol.

use lsp_types::{Position, Range};

/// The beginnings of a text's lines.
pub(crate) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        // A line ends with a line feed, a carriage return, or both.
        let ends = bytes.iter().enumerate().filter_map(|(at, byte)| match byte {
            b'\n' => Some(at + 1),
            b'\r' if bytes.get(at + 1) != Some(&b'\n') => Some(at + 1),
            _ => None,
        });
        Lines { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// The position of a byte; of a byte behind the text, its end.
    pub(crate) fn position(&self, byte: usize) -> Position {
        let byte = byte.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= byte) - 1;
        let before = self.text.get(self.starts[line]..byte).unwrap_or_default();
        let units: usize = before.chars().map(char::len_utf16).sum();
        Position { line: as_u32(line), character: as_u32(units) }
    }

    pub(crate) fn range(&self, bytes: &std::ops::Range<usize>) -> Range {
        Range { start: self.position(bytes.start), end: self.position(bytes.end) }
    }

    /// The byte at a position. A position behind the end of its line is the line's end, as the protocol says.
    pub(crate) fn byte(&self, position: Position) -> usize {
        let line = position.line as usize;
        let Some(&start) = self.starts.get(line) else { return self.text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let text = self.text[start..end].trim_end_matches(['\r', '\n']);
        let mut units = 0;
        for (at, character) in text.char_indices() {
            if units >= position.character as usize {
                return start + at;
            }
            units += character.len_utf16();
        }
        start + text.len()
    }
}

fn as_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_count_as_utf_16_has_them() {
        let text = "ab\r\nä𝄞x\ry\n";
        let lines = Lines::of(text);
        let x = text.find('x').expect("an x");
        assert_eq!(lines.position(x), Position { line: 1, character: 3 });
        assert_eq!(lines.byte(Position { line: 1, character: 3 }), x);
        assert_eq!(lines.position(text.len() - 2), Position { line: 2, character: 0 });
        assert_eq!(lines.byte(Position { line: 0, character: 99 }), 2);
        assert_eq!(lines.byte(Position { line: 99, character: 0 }), text.len());
        assert_eq!(lines.position(usize::MAX), Position { line: 3, character: 0 });
        for byte in text.char_indices().map(|(at, _)| at).filter(|at| !text[*at..].starts_with(['\r', '\n']))
        {
            assert_eq!(lines.byte(lines.position(byte)), byte);
        }
    }
}
