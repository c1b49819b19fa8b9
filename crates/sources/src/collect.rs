//! From a unit's tree to its facts: every function and initialiser is walked once.

mod calls;
mod convert;
mod initialisers;
mod memory;
mod offsets;
mod outside;
mod records;
mod sizes;

pub(crate) use convert::variadic;

use crate::facts::{Act, Facts, Origin, Place, Reach, Shape, Source, Value, Where};
use crate::known;
use crate::tree::{DeclKind, Kind, Name, NodeId, RecordId, Site, Tree, TypeId, TypeKind};

/// The facts of one unit. A kernel calls nothing but itself, so that what a function takes by its type it knows by the
/// same declaration, wherever its body is.
pub(crate) fn collect(tree: &Tree, is_kernel: bool) -> Facts {
    let mut collector =
        Collector { tree, is_kernel, facts: Facts::default(), function: None, above: Vec::new() };
    collector.records();
    for &root in &tree.roots {
        collector.value(root);
    }
    if !is_kernel {
        collector.note_mentions();
    }
    collector.facts
}

/// Stands for the name of a record's first member, which not every unit knows.
pub(crate) const FIRST: &str = "(first)";

struct Collector<'t> {
    tree: &'t Tree,
    is_kernel: bool,
    facts: Facts,
    /// The function whose body is walked.
    function: Option<Name>,
    /// The nodes around the present one, outermost first.
    above: Vec<NodeId>,
}

