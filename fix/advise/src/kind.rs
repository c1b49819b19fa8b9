//! The door for kinds of fixes: the duties of a kind, and its inputs.
//!
//! A kind proposes ([`FixKind::propose`]), guards what it proposed ([`FixKind::guard`]) and puts it in words
//! ([`FixKind::describe`]). [`crate::advise()`] goes over [`crate::kinds()`] in order; a caller with kinds of its own
//! calls [`crate::advise_with`].
//!
//! ```
//! use lineup_advise::error::AdviseError;
//! use lineup_advise::kind::{Description, FixKind, KindName, Task};
//! use lineup_advise::proposal::{Advice, Suggestion};
//!
//! /// Reports types that have holes worth a line.
//! struct Holes;
//!
//! const HOLES: KindName = KindName { slug: "holes", words: "close holes" };
//!
//! impl FixKind for Holes {
//!     fn name(&self) -> KindName {
//!         HOLES
//!     }
//!     fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
//!         for (id, ty) in task.types.iter() {
//!             let Some((_, aggregate)) = task.types.aggregate(id) else { continue };
//!             let used: u64 =
//!                 aggregate.members.iter().filter_map(|member| task.types.size_bytes(member.ty)).sum();
//!             let holes = task.types.size_bytes(id).unwrap_or(0).saturating_sub(used);
//!             if holes >= task.options.primary.bytes() {
//!                 let target = ty.name.as_deref().unwrap_or("(anonymous)").to_owned();
//!                 let summary = format!("{holes} bytes of each object hold no member.");
//!                 advice.suggestions.push(Suggestion::new(HOLES, target, summary));
//!             }
//!         }
//!         Ok(())
//!     }
//!     fn describe(&self, advice: &Advice) -> Vec<Description> {
//!         advice.suggestions_of(HOLES)
//!     }
//! }
//! # use lineup_advise::{judge::NoCompiler, options::Options, sources::Sources, usage::Usage};
//! # use lineup_model::{abi::Abi, types::Types};
//! let (usage, types, sources) = (Usage::empty(Abi::X86_64), Types::default(), Sources::default());
//! let (options, judge) = (Options::default(), &mut NoCompiler);
//! let task = Task { usage: &usage, types: &types, sources: &sources, options: &options, judge };
//! let advice = lineup_advise::advise_with(&[&Holes], task)?;
//! assert!(advice.descriptions.is_empty());
//! # Ok::<(), AdviseError>(())
//! ```

use crate::error::AdviseError;
use crate::guard::lock::Lock;
use crate::judge::compiler::Judge;
use crate::options::Options;
use crate::proposal::Advice;
pub use crate::proposal::{Description, KindName};
use crate::text::sources::Sources;
use crate::usage::Usage;
use lineup_model::types::Types;

/// The inputs of every kind.
pub struct Task<'t> {
    /// Uses of types and variables by the recorded regions.
    pub usage: &'t Usage,
    /// The program's types.
    pub types: &'t Types,
    /// The user's sources, without the edits of other kinds: those texts are in [`Advice::edited`].
    pub sources: &'t Sources,
    /// The user's options.
    pub options: &'t Options,
    /// Compiles candidates.
    pub judge: &'t mut dyn Judge,
}

/// One kind of fix.
pub trait FixKind {
    /// The kind's name.
    fn name(&self) -> KindName;

    /// Works out this kind's proposals and adds them to `advice`, which holds those of the kinds before. A kind that
    /// edits text compiles it first, together with [`Advice::edited`], and then adds its texts there.
    ///
    /// # Errors
    /// When a build failed for another reason than the proposal.
    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError>;

    /// Adds the conditions of this kind's proposals to the guard. Kinds that place nothing add nothing.
    fn guard(&self, _task: &Task<'_>, _advice: &Advice, _lock: &mut Lock) {}

    /// The proposals of this kind, in words and figures, one entry for each proposal in `advice`.
    fn describe(&self, advice: &Advice) -> Vec<Description>;
}

/// A mean per call with at most two decimals.
pub(crate) fn per_call(mean: f64) -> String {
    let text = format!("{mean:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
