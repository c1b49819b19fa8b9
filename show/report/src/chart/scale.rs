//! From values to places on a drawing, and round values to label.

/// A linear scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// Maps `from..to` onto `start..end`. A span without width, or one that is not finite, is widened.
    pub(super) fn new(from: f64, to: f64, start: f64, end: f64) -> Self {
        let (from, to) = match to - from {
            span if span.is_finite() && span > 0.0 => (from, to),
            _ if from.is_finite() => (from - 0.5, from + 0.5),
            _ => (0.0, 1.0),
        };
        Self { from, to, start, end }
    }

    /// The place of a value, rounded to a tenth.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = (value - self.from) / (self.to - self.from);
        round(self.start + share.clamp(0.0, 1.0) * (self.end - self.start))
    }

    /// Up to about `most` round values inside the scale.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        let step = round_step((self.to - self.from) / most.max(1) as f64);
        if !(step.is_finite() && step > 0.0) {
            return Vec::new();
        }
        let first = (self.from / step).ceil();
        let count = ((self.to / step).floor() - first) as i64 + 1;
        (0..count.clamp(0, 64)).map(|index| (first + index as f64) * step).collect()
    }
}

/// Width of a character of a label, at most: digits and signs of the font that ticks are set in.
const CHARACTER: f64 = 6.5;

/// The anchor of a label below a place on a drawing of that width: its middle, unless a side would cut it off.
pub(super) fn anchor(place: f64, label: &str, width: f64) -> &'static str {
    let half = CHARACTER * label.chars().count() as f64 / 2.0;
    match () {
        () if place + half > width => "end",
        () if place - half < 0.0 => "start",
        () => "middle",
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below a value.
fn round_step(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= value * 0.999)
        .unwrap_or(value)
}

/// Rounded to a tenth of a pixel.
pub(super) fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_map_to_ends() {
        let scale = Scale::new(2.0, 6.0, 10.0, 110.0);
        assert_eq!(
            (scale.place(2.0), scale.place(4.0), scale.place(6.0), scale.place(99.0)),
            (10.0, 60.0, 110.0, 110.0)
        );
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(Scale::new(0.0, 23.0, 0.0, 1.0).ticks(5), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(Scale::new(0.97, 1.01, 0.0, 1.0).ticks(4).len(), 5);
    }

    #[test]
    fn labels_at_the_sides_end_there() {
        assert_eq!(anchor(50.0, "1,000", 100.0), "middle");
        assert_eq!(anchor(95.0, "1,000", 100.0), "end");
        assert_eq!(anchor(5.0, "1,000", 100.0), "start");
    }

    #[test]
    fn a_span_without_width_is_widened() {
        let scale = Scale::new(7.0, 7.0, 0.0, 100.0);
        assert_eq!(scale.place(7.0), 50.0);
        assert!(Scale::new(f64::NAN, 1.0, 0.0, 1.0).ticks(5).len() < 10);
    }
}
