//! `lineup measure --derive`: arithmetic over measured and typed-in values, with the error of the result.

use super::args::Measure;
use crate::terminal::outcome::Outcome;
use crate::terminal::output::write_result;
use anyhow::{Context, Result, anyhow, bail};
use lineup_model::figure;
use lineup_stats::expression::Expression;
use lineup_stats::propagate::{Derived, Uncertain, derive};
use lineup_stats::random::Seed;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Computes the expression from the inputs, and prints it with its error.
pub(super) fn run(text: &str, measure: &Measure) -> Result<Outcome> {
    let expression = Expression::parse(text).map_err(|error| anyhow!("the expression {text:?}, {error}"))?;
    let mut inputs = BTreeMap::new();
    for path in &measure.from {
        inputs.extend(from_measurement(path)?);
    }
    for input in &measure.command {
        let (name, value) = typed(&input.to_string_lossy())?;
        inputs.insert(name, value);
    }
    let derived = derive(&expression, &inputs, Seed::default())?;
    let rendered = if measure.format.json { to_json(text, &derived)? } else { to_text(text, &derived) };
    write_result(measure.output.as_deref(), &rendered)?;
    Ok(Outcome::Done)
}

/// One `NAME=VALUE±ERROR`.
fn typed(input: &str) -> Result<(String, Uncertain)> {
    let complaint = || anyhow!("{input:?} is not an input; write NAME=VALUE±ERROR or NAME=@FILE");
    let (name, value) = input.split_once('=').ok_or_else(complaint)?;
    if name.is_empty() {
        return Err(complaint());
    }
    if let Some(path) = value.strip_prefix('@') {
        return Ok((name.into(), Uncertain::Measured(values_in(Path::new(path))?)));
    }
    let separator = ["±", "+/-", "+-"].into_iter().find_map(|sign| value.split_once(sign));
    let (value, error) = separator.unwrap_or((value, "0"));
    let number = |text: &str| text.trim().parse::<f64>().map_err(|_| complaint());
    let (value, error) = (number(value)?, number(error)?);
    if error < 0.0 {
        bail!("{input:?}: an error cannot be negative");
    }
    Ok((name.into(), Uncertain::Typed { value, error }))
}

fn values_in(path: &Path) -> Result<Vec<f64>> {
    let text = lineup_mapping::read_text(path).with_context(|| format!("reading {}", path.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let parse = |(index, line): (usize, &str)| {
        let value = line.trim().parse::<f64>();
        value.with_context(|| format!("{}, line {}: {line:?} is not a number", path.display(), index + 1))
    };
    lines.map(parse).collect()
}

/// The metrics of a measurement as inputs.
fn from_measurement(path: &Path) -> Result<BTreeMap<String, Uncertain>> {
    let text = lineup_mapping::read_text(path).with_context(|| format!("reading {}", path.display()))?;
    let value: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
    if value["schema"] != "lineup.measure/1" {
        bail!("{} is not a lineup.measure/1 result; write one with `lineup measure --json`", path.display());
    }
    let metrics = value["metrics"].as_array().map(Vec::as_slice).unwrap_or_default();
    let input = |metric: &Value| {
        let values: Vec<f64> = metric["values"].as_array()?.iter().filter_map(Value::as_f64).collect();
        Some((metric["name"].as_str()?.to_owned(), Uncertain::Measured(values)))
    };
    Ok(metrics.iter().filter_map(input).collect())
}

fn to_text(expression: &str, derived: &Derived) -> String {
    let mut out = format!("{expression} = {}\n", with_error(derived.value, derived.error));
    if derived.value != 0.0 {
        let _ = writeln!(out, "  relative error {}", figure::share((derived.error / derived.value).abs()));
    }
    let mut shares = derived.shares.clone();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (name, share) in shares.iter().filter(|(_, share)| *share > 0.0) {
        let _ = writeln!(out, "  {:>7} of the squared error from {name}", figure::share(*share));
    }
    if derived.ways_disagree() {
        let interval = derived.resampled_interval;
        let _ = writeln!(
            out,
            "  resampling disagrees: median {:.6}, error {:.6}, 95 % of results in {:.6} … {:.6}\n  \
             (the errors are too large for linear propagation; trust the resampling)",
            derived.resampled_median, derived.resampled_error, interval.low, interval.high
        );
    }
    out
}

/// A value with its error, both to two significant digits of the error.
fn with_error(value: f64, error: f64) -> String {
    if error <= 0.0 {
        return format!("{value}");
    }
    let digits = (1.0 - error.log10().floor()).clamp(0.0, 15.0) as usize;
    format!("{value:.digits$} ± {error:.digits$}")
}

fn to_json(expression: &str, derived: &Derived) -> Result<String> {
    let interval = derived.resampled_interval;
    let value = json!({
        "schema": "lineup.derive/1",
        "expression": expression,
        "value": derived.value,
        "error": derived.error,
        "shares": derived.shares.iter().cloned().collect::<BTreeMap<_, _>>(),
        "resampled": {
            "median": derived.resampled_median,
            "error": derived.resampled_error,
            "interval": [interval.low, interval.high],
            "level": interval.level,
        },
        "ways_disagree": derived.ways_disagree(),
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read_in_three_spellings() {
        for text in ["mem=644.09±11.39", "mem=644.09+-11.39", "mem=644.09 +/- 11.39"] {
            let expected = Uncertain::Typed { value: 644.09, error: 11.39 };
            assert_eq!(typed(text).unwrap(), ("mem".to_owned(), expected));
        }
        for bad in ["mem", "=3", "x=", "x=1±-2", "x=1±y", "x=@/no/such/file"] {
            assert!(typed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_carry_two_digits_of_their_error() {
        assert_eq!(with_error(0.067243, 0.006963), "0.0672 ± 0.0070");
        assert_eq!(with_error(16535.11, 1677.71), "16535 ± 1678");
        assert_eq!(with_error(3.0, 0.0), "3");
    }
}
