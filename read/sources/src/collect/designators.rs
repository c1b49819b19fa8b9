//! Values that are given to members of members by their names: `.inner.count = 1`.

use super::Collector;
use crate::facts::{PointerPlace, Saying};
use crate::tree::{DeclKind, Kind, Name, NodeId, RecordId};

impl Collector<'_> {
    /// Walks the value of `.inner.count = 1`, which depends on no order; false for any other. A following value without
    /// a name of its own is for the next member of `inner`, and depends on the order there.
    pub(super) fn initialise_inside(&mut self, designated: NodeId, next: Option<NodeId>) -> bool {
        let tree = self.tree;
        let members = self.designated_members(designated);
        let Some(&value) = tree.node(designated).children.last() else { return false };
        let [.., (record, name)] = members.as_slice() else { return false };
        let field = tree.records[*record].fields.iter().find(|field| field.name == *name);
        let Some(field) = field.filter(|_| members.len() > 1) else { return false };
        for (outer, member) in &members {
            self.note_alternative(*outer, member);
        }
        let place = self.usr(*record).map(|usr| PointerPlace::Member(usr, name.clone()));
        self.initialise(value, field.ty, place, 0);
        let is_named = next.is_none_or(|next| tree.node(next).kind == Kind::Designated);
        let is_unbraced =
            tree.record_of(field.ty).is_some() && tree.node(tree.bare(value)).kind != Kind::InitList;
        if !is_named || is_unbraced {
            let inside = members.iter().skip(1).map(|(record, _)| *record).chain(tree.record_of(field.ty));
            for record in inside.collect::<Vec<RecordId>>() {
                if let Some(usr) = self.usr(record) {
                    self.facts.sayings.insert((usr, Saying::Unbraced, self.at(value)));
                }
            }
        }
        true
    }

    /// The members that a designator names, outermost first, each with its record.
    fn designated_members(&self, designated: NodeId) -> Vec<(RecordId, Name)> {
        let children = &self.tree.node(designated).children;
        let names = children.iter().filter(|&&child| self.tree.node(child).kind == Kind::MemberRef);
        let member = |&child: &NodeId| {
            let decl = self.tree.decl_of(child)?;
            let DeclKind::Field(record) = decl.kind else { return None };
            Some((record, decl.name.clone()))
        };
        names.filter_map(member).collect()
    }
}
