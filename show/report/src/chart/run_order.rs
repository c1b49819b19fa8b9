//! Measurements in the order they were taken: drift and jumps show at a glance.

use super::scale::Scale;
use maud::{Markup, html};

/// One variant's measurements.
#[derive(Clone, PartialEq, Debug)]
pub struct RunOrderSeries {
    /// Its name.
    pub label: String,
    /// Position among all runs, and value.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 32.0;

/// A point per run; the first series as circles, the others as squares. `show` turns a value into the text of a
/// tick.
pub fn run_order(title: &str, series: &[RunOrderSeries], show: impl Fn(f64) -> String) -> Markup {
    let points = || series.iter().flat_map(|one| one.points.iter().copied());
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::NEG_INFINITY, f64::max);
    let x = Scale::new(
        least(&mut points().map(|point| point.0)),
        most(&mut points().map(|point| point.0)),
        LEFT + 4.0,
        WIDTH - RIGHT,
    );
    let y = Scale::new(
        least(&mut points().map(|point| point.1)),
        most(&mut points().map(|point| point.1)),
        HEIGHT - BOTTOM,
        TOP,
    );
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
            title { (title) }
            @for tick in y.ticks(4) {
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y.place(tick)) y2=(y.place(tick)) {}
                text.tick x=(LEFT - 5.0) y=(y.place(tick) + 3.5) text-anchor="end" { (show(tick)) }
            }
            text.axis x=((LEFT + WIDTH - RIGHT) / 2.0) y=(HEIGHT - 4.0) text-anchor="middle" { "run, in the order they were made" }
            @for (index, one) in series.iter().enumerate() {
                g class=(format!("series s{index}")) {
                    @for (at, value) in &one.points { (mark(index, x.place(*at), y.place(*value))) }
                }
            }
        }
    }
}

fn mark(series: usize, x: f64, y: f64) -> Markup {
    html! {
        @if series == 0 {
            circle.dot cx=(x) cy=(y) r="2.2" {}
        } @else {
            rect.dot x=(x - 2.0) y=(y - 2.0) width="4" height="4" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_a_point_and_text_is_escaped() {
        let series = [("a", 3), ("<b>", 2)].map(|(label, count)| RunOrderSeries {
            label: label.into(),
            points: (0..count).map(|at| (f64::from(at), f64::from(at * at))).collect(),
        });
        let svg = run_order("<script>", &series, |value| format!("<{value}>")).into_string();
        assert_eq!((svg.matches("<circle").count(), svg.matches("<rect").count()), (3, 2));
        assert!(!svg.contains("<script>") && !svg.contains("<0>"), "{svg}");
    }

    #[test]
    fn nothing_to_show_does_no_harm() {
        let svg = run_order("t", &[], |value| value.to_string()).into_string();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
