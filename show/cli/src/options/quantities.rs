//! Percentages and spans of time as people type them.

use std::str::FromStr;

/// A larger percentage is a mistake: everything would be within such a margin.
const MOST_PERCENT: f64 = 100_000.0;

/// A percentage, typed as `1%` or `1`, as the share that it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Percentage(pub(crate) f64);

impl FromStr for Percentage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text);
        let percent = number.trim().parse::<f64>().ok();
        match percent {
            Some(percent) if percent > MOST_PERCENT => {
                Err(format!("{text:?} is more than the largest percentage, {MOST_PERCENT}%"))
            }
            Some(percent) if percent >= 0.0 => Ok(Percentage(percent / 100.0)),
            _ => Err(format!("{text:?} is no percentage; write 1% or 1")),
        }
    }
}

/// A percentage above zero.
pub(crate) fn above_zero(text: &str) -> Result<Percentage, String> {
    let percentage: Percentage = text.parse()?;
    Some(percentage).filter(|one| one.0 > 0.0).ok_or_else(|| format!("{text:?} is not above 0 %"))
}

/// A percentage of a whole: at most 100, as the share that it is.
pub(crate) fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().map(|Percentage(share)| share).filter(|share| *share <= 1.0);
    part.ok_or_else(|| format!("{text:?} is no percentage from 0 to 100"))
}

/// A span of time typed as `90s`, `2m`, `500ms` or plain seconds, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span(pub(crate) u64);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9), ("", 1e9)];
        let parsed = units.iter().find_map(|(unit, ns)| {
            let number = text.trim().strip_suffix(unit)?.trim();
            number.parse::<f64>().ok().map(|value| value * ns)
        });
        match parsed {
            Some(ns) if ns.is_finite() && ns >= 0.0 && ns < u64::MAX as f64 => Ok(Span(ns as u64)),
            _ => Err(format!("{text:?} is not a span of time; write 90s, 2m or 500ms")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_spans() {
        assert_eq!("0.5%".parse(), Ok(Percentage(0.005)));
        assert_eq!("1".parse(), Ok(Percentage(0.01)));
        assert_eq!("1000%".parse(), Ok(Percentage(10.0)));
        assert_eq!(part("2.5"), Ok(0.025));
        assert!(part("101").is_err() && part("NaN").is_err() && part("-1").is_err());
        assert_eq!(above_zero("0.1%"), Ok(Percentage(0.001)));
        assert!("99999999999999999999".parse::<Percentage>().is_err());
        assert!(above_zero("0%").is_err() && above_zero("-1").is_err());
        assert_eq!("2m".parse(), Ok(Span(120_000_000_000)));
        assert_eq!("500ms".parse(), Ok(Span(500_000_000)));
        assert_eq!("3".parse(), Ok(Span(3_000_000_000)));
        for bad in ["", "x", "-1%", "1%%", "nan", "inf", "1e400"] {
            assert!(bad.parse::<Percentage>().is_err() && bad.parse::<Span>().is_err(), "{bad}");
        }
    }
}
