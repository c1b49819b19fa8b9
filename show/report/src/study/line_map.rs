//! Maps of cache lines: the members on each line's bytes, and their uses there.

use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;

/// Lines beyond this many are counted, not drawn.
pub const MOST_LINES: u64 = 512;

/// The lines of a type's objects, or of a variable, before and after the change.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineMap {
    /// The object on the lines.
    pub owner: Owner,
    /// The line size.
    pub line_bytes: u32,
    /// Objects used per call, on average, by region (index into the report's regions).
    pub objects_per_call: Vec<(usize, f64)>,
    /// Further notes, such as where objects start in their lines.
    pub notes: Vec<String>,
    /// The present lines.
    pub before: ObjectLines,
    /// The lines after the change; `None` when nothing changes.
    pub after: Option<ObjectLines>,
}

/// The object of a line map.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Owner {
    /// A type or a variable.
    pub kind: OwnerKind,
    /// Its name, as in `struct clock_event_device`.
    pub name: String,
    /// The place of its declaration, as in `include/clockchips.h:46`.
    pub declared_at: Option<String>,
}

/// Types and variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnerKind {
    /// A type: the map shows any one object.
    Type,
    /// A global or static variable.
    Variable,
    /// Several variables where the linker put them: offsets are link addresses, and a line's number is its
    /// address divided by the line size.
    Variables,
}

impl OwnerKind {
    /// An offset for people: link addresses in hexadecimal.
    pub fn offset_text(self, offset: u64) -> String {
        match self {
            Self::Variables => format!("{offset:#x}"),
            Self::Type | Self::Variable => offset.to_string(),
        }
    }

    /// The name of a line by its number.
    pub fn line_text(self, index: u64, line_bytes: u32) -> String {
        match self {
            Self::Variables => format!("{:#x}", u128::from(index) * u128::from(line_bytes)),
            Self::Type | Self::Variable => index.to_string(),
        }
    }
}

/// One region's use of a member.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RegionUse {
    /// Index into the report's regions.
    pub region: usize,
    /// Loads per call.
    pub loads_per_call: f64,
    /// Stores per call.
    pub stores_per_call: f64,
}

/// Threads that read and write the same bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Sharing {
    /// Threads that read them.
    pub readers: Vec<u32>,
    /// Threads that wrote them.
    pub writers: Vec<u32>,
    /// The number of times a thread touched data that another had written last.
    pub handovers: u64,
}

impl Sharing {
    /// True when one thread touches data that another writes.
    pub fn crosses_threads(&self) -> bool {
        self.writers
            .iter()
            .any(|writer| self.readers.iter().chain(&self.writers).any(|other| other != writer))
    }
}

/// A member as the maker of a report knows it.
#[derive(Clone, PartialEq, Debug)]
pub struct MemberUse {
    /// Its name, nested ones with their path (`read_data.mult`).
    pub name: String,
    /// Offset of its first byte in the object.
    pub offset: u64,
    /// Its size in bytes. Bit-fields may share bytes with their neighbours.
    pub size_bytes: u64,
    /// The bytes really touched, from the start of the object; empty means all of them when there is
    /// any use.
    pub touched: Vec<Range<u64>>,
    /// The regions' uses of it; empty when none uses it.
    pub uses: Vec<RegionUse>,
    /// The threads that share it, when that was observed.
    pub sharing: Option<Sharing>,
}

impl MemberUse {
    fn is_used(&self) -> bool {
        self.uses.iter().any(|u| u.loads_per_call > 0.0 || u.stores_per_call > 0.0)
    }

    fn end(&self) -> u64 {
        self.offset.saturating_add(self.size_bytes)
    }

    /// The bytes touched: none, those that are listed, or all.
    fn touched_spans(&self) -> Vec<Range<u64>> {
        let whole = self.offset..self.end();
        match self.touched.as_slice() {
            _ if !self.is_used() => Vec::new(),
            [] => Vec::from([whole]),
            listed => listed.iter().map(|span| clip(span, &whole)).collect(),
        }
    }
}

/// The use of a run of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UseClass {
    /// Read, never written.
    Loaded,
    /// Written, and perhaps read.
    Stored,
    /// Written by one thread and touched by another.
    Shared,
    /// A member that no region uses.
    Cold,
    /// Between members.
    Padding,
    /// Not of this object: something else lies there.
    Outside,
}

impl UseClass {
    /// All classes, in the order of a legend.
    pub const ALL: [UseClass; 6] =
        [Self::Loaded, Self::Stored, Self::Shared, Self::Cold, Self::Padding, Self::Outside];

    /// The class in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Loaded => "read",
            Self::Stored => "written",
            Self::Shared => "shared",
            Self::Cold => "cold",
            Self::Padding => "padding",
            Self::Outside => "outside",
        }
    }

    /// The class in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Loaded => "read",
            Self::Stored => "written",
            Self::Shared => "written by one thread, touched by another",
            Self::Cold => "not used by any region",
            Self::Padding => "padding",
            Self::Outside => "not of this object",
        }
    }
}

