//! Sizes of objects that are written as numbers: steps, products, shifts and masks.

use super::Collector;
use crate::facts::{Act, Saying, Value};
use crate::tree::{Kind, NodeId, Operator, TypeId};

impl Collector<'_> {
    /// `(struct t *)(base + (i << 8))`, `(struct t *)(address & ~255)`: objects are found by a number that is their
    /// size.
    pub(super) fn note_stride(&mut self, child: NodeId, ahead: TypeId, at: NodeId) {
        let tree = self.tree;
        let Some(record) = tree.record_of(ahead) else { return };
        let (Some(size), Some(usr)) = (self.record_bytes(record), self.usr(record)) else { return };
        let sum = tree.uncast(child);
        if tree.node(sum).kind != Kind::Binary {
            return;
        }
        let is_stride = |&id: &NodeId| self.stride(id) == Some(size) || self.masked(id) == Some(size);
        if tree.below(sum).iter().any(is_stride) {
            let at = self.at(at);
            self.facts.sayings.insert((usr, Saying::Stride(size), at));
        }
    }

    /// `p += 256`, `p + i * 256`, `p + 256`, by elements of this many bytes: at the target, objects are that far apart.
    /// `p += sizeof(struct head)`: other things lie behind the bytes of the head.
    pub(super) fn note_steps(&mut self, values: &[Value], index: NodeId, element_bytes: u64, at: NodeId) {
        let tree = self.tree;
        if self.is_kernel {
            return;
        }
        let known = |id: NodeId| tree.node(id).value.and_then(|value| u64::try_from(value).ok());
        let whole = known(tree.bare(index)).or_else(|| known(tree.uncast(index)));
        if tree.has_below(index, &[Kind::SizeOf]) {
            if let Some(bytes) = whole.filter(|_| element_bytes == 1 && !tree.node(at).is_minus) {
                self.act(&Self::objects(values), &Act::Past(bytes), at);
            }
            return;
        }
        let products = tree.below(index).into_iter().filter_map(|id| self.stride(id));
        let strides: Vec<u64> = whole.into_iter().chain(products).collect();
        for stride in strides.into_iter().map(|stride| stride.saturating_mul(element_bytes)) {
            if stride > 1 {
                self.act(&Self::objects(values), &Act::Stride(stride), at);
            }
        }
    }

    /// `((char *)x - (char *)all) >> 8`, `/ 256`.
    pub(super) fn note_divided_distance(&mut self, id: NodeId, left: NodeId, right: NodeId) {
        let tree = self.tree;
        let number = tree.node(tree.bare(right)).value.and_then(|number| u64::try_from(number).ok());
        let unit = match (tree.node(id).operator, number) {
            (Some(Operator::Divide), Some(number)) => number,
            (Some(Operator::ShiftRight), Some(by)) if by < 64 => 1 << by,
            _ => return,
        };
        let distance = tree.node(tree.uncast(left));
        let (Kind::Binary, [one, two]) = (distance.kind, &distance.children[..]) else { return };
        if self.is_kernel || tree.has_below(right, &[Kind::SizeOf]) {
            return;
        }
        for pointer in [*one, *two] {
            let mut values = self.value(pointer);
            values.extend(self.typed_object(tree.uncast(pointer)));
            self.act(&Self::objects(&values), &Act::Stride(unit), id);
        }
    }

    /// The number that a product or a shift multiplies with.
    fn stride(&self, id: NodeId) -> Option<u64> {
        let tree = self.tree;
        let node = tree.node(id);
        let [left, right] = node.children[..] else { return None };
        let number =
            |id: NodeId| tree.node(tree.bare(id)).value.and_then(|number| u64::try_from(number).ok());
        match node.operator {
            Some(Operator::ShiftLeft) => {
                number(right).and_then(|by| 1_u64.checked_shl(u32::try_from(by).ok()?))
            }
            Some(Operator::Times) if !tree.has_below(id, &[Kind::SizeOf]) => number(right).or(number(left)),
            _ => None,
        }
    }

    /// The size of the blocks to whose beginning an address is rounded down.
    pub(super) fn masked(&self, id: NodeId) -> Option<u64> {
        let tree = self.tree;
        let node = tree.node(id);
        let [left, right] = node.children[..] else { return None };
        if node.operator != Some(Operator::And) || tree.has_below(id, &[Kind::SizeOf]) {
            return None;
        }
        let size = |id: NodeId| tree.node(tree.bare(id)).value.filter(|mask| *mask < 0)?.checked_neg();
        let size = size(right).or_else(|| size(left))?;
        u64::try_from(size).ok().filter(|size| size.is_power_of_two())
    }
}
