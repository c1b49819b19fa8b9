//! Several optimisers' versions of a program.

use super::study::Writer;
use super::{Align, Table};
use crate::study::Optimisers;
use crate::visible::{one_line, shortened};
use lineup_model::figure::whole;

/// Longest reason on the first screen.
const REASON_CHARACTERS: usize = 150;

impl Writer {
    /// One table of all: user times on the first screen; in the full report elapsed times and figures of the whole run,
    /// too.
    pub(super) fn optimisers(&mut self, table: &Optimisers) {
        self.heading(table.heading());
        let columns = [("program", Align::Left), ("user time", Align::Right), ("elapsed time", Align::Right)];
        // Two intervals do not fit side by side on the first screen.
        let most = if self.is_full() { 3 } else { 2 };
        let mut times = Table::new(columns.into_iter().take(most));
        for row in &table.rows {
            times.row([row.name.clone(), row.user_in_words(), row.elapsed_in_words()]);
        }
        self.table(&times);
        for pair in &table.pairs {
            self.line(&format!("{}.", one_line(&pair.in_words())));
        }
        for together in table.together.iter().chain(&table.patch_together) {
            self.line(&format!("{}.", one_line(&together.in_words())));
        }
        for one in &table.not_observed {
            let why = format!("Not observed: {}: {}", one.name, one.why);
            self.line(&if self.is_full() {
                one_line(&why).into_owned()
            } else {
                shortened(&why, REASON_CHARACTERS)
            });
        }
        self.line(&table.times_in_words());
        if self.is_full() {
            self.optimised_figures(table);
        }
    }

    fn optimised_figures(&mut self, table: &Optimisers) {
        let Some(first) = table.rows.first() else { return };
        self.line("");
        let names = std::iter::once(("", Align::Left));
        let whats = first.figures.iter().map(|figure| (figure.what.as_str(), Align::Right));
        let mut figures = Table::new(names.chain(whats));
        for row in &table.rows {
            let counts = row.figures.iter().map(|figure| whole(figure.count));
            figures.row(std::iter::once(row.name.clone()).chain(counts));
        }
        self.table(&figures);
        for row in &table.rows {
            let effects =
                row.effects.as_ref().map(|effects| format!(" Effects {effects}.")).unwrap_or_default();
            self.line(&one_line(&format!("- {}: {}.{effects}", row.name, row.made)));
        }
    }
}
