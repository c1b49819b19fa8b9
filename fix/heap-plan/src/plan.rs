//! The text of a plan. Its first line is [`HEADER`]; each further line makes pools:
//!
//! ```text
//! lineup heap plan 1
//! # every object of 1 to 1024 bytes, whoever allocates it: a pool for each size class
//! pool sizes 1-1024
//! # objects of one site, which two callers reach, on huge pages
//! pool sizes 24-24 pages huge at 0a1b2c+0x1139/32 0a1b2c+0x1204 at 0a1b2c+0x1139/32 0a1b2c+0x1377
//! ```
//!
//! | word | meaning |
//! |---|---|
//! | `sizes MIN-MAX` | bytes that are asked for, at most [`LARGEST`](crate::LARGEST) |
//! | `align 8` | objects of 24 bytes lie 24 bytes apart; without it, 16 is the least alignment |
//! | `pages huge` | each 2 MiB of the pool ask for a huge page before they are touched |
//! | `pages collapse` | each 2 MiB are moved to a huge page once they are full |
//! | `at FRAME…` | only objects of this site: the return address of the call, then those of its callers |
//!
//! A line may have several `at`. Lines with sites go first; among lines of one kind, the earlier one.

use crate::classes::{Alignment, LARGEST};
use crate::frame::{CALLERS, Frame};
use std::fmt;

/// The first line of a plan.
pub const HEADER: &str = "lineup heap plan 1";

/// The pages of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pages {
    /// Those that the system gives.
    #[default]
    Usual,
    /// Huge from the start.
    Huge,
    /// Huge once they are full.
    Collapse,
}

/// A line that makes pools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolLine<'t> {
    /// The fewest bytes of an object.
    pub smallest: usize,
    /// The most.
    pub largest: usize,
    /// The least alignment of objects.
    pub alignment: Alignment,
    /// Their pages.
    pub pages: Pages,
    /// The text from the first `at`; empty where every site is meant.
    sites: &'t str,
}

/// A line of a plan that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PlanError {
    /// Its number, from 1.
    pub line: usize,
    /// The fault, or the expected words.
    pub what: &'static str,
}

impl<'t> PoolLine<'t> {
    /// A line for objects of these sizes of all sites.
    pub fn of_all(smallest: usize, largest: usize, pages: Pages) -> PoolLine<'static> {
        PoolLine { smallest, largest, alignment: Alignment::default(), pages, sites: "" }
    }

    /// A line for objects of these sizes of sites; their text begins with `at`.
    pub(crate) fn of_sites(smallest: usize, largest: usize, pages: Pages, sites: &'t str) -> Self {
        PoolLine { sites, ..PoolLine::of_all(smallest, largest, pages) }
    }

    /// True where the pools take objects of every site.
    pub fn is_of_all(&self) -> bool {
        self.sites.is_empty()
    }

    /// The sites, each with its frames; the innermost comes first.
    pub fn sites(&self) -> impl Iterator<Item = impl Iterator<Item = Frame> + use<'t>> + use<'t> {
        // Of `at A B at C`, the first part is empty.
        let sites = self.sites.split_ascii_whitespace();
        let starts = sites.clone().enumerate().filter(|(_, word)| *word == AT);
        starts.map(move |(at, _)| {
            let words = sites.clone().skip(at + 1).take_while(|word| *word != AT);
            words.filter_map(Frame::parse)
        })
    }

    fn parse(text: &'t str) -> Result<Self, &'static str> {
        let (words, sites) = match text.find(" at ") {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let mut words = words.split_ascii_whitespace();
        if words.next() != Some("pool") || words.next() != Some("sizes") {
            return Err("expected `pool sizes MIN-MAX`");
        }
        let sizes = words.next().and_then(|sizes| sizes.split_once('-'));
        let sizes = sizes.and_then(|(least, most)| Some((least.parse().ok()?, most.parse().ok()?)));
        let (smallest, largest) = sizes.ok_or("expected sizes as MIN-MAX, in bytes")?;
        if smallest > largest || largest > LARGEST {
            return Err("sizes begin with the smaller one and end at 16384");
        }
        let mut line = PoolLine { sites: sites.trim(), ..PoolLine::of_all(smallest, largest, Pages::Usual) };
        while let Some(word) = words.next() {
            match (word, words.next()) {
                ("align", Some("8")) => line.alignment = Alignment::Eight,
                ("align", Some("16")) => line.alignment = Alignment::Sixteen,
                ("pages", Some("usual")) => line.pages = Pages::Usual,
                ("pages", Some("huge")) => line.pages = Pages::Huge,
                ("pages", Some("collapse")) => line.pages = Pages::Collapse,
                _ => {
                    return Err(
                        "expected `align 8`, `align 16`, `pages usual`, `pages huge` or `pages collapse`",
                    );
                }
            }
        }
        line.check_sites()?;
        Ok(line)
    }

    fn check_sites(&self) -> Result<(), &'static str> {
        let (mut frames, mut is_open) = (0, true);
        let all = self.sites.split_ascii_whitespace().chain((!self.is_of_all()).then_some(AT));
        for (at, word) in all.enumerate() {
            match (word, Frame::parse(word)) {
                (AT, _) if at == 0 => {}
                (AT, _) if frames == 0 || is_open => {
                    return Err("a site needs a frame, and its last frame has no distance");
                }
                (AT, _) => (frames, is_open) = (0, true),
                (_, None) => return Err("expected a frame as BUILDID+0xOFFSET or BUILDID+0xOFFSET/DISTANCE"),
                (_, Some(_)) if frames == CALLERS => return Err("a site has at most four callers"),
                (_, Some(_)) if frames > 0 && !is_open => {
                    return Err("a frame before the last one needs a distance");
                }
                (_, Some(frame)) => (frames, is_open) = (frames + 1, frame.distance.is_some()),
            }
        }
        Ok(())
    }
}

