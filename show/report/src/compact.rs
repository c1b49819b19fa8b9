//! A value with its unit, for narrow tables.

use lineup_prove::metric::Unit;

/// A value with its unit in at most nine characters where the unit is ours.
pub fn compact(value: f64, unit: &Unit) -> String {
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
    format!("{scaled:.digits$} {symbol}").trim_end().replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_tables_get_short_figures() {
        assert_eq!(compact(-29_265.5, &Unit::Nanoseconds), "−29.3 µs");
        assert_eq!(compact(4_374_528.0, &Unit::Bytes), "4.17 MiB");
        assert_eq!(compact(1_171_186_635.0, &Unit::Events), "1.17 G");
        assert_eq!(compact(123_456.0, &Unit::Events), "123 k");
        assert_eq!(compact(0.0, &Unit::Nanoseconds), "0.00 ns");
    }
}
