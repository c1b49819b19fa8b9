//! One point for each event: two quantities against each other.

use super::scale::{Scale, anchor};
use lineup_model::figure::mean;
use maud::{Markup, html};

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 34.0;

/// More points than this are thinned evenly by rank on the horizontal axis, both ends kept.
const MOST_POINTS: usize = 1500;

/// The points, each `(across, up)`; those that are not finite are left out. `across` and `up` name the quantities.
pub fn scatter(title: &str, across: &str, up: &str, points: &[(f64, f64)]) -> Markup {
    let points = thinned(points);
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let x = Scale::new(0.0, most(&mut points.iter().map(|point| point.0)) * 1.03, LEFT, WIDTH - RIGHT);
    let y = Scale::new(0.0, most(&mut points.iter().map(|point| point.1)) * 1.03, HEIGHT - BOTTOM, TOP);
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
            title { (title) }
            @for tick in y.ticks(5) {
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y.place(tick)) y2=(y.place(tick)) {}
                text.tick x=(LEFT - 5.0) y=(y.place(tick) + 3.5) text-anchor="end" { (mean(tick)) }
            }
            @for tick in x.ticks(6) {
                @let label = mean(tick);
                text.tick x=(x.place(tick)) y=(HEIGHT - BOTTOM + 14.0) text-anchor=(anchor(x.place(tick), &label, WIDTH)) { (label) }
            }
            text.axis x=((LEFT + WIDTH - RIGHT) / 2.0) y=(HEIGHT - 4.0) text-anchor="middle" { (across) }
            text.axis x=(LEFT + 4.0) y=(TOP + 4.0) { (up) }
            g class="trace t0" { @for (at, height) in &points { circle.point cx=(x.place(*at)) cy=(y.place(*height)) r="1.7" {} } }
        }
    }
}

fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let is_finite = |point: &(f64, f64)| point.0.is_finite() && point.1.is_finite();
    let mut points: Vec<(f64, f64)> = points.iter().copied().filter(is_finite).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    if points.len() <= MOST_POINTS {
        return points;
    }
    let last = points.len() - 1;
    (0..MOST_POINTS).map(|index| points[index * last / (MOST_POINTS - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_drawn_until_there_are_too_many() {
        let points = |count: u32| (0..count).map(|at| (f64::from(at), 1.0)).collect::<Vec<_>>();
        let drawn =
            |count| scatter("t", "cycles", "stall", &points(count)).into_string().matches("<circle").count();
        assert_eq!((drawn(7), drawn(100_000)), (7, MOST_POINTS));
        assert_eq!(thinned(&points(100_000)).last(), Some(&(99_999.0, 1.0)));
    }

    #[test]
    fn nothing_to_show_does_no_harm_and_text_is_escaped() {
        let svg = scatter("<b>", "<i>", "<u>", &[(f64::NAN, 1.0)]).into_string();
        assert!(!svg.contains("<b>") && !svg.contains("<i>") && !svg.contains("NaN"), "{svg}");
    }
}
