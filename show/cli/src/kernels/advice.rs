//! Advice on a recorded kernel, whose sources may not be available and are not built.

use crate::options::advice::tell_unfounded_reviews;
use anyhow::Result;
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_explain::Explained;
use lineup_study::progress::Progress;
use lineup_study::source::kbuild::Kbuild;
use lineup_study::source::meaning::{Reading, Units};
use lineup_study::source::texts;
use std::path::Path;

/// Advice and the texts that it edits.
pub(crate) struct KernelAdvice {
    /// The advice; no compiler judged it.
    pub(crate) advice: Advice,
    /// The kernel's sources, or its types written out as C.
    pub(crate) sources: Sources,
    /// Clang's reading of the units that were built; `None` where the compiler calls of the units are unknown.
    pub(crate) reading: Option<Reading>,
}

/// Works out orders for the types that the regions use. Without sources the declarations are written out from the
/// types, each in a file of its own. Where the kernel was built, clang reads the units that name a type which is to
/// change, and the advice is worked out again with its results.
pub(crate) fn advise(
    recorded: &Explained,
    source: Option<&Path>,
    (options, units): (&Options, &Units),
    progress: &dyn Progress,
) -> Result<KernelAdvice> {
    progress.stage("reading the sources");
    let kbuild = source.map(Kbuild::find).transpose()?.flatten();
    let sources = match (source, &kbuild) {
        (_, Some(kbuild)) => kbuild.texts(),
        (Some(folder), None) => texts::read(folder, &[])?,
        (None, None) => {
            let used = Usage::of_explained(recorded).types;
            Sources::written_out(recorded.types(), used.iter().map(|used| used.ty))
        }
    };
    advise_on(recorded, (sources, kbuild.as_ref()), (options, units), progress)
}

/// The same with sources that were read.
pub(crate) fn advise_on(
    recorded: &Explained,
    (sources, kbuild): (Sources, Option<&Kbuild>),
    (options, units): (&Options, &Units),
    progress: &dyn Progress,
) -> Result<KernelAdvice> {
    let usage = Usage::of_explained(recorded);
    let types = recorded.types();
    progress.stage("working out orders");
    let mut options = options.clone();
    let mut advice = lineup_advise::advise(&usage, types, &sources, &options, &mut NoCompiler)?;
    let mut reading = None;
    if let Some(kbuild) = kbuild {
        progress.stage("reading units with clang");
        let changed = advice.orders.iter().map(|order| order.type_name.clone()).collect();
        let read = kbuild.read(&sources, &changed, units, progress)?;
        // Without changes there are no uses to check, and the reasons have been reported already.
        if !read.goes_by_text && !advice.orders.is_empty() {
            options.meaning = read.meaning().and(options.meaning);
            // Code of another configuration, or a module, may read a member that nothing reads here.
            options.meaning.members.clear();
            tell_unfounded_reviews(&options.meaning);
            progress.stage("working out orders that the units allow");
            advice = lineup_advise::advise(&usage, types, &sources, &options, &mut NoCompiler)?;
        }
        reading = Some(read);
    }
    Ok(KernelAdvice { advice, sources, reading })
}
