//! Findings: changes for the worse.

use crate::repository_line::RepositoryLine;
use serde::Serialize;

/// The kind of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A promise of the guard is broken.
    Guard,
    /// Objects of a type cover more cache lines than before.
    Growth,
    /// A member lies on more cache lines than its size needs, and did not before.
    Split,
    /// Calls of a region need more lines of data than before.
    Lines,
    /// Calls of a region need more lines of code than before.
    CodeLines,
    /// Calls of a region take more instructions than before.
    Instructions,
    /// `lineup find` found something that it did not find before.
    Finding,
}

impl Rule {
    /// Every rule, in the order in which they are shown.
    pub const ALL: [Rule; 7] = [
        Rule::Guard,
        Rule::Growth,
        Rule::Split,
        Rule::Lines,
        Rule::CodeLines,
        Rule::Instructions,
        Rule::Finding,
    ];

    /// Its name, as the project writes it.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Guard => "guard",
            Rule::Growth => "growth",
            Rule::Split => "split",
            Rule::Lines => "lines",
            Rule::CodeLines => "code-lines",
            Rule::Instructions => "instructions",
            Rule::Finding => "finding",
        }
    }

    /// Its meaning, in a sentence.
    pub fn means(self) -> &'static str {
        match self {
            Rule::Guard => "A promise of lineup.lock is broken.",
            Rule::Growth => "Objects of a type cover more cache lines than before.",
            Rule::Split => "A member lies on more cache lines than its size needs, and did not before.",
            Rule::Lines => "Calls of a function need more cache lines of data than before.",
            Rule::CodeLines => "Calls of a function need more cache lines of code than before.",
            Rule::Instructions => "Calls of a function take more instructions than before.",
            Rule::Finding => "The program stalls for something that it did not stall for before.",
        }
    }
}

/// A ratio with its interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Ratio {
    /// The ratio of the means.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Something that got worse, or a promise that is broken.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// The kind.
    pub rule: Rule,
    /// Its subject: a type, a member as `type::member`, or a function.
    pub subject: String,
    /// One sentence.
    pub message: String,
    /// The place of the subject's declaration in the head; `None` when it is not in the repository, or not known.
    pub place: Option<RepositoryLine>,
    /// By how much, where that is a ratio: 1.25 for a quarter more.
    pub ratio: Option<Ratio>,
    /// True when the review fails because of it.
    pub fails: bool,
}
