//! Layouts that are tried: where each address goes.

use crate::stalls::window_names::Point;
use crate::trials::address_index::Starts;
use crate::trials::packed_code::{LINE_BYTES, Packed};
use crate::trials::pieces::{LINK_BYTES, Piece, put_in_order};
use std::collections::BTreeMap;
use std::ops::Range;

/// Room in which objects are laid apart: above all addresses of programs.
const APART: u64 = 1 << 60;
/// Between one part of split objects and the next.
const APART_EACH: u64 = 1 << 56;
/// The largest distance, in objects, between used elements of one array.
const NEAR_OBJECTS: u64 = 256;

/// The alignment of an object, where that is not known.
pub(crate) const WORD_BYTES: u64 = 8;
/// Words of an object whose accesses are counted.
pub(crate) const MOST_WORDS: u64 = 1 << 10;

/// The indices of the pieces that an access covers, of pieces in order: a wide one may load two members at once.
fn covered<T>(pieces: &[T], bytes: Range<u64>, piece: impl Fn(&T) -> &Piece) -> Range<usize> {
    let first = pieces.partition_point(|one| piece(one).end <= bytes.start);
    let count = pieces[first..].iter().take_while(|one| piece(one).start < bytes.end).count();
    first..first + count
}

/// Counts an access among those of the bytes that members take.
pub(crate) fn count_taken(taken: &mut [(Piece, u64)], bytes: Range<u64>) {
    let own = covered(taken, bytes, |(piece, _)| piece);
    taken[own].iter_mut().for_each(|(_, count)| *count += 1);
}

/// Bytes that the C library takes for an object: a header of a word, in steps of 16, and no less than 32.
pub fn malloc_bytes(size_bytes: u64) -> u64 {
    size_bytes.saturating_add(8).next_multiple_of(16).max(32)
}

/// A mapping of addresses.
pub(crate) enum Layout {
    /// The recorded addresses.
    AsIs,
    /// The objects of a type anew.
    Objects(Relaid),
    /// Code anew.
    Code(Packed),
}

impl Layout {
    /// Passes on the new address and the bytes of an access to data: of each piece that it covers, since they may part.
    #[inline]
    pub(crate) fn each_part(
        &self,
        (address, size_bytes): (u64, u64),
        point: Point,
        mut pass_on: impl FnMut(u64, u64),
    ) {
        match self {
            Layout::Objects(relaid) => relaid.each_part((address, size_bytes), point, pass_on),
            Layout::AsIs | Layout::Code(_) => pass_on(address, size_bytes),
        }
    }

    /// The new address of code.
    #[inline]
    pub(crate) fn code(&self, pc: u64) -> u64 {
        match self {
            Layout::Code(packed) => packed.place(pc),
            Layout::AsIs | Layout::Objects(_) => pc,
        }
    }

    /// Passes on where the contents of a line that a cache held would be.
    pub(crate) fn each_resident(&self, line: u64, mut pass_on: impl FnMut(u64)) {
        match self {
            Layout::AsIs => pass_on(line),
            Layout::Objects(relaid) => relaid.each_resident(line, pass_on),
            Layout::Code(packed) => packed.each_resident(line, pass_on),
        }
    }
}

/// Objects of one type, as the windows show them.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    /// The spots that belong to the type, by number.
    pub(crate) is_own: Vec<bool>,
    /// Bytes of an object.
    pub(crate) size_bytes: u64,
    pub(crate) pieces: Vec<Piece>,
    /// Accesses of each piece.
    pub(crate) heat: Vec<u64>,
    /// Visits of each piece: several uses of a piece during one use of an object count once, such as a constructor's
    /// many writes.
    pub(crate) visits: Vec<u64>,
    /// Accesses of each word of an object; of large objects only of the first ones.
    pub(crate) words: Vec<u64>,
    /// Addresses of objects, sorted.
    pub(crate) bases: Vec<u64>,
    /// The bytes that members take, members of members too, with their accesses; empty where few bytes are holes.
    pub(crate) taken: Vec<(Piece, u64)>,
    /// Bytes of each piece with its wide members half as wide; empty where few bytes go.
    pub(crate) narrow: Vec<u64>,
}