const AT: &str = "at";

impl fmt::Display for PoolLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pool sizes {}-{}", self.smallest, self.largest)?;
        if self.alignment == Alignment::Eight {
            f.write_str(" align 8")?;
        }
        f.write_str(match self.pages {
            Pages::Usual => "",
            Pages::Huge => " pages huge",
            Pages::Collapse => " pages collapse",
        })?;
        match self.sites {
            "" => Ok(()),
            sites => write!(f, " {sites}"),
        }
    }
}

/// The lines of a plan, one after the other; ends with the first error.
#[derive(Clone, Debug)]
pub struct PoolLines<'t> {
    lines: std::iter::Enumerate<std::str::Lines<'t>>,
    is_over: bool,
}

/// The lines of a plan.
pub fn lines(text: &str) -> PoolLines<'_> {
    PoolLines { lines: text.lines().enumerate(), is_over: false }
}

impl<'t> Iterator for PoolLines<'t> {
    type Item = Result<PoolLine<'t>, PlanError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        loop {
            let read = match self.lines.next() {
                Some((0, HEADER)) => continue,
                Some((0, _)) => (1, Err("the first line is not `lineup heap plan 1`")),
                Some((_, line)) if line.trim().is_empty() || line.starts_with('#') => continue,
                Some((at, line)) => (at + 1, PoolLine::parse(line)),
                None => return None,
            };
            let (line, read) = read;
            self.is_over = read.is_err();
            return Some(read.map_err(|what| PlanError { line, what }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<PoolLine<'_>, &'static str> {
        PoolLine::parse(line)
    }

    #[test]
    fn a_line_is_read_as_it_is_written() {
        for text in [
            "pool sizes 1-1024",
            "pool sizes 24-24 align 8 pages huge at aa+0x1/32 bb+0x2 at aa+0x1/32 bb+0x3",
            "pool sizes 0-16384 pages collapse at aa+0x1",
        ] {
            assert_eq!(read(text).expect("a line").to_string(), text);
        }
        let line = read("pool sizes 24-24 at aa+0x1/32 bb+0x2 at cc+0x3").expect("a line");
        let sites: Vec<Vec<String>> =
            line.sites().map(|site| site.map(|frame| frame.to_string()).collect()).collect();
        assert_eq!(sites, [vec!["aa+0x1/32", "bb+0x2"], vec!["cc+0x3"]]);
        assert!(!line.is_of_all());
    }

    #[test]
    fn a_line_that_says_too_little_or_too_much_is_refused() {
        for text in [
            "pool",
            "pool sizes",
            "pool sizes 5",
            "pool sizes 9-8",
            "pool sizes 1-16385",
            "pool sizes 1-2 align 4",
            "pool sizes 1-2 huge",
            "pool sizes 1-2 at x",
            "pool sizes 1-2 at aa+0x1 at",
            "pool sizes 1-2 at aa+0x1 bb+0x2",
            "pool sizes 1-2 at aa+0x1/16",
            "pool sizes 1-2 at a+0x1/8 b+0x1/8 c+0x1/8 d+0x1/8 e+0x1/8 f+0x1",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reading_ends_with_the_first_error_and_names_its_line() {
        let text = "lineup heap plan 1\n# words\n\npool sizes 1-2\npool\npool sizes 1-2\n";
        let all: Vec<_> = lines(text).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].expect_err("no line").line, 5);
        assert_eq!(lines("pool sizes 1-2\n").next().expect("a line").expect_err("no header").line, 1);
        assert_eq!(lines("").next(), None);
    }
}
