//! The result as comma-separated values: one line per metric and variant.

use super::report::Report;
use crate::terminal::csv::field;
use lineup_prove::compare::{ComparedMetric, Contrast, Estimated};
use lineup_stats::modes;

const HEADER: &str = "metric,unit,variant,status,runs,mean,deviation,median,modes,estimate,kind,low,high,\
     adjusted_p,verdict,smallest_detectable,links";

pub(crate) fn render(report: &Report) -> String {
    let mut out = HEADER.to_owned() + "\n";
    for metric in &report.comparison.metrics {
        for variant in 0..metric.variants.len() {
            out += &line(metric, variant, report.comparison.links);
            out.push('\n');
        }
    }
    out
}

fn line(metric: &ComparedMetric, index: usize, links: u64) -> String {
    let own = match metric.variants.get(index) {
        Some(Ok(values)) => {
            let summary = &values.summary;
            let deviation = summary.deviation.map(|deviation| deviation.to_string()).unwrap_or_default();
            format!(
                "observed,{},{},{deviation},{},{}",
                summary.n,
                summary.mean,
                summary.median(),
                modes::modes(&values.modes).count()
            )
        }
        Some(Err(absence)) => format!("{},,,,,", absence.words()),
        None => ",,,,,".into(),
    };
    let contrast = metric.contrasts.iter().find(|contrast| contrast.variant.0 == index);
    format!(
        "{},{},{},{own},{}",
        field(&metric.name),
        field(metric.unit.symbol()),
        Report::letter(index),
        contrast.map_or_else(|| ",,,,,,,".to_owned(), |contrast| against_first(contrast, links))
    )
}

fn against_first(contrast: &Contrast, links: u64) -> String {
    let (estimate, kind, interval) = match &contrast.estimate {
        Estimated::Ratio { judged, .. } => (judged.ratio, "ratio", judged.interval),
        Estimated::Difference(estimate) => (estimate.difference, "difference", estimate.interval),
    };
    let smallest = contrast.smallest_detectable.map(|effect| effect.to_string()).unwrap_or_default();
    format!(
        "{estimate},{kind},{},{},{},{},{smallest},{links}",
        interval.low,
        interval.high,
        contrast.adjusted_p,
        contrast.verdict.word()
    )
}
