//! The result as comma-separated values: one line per metric.

use crate::terminal::csv::field;
use lineup_prove::measure::{MeasuredMetric, Measurement};

const HEADER: &str =
    "metric,unit,status,runs,mean,standard_error,deviation,min,p25,median,p75,max,smallest_share";

pub(crate) fn render(measurement: &Measurement) -> String {
    let lines = measurement.metrics.iter().map(line);
    std::iter::once(HEADER.to_owned()).chain(lines).map(|line| line + "\n").collect()
}

fn line(metric: &MeasuredMetric) -> String {
    let optional = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let (name, unit) = (field(&metric.name), field(metric.unit.symbol()));
    match &metric.summary {
        Err(absence) => format!("{name},{unit},{},,,,,,,,,,", absence.words()),
        Ok(summary) => {
            let quartiles: Vec<String> = summary.quartiles.iter().map(f64::to_string).collect();
            format!(
                "{name},{unit},observed,{},{},{},{},{},{}",
                summary.n,
                summary.mean,
                optional(summary.standard_error()),
                optional(summary.deviation),
                quartiles.join(","),
                optional(metric.smallest_share),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_as_many_fields_as_the_header() {
        let absent = MeasuredMetric {
            name: "cycles".into(),
            unit: lineup_prove::metric::Unit::Events,
            summary: Err(lineup_prove::metric::Absence::NotSupported),
            smallest_share: None,
            values: Vec::new(),
        };
        assert_eq!(line(&absent).split(',').count(), HEADER.split(',').count());
        let summary = lineup_stats::summary::Summary::of(&[1.0, 2.0]).unwrap();
        let seen = MeasuredMetric { summary: Ok(summary), ..absent };
        assert_eq!(line(&seen).split(',').count(), HEADER.split(',').count());
    }
}
