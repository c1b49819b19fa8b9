//! Advice on a recorded kernel, whose sources may not be at hand and are not built.

use anyhow::Result;
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_explain::Explained;
use lineup_study::source::texts;
use std::path::Path;

/// Advice and the texts that it edits.
pub(crate) struct KernelAdvice {
    /// The advice; no compiler judged it.
    pub(crate) advice: Advice,
    /// The kernel's sources, or its types written out as C.
    pub(crate) sources: Sources,
}

/// Works out orders for the types that the regions use. Without sources the declarations are written out from the
/// types, each in a file of its own.
pub(crate) fn advise(recorded: &Explained, source: Option<&Path>, options: &Options) -> Result<KernelAdvice> {
    let usage = Usage::of_explained(recorded);
    let types = recorded.types();
    let sources = match source {
        Some(folder) => texts::read(folder, &[])?,
        None => Sources::written_out(types, usage.types.iter().map(|used| used.ty)),
    };
    let advice = lineup_advise::advise(&usage, types, &sources, options, &mut NoCompiler)?;
    Ok(KernelAdvice { advice, sources })
}