impl Objects {
    /// The distance between two objects that are next to each other: no less is between any two.
    fn pitch(&self) -> u64 {
        let gaps = self.bases.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.filter(|gap| *gap >= self.size_bytes).min().unwrap_or(self.size_bytes).max(1)
    }

    /// From the first object to the end of the last.
    fn room(&self) -> Range<u64> {
        let (first, last) = (self.bases.first().copied(), self.bases.last().copied());
        first.unwrap_or_default()..last.unwrap_or_default().saturating_add(self.size_bytes)
    }

    /// The share of objects that lie in arrays: that have another of the type right behind them. Not all elements of a
    /// sparsely used array are seen. If some objects touch, and all near each other are whole numbers of objects apart,
    /// the near ones count too. Objects that are allocated one by one never touch.
    pub(crate) fn share_in_arrays(&self) -> f64 {
        let gaps = || self.bases.windows(2).map(|pair| pair[1] - pair[0]);
        let touching = gaps().filter(|gap| *gap == self.size_bytes).count();
        let near = gaps().filter(|gap| gap / NEAR_OBJECTS < self.size_bytes).count();
        let is_array = touching > 0
            && gaps().all(|gap| gap / NEAR_OBJECTS >= self.size_bytes || gap.is_multiple_of(self.size_bytes));
        let counted = if is_array { near } else { touching };
        counted as f64 / (self.bases.len().max(2) - 1) as f64
    }

