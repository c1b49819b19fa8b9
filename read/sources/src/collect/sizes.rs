//! Sizes larger, or smaller, than the object or the member that they are given with.

use super::Collector;
use super::known_numbers::KnownNumber;
use crate::facts::Saying;
use crate::tree::{Kind, Name, NodeId, Operator, RecordId, TypeId, TypeKind};

/// The size of `wchar_t`.
const WIDE_BYTES: u64 = 4;

impl Collector<'_> {
    /// `x->name[12]` where `name` has eight elements: the code means the bytes after the member.
    pub(super) fn note_past_end(&mut self, base: NodeId, index: NodeId, at: NodeId) {
        let tree = self.tree;
        let inner = tree.uncast(base);
        let Some((record, member)) = self.member_named(inner) else { return };
        let ty = tree.ty(tree.node(inner).ty);
        let TypeKind::Array(of, Some(count)) = ty.kind else { return };
        let index = tree.node(tree.bare(index)).value.and_then(|value| u64::try_from(value).ok());
        let element = tree.ty(of).size_bytes.unwrap_or(0);
        if let Some(index) = index.filter(|&index| count > 1 && index >= count) {
            let place = self.at(at);
            let bytes = index.saturating_add(1).saturating_mul(element);
            self.facts.sayings.insert((record, Saying::Span(member, Some(bytes)), place));
        }
    }

    /// `for (i = 0; i < 4; i++) x->a[i] = 0` where `a` has two elements.
    pub(super) fn note_loop_past_end(&mut self, base: NodeId, index: NodeId, at: NodeId) {
        let tree = self.tree;
        let Some((record, member)) = self.member_named(tree.uncast(base)) else { return };
        let TypeKind::Array(of, Some(count @ 2..)) = tree.ty(tree.node(tree.uncast(base)).ty).kind else {
            return;
        };
        let Some(counter) = tree.node(tree.uncast(index)).decl.filter(|_| !self.is_kernel) else { return };
        let bound = |&around: &NodeId| {
            let node = tree.node(around);
            let [counted, most] = node.children[..] else { return None };
            let is_it = node.operator == Some(Operator::Less)
                && tree.node(tree.uncast(counted)).decl == Some(counter);
            tree.node(tree.bare(most)).value.filter(|_| is_it).and_then(|most| u64::try_from(most).ok())
        };
        let around = self.above.iter().rev().filter(|&&above| tree.node(above).kind == Kind::Other);
        let most = around.filter_map(|&above| tree.node(above).children.iter().find_map(bound)).next();
        let element = tree.ty(of).size_bytes.unwrap_or(0);
        if let Some(most) = most.filter(|&most| most > count) {
            let at = self.at(at);
            let bytes = most.saturating_mul(element);
            self.facts.sayings.insert((record, Saying::Span(member, Some(bytes)), at));
        }
    }

    /// `((int *)(x->name + 8))[0]`.
    pub(super) fn note_beyond_subscript(&mut self, base: NodeId, index: NodeId, at: NodeId) {
        let tree = self.tree;
        let index = tree.node(tree.bare(index)).value.and_then(|index| u64::try_from(index).ok());
        if let (Some(element), Some(index)) = (tree.ty(tree.node(at).ty).size_bytes, index) {
            self.note_beyond_elements(base, index.saturating_add(1).saturating_mul(element), at);
        }
    }

    /// A call that is given a member's address and a size beyond that member: `fwrite(&x->a, 12, 1, file)`.
    pub(super) fn note_sizes(&mut self, id: NodeId, arguments: &[NodeId]) {
        self.note_open_sizes(id, arguments);
        let tree = self.tree;
        let is_measured = arguments.iter().any(|&argument| self.measures(argument));
        let name = tree.decl_of(id).map(|decl| decl.name.clone()).unwrap_or_else(|| "".into());
        // `read((char *)&x->a, 8)` of a stream of C++ takes a signed size.
        let takes_bytes = |&argument: &NodeId| {
            let to = tree.pointee(tree.node(argument).ty);
            to.is_some_and(|to| matches!(tree.ty(to).kind, TypeKind::Byte | TypeKind::Void))
        };
        let takes_bytes = arguments.iter().any(takes_bytes);
        let is_small = crate::library_functions::takes_int_size(&name);
        let size = |&argument: &NodeId| {
            if is_small {
                return self.number_given(argument);
            }
            let is_signed = takes_bytes && tree.ty(tree.node(argument).ty).spelling.starts_with("long");
            let size =
                self.size_given(argument).or_else(|| self.number_given(argument).filter(|_| is_signed));
            // Of plain memory a number in a variable is a size, too.
            size.filter(|_| takes_bytes || tree.node(tree.bare(argument)).value.is_some())
        };
        let sizes: Vec<u64> = arguments.iter().filter_map(size).collect();
        let wide = if crate::library_functions::takes_wide_size(&name) { WIDE_BYTES } else { 1 };
        let Some(bytes) = sizes.iter().copied().reduce(u64::saturating_mul) else { return };
        let bytes = bytes.saturating_mul(wide);
        for (index, &argument) in arguments.iter().enumerate() {
            self.note_part_given(id, argument, bytes);
            // A function that takes an object by its type takes no bytes beyond it, for any numbers that it is given.
            let takes_object =
                tree.pointee(tree.node(argument).ty).is_some_and(|to| tree.record_of(to).is_some());
            if !takes_object || is_measured {
                // `grow((void **)&x->items, sizeof *x->items, &x->room)`: the size is an item's.
                let used = self.member_addressed(argument).and_then(|_| self.bytes_used_by(id, index));
                self.note_span(argument, Some(used.map_or(bytes, |used| used.min(bytes))), id);
            }
        }
    }

    /// `qsort(&x->a, 3, sizeof x->a, compare)`.
    pub(super) fn note_elements(&mut self, id: NodeId, function: &str, arguments: &[NodeId]) {
        let Some(places) = crate::library_functions::array_given(function) else { return };
        let [Some(&first), Some(&count), Some(&size)] = places.map(|at| arguments.get(at)) else { return };
        if let (Some(count), Some(size)) = (self.number_given(count), self.number_given(size)) {
            self.note_span(first, Some(count.saturating_mul(size)), id);
        }
    }

    /// `struct iovec v = { &x->a, 8 }`: an address and the number of bytes there, for the system.
    pub(super) fn note_span_given(&mut self, record: RecordId, values: &[(Name, NodeId)], id: NodeId) {
        if !self.tree.records[record].is_foreign {
            return;
        }
        let bytes = values.iter().filter_map(|(_, value)| self.number_given(*value)).max();
        for (_, value) in values {
            self.note_span(*value, bytes, id);
        }
    }

    /// `v.iov_base = &x->a; v.iov_len = 8;` in one function.
    pub(super) fn note_span_assigned(&mut self, record: &Name, from: NodeId) {
        let tree = self.tree;
        let Some(&function) = self.above.iter().find(|&&above| tree.node(above).kind == Kind::Function)
        else {
            return;
        };
        let is_of_it = |left: NodeId| {
            let is_number = tree.ty(tree.node(left).ty).kind == TypeKind::Scalar;
            is_number && self.member_named(tree.bare(left)).is_some_and(|(of, _)| of == *record)
        };
        let assigned =
            tree.below(function).into_iter().filter_map(|below| match tree.node(below).children[..] {
                [left, right] if tree.node(below).kind == Kind::Binary && is_of_it(left) => {
                    self.number_given(right)
                }
                _ => None,
            });
        let bytes = assigned.max();
        self.note_span(from, bytes, from);
    }

    /// A member's address that is given with a number of bytes beyond the member.
    fn note_span(&mut self, value: NodeId, bytes: Option<u64>, at: NodeId) {
        if let Some(bytes) = bytes {
            self.note_beyond_elements(value, bytes, at);
        }
        let Some((record, member, own)) = self.member_addressed(value) else { return };
        if let Some(bytes) = bytes.filter(|&bytes| own > 0 && bytes > own) {
            let at = self.at(at);
            self.facts.sayings.insert((record, Saying::Span(member, Some(bytes)), at));
        }
    }

    /// `memcpy(&x->a, from, n)` of a member that is no array and no object, where nothing limits the number to the
    /// member: the bytes may go on into what follows.
    pub(super) fn note_open_span(&mut self, value: NodeId, size: NodeId, at: NodeId) {
        let tree = self.tree;
        let Some((record, member, own)) = self.member_addressed(value).filter(|_| !self.is_kernel) else {
            return;
        };
        let is_in_union = tree.record_called(&record).is_some_and(|record| tree.records[record].is_union);
        let is_one = tree.field(&record, &member).filter(|_| !is_in_union).is_some_and(|field| {
            matches!(tree.ty(field.ty).kind, TypeKind::Scalar | TypeKind::Byte | TypeKind::Pointer(_))
        });
        if is_one && self.is_open(size) && !self.is_limited(size, own) {
            let at = self.at(at);
            self.facts.sayings.insert((record, Saying::Span(member, None), at));
        }
    }

    /// True for a size of which the text does not show the value.
    fn is_open(&self, size: NodeId) -> bool {
        let tree = self.tree;
        let is_number = matches!(tree.ty(tree.node(size).ty).kind, TypeKind::Scalar | TypeKind::Byte);
        let is_shown = tree.node(tree.bare(size)).value.is_some() || self.known_number(size).is_some();
        is_number && !is_shown && !tree.has_below(size, &[Kind::OffsetOf])
    }

    /// True where a number in a size is compared with, or set to, at most this many bytes in the same function, or is the
    /// smaller of two.
    fn is_limited(&self, size: NodeId, most: u64) -> bool {
        let tree = self.tree;
        let parts = tree.below(size);
        let named = |id: NodeId| tree.node(tree.uncast(id)).decl;
        let is_smaller = |&id: &NodeId| tree.decl_of(id).is_some_and(|decl| &*decl.name == "min");
        if parts.iter().any(is_smaller) {
            return true;
        }
        let names: Vec<_> = parts.iter().filter_map(|&id| tree.node(id).decl).collect();
        let Some(&function) = self.above.iter().find(|&&above| tree.node(above).kind == Kind::Function)
        else {
            return false;
        };
        let is_small = |id: NodeId| {
            let value = tree.node(tree.uncast(id)).value.and_then(|value| u64::try_from(value).ok());
            value.is_some_and(|value| (1..=most).contains(&value))
        };
        tree.below(function).into_iter().any(|id| {
            let node = tree.node(id);
            let [left, right] = node.children[..] else { return false };
            let is_limit = matches!(node.operator, Some(Operator::Less | Operator::Equal | Operator::Assign));
            let is_named = |id| named(id).is_some_and(|decl| names.contains(&decl));
            is_limit && (is_named(left) && is_small(right) || is_named(right) && is_small(left))
        })
    }

    /// `send(&x->a, n)`: a function takes plain memory, and next to it a number of bytes or of things.
    fn note_open_sizes(&mut self, id: NodeId, arguments: &[NodeId]) {
        let tree = self.tree;
        for (index, &argument) in arguments.iter().enumerate() {
            let to = tree.pointee(tree.node(argument).ty).map(|to| tree.ty(to).kind);
            if !matches!(to, Some(TypeKind::Void | TypeKind::Byte)) {
                continue;
            }
            let beside = [index.checked_sub(1), Some(index + 1), Some(index + 2)];
            for &size in beside.into_iter().flatten().filter_map(|at| arguments.get(at)) {
                if tree.ty(tree.node(size).ty).spelling.starts_with("unsigned long") {
                    self.note_open_span(argument, size, id);
                }
            }
        }
    }

    /// The member whose address an expression is, and its size: `&x->m`, `x->array`, `(char *)x + offsetof(T, m)`.
    pub(super) fn member_addressed(&self, id: NodeId) -> Option<(Name, Name, u64)> {
        let tree = self.tree;
        let inner = tree.uncast(id);
        let node = tree.node(inner);
        let named = |target: NodeId| {
            let (record, member) = self.member_named(target)?;
            Some((record, member, tree.ty(tree.node(target).ty).size_bytes.unwrap_or(0)))
        };
        match (node.kind, &node.children[..]) {
            (Kind::AddressOf, [target, ..]) => named(tree.bare(*target)),
            (Kind::Binary, sides) if self.is_pointer_sum(inner) => {
                let mut sides = sides.iter().map(|&side| tree.uncast(side));
                let (record, member) =
                    self.offset_member(sides.find(|&side| tree.node(side).kind == Kind::OffsetOf)?)?;
                let own = tree.ty(tree.field(&record, &member)?.ty).size_bytes.unwrap_or(0);
                Some((record, member, own))
            }
            _ if matches!(tree.ty(node.ty).kind, TypeKind::Array(..)) => named(inner),
            _ => None,
        }
    }

    /// `pointer + number`: of pointers libclang shows the text of `-` alone.
    fn is_pointer_sum(&self, id: NodeId) -> bool {
        let node = self.tree.node(id);
        !node.is_minus && self.tree.pointee(node.ty).is_some()
    }

    /// `x->name + 8`, `&x->name[8]`, where `name` has eight elements, and bytes that are used there.
    pub(super) fn note_beyond_elements(&mut self, pointer: NodeId, bytes: u64, at: NodeId) {
        let tree = self.tree;
        let node = tree.node(tree.uncast(pointer));
        let sum = match (node.kind, &node.children[..]) {
            (Kind::Binary, _) if self.is_pointer_sum(tree.uncast(pointer)) => node,
            (Kind::AddressOf, [element]) => tree.node(tree.bare(*element)),
            _ => return,
        };
        let (Kind::Binary | Kind::Subscript, [base, index]) = (sum.kind, &sum.children[..]) else { return };
        let array = tree.uncast(*base);
        let Some((record, member)) = self.member_named(array) else { return };
        let ty = tree.ty(tree.node(array).ty);
        let TypeKind::Array(of, Some(2..)) = ty.kind else { return };
        let index = tree.node(tree.bare(*index)).value.and_then(|index| u64::try_from(index).ok());
        let (Some(own), Some(element), Some(index)) = (ty.size_bytes, tree.ty(of).size_bytes, index) else {
            return;
        };
        let end = index.saturating_mul(element).saturating_add(bytes);
        if end > own {
            let at = self.at(at);
            self.facts.sayings.insert((record, Saying::Span(member, Some(end)), at));
        }
    }

    /// `release(x, sizeof(struct outer))` where `x` is the first member of an outer object: it stands for the outer
    /// one.
    pub(super) fn note_given_for(&mut self, id: NodeId, argument: NodeId, arguments: &[NodeId]) {
        let tree = self.tree;
        let Some(given) = self.record_behind(tree.bare(argument)) else { return };
        let measured = arguments.iter().map(|&argument| tree.node(tree.bare(argument)));
        let measured = measured.filter(|node| node.kind == Kind::SizeOf);
        let measured = measured.filter_map(|node| tree.record_of(tree.node(*node.children.first()?).ty));
        let outer: Vec<Name> =
            measured.filter(|outer| *outer != given).filter_map(|outer| self.usr(outer)).collect();
        let (at, Some(given)) = (self.at(id), self.usr(given)) else { return };
        let stands = |usr| (usr, Saying::StandsForIt(given.clone()), at.clone());
        self.facts.sayings.extend(outer.into_iter().map(stands));
    }

    /// `copy(to, x, 8)`: a function that takes plain memory is given an object and a size below the object's.
    fn note_part_given(&mut self, id: NodeId, argument: NodeId, bytes: u64) {
        let tree = self.tree;
        let to = tree.pointee(tree.node(argument).ty);
        let is_plain = to.is_some_and(|to| matches!(tree.ty(to).kind, TypeKind::Void | TypeKind::Byte));
        let name = tree.decl_of(id).map(|decl| decl.name.clone()).unwrap_or_else(|| "".into());
        if !is_plain
            || crate::library_functions::gives_fresh_memory(&name)
            || crate::library_functions::ends_life(&name)
        {
            return;
        }
        let Some(record) = self.record_behind(tree.uncast(argument)) else { return };
        let (Some(whole), Some(usr)) = (self.record_bytes(record), self.usr(record)) else { return };
        // One is a number of things.
        if bytes > 1 && bytes < whole {
            let at = self.at(id);
            self.facts.sayings.insert((usr, Saying::Prefix(bytes), at));
        }
    }

    /// The value of an argument that is a number of bytes or of things.
    fn size_given(&self, argument: NodeId) -> Option<u64> {
        let is_size = self.tree.ty(self.tree.node(argument).ty).spelling.starts_with("unsigned long");
        self.number_given(argument).filter(|_| is_size || self.measures(argument))
    }

    /// The value of an argument, where the text shows it and it is above zero.
    fn number_given(&self, argument: NodeId) -> Option<u64> {
        let value =
            self.tree.node(self.tree.bare(argument)).value.and_then(|value| u64::try_from(value).ok());
        let value = value.or_else(|| self.known_number(argument).map(|known| known.most));
        value.filter(|&value| value > 0)
    }

    /// The value of an argument or an index, also of one that variables give.
    pub(super) fn known_number(&self, id: NodeId) -> Option<KnownNumber> {
        self.numbers.value(self.tree, id)
    }

    /// True where a size is taken.
    fn measures(&self, argument: NodeId) -> bool {
        let tree = self.tree;
        tree.below(tree.bare(argument)).into_iter().any(|id| tree.node(id).kind == Kind::SizeOf)
    }

    /// `p = malloc(24)` for a type of 32 bytes: the rest is not there.
    pub(super) fn note_short_allocation(&mut self, child: NodeId, ahead: TypeId) {
        let tree = self.tree;
        let call = tree.uncast(child);
        if tree.node(call).kind == Kind::Conditional {
            for &choice in tree.node(call).children.iter().skip(1) {
                self.note_short_allocation(choice, ahead);
            }
            return;
        }
        let is_call = tree.node(call).kind == Kind::Call;
        let name = tree.decl_of(call).map(|decl| decl.name.clone()).filter(|_| is_call);
        if !name.is_some_and(|name| crate::library_functions::gives_fresh_memory(&name)) {
            return;
        }
        let Some(record) = tree.record_of(ahead) else { return };
        let (Some(whole), Some(usr)) = (self.record_bytes(record), self.usr(record)) else { return };
        let arguments: Vec<NodeId> =
            tree.arguments.get(&call).into_iter().flatten().flatten().copied().collect();
        let is_number = |&id: &NodeId| tree.pointee(tree.node(id).ty).is_none();
        let numbers: Vec<NodeId> = arguments.into_iter().filter(is_number).collect();
        let sizes: Option<Vec<u64>> = numbers.iter().map(|&argument| self.size_given(argument)).collect();
        // `malloc(length + sizeof *x - 1)`: an array at the end continues behind the object.
        let last = tree.records[record].fields.last();
        let is_array = |ty: TypeId| matches!(tree.ty(ty).kind, TypeKind::Array(..));
        if let Some(last) = last.filter(|last| sizes.is_none() && is_array(last.ty)) {
            let (member, at) = (last.name.clone(), self.at(call));
            self.facts.sayings.insert((usr.clone(), Saying::TailAllocated(member), at));
        }
        let bytes = sizes.and_then(|sizes| sizes.into_iter().reduce(u64::saturating_mul));
        if let Some(bytes) = bytes.filter(|&bytes| bytes < whole) {
            let at = self.at(call);
            self.facts.sayings.insert((usr, Saying::Prefix(bytes), at));
        }
    }
}
