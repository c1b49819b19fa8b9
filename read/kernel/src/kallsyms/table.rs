//! Names: a table of 256 tokens, an index into it, and for each symbol a length and that many token numbers.

use super::kernel_symbols::is_entry;
use crate::scan::{align, u16_at, u32_at, word_at};
use memchr::memmem;

/// The tokens of the ten digits stand for themselves in every kernel: they are in too many names to be free.
const DIGITS: &[u8] = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\0";

/// The maximum distance of the names' beginning before the tokens.
const MAX_NAMES_BYTES: usize = 64 << 20;

/// One marker for every 256th name gives its position.
const NAMES_PER_MARKER: usize = 256;

/// No kernel has more symbols.
const MAX_SYMBOLS: u32 = 4 << 20;

/// The bytes of the count of symbols.
pub(super) const COUNT_BYTES: usize = 4;

/// The longest name that a kernel allows, with room.
const MAX_NAME_BYTES: usize = 2048;

/// The 256 tokens.
pub(super) struct Tokens<'a> {
    texts: Vec<&'a [u8]>,
    /// The beginning of their table.
    pub(super) start: usize,
    /// The end of the index behind it.
    pub(super) end: usize,
}

impl<'a> Tokens<'a> {
    /// The first table whose index agrees with it.
    pub(super) fn find(bytes: &'a [u8]) -> Option<Tokens<'a>> {
        memmem::find_iter(bytes, DIGITS).find_map(|digits| Self::around(bytes, digits))
    }

    /// Searches for the end of the 256 texts, where the index begins, which gives the start.
    fn around(bytes: &'a [u8], digits: usize) -> Option<Tokens<'a>> {
        let remaining = 256 - usize::from(b'0');
        let nearby = bytes.get(digits..bytes.len().min(digits + 64 * 1024))?;
        let end = digits + memchr::memchr_iter(0, nearby).nth(remaining - 1)? + 1;
        [4, 8].iter().find_map(|alignment| {
            let index_start = align(end, *alignment);
            let offset = |token: usize| u16_at(bytes, index_start + 2 * token).map(usize::from);
            let start = digits.checked_sub(offset(usize::from(b'0'))?)?;
            let mut texts = Vec::with_capacity(256);
            let mut at = start;
            for token in 0..256 {
                if offset(token)? != at - start {
                    return None;
                }
                let length = memchr::memchr(0, bytes.get(at..end)?)?;
                texts.push(&bytes[at..at + length]);
                at += length + 1;
            }
            (at == end).then_some(Tokens { texts, start, end: index_start + 512 })
        })
    }
}

/// The names, decoded.
pub(super) struct Names {
    /// Letter and name of every symbol, in the table's order.
    pub(super) texts: Vec<(char, String)>,
    /// The position of the symbol count, which precedes the names.
    pub(super) count_at: usize,
    /// The distance of the names from their count: a word of the machine, since 7.0 four bytes.
    pub(super) count_bytes: usize,
}

impl Names {
    /// Searches backwards from the tokens for a count whose names end where markers begin that agree with them. Any
    /// small number may look like the count of a few names, so that the names have to be a kernel's.
    pub(super) fn find(bytes: &[u8], tokens: &Tokens<'_>, word_bytes: usize) -> Option<Names> {
        let lowest = tokens.start.saturating_sub(MAX_NAMES_BYTES);
        let mut count_at = tokens.start & !(COUNT_BYTES - 1);
        while count_at > lowest {
            count_at = count_at.checked_sub(COUNT_BYTES)?;
            let count = u32_at(bytes, count_at)?;
            let fits = count as usize <= (tokens.start - count_at) / 2;
            if !(1..=MAX_SYMBOLS).contains(&count) || !fits {
                continue;
            }
            let is_padded =
                word_bytes == 8 && count_at.is_multiple_of(8) && u32_at(bytes, count_at + 4)? == 0;
            let count_bytes = if is_padded { word_bytes } else { COUNT_BYTES };
            let found = Self::at(bytes, tokens, (count_at, count_bytes), count as usize);
            if let Some(names) = found.filter(Names::are_of_a_kernel) {
                return Some(names);
            }
        }
        None
    }

    fn are_of_a_kernel(&self) -> bool {
        self.texts.iter().any(|(kind, name)| is_entry(*kind, name))
    }

    fn at(
        bytes: &[u8],
        tokens: &Tokens<'_>,
        (count_at, count_bytes): (usize, usize),
        count: usize,
    ) -> Option<Names> {
        let names_start = count_at + count_bytes;
        let mut spans = Vec::new();
        let mut at = names_start;
        for _ in 0..count {
            let (length, width) = length(bytes, at)?;
            if length == 0 || at + width + length > tokens.start {
                return None;
            }
            spans.push((at, at + width, length));
            at += width + length;
        }
        let starts: Vec<usize> =
            spans.iter().step_by(NAMES_PER_MARKER).map(|span| span.0 - names_start).collect();
        if !marked(bytes, at, &starts) {
            return None;
        }
        let texts = spans.iter().map(|(_, start, length)| decode(&bytes[*start..start + length], tokens));
        Some(Names { texts: texts.collect::<Option<_>>()?, count_at, count_bytes })
    }
}

/// A name's length in tokens, and the number of bytes that encode it: two for a length of more than seven bits, since
/// 6.1.
fn length(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let first = usize::from(*bytes.get(at)?);
    if first & 0x80 == 0 {
        return Some((first, 1));
    }
    Some(((first & 0x7f) | usize::from(*bytes.get(at + 1)?) << 7, 2))
}

/// True when markers of 4 bytes, or of 8 as until 4.19, follow the names.
fn marked(bytes: &[u8], names_end: usize, starts: &[usize]) -> bool {
    [(4, 4), (4, 8), (8, 8)].iter().any(|(width, alignment)| {
        let markers = align(names_end, *alignment);
        starts.iter().enumerate().all(|(number, start)| {
            word_at(bytes, markers + width * number, *width).is_some_and(|marker| marker == *start as u64)
        })
    })
}

/// The letter and the name behind it.
fn decode(numbers: &[u8], tokens: &Tokens<'_>) -> Option<(char, String)> {
    let mut text = Vec::new();
    for number in numbers {
        text.extend_from_slice(tokens.texts[usize::from(*number)]);
        if text.len() > MAX_NAME_BYTES {
            return None;
        }
    }
    let text = String::from_utf8(text).ok()?;
    let kind = text.chars().next().filter(|kind| kind.is_ascii_alphabetic() || matches!(kind, '-' | '?'))?;
    let name = &text[1..];
    let is_name = !name.is_empty() && !name.contains(|letter: char| letter.is_control() || letter == ' ');
    is_name.then(|| (kind, name.to_owned()))
}