    /// The objects' offset in a line of this size, when most share it.
    pub(crate) fn start_in_line(&self, line_bytes: u64) -> Option<u64> {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        self.bases.iter().for_each(|base| *counts.entry(base % line_bytes).or_default() += 1);
        let (start, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        (2 * count > self.bases.len()).then_some(start)
    }

    /// The pieces that an access to these bytes of an object covers.
    pub(crate) fn covered(&self, bytes: Range<u64>) -> Range<usize> {
        covered(&self.pieces, bytes, |piece| piece)
    }

    /// The distance between objects with fewer bytes: in arrays, this number of bytes; objects that `malloc` made side
    /// by side get closer together by whole classes of its sizes. `None` where they would lie as far apart as now.
    fn closer(&self, size_bytes: u64) -> Option<u64> {
        if self.link_bytes() == 0 {
            return (size_bytes < self.size_bytes).then_some(size_bytes);
        }
        let chunk = malloc_bytes(size_bytes.next_multiple_of(WORD_BYTES));
        (self.are_of_malloc() && chunk < self.pitch()).then_some(chunk)
    }

    /// Whether objects lie as `malloc` puts some of this size side by side.
    pub(crate) fn are_of_malloc(&self) -> bool {
        self.link_bytes() > 0 && self.pitch() == malloc_bytes(self.size_bytes)
    }

    /// Bytes that the much used part of an object needs for the address of the other part. Objects outside arrays need
    /// it, since the other part is reached by its address.
    pub(crate) fn link_bytes(&self) -> u64 {
        if self.share_in_arrays() > 0.5 { 0 } else { LINK_BYTES }
    }

    /// The `hot` pieces in one array and all others in another. Each of the former has `link_bytes` for the address of
    /// the latter.
    pub(crate) fn split_linked(&self, is_hot: impl Fn(usize) -> bool, link_bytes: u64) -> Option<Relaid> {
        let (hot, cold): (Vec<usize>, Vec<usize>) = (0..self.pieces.len()).partition(|index| is_hot(*index));
        if hot.is_empty() || cold.is_empty() {
            return None;
        }
        let mut places = self.apart(&hot, 0, link_bytes);
        places.extend(self.apart(&cold, 1, 0));
        let relaid = self.relaid(places);
        (relaid.size_bytes < self.size_bytes).then_some(relaid)
    }

    /// Objects in an order with fewer holes, and so closer together; `None` where none brings them closer.
    pub(crate) fn smaller(&self) -> Option<Relaid> {
        let all: Vec<usize> = (0..self.pieces.len()).collect();
        self.side_by_side(self.apart(&all, 0, 0))
    }

    /// Objects that take the bytes of their members alone, those of structs that they hold too: no order of the same
    /// members takes fewer. `None` where few bytes are holes, or objects do not get closer together.
    pub(crate) fn without_holes(&self) -> Option<Relaid> {
        let (pieces, heat): (Vec<Piece>, Vec<u64>) = self.taken.iter().cloned().unzip();
        let (starts, end) = put_in_order(pieces.iter());
        let place = |start| PiecePlace::Apart { array: APART, stride: end, start };
        let places = starts.into_iter().map(place).enumerate().collect();
        let objects = Objects { pieces, heat, ..self.clone() };
        (end > 0).then(|| objects.side_by_side(places))?
    }

    /// Objects with wide members half as wide, as close together as they get; `None` where few bytes go.
    pub(crate) fn narrowed(&self) -> Option<Relaid> {
        if self.narrow.is_empty() {
            return None;
        }
        let small = |(piece, bytes): (&Piece, &u64)| Piece {
            end: piece.start + bytes,
            align: piece.align.min(1 << bytes.trailing_zeros()),
            ..piece.clone()
        };
        let pieces: Vec<Piece> = self.pieces.iter().zip(&self.narrow).map(small).collect();
        let objects = Objects { pieces, ..self.clone() };
        let all: Vec<usize> = (0..self.pieces.len()).collect();
        // Objects of another allocator stay where they are.
        let laid =
            objects.side_by_side(objects.apart(&all, 0, 0)).or_else(|| objects.in_order_of(&self.heat))?;
        Some(Relaid { objects: Box::new(self.clone()), narrow: self.narrow.clone(), ..laid })
    }

    /// Objects with pieces at these places of one array, as close together as they get.
    fn side_by_side(&self, mut places: BTreeMap<usize, PiecePlace>) -> Option<Relaid> {
        let size_bytes = places.values().find_map(PiecePlace::stride)?;
        let closer = self.closer(size_bytes)?;
        for place in places.values_mut() {
            if let PiecePlace::Apart { stride, .. } = place {
                *stride = closer;
            }
        }
        Some(Relaid { size_bytes, ..self.relaid(places) })
    }

    /// Each piece in an array of its own.
    pub(crate) fn by_columns(&self) -> Relaid {
        let places = (0..self.pieces.len()).flat_map(|index| self.apart(&[index], index as u64, 0));
        self.relaid(places.collect())
    }

    /// The pieces one after the other, in an array of their own.
    fn apart(&self, pieces: &[usize], number: u64, more_bytes: u64) -> BTreeMap<usize, PiecePlace> {
        let mut order = pieces.to_vec();
        order.sort_by_key(|index| std::cmp::Reverse((self.pieces[*index].align, self.heat[*index])));
        let (starts, end) = put_in_order(order.iter().map(|index| &self.pieces[*index]));
        let align = order.iter().map(|index| self.pieces[*index].align).max().unwrap_or(1);
        let stride = (end + more_bytes).next_multiple_of(align.max(more_bytes).max(1));
        let array = APART + (number % 16) * APART_EACH;
        let place = |start| PiecePlace::Apart { array, stride, start };
        order.into_iter().zip(starts.into_iter().map(place)).collect()
    }

    pub(super) fn relaid(&self, places: BTreeMap<usize, PiecePlace>) -> Relaid {
        let hot = places.values().find_map(PiecePlace::stride);
        Relaid {
            size_bytes: hot.unwrap_or(self.size_bytes),
            pitch: self.pitch(),
            starts: Starts::of(&self.bases),
            room: self.room(),
            places: (0..self.pieces.len()).map(|index| places[&index]).collect(),
            objects: Box::new(self.clone()),
            narrow: Vec::new(),
        }
    }
}

/// The places of an object's pieces in a layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Moved {
    /// Bytes of the object then, or of the part that is used much.
    pub(crate) size_bytes: u64,
    pub(crate) pieces: Vec<(Piece, Option<u64>)>,
}

