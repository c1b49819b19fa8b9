//! Code in another order.

use super::study::Writer;
use super::{Align, Table};
use crate::study::{COLD_AGAINST, CodeReport, ColdCalls};
use crate::visible::{one_line, shortened};
use lineup_model::figure::{UNKNOWN, change, mean, whole};

/// Longest name of a region.
const NAME_CHARACTERS: usize = 30;
/// The most regions on the first screen.
const MOST_REGIONS: usize = 2;
/// Longest sentence about the runs on the first screen.
const SENTENCE_CHARACTERS: usize = 150;

impl Writer {
    /// Before and after, on the first screen.
    pub(super) fn code(&mut self, code: &CodeReport) {
        if let Some(hints) = &code.hints {
            self.hints(hints);
        }
        // The first screen has room for one of both.
        let has_room = self.is_full() || code.optimisers.is_none();
        if code.whole_run.is_empty() && code.calls.is_empty() {
            return;
        }
        if !code.whole_run.is_empty() && has_room {
            self.whole_run(code);
        }
        if let Some(optimisers) = &code.optimisers {
            self.optimisers(optimisers);
        }
        if !has_room {
            // The needs of calls are left out as well.
        } else if let Some(cold) = &code.cold {
            self.cold_calls(cold);
        } else if !code.calls.is_empty() {
            self.heading("Code of a call");
            let columns = [("region", Align::Left), ("lines of 64", Align::Right), ("pages", Align::Right)];
            let mut table = Table::new(columns);
            let most = if self.is_full() { usize::MAX } else { MOST_REGIONS };
            for one in code.calls.iter().take(most) {
                let pair = |[before, after]: [f64; 2]| format!("{} → {}", mean(before), mean(after));
                let name = shortened(&one.region, NAME_CHARACTERS);
                table.row([name, pair(one.lines), pair(one.pages)]);
            }
            self.table(&table);
        }
        self.line("");
        if let Some(patch) = code.patch_in_words() {
            self.line(&shortened(&patch, if self.is_full() { usize::MAX } else { SENTENCE_CHARACTERS }));
        }
        let made = format!("By {}, {}.", code.optimiser, code.runs_in_words());
        if !self.is_full() {
            self.line(&shortened(&made, SENTENCE_CHARACTERS));
            return;
        }
        self.line(&one_line(&made));
        if code.ways_exact + code.ways_estimated > 0 {
            self.line(&format!(
                "{} ways between blocks had exact counts, {} were estimated.",
                whole(code.ways_exact),
                whole(code.ways_estimated)
            ));
        }
        if let Some(not_ordered) = code.not_ordered_in_words() {
            self.line(&one_line(&not_ordered));
        }
        if !code.optimiser_command.is_empty() {
            self.unbroken(&format!("  {}", one_line(&code.optimiser_command)));
        }
    }

    /// Figures of the whole run.
    fn whole_run(&mut self, code: &CodeReport) {
        self.heading("Code of the test run");
        let columns =
            [("", Align::Left), ("before", Align::Right), ("after", Align::Right), ("change", Align::Right)];
        let mut table = Table::new(columns);
        for one in &code.whole_run {
            let ratio = one.ratio().map_or_else(|| UNKNOWN.into(), change);
            table.row([one.what.clone(), whole(one.before), whole(one.after), ratio]);
        }
        self.table(&table);
    }

    /// Calls that find no code in the caches, in three orders.
    fn cold_calls(&mut self, cold: &ColdCalls) {
        self.heading("Code of a call, with none of it in the caches");
        let columns = [
            ("region", Align::Left),
            ("lines of 64: as linked, by counts, by calls", Align::Right),
            ("pages", Align::Right),
        ];
        let mut table = Table::new(columns);
        let most = if self.is_full() { usize::MAX } else { MOST_REGIONS };
        let regions = || cold.regions.iter().take(most);
        for one in regions() {
            let three = |figures: [f64; 3]| figures.map(mean).join("  ");
            table.row([shortened(&one.region, NAME_CHARACTERS), three(one.lines), three(one.pages)]);
        }
        self.table(&table);
        // The first screen has no room for times.
        if !self.is_full() {
            return;
        }
        if regions().any(|one| one.time.iter().any(Option::is_some)) {
            self.line("Times, of this one link of each order:");
        }
        for one in regions() {
            for (time, other) in one.time.iter().zip(COLD_AGAINST) {
                if let Some(time) = time {
                    let name = shortened(&one.region, NAME_CHARACTERS);
                    self.line(&format!("{name}: {}", time.in_words(other)));
                }
            }
        }
        cold.not_timed.iter().for_each(|why| self.line(&format!("Not timed {}", one_line(why))));
    }
}
