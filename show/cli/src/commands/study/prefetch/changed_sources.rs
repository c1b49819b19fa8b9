//! The sources with both patches: that of the layout, and the prefetches on top of it.

use super::prefetched::Prefetched;
use crate::commands::study::plan::Plan;
use crate::commands::study::result_files::{PATCH, put};
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_advise::patch::{apply, unified_diff};
use lineup_advise::sources::Sources;
use lineup_study::progress::Progress;
use lineup_study::source::scratch::{Role, Tree};
use lineup_study::source::texts;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The patch of both, in the folder of the prefetches.
const BOTH: &str = "with-layout.patch";

/// The program with all patches of the sources that gain.
pub(crate) struct ChangedSources<'p> {
    /// The program of one patch.
    alone: Option<&'p Tree>,
    /// The program of two.
    both: Option<Tree>,
    /// The patch; `None` where no patch gains.
    pub(crate) patch: Option<PathBuf>,
}

/// Texts without and with prefetches.
pub(crate) struct MergedTexts {
    pub(crate) before: Sources,
    /// The texts that any patch changes, whole, by path.
    pub(crate) after: BTreeMap<String, String>,
}

impl<'p> ChangedSources<'p> {
    /// The programs of the patches that gain; the reason where the two do not fit each other.
    pub(crate) fn of(
        plan: &Plan,
        layout: Option<&'p Tree>,
        prefetched: Option<&'p Prefetched>,
        stages: &Stages,
    ) -> Result<std::result::Result<ChangedSources<'p>, String>> {
        let alone = |tree, patch| ChangedSources { alone: tree, both: None, patch };
        Ok(Ok(match (layout, prefetched) {
            (None, None) => alone(None, None),
            (Some(tree), None) => alone(Some(tree), Some(plan.out.join(PATCH))),
            (None, Some(prefetched)) => alone(Some(&prefetched.tree), Some(prefetched.patch.clone())),
            (Some(_), Some(prefetched)) => {
                let MergedTexts { after, .. } = match prefetched.merged(plan, true)? {
                    Ok(texts) => texts,
                    Err(why) => {
                        return Ok(Err(format!("the prefetches do not fit the changed layout: {why}")));
                    }
                };
                stages.stage("building the program with both patches");
                let mut tree = prefetched.scratch.copy(Role::After)?;
                prefetched.scratch.build(&mut tree, &after)?;
                let sources = texts::read(prefetched.scratch.source(), prefetched.scratch.leave_out())?;
                let folder = prefetched.patch.parent().context("the patch lies in a folder")?;
                put(folder, BOTH, &unified_diff(&sources, &after))?;
                ChangedSources { alone: None, both: Some(tree), patch: Some(folder.join(BOTH)) }
            }
        }))
    }

    /// The program.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        self.both.as_ref().or(self.alone)
    }
}

impl Prefetched {
    /// The texts with these prefetches, on top of the layout's patch where there is one; the reason where they do not
    /// fit it.
    pub(crate) fn merged(
        &self,
        plan: &Plan,
        has_layout: bool,
    ) -> Result<std::result::Result<MergedTexts, String>> {
        let sources = texts::read(self.scratch.source(), self.scratch.leave_out())?;
        let layout = match has_layout {
            true => {
                let path = plan.out.join(PATCH);
                let text =
                    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                apply(&sources, &text)?
            }
            false => BTreeMap::new(),
        };
        let before = sources.with(&layout);
        let patch = unified_diff(&sources, &self.edited);
        Ok(match apply(&before, &patch) {
            Ok(changed) => {
                let after = layout.into_iter().chain(changed).collect();
                Ok(MergedTexts { before, after })
            }
            Err(why) => Err(why.to_string()),
        })
    }
}
