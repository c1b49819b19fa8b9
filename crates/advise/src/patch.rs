//! Edited texts as one unified diff.

use crate::sources::Sources;
use similar::TextDiff;
use std::collections::BTreeMap;

/// A diff that `git apply` and `patch -p1` take in the source folder; empty when nothing changes.
pub fn unified_diff(sources: &Sources, edited: &BTreeMap<String, String>) -> String {
    diff(&|path| sources.get(path), edited)
}

/// The same of texts of any kind.
pub fn diff_of_texts(original: &BTreeMap<String, String>, edited: &BTreeMap<String, String>) -> String {
    diff(&|path| original.get(path).map(String::as_str), edited)
}

fn diff<'s>(original: &dyn Fn(&str) -> Option<&'s str>, edited: &BTreeMap<String, String>) -> String {
    let mut patch = String::new();
    for (path, new) in edited {
        let old = original(path).unwrap_or("");
        if old == new {
            continue;
        }
        let diff = TextDiff::from_lines(old, new);
        let (from, to) = (format!("a/{path}"), format!("b/{path}"));
        patch.push_str(&diff.unified_diff().context_radius(3).header(&from, &to).to_string());
    }
    patch
}
