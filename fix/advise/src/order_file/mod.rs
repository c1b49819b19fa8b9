//! Orders of members in a file that people and `lineup` write: which member comes where, groups, and alignment.
//!
//! ```text
//! # 6.12's groups, on lines of their own.
//! netns_ipv4:
//!     align(64) group netns_ipv4_read_tx { sysctl_tcp_autocorking, sysctl_tcp_notsent_lowat },
//!     align(64) ip_id_key,
//!     rest
//! ```
//!
//! `align(N)` before a member puts it at a multiple of N bytes; before a group, it also applies to the member behind
//! the group. `rest` stands for the members that are not named, in their present order; without it every member is
//! named once. A member without a name is `(anonymous)`, each in turn.

mod grouped;
mod lines;
mod read;

use crate::error::AdviseError;
use crate::layout::demand::Model;
use crate::layout::placement::{self, Placed};
use crate::layout::subject::Subject;
use crate::text::marker_names::{self, is_marker};
use crate::usage::Usage;
pub use grouped::{Work, grouped};
use lineup_model::types::{Aggregate, TypeId, Types};
pub use read::parse;
use std::ops::Range;

/// The word for the members that are not named.
const REST: &str = "rest";

/// The word for a member without a name.
const ANONYMOUS: &str = "(anonymous)";

/// The order of one type, as a file says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenOrder {
    /// The type, without `struct`.
    pub type_name: String,
    /// The file, as the caller named it.
    pub file: String,
    /// Its line in the file, from 1.
    pub line: u32,
    /// Members in their new order.
    pub items: Vec<Item>,
    /// Groups, by where their members stand in `items`.
    pub groups: Vec<Group>,
}

/// One member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// Its name, `(anonymous)` or `rest`.
    pub name: String,
    /// Its alignment in bytes; `None` if its type decides.
    pub align_bytes: Option<u64>,
}

/// Members that stay together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Its name, as `__cacheline_group_begin` takes it.
    pub name: String,
    /// The alignment of its beginning and its end, in bytes.
    pub align_bytes: Option<u64>,
    /// Its members, by their places.
    pub members: Range<usize>,
}

/// An order with the members of a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrangement {
    /// Places of the members in the present declaration, in their new order.
    pub order: Vec<usize>,
    /// The alignment of each of `order`, in bytes.
    pub align_bytes: Vec<Option<u64>>,
    /// Groups, by places in `order`.
    pub groups: Vec<Group>,
}

/// The places of the members in an arrangement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arranged {
    /// The offset of each member, in bits, by its place in the present declaration.
    pub offsets_bits: Vec<u64>,
    /// The type's size in bytes.
    pub size_bytes: u64,
    /// The type's alignment in bytes.
    pub align_bytes: u64,
}

impl WrittenOrder {
    /// The order in members of the type.
    ///
    /// # Errors
    /// When a member is not there, or not named, or named twice.
    pub fn resolve(&self, aggregate: &Aggregate) -> Result<Arrangement, AdviseError> {
        let members = &aggregate.members;
        let wrong = |what: String| self.wrong(what);
        let name = |index: usize| members[index].name.as_deref().unwrap_or(ANONYMOUS);
        let is_rest = |item: &Item| item.name == REST && (0..members.len()).all(|index| name(index) != REST);
        let mut named = vec![false; members.len()];
        let mut places = Vec::new();
        for item in &self.items {
            if is_rest(item) {
                places.push(None);
                continue;
            }
            let found = (0..members.len()).find(|&index| !named[index] && name(index) == item.name);
            let index = found.ok_or_else(|| {
                wrong(format!("{} has no member {}, or not so often", self.type_name, item.name))
            })?;
            named[index] = true;
            places.push(Some(index));
        }
        let is_left = |index: &usize| !named[*index];
        let is_group_marker = |index: &usize| is_marker(members[*index].name.as_deref());
        let has_rest = places.contains(&None);
        let of_groups: Vec<(usize, &str)> = (0..members.len())
            .filter(is_left)
            .filter(is_group_marker)
            .filter(|index| !has_rest || self.group_of(name(*index)).is_some())
            .map(|index| (index, name(index)))
            .collect();
        let is_of_group = |index: &usize| of_groups.iter().any(|(marker, _)| marker == index);
        let others: Vec<usize> =
            (0..members.len()).filter(is_left).filter(|index| !is_of_group(index)).collect();
        match places.iter().filter(|place| place.is_none()).count() {
            0 if !others.is_empty() => {
                let missing = others.iter().take(5).map(|&index| name(index)).collect::<Vec<_>>().join(", ");
                return Err(wrong(format!(
                    "{} has {} members, and {} are in the order: name each, or write {REST} for those left; the first \
                     missing: {missing}",
                    self.type_name,
                    members.len(),
                    members.len() - others.len()
                )));
            }
            0 | 1 => {}
            _ => return Err(wrong(format!("{}: {REST} stands for all that is left, once", self.type_name))),
        }
        Ok(self.arrangement(&places, &others, &of_groups))
    }

