//! Figures for people: each kind of quantity has one spelling, in terminals, pages and messages alike. An unknown value is a
//! dash, never zero; a minus is `−`.

/// The sign for a figure that was not observed.
pub const UNKNOWN: &str = "–";

/// A whole number with its thousands apart.
///
/// ```
/// assert_eq!(lineup_model::figure::whole(1234567), "1,234,567");
/// ```
pub fn whole(value: u64) -> String {
    apart(&value.to_string())
}

/// A count and what is counted, in the plural where it is not one.
///
/// ```
/// use lineup_model::figure::counted;
/// assert_eq!(counted(1, "call"), "1 call");
/// assert_eq!(counted(1200, "call"), "1,200 calls");
/// ```
pub fn counted(count: u64, singular: &str) -> String {
    format!("{} {singular}{}", whole(count), if count == 1 { "" } else { "s" })
}

/// A count with this many decimals and its thousands apart.
///
/// ```
/// assert_eq!(lineup_model::figure::grouped(-1234.5, 1), "−1,234.5");
/// ```
pub fn grouped(value: f64, decimals: usize) -> String {
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{}{rest}", apart(whole))
}

fn apart(digits: &str) -> String {
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
/// use lineup_model::figure::mean;
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

/// A share as a percentage, with two decimals below ten and one above; never rounded up to 100 nor down to 0.
///
/// ```
/// use lineup_model::figure::share;
/// assert_eq!(share(0.9534), "95.3 %");
/// assert_eq!(share(0.0423), "4.23 %");
/// assert_eq!(share(0.99999), "> 99.9 %");
/// assert_eq!(share(0.00001), "< 0.01 %");
/// assert_eq!(share(1.0), "100 %");
/// ```
pub fn share(value: f64) -> String {
    match value {
        v if !v.is_finite() => UNKNOWN.into(),
        0.0 => "0 %".into(),
        1.0 => "100 %".into(),
        v if v > 0.0 && v < 0.0001 => "< 0.01 %".into(),
        v if v > 0.999 && v < 1.0 => "> 99.9 %".into(),
        v => {
            let decimals = if v.abs() < 0.09995 { 2 } else { 1 };
            format!("{:.decimals$} %", 100.0 * v).replace('-', "−")
        }
    }
}

/// A level of confidence or a margin, with the decimals that it was given with.
///
/// ```
/// use lineup_model::figure::level;
/// assert_eq!(level(0.95), "95 %");
/// assert_eq!(level(0.005), "0.5 %");
/// ```
pub fn level(value: f64) -> String {
    format!("{} %", (value * 1e8).round() / 1e6)
}

/// A change of a ratio as a signed percentage; from a hundredfold on the factor.
///
/// ```
/// use lineup_model::figure::change;
/// assert_eq!(change(0.965), "−3.50 %");
/// assert_eq!(change(1.0027), "+0.27 %");
/// assert_eq!(change(18_295.0), "×1.8e4");
/// ```
pub fn change(ratio: f64) -> String {
    if !ratio.is_finite() {
        return UNKNOWN.into();
    }
    if ratio >= 100.0 {
        return format!("×{ratio:.1e}");
    }
    let percent = 100.0 * (ratio - 1.0);
    let sign = if percent < 0.0 { "−" } else { "+" };
    format!("{sign}{:.2} %", percent.abs())
}

/// An interval whose upper end is more than this many times its lower one, and that includes 1, is no estimate.
const WIDEST: f64 = 4.0;

/// True when a ratio's interval is an estimate: one that excludes 1 is, and so is a narrow one.
///
/// ```
/// use lineup_model::figure::is_estimate;
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
/// use lineup_model::figure::estimated;
/// assert_eq!(estimated(0.965, [0.95, 0.98]), "−3.50 % [−5.00 %, −2.00 %]");
/// assert_eq!(estimated(1.2, [0.0055, 69.06]), "no estimate: runs differ by more than any change would");
/// ```
pub fn estimated(ratio: f64, [low, high]: [f64; 2]) -> String {
    if is_estimate(low, high) { interval(ratio, [low, high]) } else { NO_ESTIMATE.into() }
}

/// A change with its interval, however wide.
pub fn interval(ratio: f64, [low, high]: [f64; 2]) -> String {
    format!("{} [{}, {}]", change(ratio), change(low), change(high))
}

/// Stands for an estimate where the interval says nothing.
pub const NO_ESTIMATE: &str = "no estimate: runs differ by more than any change would";

/// A speed as a factor of another.
///
/// ```
/// use lineup_model::figure::factor;
///
/// assert_eq!(factor(1.3549), "1.35×");
/// ```
pub fn factor(times: f64) -> String {
    if times.is_finite() { format!("{times:.2}×") } else { UNKNOWN.into() }
}

/// A length of time.
///
/// ```
/// use lineup_model::figure::time_ns;
/// assert_eq!(time_ns(1_234_567.0), "1.235 ms");
/// assert_eq!(time_ns(87.0), "87 ns");
/// assert_eq!(time_ns(-8_000.0), "−8.000 µs");
/// ```
pub fn time_ns(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        v if !v.is_finite() => return UNKNOWN.into(),
        v if v < 1e3 => (ns, "ns"),
        v if v < 1e6 => (ns / 1e3, "µs"),
        v if v < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let text = if unit == "ns" { format!("{value:.0} ns") } else { format!("{value:.3} {unit}") };
    text.replace('-', "−")
}

/// A length of time, that of a call: with a tenth of a nanosecond below a microsecond.
///
/// ```
/// use lineup_model::figure::short_time_ns;
/// assert_eq!(short_time_ns(9.37), "9.4 ns");
/// assert_eq!(short_time_ns(1_234.0), "1.234 µs");
/// ```
pub fn short_time_ns(ns: f64) -> String {
    if ns.abs() < 1e3 { format!("{ns:.1} ns").replace('-', "−") } else { time_ns(ns) }
}

/// A length of time in seconds with nine decimals, as lists of counters have it.
///
/// ```
/// assert_eq!(lineup_model::figure::seconds(1_500_000.0), "0.001500000");
/// ```
pub fn seconds(ns: f64) -> String {
    format!("{:.9}", ns / 1e9)
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
