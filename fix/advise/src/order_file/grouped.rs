//! An order in groups, as kernel developers write them by hand: members that are read apart from members that are
//! written, each by the functions that use them.

use super::lines::with_those_in_others;
use super::{ANONYMOUS, Group, Item, WrittenOrder};
use crate::layout::placement::Field;
use crate::layout::subject::{RecordedOffsets, Subject, members_in};
use crate::text::marker_names::is_marker;
use crate::usage::Usage;
use lineup_model::region::RegionId;
use lineup_model::types::{TypeId, TypeKind, Types};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

/// A member that a smaller share of every function's calls uses counts as not used.
const LEAST_USED: f64 = 0.1;

/// A member that a smaller share of every function's calls writes counts as read only: a clock's parameters, set now
/// and then.
const LEAST_WRITTEN: f64 = 0.02;

/// Functions that do one kind of work, such as to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// Its short name, as groups bear it.
    pub name: String,
    /// The functions, of those that were recorded.
    pub regions: BTreeSet<RegionId>,
}

/// The share of calls that use and that write a member, at the most over the functions of one kind of work.
#[derive(Clone, Copy, Default)]
struct Share {
    used: f64,
    written: f64,
}

/// The members of a type in groups: those that are only read before those that are written, each by the kinds of work
/// that use them; unused members come last, in their order. Both halves begin a line of `line_bytes`. A struct with
/// which the type begins stays first, since it may be taken for the whole. `None` when no member is used, or the layout
/// is not understood.
pub fn grouped(
    types: &Types,
    usage: &Usage,
    id: TypeId,
    works: &[Work],
    line_bytes: u64,
) -> Option<WrittenOrder> {
    let usage = &with_those_in_others(types, usage, id);
    let subject = Subject::new(types, id, usage)?;
    let models = subject.models().ok()?;
    let fields = &models.models.first()?.fields;
    let shares: Vec<Vec<Share>> = works.iter().map(|work| shares(&subject, work)).collect();
    let mut groups: BTreeMap<(bool, Vec<usize>), Vec<Range<usize>>> = BTreeMap::new();
    for run in runs(&subject, fields) {
        let used = |work: &usize| run.clone().any(|member| shares[*work][member].used >= LEAST_USED);
        let by: Vec<usize> = (0..works.len()).filter(used).collect();
        let is_written =
            by.iter().any(|work| run.clone().any(|member| shares[*work][member].written >= LEAST_WRITTEN));
        if !by.is_empty() {
            groups.entry((is_written, by)).or_default().push(run);
        }
    }
    let type_name = crate::layout::spelling::spelling(types, subject.id)?.name;
    let name =
        |member: usize| subject.aggregate.members[member].name.as_deref().unwrap_or(ANONYMOUS).to_owned();
    let mut order =
        WrittenOrder { type_name, file: String::new(), line: 1, items: Vec::new(), groups: Vec::new() };
    let plain = |name: String| Item { name, align_bytes: None };
    order.items.extend(begins_with_struct(&subject).then(|| plain(name(0))));
    let mut begun = BTreeSet::new();
    for ((is_written, by), mut members) in groups {
        // Larger alignments first leave no holes.
        members.sort_by_key(|run| (std::cmp::Reverse(fields[run.start].align_bytes), run.start));
        let begin = order.items.len();
        let begins_line = members.first().is_some_and(|run| fields[run.start].bit_width.is_none());
        order.items.extend(members.into_iter().flatten().map(|member| plain(name(member))));
        if begun.insert(is_written) && begins_line {
            order.items[begin].align_bytes = Some(line_bytes);
        }
        let by: String = by.iter().map(|work| works[*work].name.as_str()).collect();
        let access = if is_written { "write" } else { "read" };
        let group = format!("{}_{access}_{by}", order.type_name);
        order.groups.push(Group { name: group, align_bytes: None, members: begin..order.items.len() });
    }
    if order.groups.is_empty() {
        return None;
    }
    if order.items.len() < subject.aggregate.members.len() {
        order.items.push(plain(super::REST.to_owned()));
    }
    Some(order)
}

