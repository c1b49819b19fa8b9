//! The sources with all patches that gain: that of the layout, and the timed edits on top of it, one after the other.

use super::kept_edit::KeptEdit;
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

/// The patch of several, in the folder of the last one.
const ALL: &str = "with-others.patch";

/// The program with all patches of the sources that gain.
pub(crate) struct ChangedSources<'p> {
    /// The program of one patch.
    alone: Option<&'p Tree>,
    /// The program of several.
    all: Option<Tree>,
    /// The patch; `None` where no patch gains.
    pub(crate) patch: Option<PathBuf>,
}

/// Texts without and with an edit.
pub(crate) struct MergedTexts {
    pub(crate) before: Sources,
    /// The texts that any patch changes, whole, by path.
    pub(crate) after: BTreeMap<String, String>,
}

impl<'p> ChangedSources<'p> {
    /// The programs of the patches that gain; the reason where they do not fit each other.
    pub(crate) fn of(
        plan: &Plan,
        layout: Option<&'p Tree>,
        edits: &'p [KeptEdit],
        stages: &Stages,
    ) -> Result<std::result::Result<ChangedSources<'p>, String>> {
        let alone = |tree, patch| ChangedSources { alone: tree, all: None, patch };
        Ok(Ok(match (layout, edits) {
            (None, []) => alone(None, None),
            (Some(tree), []) => alone(Some(tree), Some(plan.out.join(PATCH))),
            (None, [edit]) => alone(Some(&edit.tree), Some(edit.patch.clone())),
            (_, [.., last]) => {
                let MergedTexts { after, .. } = match merged(plan, layout.is_some(), edits)? {
                    Ok(texts) => texts,
                    Err(why) => return Ok(Err(why)),
                };
                stages.stage("building the program with all patches");
                let mut tree = last.scratch.copy(Role::After)?;
                last.scratch.build(&mut tree, &after)?;
                let sources = texts::read(last.scratch.source(), last.scratch.leave_out())?;
                let folder = last.patch.parent().context("the patch lies in a folder")?;
                put(folder, ALL, &unified_diff(&sources, &after))?;
                ChangedSources { alone: None, all: Some(tree), patch: Some(folder.join(ALL)) }
            }
        }))
    }

    /// The program.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        self.all.as_ref().or(self.alone)
    }
}

/// The texts with these edits, on top of the layout's patch where there is one; `before` lacks the last edit. The reason
/// where they do not fit each other.
pub(crate) fn merged(
    plan: &Plan,
    has_layout: bool,
    edits: &[KeptEdit],
) -> Result<std::result::Result<MergedTexts, String>> {
    let last = edits.last().context("an edit")?;
    let sources = texts::read(last.scratch.source(), last.scratch.leave_out())?;
    let mut after = match has_layout {
        true => {
            let path = plan.out.join(PATCH);
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            apply(&sources, &text)?
        }
        false => BTreeMap::new(),
    };
    let mut before = sources.with(&after);
    for edit in edits {
        before = sources.with(&after);
        match apply(&before, &unified_diff(&sources, &edit.edited)) {
            Ok(changed) => after.extend(changed),
            Err(why) => return Ok(Err(format!("{} does not fit the other patches: {why}", edit.lever))),
        }
    }
    Ok(Ok(MergedTexts { before, after }))
}