/// The lines that an object lies on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ObjectLines {
    /// The object's size.
    pub size_bytes: u64,
    /// Offset of the object's first byte in its first line.
    pub start_in_line: u32,
    /// The lines in order of address.
    pub lines: Vec<Line>,
    /// Lines that the object lies on beyond those listed.
    pub lines_not_listed: u64,
}

/// One line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// Its number, from 0 for the line that holds the object's first byte.
    pub index: u64,
    /// Bytes of it that the regions use.
    pub used_bytes: u64,
    /// Bytes fetched when it is touched: the line size; 0 when no region touches it.
    pub fetched_bytes: u64,
    /// Members on it that no region uses, although the line is fetched.
    pub cold_riders: Vec<String>,
    /// Its bytes without gap or overlap.
    pub cells: Vec<Cell>,
}

/// A run of bytes on one line that has one name and one use.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// Offset of its first byte in its line.
    pub in_line: u32,
    /// Offset of its first byte from the start of the object; `None` outside the object.
    pub offset: Option<u64>,
    /// The number of its bytes.
    pub size_bytes: u32,
    /// The member, or the members that share the bytes; `None` for padding and outside.
    pub name: Option<String>,
    /// Its use.
    pub class: UseClass,
    /// True when the member began on an earlier line.
    pub continued: bool,
    /// The regions' uses of the member.
    pub uses: Vec<RegionUse>,
    /// The threads that share it.
    pub sharing: Option<Sharing>,
}

impl Line {
    /// True when the line holds nothing used but the middle of an array or other member that also fills the one before:
    /// the two are shown as one.
    pub fn continues(&self, before: &Line) -> bool {
        let only = |line: &Line| {
            let mut used = line.cells.iter().filter(|cell| !cell.uses.is_empty());
            used.next().filter(|_| used.next().is_none() && line.cold_riders.is_empty()).cloned()
        };
        let (Some(here), Some(there)) = (only(self), only(before)) else { return false };
        self.index == before.index + 1 && here.continued && (here.name, here.uses) == (there.name, there.uses)
    }
}

impl ObjectLines {
    /// Lays members out on lines. Members may come in any order; those that overlap (unions, bit-fields) become one
    /// cell with the names of all. Bytes beyond the size are cut off.
    ///
    /// `start_in_line` is taken modulo `line_bytes`; a `line_bytes` of 0 counts as 1.
    pub fn new(size_bytes: u64, line_bytes: u32, start_in_line: u32, members: &[MemberUse]) -> Self {
        let line_bytes = line_bytes.max(1);
        let start_in_line = start_in_line % line_bytes;
        let width = u64::from(line_bytes);
        let units = units(size_bytes, members);
        let count = size_bytes.saturating_add(u64::from(start_in_line)).div_ceil(width).max(1);
        let shown = count.min(MOST_LINES);
        let lines = (0..shown)
            .map(|index| line(index, width, u64::from(start_in_line), size_bytes, &units))
            .collect();
        Self { size_bytes, start_in_line, lines, lines_not_listed: count - shown }
    }

    /// The touched lines of members that lie anywhere, such as variables: their offsets are addresses. Bytes between
    /// them do not belong to this object.
    pub fn at_addresses(line_bytes: u32, members: &[MemberUse]) -> Self {
        let line_bytes = line_bytes.max(1);
        let width = u64::from(line_bytes);
        let units = units(u64::MAX, members);
        let mut touched = BTreeSet::new();
        let mut not_listed = 0_u64;
        for span in members.iter().flat_map(MemberUse::touched_spans).filter(|span| span.start < span.end) {
            for index in span.start / width..=(span.end - 1) / width {
                if touched.len() as u64 == MOST_LINES && !touched.contains(&index) {
                    not_listed = not_listed.saturating_add((span.end - 1) / width - index + 1);
                    break;
                }
                touched.insert(index);
            }
        }
        let mut lines: Vec<Line> =
            touched.into_iter().map(|index| line(index, width, 0, u64::MAX, &units)).collect();
        for cell in lines.iter_mut().flat_map(|line| &mut line.cells) {
            if cell.class == UseClass::Padding {
                (cell.class, cell.offset) = (UseClass::Outside, None);
            }
        }
        let size_bytes = members.iter().filter(|member| member.is_used()).map(|member| member.size_bytes);
        let size_bytes = size_bytes.fold(0, u64::saturating_add);
        Self { size_bytes, start_in_line: 0, lines, lines_not_listed: not_listed }
    }

    /// The number of touched lines among the listed ones.
    pub fn touched_lines(&self) -> usize {
        self.lines.iter().filter(|line| line.fetched_bytes > 0).count()
    }

    /// Bytes used and bytes fetched, over all listed lines.
    pub fn used_of_fetched(&self) -> (u64, u64) {
        self.lines
            .iter()
            .fold((0, 0), |(used, fetched), line| (used + line.used_bytes, fetched + line.fetched_bytes))
    }
}

/// Members that share bytes, as one.
struct Unit<'a> {
    range: Range<u64>,
    members: Vec<&'a MemberUse>,
}