/// The shares of calls that use and write each member: the largest over the functions.
fn shares(subject: &Subject<'_>, work: &Work) -> Vec<Share> {
    let mut all = vec![Share::default(); subject.aggregate.members.len()];
    let offsets = subject.types.layout_offsets(subject.id).unwrap_or_default();
    for used in subject.uses.iter().filter(|used| work.regions.contains(&used.region)) {
        let mut sums = vec![Share::default(); all.len()];
        for pattern in &used.patterns {
            let mut touched = BTreeMap::<usize, u64>::new();
            for bytes in &pattern.bytes {
                let range = bytes.offset..bytes.offset.saturating_add(bytes.size_bytes);
                for (member, _) in members_in(subject.types, subject.aggregate, &offsets, &range) {
                    *touched.entry(member).or_default() += bytes.stores;
                }
            }
            for (member, stores) in touched {
                sums[member].used += pattern.occurrences as f64;
                sums[member].written += stores.min(pattern.occurrences) as f64;
            }
        }
        let calls = used.calls.max(1) as f64;
        for (most, sum) in all.iter_mut().zip(sums) {
            most.used = most.used.max(sum.used / calls);
            most.written = most.written.max(sum.written / calls);
        }
    }
    all
}

/// Members that move as one: bit-fields that follow each other, and each other alone. Markers of groups do not move,
/// nor do members that an order could not name, nor members that stay first.
fn runs(subject: &Subject<'_>, fields: &[Field]) -> Vec<Range<usize>> {
    let members = &subject.aggregate.members;
    let is_bits = |member: usize| fields[member].bit_width.is_some();
    let nameless = members.iter().filter(|member| member.name.is_none()).count();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for member in usize::from(begins_with_struct(subject))..fields.len().min(members.len()) {
        match runs.last_mut() {
            Some(last) if is_bits(member) && last.end == member && is_bits(last.start) => last.end += 1,
            _ => runs.push(member..member + 1),
        }
    }
    runs.retain(|run| {
        let name = members[run.start].name.as_deref();
        !is_marker(name) && (name.is_some() || nameless == 1)
    });
    runs
}

fn begins_with_struct(subject: &Subject<'_>) -> bool {
    let first = subject.aggregate.members.first().and_then(|member| subject.types.strip(member.ty));
    let first = first.and_then(|ty| subject.types.get(ty));
    subject.aggregate.members.len() > 1 && first.is_some_and(|ty| matches!(ty.kind, TypeKind::Aggregate(_)))
}

/// Members on a line of a file of orders at most.
const ON_A_LINE: usize = 6;

impl fmt::Display for WrittenOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aligned = |bytes: Option<u64>| bytes.map_or(String::new(), |bytes| format!("align({bytes}) "));
        let words = |range: Range<usize>| -> Vec<String> {
            let items = self.items.get(range).unwrap_or_default();
            items.iter().map(|item| aligned(item.align_bytes) + &item.name).collect()
        };
        let mut parts: Vec<String> = Vec::new();
        let mut at = 0;
        let several = |words: Vec<String>, indent: &str| {
            let lines: Vec<String> = words.chunks(ON_A_LINE).map(|line| line.join(", ")).collect();
            lines.join(&format!(",\n{indent}"))
        };
        for group in &self.groups {
            parts.extend((at < group.members.start).then(|| several(words(at..group.members.start), "    ")));
            let members = several(words(group.members.clone()), "        ");
            parts.push(format!(
                "{}group {} {{\n        {members}\n    }}",
                aligned(group.align_bytes),
                group.name
            ));
            at = group.members.end;
        }
        parts.extend((at < self.items.len()).then(|| several(words(at..self.items.len()), "    ")));
        writeln!(f, "{}:\n    {}", self.type_name, parts.join(",\n    "))
    }
}
