//! The result as JSON, schema `lineup.measure/1` (docs/json.md).

use super::report::Report;
use anyhow::Result;
use lineup_prove::measure::{DerivedRatio, MeasuredMetric};
use serde_json::{Value, json};

pub(crate) fn render(report: &Report) -> Result<String> {
    let value = json!({
        "schema": "lineup.measure/1",
        "command": report.command,
        "runs": report.measurement.runs,
        "failed_runs": report.failed_runs(),
        "interrupted_by_signal": report.interrupted.map(|interrupted| interrupted.signal),
        "metrics": report.measurement.metrics.iter().map(metric).collect::<Vec<_>>(),
        "ratios": report.measurement.ratios.iter().map(ratio).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn metric(metric: &MeasuredMetric) -> Value {
    match &metric.summary {
        Err(absence) => json!({
            "name": metric.name,
            "unit": metric.unit.symbol(),
            "status": absence.words(),
        }),
        Ok(summary) => json!({
            "name": metric.name,
            "unit": metric.unit.symbol(),
            "status": "observed",
            "mean": summary.mean,
            "standard_error": summary.standard_error(),
            "deviation": summary.deviation,
            "quantiles": summary.quartiles,
            "smallest_share_counted": metric.smallest_share,
            "values": metric.values,
        }),
    }
}

fn ratio(ratio: &DerivedRatio) -> Value {
    json!({
        "name": ratio.name,
        "beside": ratio.beside,
        "ratio": ratio.ratio,
        "interval": ratio.interval.map(|interval| [interval.low, interval.high]),
        "level": ratio.interval.map(|interval| interval.level),
    })
}
