//! Sources of accesses: a recording, or any other source of calls with accesses.

use crate::error::ExplainError;
use crate::explainer::{Explainer, Options};
use crate::explanation::Explanation;
pub use crate::explanation::Tells;
use crate::images::image::{Image, Placed};
use crate::threads::Tasks;
use lineup_debuginfo::DebugInfo;
use lineup_model::access::{Call, MemoryEvent, StackRange};
use lineup_model::image::LoadedImage;
use lineup_model::process::Process;
use lineup_model::region::Regions;
use lineup_recording::Reach;
use std::collections::BTreeSet;

/// A source of evidence: calls of regions with their accesses, and the known facts about the memory they went to.
///
/// An example that is a whole source, a list of samples:
///
/// ```
/// use lineup_explain::evidence_source::{EvidenceSource, Tells, explain};
/// use lineup_explain::threads::Of;
/// use lineup_explain::{ExplainError, Options};
/// use lineup_model::access::{Access, AccessKind, Call, CallEnd, ProcessId, StackRange, ThreadId};
/// use lineup_model::image::LoadedImage;
/// use lineup_model::region::{Region, RegionId, Regions};
///
/// struct Samples {
///     regions: Regions,
///     stacks: Vec<StackRange>,
///     accesses: Vec<Access>,
/// }
///
/// impl EvidenceSource for Samples {
///     fn tells(&self) -> Tells {
///         Tells { whole_calls: false, values: false, memory: false, registers: false, of: Of::Threads }
///     }
///     fn regions(&self) -> &Regions {
///         &self.regions
///     }
///     fn images(&self) -> &[LoadedImage] {
///         &[]
///     }
///     fn stacks(&self) -> &[StackRange] {
///         &self.stacks
///     }
///     fn calls(&self) -> Result<Box<dyn Iterator<Item = Call> + '_>, ExplainError> {
///         let sample = |(at, access): (u64, &Access)| Call {
///             region: RegionId(0),
///             process: ProcessId(0),
///             thread: ThreadId(0),
///             sequence: at,
///             entered_at: at,
///             end: CallEnd::Returned,
///             depth: 0,
///             instructions: 1,
///             binding_instructions: 0,
///             missed_blocks: 0,
///             arguments: None,
///             accesses: vec![*access],
///             code_granules: Vec::new(),
///             times: Vec::new(),
///         };
///         Ok(Box::new((0..).zip(&self.accesses).map(sample)))
///     }
/// }
///
/// let regions = [Region::named("f")].into_iter().collect();
/// let stacks = vec![StackRange { thread: ThreadId(0), start: 0x7000, end: 0x8000 }];
/// let access = |address| Access { pc: 0x400, address, size_bytes: 8, kind: AccessKind::Load, value: None };
/// let samples = Samples { regions, stacks, accesses: vec![access(0x7010), access(0x9000)] };
/// let explanation = explain(&samples, &[], Options::default())?;
/// assert_eq!(explanation.coverage.named, Some(0.5), "one is on the stack, the other is nowhere");
/// // Results that need whole calls are not invented.
/// assert!(explanation.regions[0].lines.is_empty() && explanation.usage.is_empty());
/// # Ok::<(), ExplainError>(())
/// ```
pub trait EvidenceSource {
    /// The kinds of facts that this source has.
    fn tells(&self) -> Tells;

    /// The regions that the calls are of.
    fn regions(&self) -> &Regions;

    /// The files mapped into the program.
    fn images(&self) -> &[LoadedImage];

    /// The places where other processes mapped these files.
    fn places(&self) -> &[Placed] {
        &[]
    }

    /// The processes that made the calls; none when there is one.
    fn processes(&self) -> &[Process] {
        &[]
    }

    /// The stacks of its threads.
    fn stacks(&self) -> &[StackRange];

    /// The calls in order, from the first on: they are gone through more than once and must be the same each time.
    ///
    /// # Errors
    /// When they cannot be read.
    fn calls(&self) -> Result<Box<dyn Iterator<Item = Call> + '_>, ExplainError>;

    /// When memory was given out and given back.
    fn memory(&self) -> &[MemoryEvent] {
        &[]
    }

    /// Bases that threads were given for their thread-local variables.
    fn thread_bases(&self) -> &[u64] {
        &[]
    }

    /// The number of calls the program made of each region, whether given or not, by the regions' ids; empty when not
    /// counted.
    fn calls_made(&self) -> Vec<u64> {
        Vec::new()
    }

    /// For a kernel on several CPUs: the tasks they worked for with the times, and the places of its calls in the order
    /// of all CPUs.
    fn order(&self) -> (Tasks, Vec<Reach>) {
        (Tasks::default(), Vec::new())
    }

    /// Runtime addresses of the instructions that accessed data in any call, and at which calls with arguments began.
    ///
    /// # Errors
    /// When the calls cannot be read.
    fn pcs(&self) -> Result<BTreeSet<u64>, ExplainError> {
        let mut pcs = BTreeSet::new();
        for call in self.calls()? {
            pcs.extend(call.pcs());
        }
        Ok(pcs)
    }
}

/// Explains the calls of a source. `debug` holds the debug info of each image, in the order of
/// [`EvidenceSource::images`].
///
/// # Errors
/// When the source cannot be read or the disassembler fails.
pub fn explain(
    source: &dyn EvidenceSource,
    debug: &[Option<DebugInfo>],
    options: Options,
) -> Result<Explanation, ExplainError> {
    let pcs = source.pcs()?;
    let places = source.places();
    let images = source.images().iter().enumerate().map(|(index, image)| {
        let debug = debug.get(index).and_then(Option::as_ref);
        let others = places.iter().filter(|placed| placed.image == index).flat_map(|placed| {
            let inside = pcs.range(placed.loaded.start..placed.loaded.end);
            inside.map(|pc| image.to_runtime(placed.loaded.to_link(*pc)))
        });
        Image::new(image.clone(), debug, &mut pcs.iter().copied().chain(others))
    });
    let regions = source.regions().clone();
    let mut explainer = Explainer::new(
        (images.collect(), places),
        source.memory(),
        source.stacks(),
        regions,
        source.tells(),
        options,
    );
    explainer.see_calls_made(source.calls_made());
    explainer.see_processes(source.processes());
    explainer.see_thread_bases(source.thread_bases());
    let (tasks, reaches) = source.order();
    explainer.see_tasks(tasks, reaches);
    for call in source.calls()? {
        explainer.observe(&call)?;
    }
    explainer.settle();
    for call in source.calls()? {
        explainer.explain(&call)?;
    }
    Ok(explainer.finish())
}
