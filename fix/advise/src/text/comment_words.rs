//! The words of a comment, and comments that refer to several members.

/// Words by which a comment refers to several members.
const HEADING_WORDS: [&str; 22] = [
    "members",
    "fields",
    "following",
    "these",
    "below",
    "group",
    "section",
    "protected",
    "guarded",
    "mostly",
    "hot",
    "cold",
    "stuff",
    "variables",
    "counters",
    "statistics",
    "stats",
    "touched",
    "path",
    "cacheline",
    "cachelines",
    "modified",
];

pub(crate) fn is_heading(comment: &str) -> bool {
    let words = words(comment);
    let text = bare_text(comment);
    let is_drawn = ["---", "===", "***", "+++"].iter().any(|line| comment.trim_matches('/').contains(line));
    text.ends_with(':')
        || is_drawn
        || is_numbered(&text)
        || words.iter().any(|word| HEADING_WORDS.contains(&word.as_str()))
}

/// `2) batch handling`
pub(crate) fn is_numbered(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(')')
}

pub(crate) fn words(comment: &str) -> Vec<String> {
    let text = bare_text(comment).to_lowercase().replace(['\'', '’'], "");
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The comment's text without its marks, on one line.
pub(crate) fn bare_text(comment: &str) -> String {
    let strip = |line: &str| -> String {
        let line = line.trim().trim_start_matches("/**").trim_start_matches("/*").trim_end_matches("*/");
        line.trim_start_matches(['/', '*', '!', '<', ' ', '\t']).trim().to_owned()
    };
    comment.lines().map(strip).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_speak_of_several_members() {
        for text in [
            "/* Read mostly: */",
            "/* --- statistics --- */",
            "/* Fields of the fast path */",
            "/* protected by lock */",
            "/* 2) batch handling */",
        ] {
            assert!(is_heading(text), "{text}");
        }
        assert!(!is_heading("/* number of entries in use */"));
    }
}
