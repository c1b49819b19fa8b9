//! From a unit's tree to its facts: every function and initialiser is walked once.

mod addresses;
mod callbacks;
mod calls;
mod cleanups;
mod convert;
mod cookies;
mod declared;
mod designators;
mod function_casts;
mod initialisers;
mod known_numbers;
mod measures;
mod memory;
mod number_places;
mod offsets;
mod operators;
mod outside;
mod places;
mod pointee_parameters;
mod records;
mod sent_pointers;
mod sizes;
mod strides;
mod tags;
mod templates;
mod texts;

pub(crate) use convert::variadic;
pub(crate) use measures::INDEX;
pub(crate) use places::further;

use crate::facts::{Act, Facts, NumberPlace, Origin, PointerPlace, Shape, Source, Value, Where};
use crate::tree::{DeclId, Kind, Name, NodeId, RecordId, Site, Tree, TypeId, TypeKind};
use known_numbers::KnownNumbers;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The facts of one unit. A kernel calls only itself, so a function knows an argument's type by the same declaration,
/// wherever its body is.
pub(crate) fn collect(tree: &Tree, is_kernel: bool) -> Facts {
    let numbers = if is_kernel { KnownNumbers::default() } else { KnownNumbers::of(tree) };
    let mut collector = Collector {
        tree,
        is_kernel,
        numbers,
        facts: Facts::default(),
        function: None,
        table: None,
        above: Vec::new(),
        initials: HashMap::new(),
        dependent_objects: Vec::new(),
        pointed_members: tree.pointed_members(),
        offset_tables: HashSet::new(),
    };
    collector.records();
    for &root in &tree.roots {
        collector.value(root);
    }
    if !is_kernel {
        collector.note_instance_members();
        collector.note_instances();
        collector.note_mentions();
        collector.note_signatures();
    }
    collector.facts
}

/// Stands for the name of a record's first member, which not every unit knows.
pub(crate) const FIRST: &str = "(first)";
/// Stands for the record of an object whose type only a template's instances know.
pub(crate) const ANY_RECORD: &str = "";
/// Stands for the type of a member that is stepped through in a template.
pub(crate) const OWN_TYPE: &str = "";

/// Stands for the records that a template's instances are made for.
fn size_in(template: &str) -> Name {
    format!("{template} (its parameters)").into()
}

struct Collector<'t> {
    tree: &'t Tree,
    is_kernel: bool,
    numbers: KnownNumbers,
    facts: Facts,
    /// The function whose body is walked.
    function: Option<Name>,
    /// The variable whose values in braces are walked.
    table: Option<Name>,
    /// The nodes around the present one, outermost first.
    above: Vec<NodeId>,
    /// The first values of variables that are numbers, and the values of enumerators.
    initials: HashMap<DeclId, NodeId>,
    /// Members of class templates that lead to the objects in places: the template, the member, the place.
    dependent_objects: Vec<(Name, Name, PointerPlace)>,
    /// Members of which pointers to members are made.
    pointed_members: BTreeSet<Name>,
    /// Arrays whose elements are given by offsets of members.
    offset_tables: HashSet<Name>,
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

    fn flow(&mut self, values: &[Value], to: &PointerPlace) {
        self.flow_at(values, to, 0);
    }

    /// The same, for values stored `level` pointers behind the place.
    fn flow_at(&mut self, values: &[Value], to: &PointerPlace, level: i8) {
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

    /// The possible targets of a pointer-valued node. Everything below the node is walked.
    fn value(&mut self, id: NodeId) -> Vec<Value> {
        self.above.push(id);
        let values = self.value_inside(id);
        self.above.pop();
        values
    }

    /// The same, and the object itself when the node's type names a record.
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

    /// `x` as an object of the record that its type names. Null pointers are no objects, `p + 1` is past the object's
    /// end.
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
            Kind::DeclRef => {
                let values = self.named(id);
                self.note_aligned_target(&values, id);
                values
            }
            Kind::Member => self.member(id),
            Kind::Call => self.call(id),
            Kind::Cast | Kind::Wrap => self.convert(id),
            Kind::AddressOf => self.address_of(id),
            Kind::Deref => self.dereference(id),
            Kind::Subscript => self.subscript(id),
            Kind::Step | Kind::CompoundAssign => self.step(id),
            Kind::Binary => self.binary(id),
            Kind::Conditional => {
                self.note_tested(&children[..1], id);
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
                    let place = PointerPlace::Return(function);
                    self.flow(&values, &place);
                    if let Some(&value) = children.last() {
                        self.note_distances(value, &NumberPlace { table: None, place });
                    }
                }
                Vec::new()
            }
            Kind::Assembly => self.assembly(id),
            Kind::New => self.new_object(id),
            Kind::Integer | Kind::This | Kind::TypeRef | Kind::MemberRef => Vec::new(),
            Kind::Assertion
            | Kind::Designated
            | Kind::CompoundLiteral
            | Kind::Count
            | Kind::Switch
            | Kind::Case
            | Kind::Other => {
                self.note_volatile(id);
                match (node.kind, children) {
                    (Kind::Case, [value, ..]) => self.note_case(*value, id),
                    (Kind::Other, _) => self.note_tested(children, id),
                    _ => {}
                }
                let mut last = Vec::new();
                for &child in children {
                    last = self.value(child);
                }
                if let (Some(&value), true) = (children.last(), self.is_enumerator(id)) {
                    self.note_initial(id, value);
                }
                last
            }
        }
    }

    /// A kernel's macros pass pointers through assembly that does nothing (barriers, per-CPU addresses, hidden values);
    /// the data that such macros read and write is given to them as members.
    fn assembly(&mut self, id: NodeId) -> Vec<Value> {
        let node = self.tree.node(id);
        let is_passing = self.is_kernel && node.site.is_in_macro;
        let operands = self.tree.operands.get(&id).copied();
        let is_unused = operands.is_some_and(|operands| operands.are_unused);
        if operands.is_some_and(|operands| operands.names_address) && !self.is_kernel {
            self.note_parameters_in_registers(id);
        }
        for &child in &node.children {
            let mut values = self.pointer(child);
            // `"+m"(*x)`.
            values.extend(self.object_given(child).filter(|_| !self.is_kernel));
            if let Some(operands) = operands.filter(|_| !is_unused) {
                self.note_operand(id, child, &values, operands);
            }
            if !is_passing && !is_unused {
                self.act(&values, &Act::Assembly, id);
            }
        }
        Vec::new()
    }

    /// True when values of this type can hold a pointer: pointers, arrays, integers as wide as one.
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

    fn bytes_of(&mut self, ty: TypeId, name: &str) -> Option<Value> {
        match self.tree.ty(ty).kind {
            TypeKind::Array(of, count) if self.tree.ty(of).kind == TypeKind::Byte => {
                let most = self.facts.byte_arrays.entry(name.into()).or_default();
                *most = (*most).max(count.unwrap_or(u64::MAX));
                Some(Value::origin(Origin::Bytes(name.into())))
            }
            TypeKind::Array(of, _) => self.bytes_of(of, name),
            _ => None,
        }
    }

    /// Numbers and text, which no object is.
    fn is_plain(&self, ty: TypeId) -> bool {
        matches!(self.tree.ty(ty).kind, TypeKind::Byte | TypeKind::Scalar)
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
