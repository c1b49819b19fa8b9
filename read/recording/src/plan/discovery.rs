//! The findings of a run for the next one, as text.

use super::lines::{Lines, PlanError, each_line, escape, hex, unescape};
use crate::records::header::Unfollowed;
use crate::records::sizes::CallSizes;
use lineup_model::access::ProcessId;
use std::collections::BTreeMap;

/// The findings of a run for the next one. Every process of a run writes one: the first to the given path, another to
/// that path with its number, see [`Discovery::path_of`].
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Discovery {
    /// Block starts by the path of their image and their link address, with their roles.
    pub blocks: BTreeMap<String, BTreeMap<u64, BlockRoles>>,
    /// Entries found by symbol for regions that had none: region, image, link address.
    pub entries: Vec<(u16, String, u64)>,
    /// Calls seen, by region.
    pub calls: Vec<u64>,
    /// Sizes of the calls that ended, by region.
    pub sizes: Vec<CallSizes>,
    /// Times that control could not be followed, because blocks ran that were not watched.
    pub gaps: u64,
    /// Programs that were started by `exec` and not recorded.
    pub unfollowed: Vec<Unfollowed>,
    /// Files mapped, in order of appearance.
    pub images: Vec<String>,
    /// Instructions the whole program executed.
    pub instructions: u64,
    /// Threads it had.
    pub threads: u64,
    /// Processes it forked off.
    pub forks: u64,
    /// The recorder's failures.
    pub notes: Vec<String>,
    /// True when the run came to its end: the list is then whole.
    pub complete: bool,
}

/// The reasons for which the second run must watch a block: a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord, Debug)]
pub struct BlockRoles(pub u8);

impl BlockRoles {
    /// Executed inside a region.
    pub const INSIDE: BlockRoles = BlockRoles(1);
    /// Leads from a call instruction to a region's entry.
    pub const APPROACH: BlockRoles = BlockRoles(2);
    /// A call of a region returns here.
    pub const RETURN: BlockRoles = BlockRoles(4);
    /// Control arrived here out of a call of a region that did not return.
    pub const LANDING: BlockRoles = BlockRoles(8);
    /// True when it has all of `other`.
    pub fn has(self, other: BlockRoles) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub fn with(self, other: BlockRoles) -> BlockRoles {
        BlockRoles(self.0 | other.0)
    }
}

impl Discovery {
    /// The discovery as text.
    pub fn to_text(&self) -> String {
        let mut lines = Lines::default();
        for (image, blocks) in &self.blocks {
            lines.text("image", image);
            blocks.iter().for_each(|(link, roles)| lines.put("block", format!("{link:x} {}", roles.0)));
        }
        for (region, image, link) in &self.entries {
            lines.put("found", format!("{region} {link:x} {}", escape(image)));
        }
        self.calls.iter().for_each(|calls| lines.put("seen", calls));
        self.sizes.iter().for_each(|sizes| lines.put("sizes", sizes_text(sizes)));
        lines.put("gaps", self.gaps);
        for Unfollowed { program, why } in &self.unfollowed {
            lines.text("unfollowed", program);
            lines.text("why", why);
        }
        self.images.iter().for_each(|image| lines.text("mapped", image));
        lines.put("forks", self.forks);
        lines.put("instructions", self.instructions);
        lines.put("threads", self.threads);
        self.notes.iter().for_each(|note| lines.text("note", note));
        lines.put("complete", self.complete);
        lines.0
    }

    /// Reads [`Discovery::to_text`] back.
    ///
    /// # Errors
    /// At the first line that is not one.
    pub fn parse(text: &str) -> Result<Discovery, PlanError> {
        let mut discovery = Discovery::default();
        let mut image = None;
        each_line(text, "discovery", |key, value| discovery.accept(key, value, &mut image))?;
        Ok(discovery)
    }

    /// The path to which a process of this number writes, when the first writes to `path`.
    pub fn path_of(path: &str, process: ProcessId) -> String {
        match process.0 {
            0 => path.to_owned(),
            number => format!("{path}.{number}"),
        }
    }

    /// Adds the blocks that another run or process found. Returns the number of new ones.
    pub fn add_blocks(&mut self, other: &Discovery) -> u64 {
        let mut new = 0;
        for (image, blocks) in &other.blocks {
            let known = self.blocks.entry(image.clone()).or_default();
            for (link, roles) in blocks {
                let all = known.entry(*link).or_default();
                new += u64::from(!all.has(*roles));
                *all = all.with(*roles);
            }
        }
        new
    }

