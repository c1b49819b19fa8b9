//! The report of a study of placement, as values.

use crate::ReportError;
use crate::study::Fact;
use lineup_model::figure::{change, estimated};
use serde::Serialize;

/// The form `lineup.placement/1`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlacementReport {
    schema: &'static str,
    /// The program and its arguments, as a shell takes them.
    pub command: String,
    /// The result in one sentence.
    pub verdict: String,
    /// The words that use the chosen placement; none where nothing is better.
    pub actions: Vec<Action>,
    /// The chosen candidate in runs that did not choose it; `None` where no candidate was left.
    pub confirmed: Option<Confirmed>,
    /// Every candidate that was tried.
    pub candidates: Vec<CandidateReport>,
    /// Placements that were not tried.
    pub not_tried: Vec<NotTried>,
    /// The confidence level of the candidates' intervals, wider for their number.
    pub level: f64,
    /// Changes below this share count as equivalent.
    pub margin: f64,
    /// Remarks on how far the result holds.
    pub remarks: Vec<String>,
    /// The machine.
    pub machine: Vec<Fact>,
    /// The command that repeats the study.
    pub repeat: String,
}

/// A way to use the chosen placement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Action {
    /// For whom, or when.
    pub purpose: String,
    /// The words to type.
    pub text: String,
}

/// One candidate in the last round that it took part in.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CandidateReport {
    /// Its name.
    pub name: String,
    /// The variables that make it.
    pub environment: String,
    /// The share of its time that the run saves in the model of caches, translations and page faults; `None` where the
    /// model says nothing about it.
    pub modelled_gain: Option<f64>,
    /// Elapsed time against the unchanged program; `None` where it was not compared.
    pub elapsed: Option<Change>,
    /// Peak memory ÷ that of the unchanged program.
    pub peak_memory_ratio: Option<f64>,
    /// Page faults ÷ those of the unchanged program.
    pub page_faults_ratio: Option<f64>,
    /// The difference in output or ending; `None` where there is none.
    pub difference: Option<String>,
    /// The end: `chosen`, `dropped`, `differs` or `undecided`.
    pub end: &'static str,
    /// The round of these figures, from 1.
    pub round: Option<usize>,
}

/// A change of time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Change {
    /// With ÷ without the placement: 0.9 is 10 % less.
    pub ratio: f64,
    /// The interval of the ratio.
    pub interval: [f64; 2],
}

impl Change {
    /// The change with its interval: `−20.1 % [−21.0 %, −19.2 %]`.
    pub fn in_words(&self) -> String {
        estimated(self.ratio, self.interval)
    }
}

/// The chosen candidate, compared once more.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Confirmed {
    /// Its name.
    pub name: String,
    /// Each input on which it was compared.
    pub inputs: Vec<ConfirmedInput>,
    /// The comparison of its processes' effects with the unchanged program's, in words.
    pub effects: String,
}

/// The comparison on one input.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ConfirmedInput {
    /// The command of its runs.
    pub command: String,
    /// True of an input on which no candidate was chosen.
    pub is_second: bool,
    /// Mirrored blocks of runs.
    pub blocks: u64,
    /// The verdict on elapsed time: `changed`, `equivalent` or `inconclusive`.
    pub verdict: &'static str,
    /// Elapsed time.
    pub elapsed: Change,
    /// The smallest change that these runs would have shown four times in five, as a share.
    pub smallest_detectable: Option<f64>,
    /// Peak memory ÷ that of the unchanged program.
    pub peak_memory_ratio: Option<f64>,
    /// Page faults ÷ those of the unchanged program.
    pub page_faults_ratio: Option<f64>,
    /// The difference in output or ending; `None` where there is none.
    pub difference: Option<String>,
}

/// A placement that was not tried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NotTried {
    /// Its name.
    pub name: String,
    /// The reason.
    pub why: String,
}

impl PlacementReport {
    /// A report about a command, with nothing tried.
    pub fn new(command: String) -> Self {
        Self {
            schema: "lineup.placement/1",
            command,
            verdict: String::new(),
            actions: Vec::new(),
            confirmed: None,
            candidates: Vec::new(),
            not_tried: Vec::new(),
            level: 0.0,
            margin: 0.0,
            remarks: Vec::new(),
            machine: Vec::new(),
            repeat: String::new(),
        }
    }

    /// The confirmed candidate on the input that chose it.
    pub fn first_confirmed(&self) -> Option<&ConfirmedInput> {
        self.confirmed.as_ref()?.inputs.first()
    }

    /// The report as JSON.
    ///
    /// # Errors
    /// When a value cannot be turned into JSON.
    pub fn to_json(&self) -> Result<String, ReportError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// A ratio as a change in per cent; a dash where it was not observed.
pub(super) fn changed(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "–".to_owned(), change)
}

impl CandidateReport {
    /// The modelled change of time; a dash where the model says nothing.
    pub(super) fn modelled_in_words(&self) -> String {
        changed(self.modelled_gain.map(|gain| 1.0 - gain))
    }

    /// The time, or the difference that makes it irrelevant.
    pub(super) fn time_in_words(&self) -> String {
        match (&self.difference, &self.elapsed) {
            (Some(difference), _) => format!("does something else: {difference}"),
            (None, Some(elapsed)) => elapsed.in_words(),
            (None, None) => "–".to_owned(),
        }
    }
}

impl ConfirmedInput {
    /// The comparison in one sentence.
    pub fn in_words(&self) -> String {
        let input = if self.is_second { "on the second input" } else { "in runs that did not choose it" };
        format!(
            "{} {input}: time {} ({}, {} blocks), peak memory {}, page faults {}",
            self.verdict,
            self.elapsed.in_words(),
            if self.difference.is_none() { "same output and exit" } else { "other output or exit" },
            self.blocks,
            changed(self.peak_memory_ratio),
            changed(self.page_faults_ratio),
        )
    }
}
