//! A ratio, its interval, and the margin that it is judged against.

use super::scale::{Scale, anchor, round};
use lineup_model::figure::change;
use maud::{Markup, html};

/// The marks to draw: ratios around 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IntervalMark {
    /// The estimate.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Changes below this share count as equivalent.
    pub margin: f64,
}

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 74.0;
const SIDE: f64 = 16.0;

/// The interval over the band of equivalence, with the line of no change.
pub fn ratio_interval(title: &str, mark: &IntervalMark) -> Markup {
    let reach = [1.0 - mark.low, mark.high - 1.0, mark.margin]
        .into_iter()
        .filter(|v| v.is_finite())
        .fold(0.001, f64::max)
        * 1.25;
    let x = Scale::new(1.0 - reach, 1.0 + reach, SIDE, WIDTH - SIDE);
    let (band_left, band_right) = (x.place(1.0 - mark.margin), x.place(1.0 + mark.margin));
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
            title { (title) }
            rect.margin x=(band_left) y="4" width=(round(band_right - band_left)) height="38" {}
            line.nochange x1=(x.place(1.0)) x2=(x.place(1.0)) y1="2" y2="44" {}
            line.whisker x1=(x.place(mark.low)) x2=(x.place(mark.high)) y1="23" y2="23" {}
            @for end in [mark.low, mark.high] {
                line.whisker x1=(x.place(end)) x2=(x.place(end)) y1="16" y2="30" {}
            }
            circle.estimate cx=(x.place(mark.ratio)) cy="23" r="4" {}
            @for tick in x.ticks(6) {
                @let label = if (tick - 1.0).abs() < 1e-9 { "0 %".to_owned() } else { change(tick) };
                text.tick x=(x.place(tick)) y="57" text-anchor=(anchor(x.place(tick), &label, WIDTH)) { (label) }
            }
            text.axis x=(WIDTH / 2.0) y="70" text-anchor="middle" { "change of time; shaded: equivalent" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_no_change_is_in_the_middle() {
        let mark = IntervalMark { ratio: 0.98, low: 0.97, high: 0.99, margin: 0.01 };
        let svg = ratio_interval("t", &mark).into_string();
        assert!(svg.contains(r#"class="nochange" x1="210" x2="210""#), "{svg}");
    }

    #[test]
    fn ends_that_are_not_numbers_do_no_harm() {
        let mark = IntervalMark { ratio: f64::NAN, low: f64::NEG_INFINITY, high: f64::INFINITY, margin: 0.0 };
        let svg = ratio_interval("t", &mark).into_string();
        assert!(!svg.contains("inf"), "{svg}");
    }
}
