//! Which units of a large file describe which types, kept from one look at it to the next.
//!
//! All types of a kernel take more than a second to read, those of the units that describe one type milliseconds. Which units
//! these are is known once all were read: then it is written into the folder for what can be made anew. A file is known by its
//! build id, its size and when it was written, so that a build that keeps its id is not taken for another.

use super::select::meant_by;
use crate::files;
use crate::kernel::symbols::hex;
use anyhow::Result;
use lineup_debuginfo::{DebugInfo, is_meant};
use lineup_model::types::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Smaller files are read faster than anyone notices.
const INDEXED_FROM_BYTES: u64 = 32 << 20;

/// The first line; another form of the file gets another number.
const FORM: &str = "lineup type index 1";

/// Where the index of a file is.
pub(super) struct Location(PathBuf);

/// What a name stands for: the units to read, and how many types they hold under it.
pub(super) struct Found {
    /// In ascending order.
    pub(super) units: Vec<u32>,
    pub(super) types: usize,
}

impl Location {
    /// For a file that is worth an index and can have one.
    pub(super) fn of(file: &Path, info: &DebugInfo) -> Option<Location> {
        let about = fs::metadata(file).ok()?;
        let id = info.build_id().filter(|_| about.len() >= INDEXED_FROM_BYTES)?;
        let name = format!("{}-{}-{}.{:09}", hex(id), about.len(), about.mtime(), about.mtime_nsec());
        Some(Location(lineup_bundle::cache_folder().ok()?.join("types").join(name)))
    }

    /// The units that describe types of these names, by the rules of [`super::select`]; `None` when that is not known.
    pub(super) fn look_up(&self, wanted: &[&str]) -> Option<Found> {
        let text = lineup_mapping::read_text(&self.0).ok()?;
        let lines = text.strip_prefix(FORM)?.strip_prefix('\n')?;
        let (mut units, mut types) = (BTreeSet::new(), 0);
        for name in wanted {
            let mut targets = BTreeSet::new();
            let named = |is_it: &dyn Fn(&str) -> bool| -> Vec<&str> {
                let is_its = |line: &&str| line.split_once('\t').is_some_and(|(name, _)| is_it(name));
                lines.lines().filter(is_its).collect()
            };
            let exact = named(&|known| known == *name);
            let meant = if exact.is_empty() { named(&|known| is_meant(known, name)) } else { exact };
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
        Some(Found { units: units.into_iter().collect(), types })
    }

    /// Writes down what all types of the file told.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, info: &DebugInfo) -> Result<()> {
        text_of(info).map_or(Ok(()), |text| files::write_kept(&self.0, &text))
    }
}

fn numbers(list: &str) -> Option<Vec<u32>> {
    list.split(',').map(|number| number.parse().ok()).collect()
}

/// `None` where not each type is known to be of one unit, or not everything could be read.
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
    let mut text = format!("{FORM}\n");
    for (name, (units, targets)) in all {
        let list = |numbers: &mut dyn Iterator<Item = u32>| {
            numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
        };
        let targets = list(&mut targets.iter().map(|id| id.0));
        let _ = writeln!(text, "{name}\t{}\t{targets}", list(&mut units.into_iter()));
    }
    Some(text)
}
