//! Numbers as people read them.

use lineup_prove::metric::Unit;
use lineup_report::figure::whole;
use std::fmt::Write;

/// Nanoseconds as seconds with nine digits.
pub(crate) fn seconds(nanoseconds: f64) -> String {
    format!("{:.9}", nanoseconds / 1e9)
}

/// A share as per cent with two digits.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

/// A relative change as signed per cent: `+0.27 %`; from a hundredfold on as a factor.
pub(crate) fn change(ratio: f64) -> String {
    if ratio >= 100.0 {
        return format!("×{ratio:.1e}");
    }
    let percent = 100.0 * (ratio - 1.0);
    let digits = if percent.abs() < 10.0 { 2 } else { 1 };
    format!("{percent:+.digits$} %")
}

/// A number with its thousands apart.
pub(crate) fn grouped(value: f64, digits: usize) -> String {
    let plain = format!("{:.digits$}", value.abs());
    let (whole, rest) = plain.split_once('.').map_or((plain.as_str(), ""), |(whole, rest)| (whole, rest));
    let mut figure = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            figure.push(',');
        }
        figure.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    if rest.is_empty() { format!("{sign}{figure}") } else { format!("{sign}{figure}.{rest}") }
}

/// Nanoseconds in the unit that suits their size.
pub(crate) fn duration(nanoseconds: f64) -> String {
    let size = nanoseconds.abs();
    if size >= 1e9 {
        format!("{:.4} s", nanoseconds / 1e9)
    } else if size >= 1e6 {
        format!("{:.4} ms", nanoseconds / 1e6)
    } else if size >= 1e3 {
        format!("{:.4} µs", nanoseconds / 1e3)
    } else {
        format!("{nanoseconds:.1} ns")
    }
}

/// A value with its unit in at most nine characters where the unit is ours: for narrow tables.
pub(crate) fn compact(value: f64, unit: &Unit) -> String {
    let nanoseconds = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (0.0, "ns")];
    let bytes = [(1073741824.0, "GiB"), (1048576.0, "MiB"), (1024.0, "KiB"), (0.0, "B")];
    let counts = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e5, "k"), (0.0, "")];
    let steps: &[(f64, &str)] = match unit {
        Unit::Nanoseconds => &nanoseconds,
        Unit::Bytes => &bytes,
        Unit::Events | Unit::Named(_) => &counts,
    };
    let (step, symbol) = steps.iter().find(|(step, _)| value.abs() >= *step).copied().unwrap_or((0.0, ""));
    let divisor = if symbol == "k" { 1e3 } else { step.max(1.0) };
    let scaled = value / divisor;
    let digits = if scaled.abs() >= 100.0 { 0 } else { 1 + usize::from(scaled.abs() < 10.0) };
    format!("{scaled:.digits$} {symbol}").trim_end().to_owned()
}

pub(crate) fn counted(value: u64, what: &str) -> String {
    format!("{} {what}{}", whole(value), if value == 1 { "" } else { "s" })
}

/// The number of rows that are not shown.
pub(crate) fn more(out: &mut String, all: usize, top: usize) {
    if all > top {
        let _ = writeln!(out, "{} more; --top shows more, --json all", all - top);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(1_171_186_635.0, 0), "1,171,186,635");
        assert_eq!(grouped(-1234.5, 1), "-1,234.5");
        assert_eq!(grouped(999.0, 0), "999");
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(change(1.0027), "+0.27 %");
        assert_eq!(change(0.5), "-50.0 %");
        assert_eq!(change(18_295.0), "×1.8e4");
    }

    #[test]
    fn narrow_tables_get_short_figures() {
        assert_eq!(compact(-29_265.5, &Unit::Nanoseconds), "-29.3 µs");
        assert_eq!(compact(4_374_528.0, &Unit::Bytes), "4.17 MiB");
        assert_eq!(compact(1_171_186_635.0, &Unit::Events), "1.17 G");
        assert_eq!(compact(123_456.0, &Unit::Events), "123 k");
        assert_eq!(compact(0.0, &Unit::Nanoseconds), "0.00 ns");
    }

    #[test]
    fn durations_pick_their_unit() {
        assert_eq!(duration(1.122405684e9), "1.1224 s");
        assert_eq!(duration(3500.0), "3.5000 µs");
        assert_eq!(duration(12.0), "12.0 ns");
    }
}
