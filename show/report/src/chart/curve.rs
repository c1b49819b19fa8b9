//! Values over equal steps, as lines, with intervals where there are any.

use super::scale::{Scale, round};
use lineup_model::figure::mean;
use maud::{Markup, html};

/// One line.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Its values; `None` where nothing was observed.
    pub values: Vec<Option<f64>>,
    /// The interval of each value, if it has one.
    pub intervals: Vec<Option<[f64; 2]>>,
}

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 46.0;
const BOTTOM: f64 = 40.0;

/// The lines over steps labelled `x`. The second is drawn in the second series' colour; a third repeats them.
pub fn curves(title: &str, axis: &str, x: &[String], lines: &[Curve]) -> Markup {
    let ends = lines.iter().flat_map(|line| line.intervals.iter().flatten().map(|interval| interval[1]));
    let greatest =
        lines.iter().flat_map(|line| line.values.iter().copied().flatten()).chain(ends).fold(0.0, f64::max);
    let y = Scale::new(0.0, greatest * 1.05, HEIGHT - BOTTOM, 10.0);
    let across = Scale::new(0.0, x.len().max(2) as f64 - 1.0, LEFT + 8.0, WIDTH - 20.0);
    let every = x.len().div_ceil(12).max(1);
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
            title { (title) }
            @for tick in y.ticks(5) {
                line.grid x1=(LEFT) x2=(WIDTH) y1=(y.place(tick)) y2=(y.place(tick)) {}
                text.tick x=(LEFT - 5.0) y=(y.place(tick) + 4.0) text-anchor="end" { (mean(tick)) }
            }
            @for (step, label) in x.iter().enumerate().step_by(every) {
                text.tick x=(across.place(step as f64)) y=(HEIGHT - BOTTOM + 15.0) text-anchor="middle" { (label) }
            }
            text.axis x=(WIDTH / 2.0) y=(HEIGHT - 6.0) text-anchor="middle" { (axis) }
            @for (at, line) in lines.iter().enumerate() { (draw(line, at, &across, &y)) }
        }
        p.muted { @for (at, line) in lines.iter().enumerate() {
            span class=(if at % 2 == 0 { "key" } else { "key after" }) {} (line.name) "  "
        } }
    }
}

fn draw(line: &Curve, at: usize, across: &Scale, y: &Scale) -> Markup {
    let place =
        |(step, value): (usize, &Option<f64>)| value.map(|value| (across.place(step as f64), y.place(value)));
    let points: Vec<(f64, f64)> = line.values.iter().enumerate().filter_map(place).collect();
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
    html! {
        g class=(format!("series s{}", at % 2)) {
            polyline.path points=(path.join(" ")) {}
            @for (x, y) in &points { circle.dot cx=(x) cy=(y) r="2.5" {} }
            @for (step, interval) in line.intervals.iter().enumerate() { @if let Some([low, high]) = interval {
                line.range x1=(across.place(step as f64)) x2=(across.place(step as f64)) y1=(round(y.place(*low))) y2=(round(y.place(*high))) {}
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unobserved_steps_have_no_point() {
        let line = Curve {
            name: "R = 0".into(),
            values: vec![Some(1.0), None, Some(2.0)],
            intervals: vec![Some([0.5, 1.5]), None, None],
        };
        let x = ["1".to_string(), "2".to_string(), "3".to_string()];
        let svg = curves("t", "seconds", &x, &[line]).into_string();
        assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
        assert_eq!(svg.matches("class=\"range\"").count(), 1, "{svg}");
    }
}
