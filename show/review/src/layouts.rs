//! The differences between the layouts of types.

use crate::finding::{Finding, Rule};
use crate::repository_line::RepositoryLine;
use crate::side::{BuiltFile, Side};
use lineup_model::layout::{Change, Difference, Layout, diff};
use lineup_model::line::LineSize;
use lineup_model::types::{TypeId, TypeKind, Types};
use std::collections::{BTreeMap, BTreeSet};

/// The differences between the two builds of one file.
#[derive(Clone, PartialEq, Debug)]
pub struct FileChanges {
    /// The file, as it was named.
    pub file: String,
    /// Types that differ, by name.
    pub changed: Vec<TypeChange>,
    /// Types that only the base has.
    pub gone: Vec<String>,
    /// Types that only the head has.
    pub new: Vec<String>,
    /// The number of equal types.
    pub same: usize,
}

/// A type that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct TypeChange {
    /// Its name.
    pub name: String,
    /// The place of its declaration in the head.
    pub place: Option<RepositoryLine>,
    /// The difference.
    pub difference: Difference,
}

/// The types of the repository, by the texts that distinguish them.
type Named = BTreeMap<(String, String), Vec<TypeId>>;

/// Compares the types that the repository declares, or those with the wanted names.
pub(crate) fn changes(
    (base, old): (&Side<'_>, &BuiltFile<'_>),
    (head, new): (&Side<'_>, &BuiltFile<'_>),
    wanted: &[String],
    line: LineSize,
) -> (FileChanges, Vec<Finding>) {
    let (before, after) = (named(old.types, base, wanted), named(new.types, head, wanted));
    let mut found = FileChanges {
        file: new.name.to_owned(),
        changed: Vec::new(),
        gone: only(&before, &after),
        new: only(&after, &before),
        same: 0,
    };
    let mut findings = Vec::new();
    for (key, old_ids) in &before {
        for (&was, &is) in old_ids.iter().zip(after.get(key).into_iter().flatten()) {
            let Some(difference) = diff((old.types, was), (new.types, is), line) else { continue };
            if difference.is_empty() {
                found.same += 1;
                continue;
            }
            let place = place_of(new.types, is, head);
            let change = TypeChange { name: key.0.clone(), place, difference };
            findings.extend(growth(&change));
            findings.extend(splits(&change, (old.types, was), (new.types, is), head, line));
            found.changed.push(change);
        }
    }
    (found, findings)
}

/// Types of one name and file are compared in their order; a program may hold several.
fn named(types: &Types, side: &Side<'_>, wanted: &[String]) -> Named {
    let mut named = Named::new();
    for (id, ty) in types.iter() {
        let (Some(name), TypeKind::Aggregate(aggregate)) = (&ty.name, &ty.kind) else { continue };
        if aggregate.is_declaration || ty.size_bytes.is_none() {
            continue;
        }
        let place = ty.declared_at.as_ref().and_then(|at| RepositoryLine::in_repository(at, side.root));
        let is_wanted = match wanted {
            [] => place.is_some(),
            wanted => wanted.iter().any(|wanted| **wanted == **name),
        };
        if is_wanted {
            let file = place.map(|place| place.file).unwrap_or_default();
            named.entry((name.to_string(), file)).or_default().push(id);
        }
    }
    named
}

fn only(these: &Named, others: &Named) -> Vec<String> {
    let others: BTreeSet<&str> = others.keys().map(|(name, _)| name.as_str()).collect();
    let mut names: Vec<String> =
        these.keys().filter(|(name, _)| !others.contains(name.as_str())).map(|key| key.0.clone()).collect();
    names.dedup();
    names
}

fn place_of(types: &Types, id: TypeId, side: &Side<'_>) -> Option<RepositoryLine> {
    RepositoryLine::in_repository(types.get(id)?.declared_at.as_ref()?, side.root)
}

fn growth(change: &TypeChange) -> Option<Finding> {
    let (before, after) = change.difference.lines;
    let (old_bytes, new_bytes) = change.difference.size_bytes;
    (after > before).then(|| Finding {
        rule: Rule::Growth,
        subject: change.name.clone(),
        message: format!(
            "{} covers {after} cache lines instead of {before}: {new_bytes} bytes instead of {old_bytes}",
            change.name
        ),
        place: change.place.clone(),
        ratio: None,
        fails: false,
    })
}

/// Members that lie on more lines than they need, and did not before, including those that the change adds.
fn splits(
    change: &TypeChange,
    old: (&Types, TypeId),
    new: (&Types, TypeId),
    head: &Side<'_>,
    line: LineSize,
) -> Vec<Finding> {
    let straddling = |(types, id): (&Types, TypeId)| -> BTreeMap<String, (usize, u64)> {
        let layout = Layout::of(types, id, line);
        let rows = layout.iter().flat_map(|layout| layout.straddling());
        rows.filter_map(|row| Some((row.name.as_deref()?.to_owned(), (row.member, row.offset_bits? / 8))))
            .collect()
    };
    let before = straddling(old);
    let fresh = straddling(new).into_iter().filter(|(name, _)| !before.contains_key(name));
    fresh
        .map(|(name, (member, offset))| Finding {
            rule: Rule::Split,
            message: format!(
                "member {name} of {} lies across cache lines now, at offset {offset}{}",
                change.name,
                came_from(&change.difference, &name)
            ),
            subject: format!("{}::{name}", change.name),
            place: member_place(new, member, head).or_else(|| change.place.clone()),
            ratio: None,
            fails: false,
        })
        .collect()
}

fn member_place((types, id): (&Types, TypeId), member: usize, head: &Side<'_>) -> Option<RepositoryLine> {
    let (_, aggregate) = types.aggregate(id)?;
    RepositoryLine::in_repository(aggregate.members.get(member)?.declared_at.as_ref()?, head.root)
}

fn came_from(difference: &Difference, member: &str) -> String {
    let moved = difference.changes.iter().find_map(|change| match change {
        Change::Moved { name, from, .. } if name == member => Some(format!(" instead of {from}")),
        Change::Added { name, .. } if name == member => Some("; it is new".to_owned()),
        _ => None,
    });
    moved.unwrap_or_default()
}
