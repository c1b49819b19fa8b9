//! Advice on a recorded kernel, whose sources may not be at hand and are not built.

use anyhow::Result;
use lineup_advise::judge::NoCompiler;
use lineup_advise::options::Options;
use lineup_advise::proposal::{Advice, OrderProposal, RegionLines};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_explain::Explained;
use lineup_model::types::{TypeId, Types};
use lineup_study::source::texts;
use std::collections::BTreeSet;
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
        None => written_out(types, &usage.types.iter().map(|used| used.ty).collect::<BTreeSet<_>>()),
    };
    let advice = lineup_advise::advise(&usage, types, &sources, options, &mut NoCompiler)?;
    Ok(KernelAdvice { advice, sources })
}

fn written_out(types: &Types, used: &BTreeSet<TypeId>) -> Sources {
    let file = |id: &TypeId| {
        let (id, _) = types.aggregate(*id)?;
        let name = types.get(id)?.name.as_deref()?;
        Some((format!("{name}.h"), types.declaration(id)?))
    };
    Sources::new(used.iter().filter_map(file))
}

/// A commit message in the kernel's style for what was ordered, with the figures before and after.
pub(crate) fn commit_message(
    orders: &[OrderProposal],
    cpus: u64,
    release: &str,
    workload: &str,
    line_bytes: u64,
) -> String {
    let names: Vec<&str> = orders.iter().map(|order| order.type_name.as_str()).collect();
    let subject = match names.as_slice() {
        [one] => format!("{one}: put what hot paths use together on fewer cache lines"),
        _ => format!("Put what hot paths use together: {}", names.join(", ")),
    };
    let mut text = format!(
        "{subject}\n\nThe accesses of these functions were recorded on {release} under workload {workload}, every call from entry\nto \
         return. Members that a call uses together now share lines of {line_bytes} bytes.\n"
    );
    for order in orders {
        text.push_str(&format!(
            "\nLines of struct {} per call, predicted from the recorded accesses:\n\n",
            order.type_name
        ));
        text.push_str("    function                          lines of  before   after\n");
        let recorded = order.sizes.first().map(|size| size.data_model);
        let is_told = |row: &&RegionLines| {
            row.line_bytes != 128 && Some(row.data_model) == recorded && row.gain() > 0.0
        };
        for row in order.lines.iter().filter(is_told) {
            let before = row.before.map_or("-".to_owned(), |before| format!("{before:.2}"));
            text.push_str(&format!(
                "    {:<32} {:>6}   {:>8} {:>7.2}\n",
                row.region, row.line_bytes, before, row.after
            ));
        }
        for size in order.sizes.iter().take(1) {
            text.push_str(&format!("    size: {} -> {} bytes\n", size.before_bytes, size.after_bytes));
        }
    }
    if cpus == 1 {
        text.push_str("\nOne CPU was recorded: what other CPUs write is not known.\n");
    }
    text.push_str("\nNothing was compiled or timed; measure before merging.\n");
    text
}
