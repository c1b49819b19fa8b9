//! Functions of text.

use super::plain_spelling;

/// The use that a function makes of the text that it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TextRule {
    /// Reads its arguments to their ends.
    Reads,
    /// Copies a text to its first argument.
    Copies,
    /// Copies so many bytes of a text, which then may have no end.
    CopiesPart,
    /// Appends a text to that of its first argument.
    Appends,
    /// Writes a format's text to its first argument.
    Prints,
}

impl TextRule {
    /// The arguments that are read to their ends.
    pub(crate) fn reads(self) -> &'static [usize] {
        match self {
            TextRule::Reads | TextRule::Appends => &[0, 1],
            TextRule::Copies => &[1],
            TextRule::CopiesPart | TextRule::Prints => &[],
        }
    }
}

/// The rule for a function of text, by name.
pub(crate) fn text_rule(name: &str) -> Option<TextRule> {
    Some(match plain_spelling(name) {
        "strcpy" | "stpcpy" => TextRule::Copies,
        "strncpy" | "stpncpy" => TextRule::CopiesPart,
        "strcat" => TextRule::Appends,
        "sprintf" => TextRule::Prints,
        "atof" | "atoi" | "atol" | "atoll" | "fputs" | "puts" | "strlen" | "strcmp" | "strcasecmp"
        | "strcoll" | "strdup" | "strchr" | "strrchr" | "strstr" | "strpbrk" | "strspn" | "strcspn"
        | "strtol" | "strtoul" | "strtoll" | "strtoull" | "strtod" | "strtof" | "basic_string"
        | "basic_string_view" | "operator<<" => TextRule::Reads,
        _ => return None,
    })
}
