//! Distances that are written as numbers: the places that they are stored in, and the pointers that these places move.

use super::Collector;
use crate::facts::{Distance, NumberPlace, Origin, PointerPlace, Source, Value};
use crate::tree::{DeclKind, Kind, Name, NodeId, TypeKind};

/// Larger numbers are no distances inside an object.
const MOST_DISTANCE: i64 = 4096;

impl Collector<'_> {
    /// `offsetof(T, m)`, or a number, in a table, a variable, a member, or as a function's result.
    pub(super) fn note_distances(&mut self, value: NodeId, place: &NumberPlace) {
        if self.is_kernel || self.tree.ty(self.tree.node(value).ty).kind != TypeKind::Scalar {
            return;
        }
        let tree = self.tree;
        let inner = self.constant(value);
        let node = tree.node(inner);
        let is_array = matches!(place.place, PointerPlace::Variable(_)) && place.table.is_some();
        let distances: Vec<Distance> = match node.kind {
            Kind::Conditional => {
                for &choice in node.children.iter().skip(1) {
                    self.note_distances(choice, place);
                }
                return;
            }
            Kind::OffsetOf => {
                let member = self.offset_member(inner);
                member.map(|(record, member)| Distance::Of(record, member)).into_iter().collect()
            }
            _ if self.is_measured(inner) => self.sizes_in(inner).into_iter().map(Distance::Size).collect(),
            // In a list of structs zero stands for an entry without a distance.
            _ => match node.value {
                Some(number) if number > 0 || (number == 0 && is_array) => {
                    self.number(number, None).into_iter().collect()
                }
                Some(_) => Vec::new(),
                None => self.number_place(inner).map(Distance::From).into_iter().collect(),
            },
        };
        let at = self.at(value);
        self.facts
            .distances
            .extend(distances.into_iter().map(|distance| (place.clone(), distance, at.clone())));
    }

    fn number(&self, number: i64, record: Option<Name>) -> Option<Distance> {
        let number = u64::try_from(number).ok().filter(|_| number < MOST_DISTANCE)?;
        Some(Distance::Written(number, record))
    }

    /// `load(x, 16)`: a distance that is given together with an object.
    pub(super) fn note_distances_given(&mut self, function: &Name, arguments: &[NodeId]) {
        if self.is_kernel {
            return;
        }
        let tree = self.tree;
        let mut records = arguments.iter().filter_map(|&argument| self.record_behind(tree.uncast(argument)));
        let record = records.next().and_then(|record| self.usr(record));
        for (index, &argument) in arguments.iter().enumerate() {
            let place = NumberPlace { table: None, place: PointerPlace::Parameter(function.clone(), index) };
            let inner = tree.uncast(argument);
            let number = tree.node(inner).value.filter(|&number| number > 0);
            match number.filter(|_| !self.is_measured(self.constant(inner))) {
                Some(number) if record.is_some() => {
                    if let Some(distance) = self.number(number, record.clone()) {
                        let at = self.at(argument);
                        self.facts.distances.insert((place, distance, at));
                    }
                }
                Some(_) => {}
                None => self.note_distances(argument, &place),
            }
        }
    }

    /// `(char *)x + table[i]`.
    pub(super) fn note_indexed(&mut self, values: &[Value], (pointer, index): (NodeId, NodeId), at: NodeId) {
        if self.is_kernel || self.tree.node(at).is_minus {
            return;
        }
        let tree = self.tree;
        let inner = tree.uncast(index);
        let place = match tree.node(inner).kind {
            Kind::Conditional => {
                let site = tree.node(at).site;
                let name = format!("{}:{}:{}", tree.files[site.file], site.line, site.column);
                let place = NumberPlace { table: None, place: PointerPlace::Result(name.into()) };
                self.note_distances(index, &place);
                Some(place)
            }
            _ => self.number_place(inner),
        };
        let Some(place) = place else { return };
        let typed = self.typed_object(tree.uncast(pointer));
        let is_object =
            |value: &&Value| matches!(value.source, Source::Place(_) | Source::Origin(Origin::Object(_)));
        let objects = Self::objects(values);
        let at = self.at(at);
        for value in objects.iter().chain(&typed).filter(is_object) {
            self.facts.moved_by.insert((value.clone(), place.clone(), at.clone()));
        }
    }

    /// The place that a number is read from.
    pub(super) fn number_place(&self, id: NodeId) -> Option<NumberPlace> {
        let tree = self.tree;
        let node = tree.node(id);
        let of = |table, place| Some(NumberPlace { table, place });
        match node.kind {
            Kind::DeclRef => match &tree.decl_of(id)?.kind {
                DeclKind::Variable => of(None, PointerPlace::Variable(tree.decl_of(id)?.usr.clone())),
                DeclKind::Parameter(function, index) => {
                    of(None, PointerPlace::Parameter(function.clone(), *index))
                }
                _ => None,
            },
            Kind::Subscript => {
                let base = tree.uncast(*node.children.first()?);
                let table = Some(self.table_named(base)?);
                match tree.node(base).kind {
                    Kind::DeclRef => of(table.clone(), PointerPlace::Variable(table?)),
                    _ => self.member_of_table(base),
                }
            }
            Kind::Member => self.member_of_table(id),
            Kind::Call => {
                let decl = tree.decl_of(id).filter(|decl| decl.kind == DeclKind::Function)?;
                of(None, PointerPlace::Return(decl.usr.clone()))
            }
            _ => None,
        }
    }

    /// `fields[i].at`, `field->at`.
    fn member_of_table(&self, id: NodeId) -> Option<NumberPlace> {
        let decl = self.tree.decl_of(id)?;
        let DeclKind::Field(record) = decl.kind else { return None };
        let place = self.member_place(record, &decl.name)?;
        Some(NumberPlace { table: self.table_named(id), place })
    }

    /// The variable whose elements or members stand there.
    fn table_named(&self, mut id: NodeId) -> Option<Name> {
        let tree = self.tree;
        loop {
            let node = tree.node(tree.uncast(id));
            match node.kind {
                Kind::DeclRef => {
                    let decl = &tree.decls[node.decl?];
                    let is_table = matches!(tree.ty(decl.ty).kind, TypeKind::Array(..) | TypeKind::Record(_));
                    return (decl.kind == DeclKind::Variable && is_table).then(|| decl.usr.clone());
                }
                Kind::Subscript | Kind::Member => id = *node.children.first()?,
                _ => return None,
            }
        }
    }

    /// `one.at = 16`, `at = offsetof(T, m)`.
    pub(super) fn note_distance_assigned(&mut self, left: NodeId, right: NodeId) {
        if let Some(place) = self.number_place(self.tree.bare(left)) {
            self.note_distances(right, &place);
        }
    }
}
