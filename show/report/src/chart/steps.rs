//! Histograms of several series as outlines, for many bins and series over each other.

use super::scale::{Scale, anchor, round};
use lineup_model::figure::{mean, share};
use maud::{Markup, html};

/// Equal bins, on a plain or a logarithmic axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bins {
    from: f64,
    to: f64,
    count: usize,
    is_logarithmic: bool,
}

impl Bins {
    /// Bins over a range. A logarithmic axis begins at 1 at the least.
    pub fn new(from: f64, to: f64, count: usize, is_logarithmic: bool) -> Self {
        let (from, to) = if is_logarithmic { (from.max(1.0).ln(), to.max(1.0).ln()) } else { (from, to) };
        let to = if to > from { to } else { from + 1.0 };
        Bins { from, to, count: count.max(1), is_logarithmic }
    }

    fn axis(&self, value: f64) -> f64 {
        if self.is_logarithmic { value.max(1.0).ln() } else { value }
    }

    /// The value at which a bin begins; the bin after the last begins where the last ends.
    pub fn start(&self, bin: usize) -> f64 {
        let at = self.from + (self.to - self.from) * bin as f64 / self.count as f64;
        if self.is_logarithmic { at.exp() } else { at }
    }

    /// The number of values in each bin; the end bins also take the values beyond them.
    pub fn counts(&self, values: &[f64]) -> Vec<u64> {
        self.counts_of(values.iter().map(|value| (*value, 1)))
    }

    /// The same for values of which each occurred a number of times.
    pub fn counts_of(&self, values: impl Iterator<Item = (f64, u64)>) -> Vec<u64> {
        let mut counts: Vec<u64> = vec![0; self.count];
        for (value, times) in values.filter(|(value, _)| value.is_finite()) {
            let at = (self.axis(value) - self.from) / (self.to - self.from) * self.count as f64;
            let count = &mut counts[(at.max(0.0) as usize).min(self.count - 1)];
            *count = count.saturating_add(times);
        }
        counts
    }
}

/// One outline.
#[derive(Clone, PartialEq, Debug)]
pub struct StepSeries {
    /// Its name in the legend.
    pub label: String,
    /// The number of values in each bin.
    pub counts: Vec<u64>,
}

/// The scale of the heights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountAxis {
    /// In proportion.
    Linear,
    /// By their logarithm, so that single calls in the tail are seen.
    Logarithmic,
}

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 210.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 34.0;

/// Outlines over each other: the height is a bin's share of its own series. `axis` names the counted quantity and its
/// unit; `title` describes the figure in words.
pub fn steps(title: &str, axis: &str, bins: &Bins, heights: CountAxis, series: &[StepSeries]) -> Markup {
    let total = |one: &StepSeries| one.counts.iter().map(|count| *count as f64).sum::<f64>().max(1.0);
    let shares =
        |one: &StepSeries| one.counts.iter().map(|count| *count as f64 / total(one)).collect::<Vec<_>>();
    let most = series.iter().flat_map(shares).fold(0.0, f64::max);
    let least = series.iter().map(|one| 0.5 / total(one)).fold(1.0, f64::min);
    let x = Scale::new(bins.from, bins.to, LEFT, WIDTH - RIGHT);
    let place: Box<dyn Fn(f64) -> f64> = match heights {
        CountAxis::Linear => {
            let y = Scale::new(0.0, most * 1.05, HEIGHT - BOTTOM, TOP);
            Box::new(move |share| y.place(share))
        }
        CountAxis::Logarithmic => {
            let y = Scale::new(least.log10(), 0.0, HEIGHT - BOTTOM, TOP);
            Box::new(move |share| y.place(share.max(least).log10()))
        }
    };
    let ticks = match heights {
        CountAxis::Linear => Scale::new(0.0, most * 1.05, 0.0, 1.0).ticks(4),
        CountAxis::Logarithmic => {
            (0..8).map(|power| 10f64.powi(-power)).filter(|share| *share >= least).collect()
        }
    };
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
            title { (title) }
            @for tick in ticks {
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(place(tick)) y2=(place(tick)) {}
                text.tick x=(LEFT - 5.0) y=(place(tick) + 3.5) text-anchor="end" { (share(tick)) }
            }
            @for (at, label) in value_ticks(bins, &x) {
                line.grid x1=(at) x2=(at) y1=(HEIGHT - BOTTOM) y2=(HEIGHT - BOTTOM + 3.0) {}
                text.tick x=(at) y=(HEIGHT - BOTTOM + 14.0) text-anchor=(anchor(at, &label, WIDTH)) { (label) }
            }
            text.axis x=((LEFT + WIDTH - RIGHT) / 2.0) y=(HEIGHT - 4.0) text-anchor="middle" { (axis) }
            @for (index, one) in series.iter().enumerate() {
                g class=(format!("trace t{}", index % COLOURS)) {
                    path.outline d=(outline(&shares(one), bins, &x, &*place)) {}
                }
            }
        }
    }
}

