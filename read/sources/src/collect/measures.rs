//! Numbers that the compiler works out from layouts, sizes of types and offsets of members, and the uses that depend on
//! their values.

use super::{Collector, size_in};
use crate::facts::{Act, NumberUse, Saying, Value};
use crate::library_functions;
use crate::tree::{Decl, DeclKind, Kind, Name, NodeId, Operator, TypeKind};
use std::collections::BTreeSet;

/// Constants may be worked out from others; more steps than this are not followed.
const MOST_STEPS: u32 = 16;

/// The use of an offset that finds an array's element.
pub(crate) const INDEX: &str = "is an array's index";

/// No size or offset is larger.
const MOST_NUMBER: u64 = 1 << 20;

impl Collector<'_> {
    /// The value of an enumerator that stands there, or what stands there itself; without casts.
    pub(super) fn constant(&self, id: NodeId) -> NodeId {
        let inner = self.tree.uncast(id);
        if self.is_enumerator(inner) { self.initial(inner) } else { inner }
    }

    /// True for an enumerator's declaration or name.
    pub(super) fn is_enumerator(&self, id: NodeId) -> bool {
        self.tree.decl_of(id).is_some_and(|decl| decl.kind == DeclKind::Enumerator)
    }

    /// True where a size or an offset is taken.
    pub(super) fn is_measured(&self, id: NodeId) -> bool {
        self.tree.has_below(id, &[Kind::SizeOf, Kind::OffsetOf])
    }

    /// The records whose sizes a number shows: `sizeof(struct t)`, `n * sizeof(struct t)`, `4096 / sizeof(struct t)`, a
    /// constant with such a value. The number of objects in some bytes, `sizeof all / sizeof *all`, shows none.
    pub(super) fn sizes_in(&self, id: NodeId) -> BTreeSet<Name> {
        self.sizes_within(id, MOST_STEPS)
    }

    fn sizes_within(&self, id: NodeId, steps: u32) -> BTreeSet<Name> {
        let tree = self.tree;
        let inner = self.initial(id);
        let node = tree.node(inner);
        let Some(steps) = steps.checked_sub(1) else { return BTreeSet::new() };
        let within = |id: NodeId| self.sizes_within(id, steps);
        match (node.kind, &node.children[..]) {
            (Kind::SizeOf, &[measured, ..]) if !self.measures_pointer(inner) => {
                if let Some(templates) = tree.dependent_sizes.get(&inner) {
                    return templates.iter().map(|template| size_in(template)).collect();
                }
                let mut ty = tree.node(measured).ty;
                while let TypeKind::Array(of, _) = tree.ty(ty).kind {
                    ty = of;
                }
                tree.record_of(ty).and_then(|record| self.usr(record)).into_iter().collect()
            }
            (Kind::Binary, &[left, right]) => {
                let (whole, unit) = (within(left), within(right));
                match node.operator {
                    Some(Operator::Equal | Operator::Less | Operator::Assign) => BTreeSet::new(),
                    Some(Operator::Divide) if !unit.is_empty() => {
                        let is_count =
                            tree.node(self.initial(left)).value.is_none() || !whole.is_disjoint(&unit);
                        if is_count { BTreeSet::new() } else { &whole | &unit }
                    }
                    _ => &whole | &unit,
                }
            }
            (Kind::Conditional, &[_, one, other]) => &within(one) | &within(other),
            _ => BTreeSet::new(),
        }
    }

    /// The members whose offsets a number shows, with their records: `offsetof(struct t, m) / 8`,
    /// `(char *)&x->m - (char *)x`, a constant with such a value.
    fn offsets_in(&self, id: NodeId) -> BTreeSet<(Name, Name)> {
        self.offsets_within(id, MOST_STEPS)
    }

    fn offsets_within(&self, id: NodeId, steps: u32) -> BTreeSet<(Name, Name)> {
        let tree = self.tree;
        let inner = self.initial(id);
        let node = tree.node(inner);
        let (Some(steps), None) = (steps.checked_sub(1), tree.pointee(node.ty)) else {
            return BTreeSet::new();
        };
        let within = |id: NodeId| self.offsets_within(id, steps);
        match (node.kind, &node.children[..]) {
            (Kind::OffsetOf, _) => self.offset_member(inner).into_iter().collect(),
            (Kind::Binary, &[left, right]) => match node.operator {
                Some(Operator::Equal | Operator::Less | Operator::Assign) => BTreeSet::new(),
                _ => match self.distance(left, right) {
                    Some(members) => members.into_iter().collect(),
                    None => &within(left) | &within(right),
                },
            },
            (Kind::Conditional, &[_, one, other]) => &within(one) | &within(other),
            _ => BTreeSet::new(),
        }
    }

    /// A number that depends on layouts is seen.
    fn note_shown(&mut self, number: NodeId, how: &str, at: NodeId) {
        let place = self.number_place(self.tree.uncast(number));
        let (sizes, offsets) = (self.sizes_in(number), self.offsets_in(number));
        let at = self.at(at);
        for usr in sizes {
            self.facts.sayings.insert((usr, Saying::SizeShown(how.into()), at.clone()));
        }
        for (usr, member) in offsets {
            self.facts.sayings.insert((usr, Saying::OffsetShown(member, how.into()), at.clone()));
        }
        self.facts.number_uses.extend(place.map(|place| (place, NumberUse::Shown(how.into()), at)));
    }

    /// `n == sizeof(struct t)`, `sizeof(struct t) % 64 == 0`, `offsetof(struct t, m) == 8`, `sizes[i] == n`: objects are
    /// known by their size, or members by their offset. A number that is not written there may itself come from the
    /// layout.
    pub(super) fn note_compared(&mut self, compares: Operator, number: NodeId, other: NodeId, at: NodeId) {
        if self.is_kernel && compares == Operator::Less {
            return;
        }
        let tree = self.tree;
        let written = tree.node(tree.uncast(other)).value.and_then(|value| u64::try_from(value).ok());
        let is_plain = matches!(tree.node(self.initial(number)).kind, Kind::SizeOf | Kind::OffsetOf);
        let is_equal = compares == Operator::Equal;
        let place = self.at(at);
        let is_constant = tree.node(self.initial(number)).value.is_some() && written.is_some();
        let is_shown = if is_plain { is_equal } else { is_constant };
        if is_shown {
            for usr in self.sizes_in(number) {
                self.facts.sayings.insert((usr, Saying::SizeShown("is compared".into()), place.clone()));
            }
        } else if let Some(written) = written.filter(|_| !self.is_measured(self.initial(other))) {
            for usr in self.sizes_in(number) {
                self.facts.sayings.insert((usr, Saying::SizeBounded(written), place.clone()));
            }
        }
        if is_equal && written.is_some() {
            for (usr, member) in self.offsets_in(number) {
                self.facts.sayings.insert((usr, Saying::ComparedOffset(member), place.clone()));
            }
            if !self.is_kernel {
                self.note_places_within(number, at);
            }
        }
        self.note_place_compared(is_equal, number, other, at);
    }

    /// `first_offset() / 8 == 2`.
    fn note_places_within(&mut self, number: NodeId, at: NodeId) {
        let tree = self.tree;
        let node = tree.node(tree.uncast(number));
        let (Kind::Binary, None) = (node.kind, tree.pointee(node.ty)) else { return };
        for &part in &node.children {
            if let Some(place) = self.number_place(tree.uncast(part)) {
                let used = NumberUse::Shown("is compared".into());
                let at = self.at(at);
                self.facts.number_uses.insert((place, used, at));
            }
            self.note_places_within(part, at);
        }
    }

    fn note_place_compared(&mut self, is_equal: bool, number: NodeId, other: NodeId, at: NodeId) {
        let tree = self.tree;
        let (Some(place), false) = (self.number_place(tree.uncast(number)), self.is_kernel) else { return };
        let inner = self.constant(other);
        let written = tree.node(tree.bare(other)).value.or(tree.node(inner).value);
        let is_written = written.is_some();
        let written = written.and_then(|value| u64::try_from(value).ok());
        let used = match (written, self.number_place(inner)) {
            _ if self.is_measured(inner) => return,
            (Some(written @ 0..MOST_NUMBER), _) if is_equal => NumberUse::Equals(written),
            (Some(written @ 1..MOST_NUMBER), _) => NumberUse::Bounded(written),
            (None, Some(other)) if is_equal && !is_written => NumberUse::EqualsPlace(other),
            _ => return,
        };
        let at = self.at(at);
        self.facts.number_uses.insert((place, used, at));
    }

    /// `switch (n) { case sizeof(struct t): … }`, `switch (offset) { case 16: … }`.
    pub(super) fn note_case(&mut self, value: NodeId, at: NodeId) {
        let (tree, place) = (self.tree, self.at(at));
        // An offset that is a case is compared with what may be an offset, too.
        for usr in self.sizes_in(value) {
            self.facts.sayings.insert((usr, Saying::SizeShown("is a case".into()), place.clone()));
        }
        let around = self.above.iter().rev().find(|&&above| tree.node(above).kind == Kind::Switch);
        if let Some(&chosen) = around.and_then(|&around| tree.node(around).children.first()) {
            self.note_place_compared(true, chosen, value, at);
        }
    }

    /// `while (field->offset)`, `!offset`: compared with zero; `if (sizeof(struct t) & 8)`.
    pub(super) fn note_tested(&mut self, tested: &[NodeId], at: NodeId) {
        for &number in tested {
            let node = self.tree.node(self.tree.uncast(number));
            let is_part = matches!(node.operator, Some(Operator::And | Operator::Remainder));
            if is_part && node.value.is_some() && !self.is_kernel {
                self.note_shown(number, "is tested", at);
            }
            let is_number = self.tree.ty(self.tree.node(number).ty).kind == TypeKind::Scalar;
            let place = self.number_place(self.tree.uncast(number)).filter(|_| is_number && !self.is_kernel);
            if let Some(place) = place {
                let at = self.at(at);
                self.facts.number_uses.insert((place, NumberUse::Equals(0), at));
            }
        }
    }

    /// `printf("%zu", sizeof(struct t))`, `fputc(offsetof(struct t, m), file)`, `fwrite(&size, sizeof size, 1, file)`.
    pub(super) fn note_numbers_given(&mut self, decl: &Decl, arguments: &[NodeId], id: NodeId) {
        if self.is_kernel {
            return;
        }
        let tree = self.tree;
        let is_variadic = tree.ty(decl.ty).spelling.contains("...");
        let named = if is_variadic { decl.parameters } else { arguments.len() };
        let (plain, further) = arguments.split_at(named.min(arguments.len()));
        for &argument in further {
            self.note_shown(argument, "is one of further arguments", id);
            let is_number = tree.pointee(tree.node(argument).ty).is_none();
            self.note_address_shown(Some(argument).filter(|_| is_number), id);
        }
        if library_functions::shows_numbers(&decl.usr, &decl.name) {
            for &argument in plain {
                self.note_shown(argument, &format!("is given to {}()", decl.name), id);
                let to = tree.pointee(tree.node(tree.bare(argument)).ty);
                let is_text = to.is_some_and(|to| tree.ty(to).kind == TypeKind::Byte);
                self.note_address_shown(Some(argument).filter(|_| !is_text), id);
            }
        }
        if library_functions::sends_bytes(&decl.name) {
            for &argument in plain {
                let address = tree.node(tree.uncast(argument));
                if let (Kind::AddressOf, &[number]) = (address.kind, &address.children[..]) {
                    self.note_shown(number, &format!("goes to {}()", decl.name), id);
                }
            }
        }
    }

    /// `printf("%p", &x->m)`: next to another address it shows the member's offset.
    pub(super) fn note_address_shown(&mut self, address: Option<NodeId>, at: NodeId) {
        let member = address.and_then(|address| self.member_addressed(self.initial(address)));
        if let Some((usr, member, _)) = member.filter(|_| !self.is_kernel) {
            let at = self.at(at);
            let saying = Saying::OffsetShown(member, "is part of an address that is printed".into());
            self.facts.sayings.insert((usr, saying, at));
        }
    }

    /// `__builtin_object_size(&x->m, 0)`: the bytes from there to the object's end. A check of the library only asks
    /// whether they are enough.
    pub(super) fn note_object_size(
        &mut self,
        function: &str,
        arguments: &[NodeId],
        values: &[Vec<Value>],
        id: NodeId,
    ) {
        let tree = self.tree;
        if !library_functions::measures_object(function) || self.is_kernel {
            return;
        }
        let around = self.above.iter().rev().skip(1).find(|&&above| tree.node(above).kind == Kind::Call);
        let caller = around.and_then(|&around| tree.decl_of(around));
        let (&[pointer, kind], [given, ..]) = (arguments, values) else { return };
        if caller.is_some_and(|caller| caller.name.ends_with("_chk")) {
            return;
        }
        // Of a member alone, whose size no order changes.
        let is_of_member = tree.node(tree.bare(kind)).value.is_some_and(|kind| kind & 1 == 1);
        let measured: Vec<Value> = match is_of_member {
            true => self.typed_object(tree.uncast(pointer)).into_iter().collect(),
            false => Self::objects(given),
        };
        self.act(&measured, &Act::Rest(function.into()), id);
    }

    /// `names[offsetof(struct t, m)]`, unless the elements are given by offsets as well. Of an object's own words, or of
    /// bytes behind a pointer, an offset finds the member in any order.
    pub(super) fn note_offset_as_index(&mut self, array: NodeId, index: NodeId, at: NodeId) {
        let tree = self.tree;
        let inner = tree.bare(array);
        let is_array = matches!(tree.ty(tree.node(inner).ty).kind, TypeKind::Array(..));
        let is_given_by_offsets =
            tree.decl_of(inner).is_some_and(|decl| self.offset_tables.contains(&decl.usr));
        if is_array && !is_given_by_offsets && !self.is_kernel {
            let offsets = self.offsets_in(index);
            let place = self.number_place(tree.uncast(index));
            let at = self.at(at);
            for (usr, member) in offsets {
                let saying = Saying::OffsetShown(member, INDEX.into());
                self.facts.sayings.insert((usr, saying, at.clone()));
            }
            self.facts.number_uses.extend(place.map(|place| (place, NumberUse::Index, at)));
        }
    }

    /// `{ [offsetof(struct t, m)] = value }`.
    pub(super) fn note_given_by_offsets(&mut self, variable: NodeId, values: NodeId) {
        let tree = self.tree;
        let is_at_offset = |&value: &NodeId| {
            let places = tree.node(value).children.split_last().map_or(&[][..], |(_, places)| places);
            places.iter().any(|&place| tree.has_below(place, &[Kind::OffsetOf]))
        };
        let decl = tree.decl_of(variable).filter(|_| tree.node(values).children.iter().any(is_at_offset));
        self.offset_tables.extend(decl.map(|decl| decl.usr.clone()));
    }
}