/// The members in order of offset, those that overlap taken together.
fn units(size_bytes: u64, members: &[MemberUse]) -> Vec<Unit<'_>> {
    let mut sorted: Vec<&MemberUse> =
        members.iter().filter(|member| member.size_bytes > 0 && member.offset < size_bytes).collect();
    sorted.sort_by_key(|member| member.offset);
    let mut units: Vec<Unit<'_>> = Vec::with_capacity(sorted.len());
    for member in sorted {
        let end = member.end().min(size_bytes);
        match units.last_mut() {
            Some(unit) if member.offset < unit.range.end => {
                unit.range.end = unit.range.end.max(end);
                unit.members.push(member);
            }
            _ => units.push(Unit { range: member.offset..end, members: vec![member] }),
        }
    }
    units
}

/// One line's cells: the units that reach into it and the bytes between them.
fn line(index: u64, width: u64, start_in_line: u64, size_bytes: u64, units: &[Unit<'_>]) -> Line {
    // The object's bytes on this line, as offsets in the object.
    let from = (index * width).saturating_sub(start_in_line);
    let to = (index + 1).saturating_mul(width).saturating_sub(start_in_line).min(size_bytes);
    let place = |offset: u64| (offset + start_in_line - index * width) as u32;
    let mut cells = Vec::new();
    if index == 0 && start_in_line > 0 {
        cells.push(gap(0, start_in_line as u32, None));
    }
    let mut at = from;
    let first = units.partition_point(|unit| unit.range.end <= from);
    for unit in units[first..].iter().take_while(|unit| unit.range.start < to) {
        let piece = clip(&unit.range, &(from..to));
        if piece.start > at {
            cells.push(gap(place(at), (piece.start - at) as u32, Some(at)));
        }
        cells.push(unit.cell(&piece, place(piece.start)));
        at = piece.end;
    }
    if at < to {
        cells.push(gap(place(at), (to - at) as u32, Some(at)));
    }
    let end = cells.last().map_or(0, |cell| cell.in_line + cell.size_bytes);
    if u64::from(end) < width {
        cells.push(gap(end, (width as u32) - end, None));
    }
    summed_up(index, width, cells, units[first..].iter().map(|unit| unit.touched_in(&(from..to))).sum())
}

fn summed_up(index: u64, width: u64, cells: Vec<Cell>, used_bytes: u64) -> Line {
    let cold_riders = match used_bytes {
        0 => Vec::new(),
        _ => cells
            .iter()
            .filter(|cell| cell.class == UseClass::Cold)
            .filter_map(|cell| cell.name.clone())
            .collect(),
    };
    Line { index, used_bytes, fetched_bytes: if used_bytes > 0 { width } else { 0 }, cold_riders, cells }
}

/// Bytes without a member: padding at an offset in the object, or outside it.
fn gap(in_line: u32, size_bytes: u32, offset: Option<u64>) -> Cell {
    let class = if offset.is_some() { UseClass::Padding } else { UseClass::Outside };
    Cell { in_line, offset, size_bytes, name: None, class, continued: false, uses: Vec::new(), sharing: None }
}

impl Unit<'_> {
    /// The number of bytes inside a range that any of the members touches.
    fn touched_in(&self, range: &Range<u64>) -> u64 {
        let mut spans: Vec<Range<u64>> = self
            .members
            .iter()
            .flat_map(|member| member.touched_spans())
            .map(|span| clip(&span, range))
            .collect();
        spans.sort_by_key(|span| span.start);
        let mut reached = 0;
        let mut bytes = 0;
        for span in spans {
            bytes += span.end.saturating_sub(span.start.max(reached));
            reached = reached.max(span.end);
        }
        bytes
    }

    fn cell(&self, piece: &Range<u64>, in_line: u32) -> Cell {
        let is_touched = self.touched_in(piece) > 0;
        let names: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        let uses = if is_touched { self.uses() } else { Vec::new() };
        let sharing = self.members.iter().find_map(|member| member.sharing.clone());
        let class = match () {
            () if !is_touched => UseClass::Cold,
            () if sharing.as_ref().is_some_and(Sharing::crosses_threads) => UseClass::Shared,
            () if uses.iter().any(|u| u.stores_per_call > 0.0) => UseClass::Stored,
            () => UseClass::Loaded,
        };
        Cell {
            in_line,
            offset: Some(piece.start),
            size_bytes: (piece.end - piece.start) as u32,
            name: Some(names.join(" | ")),
            class,
            continued: piece.start > self.range.start,
            uses,
            sharing,
        }
    }

    /// The uses of all members, summed by region.
    fn uses(&self) -> Vec<RegionUse> {
        let mut summed: Vec<RegionUse> = Vec::new();
        for one in self.members.iter().flat_map(|member| &member.uses) {
            match summed.iter_mut().find(|known| known.region == one.region) {
                Some(known) => {
                    known.loads_per_call += one.loads_per_call;
                    known.stores_per_call += one.stores_per_call;
                }
                None => summed.push(*one),
            }
        }
        summed.sort_by_key(|u| u.region);
        summed
    }
}

fn clip(range: &Range<u64>, to: &Range<u64>) -> Range<u64> {
    let start = range.start.max(to.start);
    start..range.end.min(to.end).max(start)
}
