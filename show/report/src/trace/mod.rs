//! Traces of the runtime's tracer: as text for a terminal, as the listing of new maxima, and as one page.

mod listing;
mod page;
mod sections;
mod text;

pub use listing::high_water_listing;
pub use page::trace_page;
pub use text::{attributions_text, traces_text};

use crate::visible::shortened;
use lineup_trace::{Rung, Trace};

/// Longest label of a run that is shown.
const LABEL_CHARACTERS: usize = 120;

/// A trace under the name by which reports call it.
#[derive(Clone, Debug)]
pub struct TracedRun {
    /// Usually the file's path.
    pub label: String,
    /// The recorded trace.
    pub trace: Trace,
}

impl TracedRun {
    /// The label in its shortened form.
    fn shown(&self) -> String {
        shortened(&self.label, LABEL_CHARACTERS)
    }
}

/// The way in which counters were read, in words.
fn counters_read(rung: Rung) -> &'static str {
    match rung {
        Rung::TimeOnly => "none: time only",
        Rung::SoftwareEvents => "software events",
        Rung::GroupedRead => "read by a call",
        Rung::Rdpmc => "read by an instruction",
    }
}
