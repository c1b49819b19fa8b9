//! `offsetof`, distances between members, and sizes in constants of an ABI.

use super::Collector;
use crate::facts::{PointerPlace, Saying, Value};
use crate::library_functions;
use crate::tree::{DeclKind, Kind, Name, NodeId, Operator, TypeKind};

impl Collector<'_> {
    /// The record and the member that an `offsetof` names.
    pub(super) fn offset_member(&self, id: NodeId) -> Option<(Name, Name)> {
        let members = self.tree.node(id).children.iter().filter_map(|&child| {
            let decl = self.tree.decl_of(child).filter(|_| self.tree.node(child).kind == Kind::MemberRef)?;
            let DeclKind::Field(record) = decl.kind else { return None };
            Some((self.usr(record)?, decl.name.clone()))
        });
        members.into_iter().next()
    }

    /// `(char *)pointer - offsetof(T, member)`, or `+`: the target depends on the objects that the pointer can point
    /// to.
    pub(super) fn shifted(
        &mut self,
        values: &[Value],
        pointer: NodeId,
        index: NodeId,
        at: NodeId,
    ) -> Option<Value> {
        let index = self.tree.uncast(index);
        if self.tree.node(index).kind != Kind::OffsetOf {
            return None;
        }
        let (record, member) = self.offset_member(index)?;
        let site = self.tree.node(at).site;
        let name = format!("{}:{}:{}", self.tree.files[site.file], site.line, site.column);
        let place = PointerPlace::Shifted(record, member, name.into());
        let mut moved = values.to_vec();
        moved.extend(self.typed_object(self.tree.uncast(pointer)));
        self.flow(&moved, &place);
        Some(Value::place(place))
    }

    /// The use of the offset decides.
    pub(super) fn offset_of(&mut self, id: NodeId) -> Vec<Value> {
        let Some((record, member)) = self.offset_member(id) else { return Vec::new() };
        let saying = self.offset_use(&record, member);
        let at = self.at(id);
        self.facts.sayings.insert((record, saying, at));
        Vec::new()
    }

    fn offset_use(&self, record: &Name, member: Name) -> Saying {
        let (mut is_computed, mut is_moved) = (false, false);
        for &above in self.above.iter().rev().skip(1) {
            let node = self.tree.node(above);
            match node.kind {
                Kind::Assertion | Kind::SizeOf => return Saying::AssertedOffset(member),
                // It is stored, and not computed with.
                Kind::Binary if node.operator == Some(Operator::Assign) => break,
                Kind::Binary | Kind::CompoundAssign => {
                    let is_pointer = |id: NodeId| self.tree.pointee(self.tree.node(id).ty).is_some();
                    // `(unsigned long)x + offsetof(…)` is the member's address, too.
                    let is_address =
                        |&child: &NodeId| is_pointer(child) || is_pointer(self.tree.uncast(child));
                    if is_pointer(above) || node.children.iter().any(is_address) {
                        return Saying::Offset(member);
                    }
                    match !is_moved && !is_computed && self.stays_inside(above, record, &member) {
                        true => is_moved = true,
                        false => is_computed = true,
                    }
                }
                Kind::Call => return self.offset_given(above, record, member, is_computed || is_moved),
                Kind::Wrap | Kind::Cast | Kind::Conditional => {}
                _ => break,
            }
        }
        match is_computed {
            true => Saying::Measured(member),
            false => Saying::Offset(member),
        }
    }

    /// `offsetof(T, range) + sizeof(int)`: a place inside the member, which moves with the member.
    fn stays_inside(&self, sum: NodeId, record: &Name, member: &Name) -> bool {
        let tree = self.tree;
        let node = tree.node(sum);
        let Some(&offset) = self.above.last() else { return false };
        let (Some(total), Some(own)) = (node.value, tree.node(offset).value) else { return false };
        let is_added = |&child: &NodeId| {
            let inner = tree.bare(child);
            inner == offset || tree.node(inner).value == Some(total - own)
        };
        let Some(field) = tree.field(record, member) else { return false };
        let start = i64::try_from(field.offset_bits / 8).unwrap_or(i64::MAX);
        let size = tree.ty(field.ty).size_bytes.and_then(|size| i64::try_from(size).ok()).unwrap_or(0);
        total > own && total < start.saturating_add(size) && node.children.iter().all(is_added)
    }

    fn offset_given(&self, call: NodeId, record: &Name, member: Name, is_computed: bool) -> Saying {
        let name = self.tree.decl_of(call).map(|decl| decl.name.clone());
        let is_memory = name.as_ref().is_some_and(|name| library_functions::rule(name).is_some());
        if is_computed && name.is_some_and(|name| library_functions::gives_fresh_memory(&name)) {
            return Saying::TailAllocated(member);
        }
        let arguments = self.tree.arguments.get(&call).into_iter().flatten().flatten();
        let is_object = |&argument: &NodeId| {
            let behind = self.record_behind(self.tree.uncast(argument));
            behind.and_then(|behind| self.usr(behind)).as_ref() == Some(record)
        };
        match is_computed || is_memory || arguments.into_iter().any(is_object) {
            true => Saying::Measured(member),
            false => Saying::Offset(member),
        }
    }

    /// `(char *)&x->b - (char *)&x->a`, `p <= &x->b`.
    pub(super) fn note_distance(&mut self, left: NodeId, right: NodeId, at: NodeId) {
        let place = self.at(at);
        match self.distance(left, right).as_deref() {
            Some([(record, first), (_, second)]) => {
                let saying = Saying::Distance(first.clone(), second.clone());
                self.facts.sayings.insert((record.clone(), saying, place));
            }
            Some([(record, member)]) => {
                self.facts.sayings.insert((record.clone(), Saying::Measured(member.clone()), place));
            }
            _ => {}
        }
    }

    /// The members, with their records, whose distance from each other, or from another address, a difference is; also
    /// one of addresses that are kept in numbers.
    pub(super) fn distance(&self, left: NodeId, right: NodeId) -> Option<Vec<(Name, Name)>> {
        let is_address = |id: NodeId| self.tree.pointee(self.tree.node(self.initial(id)).ty).is_some();
        if !is_address(left) || !is_address(right) {
            return None;
        }
        let member = |id: NodeId| {
            let node = self.tree.node(self.initial(id));
            let child = *node.children.first().filter(|_| node.kind == Kind::AddressOf)?;
            self.member_named(self.tree.bare(child))
        };
        match (member(left), member(right)) {
            (Some(one), Some(two)) if one.0 == two.0 => Some(vec![one, two]),
            (Some(one), None) | (None, Some(one)) if self.is_of_bytes(left) || self.is_of_bytes(right) => {
                Some(vec![one])
            }
            _ => None,
        }
    }

    /// An address that is counted in bytes.
    fn is_of_bytes(&self, id: NodeId) -> bool {
        let node = self.tree.node(self.tree.bare(id));
        match self.tree.pointee(node.ty) {
            Some(to) => {
                node.kind == Kind::Cast && matches!(self.tree.ty(to).kind, TypeKind::Byte | TypeKind::Void)
            }
            None => true,
        }
    }

    /// `sizeof` is not evaluated: only an `offsetof` in it counts. One among shifts is a request's number, such as
    /// `_IOW(…, struct request)`.
    pub(super) fn inside_sizeof(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        for below in tree.below(id) {
            if tree.node(below).kind == Kind::OffsetOf
                && let Some((record, member)) = self.offset_member(below)
            {
                let at = self.at(below);
                self.facts.sayings.insert((record, Saying::AssertedOffset(member), at));
            }
        }
        let node = tree.node(id);
        let measured = node.children.first().and_then(|&child| tree.record_of(tree.node(child).ty));
        let around = self.above.iter().rev().skip(1).map(|&above| tree.node(above));
        let mut binaries =
            around.take_while(|node| matches!(node.kind, Kind::Wrap | Kind::Cast | Kind::Binary));
        let shifted = node.value.map(|size| size << REQUEST_SIZE_SHIFT);
        let is_request =
            shifted.is_some() && binaries.any(|node| node.kind == Kind::Binary && node.value == shifted);
        if let Some(usr) = measured.and_then(|record| self.usr(record)).filter(|_| is_request) {
            let at = self.at(id);
            self.facts.sayings.insert((usr, Saying::AbiConstant("a request's number".into()), at));
        }
        Vec::new()
    }
}

/// The position of the argument's size in an `ioctl` number.
const REQUEST_SIZE_SHIFT: u32 = 16;