impl Moved {
    /// The new offset of a byte.
    pub(crate) fn to(&self, offset: u64) -> Option<u64> {
        let own = self.pieces.iter().find(|(piece, _)| (piece.start..piece.end).contains(&offset));
        own.and_then(|(piece, to)| to.map(|to| to + (offset - piece.start)))
    }
}

/// The new place of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PiecePlace {
    /// To this offset of its object.
    Within(u64),
    /// To this offset of an element of an array.
    Apart { array: u64, stride: u64, start: u64 },
}

impl PiecePlace {
    /// Bytes between one element and the next, in the first array.
    fn stride(&self) -> Option<u64> {
        match self {
            PiecePlace::Apart { array: APART, stride, .. } => Some(*stride),
            _ => None,
        }
    }
}

/// The objects of a type, laid anew.
#[derive(Clone, Debug)]
pub(crate) struct Relaid {
    objects: Box<Objects>,
    /// Bytes of an object then, or of the part in the first array.
    size_bytes: u64,
    /// By piece.
    pub(super) places: Vec<PiecePlace>,
    /// Bytes by piece; empty where each has as many as it had.
    narrow: Vec<u64>,
    pitch: u64,
    starts: Starts,
    /// The range of the objects: most of the cached data is elsewhere.
    room: Range<u64>,
}

impl Relaid {
    /// Passes on the new addresses and bytes of an access. The last piece keeps the bytes behind it.
    #[inline]
    fn each_part(&self, (address, size_bytes): (u64, u64), point: Point, mut pass_on: impl FnMut(u64, u64)) {
        if self.objects.is_own.get(point.spot as usize) != Some(&true) {
            return pass_on(address, size_bytes);
        }
        let offset = u64::from(point.offset);
        let (base, end) = (address.wrapping_sub(offset), offset + size_bytes);
        let pieces = self.objects.covered(offset..end);
        if pieces.is_empty() {
            return pass_on(address, size_bytes);
        }
        let last = pieces.end - 1;
        for piece in pieces {
            let own = &self.objects.pieces[piece];
            let start = own.start.max(offset);
            let end = if piece == last { end } else { own.end };
            pass_on(self.of_object(base, piece, start), self.bytes_of(piece, end - start).max(1));
        }
    }

    /// The new address of an object's byte, which lies in this piece.
    fn of_object(&self, base: u64, piece: usize, offset: u64) -> u64 {
        let into = self.bytes_of(piece, offset - self.objects.pieces[piece].start);
        match self.places[piece] {
            PiecePlace::Within(start) => base + start + into,
            // Objects of kernels lie near the end of the addresses. No real memory is meant: addresses beyond the end
            // wrap to 0.
            PiecePlace::Apart { array, stride, start } => {
                array.wrapping_add((base / self.pitch).wrapping_mul(stride)).wrapping_add(start + into)
            }
        }
    }

    /// As many bytes of a piece as take the place of these.
    fn bytes_of(&self, piece: usize, bytes: u64) -> u64 {
        match self.narrow.get(piece) {
            Some(narrow) => bytes * narrow / self.objects.pieces[piece].size_bytes(),
            None => bytes,
        }
    }

    /// The new place of each piece in the object, or in the first of the arrays that objects are split into; `None` is
    /// another.
    pub(crate) fn moved(&self) -> Moved {
        let to = |place: &PiecePlace| match place {
            PiecePlace::Within(start) | PiecePlace::Apart { array: APART, start, .. } => Some(*start),
            PiecePlace::Apart { .. } => None,
        };
        let pieces = self.objects.pieces.iter().zip(&self.places);
        Moved {
            size_bytes: self.size_bytes,
            pieces: pieces.map(|(piece, place)| (piece.clone(), to(place))).collect(),
        }
    }

