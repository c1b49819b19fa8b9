//! Attributes around declarations of C and C++, with the keywords and macros that stand for them: one table of words,
//! each with its meaning for what is declared.

use Meaning::{Aligns, Arguments, Foreign, KeepsOrder, NoObject, Packs, Pins, Placed, Randomises, Section};

/// A meaning of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// Parentheses after it hold no parameters and no declarator.
    Arguments,
    /// It asks for an alignment.
    Aligns,
    /// It puts a variable into a section.
    Section,
    /// It presses members together.
    Packs,
    /// A member that has it stays where it is.
    Pins,
    /// The layout of a type that has it is that of a format, or of another compiler.
    Foreign,
    /// The compiler may order the members of a type that has it.
    Randomises,
    /// The compiler does not order the members of a type that has it.
    KeepsOrder,
    /// A variable that has it is no plain object.
    NoObject,
    /// A variable that has it has a place of its own, or none.
    Placed,
}

/// The words. `packed` stands for `__packed__` as well.
const WORDS: &[(&str, &[Meaning])] = &[
    ("__attribute__", &[Arguments]),
    ("__attribute", &[Arguments]),
    ("__declspec", &[Arguments]),
    ("decltype", &[Arguments]),
    ("typeof", &[Arguments]),
    ("_Atomic", &[Arguments]),
    ("noexcept", &[Arguments]),
    ("asm", &[Arguments]),
    ("alignas", &[Arguments, Aligns]),
    ("_Alignas", &[Arguments, Aligns]),
    ("__aligned", &[Arguments, Aligns]),
    ("aligned", &[Aligns]),
    ("__section", &[Arguments, Section]),
    ("section", &[Section]),
    ("__read_mostly", &[Section]),
    ("__ro_after_init", &[Section]),
    ("packed", &[Packs, Pins]),
    ("__packed", &[Packs, Pins]),
    ("no_unique_address", &[Pins]),
    ("scalar_storage_order", &[Foreign]),
    ("ms_struct", &[Foreign]),
    ("gcc_struct", &[Foreign]),
    ("randomize_layout", &[Randomises]),
    ("__randomize_layout", &[Randomises]),
    ("no_randomize_layout", &[KeepsOrder]),
    ("__no_randomize_layout", &[KeepsOrder]),
    ("extern", &[NoObject]),
    ("constinit", &[NoObject]),
    ("template", &[NoObject]),
    ("using", &[NoObject]),
    ("inline", &[NoObject]),
    ("typedef", &[NoObject, Placed]),
    ("register", &[NoObject, Placed]),
    ("constexpr", &[NoObject, Placed]),
    ("thread_local", &[NoObject, Placed]),
    ("_Thread_local", &[NoObject, Placed]),
    ("__thread", &[NoObject, Placed]),
    ("__initdata", &[NoObject, Placed]),
    ("__percpu", &[NoObject, Placed]),
];

/// Whether a word has a meaning.
pub(crate) fn is(word: &str, meaning: Meaning) -> bool {
    let inside = word.strip_prefix("__").and_then(|word| word.strip_suffix("__"));
    let meanings = WORDS.iter().find(|(known, _)| *known == word || inside == Some(*known));
    meanings.is_some_and(|(_, meanings)| meanings.contains(&meaning))
}

/// Macros that put what is declared on a cache line of its own: `____cacheline_aligned_in_smp`.
pub(crate) fn begins_line(word: &str) -> bool {
    word.trim_start_matches('_').starts_with("cacheline_") && word.contains("aligned")
}

/// Macros with which a variable lies elsewhere, or is aligned: they do not carry over to a member.
pub(crate) fn places(word: &str) -> bool {
    word.starts_with("__") && (is(word, Section) || is(word, Aligns) || begins_line(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_between_underscores_mean_the_same() {
        for word in ["packed", "__packed", "__packed__"] {
            assert!(is(word, Packs) && is(word, Pins) && !is(word, Aligns), "{word}");
        }
        assert!(is("__asm__", Arguments) && is("_Alignas", Aligns) && is("__section__", Section));
        assert!(!is("thread", Placed) && !is("packed_bytes", Packs) && !is("__attribute", Aligns));
    }

    #[test]
    fn variables_may_have_the_names_of_attributes() {
        for word in ["section", "aligned", "cacheline_aligned"] {
            assert!(!places(word), "{word}");
        }
        for word in ["__section", "__read_mostly", "____cacheline_aligned_in_smp", "__cacheline_aligned"] {
            assert!(places(word), "{word}");
        }
    }
}
