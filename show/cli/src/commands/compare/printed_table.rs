//! `lineup compare --from-table`: a comparison from printed figures.

use anyhow::{Context, Result, bail};
use lineup_model::figure;
use lineup_stats::paired::RatioEstimate;
use lineup_stats::published::{PrintedMean, ratio};
use lineup_stats::summary::Summary;
use lineup_stats::verdict::{Judgement, Verdict, judge};
use lineup_stats::{holm, modes};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// One variant of one metric as printed.
#[derive(Clone, PartialEq, Debug)]
struct Side {
    variant: String,
    printed: PrintedMean,
    /// The number of groups of values; `None` when only a mean was printed.
    groups: Option<usize>,
}

/// One metric of a table: the first variant and those compared with it.
struct Row {
    metric: String,
    first: Side,
    others: Vec<(Side, RatioEstimate, Judgement)>,
}

/// Reads a table and judges every variant against the first one of its metric.
pub(crate) fn compare(path: &Path, margin: f64, level: f64, as_json: bool) -> Result<String> {
    let text = lineup_mapping::read_text(path).with_context(|| format!("reading {}", path.display()))?;
    let rows = judge_rows(parse(&text).with_context(|| path.display().to_string())?, margin, level)?;
    if as_json { to_json(&rows, margin, level) } else { Ok(to_text(&rows, margin, level)) }
}

/// Parses lines `metric,variant,MEAN,ERROR,RUNS` (an error in per cent or in the unit), or `metric,variant,VALUE` once
/// per run; `#` starts a comment. Returns metrics in order, each with its variants in order.
fn parse(text: &str) -> Result<Vec<(String, Vec<Side>)>> {
    let mut means: Vec<(String, Side)> = Vec::new();
    let mut raw: Vec<(String, String, Vec<f64>)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let place = || format!("line {}: {line:?}", index + 1);
        match fields.as_slice() {
            [""] => {}
            [metric, variant, value] => {
                let value = value.parse::<f64>().with_context(place)?;
                let known = raw.iter_mut().find(|(m, v, _)| m == metric && v == variant);
                match known {
                    Some((_, _, values)) => values.push(value),
                    None => raw.push(((*metric).into(), (*variant).into(), vec![value])),
                }
            }
            [metric, variant, mean, error, runs] => {
                let (mean, runs) = (mean.parse().with_context(place)?, runs.parse().with_context(place)?);
                let printed = match error.strip_suffix('%') {
                    Some(error) => {
                        PrintedMean::with_percent(mean, error.trim().parse().with_context(place)?, runs)
                    }
                    None => PrintedMean { mean, standard_error: error.parse().with_context(place)?, runs },
                };
                means.push(((*metric).into(), Side { variant: (*variant).into(), printed, groups: None }));
            }
            _ => bail!("{}: write metric,variant,MEAN,ERROR,RUNS or metric,variant,VALUE", place()),
        }
    }
    for (metric, variant, values) in raw {
        let summary = Summary::of(&values)?;
        let deviation =
            summary.deviation.with_context(|| format!("{metric} of {variant} has one value only"))?;
        let printed = PrintedMean::with_deviation(summary.mean, deviation, values.len());
        means.push((
            metric,
            Side { variant, printed, groups: Some(modes::modes(&modes::find(&values)?).count()) },
        ));
    }
    let mut table: Vec<(String, Vec<Side>)> = Vec::new();
    for (metric, side) in means {
        match table.iter_mut().find(|(known, _)| *known == metric) {
            Some((_, sides)) => sides.push(side),
            None => table.push((metric, vec![side])),
        }
    }
    Ok(table)
}

fn judge_rows(table: Vec<(String, Vec<Side>)>, margin: f64, level: f64) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (metric, sides) in table {
        let mut sides = sides.into_iter();
        let Some(first) = sides.next() else { continue };
        let mut others = Vec::new();
        for side in sides {
            let estimate = ratio(first.printed, side.printed, level)
                .with_context(|| format!("{metric}: {} against {}", side.variant, first.variant))?;
            others.push((side, estimate, judge(&estimate, margin)));
        }
        if others.is_empty() {
            bail!("{metric} has one variant only; there is nothing to compare it with");
        }
        rows.push(Row { metric, first, others });
    }
    if rows.is_empty() {
        bail!("the table is empty");
    }
    correct(&mut rows, level);
    Ok(rows)
}

/// Holm's correction over all rows: a change that does not survive it gets the verdict that its interval supports.
fn correct(rows: &mut [Row], level: f64) {
    let mut family: Vec<_> = rows.iter_mut().flat_map(|row| row.others.iter_mut()).collect();
    let p_values: Vec<f64> = family.iter().map(|(_, estimate, _)| estimate.p_value).collect();
    for ((_, estimate, judgement), adjusted) in family.iter_mut().zip(holm::adjust(&p_values)) {
        estimate.p_value = adjusted;
        if judgement.verdict == Verdict::Changed && adjusted > 1.0 - level {
            judgement.verdict =
                if judgement.within_margin { Verdict::Equivalent } else { Verdict::Inconclusive };
        }
    }
}

