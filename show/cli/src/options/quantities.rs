//! Shares and spans of time as people type them.

use std::str::FromStr;

/// A share of a cost, typed as `1%` or `0.01`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Share(pub(crate) f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        let share = number.trim().parse::<f64>().ok().map(|value| value / unit);
        match share {
            Some(share) if share.is_finite() && share >= 0.0 => Ok(Share(share)),
            _ => Err(format!("{text:?} is not a share; write 1% or 0.01")),
        }
    }
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
    fn shares_and_spans() {
        assert_eq!("0.5%".parse(), Ok(Share(0.005)));
        assert_eq!("0.01".parse(), Ok(Share(0.01)));
        assert_eq!("2m".parse(), Ok(Span(120_000_000_000)));
        assert_eq!("500ms".parse(), Ok(Span(500_000_000)));
        assert_eq!("3".parse(), Ok(Span(3_000_000_000)));
        for bad in ["", "x", "-1%", "nan", "inf"] {
            assert!(bad.parse::<Share>().is_err() && bad.parse::<Span>().is_err(), "{bad}");
        }
    }
}
