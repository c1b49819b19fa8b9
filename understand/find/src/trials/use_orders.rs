//! Orders of members by their use, each object where it is.

use crate::trials::layouts::{Objects, PiecePlace, Relaid, WORD_BYTES};
use crate::trials::pieces::{Piece, closely, put_in_order};

/// The largest piece whose uses for each byte are compared.
const MOST_PIECE_BYTES: u64 = 1 << 12;
/// A word is used much when it has more than one access for one of these numbers of accesses of the most used one.
/// Code that sets objects up may be much of the windows.
const MUCH_OF_WORD: [u64; 2] = [2, 8];

impl Objects {
    /// The most used pieces first, each object where it is: by accesses, by visits and by visits for each byte. Fewer
    /// where they do not fit into it, or are the same.
    pub(crate) fn in_orders_of_use(&self) -> Vec<Relaid> {
        let of_byte = |(visits, piece): (&u64, &Piece)| visits * MOST_PIECE_BYTES / piece.size_bytes().max(1);
        let by_byte: Vec<u64> = self.visits.iter().zip(&self.pieces).map(of_byte).collect();
        let mut orders: Vec<Relaid> = Vec::new();
        for order in [&self.heat, &self.visits, &by_byte]
            .into_iter()
            .filter_map(|uses| self.in_order_of(uses))
            .chain(MUCH_OF_WORD.into_iter().filter_map(|times| self.by_their_ends(times)))
        {
            if !orders.iter().any(|known| known.places == order.places) {
                orders.push(order);
            }
        }
        orders
    }

    /// The words of a piece that are used much: the bytes before them, and those behind.
    fn unused_ends(&self, piece: &Piece, times: u64) -> Option<(u64, u64)> {
        let most = self.words.iter().copied().max().unwrap_or(0);
        let is_used = |word: &u64| self.words.get(*word as usize).is_some_and(|uses| uses * times > most);
        let mut used = (piece.start / WORD_BYTES..piece.end.div_ceil(WORD_BYTES)).filter(is_used);
        let first = used.next()?;
        let last = used.next_back().unwrap_or(first);
        let before = (first * WORD_BYTES).saturating_sub(piece.start);
        Some((before, piece.end.saturating_sub((last + 1) * WORD_BYTES)))
    }

    /// The much used words of large pieces next to each other: first the piece with most before its own, last that with
    /// most behind them. `None` where pieces are used from end to end.
    fn by_their_ends(&self, times: u64) -> Option<Relaid> {
        let ends = self.pieces.iter().enumerate();
        let mut used: Vec<(usize, (u64, u64))> =
            ends.filter_map(|(index, piece)| Some((index, self.unused_ends(piece, times)?))).collect();
        let mut take = |unused: fn((u64, u64)) -> u64| {
            let most = used.iter().enumerate().max_by_key(|(_, (_, ends))| unused(*ends));
            let most = most.filter(|(_, (_, ends))| unused(*ends) > 0).map(|(at, _)| at)?;
            Some(used.remove(most).0)
        };
        let (first, last) = (take(|(before, _)| before), take(|(_, behind)| behind));
        first.or(last)?;
        used.sort_by_key(|(_, (before, behind))| before + behind);
        let middle = used.into_iter().map(|(index, _)| index);
        let order: Vec<usize> = first.into_iter().chain(middle).chain(last).collect();
        let (small, rest): (Vec<usize>, Vec<usize>) = (0..self.pieces.len())
            .filter(|index| !order.contains(index))
            .partition(|index| self.pieces[*index].size_bytes() < WORD_BYTES);
        // Small ones stay behind those that they are behind now, where they may fill a hole.
        let mut filled = order.clone();
        for index in &small {
            let before = index.checked_sub(1).and_then(|before| filled.iter().position(|one| *one == before));
            filled.insert(before.map_or(filled.len(), |at| at + 1), *index);
        }
        [(filled, rest.clone()), (order, [small, rest].concat())].into_iter().find_map(|(order, rest)| {
            let end = put_in_order(order.iter().map(|index| &self.pieces[*index])).1;
            let rest = closely(&self.pieces, end, rest);
            self.within([order, rest].concat())
        })
    }

