//! Lists of names that end in a count.

/// The first `most` names for a sentence, and the number of further ones: `a, b and 3 more`.
pub fn first_names<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::first_names;

    #[test]
    fn what_is_not_named_is_counted() {
        let names = ["a", "b", "c"];
        assert_eq!(first_names(&names[..0], 2), "");
        assert_eq!(first_names(&names[..2], 2), "a, b");
        assert_eq!(first_names(&names, 2), "a, b and 1 more");
    }
}