    /// Adds the findings of another process of the same run.
    pub fn add_process(&mut self, other: &Discovery) {
        self.add_blocks(other);
        let entries: Vec<_> =
            other.entries.iter().filter(|entry| !self.entries.contains(entry)).cloned().collect();
        self.entries.extend(entries);
        self.calls.resize(self.calls.len().max(other.calls.len()), 0);
        self.calls.iter_mut().zip(&other.calls).for_each(|(sum, own)| *sum += own);
        self.sizes.resize_with(self.sizes.len().max(other.sizes.len()), CallSizes::default);
        self.sizes.iter_mut().zip(&other.sizes).for_each(|(sum, own)| sum.add_all(own));
        self.gaps += other.gaps;
        self.unfollowed.extend(other.unfollowed.iter().cloned());
        let images: Vec<_> =
            other.images.iter().filter(|image| !self.images.contains(image)).cloned().collect();
        self.images.extend(images);
        self.instructions += other.instructions;
        self.threads += other.threads;
        self.forks += other.forks;
        self.notes.extend(other.notes.iter().cloned());
    }

    pub(super) fn accept(&mut self, key: &str, value: &str, image: &mut Option<String>) -> Option<()> {
        match key {
            "image" => *image = Some(unescape(value)?),
            "block" => {
                let (link, roles) = value.split_once(' ')?;
                let blocks = self.blocks.entry(image.clone()?).or_default();
                blocks.insert(hex(link)?, BlockRoles(roles.parse().ok()?));
            }
            "found" => {
                let mut parts = value.splitn(3, ' ');
                let region = parts.next()?.parse().ok()?;
                let link = hex(parts.next()?)?;
                self.entries.push((region, unescape(parts.next()?)?, link));
            }
            "seen" => self.calls.push(value.parse().ok()?),
            "sizes" => self.sizes.push(sizes_of(value)?),
            "gaps" => self.gaps = value.parse().ok()?,
            "unfollowed" => {
                self.unfollowed.push(Unfollowed { program: unescape(value)?, why: String::new() });
            }
            "why" => self.unfollowed.last_mut()?.why = unescape(value)?,
            "forks" => self.forks = value.parse().ok()?,
            "mapped" => self.images.push(unescape(value)?),
            "instructions" => self.instructions = value.parse().ok()?,
            "threads" => self.threads = value.parse().ok()?,
            "note" => self.notes.push(unescape(value)?),
            "complete" => self.complete = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }
}

/// Instructions in all, and then a size and a number of calls in turn.
fn sizes_text(sizes: &CallSizes) -> String {
    let pairs = sizes.calls_by_size.iter().map(|(size, calls)| format!(" {size} {calls}"));
    sizes.instructions.to_string() + &pairs.collect::<String>()
}

fn sizes_of(text: &str) -> Option<CallSizes> {
    let mut numbers = text.split(' ').map(|number| number.parse::<u64>().ok());
    let mut sizes = CallSizes { instructions: numbers.next()??, ..CallSizes::default() };
    while let Some(size) = numbers.next() {
        sizes.calls_by_size.insert(size?, numbers.next()??);
    }
    Some(sizes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::plan) fn discovery() -> Discovery {
        let mut sizes = CallSizes::default();
        [7, 7, 100_000].iter().for_each(|size| sizes.add(*size));
        let mut discovery = Discovery {
            entries: vec![(1, "/lib/a b.so".into(), 0x1234)],
            calls: vec![3, 0],
            images: vec!["/bin/x".into(), "/lib/a b.so".into()],
            instructions: 1 << 40,
            sizes: vec![CallSizes::default(), sizes],
            gaps: 4,
            unfollowed: vec![Unfollowed { program: "/bin/a b".into(), why: "is\nforeign".into() }],
            forks: 1,
            threads: 2,
            notes: vec!["two\nlines \\".into()],
            complete: true,
            ..Discovery::default()
        };
        let roles = BlockRoles::INSIDE.with(BlockRoles::RETURN);
        discovery.blocks.entry("/lib/a b.so".into()).or_default().insert(0xffff_ffff_0000_0010, roles);
        discovery
    }

    #[test]
    fn a_discovery_reads_back() {
        assert_eq!(Discovery::parse(&discovery().to_text()), Ok(discovery()));
    }

    #[test]
    fn blocks_of_another_run_are_added_and_the_new_ones_counted() {
        let mut all = discovery();
        let mut more = Discovery::default();
        let library = more.blocks.entry("/lib/a b.so".into()).or_default();
        library.insert(0xffff_ffff_0000_0010, BlockRoles::INSIDE);
        library.insert(0x20, BlockRoles::INSIDE);
        assert_eq!((all.add_blocks(&more), all.add_blocks(&more)), (1, 0));
        assert_eq!(all.blocks["/lib/a b.so"].len(), 2);
    }

    #[test]
    fn processes_of_a_run_add_up() {
        let mut all = discovery();
        all.add_process(&discovery());
        assert_eq!((all.calls.clone(), all.threads, all.forks), (vec![6, 0], 4, 2));
        assert_eq!((all.entries.len(), all.images.len(), all.sizes[1].calls()), (1, 2, 6));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let error = Discovery::parse("threads 1\nblock 12 1\n").unwrap_err();
        assert_eq!(error.line, 2);
    }
}
