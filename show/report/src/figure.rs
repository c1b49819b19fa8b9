//! Figures for people. An unknown value is shown as a dash, never as zero.

/// The sign for a figure that was not observed.
pub const UNKNOWN: &str = "–";

/// A whole number with its thousands apart.
///
/// ```
/// assert_eq!(lineup_report::figure::whole(1234567), "1,234,567");
/// ```
pub fn whole(value: u64) -> String {
    let digits = value.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A mean or rate: whole when it is whole, else with as many decimals as its size deserves.
///
/// ```
/// use lineup_report::figure::mean;
/// assert_eq!(mean(2.0), "2");
/// assert_eq!(mean(2.345), "2.35");
/// assert_eq!(mean(0.0123), "0.012");
/// assert_eq!(mean(1234.56), "1,235");
/// assert_eq!(mean(f64::NAN), "–");
/// ```
pub fn mean(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.into();
    }
    let size = value.abs();
    if size >= 1000.0 {
        let sign = if value < 0.0 { "−" } else { "" };
        return format!("{sign}{}", whole(size.round() as u64));
    }
    let decimals = match size {
        0.0 => 0,
        s if s < 0.1 => 3,
        s if s < 10.0 => 2,
        _ => 1,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" || text == "0" && value != 0.0 { "≈ 0".into() } else { text.replace('-', "−") }
}

/// A figure, or the dash when it is unknown.
pub fn mean_or_unknown(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.into(), mean)
}

/// A change of a mean with its sign, or the dash when it is unknown.
pub fn signed(change: Option<f64>) -> String {
    match change {
        None => UNKNOWN.into(),
        Some(change) if change > 0.0 => format!("+{}", mean(change)),
        Some(change) => mean(change),
    }
}

/// A share as a percentage with one decimal; never rounded up to 100 nor down to 0.
///
/// ```
/// use lineup_report::figure::share;
/// assert_eq!(share(0.9534), "95.3 %");
/// assert_eq!(share(0.99999), "> 99.9 %");
/// assert_eq!(share(0.0001), "< 0.1 %");
/// assert_eq!(share(1.0), "100 %");
/// ```
pub fn share(value: f64) -> String {
    match value {
        v if !v.is_finite() => UNKNOWN.into(),
        0.0 => "0 %".into(),
        1.0 => "100 %".into(),
        v if v > 0.0 && v < 0.001 => "< 0.1 %".into(),
        v if v > 0.999 && v < 1.0 => "> 99.9 %".into(),
        v => format!("{:.1} %", 100.0 * v),
    }
}

/// A change of a ratio as a signed percentage: 0.965 is `−3.50 %`.
///
/// ```
/// use lineup_report::figure::change;
/// assert_eq!(change(0.965), "−3.50 %");
/// assert_eq!(change(1.002), "+0.20 %");
/// ```
pub fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    if !percent.is_finite() {
        return UNKNOWN.into();
    }
    let sign = if percent < 0.0 { "−" } else { "+" };
    format!("{sign}{:.2} %", percent.abs())
}

/// An interval whose upper end is more than this many times its lower one, and that includes 1, is no estimate.
const WIDEST: f64 = 4.0;

/// True when a ratio's interval is an estimate: one that excludes 1 is, and so is a narrow one.
///
/// ```
/// use lineup_report::figure::is_estimate;
/// assert!(is_estimate(0.9, 1.1) && is_estimate(0.01, 0.5));
/// assert!(!is_estimate(0.0055, 69.06));
/// ```
pub fn is_estimate(low: f64, high: f64) -> bool {
    let holds_one = low <= 1.0 && 1.0 <= high;
    !holds_one || (low > 0.0 && high / low <= WIDEST)
}

/// A change with its interval: `−3.50 % [−5.00 %, −2.00 %]`, or that there is no estimate.
///
/// ```
/// use lineup_report::figure::estimated;
/// assert_eq!(estimated(0.965, [0.95, 0.98]), "−3.50 % [−5.00 %, −2.00 %]");
/// assert_eq!(estimated(1.2, [0.0055, 69.06]), "no estimate: runs differ by more than any change would");
/// ```
pub fn estimated(ratio: f64, [low, high]: [f64; 2]) -> String {
    match is_estimate(low, high) {
        true => format!("{} [{}, {}]", change(ratio), change(low), change(high)),
        false => NO_ESTIMATE.into(),
    }
}

/// Stands for an estimate where the interval says nothing.
pub const NO_ESTIMATE: &str = "no estimate: runs differ by more than any change would";

/// A speed as a factor of another.
///
/// ```
/// use lineup_report::figure::factor;
///
/// assert_eq!(factor(1.3549), "1.35×");
/// ```
pub fn factor(times: f64) -> String {
    if times.is_finite() { format!("{times:.2}×") } else { UNKNOWN.into() }
}

/// A length of time.
///
/// ```
/// use lineup_report::figure::time_ns;
/// assert_eq!(time_ns(1_234_567.0), "1.235 ms");
/// assert_eq!(time_ns(87.0), "87 ns");
/// ```
pub fn time_ns(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        v if !v.is_finite() => return UNKNOWN.into(),
        v if v < 1e3 => (ns, "ns"),
        v if v < 1e6 => (ns / 1e3, "µs"),
        v if v < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    if unit == "ns" { format!("{value:.0} ns") } else { format!("{value:.3} {unit}") }
}

/// A length of time, that of a call: with a tenth of a nanosecond below a microsecond.
///
/// ```
/// use lineup_report::figure::short_time_ns;
/// assert_eq!(short_time_ns(9.37), "9.4 ns");
/// assert_eq!(short_time_ns(1_234.0), "1.234 µs");
/// ```
pub fn short_time_ns(ns: f64) -> String {
    if ns.abs() < 1e3 { format!("{ns:.1} ns") } else { time_ns(ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        assert_eq!(whole(0), "0");
        assert_eq!(whole(999), "999");
        assert_eq!(whole(1000), "1,000");
        assert_eq!(whole(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn what_is_unknown_is_not_zero() {
        assert_eq!(mean_or_unknown(None), UNKNOWN);
        assert_eq!(mean_or_unknown(Some(0.0)), "0");
        assert_eq!(share(f64::NAN), UNKNOWN);
        assert_eq!(time_ns(f64::INFINITY), UNKNOWN);
    }

    #[test]
    fn what_is_not_zero_is_not_shown_as_zero() {
        assert_eq!(mean(0.0001), "≈ 0");
        assert_eq!(mean(-0.00001), "≈ 0");
        assert_eq!(mean(100.0), "100");
        assert_eq!(mean(-3.5), "−3.5");
        assert_eq!(mean(-12345.0), "−12,345");
    }
}
