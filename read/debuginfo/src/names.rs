//! Names: demangling, matching a user's input, and suggestions for a misspelt one.

/// A name as the source spells it: demangled when it is mangled, else itself.
pub fn spelled(name: &str) -> String {
    demangle(name).unwrap_or_else(|| name.to_owned())
}

/// A mangled C++ or Rust name as the source spells it; `None` for any other name.
///
/// ```
/// assert_eq!(lineup_debuginfo::demangle("_ZN1a1bEi").as_deref(), Some("a::b(int)"));
/// assert_eq!(lineup_debuginfo::demangle("main"), None);
/// ```
pub fn demangle(name: &str) -> Option<String> {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return Some(format!("{rust:#}"));
    }
    if !name.starts_with("_Z") {
        return None;
    }
    // Hostile names could expand without end.
    let options = cpp_demangle::DemangleOptions::new().recursion_limit(96);
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(96);
    cpp_demangle::Symbol::new_with_options(name, &parse).ok()?.demangle_with_options(&options).ok()
}

/// True when the user means a function by `wanted`: its full name is equal, or equal without leading namespaces,
/// parameter list or template arguments.
pub fn is_meant(full: &str, wanted: &str) -> bool {
    let matches =
        |full: &str| full == wanted || full.strip_suffix(wanted).is_some_and(|lead| lead.ends_with("::"));
    matches(full) || matches(without_arguments(full))
}

/// A name without its last parameter list and template arguments.
pub(crate) fn without_arguments(name: &str) -> &str {
    let mut name = name;
    for (open, close) in [('(', ')'), ('<', '>')] {
        let trimmed = name.trim_end_matches(" const");
        if !trimmed.ends_with(close) {
            continue;
        }
        let mut depth = 0_i32;
        for (at, found) in trimmed.char_indices().rev() {
            depth += i32::from(found == close) - i32::from(found == open);
            if depth == 0 {
                name = &trimmed[..at];
                break;
            }
        }
    }
    name
}

/// Up to `limit` of `names` that are most similar to `wanted`, best first: names that contain it or that it contains,
/// and names a few edits away.
pub fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>, limit: usize) -> Vec<String> {
    let wanted: Vec<char> = wanted.to_lowercase().chars().take(MAX_COMPARED).collect();
    let allowed = (wanted.len() / 3).max(2);
    let text: String = wanted.iter().collect();
    let mut found: Vec<(usize, &str)> = Vec::new();
    for name in names {
        let last = name.rsplit("::").next().unwrap_or(name).to_lowercase();
        let chars: Vec<char> = last.chars().take(MAX_COMPARED).collect();
        let contains = !text.is_empty() && last.len() > 2 && (last.contains(&text) || text.contains(&last));
        let distance = if chars.len().abs_diff(wanted.len()) > allowed && !contains {
            continue;
        } else {
            edit_distance(&wanted, &chars)
        };
        if contains || distance <= allowed {
            found.push((distance, name));
        }
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(limit);
    found.into_iter().map(|(_, name)| name.to_owned()).collect()
}

/// Longer names are compared by their start.
const MAX_COMPARED: usize = 64;

/// Insertions, deletions and replacements between two names (Levenshtein).
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (slot, y) in row.iter_mut().skip(1).zip(b) {
            let above = *slot;
            left = (diagonal + usize::from(x != y)).min(above + 1).min(left + 1);
            diagonal = above;
            *slot = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_meant_with_or_without_namespaces_parameters_and_template_arguments() {
        for (full, wanted) in [
            ("main", "main"),
            ("a::b::run", "run"),
            ("a::b::run", "b::run"),
            ("a::run<int>", "run"),
            ("a::run(std::vector<int> const&) const", "a::run"),
            ("a::run<f(int)>(char)", "run"),
        ] {
            assert!(is_meant(full, wanted), "{full} {wanted}");
        }
        assert!(!is_meant("a::rerun", "run"));
    }

    #[test]
    fn near_names_come_best_first() {
        let names = ["clockevents_adjust_freq", "clockevents_program", "zebra", "clockevents_adjust_freqs"];
        assert_eq!(
            nearest("clockevents_ajust_freqs", names, 2),
            ["clockevents_adjust_freqs", "clockevents_adjust_freq"]
        );
    }

    #[test]
    fn edit_distance_counts_single_changes() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(edit_distance(&chars("kitten"), &chars("sitting")), 3);
        assert_eq!(edit_distance(&chars(""), &chars("abc")), 3);
    }
}
