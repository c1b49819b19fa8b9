//! The accesses of a string instruction that repeats: it counts one for each line of memory that it touches.

/// Bytes of such a line.
const LINE_BYTES: u64 = 64;

/// The touched parts of lines, in the instruction's direction.
#[derive(Clone, Copy, Default, Debug)]
pub struct RepeatedLines {
    low: u64,
    high: u64,
    is_downwards: bool,
}

impl RepeatedLines {
    /// From the address of the first element to the address behind the last one in the instruction's direction.
    pub fn new(from: u64, to: u64, element_bytes: u32) -> RepeatedLines {
        let length = from.abs_diff(to);
        let is_downwards = to < from;
        let low = if is_downwards { to.wrapping_add(element_bytes.into()) } else { from };
        RepeatedLines { low, high: low.saturating_add(length), is_downwards }
    }
}

impl Iterator for RepeatedLines {
    type Item = (u64, u32);

    fn next(&mut self) -> Option<(u64, u32)> {
        if self.low >= self.high {
            return None;
        }
        if self.is_downwards {
            let begin = self.low.max((self.high - 1) / LINE_BYTES * LINE_BYTES);
            let bytes = self.high - begin;
            self.high = begin;
            return Some((begin, bytes as u32));
        }
        let (begin, line_end) = (self.low, (self.low / LINE_BYTES + 1).saturating_mul(LINE_BYTES));
        self.low = self.high.min(line_end);
        Some((begin, (self.low - begin) as u32))
    }
}

/// Passes on the accesses of an instruction with two sides, which take turns: the side, the address and the bytes.
pub fn each_in_turn(mut sides: [RepeatedLines; 2], mut pass_on: impl FnMut(usize, u64, u32)) {
    loop {
        let mut is_over = true;
        for (number, side) in sides.iter_mut().enumerate() {
            if let Some((address, bytes)) = side.next() {
                is_over = false;
                pass_on(number, address, bytes);
            }
        }
        if is_over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_accessed_by_lines_in_its_direction() {
        let lines = |from, to, bytes| RepeatedLines::new(from, to, bytes).collect::<Vec<_>>();
        assert_eq!(lines(0x1030, 0x1088, 8), [(0x1030, 16), (0x1040, 64), (0x1080, 8)]);
        assert_eq!(lines(0x1008, 0xff8, 8), [(0x1000, 16)], "downwards");
        assert_eq!(lines(0x1081, 0x102f, 1), [(0x1080, 2), (0x1040, 64), (0x1030, 16)], "downwards");
        assert_eq!(lines(0x103e, 0x1042, 4), [(0x103e, 2), (0x1040, 2)], "an element on two lines");
        assert_eq!(lines(0x1000, 0x1000, 1), []);
        assert_eq!(lines(u64::MAX - 9, u64::MAX - 1, 1), [(u64::MAX - 9, 8)], "the last line");
        assert_eq!(lines(0, 100 << 20, 1).len(), (100 << 20) / 64);
    }

    #[test]
    fn both_sides_take_turns() {
        let sides = [RepeatedLines::new(0x1000, 0x1080, 1), RepeatedLines::new(0x2020, 0x20a0, 1)];
        let mut all = Vec::new();
        each_in_turn(sides, |side, address, bytes| all.push((side, address, bytes)));
        let expected = [(0, 0x1000, 64), (1, 0x2020, 32), (0, 0x1040, 64), (1, 0x2040, 64), (1, 0x2080, 32)];
        assert_eq!(all, expected);
    }
}
