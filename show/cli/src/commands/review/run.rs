//! Runs `lineup review`.

use super::args::{Options, USUAL_GUARD};
use super::around::Around;
use super::built::Built;
use super::{certificate, json};
use crate::builds::commit::How;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_advise::guard::Lock;
use lineup_review::{FailIf, GuardFile, Review, Rule, review};
use lineup_study::git::{self, Scratch};
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use std::path::Path;

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let around = Around { stages: &stages, interrupts: &interrupts };
    let repository = git::repository()?;
    let tip = git::resolve(&repository, &options.base)?;
    let head = git::resolve(&repository, &options.head)?;
    let scratch_folder = interrupts.temporary_folder().context("making a temporary folder")?;
    let folder = match &options.dir {
        Some(folder) => std::path::absolute(folder)?,
        None => scratch_folder.path().to_owned(),
    };
    let scratch = Scratch::open(&repository, &folder)?;
    let base = scratch.merge_base(&tip, &head)?.unwrap_or(tip);
    let built = |commit: &str, name: &str| side(options, &scratch, commit, name, &around);
    let (base, head) = (built(&base, "base")?, built(&head, "head")?);
    let guard = guard(options, &head.root)?;
    let fail_if = match options.fail_if.as_slice() {
        [] => vec![FailIf::any(Rule::Guard)],
        rules => rules.to_vec(),
    };
    let wanted = lineup_review::Options {
        types: &options.types,
        line: options.line_size,
        guard: guard.as_ref(),
        fail_if: &fail_if,
    };
    let mut found = review(&base.side(), &head.side(), &wanted);
    if let Some(file) = &options.certificate {
        stages.stage("checking the certificate again");
        found.certificate = Some(certificate::checked(file, [&base.root, &head.root])?);
    }
    stages.end();
    write(options, &found)?;
    Ok(if found.fails() { Outcome::Finding } else { Outcome::Done })
}

/// Builds one side, reads its types and records its calls.
fn side(
    options: &Options,
    scratch: &Scratch,
    commit: &str,
    name: &str,
    around: &Around<'_>,
) -> Result<Built> {
    let how = How {
        build: options.build.as_deref(),
        streams: if options.show_build { Streams::Shown } else { Streams::Captured },
    };
    let title = scratch.title(commit)?;
    let root = match how.built(scratch, commit, around.stages, around.interrupts)? {
        Ok(root) => root,
        Err(said) => bail!(
            "the {name}, {title}, does not build{}",
            match String::from_utf8_lossy(&said.head).trim() {
                "" => "; --show-build shows what the build prints".to_owned(),
                said => format!(" (--show-build shows all that it prints): {}", first_lines(said)),
            }
        ),
    };
    // Compilers write where a file really is.
    let root = root.canonicalize().with_context(|| root.display().to_string())?;
    Built::read(options, root, title, around).with_context(|| format!("the {name}"))
}

/// The number of complaints shown for a build: the first one mostly shows the cause.
const COMPLAINTS: usize = 6;

fn first_lines(said: &str) -> String {
    said.lines().take(COMPLAINTS).collect::<Vec<_>>().join("\n")
}

/// The promises as the head has them; the usual file may be missing.
fn guard(options: &Options, root: &Path) -> Result<Option<GuardFile>> {
    let path = root.join(&options.guard);
    let name = options.guard.display().to_string();
    if !path.exists() {
        if name != USUAL_GUARD {
            bail!("the head has no {name}");
        }
        return Ok(None);
    }
    let text = lineup_mapping::read_text(&path).with_context(|| name.clone())?;
    Ok(Some(GuardFile { lock: Lock::parse(&name, &text)?, name }))
}

fn write(options: &Options, found: &Review) -> Result<()> {
    if let Some(path) = &options.sarif {
        let text = lineup_review::sarif(found, env!("CARGO_PKG_VERSION")).context("cannot write SARIF")?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let text = match options.json {
        true => json::text(found)?,
        false => lineup_review::markdown(found),
    };
    match &options.output {
        Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display())),
        None => output::print(&text),
    }
}
