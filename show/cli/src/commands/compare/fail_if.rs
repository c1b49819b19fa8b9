//! `--fail-if 'time > +1%'`: a bound for continuous integration.

use lineup_model::figure;
use lineup_prove::compare::{Comparison, Estimated};
use lineup_prove::links::of_links;
use lineup_prove::metric::ELAPSED;
use lineup_stats::interval::Interval;
use std::str::FromStr;

/// A bound on the change of a metric.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Bound {
    metric: String,
    /// True for `>`, false for `<`.
    above: bool,
    /// The ratio at the bound: 1.01 for +1 %.
    ratio: f64,
    text: String,
}

impl FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let complaint = || format!("{text:?} is not a bound; write 'time > +1%' or 'instructions < -5%'");
        let at = text.find(['<', '>']).ok_or_else(complaint)?;
        let (metric, rest) = text.split_at(at);
        let number = rest[1..].trim().strip_suffix('%').ok_or_else(complaint)?;
        let percent: f64 = number.trim().parse().map_err(|_| complaint())?;
        let metric = match metric.trim() {
            "" => return Err(complaint()),
            "time" => ELAPSED.to_owned(),
            name => name.to_owned(),
        };
        if !percent.is_finite() || percent <= -100.0 {
            return Err(complaint());
        }
        Ok(Self { metric, above: rest.starts_with('>'), ratio: 1.0 + percent / 100.0, text: text.into() })
    }
}

impl Bound {
    /// The sentences about variants that are beyond the bound for sure: the whole interval lies past
    /// it. An error when the metric was not compared as a ratio.
    pub(crate) fn broken(&self, comparison: &Comparison) -> anyhow::Result<Vec<String>> {
        let metric = comparison.metrics.iter().find(|metric| metric.name == self.metric);
        let contrasts = metric.map(|metric| metric.contrasts.as_slice()).unwrap_or_default();
        if contrasts.is_empty() {
            let names: Vec<&str> = comparison.metrics.iter().map(|metric| metric.name.as_str()).collect();
            anyhow::bail!(
                "--fail-if {:?}: {} was not compared; there are {}",
                self.text,
                self.metric,
                names.join(", ")
            );
        }
        let mut sentences = Vec::new();
        for contrast in contrasts {
            let Estimated::Ratio { judged, .. } = &contrast.estimate else {
                anyhow::bail!("--fail-if {:?}: {} has values of zero and no ratio", self.text, self.metric);
            };
            if self.is_past(&judged.interval) {
                sentences.push(format!(
                    "the {} variant fails {:?}: {} changed by {} to {}, {}",
                    contrast.variant,
                    self.text,
                    self.metric,
                    figure::change(judged.interval.low),
                    figure::change(judged.interval.high),
                    of_links(comparison.links),
                ));
            }
        }
        Ok(sentences)
    }

    fn is_past(&self, interval: &Interval) -> bool {
        if self.above { interval.low > self.ratio } else { interval.high < self.ratio }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_and_only_a_whole_interval_breaks_them() {
        let bound: Bound = "time > +1%".parse().unwrap();
        assert_eq!((bound.metric.as_str(), bound.above), ("elapsed", true));
        let interval = |low, high| Interval { low, high, level: 0.95 };
        assert!(bound.is_past(&interval(1.02, 1.03)));
        assert!(!bound.is_past(&interval(1.005, 1.03)));
        let gain: Bound = "instructions<-5%".parse().unwrap();
        assert!(gain.is_past(&interval(0.9, 0.94)) && !gain.is_past(&interval(0.9, 0.96)));
    }

    #[test]
    fn what_is_no_bound_is_refused() {
        for text in ["time", "> 1%", "time > 1", "time > x%", "time < -100%", "time > nan%"] {
            assert!(text.parse::<Bound>().is_err(), "{text}");
        }
    }
}