    /// A line held parts of objects: each of its pieces that is used at all is held where it goes.
    fn each_resident(&self, line: u64, mut pass_on: impl FnMut(u64)) {
        let Objects { bases, size_bytes, pieces, heat, .. } = &*self.objects;
        let end = line.saturating_add(LINE_BYTES);
        if line >= self.room.end || end <= self.room.start {
            return pass_on(line);
        }
        // From the first object that begins less than its length before the line.
        let first = self.starts.below(bases, (line + 1).saturating_sub(*size_bytes));
        let mut is_known = false;
        for base in bases[first..].iter().take_while(|base| **base < end) {
            is_known = true;
            for (index, piece) in pieces.iter().enumerate().filter(|(index, _)| heat[*index] > 0) {
                if base + piece.start < end && base + piece.end > line {
                    pass_on(self.of_object(*base, index, piece.start));
                }
            }
        }
        if !is_known {
            pass_on(line);
        }
    }
}

#[cfg(test)]
pub(in crate::trials) mod tests {
    use super::*;

    impl Layout {
        /// The new address of a byte.
        pub(in crate::trials) fn data(&self, address: u64, point: Point) -> u64 {
            self.parts((address, 1), point)[0].0
        }

        /// The new addresses and bytes of an access.
        fn parts(&self, access: (u64, u64), point: Point) -> Vec<(u64, u64)> {
            let mut parts = Vec::new();
            self.each_part(access, point, |address, bytes| parts.push((address, bytes)));
            parts
        }
    }

    /// Members of eight bytes.
    fn words(count: u64) -> Vec<Piece> {
        (0..count).map(|index| Piece { start: 8 * index, end: 8 * index + 8, align: 8 }).collect()
    }

    /// Objects of four members of eight bytes, of which the first and last are used, 32 bytes apart.
    pub(in crate::trials) fn objects() -> Objects {
        Objects {
            is_own: vec![false, true],
            size_bytes: 32,
            pieces: words(4),
            heat: vec![5, 0, 0, 9],
            visits: vec![5, 0, 0, 9],
            words: vec![5, 0, 0, 9],
            bases: vec![0x1000, 0x1020, 0x1040, 0x1080],
            taken: Vec::new(),
            narrow: Vec::new(),
        }
    }

    pub(in crate::trials) fn point(offset: u32) -> Point {
        Point { spot: 1, offset, site: 0 }
    }

    #[test]
    fn split_objects_have_their_used_parts_side_by_side() {
        let all = objects();
        assert!((all.share_in_arrays() - 1.0).abs() < 1e-9);
        let layout = Layout::Objects(
            all.split_linked(|index| all.heat[index] > 0, all.link_bytes()).expect("both parts"),
        );
        let first = layout.data(0x1000, point(0));
        assert_eq!(layout.data(0x1018, point(24)).abs_diff(first), 8);
        assert_eq!(layout.data(0x1020, point(0)) - first, 16);
        assert_eq!(layout.data(0x1080, point(0)) - first, 64);
        assert!(all.split_linked(|_| true, 0).is_none());
        let mut held = Vec::new();
        layout.each_resident(0x1000, |address| held.push(address));
        let expected = [(0x1000, 0), (0x1018, 24), (0x1020, 0), (0x1038, 24)];
        assert_eq!(held, expected.map(|(address, offset)| layout.data(address, point(offset))));
        held.clear();
        layout.each_resident(0x4000, |address| held.push(address));
        assert_eq!(held, [0x4000]);
    }

    /// An object that is reached by its address needs room for the other part's.
    #[test]
    fn objects_apart_from_each_other_hold_the_address_of_their_other_part() {
        let all = Objects { bases: vec![0x1000, 0x1030, 0x10f0], ..objects() };
        let layout =
            Layout::Objects(all.split_linked(|index| index == 0, all.link_bytes()).expect("both parts"));
        assert_eq!(layout.data(0x1030, point(0)) - layout.data(0x1000, point(0)), 16);
        // A used part as large as the whole is no gain.
        assert!(all.split_linked(|index| index != 1, all.link_bytes()).is_none());
    }

    #[test]
    fn objects_of_a_kernel_near_the_end_of_the_addresses_are_split_like_others() {
        let (start, second) = (0xffff_8000_0000_1000, 0xffff_8000_0000_1080);
        let all = Objects {
            size_bytes: 128,
            pieces: words(16),
            heat: vec![1; 16],
            visits: vec![1; 16],
            bases: vec![start, second],
            ..objects()
        };
        let layout = Layout::Objects(all.split_linked(|index| index == 0, 0).expect("both parts"));
        let rest = |base: u64| layout.data(base + 8, point(8));
        assert_eq!(rest(second).wrapping_sub(rest(start)), 120);
    }

