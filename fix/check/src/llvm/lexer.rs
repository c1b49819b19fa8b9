//! Words of LLVM's IR.

/// The words of a line, its comment left out.
pub fn words(line: &str) -> Vec<&str> {
    let bytes = line.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    let is_inside = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'-' | b'+') || byte >= 0x80
    };
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b' ' | b'\t' => {
                at += 1;
                continue;
            }
            b';' => break,
            b'"' => at = quoted(bytes, at),
            b'c' if bytes.get(at + 1) == Some(&b'"') => at = quoted(bytes, at + 1),
            b'%' | b'@' | b'!' | b'#' if bytes.get(at + 1) == Some(&b'"') => at = quoted(bytes, at + 1),
            b'%' | b'@' | b'!' | b'#' => {
                at += 1;
                while at < bytes.len() && is_inside(bytes[at]) {
                    at += 1;
                }
            }
            byte if is_inside(byte) => {
                while at < bytes.len() && is_inside(bytes[at]) {
                    at += 1;
                }
            }
            _ => at += 1,
        }
        words.push(&line[start..at]);
    }
    words
}

/// The end of a string that begins at `at`.
fn quoted(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at + 1..].iter().position(|byte| *byte == b'"');
    length.map_or(bytes.len(), |length| at + length + 2)
}

/// Splits at commas outside of brackets.
pub fn at_commas<'w, 'a>(words: &'w [&'a str]) -> Vec<&'w [&'a str]> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (index, word) in words.iter().enumerate() {
        match *word {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth -= 1,
            "," if depth == 0 => {
                parts.push(&words[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    if start < words.len() {
        parts.push(&words[start..]);
    }
    parts
}

/// Length of a bracketed group at the start, brackets included.
pub fn group(words: &[&str]) -> Option<usize> {
    let mut depth = 0_i32;
    for (index, word) in words.iter().enumerate() {
        match *word {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index + 1);
        }
    }
    None
}
