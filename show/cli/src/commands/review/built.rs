//! One side of a review, built and read.

use super::args::Options;
use super::around::Around;
use super::calls::Calls;
use super::{calls, findings};
use anyhow::{Context, Result, bail};
use lineup_debuginfo::DebugInfo;
use lineup_review::{BuiltFile, FindingOfRun, Side};
use lineup_study::companions;
use lineup_study::progress::Progress;
use std::path::PathBuf;

/// A build of a commit, with its debug information, recorded calls and findings.
pub(crate) struct Built {
    /// The folder that it was built in.
    pub(crate) root: PathBuf,
    title: String,
    files: Vec<(String, DebugInfo)>,
    calls: Calls,
    found: Option<Vec<FindingOfRun>>,
}

impl Built {
    /// Reads the types of the files, and records the program where that is wanted.
    pub(crate) fn read(
        options: &Options,
        root: PathBuf,
        title: String,
        around: &Around<'_>,
    ) -> Result<Built> {
        let mut files = Vec::new();
        for file in options.compared()? {
            around.stages.stage(&format!("reading the types of {}", file.display()));
            let path = root.join(&file);
            if !path.is_file() {
                bail!("the build makes no {}; --file names the program to compare", file.display());
            }
            let info = companions::load(&path)?;
            info.require_debug_info().with_context(|| file.display().to_string())?;
            files.push((file.display().to_string(), info));
        }
        let calls = match options.regions.is_empty() {
            true => Calls::default(),
            false => calls::record(options, &root, around)?,
        };
        let found = options.find.then(|| findings::find(options, &root, around)).transpose()?;
        Ok(Built { root, title, files, calls, found })
    }

    /// This side in the review's form.
    pub(crate) fn side(&self) -> Side<'_> {
        Side {
            title: &self.title,
            root: &self.root,
            files: self
                .files
                .iter()
                .map(|(name, info)| BuiltFile { name, types: info.types(), abi: info.abi() })
                .collect(),
            regions: self.calls.regions.clone(),
            regions_missing: self.calls.missing.clone(),
            found: self.found.clone(),
        }
    }
}