    pub(crate) fn wrong(&self, what: String) -> AdviseError {
        AdviseError::OrderSyntax { name: self.file.clone(), line: self.line, what }
    }

    /// The group that a marker of the kernel's begins or ends.
    fn group_of(&self, marker: &str) -> Option<&Group> {
        let (_, name) = marker.strip_prefix(marker_names::MARKER)?.split_once("__")?;
        self.groups.iter().find(|group| group.name == name)
    }

    /// Members by their places, with markers of groups, which stay around their members. The members without a name in
    /// the order stand at `rest`.
    fn arrangement(
        &self,
        places: &[Option<usize>],
        others: &[usize],
        markers: &[(usize, &str)],
    ) -> Arrangement {
        let mut order: Vec<usize> = Vec::new();
        let (mut aligned, mut groups) = (Vec::new(), self.groups.clone());
        let of = |group: &Group, begins: bool| -> Vec<usize> {
            let is_its = |(_, name): &&(usize, &str)| {
                name.starts_with(marker_names::BEGIN) == begins && self.group_of(name) == Some(group)
            };
            markers.iter().filter(is_its).map(|(index, _)| *index).collect()
        };
        for (index, (item, place)) in self.items.iter().zip(places).enumerate() {
            for (group, new) in self.groups.iter().zip(&mut groups) {
                if group.members.start == index {
                    order.extend(of(group, true));
                    new.members.start = order.len();
                }
            }
            aligned.extend(item.align_bytes.map(|bytes| (order.len(), bytes)));
            order.extend(place.as_ref().map_or(others, std::slice::from_ref));
            for (group, new) in self.groups.iter().zip(&mut groups) {
                if group.members.end == index + 1 {
                    new.members.end = order.len();
                    order.extend(of(group, false));
                }
            }
        }
        // Markers take no room, wherever they are.
        let without = markers.iter().filter(|(_, name)| self.group_of(name).is_none());
        order.extend(without.map(|(index, _)| *index));
        let mut align_bytes = vec![None; order.len()];
        for (place, bytes) in aligned {
            if let Some(align) = align_bytes.get_mut(place) {
                *align = Some(bytes);
            }
        }
        Arrangement { order, align_bytes, groups }
    }
}

impl Arrangement {
    /// At which multiple each of the order begins, the ends of groups taken in.
    fn alignments(&self) -> Vec<Option<u64>> {
        let mut all = self.align_bytes.clone();
        for group in &self.groups {
            for at in [group.members.start, group.members.end] {
                if let Some(place) = all.get_mut(at) {
                    *place = (*place).max(group.align_bytes);
                }
            }
        }
        all
    }

    /// The places of a type's members in this order. `None` when the present layout cannot be reproduced, or the order
    /// is not one of this type.
    pub fn place(&self, types: &Types, usage: &Usage, id: TypeId) -> Option<Arranged> {
        let subject = Subject::new(types, id, usage)?;
        let mut all = self.order.clone();
        all.sort_unstable();
        if !all.into_iter().eq(0..subject.aggregate.members.len()) {
            return None;
        }
        let models = subject.models().ok()?;
        let model = models.models.first()?;
        let Model { fields, align_bytes, .. } = self.aligned(model)?;
        // A group at the end fills its last line, too.
        let Placed { offsets_bits, size_bytes } = placement::place(&fields, &self.order, align_bytes)?;
        Some(Arranged { offsets_bits, size_bytes, align_bytes })
    }

    /// A type with the alignment that its members get. `None` when a bit-field gets one.
    pub(crate) fn aligned(&self, model: &Model) -> Option<Model> {
        let mut model = model.clone();
        for (&member, align) in self.order.iter().zip(self.alignments()) {
            let Some(align) = align else { continue };
            let field = model.fields.get_mut(member).filter(|field| field.bit_width.is_none())?;
            field.align_bytes = field.align_bytes.max(align);
            model.align_bytes = model.align_bytes.max(align);
        }
        Some(model)
    }
}

#[cfg(test)]
mod tests;
