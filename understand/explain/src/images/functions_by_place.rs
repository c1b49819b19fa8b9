//! The functions of a file by where their code lies: of a large program thousands of places are looked up among as many
//! functions.

use lineup_model::program::Function;
use std::ops::Range;

/// The code ranges of functions, in link addresses.
#[derive(Debug)]
pub(crate) struct FunctionsByPlace {
    /// Pieces of code with the positions of their functions, by where they begin.
    pieces: Vec<(Range<u64>, usize)>,
    /// The largest end of any piece up to this one.
    ends: Vec<u64>,
}

impl FunctionsByPlace {
    pub(crate) fn new(functions: &[Function]) -> Self {
        let pieces = functions.iter().enumerate();
        let pieces =
            pieces.flat_map(|(number, one)| one.ranges.iter().map(move |range| (range.clone(), number)));
        let mut pieces: Vec<(Range<u64>, usize)> = pieces.collect();
        pieces.sort_by_key(|(range, number)| (range.start, *number));
        let mut end = 0;
        let ends = pieces.iter().map(|(range, _)| {
            end = range.end.max(end);
            end
        });
        let ends = ends.collect();
        FunctionsByPlace { pieces, ends }
    }

    /// The positions of the functions that cover a link address, in their order: several when a linker has folded equal
    /// code.
    pub(crate) fn at(&self, link: u64) -> Vec<usize> {
        let begun = self.pieces.partition_point(|(range, _)| range.start <= link);
        let begun = self.pieces[..begun].iter().zip(&self.ends[..begun]).rev();
        let reaching = begun.take_while(|(_, end)| **end > link);
        let covering = reaching.filter(|((range, _), _)| range.contains(&link));
        let mut numbers: Vec<usize> = covering.map(|((_, number), _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::types::Language;

    fn function(ranges: &[(u64, u64)]) -> Function {
        Function {
            name: "one".into(),
            linkage_name: None,
            language: Language::C,
            ranges: ranges.iter().map(|(start, end)| *start..*end).collect(),
            frame_base: None,
            returns: None,
            parameters: Vec::new(),
            variables: Vec::new(),
            inlined: Vec::new(),
            declared_at: None,
        }
    }

    /// Pieces that follow each other, that overlap, that lie in each other, and that are empty: as one by one.
    #[test]
    fn what_covers_a_place_is_what_covers_it_one_by_one() {
        let functions = [
            function(&[(10, 20), (90, 95)]),
            function(&[(20, 30)]),
            function(&[(12, 14)]),
            function(&[(5, 80)]),
            function(&[(40, 40)]),
            function(&[(10, 20)]),
            function(&[]),
            function(&[(85, 92), (91, 96)]),
        ];
        let places = FunctionsByPlace::new(&functions);
        for link in 0..100 {
            let covering = functions.iter().enumerate().filter(|(_, function)| function.contains(link));
            let numbers: Vec<usize> = covering.map(|(number, _)| number).collect();
            assert_eq!(places.at(link), numbers, "{link}");
        }
    }
}
