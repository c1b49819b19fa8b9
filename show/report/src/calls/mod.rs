//! Recorded calls of whole systems: text, CSV, and a page on which a reader of the 2011 talk about I-cache and locks
//! finds every figure again.

mod chrome;
mod csv;
mod findings;
mod listing;
mod page;
mod sections;
mod tables;
mod text;

pub use chrome::calls_chrome;
pub use csv::calls_csv;
pub use findings::findings;
pub use listing::high_water_listing;
pub use page::calls_page;
pub use text::calls_text;

use lineup_tail::{Analysis, Run};

/// The content of reports on recorded calls.
#[derive(Clone, Copy)]
pub struct Calls<'a> {
    /// The recordings.
    pub runs: &'a [Run],
    /// Their analysis.
    pub analysis: &'a Analysis,
    /// Names of the regions that are shown in full; the others are lines in a table.
    pub shown: &'a [String],
    /// The report's title.
    pub title: &'a str,
    /// The command that repeats it.
    pub command: &'a str,
}

impl<'a> Calls<'a> {
    /// The label of a run.
    fn label(&self, run: usize) -> &'a str {
        self.analysis.runs.get(run).map_or(lineup_model::figure::UNKNOWN, |facts| &facts.label)
    }

    /// The regions shown in full.
    fn regions(&self) -> impl Iterator<Item = &'a lineup_tail::analysis::RegionAnalysis> {
        let shown = self.shown;
        self.analysis.regions.iter().filter(move |region| shown.contains(&region.name))
    }
}

/// The regions that are shown in full by default: the first with calls, and spans with interrupts off.
pub fn shown_by_default(analysis: &Analysis) -> Vec<String> {
    let with_calls = || analysis.regions.iter().filter(|region| !region.runs.is_empty());
    let first = with_calls().find(|region| !region.is_span);
    let spans = with_calls().filter(|region| region.is_span);
    first.into_iter().chain(spans).map(|region| region.name.clone()).collect()
}
