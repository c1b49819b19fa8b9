//! An index of the units of a large file that describe each type, kept from one look to the next.
//!
//! Reading all types of a kernel takes more than a second, a search for one name a tenth of a second, and reading the
//! units that describe one type milliseconds. A search finds these units for one name, and a full read for all names:
//! then the index is written into the cache folder. A file is identified by its build id, its size and its time of
//! modification, so that a build that keeps its id is not taken for another. Without a build id it is identified by its
//! path. The index ends with a checksum. A name whose units do not hold as many types as the index says is searched for
//! anew.

use crate::kernels::symbols::hex;
use crate::terminal::output;
use crate::types::select::meant_by;
use anyhow::Result;
use lineup_debuginfo::{DebugInfo, is_meant};
use lineup_model::types::TypeId;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Smaller files are read faster than anyone notices.
const INDEXED_FROM_BYTES: u64 = 32 << 20;

/// The first line; another form of the file gets another number.
const FORM: &str = "lineup type index 2";

/// The path of a file's index.
pub(crate) struct Location(PathBuf);

/// The index's entry for a name: the units to read, and the number of types they hold under it.
pub(crate) struct IndexedName {
    /// In ascending order.
    pub(crate) units: Vec<u32>,
    pub(crate) types: usize,
}

impl Location {
    /// For a file that is worth an index and can have one.
    pub(crate) fn of(file: &Path, info: &DebugInfo) -> Option<Location> {
        let about = fs::metadata(file).ok()?;
        if about.len() < INDEXED_FROM_BYTES {
            return None;
        }
        let id = match info.build_id() {
            Some(id) => hex(id),
            None => name_for(fs::canonicalize(file).ok()?.as_os_str().as_encoded_bytes()),
        };
        let name = format!("{id}-{}-{}.{:09}", about.len(), about.mtime(), about.mtime_nsec());
        Some(Location(lineup_bundle::cache_folder().ok()?.join("types").join(name)))
    }

    /// The path of the index of all names.
    fn of_all(&self) -> PathBuf {
        self.0.join("all")
    }

    /// The path of the index of these names, which were looked at together.
    fn of_names(&self, names: &[&str]) -> PathBuf {
        self.0.join(name_for(names.join("\n").as_bytes()))
    }

    /// The units that describe types of these names, by the rules of [`super::select`]; `None` when that is not known.
    pub(crate) fn look_up(&self, wanted: &[&str]) -> Option<IndexedName> {
        self.remembered(wanted).or_else(|| self.among_all(wanted))
    }

    /// Writes down the result of a search for these names.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn remember(&self, wanted: &[&str], found: &IndexedName) -> Result<()> {
        let units: Vec<String> = found.units.iter().map(u32::to_string).collect();
        let text = format!("{}\t{}\t{}\n", wanted.join(" "), units.join(","), found.types);
        output::write_kept(&self.of_names(wanted), &sealed(&text))
    }

    fn remembered(&self, wanted: &[&str]) -> Option<IndexedName> {
        let text = lineup_mapping::read_text(&self.of_names(wanted)).ok()?;
        let mut fields = unsealed(&text)?.strip_suffix('\n')?.split('\t');
        if fields.next()? != wanted.join(" ") {
            return None;
        }
        Some(IndexedName { units: numbers(fields.next()?)?, types: fields.next()?.parse().ok()? })
    }

    fn among_all(&self, wanted: &[&str]) -> Option<IndexedName> {
        let text = lineup_mapping::read_text(&self.of_all()).ok()?;
        let lines = unsealed(&text)?;
        let (mut units, mut types) = (BTreeSet::new(), 0);
        for name in wanted {
            let mut targets = BTreeSet::new();
            let is_its = |line: &&str| line.split_once('\t').is_some_and(|(known, _)| is_meant(known, name));
            let meant = match line_of(lines, name) {
                Some(line) => vec![line],
                None => lines.lines().filter(is_its).collect(),
            };
            for line in meant {
                let mut fields = line.split('\t').skip(1);
                units.extend(numbers(fields.next()?)?);
                targets.extend(numbers(fields.next()?)?);
            }
            if targets.is_empty() {
                return None;
            }
            types += targets.len();
        }
        Some(IndexedName { units: units.into_iter().collect(), types })
    }

    /// Writes the index of all types of the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, info: &DebugInfo) -> Result<()> {
        text_of(info).map_or(Ok(()), |text| output::write_kept(&self.of_all(), &sealed(&text)))
    }
}

/// A text between the form of these files and their checksum.
fn sealed(text: &str) -> String {
    format!("{FORM}\n{text}{}", checksum(text))
}

/// The text in a file of this form; `None` when the file is damaged.
fn unsealed(file: &str) -> Option<&str> {
    let rest = file.strip_prefix(FORM)?.strip_prefix('\n')?;
    let (text, sum) = rest.split_at_checked(rest.len().checked_sub(CHECKSUM_LETTERS)?)?;
    (checksum(text) == sum).then_some(text)
}

/// A checksum, as text of always the same length.
fn checksum(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

/// The number of a checksum's letters.
const CHECKSUM_LETTERS: usize = 8;

/// A file name that stands for some bytes.
fn name_for(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).get(..16).unwrap_or_default())
}

/// The line of a name; there is no other of it.
fn line_of<'l>(lines: &'l str, name: &str) -> Option<&'l str> {
    let begin = format!("\n{name}\t");
    let start = match lines.starts_with(&begin[1..]) {
        true => 0,
        false => lines.find(&begin)? + 1,
    };
    lines.get(start..)?.lines().next()
}

fn numbers(list: &str) -> Option<Vec<u32>> {
    list.split(',').map(|number| number.parse().ok()).collect()
}

/// The text of the index; `None` where some type is not known to be of one unit, or not everything could be read.
fn text_of(info: &DebugInfo) -> Option<String> {
    if info.damage() > 0 || !info.missing().is_empty() {
        return None;
    }
    let types = info.types();
    let mut all: BTreeMap<&str, (BTreeSet<u32>, BTreeSet<TypeId>)> = BTreeMap::new();
    for (id, ty) in types.iter() {
        let Some(name) = ty.name.as_deref() else { continue };
        let Some(target) = meant_by(types, id) else { continue };
        if name.contains(['\t', '\n']) {
            return None;
        }
        let (units, targets) = all.entry(name).or_default();
        units.extend([info.unit_of_type(id)?, info.unit_of_type(target)?]);
        targets.insert(target);
    }
    let mut text = String::new();
    for (name, (units, targets)) in all {
        let list = |numbers: &mut dyn Iterator<Item = u32>| {
            numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
        };
        let targets = list(&mut targets.iter().map(|id| id.0));
        let _ = writeln!(text, "{name}\t{}\t{targets}", list(&mut units.into_iter()));
    }
    Some(text)
}
