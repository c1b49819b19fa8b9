//! The result as JSON, schema `lineup.compare/1` (docs/json.md).

use super::report::Report;
use anyhow::Result;
use lineup_prove::compare::{ComparedMetric, Contrast, Estimated, VariantValues};
use lineup_stats::modes::{self, Group};
use lineup_stats::paired::RatioEstimate;
use serde_json::{Value, json};

pub(crate) fn render(report: &Report) -> Result<String> {
    let plan = &report.plan;
    let value = json!({
        "schema": "lineup.compare/1",
        "commands": report.commands,
        "under": report.under,
        "blocks": report.comparison.blocks,
        "stopped": report.why_stopped(),
        "interrupted_by_signal": report.interrupted(),
        "level": plan.stop.level,
        "margin": plan.margin,
        "primary": plan.primary,
        "seed": plan.seed.0,
        "links": report.comparison.links,
        "failed_runs": report.comparison.failed_runs,
        "disturbance": report.disturbance(),
        "false_alarms": report.false_alarms.map(|alarms| json!({
            "replays": alarms.replays,
            "alarms": alarms.alarms,
            "rate": alarms.rate(),
        })),
        "metrics": report.comparison.metrics.iter().map(metric).collect::<Vec<_>>(),
        "runs": runs(report),
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn metric(metric: &ComparedMetric) -> Value {
    let variant = |variant: &Result<VariantValues, _>| match variant {
        Ok(values) => observed(values),
        Err(absence) => json!({ "status": lineup_prove::metric::Absence::words(*absence) }),
    };
    json!({
        "name": metric.name,
        "unit": metric.unit.symbol(),
        "variants": metric.variants.iter().map(variant).collect::<Vec<_>>(),
        "contrasts": metric.contrasts.iter().map(contrast).collect::<Vec<_>>(),
    })
}

fn observed(values: &VariantValues) -> Value {
    let group = |group: &Group| json!({ "count": group.count, "mean": group.mean, "low": group.low, "high": group.high });
    let modes: Vec<Value> = modes::modes(&values.modes).map(group).collect();
    let outliers: Vec<Value> = modes::outliers(&values.modes).map(group).collect();
    json!({
        "status": "observed",
        "mean": values.summary.mean,
        "deviation": values.summary.deviation,
        "quantiles": values.summary.quartiles,
        "modes": modes,
        "outliers": outliers,
        "drifts": values.series.map(|series| series.drifts()),
        "drift": values.series.map(|series| series.drift),
        "remembers": values.series.map(|series| series.remembers()),
        "autocorrelation": values.series.map(|series| series.autocorrelation),
        "values": values.values,
    })
}

fn contrast(contrast: &Contrast) -> Value {
    let estimate = match &contrast.estimate {
        Estimated::Ratio { judged, paired } => json!({
            "kind": "ratio",
            "judged": ratio(judged),
            "paired_t": ratio(paired),
        }),
        Estimated::Difference(estimate) => json!({
            "kind": "difference",
            "difference": estimate.difference,
            "interval": [estimate.interval.low, estimate.interval.high],
            "p_value": estimate.p_value,
        }),
    };
    json!({
        "variant": contrast.variant.0,
        "against": 0,
        "estimate": estimate,
        "adjusted_p": contrast.adjusted_p,
        "verdict": contrast.verdict.word(),
        "within_margin": contrast.within_margin,
        "smallest_detectable": contrast.smallest_detectable,
        "link_share": contrast.link_share,
    })
}

fn ratio(estimate: &RatioEstimate) -> Value {
    json!({
        "ratio": estimate.ratio,
        "interval": [estimate.interval.low, estimate.interval.high],
        "p_value": estimate.p_value,
    })
}

/// Every timed run in order, with its block and its CPUs.
fn runs(report: &Report) -> Vec<Value> {
    let runs = report.collected.runs.iter();
    runs.map(|(slot, run)| {
        json!({
            "variant": slot.variant.0,
            "block": slot.block,
            "elapsed_ns": run.wall_ns,
            "cpus": run.cpus,
        })
    })
    .collect()
}
