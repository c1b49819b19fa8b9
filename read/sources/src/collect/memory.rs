//! `memcpy`, `memset`, `memcmp` and their like.

use super::Collector;
use crate::facts::{Act, Copied, Reach, Saying, Shape, Source, Value};
use crate::library_functions::Rule;
use crate::tree::{Kind, Name, NodeId, RecordId, TypeKind};

/// The object or type that a size argument measures.
#[derive(Default)]
struct Size {
    /// Its value, when the text shows it; the largest of several.
    bytes: Option<u64>,
    /// `offsetof` of these members.
    offsets: Vec<(Name, Name)>,
    /// True when it is a distance between pointers.
    is_distance: bool,
    /// The sizes that a condition chooses among.
    choices: Vec<u64>,
    /// True when nothing in it is measured: a variable.
    is_unmeasured: bool,
    /// True for a number of pointers.
    is_in_pointers: bool,
    /// True where members go to the same members, or all bytes get the same value: then only the set of members
    /// matters.
    is_of_members: bool,
}

impl Collector<'_> {
    pub(super) fn memory(&mut self, id: NodeId, rule: Rule, arguments: &[NodeId]) -> Vec<Value> {
        let (places, size): (Vec<usize>, usize) = match rule {
            Rule::Copies { to, from, size } => (vec![to, from], size),
            Rule::Fills { to, size } => (vec![to], size),
            Rule::Compares { size } => (vec![0, 1], size),
            _ => return Vec::new(),
        };
        let values: Vec<Vec<Value>> = arguments.iter().map(|&argument| self.pointer(argument)).collect();
        let Some(&size) = arguments.get(size) else { return Vec::new() };
        for argument in places.iter().filter_map(|&at| arguments.get(at)) {
            self.note_open_span(*argument, size, id);
        }
        let mut size = self.size(size);
        let record = |at: usize| self.record_behind(self.tree.uncast(*arguments.get(at)?));
        size.is_of_members = match rule {
            Rule::Copies { to, from, .. } => record(to) == record(from),
            _ => matches!(rule, Rule::Fills { .. }),
        };
        for &at in &places {
            if let Some(&argument) = arguments.get(at) {
                self.note_memory(id, argument, &size, rule);
            }
        }
        for &at in &places {
            let part = values.get(at).map(|values| Self::objects(values)).unwrap_or_default();
            self.act(&part, &Act::Part, id);
            if let Some(bytes) = size.bytes {
                self.act(&part, &Act::Spans(bytes), id);
            }
        }
        let value = |at: usize| values.get(at).map(|values| Self::objects(values)).unwrap_or_default();
        match rule {
            Rule::Copies { to, from, .. } => {
                self.note_copied_pointer(&values[to], (arguments[from], &values[from]));
                self.note_copied_word(id, arguments[to], (arguments[from], &value(from)), size.bytes);
                self.note_copy(id, (arguments[to], &value(to)), (arguments[from], &value(from)));
                value(to)
            }
            Rule::Compares { .. } => {
                for &at in &places {
                    self.act(&value(at), &Act::Compared(size.is_in_pointers), id);
                }
                Vec::new()
            }
            _ => value(places[0]),
        }
    }

    fn size(&self, id: NodeId) -> Size {
        let tree = self.tree;
        let mut size = Size::default();
        let node = tree.node(tree.bare(id));
        let constant =
            |id: NodeId| tree.node(tree.bare(id)).value.and_then(|value| u64::try_from(value).ok());
        let known = self.known_number(id);
        size.bytes = constant(id).or(known.map(|known| known.most));
        // C++ changes a variable by a reference to it.
        size.is_unmeasured =
            constant(id).is_none() && (tree.is_cpp || !known.is_some_and(|known| known.is_only));
        if node.kind == Kind::Conditional {
            size.choices = node.children.iter().skip(1).filter_map(|&choice| constant(choice)).collect();
        }
        for below in tree.below(id) {
            let node = tree.node(below);
            size.is_unmeasured &=
                !matches!(node.kind, Kind::SizeOf | Kind::OffsetOf | Kind::Member | Kind::Call);
            size.is_in_pointers |= node.kind == Kind::SizeOf && self.measures_pointer(below);
            if node.kind == Kind::OffsetOf {
                size.offsets.extend(self.offset_member(below));
            }
            if let (Kind::Binary, [left, right]) = (node.kind, &node.children[..]) {
                let is_pointer = |id: NodeId| tree.pointee(tree.node(id).ty).is_some();
                size.is_distance |= is_pointer(*left) && is_pointer(*right) && !is_pointer(below);
            }
        }
        size
    }

    /// `sizeof(T *)`, of which libclang shows the name `T` alone.
    pub(super) fn measures_pointer(&self, id: NodeId) -> bool {
        let tree = self.tree;
        let node = tree.node(id);
        let Some(&child) = node.children.first().filter(|_| node.value == Some(8)) else { return false };
        let ty = tree.ty(tree.node(child).ty);
        matches!(ty.kind, TypeKind::Pointer(_))
            || (tree.node(child).kind == Kind::TypeRef && ty.size_bytes.is_some_and(|bytes| bytes != 8))
    }

    /// The facts that a size gives about the object, or the member, whose address is given with it.
    fn note_memory(&mut self, id: NodeId, argument: NodeId, size: &Size, rule: Rule) {
        let tree = self.tree;
        let at = self.at(id);
        let inner = tree.uncast(argument);
        // The target of a pointer in a member is not the member.
        if let Some((record, member, own)) = self.member_addressed(argument) {
            let is_more = size.is_distance
                || !size.offsets.is_empty()
                || size.bytes.is_some_and(|bytes| own > 0 && bytes > own);
            if is_more {
                self.facts.sayings.insert((record, Saying::Span(member, size.bytes), at.clone()));
            }
        }
        if let Some(bytes) = size.bytes {
            self.note_beyond_elements(argument, bytes, id);
        }
        let Some(record) = self.record_behind(inner) else { return };
        let Some(usr) = self.usr(record) else { return };
        if !size.offsets.is_empty() {
            for (owner, member) in &size.offsets {
                self.facts.sayings.insert((owner.clone(), Saying::Measured(member.clone()), at.clone()));
            }
            return;
        }
        let Some(whole) = self.record_bytes(record) else { return };
        if let Some(&bytes) = size.choices.iter().find(|&&bytes| bytes > 0 && bytes < whole) {
            self.facts.sayings.insert((usr.clone(), Saying::Prefix(bytes), at.clone()));
        }
        if size.is_unmeasured && !size.is_distance {
            self.facts.sayings.insert((usr, Saying::UnknownSize, at));
            return;
        }
        match size.bytes {
            Some(bytes) if bytes > 0 && bytes < whole => {
                let saying = if size.is_of_members { Saying::LeadingMembers } else { Saying::Prefix };
                self.facts.sayings.insert((usr, saying(bytes), at));
            }
            _ if size.is_distance => {
                self.facts.sayings.insert((usr, Saying::Prefix(whole), at));
            }
            _ if !matches!(rule, Rule::Compares { .. }) => {
                self.facts.sayings.insert((usr, Saying::Whole("copied or cleared whole".into()), at));
            }
            _ => {}
        }
    }

    pub(super) fn record_bytes(&self, record: RecordId) -> Option<u64> {
        Some(self.tree.records[record].size_bytes).filter(|bytes| *bytes > 0)
    }

    /// `memcpy(&one, &other, sizeof one)`: a pointer is copied.
    fn note_copied_pointer(&mut self, to: &[Value], (argument, from): (NodeId, &[Value])) {
        let at_address = |value: &Value| match &value.source {
            Source::Place(place) if value.reach == Reach::Address => Some(place.clone()),
            _ => None,
        };
        let inner = self.tree.node(self.tree.uncast(argument));
        let object = inner.children.first().filter(|_| inner.kind == Kind::AddressOf);
        let held = from.iter().filter_map(at_address).map(Value::place);
        let held: Vec<Value> = held.chain(object.and_then(|&object| self.typed_object(object))).collect();
        for place in to.iter().filter_map(at_address) {
            self.flow(&held, &place);
        }
    }

    /// `memcpy(&tag, p, sizeof tag)`: the bytes there are read as the variable's type.
    fn note_copied_word(
        &mut self,
        id: NodeId,
        to: NodeId,
        (from, values): (NodeId, &[Value]),
        bytes: Option<u64>,
    ) {
        let tree = self.tree;
        let target = tree.node(tree.uncast(to));
        let Some(&variable) = target.children.first().filter(|_| target.kind == Kind::AddressOf) else {
            return;
        };
        let ty = tree.ty(tree.node(variable).ty);
        let is_word = matches!(ty.kind, TypeKind::Scalar | TypeKind::Pointer(_)) && ty.size_bytes == bytes;
        let is_typed = self.record_behind(tree.uncast(from)).is_some();
        if is_word && !is_typed && !self.is_kernel {
            self.act(values, &Act::As(self.shape(tree.node(variable).ty), ty.spelling.clone()), id);
        }
    }

    /// After a copy, `to` holds the contents of `from`.
    fn note_copy(&mut self, id: NodeId, to: (NodeId, &[Value]), from: (NodeId, &[Value])) {
        let tree = self.tree;
        let (to_record, from_record) =
            (self.record_behind(tree.uncast(to.0)), self.record_behind(tree.uncast(from.0)));
        if to_record.is_some() && to_record == from_record {
            return;
        }
        if to_record.is_none() || from_record.is_none() {
            let at = self.at(id);
            self.facts.copies.insert(Copied { to: to.1.to_vec(), from: from.1.to_vec(), at });
        }
        for target in to.1 {
            // A part copied into a part makes neither object the other.
            let is_whole = |value: &Value| target.reach == Reach::Start || value.reach == Reach::Start;
            let copied: Vec<Value> = from.1.iter().filter(|value| is_whole(value)).cloned().collect();
            if let Source::Place(place) = &target.source {
                self.flow_at(&copied, place, target.level.saturating_neg());
            }
        }
        let as_record = |collector: &Self, record: Option<RecordId>| {
            let record = record.filter(|&record| tree.records[record].is_complete)?;
            let name = tree.records[record].names.first().cloned().unwrap_or_default();
            Some(Act::As(Shape::Record(collector.usr(record)?), name.into()))
        };
        if let Some(act) = as_record(self, to_record) {
            self.act(from.1, &act, id);
        }
        if let Some(act) = as_record(self, from_record) {
            self.act(to.1, &act, id);
        }
        let is_bytes = |node: NodeId| {
            tree.pointee(tree.node(tree.uncast(node)).ty).is_some_and(|to| tree.ty(to).kind == TypeKind::Byte)
        };
        let is_numbers = |node: NodeId| match tree.ty(tree.node(tree.uncast(node)).ty).kind {
            TypeKind::Array(of, _) => tree.ty(of).kind == TypeKind::Scalar,
            _ => false,
        };
        let buffer = |node: NodeId| match (is_bytes(node), is_numbers(node)) {
            (true, _) => Some("a buffer of bytes"),
            (_, true) => Some("an array of numbers"),
            _ => None,
        };
        // A buffer of bytes may go anywhere; a block that is only memory is followed.
        if let Some(buffer) = buffer(to.0).filter(|_| to_record.is_none() && from_record.is_some()) {
            let whole = self.whole_objects(from);
            self.act(&whole, &Act::Leaves(buffer.into()), id);
        }
        if let Some(buffer) = buffer(from.0).filter(|_| from_record.is_none() && to_record.is_some()) {
            let whole = self.whole_objects(to);
            self.act(&whole, &Act::Comes(buffer.into()), id);
        }
    }

    fn whole_objects(&self, (node, values): (NodeId, &[Value])) -> Vec<Value> {
        let whole = values.iter().filter(|value| value.reach == Reach::Start).cloned();
        whole.chain(self.typed_object(self.tree.uncast(node))).collect()
    }
}
