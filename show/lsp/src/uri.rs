//! Files by the names that the protocol has for them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The path of a `file:` URI of this machine; `None` for any other.
pub(crate) fn path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        return None;
    }
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    Some(PathBuf::from(OsString::from_vec(decoded(path.as_bytes()))))
}

/// Without percent signs; one that two hexadecimal digits do not follow stands for itself.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let digit = |place: usize| text.get(at + place).and_then(|digit| (*digit as char).to_digit(16));
        match (byte, digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_this_machine_have_a_path_and_nothing_else_has() {
        let named = |uri: &str| path(uri).map(|path| path.display().to_string());
        assert_eq!(named("file:///src/a%20b%2B/c.h"), Some("/src/a b+/c.h".into()));
        assert_eq!(named("file://localhost/a.c#L3"), Some("/a.c".into()));
        assert_eq!(named("file:///50%/a%zz%4"), Some("/50%/a%zz%4".into()));
        for other in ["untitled:Untitled-1", "file://host/a.c", "https://a/b.c", "", "file:a.c"] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
