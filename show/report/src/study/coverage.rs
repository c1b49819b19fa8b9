//! Named accesses, by their evidence; and parts that were not observed.

use serde::Serialize;

/// The number of the regions' data accesses that have a name.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Coverage {
    /// All data accesses in the recorded calls.
    pub accesses: u64,
    /// Accesses with a name.
    pub named: u64,
    /// `named` ÷ `accesses`; `None` without accesses.
    pub share: Option<f64>,
    /// The same share among accesses outside the stack; `None` when there are none or it is not known.
    pub share_off_stack: Option<f64>,
    /// The named accesses by the kind of data, most first.
    pub by_class: Vec<ClassCount>,
    /// The named ones by kind of evidence, most first.
    pub by_evidence: Vec<EvidenceCount>,
    /// The accesses without a name, by the function that made them, most first.
    pub unnamed_by_function: Vec<FunctionCount>,
}

impl Coverage {
    /// From counts by evidence and, for accesses without a name, by function. Sorts both.
    pub fn new(mut by_evidence: Vec<EvidenceCount>, mut unnamed_by_function: Vec<FunctionCount>) -> Self {
        by_evidence.sort_by(|a, b| b.accesses.cmp(&a.accesses).then_with(|| a.evidence.cmp(&b.evidence)));
        unnamed_by_function
            .sort_by(|a, b| b.accesses.cmp(&a.accesses).then_with(|| a.function.cmp(&b.function)));
        let named = by_evidence.iter().fold(0u64, |sum, one| sum.saturating_add(one.accesses));
        let unnamed = unnamed_by_function.iter().fold(0u64, |sum, one| sum.saturating_add(one.accesses));
        let accesses = named.saturating_add(unnamed);
        let share = (accesses > 0).then(|| named as f64 / accesses as f64);
        let by_class = Vec::new();
        Self { accesses, named, share, share_off_stack: None, by_class, by_evidence, unnamed_by_function }
    }
}

/// Named accesses to one class of thing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClassCount {
    /// The class, such as `members of objects` or `stack`.
    pub class: String,
    /// Their number.
    pub accesses: u64,
}

/// Accesses named by one kind of evidence.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct EvidenceCount {
    /// The kind, such as `variable in the base register` or `object map`.
    pub evidence: String,
    /// Their number.
    pub accesses: u64,
}

/// Accesses made by one function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FunctionCount {
    /// The function, or the image when it has no symbol.
    pub function: String,
    /// Their number.
    pub accesses: u64,
}

/// A line that passes between threads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SharedLine {
    /// Runtime address of the line.
    pub address: u64,
    /// Members and variables touched on it; `*` marks those written.
    pub parts: Vec<String>,
    /// Threads that read it.
    pub readers: Vec<u32>,
    /// Threads that wrote it.
    pub writers: Vec<u32>,
    /// Times a call needed bytes that another thread had written.
    pub true_handovers: u64,
    /// Times a call needed the line because another thread had written other bytes of it.
    pub false_handovers: u64,
}

/// Something that could not be seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NotObserved {
    /// The unobserved part.
    pub what: String,
    /// Its meaning for the findings.
    pub consequence: String,
}
