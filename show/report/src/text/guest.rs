//! Two kernels that were built and booted, side by side.

use super::study::Writer;
use super::{Align, Table};
use crate::study::{GuestComparison, MeanCost};
use crate::visible::one_line;
use lineup_model::figure::{mean, whole};

impl Writer {
    pub(super) fn guest(&mut self, guest: &GuestComparison) {
        self.heading("Two kernels, booted");
        for fact in &guest.compared {
            self.line(&format!("- {}: {}", one_line(&fact.name), one_line(&fact.value)));
        }
        if !guest.types.is_empty() {
            let number = |name| (name, Align::Right);
            let mut table = Table::new([
                ("type", Align::Left),
                ("region", Align::Left),
                number("lines before"),
                number("predicted"),
                number("lines after"),
            ]);
            for one in &guest.types {
                let lines = [one.before, one.predicted, one.after].map(mean);
                let names = [&one.type_name, &one.region].map(|name| one_line(name).into_owned());
                table.row(names.into_iter().chain(lines));
            }
            self.table_with(&table, |text| text);
        }
        for costs in &guest.costs {
            let (before, after) = (whole(costs.calls_before), whole(costs.calls_after));
            self.line(&format!("{}: {before} calls before, {after} after", one_line(&costs.region)));
            costs.means.iter().for_each(|cost| self.unbroken(&format!("  {}", in_words(cost))));
        }
    }
}

fn in_words(cost: &MeanCost) -> String {
    let difference = match cost.difference {
        Some((low, high)) => format!("difference {low:+.2} to {high:+.2} at 95 %"),
        None => "too few calls for an interval".into(),
    };
    format!("{} {} → {} a call, {difference}", cost.name, mean(cost.before), mean(cost.after))
}
