//! Curves over one another, with axes, as SVG that follows the page's colours.

use crate::histogram::Histogram;
use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 240.0;
/// Room beside and under the curves, for the numbers of the axis.
const SIDE: f64 = 44.0;
const TOP: f64 = 8.0;
const FOOT: f64 = 24.0;
/// The page has so many colours and so many kinds of line.
pub(crate) const COLOURS: usize = 8;
const DASHES: [&str; 4] = ["none", "6 3", "2 3", "9 3 2 3"];
/// On a linear axis this share of each curve's values is shown, and a quarter more.
const SHOWN: f64 = 0.90;
/// Times its peak that a curve is shown on the axis that makes peaks coincide.
const PEAKS_MAX: f64 = 12.0;

/// One curve of an overlay.
pub(crate) struct Curve {
    pub(crate) label: String,
    pub(crate) histogram: Histogram,
    /// Index of its colour, and of its kind of line.
    pub(crate) colour: usize,
    pub(crate) dash: usize,
}

/// How an overlay's horizontal axis runs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Axis {
    Linear,
    Logarithmic,
    /// Values divided by the value of the curve's own peak.
    PerPeak,
}

/// A number of nanoseconds, or of whatever a counter counts.
pub(crate) fn quantity(value: f64, is_time: bool) -> String {
    let steps: [(f64, &str); 4] = if is_time {
        [(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")]
    } else {
        [(1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")]
    };
    let (unit, name) = steps.into_iter().find(|(unit, _)| value >= *unit).unwrap_or(steps[3]);
    let scaled = value / unit;
    let decimals = if scaled >= 100.0 || scaled.fract() == 0.0 { 0 } else { 1 };
    format!("{scaled:.decimals$}{name}")
}

/// The curves' common frame.
struct Frame {
    axis: Axis,
    left: f64,
    right: f64,
    is_time: bool,
}

impl Frame {
    fn new(curves: &[Curve], axis: Axis, is_time: bool) -> Self {
        let quantile = |curve: &Curve, q| curve.histogram.quantile(q).unwrap_or(0) as f64;
        let greatest = |of: &dyn Fn(&Curve) -> f64| curves.iter().map(of).fold(f64::MIN_POSITIVE, f64::max);
        let (left, right) = match axis {
            Axis::Linear => (0.0, greatest(&|curve| quantile(curve, SHOWN) * 1.25)),
            Axis::PerPeak => {
                (0.0, greatest(&|curve| quantile(curve, SHOWN) / peak(curve)).clamp(2.0, PEAKS_MAX))
            }
            Axis::Logarithmic => {
                let least = curves.iter().map(|curve| quantile(curve, 0.0).max(1.0)).fold(f64::MAX, f64::min);
                (least, greatest(&|curve| quantile(curve, 1.0)).max(least * 2.0) * 1.05)
            }
        };
        Self { axis, left, right, is_time }
    }

    fn x(&self, curve: &Curve, value: f64) -> f64 {
        self.place(if self.axis == Axis::PerPeak { value / peak(curve) } else { value })
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.axis {
            Axis::Logarithmic => (value.max(self.left) / self.left).ln() / (self.right / self.left).ln(),
            Axis::Linear | Axis::PerPeak => (value - self.left) / (self.right - self.left),
        };
        SIDE + share.min(1.0) * (WIDTH - 2.0 * SIDE)
    }

    /// Where the axis has numbers.
    fn ticks(&self) -> Vec<f64> {
        if self.axis == Axis::Logarithmic {
            let first = self.left.log10().ceil() as i32;
            let ticks = (first..first + 20).map(|power| 10f64.powi(power));
            return ticks.take_while(|tick| *tick <= self.right).collect();
        }
        let rough = self.right / 7.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|by| by * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(power * 10.0);
        (0..10).map(|index| f64::from(index) * step).take_while(|tick| *tick <= self.right).collect()
    }

    fn tick_text(&self, tick: f64) -> String {
        match self.axis {
            Axis::PerPeak => format!("{tick} ×"),
            Axis::Linear | Axis::Logarithmic => quantity(tick, self.is_time),
        }
    }

    /// The outline of a histogram. On the logarithmic axis heights are logarithms of counts, else counts per unit of
    /// value beside the curve's own greatest.
    fn outline(&self, curve: &Curve, most: f64) -> String {
        let density =
            |least: u64, greatest: u64, count: u64| count as f64 / ((greatest - least) as f64 + 1.0);
        let top =
            curve.histogram.buckets().map(|(l, g, c)| density(l, g, c)).fold(f64::MIN_POSITIVE, f64::max);
        let floor = height(0.0);
        let mut path = format!("M{SIDE:.1} {floor:.1}");
        let mut end = f64::NEG_INFINITY;
        for (least, greatest, count) in curve.histogram.buckets() {
            let (from, to) = (self.x(curve, least as f64), self.x(curve, greatest as f64 + 1.0));
            let share = match self.axis {
                Axis::Logarithmic => (count as f64 + 1.0).ln() / (most + 1.0).ln(),
                Axis::Linear | Axis::PerPeak => density(least, greatest, count) / top,
            };
            if to - from < 0.05 && from >= WIDTH - SIDE {
                break;
            }
            if from - end > 0.1 {
                let _ = write!(path, "V{floor:.1}H{from:.1}");
            }
            let _ = write!(path, "V{:.1}H{to:.1}", height(share));
            end = to;
        }
        let _ = write!(path, "V{floor:.1}");
        path
    }
}

fn peak(curve: &Curve) -> f64 {
    curve.histogram.peak().unwrap_or(1).max(1) as f64
}

fn height(share: f64) -> f64 {
    HEIGHT - FOOT - share * (HEIGHT - FOOT - TOP)
}

/// The curves as an SVG image that `says` what it shows.
pub(crate) fn svg(curves: &[Curve], axis: Axis, is_time: bool, says: &str) -> String {
    let frame = Frame::new(curves, axis, is_time);
    let mut text = open(says);
    for tick in frame.ticks() {
        vertical(&mut text, frame.place(tick), &frame.tick_text(tick));
    }
    let most = curves.iter().flat_map(|curve| curve.histogram.buckets().map(|(_, _, count)| count)).max();
    let most = most.unwrap_or(1) as f64;
    if axis == Axis::Logarithmic {
        for count in (0..19).map(|power| 10f64.powi(power)).take_while(|count| *count <= most) {
            horizontal(&mut text, height((count + 1.0).ln() / (most + 1.0).ln()), &quantity(count, false));
        }
    }
    for curve in curves {
        let (path, colour, dash) =
            (frame.outline(curve, most), curve.colour % COLOURS, DASHES[curve.dash % DASHES.len()]);
        let _ = write!(text, "<path class=\"c{colour}\" stroke-dasharray=\"{dash}\" d=\"{path}\"/>");
    }
    text + "</svg>"
}

/// Points, both from 0, as an SVG image.
pub(crate) fn scatter<'a>(
    points: impl Iterator<Item = &'a (f64, f64)>,
    (right, top): (f64, f64),
    is_time: bool,
    says: &str,
) -> String {
    let across = Frame { axis: Axis::Linear, left: 0.0, right, is_time };
    let up = Frame { axis: Axis::Linear, left: 0.0, right: top, is_time: true };
    let mut text = open(says);
    for tick in across.ticks() {
        vertical(&mut text, across.place(tick), &across.tick_text(tick));
    }
    for tick in up.ticks().into_iter().skip(1) {
        horizontal(&mut text, height(tick / top), &up.tick_text(tick));
    }
    for (x, y) in points {
        let _ =
            write!(text, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"1.4\"/>", across.place(*x), height(y / top));
    }
    text + "</svg>"
}

/// A sample of a curve's line, for its key.
pub(crate) fn sample(curve: &Curve) -> String {
    let (colour, dash) = (curve.colour % COLOURS, DASHES[curve.dash % DASHES.len()]);
    format!(
        "<svg class=\"sample\" viewBox=\"0 0 28 8\" aria-hidden=\"true\"><path class=\"c{colour}\" stroke-dasharray=\"{dash}\" \
         d=\"M0 4H28\"/></svg>"
    )
}

fn open(says: &str) -> String {
    let foot = height(0.0);
    let end = WIDTH - SIDE;
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{says}\"><path class=\"axis\" d=\"M{SIDE} {foot}H{end}\"/>"
    )
}

fn vertical(text: &mut String, x: f64, words: &str) {
    let (foot, base) = (height(0.0), HEIGHT - 6.0);
    let _ = write!(
        text,
        "<path class=\"grid\" d=\"M{x:.1} {TOP}V{foot}\"/><text x=\"{x:.1}\" y=\"{base}\" text-anchor=\"middle\">{words}</text>"
    );
}

fn horizontal(text: &mut String, y: f64, words: &str) {
    let (end, beside, base) = (WIDTH - SIDE, SIDE - 4.0, y + 4.0);
    let _ = write!(
        text,
        "<path class=\"grid\" d=\"M{SIDE} {y:.1}H{end}\"/><text x=\"{beside}\" y=\"{base:.1}\" text-anchor=\"end\">{words}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: impl IntoIterator<Item = u64>) -> Curve {
        Curve { label: String::new(), histogram: values.into_iter().collect(), colour: 0, dash: 0 }
    }

    #[test]
    fn quantities_have_three_digits_at_most_and_a_unit() {
        let times = [0.0, 7.0, 999.0, 1_500.0, 20_000.0, 3.2e7, 4e9].map(|ns| quantity(ns, true));
        assert_eq!(times, ["0 ns", "7 ns", "999 ns", "1.5 µs", "20 µs", "32 ms", "4 s"]);
        assert_eq!([12.0, 1_200.0].map(|count| quantity(count, false)), ["12", "1.2 k"]);
    }

    #[test]
    fn peaks_of_curves_of_any_scale_coincide() {
        let curves =
            [curve([100; 50].into_iter().chain([200; 5])), curve([7_000; 50].into_iter().chain([9_000; 9]))];
        let frame = Frame::new(&curves, Axis::PerPeak, true);
        let [fast, slow] = curves.each_ref().map(|curve| frame.x(curve, peak(curve)));
        assert!((fast - slow).abs() < 1e-9, "{fast} {slow}");
        assert!(frame.x(&curves[0], 200.0) > frame.x(&curves[1], 9_000.0));
    }

    #[test]
    fn every_axis_has_numbers_and_every_value_lies_in_the_frame() {
        for values in [vec![0], vec![1, 2, 3], vec![u64::MAX], (0..5_000).map(|n| n * n).collect()] {
            let curves = [curve(values.iter().copied())];
            for axis in [Axis::Linear, Axis::Logarithmic, Axis::PerPeak] {
                let frame = Frame::new(&curves, axis, true);
                let inside = |x: f64| (SIDE - 0.1..=WIDTH - SIDE + 0.1).contains(&x);
                assert!(values.iter().all(|value| inside(frame.x(&curves[0], *value as f64))), "{values:?}");
                assert!(frame.ticks().into_iter().all(|tick| inside(frame.place(tick))), "{values:?}");
                assert!(!svg(&curves, axis, true, "says").contains("NaN"), "{values:?}");
            }
        }
        assert!(Frame::new(&[curve(0..5_000)], Axis::Linear, true).ticks().len() >= 4);
    }
}
