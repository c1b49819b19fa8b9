//! Values in braces.

use super::Collector;
use crate::facts::{Place, Saying};
use crate::tree::{DeclKind, Kind, NodeId, RecordId, TypeId, TypeKind};

impl Collector<'_> {
    /// Walks an initialiser of type `ty` for `place`.
    pub(super) fn initialise(&mut self, id: NodeId, ty: TypeId, place: Option<Place>) {
        let tree = self.tree;
        let node = tree.node(id);
        if node.kind != Kind::InitList {
            let values = self.kept(id);
            if let Some(place) = place {
                self.flow(&values, &place);
                self.note_foreign_member(&values, id, &place);
            }
            return;
        }
        let own = if tree.ty(node.ty).kind == TypeKind::Other || tree.ty(node.ty).kind == TypeKind::Void {
            ty
        } else {
            node.ty
        };
        match tree.ty(own).kind {
            TypeKind::Record(record) => self.initialise_record(id, record),
            TypeKind::Array(of, _) => {
                for &child in &node.children {
                    let inner = self.designated_value(child).unwrap_or(child);
                    self.initialise(inner, of, place.clone());
                }
            }
            _ => self.visit(&node.children),
        }
    }

    fn designated_value(&self, id: NodeId) -> Option<NodeId> {
        let node = self.tree.node(id);
        node.children.last().copied().filter(|_| node.kind == Kind::Designated)
    }

    fn initialise_record(&mut self, id: NodeId, record: RecordId) {
        let tree = self.tree;
        let node = tree.node(id);
        let fields = &tree.records[record].fields;
        let Some(usr) = self.usr(record) else { return };
        let (mut position, mut by_position, mut is_in_macro) = (0, 0, false);
        let mut written = None;
        for &child in &node.children {
            let designated = self.designated_value(child);
            if designated.is_some() {
                position = self.designated_position(child, record).unwrap_or(fields.len());
            } else {
                by_position += 1;
                let site = tree.node(child).site;
                // Two values at one place are one macro's.
                is_in_macro |= node.site.is_in_macro || site.is_in_macro || written == Some(site);
                written = Some(site);
            }
            let value = designated.unwrap_or(child);
            match fields.get(position) {
                Some(field) => {
                    let place = Place::Member(usr.clone(), field.name.clone());
                    self.initialise(value, field.ty, Some(place));
                }
                None => drop(self.value(value)),
            }
            position += 1;
        }
        let is_zero = by_position == 1 && node.children.len() == 1 && self.is_zero(node.children[0]);
        if by_position > 0 && !is_zero && !tree.records[record].is_union {
            let at = self.at(id);
            let saying = Saying::Positional(by_position, is_in_macro);
            self.facts.sayings.insert((usr, saying, at));
        }
    }

    fn designated_position(&self, id: NodeId, record: RecordId) -> Option<usize> {
        let mut members = self.tree.node(id).children.iter().filter_map(|&child| {
            let decl = self.tree.decl_of(child)?;
            matches!(decl.kind, DeclKind::Field(_)).then(|| decl.name.clone())
        });
        let name = members.next()?;
        self.tree.records[record].fields.iter().position(|field| field.name == name)
    }

    /// `{0}`, `{{0}}`, `{NULL}`, `{}`.
    fn is_zero(&self, id: NodeId) -> bool {
        let inner = self.tree.uncast(id);
        let node = self.tree.node(inner);
        match node.kind {
            Kind::Integer => node.value == Some(0),
            Kind::InitList => node.children.iter().all(|&child| self.is_zero(child)),
            _ => false,
        }
    }
}
