//! Histograms of several series over each other.

use super::scale::{Scale, anchor, round};
use lineup_model::figure::{mean, share};
use maud::{Markup, html};

/// One series of a histogram.
#[derive(Clone, PartialEq, Debug)]
pub struct HistogramSeries {
    /// Its name in the legend.
    pub label: String,
    /// Its bars. They need not touch; those without width are drawn as wide as one unit.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bar {
    /// Its lower end, in the unit of the axis.
    pub from: f64,
    /// Its upper end.
    pub to: f64,
    /// The number of values in it; the series' bars are shown as shares of their sum.
    pub count: u64,
}

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 32.0;

/// Histograms over each other: the height of a bar is its share of its own series. `axis` names the counted quantity
/// and its unit; `title` describes the figure in words.
pub fn histogram_overlay(title: &str, axis: &str, series: &[HistogramSeries]) -> Markup {
    let all = || series.iter().flat_map(|one| &one.bars);
    let low = all().map(|bar| bar.from).fold(f64::INFINITY, f64::min);
    let high = all().map(|bar| bar.to).fold(f64::NEG_INFINITY, f64::max);
    let margin = ((high - low) * 0.04).max(0.5);
    let x = Scale::new(low - margin, high + margin, LEFT, WIDTH - RIGHT);
    let y = Scale::new(0.0, 1.0, HEIGHT - BOTTOM, TOP);
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
            title { (title) }
            @for tick in [0.0, 0.5, 1.0] {
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y.place(tick)) y2=(y.place(tick)) {}
                text.tick x=(LEFT - 5.0) y=(y.place(tick) + 3.5) text-anchor="end" { (format!("{:.0} %", 100.0 * tick)) }
            }
            @for tick in x.ticks(6) {
                @let label = mean(tick);
                text.tick x=(x.place(tick)) y=(HEIGHT - BOTTOM + 13.0) text-anchor=(anchor(x.place(tick), &label, WIDTH)) { (label) }
            }
            text.axis x=((LEFT + WIDTH - RIGHT) / 2.0) y=(HEIGHT - 4.0) text-anchor="middle" { (axis) }
            @for (index, one) in series.iter().enumerate() { (bars(index, one, &x, &y)) }
        }
    }
}

fn bars(index: usize, series: &HistogramSeries, x: &Scale, y: &Scale) -> Markup {
    let total: f64 = series.bars.iter().map(|bar| bar.count as f64).sum();
    html! {
        g class=(format!("series s{index}")) {
            @for bar in series.bars.iter().filter(|bar| bar.count > 0) {
                @let part = bar.count as f64 / total;
                @let top = y.place(part);
                @let left = x.place(bar.from);
                rect x=(left) y=(top) width=(round((x.place(bar.to) - left).max(2.0))) height=(round((y.place(0.0) - top).max(1.0))) {
                    title { (series.label) ": " (mean((bar.from + bar.to) / 2.0)) " – " (share(part)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(label: &str, bars: &[(f64, u64)]) -> HistogramSeries {
        let bars =
            bars.iter().map(|(at, count)| Bar { from: at - 0.4, to: at + 0.4, count: *count }).collect();
        HistogramSeries { label: label.into(), bars }
    }

    #[test]
    fn heights_are_shares_of_their_own_series() {
        let one = series("before", &[(1.0, 10), (2.0, 30)]);
        let svg = histogram_overlay("t", "lines", &[one]).into_string();
        // The plot is 110 high: a quarter and three quarters of it.
        assert!(svg.contains(r#"height="27.5""#) && svg.contains(r#"height="82.5""#), "{svg}");
    }

    #[test]
    fn one_value_is_drawn_too_and_none_does_no_harm() {
        let svg = histogram_overlay("t", "lines", &[series("before", &[(130.0, 5)])]).into_string();
        assert!(svg.contains(r#"height="110""#), "{svg}");
        let empty = histogram_overlay("t", "lines", &[series("none", &[])]).into_string();
        assert!(!empty.contains("NaN") && !empty.contains("inf"), "{empty}");
    }

    #[test]
    fn labels_are_escaped() {
        let svg = histogram_overlay("<script>", "\"x\"", &[series("<b>", &[(1.0, 1)])]).into_string();
        assert!(!svg.contains("<script>") && !svg.contains("<b>"), "{svg}");
    }
}
