//! Several links of both variants' programs, of which each block of timed runs uses one.

use super::plan::Plan;
use super::variant::Variant;
use anyhow::Result;
use lineup_study::interrupt::Interrupts;
use lineup_study::source::linkers::Linkers;
use lineup_study::source::scratch::Scratch;
use std::path::{Path, PathBuf};

/// The files of each variant, as many of one as of the other.
pub(crate) type Programs = Vec<Vec<PathBuf>>;

/// Copies whose builds link as often as the plan demands.
pub(crate) fn linked(plan: &Plan, scratch: Scratch, interrupts: &Interrupts) -> Result<Scratch> {
    Ok(match plan.proof.links {
        0 | 1 => scratch,
        // Both variants have the same random numbers: a layout's effect on both cancels.
        links => scratch.linked_by(Linkers::that_link_again(links, plan.proof.seed.0, interrupts)?),
    })
}

/// The links of both variants; `None` when only one link is compared. If more were requested, a remark gives the
/// reason.
pub(crate) fn of(plan: &Plan, scratch: &Scratch, [before, after]: [&Variant; 2]) -> Result<Option<Programs>> {
    let [before, after] = [before, after].map(|variant| of_variant(plan, scratch, variant));
    Ok(before?.zip(after?).map(|(before, after)| vec![before, after]))
}

/// The links of one variant, likewise.
fn of_variant(plan: &Plan, scratch: &Scratch, variant: &Variant) -> Result<Option<Vec<PathBuf>>> {
    if plan.proof.links < 2 {
        return Ok(None);
    }
    let links = match why_not(plan, variant) {
        Some(why) => Err(why),
        None => scratch.links_of(variant.tree(), &plan.started)?,
    };
    match links {
        Ok(links) => {
            links.remark().into_iter().for_each(|remark| scratch.remark(remark));
            Ok(Some(links.files))
        }
        Err(why) => {
            scratch.remark(format!("one link of each program was compared: {why}"));
            Ok(None)
        }
    }
}

/// The reason why another link cannot be started in place of the program.
fn why_not(plan: &Plan, variant: &Variant) -> Option<String> {
    if !variant.recorded.abi().machine.is_host() {
        return Some("the program runs under an emulator".to_owned());
    }
    let is_started = |program: &Path| program == plan.started;
    (!is_started(variant.program())).then(|| {
        let program = variant.program().display();
        format!("{program} is not what is started, but a program or library that this uses")
    })
}
