//! Checks the members that the user names against the program's types: a misspelt name is reported, not skipped.

use anyhow::{Result, bail};
use lineup_debuginfo::nearest;
use lineup_model::types::{Aggregate, TypeId, Types};
use std::collections::BTreeSet;

/// The number of suggestions for a wrong name.
const NEAR: usize = 3;

/// Holds `--pin TYPE.MEMBER` against the types.
///
/// # Errors
/// When there is no such type, or when it has no such member.
pub(crate) fn check_pins(pins: &[(String, String)], types: &Types) -> Result<()> {
    if pins.is_empty() {
        return Ok(());
    }
    let named = types.by_name();
    for (ty, member) in pins {
        let is_asked = |name: &&str| *name == ty.as_str() || name.ends_with(&format!("::{ty}"));
        let ids = named.iter().filter(|(name, _)| is_asked(name)).flat_map(|(_, ids)| ids);
        let found: Vec<&Aggregate> =
            ids.filter_map(|&id| types.aggregate(id)).map(|(_, found)| found).collect();
        if found.is_empty() {
            let aggregates =
                named.iter().filter(|(_, ids)| ids.iter().any(|&id| types.aggregate(id).is_some()));
            bail!(
                "--pin {ty}.{member}: there is no type {ty}{}",
                near(ty, aggregates.map(|(name, _)| *name))
            );
        }
        check_member((ty, member), &found, types)?;
    }
    Ok(())
}

fn check_member((ty, member): (&str, &str), found: &[&Aggregate], types: &Types) -> Result<()> {
    let own: BTreeSet<&str> = found.iter().flat_map(|found| names(found)).collect();
    if own.contains(member) {
        return Ok(());
    }
    let unnamed = found.iter().flat_map(|found| &found.members).filter(|member| member.name.is_none());
    if unnamed.map(|outer| outer.ty).any(|inner| holds(types, inner, member, 0)) {
        bail!(
            "--pin {ty}.{member}: {member} lies in a struct or union of {ty} without a name, which moves as a whole; \
             --keep {ty} leaves the whole type unchanged"
        );
    }
    bail!("--pin {ty}.{member}: {ty} has no member {member}{}", near(member, own));
}

fn names(aggregate: &Aggregate) -> impl Iterator<Item = &str> {
    aggregate.members.iter().filter_map(|member| member.name.as_deref())
}

/// True when a member lies in this type, or in one of its unnamed members.
fn holds(types: &Types, id: TypeId, member: &str, depth: u32) -> bool {
    let Some((_, aggregate)) = types.aggregate(id).filter(|_| depth < 16) else { return false };
    let mut unnamed = aggregate.members.iter().filter(|member| member.name.is_none());
    names(aggregate).any(|name| name == member)
        || unnamed.any(|inner| holds(types, inner.ty, member, depth + 1))
}

/// Names like the wrong one, as the end of a message.
fn near<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    match nearest(wanted, names, NEAR) {
        near if near.is_empty() => String::new(),
        near => format!("; near names: {}", near.join(", ")),
    }
}