    /// Pieces in an order inside their objects; `None` where they take more bytes.
    fn within(&self, order: Vec<usize>) -> Option<Relaid> {
        let (starts, end) = put_in_order(order.iter().map(|index| &self.pieces[*index]));
        (end <= self.size_bytes).then(|| {
            let places = order.iter().zip(starts).map(|(index, start)| (*index, PiecePlace::Within(start)));
            self.relaid(places.collect())
        })
    }

    /// The pieces with most `uses` first.
    pub(crate) fn in_order_of(&self, uses: &[u64]) -> Option<Relaid> {
        let mut order: Vec<usize> = (0..self.pieces.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(uses[*index]));
        let is_used = |index: &usize| self.heat[*index] > 0;
        let (used, unused): (Vec<usize>, Vec<usize>) = order.iter().copied().partition(is_used);
        let close = |used: Vec<usize>| {
            let end = put_in_order(used.iter().map(|index| &self.pieces[*index])).1;
            let rest = closely(&self.pieces, end, unused.clone());
            [used, rest].concat()
        };
        let closer = closely(&self.pieces, 0, used.clone());
        [order, close(used), close(closer)].into_iter().find_map(|order| self.within(order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stalls::window_names::Point;
    use crate::trials::layouts::Layout;
    use crate::trials::layouts::tests::{objects, point};

    #[test]
    fn used_members_come_first() {
        let orders = objects().in_orders_of_use();
        assert_eq!(orders.len(), 1, "both are the same");
        let layout = Layout::Objects(orders.into_iter().next().expect("they fit"));
        assert_eq!(layout.data(0x1018, point(24)), 0x1000);
        assert_eq!(layout.data(0x1020, point(0)), 0x1028);
        assert_eq!(layout.data(0x1024, point(4)), 0x102c);
        assert_eq!(layout.data(0x1018, Point { spot: 0, offset: 24, site: 0 }), 0x1018, "of another type");
        assert_eq!(layout.data(0x1040, point(32)), 0x1040, "behind the object");
    }

    #[test]
    fn what_is_visited_most_comes_first_in_another_order() {
        let all = Objects { heat: vec![7, 0, 9, 8], visits: vec![7, 0, 2, 7], ..objects() };
        assert_eq!(first_object(&all), [[16, 24, 0, 8], [0, 24, 16, 8]]);
    }

    #[test]
    fn little_that_is_visited_comes_before_much_that_is_visited_as_often() {
        let piece = |start, end| Piece { start, end, align: 8 };
        let pieces = vec![piece(0, 8), piece(8, 16), piece(16, 48), piece(48, 56)];
        let (heat, visits) = (vec![0, 0, 9, 5], vec![0, 0, 5, 5]);
        let all = Objects { heat, visits, pieces, words: Vec::new(), size_bytes: 56, ..objects() };
        assert_eq!(first_object(&all), [[40, 48, 0, 32], [40, 48, 8, 0]]);
    }

    /// The new offsets of the first object's pieces in each order.
    fn first_object(all: &Objects) -> Vec<[u64; 4]> {
        let places = all.in_orders_of_use().into_iter().map(|relaid| {
            let layout = Layout::Objects(relaid);
            let to = |piece: &Piece| layout.data(0x1000 + piece.start, point(piece.start as u32)) - 0x1000;
            [0, 1, 2, 3].map(|index: usize| to(&all.pieces[index]))
        });
        places.collect()
    }

    /// A member's last word beside the first word of another, whatever is used of them besides.
    #[test]
    fn much_used_words_of_large_members_lie_next_to_each_other() {
        let piece = |start, end| Piece { start, end, align: 8 };
        let pieces = vec![piece(0, 64), piece(64, 72), piece(72, 160), piece(160, 168)];
        let mut words = vec![1; 21];
        for word in [0, 19, 20] {
            words[word] = 90;
        }
        let (heat, visits) = (vec![97, 1, 100, 90], vec![90, 1, 90, 90]);
        let all = Objects { heat, visits, words, pieces, size_bytes: 168, ..objects() };
        assert_eq!(first_object(&all).last(), Some(&[96, 160, 0, 88]), "the third, the fourth, the first");
        assert!(objects().by_their_ends(8).is_none(), "used from end to end");
    }
}
