//! Declarations of members as `pahole` and `lineup layout --full` print them.

/// The member's name in its declaration; empty for anonymous ones.
pub(crate) fn name(code: &str) -> String {
    let code = without_attributes(code);
    let code = code.trim_end_matches(';').trim();
    let code = match code.rfind(':') {
        Some(at) if code[at + 1..].chars().all(|c| c.is_ascii_digit()) => code[..at].trim(),
        _ => code,
    };
    let code = match code.find("(*") {
        Some(at) => code[at + 2..].split(')').next().unwrap_or_default(),
        None => code,
    };
    let code = code.split('[').next().unwrap_or(code).trim();
    code.rsplit([' ', '*', '}']).next().unwrap_or(code).to_owned()
}

/// A declaration without `__attribute__((…))`, which pahole writes before or after the name.
pub(crate) fn without_attributes(code: &str) -> String {
    let mut left = code.to_owned();
    while let Some(start) = left.find("__attribute__((")
        && let Some(len) = matching_end(&left[start..])
    {
        left.replace_range(start..start + len, "");
    }
    left
}

/// The end of the first group of parentheses.
fn matching_end(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, found) in text.char_indices() {
        match found {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}
