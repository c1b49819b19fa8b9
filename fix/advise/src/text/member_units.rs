//! The members of debug info that each unit of text declares.

use crate::constraints::constraint::{Binding, Constraint};
use crate::text::body::{Body, TextUnit};
use crate::text::body_parts::BodyPartKind;
use lineup_model::types::{Aggregate, Member, MemberRole};
use std::ops::Range;

/// The members of each unit. Units whose members cannot be distinguished are joined.
///
/// # Errors
/// When the text declares other members than debug info describes.
pub(crate) fn assign(body: &mut Body<'_>, aggregate: &Aggregate) -> Result<Vec<Range<usize>>, Binding> {
    let head = aggregate.members.iter().take_while(|member| member.role != MemberRole::Field).count();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut cursor = head;
    let mut unit = 0;
    while unit < body.units.len() {
        if let Some(end) = named_end(&body.units[unit], &aggregate.members, cursor)? {
            ranges.push(cursor..end);
            cursor = end;
            unit += 1;
            continue;
        }
        let stretch_end =
            (unit..body.units.len()).find(|&next| is_named(&body.units[next])).unwrap_or(body.units.len());
        let end = match body.units.get(stretch_end) {
            Some(next) => position(&aggregate.members, cursor, &next.names[0])
                .ok_or_else(|| stale(&next.names[0]).at(&body.found.path, body.found.line()))?,
            None => aggregate.members.len(),
        };
        match split_stretch(&body.units[unit..stretch_end], &aggregate.members, cursor..end) {
            Some(parts) => {
                unit = stretch_end;
                ranges.extend(parts);
            }
            None => {
                body.join_units(unit..stretch_end);
                ranges.push(cursor..end);
                unit += 1;
            }
        }
        cursor = end;
    }
    match aggregate.members.get(cursor) {
        Some(extra) => {
            let name = extra.name.as_deref().unwrap_or("an unnamed member");
            Err(stale(name).at(&body.found.path, body.found.line()))
        }
        None => Ok(ranges),
    }
}

fn stale(name: &str) -> Binding {
    Binding::new(Constraint::StaleDebugInfo).on([name])
}

fn is_named(unit: &TextUnit) -> bool {
    matches!(unit.kind, BodyPartKind::Data | BodyPartKind::Bits | BodyPartKind::Marker)
        && !unit.names.is_empty()
}

fn position(members: &[Member], from: usize, name: &str) -> Option<usize> {
    (from..members.len()).find(|&index| members[index].name.as_deref() == Some(name))
}

/// The member after those of a unit that names them all; `None` for other units.
fn named_end(unit: &TextUnit, members: &[Member], cursor: usize) -> Result<Option<usize>, Binding> {
    if unit.kind == BodyPartKind::Bits && unit.names.is_empty() {
        return Ok(Some(cursor));
    }
    if !is_named(unit) {
        return Ok(None);
    }
    for (index, name) in unit.names.iter().enumerate() {
        if members.get(cursor + index).and_then(|member| member.name.as_deref()) != Some(name) {
            return Err(stale(name));
        }
    }
    Ok(Some(cursor + unit.names.len()))
}

/// Divides a stretch of members among units that do not name theirs. `None` when that is ambiguous.
fn split_stretch(units: &[TextUnit], members: &[Member], range: Range<usize>) -> Option<Vec<Range<usize>>> {
    if let [_] = units {
        return Some(vec![range]);
    }
    let mut parts = Vec::new();
    let mut cursor = range.start;
    for unit in units {
        let named = |index: usize| {
            let name = members[index].name.as_deref();
            match unit.kind {
                BodyPartKind::Anonymous => name.is_none() && index == cursor,
                _ => name.is_some_and(|name| unit.names.iter().any(|known| known == name)),
            }
        };
        let end = (cursor..range.end).find(|&index| !named(index)).unwrap_or(range.end);
        parts.push(cursor..end);
        cursor = end;
    }
    (cursor == range.end).then_some(parts)
}
