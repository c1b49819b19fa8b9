//! Text whose lines are a key and a value.

/// A line of a plan or discovery that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line} of the recorder's {what} cannot be read: {text:?}")]
pub struct PlanError {
    /// Counted from 1; 0 when a needed line is missing.
    pub line: usize,
    /// `plan` or `discovery`.
    pub what: &'static str,
    /// The line.
    pub text: String,
}

/// Text whose lines are `key value`.
#[derive(Default)]
pub(super) struct Lines(pub(super) String);

impl Lines {
    pub(super) fn put(&mut self, key: &str, value: impl std::fmt::Display) {
        self.0.push_str(&format!("{key} {value}\n"));
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.put(key, escape(value));
    }
}

/// Keeps a value on one line.
pub(crate) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}

/// A number as plans and tables spell addresses.
pub(crate) fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Feeds every line to `accept`; the first it refuses is the error.
pub(super) fn each_line(
    text: &str,
    what: &'static str,
    mut accept: impl FnMut(&str, &str) -> Option<()>,
) -> Result<(), PlanError> {
    for (index, line) in text.split('\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        accept(key, value).ok_or_else(|| PlanError { line: index + 1, what, text: line.to_owned() })?;
    }
    Ok(())
}
