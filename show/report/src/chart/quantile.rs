//! Samples side by side: every value as a dot, the quartiles as a box.

use super::scale::{Scale, round};
use maud::{Markup, html};

/// One sample.
#[derive(Clone, PartialEq, Debug)]
pub struct QuantileSeries {
    /// Its name.
    pub label: String,
    /// Its values, in any order; values that are not finite are left out.
    pub values: Vec<f64>,
}

const WIDTH: f64 = 420.0;
const LEFT: f64 = 64.0;
/// Half of the longest text of a tick.
const RIGHT: f64 = 36.0;
const ROW: f64 = 34.0;
const BOTTOM: f64 = 32.0;
/// More values than this are thinned to evenly spaced quantiles.
const MOST_DOTS: usize = 200;

/// One row per sample. `show` turns a value into the text of a tick; `axis` names the unit.
pub fn quantile_plot(
    title: &str,
    axis: &str,
    series: &[QuantileSeries],
    show: impl Fn(f64) -> String,
) -> Markup {
    let sorted: Vec<(&str, Vec<f64>)> =
        series.iter().map(|one| (one.label.as_str(), sorted(&one.values))).collect();
    let low = sorted.iter().filter_map(|(_, values)| values.first()).copied().fold(f64::INFINITY, f64::min);
    let high =
        sorted.iter().filter_map(|(_, values)| values.last()).copied().fold(f64::NEG_INFINITY, f64::max);
    let margin = (high - low) * 0.03;
    let x = Scale::new(low - margin, high + margin, LEFT, WIDTH - RIGHT);
    let height = ROW * sorted.len() as f64 + BOTTOM;
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(title) {
            title { (title) }
            @for tick in x.ticks(4) {
                line.grid x1=(x.place(tick)) x2=(x.place(tick)) y1="0" y2=(height - BOTTOM) {}
                text.tick x=(x.place(tick)) y=(height - BOTTOM + 13.0) text-anchor="middle" { (show(tick)) }
            }
            text.axis x=((LEFT + WIDTH - RIGHT) / 2.0) y=(height - 4.0) text-anchor="middle" { (axis) }
            @for (index, (label, values)) in sorted.iter().enumerate() {
                (row(index, label, values, &x))
            }
        }
    }
}

fn row(index: usize, label: &str, values: &[f64], x: &Scale) -> Markup {
    let middle = ROW * (index as f64 + 0.5);
    html! {
        g class=(format!("series s{index}")) {
            text.tick x=(LEFT - 8.0) y=(middle + 3.5) text-anchor="end" { (label) }
            @for (position, value) in thinned(values).into_iter().enumerate() {
                // Dots are spread over three heights, so that equal values stay distinguishable.
                circle.dot cx=(x.place(value)) cy=(middle + 4.0 * (position % 3) as f64 - 4.0) r="1.8" {}
            }
            @if let [Some(low), Some(mid), Some(high)] = [0.25, 0.5, 0.75].map(|p| quantile(values, p)) {
                rect.box x=(x.place(low)) y=(middle - 10.0) width=(round((x.place(high) - x.place(low)).max(1.0))) height="20" {}
                line.median x1=(x.place(mid)) x2=(x.place(mid)) y1=(middle - 13.0) y2=(middle + 13.0) {}
            }
        }
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// At most [`MOST_DOTS`] of the sorted values, evenly spaced by rank, both ends among them.
fn thinned(sorted: &[f64]) -> Vec<f64> {
    if sorted.len() <= MOST_DOTS {
        return sorted.to_vec();
    }
    let last = sorted.len() - 1;
    (0..MOST_DOTS).map(|index| sorted[index * last / (MOST_DOTS - 1)]).collect()
}

/// The quantile by linear interpolation between ranks; `None` without values.
fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let rank = p * sorted.len().checked_sub(1)? as f64;
    let below = sorted.get(rank.floor() as usize)?;
    let above = sorted.get(rank.ceil() as usize)?;
    Some(below + (above - below) * rank.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated() {
        let sample = sorted(&[4.0, 1.0, f64::NAN, 2.0, 3.0]);
        assert_eq!([0.25, 0.5, 0.75].map(|p| quantile(&sample, p)), [Some(1.75), Some(2.5), Some(3.25)]);
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn large_samples_are_thinned_but_keep_their_ends() {
        let sample: Vec<f64> = (0..10_000).map(f64::from).collect();
        let dots = thinned(&sample);
        assert_eq!((dots.len(), dots[0], dots[MOST_DOTS - 1]), (MOST_DOTS, 0.0, 9999.0));
    }

    #[test]
    fn an_empty_sample_has_a_row_but_no_box() {
        let svg =
            quantile_plot("t", "ms", &[QuantileSeries { label: "before".into(), values: vec![] }], |v| {
                v.to_string()
            });
        let svg = svg.into_string();
        assert!(svg.contains("before") && !svg.contains("class=\"box\"") && !svg.contains("NaN"), "{svg}");
    }
}
