//! Types that would be better in two parts. That is left to the user.

use crate::error::AdviseError;
use crate::kind::{Description, FixKind, KindName, Task, per_call};
use crate::kinds::sketch;
use crate::layout::current_demand;
use crate::layout::demand::Demand;
use crate::layout::granules::ONE;
use crate::layout::spelling::spelling;
use crate::layout::subject::{Subject, member_name, merge_spans};
use crate::options::Options;
use crate::proposal::{Advice, RegionLines, SPLIT, SplitAdvice};
use crate::usage::Usage;
use lineup_model::types::{TypeId, Types};
use std::collections::BTreeSet;

/// Types of more than two primary lines of which the regions touch less than a quarter, in several
/// objects per call: only then does a split save lines that an order cannot.
pub(crate) struct Splits;

impl FixKind for Splits {
    fn name(&self) -> KindName {
        SPLIT
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        let (usage, types) = (task.usage, task.types);
        for id in usage.own_aggregates(types) {
            match split(usage, types, id, task.options) {
                Some(split) if advice.is_split(&split.type_name) => {}
                Some(mut split) => {
                    split.because = advice.not_split.get(&split.type_name).map(ToString::to_string);
                    advice.splits.push(split);
                }
                None => advice.suggestions.extend(sketch::of_type(task, advice, id)),
            }
        }
        Ok(())
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.splits.iter().map(describe).chain(advice.suggestions_of(SPLIT)).collect()
    }
}

fn split(usage: &Usage, types: &Types, id: TypeId, options: &Options) -> Option<SplitAdvice> {
    let subject = Subject::new(types, id, usage)?;
    let size_bytes = types.size_bytes(id)?;
    let line_bytes = options.primary.bytes();
    let models = subject.models().ok()?;
    let demands = &models.models.first()?.demands;
    let spans = demands.iter().flat_map(|demand| &demand.spans).filter(|(_, _, size)| *size > 0);
    let touched = merge_spans(spans.map(|&(field, at, size)| (field, at, size.min(size_bytes))).collect());
    let hot_bytes = touched.iter().fold(0_u64, |sum, (_, _, size)| sum.saturating_add(*size));
    let fields: BTreeSet<usize> = touched.into_iter().map(|(field, ..)| field).collect();
    let objects_per_call: f64 = demands.iter().map(|demand| demand.per_call as f64 / ONE as f64).sum();
    let worth =
        size_bytes > 2 * line_bytes && hot_bytes.saturating_mul(4) < size_bytes && objects_per_call >= 2.0;
    (worth && hot_bytes > 0 && hot_bytes <= line_bytes / 2).then(|| SplitAdvice {
        type_name: spelling(types, id).map_or("(anonymous)".to_string(), |spelling| spelling.name),
        hot: fields.into_iter().map(|field| member_name(subject.aggregate, field)).collect(),
        hot_bytes,
        size_bytes,
        objects_per_call,
        hot_parts_per_line: line_bytes / hot_bytes,
        pointer_bytes: u64::from(usage.abi.pointer_bytes),
        lines: lines(usage, types, id, demands),
        because: None,
    })
}

/// Lines per call now, and with the used bytes packed together.
fn lines(usage: &Usage, types: &Types, id: TypeId, demands: &[Demand]) -> Vec<RegionLines> {
    let mut rows = current_demand::of_type(usage, types, id).unwrap_or_default();
    rows.retain(|row| row.data_model == usage.abi.data_model());
    for row in &mut rows {
        let packed = |demand: &Demand| {
            let bytes: u64 = demand.spans.iter().map(|(_, _, size)| *size).fold(0, u64::saturating_add);
            demand.per_call as f64 / ONE as f64 * bytes as f64 / row.line_bytes as f64
        };
        let of_region = demands.iter().filter(|demand| demand.region == row.id);
        row.after = of_region.map(packed).sum();
    }
    rows
}

fn describe(one: &SplitAdvice) -> Description {
    let why = sketch::why_by_hand(one.because.as_ref());
    let summary = format!(
        "By hand, since {why}. Calls use {} of the {} bytes of an object, and {} objects each. Stored \
         apart, {} hot parts would share a line.",
        one.hot_bytes,
        one.size_bytes,
        per_call(one.objects_per_call),
        one.hot_parts_per_line
    );
    let price = format!(
        "The price: a pointer of {} bytes in each object leads to its other part, and who uses that loads it and needs a line more.",
        one.pointer_bytes
    );
    let reasons = vec![format!("Hot: {}.", one.hot.join(", ")), price];
    Description { reasons, lines: one.lines.clone(), ..Description::told(SPLIT, &one.type_name, summary) }
}
