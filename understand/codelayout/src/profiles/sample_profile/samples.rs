//! Counts of a function's lines, and their text.

use crate::profiles::sample_profile::discriminator;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A place in a function, as a profile names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct LineLocation {
    /// Lines behind the function's first, in 16 bits, which LLVM keeps.
    offset: u16,
    discriminator: u32,
}

impl LineLocation {
    /// `line` of a function that begins at line `first`.
    pub(super) fn new(line: u32, first: u32, packed_discriminator: u32) -> LineLocation {
        let offset = (line.wrapping_sub(first) & 0xffff) as u16;
        LineLocation { offset, discriminator: discriminator::base(packed_discriminator) }
    }

    fn text(self) -> String {
        match self.discriminator {
            0 => self.offset.to_string(),
            discriminator => format!("{}.{discriminator}", self.offset),
        }
    }
}

/// Counts of a function, or of a copy of it that was inlined.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Samples {
    entries: u64,
    lines: BTreeMap<LineLocation, Line>,
    copies: BTreeMap<(LineLocation, String), Samples>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Line {
    times: u64,
    /// Times by the called function.
    calls: BTreeMap<String, u64>,
}

impl Samples {
    /// The function was entered so often.
    pub(super) fn entered(&mut self, times: u64) {
        self.entries = self.entries.saturating_add(times);
    }

    /// An instruction of a line was executed so often.
    pub(super) fn executed(&mut self, place: LineLocation, times: u64) {
        let line = self.lines.entry(place).or_default();
        line.times = line.times.max(times);
    }

    /// An instruction of a line has called something.
    pub(super) fn called(&mut self, place: LineLocation, callee: &str, times: u64) {
        let calls = &mut self.lines.entry(place).or_default().calls;
        let sum = calls.entry(callee.to_owned()).or_default();
        *sum = sum.saturating_add(times);
    }

    /// The copy of a function that was called at a place.
    pub(super) fn copy(&mut self, place: LineLocation, callee: &str) -> &mut Samples {
        self.copies.entry((place, callee.to_owned())).or_default()
    }

    /// The sum of all counts.
    pub(super) fn total(&self) -> u64 {
        let lines = self.lines.values().map(|line| line.times);
        let copies = self.copies.values().map(Samples::total);
        lines.chain(copies).fold(0, u64::saturating_add)
    }

    /// The counts of a function that has this name.
    pub(super) fn text(&self, name: &str) -> String {
        let mut out = format!("{name}:{}:{}\n", self.total(), self.entries);
        self.write_lines(1, &mut out);
        out
    }

    fn write_lines(&self, depth: usize, out: &mut String) {
        let indent = " ".repeat(depth);
        for (place, line) in &self.lines {
            let calls: String =
                line.calls.iter().map(|(callee, times)| format!(" {callee}:{times}")).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{indent}{}: {}{calls}", place.text(), line.times);
        }
        for ((place, callee), samples) in &self.copies {
            let _ = writeln!(out, "{indent}{}: {callee}:{}", place.text(), samples.total());
            samples.write_lines(depth + 1, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_largest_count_and_all_its_calls_and_copies_are_nested() {
        let mut samples = Samples::default();
        samples.entered(3);
        let loop_of = LineLocation::new(12, 10, 0);
        for times in [5, 90, 7] {
            samples.executed(loop_of, times);
        }
        samples.called(loop_of, "step", 4);
        samples.called(loop_of, "step", 5);
        samples.executed(LineLocation::new(9, 10, 2 << 1), 0);
        let copy = samples.copy(LineLocation::new(13, 10, 1 << 1), "inner");
        copy.executed(LineLocation::new(2, 1, 0), 8);
        copy.copy(LineLocation::new(3, 1, 0), "innermost").executed(LineLocation::new(20, 20, 0), 2);
        let expected =
            "outer:100:3\n 2: 90 step:9\n 65535.2: 0\n 3.1: inner:10\n  1: 8\n  2: innermost:2\n   0: 2\n";
        assert_eq!(samples.text("outer"), expected);
    }
}
