//! `compare --links N`: several links of each program, by the user's own build.

use super::args::{Compare, commands};
use crate::terminal::progress::Stages;
use crate::terminal::typed_command::split;
use anyhow::{Context, Result, bail};
use lineup_stats::random::Seed;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::recorder;
use lineup_study::source::linkers::Linkers;
use lineup_study::timing::Links;

/// The links of all commands' programs, and the owner of their files.
pub(crate) struct Linked {
    /// Gone when the comparison is.
    _files: Vec<Linkers>,
    /// The files.
    pub(crate) links: Links,
}

/// Links every command's program as often as requested; `None` when no links were requested.
pub(crate) fn link(compare: &Compare, interrupts: &Interrupts, stages: &Stages) -> Result<Option<Linked>> {
    let Some(count) = compare.links else { return Ok(None) };
    let commands = commands(compare);
    if ![1, compare.commands.len()].contains(&compare.builds.len()) {
        bail!("--build is given once for all commands, or once for each");
    }
    let (mut files, mut programs) = (Vec::new(), Vec::new());
    for (variant, command) in commands.iter().enumerate() {
        let build =
            compare.builds.get(variant).or(compare.builds.first()).context("--links needs --build")?;
        // Each variant has lots of its own, also where it is one program twice.
        let seed = Seed(compare.seed).part(variant as u64);
        let linkers = Linkers::that_link_again(count, seed.0, interrupts)?;
        linkers.build(build, interrupts)?;
        let words = split(command, false)?;
        let program = recorder::executable(words.first().context("an empty command cannot be run")?)?;
        let links = linkers.links_of(&program)?;
        links.remark().iter().for_each(|remark| stages.line(&format!("lineup: {remark}")));
        programs.push(links.files);
        files.push(linkers);
    }
    Ok(Some(Linked { _files: files, links: Links { programs, seed: Seed(compare.seed) } }))
}
