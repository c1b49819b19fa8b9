//! Holding a prediction against the compiler.

use crate::constraints::constraint::{Binding, Constraint};
use crate::error::AdviseError;
use crate::judge::asserted::Asserted;
use crate::judge::compiler::{Compiled, Judge};
use crate::layout::data_model::counterpart;
use crate::layout::placement::Placed;
use crate::layout::spelling::Spelling;
use crate::layout::subject::{Models, Subject, member_name};
use crate::proposal::Check;
use crate::text::marker_names::{is_marker, is_room};
use lineup_model::types::{Aggregate, Member};
use std::collections::BTreeMap;

/// Layouts as the compiler confirmed them, and how far.
pub(crate) struct Verified {
    pub(crate) after: Vec<Placed>,
    pub(crate) check: Check,
}

/// An edit, and its expected layout.
pub(crate) struct Candidate<'c> {
    /// All texts that change, with those of proposals before it.
    pub(crate) edited: &'c BTreeMap<String, String>,
    pub(crate) spelling: &'c Spelling,
    pub(crate) field_order: &'c [usize],
    pub(crate) asserted: &'c Asserted,
}

/// Has the declaration checked, or compiles the candidate and reads its layout back. Under the recorded ABI any
/// difference discards it; under the other the compiler's figures replace the prediction.
///
/// The inner error is a refusal: the compiler's words, or the member that it put elsewhere.
///
/// # Errors
/// When the build failed for another reason than the candidate.
pub(crate) fn confirm(
    judge: &mut dyn Judge,
    candidate: &Candidate<'_>,
    subject: &Subject<'_>,
    models: &Models,
    predicted: Vec<Placed>,
) -> Result<Result<Verified, Binding>, AdviseError> {
    let Candidate { edited, spelling, field_order, asserted } = *candidate;
    match judge.declares(edited, asserted) {
        Ok(true) => return Ok(Ok(Verified { after: predicted, check: Check::CompiledRecordedOnly })),
        Ok(false) => {}
        Err(error) => return Ok(Err(disagrees(error.into_first_words()?))),
    }
    let compiled = match judge.compile(edited) {
        Ok(compiled) => compiled,
        Err(error) => return Ok(Err(disagrees(error.into_first_words()?))),
    };
    Ok(hold_against(&compiled, spelling, subject, models, field_order, predicted))
}

fn disagrees(why: String) -> Binding {
    Binding::new(Constraint::CompilerDisagrees).because(why)
}

/// Holds the predicted layouts against those of the builds.
fn hold_against(
    compiled: &[Compiled],
    spelling: &Spelling,
    subject: &Subject<'_>,
    models: &Models,
    field_order: &[usize],
    predicted: Vec<Placed>,
) -> Result<Verified, Binding> {
    let recorded = subject.usage.abi;
    let mut after = predicted;
    let mut checked = vec![false; after.len()];
    for build in compiled {
        let index = usize::from(build.abi.pointer_bytes != recorded.pointer_bytes);
        let is_known = build.abi == recorded || build.abi == counterpart(recorded);
        let (Some(layout), true) = (after.get(index).cloned(), is_known || index == 0) else { continue };
        let found = read_back(build, spelling, subject, field_order)
            .map_err(|member| disagrees(format!("{member} is not where the declaration puts it")))?;
        if index == 0 && found != layout {
            let pairs = found.offsets_bits.iter().zip(&layout.offsets_bits);
            let field = pairs.enumerate().find(|(_, (a, b))| a != b).map(|(field, _)| field);
            let what = field.map_or("the size".to_string(), |field| member_name(subject.aggregate, field));
            return Err(disagrees(format!("{what} differs under {}", models.names[0])));
        }
        after[index] = found;
        checked[index] = true;
    }
    let check = match (checked.first(), checked.iter().all(|checked| *checked)) {
        (Some(true), true) => Check::Compiled,
        (Some(true), false) => Check::CompiledRecordedOnly,
        _ => Check::Predicted,
    };
    Ok(Verified { after, check })
}

/// The layout of the type in a build, by the fields' old indices. `Err` names a member that is not in
/// its place in the declaration.
fn read_back(
    build: &Compiled,
    spelling: &Spelling,
    subject: &Subject<'_>,
    field_order: &[usize],
) -> Result<Placed, String> {
    let known = |member: &&Member| {
        subject.aggregate.members.iter().any(|old| old.name == member.name)
            || !(is_marker(member.name.as_deref()) || member.name.as_deref().is_some_and(is_room))
    };
    // A group that an order writes is two members more, which take no room, and room is a member that nobody uses.
    let own =
        |aggregate: &Aggregate| aggregate.members.iter().filter(known).cloned().collect::<Vec<Member>>();
    let aggregate = build.types.by_name().get(spelling.name.as_str()).and_then(|ids| {
        let complete = |id: &&lineup_model::types::TypeId| {
            build.types.aggregate(**id).is_some_and(|(_, aggregate)| !aggregate.is_declaration)
        };
        let same_size = |id: &&lineup_model::types::TypeId| {
            build.types.aggregate(**id).is_some_and(|(_, other)| own(other).len() == field_order.len())
        };
        ids.iter().filter(complete).find(same_size).copied()
    });
    let (id, aggregate) = aggregate.and_then(|id| build.types.aggregate(id)).ok_or(spelling.name.clone())?;
    let mut offsets_bits = vec![0; field_order.len()];
    for (&field, member) in field_order.iter().zip(&own(aggregate)) {
        let expected = &subject.aggregate.members[field];
        if member.name != expected.name {
            return Err(member_name(subject.aggregate, field));
        }
        offsets_bits[field] = member.offset_bits.ok_or_else(|| member_name(subject.aggregate, field))?;
    }
    let size_bytes = build.types.size_bytes(id).unwrap_or(0);
    Ok(Placed { offsets_bits, size_bytes })
}
