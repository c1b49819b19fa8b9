//! Objects of one type that lie side by side, as elements of an array do: they share lines.

/// The object before another one of its type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Neighbour {
    /// From its start to the start of the other, as recorded.
    distance_bytes: u64,
    /// The recorded size of the type.
    pub(crate) size_bytes: u64,
}

impl Neighbour {
    /// `None` for objects that overlap.
    pub(crate) fn new(distance_bytes: u64, size_bytes: u64) -> Option<Self> {
        (size_bytes > 0 && distance_bytes >= size_bytes).then_some(Neighbour { distance_bytes, size_bytes })
    }

    /// The distance between them when the type has another size: elements of one array keep the number of elements
    /// between them, others the bytes.
    pub(crate) fn distance(self, size_bytes: u64) -> u64 {
        match self.distance_bytes % self.size_bytes {
            0 => (self.distance_bytes / self.size_bytes).saturating_mul(size_bytes),
            _ => (self.distance_bytes - self.size_bytes).saturating_add(size_bytes),
        }
    }

    /// Steps between the places in 128 bytes where elements of this size start. With the recorded size, only the
    /// recorded place counts.
    pub(crate) fn step(self, size_bytes: u64) -> u64 {
        if size_bytes == self.size_bytes || size_bytes == 0 {
            128
        } else {
            1 << size_bytes.trailing_zeros().min(7)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_objects_keep_the_bytes_between_them_and_overlapping_ones_are_no_neighbours() {
        assert_eq!(Neighbour::new(48, 40).map(|heap| heap.distance(24)), Some(32));
        assert_eq!(Neighbour::new(80, 40).map(|array| array.distance(24)), Some(48));
        assert_eq!(Neighbour::new(8, 40), None);
    }
}