fn to_text(rows: &[Row], margin: f64, level: f64) -> String {
    let mut out = format!("\n {} intervals, margin {}\n\n", figure::level(level), figure::level(margin));
    for row in rows {
        for (side, estimate, judgement) in &row.others {
            let (metric, variant, first) = (&row.metric, &side.variant, &row.first.variant);
            let _ = writeln!(out, "  {metric}: {variant} against {first}: {}", in_words(estimate, judgement));
            for side in [&row.first, side] {
                if let Some(groups) = side.groups.filter(|groups| *groups > 1) {
                    let _ = writeln!(
                        out,
                        "    {} falls into {groups} groups: its mean describes none of them",
                        side.variant
                    );
                }
            }
        }
    }
    out += "\n  Note: the piles were not measured in turn; a drift between them looks like a change.\n";
    out
}

/// An estimate and its verdict, as a comparison of runs words them.
fn in_words(estimate: &RatioEstimate, judgement: &Judgement) -> String {
    let (interval, verdict) = ([estimate.interval.low, estimate.interval.high], judgement.verdict);
    let figures = figure::estimated(estimate.ratio, interval);
    if !figure::is_estimate(interval[0], interval[1]) {
        return format!("{figures}  {verdict}");
    }
    let is_small = verdict == Verdict::Changed && judgement.within_margin;
    let small = if is_small { ", by less than the margin" } else { "" };
    let seen = figure::share(judgement.smallest_detectable);
    format!("{figures}  {verdict}{small} (p {:.4}; could have seen {seen})", estimate.p_value)
}

fn to_json(rows: &[Row], margin: f64, level: f64) -> Result<String> {
    let contrast = |(side, estimate, judgement): &(Side, RatioEstimate, Judgement)| {
        json!({
            "variant": side.variant,
            "groups": side.groups,
            "ratio": estimate.ratio,
            "interval": [estimate.interval.low, estimate.interval.high],
            "adjusted_p": estimate.p_value,
            "verdict": judgement.verdict.word(),
            "within_margin": judgement.within_margin,
            "smallest_detectable": judgement.smallest_detectable,
        })
    };
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "metric": row.metric,
                "against": row.first.variant,
                "groups": row.first.groups,
                "contrasts": row.others.iter().map(contrast).collect::<Vec<_>>(),
            })
        })
        .collect();
    let value = json!({ "schema": "lineup.printed/1", "level": level, "margin": margin, "metrics": rows });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# 200 runs each\ncycles,base,1171186635,0.08%,200\ncycles,patched,1175215649,0.08%,200\n\
        elapsed,base,1.122405684,0.05%,200\nelapsed,patched,1.122238659,0.06%,200\n";

    #[test]
    fn printed_means_get_verdicts() {
        let rows = judge_rows(parse(TABLE).unwrap(), 0.01, 0.95).unwrap();
        let verdicts: Vec<_> =
            rows.iter().map(|row| (row.others[0].2.verdict, row.others[0].2.within_margin)).collect();
        assert_eq!(verdicts, [(Verdict::Changed, true), (Verdict::Equivalent, true)]);
        assert!(to_text(&rows, 0.01, 0.95).contains("cycles: patched against base: +0.34 %"));
    }

    /// The same words as of runs: how small a change these figures would have shown.
    #[test]
    fn a_table_says_what_it_could_have_seen_or_that_it_has_no_estimate() {
        let text = |table: &str| to_text(&judge_rows(parse(table).unwrap(), 0.01, 0.95).unwrap(), 0.01, 0.95);
        assert!(text(TABLE).contains("could have seen 0.32 %"), "{}", text(TABLE));
        let scattered = text("c,a,1\nc,a,2\nc,b,1\nc,b,3\n");
        assert!(
            scattered.contains(figure::NO_ESTIMATE) && !scattered.contains("could have seen"),
            "{scattered}"
        );
    }

    #[test]
    fn printed_values_are_searched_for_groups() {
        let values = |variant: &str, values: &[f64]| -> String {
            values.iter().map(|value| format!("calls,{variant},{value}\n")).collect()
        };
        let text = values("before", &[14.1; 10])
            + &values("after", &[20.56, 20.57, 20.56, 15.5, 15.51, 15.5, 15.52, 15.51, 15.5, 15.51]);
        let table = parse(&text).unwrap();
        assert_eq!(table[0].1[1].groups, Some(2));
    }

    #[test]
    fn bad_tables_are_named_with_their_line() {
        for bad in ["a,b", "a,b,x", "a,b,1,2%,many", "a,b,1,x,3", ""] {
            let judged = parse(bad).and_then(|table| judge_rows(table, 0.01, 0.95));
            assert!(judged.is_err(), "{bad}");
        }
    }
}