/// Series that differ in colour and dashes.
const COLOURS: usize = 8;

/// The names of series, each with a piece of its line.
pub fn step_legend<'a>(labels: impl Iterator<Item = &'a str>) -> Markup {
    html! { ul.legend { @for (index, label) in labels.enumerate() { li {
        svg.line-swatch viewBox="0 0 26 14" aria-hidden="true" {
            g class=(format!("trace t{}", index % COLOURS)) { path.outline d="M1 7H25" {} }
        }
        (label)
    } } } }
}

/// Labelled places on the axis of values.
fn value_ticks(bins: &Bins, x: &Scale) -> Vec<(f64, String)> {
    if bins.is_logarithmic {
        let powers = (0..12).map(|power| 10f64.powi(power));
        let inside = powers.filter(|value| (bins.from..=bins.to).contains(&value.ln()));
        return inside.map(|value| (x.place(value.ln()), mean(value))).collect();
    }
    x.ticks(6).into_iter().map(|value| (x.place(value), mean(value))).collect()
}

fn outline(shares: &[f64], bins: &Bins, x: &Scale, place: &dyn Fn(f64) -> f64) -> String {
    let edge = |bin: usize| x.place(bins.from + (bins.to - bins.from) * bin as f64 / bins.count as f64);
    let mut path = format!("M{} {}", edge(0), place(0.0));
    let mut last = 0.0;
    for (bin, share) in shares.iter().enumerate() {
        if (*share - last).abs() > 0.0 {
            path.push_str(&format!("H{}V{}", edge(bin), round(place(*share))));
            last = *share;
        }
    }
    path.push_str(&format!("H{}V{}", edge(bins.count), place(0.0)));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bin_and_those_beyond_go_to_the_ends() {
        let bins = Bins::new(0.0, 10.0, 5, false);
        assert_eq!(bins.counts(&[0.0, 1.9, 2.0, 10.0, 99.0, -3.0, f64::NAN]), [3, 1, 0, 0, 2]);
        assert_eq!((bins.start(1), bins.start(5)), (2.0, 10.0));
        let wide = Bins::new(1.0, 10_000.0, 4, true);
        assert_eq!(wide.counts(&[0.0, 5.0, 50.0, 500.0, 5000.0]), [2, 1, 1, 1]);
        assert!((wide.start(2) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn one_call_in_the_tail_is_seen_on_the_logarithmic_axis() {
        let bins = Bins::new(0.0, 2.0, 2, false);
        let series = [StepSeries { label: "a".into(), counts: vec![999, 1] }];
        let heights = |axis| steps("t", "cycles", &bins, axis, &series).into_string();
        // The plot's floor is at 176: a thousandth is not above it, its logarithm is.
        assert!(heights(CountAxis::Linear).contains("V175.8H508V176"), "{}", heights(CountAxis::Linear));
        assert!(heights(CountAxis::Logarithmic).contains("V160.7"), "{}", heights(CountAxis::Logarithmic));
    }

    #[test]
    fn nothing_to_show_does_no_harm_and_text_is_escaped() {
        let bins = Bins::new(f64::INFINITY, f64::NEG_INFINITY, 4, false);
        let svg = steps("<b>", "<i>", &bins, CountAxis::Linear, &[]).into_string();
        assert!(!svg.contains("<b>") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!step_legend(["<b>"].into_iter()).into_string().contains("<b>"));
    }
}
