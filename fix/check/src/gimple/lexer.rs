//! Words of a GIMPLE dump.

/// A word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// A name, also with the numbers that GCC adds after a point.
    Name(&'a str),
    /// A whole number.
    Int(i128),
    /// A string, a number with a point, or a sign.
    Other(&'a str),
}

impl<'a> Token<'a> {
    /// The word is this sign or name.
    pub fn is(&self, text: &str) -> bool {
        matches!(self, Token::Name(word) | Token::Other(word) if *word == text)
    }

    /// The name, if it is one.
    pub fn name(&self) -> Option<&'a str> {
        match self {
            Token::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// Signs of several characters.
const SIGNS: [&str; 11] = ["->", "==", "!=", "<=", ">=", "<>", "<<", ">>", "/[ex]", "/[fl]", "/[cl]"];

/// The words of a line, and the first place in the source that it names.
pub fn words(line: &str) -> (Vec<Token<'_>>, Option<&str>) {
    let mut words = Vec::new();
    let mut place = None;
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &line[at..];
        let first = bytes[at];
        let length = match first {
            b' ' | b'\t' => {
                at += 1;
                continue;
            }
            b'[' if position(rest).is_some() => {
                let length = position(rest).unwrap_or(1);
                place = place.or(Some(&rest[1..length - 1]));
                at += length;
                continue;
            }
            b'"' => quoted(rest, b'"'),
            b'\'' => quoted(rest, b'\''),
            b'0'..=b'9' => number(rest),
            b'-' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => 1 + number(&rest[1..]),
            first if first.is_ascii_alphabetic() || first == b'_' || first == b'$' || first >= 0x80 => {
                name(rest)
            }
            _ => SIGNS.iter().find(|sign| rest.starts_with(**sign)).map_or(1, |sign| sign.len()),
        };
        let word = &line[at..at + length];
        words.push(match first {
            b'0'..=b'9' | b'-' if length > 1 || first != b'-' => {
                integer(word).map_or(Token::Other(word), Token::Int)
            }
            first if first.is_ascii_alphabetic() || first == b'_' || first == b'$' || first >= 0x80 => {
                Token::Name(word)
            }
            _ => Token::Other(word),
        });
        at += length;
    }
    (words, place)
}

/// Length of `[FILE:LINE:COLUMN]` at the start.
fn position(rest: &str) -> Option<usize> {
    let end = rest.find(']')?;
    let inside = &rest[1..end];
    // The bracket of `MEM[(int *)[x.c:3:33] &y]` begins no position.
    if inside.contains(['[', '(', '"']) {
        return None;
    }
    let inside = inside.split_once(" discrim ").map_or(inside, |(before, _)| before);
    let mut parts = inside.rsplitn(3, ':');
    let is_number = |part: Option<&str>| {
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    (is_number(parts.next()) && is_number(parts.next()) && parts.next().is_some_and(|file| !file.is_empty()))
        .then_some(end + 1)
}

fn quoted(rest: &str, quote: u8) -> usize {
    let mut is_escaped = false;
    for (index, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            byte if byte == quote => return index + 1,
            _ => {}
        }
    }
    rest.len()
}

fn number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut length = 0;
    while let Some(&byte) = bytes.get(length) {
        let is_exponent =
            matches!(byte, b'+' | b'-') && matches!(bytes[length - 1], b'e' | b'E' | b'p' | b'P');
        if !(byte.is_ascii_alphanumeric() || byte == b'.' || is_exponent) {
            break;
        }
        length += 1;
    }
    length
}

fn name(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut length = 0;
    while let Some(&byte) = bytes.get(length) {
        let is_number = byte == b'.' && bytes.get(length + 1).is_some_and(u8::is_ascii_digit);
        if !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80 || is_number) {
            break;
        }
        length += 1;
    }
    length
}

fn integer(word: &str) -> Option<i128> {
    let digits = word.strip_suffix('B').filter(|_| !word.starts_with("0x")).unwrap_or(word);
    match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}
