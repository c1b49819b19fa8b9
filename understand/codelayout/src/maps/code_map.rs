//! Executed code line by line and page by page.

use crate::code::Code;
use crate::execution_counts::Executed;
use crate::fetched_lines::{Fetches, RegionCalls, RegionFetch};
use crate::flow::function::Function;
use crate::maps::footprint::{Footprint, LINE_BYTES, PAGE_BYTES};
use std::collections::BTreeMap;
use std::ops::Range;

/// Lines on a page.
const LINES: usize = (PAGE_BYTES / LINE_BYTES) as usize;

/// The places of a file's executed code.
#[derive(Clone, PartialEq, Debug)]
pub struct CodeMap {
    /// Regions whose calls were recorded besides; empty without such a recording.
    pub regions: Vec<RegionCalls>,
    /// Functions of which some was executed, most instructions first.
    pub functions: Vec<MappedFunction>,
    /// Pages that hold some of them, by address.
    pub pages: BTreeMap<u64, MappedPage>,
}

/// A function, line by line.
#[derive(Clone, PartialEq, Debug)]
pub struct MappedFunction {
    /// Its symbol.
    pub name: String,
    /// Link addresses.
    pub addresses: Range<u64>,
    /// Times it was entered at its beginning.
    pub entries: u64,
    /// Instructions executed in it.
    pub instructions: u64,
    /// The executed part of it.
    pub code: Footprint,
    /// Lines of which some of it was executed, by address.
    pub lines: Vec<MappedLine>,
}

/// A line of 64 bytes of which some was executed. A set bit stands for a byte, the lowest for the first.
#[derive(Clone, PartialEq, Debug)]
pub struct MappedLine {
    /// Link address.
    pub address: u64,
    /// Bytes that belong to the function.
    pub own: u64,
    /// Bytes of the function that were executed.
    pub executed: u64,
    /// The count of the most executed of them.
    pub most_times: u64,
    /// Regions whose calls fetched it.
    pub fetched_by: Vec<RegionFetch>,
}

impl MappedLine {
    /// Bytes of the function that were fetched with others and never executed.
    pub fn cold_bytes(&self) -> u32 {
        (self.own & !self.executed).count_ones()
    }
}

/// A page of 4096 bytes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MappedPage {
    /// For each of its 64 lines, the number of executed bytes.
    pub executed_bytes: Vec<u32>,
    /// Functions that were executed on it, by their numbers.
    pub functions: Vec<usize>,
}

impl MappedPage {
    /// Lines of which some was executed.
    pub fn lines(&self) -> usize {
        self.executed_bytes.iter().filter(|bytes| **bytes > 0).count()
    }
}

impl Code<'_> {
    /// The places of the executed code, with the recorded calls that fetched it.
    pub fn map(&self, fetches: &Fetches) -> CodeMap {
        let mut functions: Vec<MappedFunction> =
            self.functions.iter().map(|one| mapped(one, &self.executed, fetches)).collect();
        functions.sort_by(|a, b| b.instructions.cmp(&a.instructions).then_with(|| a.name.cmp(&b.name)));
        let mut pages: BTreeMap<u64, MappedPage> = BTreeMap::new();
        for (number, function) in functions.iter().enumerate() {
            for line in &function.lines {
                let (page, within) = (line.address / PAGE_BYTES, line.address % PAGE_BYTES / LINE_BYTES);
                let page = pages.entry(page * PAGE_BYTES).or_default();
                page.executed_bytes.resize(LINES, 0);
                page.executed_bytes[within as usize] += line.executed.count_ones();
                if page.functions.last() != Some(&number) {
                    page.functions.push(number);
                }
            }
        }
        CodeMap { regions: fetches.regions.clone(), functions, pages }
    }
}

fn mapped(function: &Function, executed: &Executed, fetches: &Fetches) -> MappedFunction {
    let mut lines: Vec<MappedLine> = Vec::new();
    for part in &function.executed {
        for line in part.start / LINE_BYTES..=(part.end - 1) / LINE_BYTES {
            let address = line * LINE_BYTES;
            if lines.last().is_none_or(|last| last.address < address) {
                lines.push(mapped_line(address, &function.addresses, executed, fetches));
            }
        }
    }
    MappedFunction {
        name: function.name.clone(),
        addresses: function.addresses.clone(),
        entries: function.entries,
        instructions: function.instructions,
        code: Footprint::of(&function.executed),
        lines,
    }
}

fn mapped_line(address: u64, own: &Range<u64>, executed: &Executed, fetches: &Fetches) -> MappedLine {
    let fetched_by = fetches.of_line(address);
    let mut line = MappedLine { address, own: 0, executed: 0, most_times: 0, fetched_by };
    for bit in (0..LINE_BYTES).filter(|bit| own.contains(&(address + bit))) {
        let times = executed.at(address + bit);
        line.own |= 1 << bit;
        line.executed |= u64::from(times > 0) << bit;
        line.most_times = line.most_times.max(times);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::image::LoadedImage;
    use lineup_recording::{Misses, ProfileRun};

    fn run(pc: u64, size_bytes: u32, executions: u64) -> ProfileRun {
        let misses = Misses::default();
        ProfileRun {
            pc,
            size_bytes,
            executions,
            instructions: executions,
            fetch_misses: misses,
            loads: 0,
            load_misses: misses,
            stores: 0,
            store_misses: misses,
        }
    }

    #[test]
    fn a_line_tells_its_executed_bytes_from_cold_ones_and_from_other_functions() {
        let image = LoadedImage { path: "a".into(), start: 0, end: 0x9000, bias: 0, build_id: None };
        let executed = Executed::of(&[run(0x1030, 4, 3), run(0x1038, 8, 9), run(0x10c0, 2, 1)], &image);
        let addresses = 0x1030..0x1100;
        let function = Function {
            name: "f".into(),
            executed: executed.ranges_in(&addresses),
            addresses,
            entries: 3,
            instructions: 13,
            edges: Vec::new(),
            calls: Vec::new(),
        };
        let lines = mapped(&function, &executed, &Fetches::default()).lines;
        let told: Vec<_> = lines
            .iter()
            .map(|line| (line.address, line.executed, line.most_times, line.cold_bytes()))
            .collect();
        assert_eq!(told, [(0x1000, 0xff0f << 48, 9, 4), (0x10c0, 0b11, 1, 62)]);
        assert_eq!(lines[0].own, 0xffff << 48);
    }
}