    #[test]
    fn elements_of_an_array_are_told_from_objects_that_are_allocated_one_by_one() {
        let share = |bases: &[u64]| Objects { bases: bases.to_vec(), ..objects() }.share_in_arrays();
        // Every third element or so of one array, two of which touch, and another far away.
        assert!((share(&[0x1000, 0x1060, 0x1080, 0x10e0, 0x9000_0000]) - 0.75).abs() < 1e-9);
        // Chunks of 48 bytes, and whole numbers of objects apart by chance.
        assert!(share(&[0x1000, 0x1030, 0x1060, 0x10c0]).abs() < 1e-9);
        assert!(share(&[0x1000, 0x1060, 0x10c0]).abs() < 1e-9);
        // Two that touch among others.
        assert!((share(&[0x1000, 0x1020, 0x1050]) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn elements_whose_order_leaves_fewer_holes_lie_closer_together() {
        let piece = |start, end, align| Piece { start, end, align };
        let pieces = vec![piece(0, 4, 4), piece(8, 16, 8), piece(16, 20, 4)];
        let (heat, visits) = (vec![1, 2, 3], vec![1, 1, 1]);
        let bases = vec![0x1000, 0x1018, 0x1030];
        let all = Objects { pieces, heat, visits, size_bytes: 24, bases, ..objects() };
        let layout = Layout::Objects(all.smaller().expect("16 bytes"));
        let to = |base: u64, offset: u32| layout.data(base + u64::from(offset), point(offset));
        let first = to(0x1000, 8);
        assert_eq!([0, 8, 16].map(|offset| to(0x1018, offset) - first), [28, 16, 24]);
        let apart = Objects { bases: vec![0x1000, 0x1030, 0x1090], ..all };
        assert!(apart.smaller().is_none(), "the allocator decides where each is");
        assert!(objects().smaller().is_none(), "it has no hole");
    }

    #[test]
    fn objects_of_malloc_take_a_header_and_room() {
        assert_eq!([1, 16, 24, 25, 40, 41, 48].map(malloc_bytes), [32, 32, 32, 48, 48, 64, 64]);
    }

    /// 48 bytes with holes of eight, which `malloc` puts 64 bytes apart.
    #[test]
    fn objects_of_malloc_get_closer_by_whole_classes() {
        let piece = |start, end, align| Piece { start, end, align };
        let mut pieces = vec![piece(0, 4, 4), piece(8, 16, 8), piece(16, 20, 4)];
        pieces.extend([piece(24, 32, 8), piece(32, 48, 8)]);
        let (heat, visits) = (vec![1; 5], vec![1; 5]);
        let bases = vec![0x1010, 0x1050, 0x1090];
        let all = Objects { pieces, heat, visits, size_bytes: 48, bases, ..objects() };
        let layout = Layout::Objects(all.smaller().expect("40 bytes, and 48 with the header"));
        assert_eq!(layout.data(0x1058, point(8)) - layout.data(0x1018, point(8)), 48);
        let wide = Objects { size_bytes: 56, bases: vec![0x1010, 0x1050, 0x10a0], ..all.clone() };
        assert_eq!(wide.smaller().map(|relaid| relaid.moved().size_bytes), Some(40));
        let mut pieces = all.pieces.clone();
        pieces.push(piece(48, 56, 8));
        let more = Objects { pieces, heat: vec![1; 6], visits: vec![1; 6], ..wide };
        assert!(more.smaller().is_none(), "48 bytes take as many as 56");
        let elsewhere = Objects { bases: vec![0x1000, 0x1060, 0x10c0], ..all };
        assert!(elsewhere.smaller().is_none(), "another allocator decides where each is");
    }

    #[test]
    fn objects_without_holes_take_the_bytes_of_their_members() {
        let taken = |start, end| (Piece { start, end, align: 1 }, 1);
        let taken = vec![taken(0, 9), taken(16, 25)];
        let all = Objects { taken, ..objects() };
        let relaid = all.without_holes().expect("14 of 32 bytes are holes");
        assert_eq!(relaid.moved().size_bytes, 18);
        let layout = Layout::Objects(relaid);
        let first = layout.data(0x1000, point(0));
        let to = |base: u64, offset: u32| layout.data(base + u64::from(offset), point(offset)) - first;
        assert_eq!([0, 8, 16, 24].map(|offset| to(0x1020, offset)), [18, 26, 27, 35]);
        assert!(objects().without_holes().is_none(), "it has none");
    }

    #[test]
    fn narrow_objects_take_half_of_their_wide_members() {
        let all = Objects { narrow: vec![4, 4, 8, 4], ..objects() };
        let relaid = all.narrowed().expect("20 of 32 bytes");
        assert_eq!(relaid.moved().size_bytes, 24);
        let layout = Layout::Objects(relaid);
        let to = |base: u64, offset: u32| layout.data(base + u64::from(offset), point(offset));
        let first = to(0x1000, 16);
        assert_eq!([16, 24, 28, 0, 8].map(|offset| to(0x1020, offset) - first), [24, 32, 34, 36, 40]);
        let size = |point| layout.parts((0x1000, 8), point)[0].1;
        assert_eq!([0, 16].map(|offset| size(point(offset))), [4, 8]);
        assert_eq!(size(Point { spot: 0, offset: 0, site: 0 }), 8, "of another type");
        assert!(objects().narrowed().is_none(), "it has no wide members");
        let elsewhere = Objects { bases: vec![0x1000, 0x1050], ..all };
        let layout = Layout::Objects(elsewhere.narrowed().expect("in their places"));
        assert_eq!(layout.data(0x1050 + 24, point(24)), 0x1050, "used most");
        assert_eq!(layout.data(0x1050, point(0)), 0x1054);
    }

    /// A vector of the first two members, which a split parts.
    #[test]
    fn an_access_to_two_members_goes_to_both() {
        let split = objects().split_linked(|piece| piece != 1, 0).expect("three of four members");
        let layout = Layout::Objects(split);
        let alone = |base: u64, offset: u32| layout.data(base + u64::from(offset), point(offset));
        let both = layout.parts((0x1020, 16), point(0));
        assert_eq!(both, [(alone(0x1020, 0), 8), (alone(0x1020, 8), 8)]);
        assert!(both[0].0.abs_diff(both[1].0) >= APART_EACH - 0x1_0000, "{both:x?}");
        let end = layout.parts((0x103c, 16), point(28));
        assert_eq!(end, [(alone(0x1020, 28), 16)], "the next object is another's");
        assert_eq!([objects().covered(4..12), objects().covered(32..40)], [0..2, 4..4]);
        let mut taken = vec![(objects().pieces[0].clone(), 1), (objects().pieces[1].clone(), 1)];
        count_taken(&mut taken, 7..9);
        assert_eq!([taken[0].1, taken[1].1], [2, 2]);
    }

    #[test]
    fn columns_have_a_stride_of_their_member() {
        let layout = Layout::Objects(objects().by_columns());
        assert_eq!(layout.data(0x1028, point(8)) - layout.data(0x1008, point(8)), 8);
    }

    #[test]
    fn executed_code_lies_side_by_side() {
        let fetched = BTreeMap::from([(0x1000, 16), (0x1008, 24), (0x1100, 4)]);
        let packed = Packed::new(&fetched);
        assert_eq!((packed.size_bytes(), packed.lines_now(64)), (36, 2));
        let layout = Layout::Code(packed);
        assert_eq!(layout.code(0x1100) - layout.code(0x1000), 32);
        assert_eq!(layout.code(0x101f) - layout.code(0x1000), 31);
        assert_eq!([0x1020, 0x9000].map(|pc| layout.code(pc)), [0x1020, 0x9000]);
        let in_place = Layout::Code(Packed::in_place(&fetched));
        assert_eq!([0x1000, 0x1100].map(|pc| in_place.code(pc)), [0x1000, 0x1020]);
    }
}
