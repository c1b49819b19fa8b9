//! Advice in words, and as a file of orders.

use super::{Answer, FleetAdvice, ServiceLines};
use lineup_model::figure;
use lineup_report::visible::one_line;
use std::fmt::Write;

/// The order as `lineup advise --order` reads it; `None` without an order.
pub fn order_file(advice: &FleetAdvice) -> Option<String> {
    let Answer::Order { order, .. } = &advice.answer else { return None };
    let members = order.join(",\n    ");
    Some(format!(
        "# The order for all services, of {} recordings, weighted by {}.\n{}:\n    {members}\n",
        advice.recordings, advice.weighted_by, advice.type_name
    ))
}

/// The advice as text: the order, gains and losses by service, and the parts left out.
pub fn text(advice: &FleetAdvice) -> String {
    let mut text = format!("{}\n\n", headline(advice));
    text += &table(advice);
    if let Answer::Order { moved, .. } = &advice.answer {
        let _ = writeln!(text, "\nMoved: {}", moved.join(", "));
    }
    for left_out in &advice.left_out {
        let _ = writeln!(text, "not in it: {left_out}");
    }
    text.lines().map(|line| one_line(line).into_owned() + "\n").collect()
}

fn headline(advice: &FleetAdvice) -> String {
    let FleetAdvice { type_name, recordings, .. } = advice;
    let over_all = percent(advice);
    match &advice.answer {
        Answer::Order { .. } => format!(
            "{type_name}: one order for all services needs {over_all} of its lines. Predicted from {recordings} recordings, not compiled."
        ),
        Answer::AlreadyGood => {
            format!(
                "{type_name}: it lies as well as any allowed order puts it over all, by {recordings} recordings."
            )
        }
        Answer::Refused { losers, .. } => format!(
            "{type_name}: no order was found that is good for all services that matter. The best over all needs {over_all} of its lines, and {} would need more than now.",
            losers.join(", ")
        ),
        Answer::Held { because } => format!("{type_name}: members may not be moved: {}", because.join("; ")),
    }
}

/// The change over all services.
fn percent(advice: &FleetAdvice) -> String {
    let sum =
        |of: fn(&ServiceLines) -> f64| advice.services.iter().map(|one| one.weight * of(one)).sum::<f64>();
    let (before, after) = (sum(|one| one.before), sum(|one| one.after));
    figure::change(after / before)
}

fn table(advice: &FleetAdvice) -> String {
    let head = ["service", advice.weighted_by, "lines now", "then", "its own best", ""].map(str::to_owned);
    let mut rows = vec![head];
    for one in &advice.services {
        let lines = |value: f64| format!("{value:.2}");
        let word = match (one.loses(), one.gain() > 0.0, one.matters) {
            (_, _, false) => "too small to be asked",
            (true, _, _) => "loses",
            (_, true, _) => "gains",
            _ => "as before",
        };
        let weight =
            if one.weight >= 100.0 { format!("{:.0}", one.weight) } else { format!("{:.3}", one.weight) };
        rows.push([
            one.service.clone(),
            weight,
            lines(one.before),
            lines(one.after),
            lines(one.at_best),
            word.into(),
        ]);
    }
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 | 5 => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