impl Collector<'_> {
    fn place_of(&self, site: Site) -> Where {
        Where { file: self.tree.files[site.file].clone(), line: site.line }
    }

    fn at(&self, node: NodeId) -> Where {
        self.place_of(self.tree.node(node).site)
    }

    fn usr(&self, record: RecordId) -> Option<Name> {
        self.tree.records[record].usr.clone()
    }

    /// The record that a node's pointer leads to.
    fn record_behind(&self, node: NodeId) -> Option<RecordId> {
        self.tree.record_pointed_to(self.tree.node(node).ty)
    }

    fn act(&mut self, values: &[Value], act: &Act, node: NodeId) {
        let at = self.at(node);
        for value in values {
            self.facts.acts.insert((value.clone(), act.clone(), at.clone()));
        }
    }

    fn flow(&mut self, values: &[Value], to: &Place) {
        self.flow_at(values, to, 0);
    }

    /// The same, for what is stored so many pointers behind the place.
    fn flow_at(&mut self, values: &[Value], to: &Place, level: i8) {
        for value in values {
            if value.source != Source::Place(to.clone()) || value.level != -level {
                self.facts.flows.insert((value.clone().at_level(level), to.clone()));
            }
        }
    }

    fn visit(&mut self, nodes: &[NodeId]) {
        for &node in nodes {
            self.value(node);
        }
    }

    /// What a pointer-valued node may point to. Everything below the node is walked.
    fn value(&mut self, id: NodeId) -> Vec<Value> {
        self.above.push(id);
        let values = self.value_inside(id);
        self.above.pop();
        values
    }

    /// The same, and the object itself when the node's type says what it is.
    fn pointer(&mut self, id: NodeId) -> Vec<Value> {
        let mut values = self.kept(id);
        values.extend(self.typed_object(id));
        values.extend(self.inside_template(id));
        values
    }

    /// The objects in a `std::array` and the like, which libclang does not show as members.
    fn inside_template(&self, id: NodeId) -> Vec<Value> {
        const HOLD_OBJECTS: [&str; 5] = ["array<", "pair<", "tuple<", "optional<", "variant<"];
        let Some(to) = self.tree.pointee(self.tree.node(self.tree.uncast(id)).ty) else { return Vec::new() };
        let spelling = self.tree.ty(to).spelling.clone();
        let is_held =
            HOLD_OBJECTS.iter().any(|name| spelling.strip_prefix("std::").unwrap_or("").starts_with(name));
        let usrs = if is_held { self.named_in(&spelling) } else { Vec::new() };
        usrs.into_iter().map(|usr| Value::origin(Origin::Object(usr))).collect()
    }

    /// `x` as an object of the record that its type names. Null pointers are none, `p + 1` is past its end.
    fn typed_object(&self, id: NodeId) -> Option<Value> {
        let held =
            self.tree.pointee(self.tree.node(id).ty).and_then(|held| self.tree.record_pointed_to(held));
        if let (Some(held), false) = (held, self.record_behind(id).is_some()) {
            return Some(Value::origin(Origin::Handle(self.usr(held)?)));
        }
        let record = self.record_behind(id)?;
        let inner = self.tree.uncast(id);
        let node = self.tree.node(inner);
        let is_past = node.kind == Kind::Binary
            && node
                .children
                .last()
                .is_some_and(|&last| self.tree.node(self.tree.bare(last)).value == Some(1));
        let is_va_list = self.tree.records[record].names.iter().any(|name| name.starts_with("__va_list"));
        if node.kind == Kind::Integer || is_past || is_va_list {
            return None;
        }
        Some(Value::origin(Origin::Object(self.usr(record)?)))
    }

    fn value_inside(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let node = tree.node(id);
        let children = node.children.as_slice();
        match node.kind {
            Kind::Function => self.function(id),
            Kind::Variable => self.variable(id),
            Kind::DeclRef => self.named(id),
            Kind::Member => self.member(id),
            Kind::Call => self.call(id),
            Kind::Cast | Kind::Wrap => self.convert(id),
            Kind::AddressOf => self.address_of(id),
            Kind::Deref => self.dereference(id),
            Kind::Subscript => self.subscript(id),
            Kind::Step | Kind::CompoundAssign => self.step(id),
            Kind::Binary => self.binary(id),
            Kind::Conditional => {
                let chosen = children.iter().map(|&child| self.value(child));
                // The condition's value is not given.
                chosen.skip(usize::from(children.len() == 3)).flatten().collect()
            }
            Kind::InitList => {
                self.initialise(id, node.ty, None, 0);
                Vec::new()
            }
            Kind::SizeOf => self.inside_sizeof(id),
            Kind::OffsetOf => self.offset_of(id),
            Kind::Return => {
                let values = children.last().map(|&child| self.kept(child)).unwrap_or_default();
                if let Some(function) = self.function.clone() {
                    self.flow(&values, &Place::Return(function));
                }
                Vec::new()
            }
            Kind::Assembly => self.assembly(id),
            Kind::New => {
                self.visit(children);
                vec![self.memory_given(id)]
            }
            Kind::Integer | Kind::This | Kind::TypeRef | Kind::MemberRef => Vec::new(),
            Kind::Assertion | Kind::Designated | Kind::CompoundLiteral | Kind::Count | Kind::Other => {
                self.note_volatile(id);
                let mut last = Vec::new();
                for &child in children {
                    last = self.value(child);
                }
                last
            }
        }
    }

    /// A kernel's macros pass pointers through assembly that does nothing (barriers, per-CPU addresses, hidden values);
    /// what such macros read and write they are given as members.
    fn assembly(&mut self, id: NodeId) -> Vec<Value> {
        let node = self.tree.node(id);
        let is_passing = self.is_kernel && node.site.is_in_macro;
        for &child in &node.children {
            let values = self.pointer(child);
            if !is_passing {
                self.act(&values, &Act::Assembly, id);
            }
        }
        Vec::new()
    }

    fn function(&mut self, id: NodeId) -> Vec<Value> {
        let node = self.tree.node(id);
        let outer = self.function.take();
        if let Some(decl) = self.tree.decl_of(id) {
            let usr = decl.usr.clone();
            self.facts.defined.insert(usr.clone());
            self.function = Some(usr.clone());
            let taken = decl.overrides.iter().map(|base| (base.clone(), usr.clone()));
            self.facts.taken.extend(taken);
            // A method of a class template has the template in its name.
            let is_generic = decl.kind == DeclKind::Template || decl.usr.contains("@ST>");
            if is_generic && self.looks_at_bytes(id) {
                self.facts.byte_templates.insert(usr);
            }
            if decl.is_exported {
                self.note_exported(id);
            }
            self.note_parameters(id);
        }
        self.visit(&node.children);
        self.function = outer;
        Vec::new()
    }

    /// True when a template's body casts, copies or measures bytes.
    fn looks_at_bytes(&self, id: NodeId) -> bool {
        self.tree.below(id).into_iter().any(|below| {
            let node = self.tree.node(below);
            let to_bytes = self
                .tree
                .pointee(node.ty)
                .is_some_and(|to| matches!(self.tree.ty(to).kind, TypeKind::Byte | TypeKind::Void));
            let called =
                self.tree.decl_of(below).is_some_and(|decl| crate::known::rule(&decl.name).is_some());
            (node.kind == Kind::Cast && to_bytes)
                || node.kind == Kind::SizeOf
                || (node.kind == Kind::DeclRef && called)
        })
    }

    fn variable(&mut self, id: NodeId) -> Vec<Value> {
        self.note_volatile(id);
        self.note_declared(id);
        let node = self.tree.node(id);
        if let Some(decl) = self.tree.decl_of(id).filter(|decl| !decl.is_elsewhere) {
            self.facts.defined.insert(decl.usr.clone());
        }
        let Some((&last, rest)) = node.children.split_last() else { return Vec::new() };
        self.visit(rest);
        let place = self.tree.decl_of(id).map(|decl| Place::Variable(decl.usr.clone()));
        if self.tree.node(last).kind == Kind::InitList {
            self.initialise(last, node.ty, place, 0);
            return Vec::new();
        }
        let values = self.kept(last);
        if let Some(place) = place {
            self.flow(&values, &place);
        }
        Vec::new()
    }

    /// Whether values of this type can hold a pointer: pointers, arrays, integers as wide as one.
    fn holds_pointer(&self, ty: TypeId) -> bool {
        let ty = self.tree.ty(ty);
        match ty.kind {
            TypeKind::Pointer(_) | TypeKind::Array(..) | TypeKind::Function => true,
            TypeKind::Scalar => {
                matches!(&*ty.spelling, "unsigned long" | "long" | "unsigned long long")
                    && ty.size_bytes == Some(8)
            }
            _ => false,
        }
    }

    fn bytes_of(&self, ty: TypeId, name: &str) -> Option<Value> {
        match self.tree.ty(ty).kind {
            TypeKind::Array(of, _) if self.tree.ty(of).kind == TypeKind::Byte => {
                Some(Value::origin(Origin::Bytes(name.into())))
            }
            _ => None,
        }
    }

    fn named(&mut self, id: NodeId) -> Vec<Value> {
        let Some(decl) = self.tree.decl_of(id) else { return Vec::new() };
        let (usr, ty) = (decl.usr.clone(), decl.ty);
        if decl.is_elsewhere {
            self.note_elsewhere(id);
        }
        match &decl.kind {
            DeclKind::Function => {
                let signature = self.tree.ty(ty).spelling.clone();
                self.facts.taken.insert((signature, usr.clone()));
                vec![Value { source: Source::Function(usr), reach: Reach::Start, level: 0 }]
            }
            _ if !self.holds_pointer(ty) => Vec::new(),
            DeclKind::Parameter(function, index) => {
                vec![Value::place(Place::Parameter(function.clone(), *index))]
            }
            DeclKind::Variable => {
                let mut values = vec![Value::place(Place::Variable(usr))];
                values.extend(self.bytes_of(ty, &decl.name));
                values
            }
            _ => Vec::new(),
        }
    }

    fn member(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let node = tree.node(id);
        self.visit(&node.children);
        let Some(decl) = tree.decl_of(id) else { return Vec::new() };
        let DeclKind::Field(record) = decl.kind else { return Vec::new() };
        self.note_alternative(record, &decl.name);
        let Some(usr) = self.usr(record) else { return Vec::new() };
        if !self.function.as_deref().is_some_and(known::keeps_memory) {
            self.facts.looked_into.insert(usr.clone());
        }
        if !self.holds_pointer(decl.ty) {
            return Vec::new();
        }
        let mut values = vec![Value::place(Place::Member(usr, decl.name.clone()))];
        values.extend(self.bytes_of(decl.ty, &decl.name));
        values
    }

    /// A member of a union that code names.
    fn note_alternative(&mut self, record: RecordId, member: &Name) {
        if let Some(usr) = self.usr(record).filter(|_| self.tree.records[record].is_union) {
            self.facts.alternatives.insert((usr, member.clone()));
        }
    }

    fn address_of(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let Some(&child) = tree.node(id).children.first() else { return Vec::new() };
        let inner = tree.bare(child);
        let mut values = self.value(child);
        let kind = tree.node(inner).kind;
        if matches!(kind, Kind::Member | Kind::DeclRef)
            && !matches!(tree.ty(tree.node(inner).ty).kind, TypeKind::Array(..))
        {
            for value in &mut values {
                if !matches!(value.source, Source::Function(_)) {
                    value.reach = Reach::Address;
                    value.level = value.level.saturating_add(1);
                }
            }
        }
        // `&all[i]` reads no pointer.
        if matches!(kind, Kind::Subscript | Kind::Deref) && self.reads_pointer(inner) {
            values = values.into_iter().map(|value| value.at_level(1)).collect();
        }
        if let Some((record, name)) = self.member_named(inner) {
            values.push(Value::origin(Origin::MemberOf(record, name)));
        }
        values
    }

    /// The record and name of a member expression.
    fn member_named(&self, id: NodeId) -> Option<(Name, Name)> {
        let decl = self.tree.decl_of(id).filter(|_| self.tree.node(id).kind == Kind::Member)?;
        let DeclKind::Field(record) = decl.kind else { return None };
        Some((self.usr(record)?, decl.name.clone()))
    }

    fn dereference(&mut self, id: NodeId) -> Vec<Value> {
        let Some(&child) = self.tree.node(id).children.first() else { return Vec::new() };
        let values = self.value(child);
        self.note_bytes(&values, child, id);
        match self.first_pointer(child, id) {
            Some(first) => vec![first],
            None => self.read_pointer(values, id),
        }
    }

    /// `*(void **)object`: what the object's first member holds.
    fn first_pointer(&self, pointer: NodeId, read: NodeId) -> Option<Value> {
        let record = self.record_behind(self.tree.uncast(pointer)).filter(|_| self.reads_pointer(read))?;
        let first = self.tree.records[record].fields.first();
        let is_known = self.tree.records[record].is_complete;
        if is_known && !first.is_some_and(|first| self.holds_pointer(first.ty)) {
            return None;
        }
        Some(Value::place(Place::Member(self.usr(record)?, FIRST.into())))
    }

    /// Whether `*x` or `x[i]` reads a pointer.
    fn reads_pointer(&self, id: NodeId) -> bool {
        let ty = self.tree.node(id).ty;
        self.holds_pointer(ty) && !matches!(self.tree.ty(ty).kind, TypeKind::Array(..) | TypeKind::Function)
    }

    /// What lies at `*pointer`: at a place's own address, what the place holds. Kernels read each pointer that others may
    /// change so: `*(struct task *const volatile *)&x->next`.
    fn read_pointer(&self, values: Vec<Value>, id: NodeId) -> Vec<Value> {
        if !self.reads_pointer(id) {
            return values;
        }
        let held = |value: Value| match (&value.source, value.reach) {
            (Source::Place(_), Reach::Address) => Some(Value { reach: Reach::Start, ..value }),
            (Source::Origin(Origin::MemberOf(..)), Reach::Start) => None,
            _ => Some(value.at_level(-1)),
        };
        values.into_iter().filter_map(held).collect()
    }

    /// A byte read or written through `pointer`.
    fn note_bytes(&mut self, values: &[Value], pointer: NodeId, at: NodeId) {
        let to = self.tree.pointee(self.tree.node(pointer).ty);
        if to.is_some_and(|to| self.tree.ty(to).kind == TypeKind::Byte) {
            self.act(values, &Act::Bytes, at);
        }
    }

    fn subscript(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let [base, index] = tree.node(id).children[..] else { return Vec::new() };
        let values = self.value(base);
        self.value(index);
        self.note_bytes(&values, base, id);
        self.note_past_end(base, index, id);
        let moved = self.moved(values, base, index, id);
        if self.is_negative(index) {
            self.note_bytes(&moved, base, id);
        }
        let holds = self.holds_pointer(tree.node(id).ty) || self.above_is_address();
        if holds { self.read_pointer(moved, id) } else { Vec::new() }
    }

    fn above_is_address(&self) -> bool {
        let above = self.above.iter().rev().skip(1);
        let first = above.map(|&id| self.tree.node(id).kind).find(|kind| *kind != Kind::Wrap);
        first == Some(Kind::AddressOf)
    }

    /// `pointer + index`, and what that says of the objects.
    fn moved(&mut self, values: Vec<Value>, pointer: NodeId, index: NodeId, at: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let Some(to) = tree.pointee(tree.node(pointer).ty) else { return values };
        let literal =
            tree.node(tree.bare(index)).value.filter(|_| tree.node(tree.bare(index)).kind == Kind::Integer);
        if literal == Some(0) {
            return values;
        }
        match tree.ty(to).kind {
            // `x + 1` is where a payload behind the object begins.
            TypeKind::Record(_) if literal == Some(1) && tree.node(at).kind == Kind::Binary => Vec::new(),
            kind @ (TypeKind::Scalar | TypeKind::Record(_)) => {
                let spelling = tree.ty(to).spelling.clone();
                // An array that is stepped through is no object that its elements lead to.
                let is_array = matches!(tree.ty(tree.node(tree.bare(pointer)).ty).kind, TypeKind::Array(..));
                let stepped =
                    values.iter().filter(|value| !is_array || !matches!(value.source, Source::Place(_)));
                let stepped: Vec<Value> = stepped.cloned().collect();
                self.act(&stepped, &Act::Walk(spelling, kind == TypeKind::Scalar), at);
                if kind == TypeKind::Scalar && self.is_negative(index) {
                    let before = |value: &Value| Value { reach: Reach::Before, ..value.clone() };
                    let before: Vec<Value> = values.iter().map(before).collect();
                    self.act(&Self::objects(&before), &Act::Bytes, at);
                }
                values
            }
            // Pointers are walked where an object is taken for an array of them, not where it is what they point to.
            TypeKind::Pointer(_) => {
                let is_pointers = tree.pointee(to).is_some_and(|behind| self.is_plain(behind));
                let is_object =
                    |value: &&Value| is_pointers || matches!(value.source, Source::Origin(Origin::Object(_)));
                let taken: Vec<Value> = values.iter().filter(is_object).cloned().collect();
                self.act(&taken, &Act::Walk(tree.ty(to).spelling.clone(), true), at);
                values
            }
            TypeKind::Byte | TypeKind::Void => {
                let is_whole = |id: NodeId| {
                    let node = tree.node(id);
                    let measured = node.children.first().map(|&child| tree.node(child).ty);
                    node.kind == Kind::SizeOf && measured.is_some_and(|ty| tree.record_of(ty).is_some())
                };
                if tree.below(index).into_iter().any(is_whole) {
                    return Vec::new();
                }
                if let Some(shifted) = self.shifted(&values, pointer, index, at) {
                    return vec![shifted];
                }
                let is_negative = self.is_negative(index);
                let is_constant =
                    is_negative || literal.is_some() || tree.node(tree.bare(index)).value.is_some();
                let reach = match is_constant {
                    true if is_negative || tree.node(at).is_minus => Reach::Before,
                    true => Reach::Fixed,
                    false => Reach::Inside,
                };
                values
                    .into_iter()
                    .map(|value| Value { reach: further(value.reach, reach), ..value })
                    .collect()
            }
            _ => values,
        }
    }

    /// Numbers and text, which no object is.
    fn is_plain(&self, ty: TypeId) -> bool {
        matches!(self.tree.ty(ty).kind, TypeKind::Byte | TypeKind::Scalar)
    }

    /// `-1`.
    fn is_negative(&self, index: NodeId) -> bool {
        let node = self.tree.node(self.tree.bare(index));
        let inner = node.children.first().map(|&child| self.tree.node(self.tree.bare(child)).kind);
        node.kind == Kind::Other && node.children.len() == 1 && inner == Some(Kind::Integer)
    }

    fn step(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let children = &tree.node(id).children;
        let Some(&pointer) = children.first() else { return Vec::new() };
        let values = self.value(pointer);
        self.visit(&children[1..]);
        if tree.pointee(tree.node(id).ty).is_none() {
            return Vec::new();
        }
        self.moved(values, pointer, *children.get(1).unwrap_or(&id), id)
    }

    fn binary(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let node = tree.node(id);
        let [left, right] = node.children[..] else {
            self.visit(&node.children);
            return Vec::new();
        };
        let is_pointer = |node: NodeId| tree.pointee(tree.node(node).ty).is_some();
        match (is_pointer(id), is_pointer(left), is_pointer(right)) {
            (true, true, false) => {
                let values = self.value(left);
                self.value(right);
                self.moved(values, left, right, id)
            }
            (true, false, true) => {
                self.value(left);
                let values = self.value(right);
                self.moved(values, right, left, id)
            }
            // Nothing is assigned to a value: `a = b, c = d`.
            (true, ..) if matches!(tree.node(tree.bare(left)).kind, Kind::Binary | Kind::Step) => {
                self.value(left);
                self.value(right)
            }
            (true, ..) => self.assign(left, right),
            (false, true, true) => {
                self.note_distance(left, right, id);
                self.visit(&[left, right]);
                Vec::new()
            }
            _ if self.holds_pointer(node.ty) && self.is_place(left) && !self.is_sum(right) => {
                let values = self.assign(left, right);
                // Of `a + b` the left side is a value, of `a = b` it is a place, though perhaps in parentheses.
                match tree.node(left).kind {
                    Kind::Wrap => Self::inside(values),
                    _ => values,
                }
            }
            _ if self.holds_pointer(node.ty) => {
                let mut values = self.value(left);
                values.extend(self.value(right));
                Self::inside(values)
            }
            _ => {
                self.visit(&[left, right]);
                Vec::new()
            }
        }
    }

    fn inside(values: Vec<Value>) -> Vec<Value> {
        let inside = |value: Value| Value { reach: further(value.reach, Reach::Inside), ..value };
        values.into_iter().map(inside).collect()
    }

    /// A variable or a member.
    fn is_place(&self, id: NodeId) -> bool {
        matches!(self.tree.node(self.tree.bare(id)).kind, Kind::DeclRef | Kind::Member)
    }

    /// Integers that are worked out are lengths and hashes; an address that is kept in an integer is put there as it is.
    fn is_sum(&self, id: NodeId) -> bool {
        let is_integer = self.tree.ty(self.tree.node(id).ty).kind == TypeKind::Scalar;
        is_integer && self.tree.node(self.tree.uncast(id)).kind == Kind::Binary
    }

    /// What is kept of a value that is stored or given.
    fn kept(&mut self, id: NodeId) -> Vec<Value> {
        let values = self.value(id);
        if self.is_sum(id) { Vec::new() } else { values }
    }

    /// `left = right`. What only looks so (`left, right`, sums of integers) is taken for it: that adds ways, and loses none.
    fn assign(&mut self, left: NodeId, right: NodeId) -> Vec<Value> {
        let values = self.value(right);
        let targets = self.value(left);
        for target in &targets {
            if let Source::Place(place) = &target.source {
                self.flow_at(&values, place, target.level.saturating_neg());
                self.note_foreign_member(&values, right, place);
            }
        }
        values
            .into_iter()
            .chain(targets.into_iter().filter(|_| self.tree.pointee(self.tree.node(left).ty).is_none()))
            .collect()
    }

    /// An address put into a member of a system's type leaves the program, but for cookies.
    fn note_foreign_member(&mut self, values: &[Value], from: NodeId, place: &Place) {
        let Place::Member(record, member) = place else { return };
        let Some(found) = self.tree.records.iter().find(|known| known.usr.as_ref() == Some(record)) else {
            return;
        };
        if !found.is_foreign || found.names.iter().any(|name| crate::known::is_cookie(name, member)) {
            return;
        }
        let name = found.names.first().map_or("a system's type", String::as_str);
        let mut values = values.to_vec();
        values.extend(self.typed_object(self.tree.uncast(from)));
        self.act(&values, &Act::Leaves(format!("{name}.{member}").into()), from);
    }

    fn shape(&self, ty: TypeId) -> Shape {
        let ty = self.tree.ty(ty);
        match ty.kind {
            TypeKind::Record(record) => self.usr(record).map_or(Shape::Other, Shape::Record),
            TypeKind::Scalar | TypeKind::Byte => Shape::Scalar(ty.size_bytes.unwrap_or(0)),
            TypeKind::Pointer(_) => Shape::Pointer,
            _ => Shape::Other,
        }
    }
}

/// Where a pointer that is moved by `by` points, when it pointed `from` before.
pub(crate) fn further(from: Reach, by: Reach) -> Reach {
    match (from, by) {
        (Reach::Address, _) | (_, Reach::Address) => Reach::Address,
        (from, Reach::Start) => from,
        (Reach::Inside, _) => Reach::Inside,
        (Reach::Start, by) => by,
        (_, Reach::Before) | (Reach::Before, _) => Reach::Fixed,
        (_, by) => by,
    }
}
