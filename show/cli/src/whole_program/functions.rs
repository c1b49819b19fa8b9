//! Whole-program counts, by function.

use crate::recordings::debug_info;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_debuginfo::{DebugInfo, spelled};
use lineup_model::image::LoadedImage;
use lineup_model::process::AddressSpace;
use lineup_recording::{Event, Misses, ProfileRun, Reader};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufReader, Read, Seek};
use std::path::Path;

/// One function's counts.
#[derive(Clone, Default, Serialize)]
pub(crate) struct FunctionProfile {
    /// `None` where no symbol covers the code.
    pub(crate) function: Option<String>,
    /// The file that holds it; `None` for code outside every file.
    pub(crate) image: Option<String>,
    pub(crate) instructions: u64,
    #[serde(with = "MissesAsJson")]
    pub(crate) fetch_misses: Misses,
    pub(crate) loads: u64,
    #[serde(with = "MissesAsJson")]
    pub(crate) load_misses: Misses,
    pub(crate) stores: u64,
    #[serde(with = "MissesAsJson")]
    pub(crate) store_misses: Misses,
}

/// [`Misses`] as JSON.
#[derive(Serialize)]
#[serde(remote = "Misses")]
struct MissesAsJson {
    l1: u64,
    l2: u64,
}

impl FunctionProfile {
    fn add(&mut self, run: &ProfileRun) {
        self.instructions += run.instructions;
        self.loads += run.loads;
        self.stores += run.stores;
        self.fetch_misses += run.fetch_misses;
        self.load_misses += run.load_misses;
        self.store_misses += run.store_misses;
    }
}

/// Every function's counts, most instructions first; empty for a recording of regions.
pub(crate) fn profile(recording: &Path, stages: &Stages) -> Result<Vec<FunctionProfile>> {
    let file = lineup_mapping::open(recording).with_context(|| recording.display().to_string())?;
    profile_of(BufReader::new(file), stages)
}

/// As [`profile`], of a recording wherever it is.
pub(crate) fn profile_of(recording: impl Read + Seek, stages: &Stages) -> Result<Vec<FunctionProfile>> {
    let (mut images, mut runs) = (Vec::new(), Vec::new());
    for event in Reader::new(recording)?.without_log() {
        match event {
            Event::Image(image) => images.push(image),
            Event::Profile(run) => runs.push(run),
            _ => {}
        }
    }
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let mut debug: BTreeMap<&str, Option<DebugInfo>> = BTreeMap::new();
    let mut spaces: HashMap<AddressSpace, Vec<&LoadedImage>> = HashMap::new();
    for image in &images {
        spaces.entry(AddressSpace::of(image.start)).or_default().push(image);
        debug.entry(&image.path).or_insert_with(|| debug_info::debug_info(Path::new(&image.path), stages));
    }
    let mut functions: BTreeMap<(Option<String>, Option<String>), FunctionProfile> = BTreeMap::new();
    for run in &runs {
        let own = spaces.get(&AddressSpace::of(run.pc)).map_or(&[][..], Vec::as_slice);
        let (function, image) = place(run.pc, own, &debug);
        let profile = functions.entry((function.clone(), image.clone())).or_default();
        (profile.function, profile.image) = (function, image);
        profile.add(run);
    }
    let mut functions: Vec<FunctionProfile> = functions.into_values().collect();
    functions.sort_by_key(|profile| std::cmp::Reverse(profile.instructions));
    Ok(functions)
}

/// The function and the file at a runtime address.
fn place(
    pc: u64,
    images: &[&LoadedImage],
    debug: &BTreeMap<&str, Option<DebugInfo>>,
) -> (Option<String>, Option<String>) {
    let Some(image) = images.iter().rfind(|image| image.contains(pc)) else {
        return (None, None);
    };
    let link = image.to_link(pc);
    let symbol = debug.get(image.path.as_str()).and_then(Option::as_ref).and_then(|debug| {
        let stub = debug.plt_name(link).map(|name| format!("{name}@plt"));
        stub.or_else(|| debug.symbol_at(link).map(|symbol| spelled(&symbol.name)))
    });
    (symbol, Some(image.path.clone()))
}
