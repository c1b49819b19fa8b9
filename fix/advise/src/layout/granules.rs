//! Touched granules of 32 bytes, and the lines that they lie on.

use lineup_model::line::LineSize;

/// Field, offset in it, bytes.
pub(crate) type Span = (usize, u64, u64);

/// 1.0 in the fixed point of counts per call.
pub(crate) const ONE: u64 = 1 << 20;

/// The touched 32-byte granules.
#[derive(Clone, Default, Debug)]
pub(crate) struct Granules {
    /// First and last of each run.
    touched: Vec<(u64, u64)>,
}

impl Granules {
    /// The touched granules of an object that starts at `base`.
    pub(crate) fn of(base: u64, spans: &[Span], offsets_bits: &[u64]) -> Self {
        let mut granules = Granules { touched: Vec::with_capacity(spans.len()) };
        granules.add_spans(base, spans, offsets_bits);
        granules
    }

    pub(crate) fn add(&mut self, start: u64, size_bytes: u64) {
        let run = LineSize::B32.lines(start, size_bytes).into_inner();
        if self.touched.last() != Some(&run) {
            self.touched.push(run);
        }
    }

    /// Adds the touched granules of an object that starts at `base`.
    pub(crate) fn add_spans(&mut self, base: u64, spans: &[Span], offsets_bits: &[u64]) {
        for &(field, offset, size) in spans {
            let Some(bits) = offsets_bits.get(field) else { continue };
            self.add(base.saturating_add(bits / 8).saturating_add(offset), size);
        }
    }

    /// Whether a line is touched, by its number among those of its size.
    pub(crate) fn touches(&self, line: LineSize, number: u64) -> bool {
        let per_line = line.bytes() / LineSize::B32.bytes();
        self.touched.iter().any(|(first, last)| (first / per_line..=last / per_line).contains(&number))
    }

    /// Distinct lines of 32, 64 and 128 bytes.
    pub(crate) fn counts(&mut self) -> [u64; 3] {
        self.touched.sort_unstable();
        let mut counts = [0; 3];
        for (shift, count) in counts.iter_mut().enumerate() {
            // The first line that is not counted yet.
            let mut next = 0;
            for (first, last) in self.touched.iter().map(|(first, last)| (first >> shift, last >> shift)) {
                *count += (last + 1).saturating_sub(first.max(next));
                next = next.max(last + 1);
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_count_once_and_a_span_of_all_bytes_is_counted_at_once() {
        let mut granules = Granules::default();
        for (start, size) in [(256, 96), (0, 200), (40, 8), (190, 40)] {
            granules.add(start, size);
        }
        // Granules 0 to 10.
        assert_eq!(granules.counts(), [11, 6, 3]);
        granules.add(0, u64::MAX);
        assert_eq!(granules.counts(), [1 << 59, 1 << 58, 1 << 57]);
    }
}
