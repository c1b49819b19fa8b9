//! The present demand of a type's objects, for comparing a second recording with the prediction.

use crate::layout::figures::compare;
use crate::layout::placement::{Placed, place};
use crate::layout::subject::Subject;
use crate::proposal::RegionLines;
use crate::usage::Usage;
use lineup_model::types::{TypeId, Types};

/// Lines per call of the objects of a type, for every region that uses it, counted as proposals count them. Nothing for
/// a type that was not used, or whose layout does not follow from its members.
pub fn current_lines(usage: &Usage, types: &Types, name: &str) -> Vec<RegionLines> {
    let is_called = |id: &TypeId| types.get(*id).and_then(|ty| ty.name.as_deref()) == Some(name);
    let ids = usage.aggregates(types).into_iter().filter(is_called);
    ids.filter_map(|id| of_type(usage, types, id)).next().unwrap_or_default()
}

/// The same of one type.
pub(crate) fn of_type(usage: &Usage, types: &Types, id: TypeId) -> Option<Vec<RegionLines>> {
    let models = Subject::new(types, id, usage)?.models().ok()?;
    let now: Option<Vec<Placed>> = models
        .models
        .iter()
        .map(|model| {
            let order: Vec<usize> = (0..model.fields.len()).collect();
            place(&model.fields, &order, model.align_bytes)
        })
        .collect();
    let now = now?;
    Some(compare(usage, &models, &now, &now))
}
