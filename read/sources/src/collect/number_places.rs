//! Distances that are written as numbers: the places that they are stored in, and the pointers that these places move.

use super::Collector;
use crate::facts::{Distance, NumberPlace, Origin, PointerPlace, Source, Value};
use crate::tree::{DeclKind, Kind, Name, NodeId, Operator, TypeKind};

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
            _ if self.is_measured(inner) => self.sizes_given(inner),
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

    /// The sizes of records that a number is worked out from, or the size of a plain number.
    fn sizes_given(&self, measured: NodeId) -> Vec<Distance> {
        let sizes = self.sizes_in(measured);
        let node = self.tree.node(measured);
        let width = node.value.and_then(|width| u64::try_from(width).ok());
        let width = width.filter(|_| sizes.is_empty() && node.kind == Kind::SizeOf);
        let whole = self.record_measured(measured).map(Distance::Whole);
        let sizes = sizes.into_iter().map(Distance::Size);
        sizes.chain(whole).chain(width.map(Distance::Width)).collect()
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
        let is_bytes = |ty| matches!(tree.ty(ty).kind, TypeKind::Byte | TypeKind::Void);
        let takes_bytes = arguments.iter().any(|&argument| {
            let to = tree.pointee(tree.node(argument).ty);
            to.is_some_and(|to| is_bytes(to) || tree.pointee(to).is_some_and(is_bytes))
        });
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
                Some(number) if takes_bytes => {
                    let width = u64::try_from(number).ok().filter(|_| number < MOST_DISTANCE);
                    let at = self.at(argument);
                    self.facts.distances.extend(width.map(|width| (place, Distance::Width(width), at)));
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

    /// `p += widths[i]` of a pointer to bytes.
    pub(super) fn note_advanced(&mut self, values: &[Value], by: NodeId, at: NodeId) {
        let Some(place) = self.number_place(self.tree.uncast(by)) else { return };
        let at = self.at(at);
        for value in Self::objects(values) {
            if let Source::Place(_) = value.source {
                self.facts.advanced_by.insert((value, place.clone(), at.clone()));
            }
        }
    }

    /// `offset += widths[i]`.
    pub(super) fn note_added(&mut self, id: NodeId) {
        let node = self.tree.node(id);
        if let (Some(Operator::Plus), &[sum, by]) = (node.operator, &node.children[..]) {
            self.note_sum(sum, by, id);
        }
    }

    /// `offset = offset + widths[i]`, `*at = (char *)*at + width`.
    pub(super) fn note_sum_assigned(&mut self, left: NodeId, right: NodeId, at: NodeId) {
        let tree = self.tree;
        let sum = tree.node(tree.uncast(right));
        let (Kind::Binary, &[one, other]) = (sum.kind, &sum.children[..]) else { return };
        if sum.is_minus || self.is_kernel || !self.is_same_place(left, one) {
            return;
        }
        match tree.pointee(sum.ty) {
            Some(_) => {
                let values = self.value(one);
                self.note_advanced(&values, other, at);
            }
            None if sum.operator == Some(Operator::Plus) => self.note_sum(left, other, at),
            None => {}
        }
    }

    /// True where both are the same variable or member, or what the same pointer leads to.
    fn is_same_place(&self, one: NodeId, other: NodeId) -> bool {
        let tree = self.tree;
        let (one, other) = (tree.node(tree.uncast(one)), tree.node(tree.uncast(other)));
        let is_place = matches!(one.kind, Kind::DeclRef | Kind::Member | Kind::Deref | Kind::This);
        let mut inside = one.children.iter().zip(&other.children);
        is_place
            && one.kind == other.kind
            && one.decl == other.decl
            && one.children.len() == other.children.len()
            && inside.all(|(&one, &other)| self.is_same_place(one, other))
    }

    fn note_sum(&mut self, sum: NodeId, by: NodeId, at: NodeId) {
        let tree = self.tree;
        let place = self.number_place(tree.uncast(sum)).filter(|_| !self.is_kernel);
        let Some(place) = place else { return };
        let inner = self.constant(by);
        let sizes = self.sizes_in(inner);
        let number = tree.node(inner).value.filter(|number| (1..MOST_DISTANCE).contains(number));
        let number = number.and_then(|number| u64::try_from(number).ok()).map(Distance::Added);
        let added: Vec<Distance> = match (sizes.is_empty(), number) {
            (false, _) => sizes.into_iter().map(Distance::AddedSize).collect(),
            (true, Some(number)) => vec![number],
            (true, None) => self.number_place(inner).map(Distance::AddedFrom).into_iter().collect(),
        };
        let at = self.at(at);
        self.facts.distances.extend(added.into_iter().map(|added| (place.clone(), added, at.clone())));
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
