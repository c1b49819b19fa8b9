//! Templates that look at the bytes of objects whose type only their instances know.

use super::{ANY_RECORD, Collector, OWN_TYPE, size_in};
use crate::facts::{Act, NumberPlace, Origin, PointerPlace, Shape, Source, Value};
use crate::library_functions::{self, Rule};
use crate::tree::{Decl, DeclKind, Kind, Name, NodeId, Operator, RecordId, TypeId, TypeKind};

/// The records that libclang's name of an instance has among its template's arguments: `c:@S@list>#$@S@t`,
/// `c:@F@sum<#$@S@t>#*S0_#`.
fn records_named(instance: &str) -> impl Iterator<Item = Name> {
    let arguments = match instance.split_once("<#") {
        Some((_, rest)) => rest.split_once('>').map_or(rest, |(arguments, _)| arguments),
        None => instance.split_once('>').map_or("", |(_, arguments)| arguments),
    };
    let named = arguments.split('#').filter_map(|argument| argument.strip_prefix('$'));
    named.map(|record| format!("c:{record}").into())
}

impl Collector<'_> {
    /// Notes a template whose body looks at bytes.
    pub(super) fn note_byte_template(&mut self, decl: &Decl, body: NodeId) {
        // A method of a class template has the template in its name.
        let is_method = decl.usr.contains("@ST>");
        if (decl.kind == DeclKind::Template || is_method) && self.looks_at_bytes(body) {
            self.facts.byte_templates.insert(decl.usr.clone());
            if is_method && self.reads_bytes(body) {
                self.facts.byte_methods.insert(decl.usr.clone());
            }
        }
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
                self.tree.decl_of(below).is_some_and(|decl| library_functions::rule(&decl.name).is_some());
            (node.kind == Kind::Cast && (to_bytes || self.is_cast_of_dependent(below)))
                || node.kind == Kind::SizeOf
                || (node.kind == Kind::DeclRef && called)
        })
    }

    /// True when a template's body reads its objects as numbers, or copies them from bytes or to bytes; not where it only
    /// makes room for them or moves them.
    fn reads_bytes(&self, id: NodeId) -> bool {
        let tree = self.tree;
        let is_bytes = |node: NodeId| {
            let ty = tree.node(tree.uncast(node)).ty;
            tree.pointee(ty).is_some_and(|to| tree.ty(to).kind == TypeKind::Byte)
        };
        tree.below(id).into_iter().any(|below| {
            let called = tree.node(below).kind == Kind::Call && self.copies_bytes(below, &is_bytes);
            called
                || self.moves_bytes(below)
                || (tree.node(below).kind == Kind::Cast && self.is_cast_of_dependent(below))
        })
    }

    /// `reinterpret_cast<char *>(item) + n` of an object whose type a template's parameter is, but for its sizes.
    fn moves_bytes(&self, sum: NodeId) -> bool {
        let tree = self.tree;
        let node = tree.node(sum);
        let [pointer, index] = node.children[..] else { return false };
        let cast = tree.node(tree.bare(pointer));
        let to = tree.pointee(cast.ty).map(|to| tree.ty(to).kind);
        let from = cast.children.last().and_then(|&inner| tree.pointee(tree.node(inner).ty));
        matches!(node.kind, Kind::Binary | Kind::Subscript)
            && cast.kind == Kind::Cast
            && to == Some(TypeKind::Byte)
            && from.is_some_and(|from| tree.ty(from).kind == TypeKind::Dependent)
            && !self.is_measured(index)
    }

    /// `memcpy(items, raw, n)` where either is a pointer to bytes.
    fn copies_bytes(&self, call: NodeId, is_bytes: &dyn Fn(NodeId) -> bool) -> bool {
        let tree = self.tree;
        let children = &tree.node(call).children;
        let named = |&child: &NodeId| tree.decl_of(tree.bare(child)).map(|decl| decl.name.clone());
        let name =
            tree.decl_of(call).map(|decl| decl.name.clone()).or_else(|| children.first().and_then(named));
        let is_copy =
            name.is_some_and(|name| matches!(library_functions::rule(&name), Some(Rule::Copies { .. })));
        is_copy && children.iter().skip(1).any(|&child| is_bytes(child))
    }

    /// `reinterpret_cast<const int *>(&object)` of an object whose type a template's parameter is.
    fn is_cast_of_dependent(&self, cast: NodeId) -> bool {
        let tree = self.tree;
        let node = tree.node(cast);
        let kind_behind = |ty: TypeId| tree.pointee(ty).map(|to| tree.ty(to).kind);
        let Some(&inner) = node.children.last() else { return false };
        let from = tree.node(inner).ty;
        let is_dependent =
            tree.ty(from).kind == TypeKind::Dependent || kind_behind(from) == Some(TypeKind::Dependent);
        is_dependent && matches!(kind_behind(node.ty), Some(TypeKind::Scalar | TypeKind::Pointer(_)))
    }

    /// `&x.m` of an object whose type is a template's parameter: the member of that name in each of its objects.
    /// `&(x.*m)` may be any of which the unit makes a pointer to a member.
    pub(super) fn dependent_member(&mut self, place: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let node = tree.node(place);
        let names: Vec<Name> = match tree.dependent_members.get(&place) {
            Some(name) => vec![name.clone()],
            None if node.operator == Some(Operator::PointedMember) => {
                self.pointed_members.iter().cloned().collect()
            }
            None => return Vec::new(),
        };
        let Some(&object) = node.children.first() else { return Vec::new() };
        let values = self.value(object);
        let site = node.site;
        let at: Name = format!("{}:{}:{}", tree.files[site.file], site.line, site.column).into();
        let member = |name| PointerPlace::Shifted(ANY_RECORD.into(), name, at.clone());
        let members: Vec<PointerPlace> = names.into_iter().map(member).collect();
        for member in &members {
            self.flow(&values, member);
            // `item->m`, `items[i].m` of a class template's own member `T *items`: what its instances are made for.
            let owners = values.iter().filter_map(|value| match &value.source {
                Source::Place(PointerPlace::Member(usr, name)) => {
                    Some((usr.clone(), name.clone(), member.clone()))
                }
                _ => None,
            });
            self.dependent_objects.extend(owners);
        }
        members.into_iter().map(Value::place).collect()
    }

    /// `view<struct t> v{x}`, `v.x = x`: what a class template's methods find in their members.
    pub(super) fn note_instance_values(&mut self, id: NodeId, record: RecordId) {
        let tree = self.tree;
        let found = &tree.records[record];
        let template = found.template.as_ref().and_then(|template| tree.record_called(template));
        let Some(template) = template.filter(|_| found.fields.is_empty()) else { return };
        let fields: Vec<Name> =
            tree.records[template].fields.iter().map(|field| field.name.clone()).collect();
        for (&value, name) in tree.node(id).children.iter().zip(fields) {
            let values = self.kept(value);
            if let Some(place) = self.member_place(template, &name) {
                self.flow(&values, &place);
                self.note_distances(value, &NumberPlace { table: None, place });
            }
        }
    }

    /// The members of a class template's instances, as far as code names them.
    pub(super) fn note_instance_members(&mut self) {
        let tree = self.tree;
        for decl in &tree.decls {
            let DeclKind::Field(record) = decl.kind else { continue };
            let Some(template) = tree.records[record].template.clone() else { continue };
            if let (Some(usr), true) = (self.usr(record), self.holds_pointer(decl.ty)) {
                let value = Value::place(PointerPlace::Member(usr, decl.name.clone()));
                self.flow(&[value], &PointerPlace::Member(template, decl.name.clone()));
            }
        }
        for (usr, name, shifted) in std::mem::take(&mut self.dependent_objects) {
            let template = tree.record_called(&usr).map(|record| &tree.records[record]);
            let field = template.and_then(|found| found.fields.iter().find(|field| field.name == name));
            if !field.is_some_and(|field| self.leads_to_parameter(field.ty)) {
                continue;
            }
            let instances = tree.records.iter().filter(|record| record.template.as_ref() == Some(&usr));
            let records = instances.filter_map(|instance| instance.usr.as_deref()).flat_map(records_named);
            let objects: Vec<Value> = records.map(|record| Value::origin(Origin::Object(record))).collect();
            self.flow(&objects, &shifted);
        }
    }

    /// The records that templates' instances are made for, and the numbers.
    pub(super) fn note_instances(&mut self) {
        let tree = self.tree;
        let classes =
            tree.records.iter().filter_map(|record| Some((record.template.as_ref()?, record.usr.as_ref()?)));
        let functions = tree.decls.iter().filter_map(|decl| Some((decl.template.as_ref()?, &decl.usr)));
        for (template, instance) in classes.chain(functions) {
            let records = records_named(instance).map(|record| (size_in(template), record));
            self.facts.instances.extend(records);
        }
        for (parameter, number) in &tree.template_numbers {
            let place = PointerPlace::Variable(parameter.clone());
            self.note_distances(*number, &NumberPlace { table: None, place });
        }
    }

    /// `T *` of a template's parameter `T`.
    fn leads_to_parameter(&self, ty: TypeId) -> bool {
        let to = self.tree.pointee(ty);
        to.is_some_and(|to| self.tree.ty(to).spelling.starts_with("type-parameter-"))
    }

    /// `(&x.m)[i]`, `*(p + 1)` of such a member's address.
    pub(super) fn note_dependent_walk(
        &mut self,
        values: &[Value],
        (pointer, index): (NodeId, NodeId),
        at: NodeId,
    ) {
        let tree = self.tree;
        let ty = tree.node(pointer).ty;
        let to = tree.pointee(ty).unwrap_or(ty);
        let is_first = tree.node(tree.bare(index)).value == Some(0);
        if tree.ty(to).kind == TypeKind::Dependent && !is_first {
            self.act(&Self::objects(values), &Act::Walk(OWN_TYPE.into(), false), at);
        }
    }

    /// `read<struct t>()`: a template that looks at bytes gives an object. A pointer to one that it gives is used as such:
    /// most ask for memory of its size.
    pub(super) fn note_made_by_template(
        &mut self,
        template: &Name,
        decl: &Decl,
        result: &PointerPlace,
        id: NodeId,
    ) {
        let ty = self.tree.node(id).ty;
        let made = self.tree.record_of(ty);
        let Some(usr) = made.or_else(|| self.tree.record_pointed_to(ty)).and_then(|record| self.usr(record))
        else {
            return;
        };
        if made.is_some() {
            let made = Act::Instantiated(template.clone(), decl.name.clone());
            self.act(&[Value::origin(Origin::Object(usr.clone()))], &made, id);
        }
        let used = Act::As(Shape::Record(usr), self.tree.ty(ty).spelling.clone());
        self.act(&[Value::place(result.clone())], &used, id);
    }

    /// `table.load(bytes)` of a class that a template makes for an object's type.
    pub(super) fn note_method_of_bytes(&mut self, decl: &Decl, id: NodeId) {
        let class = decl.class.and_then(|class| self.usr(class)).filter(|class| class.contains(">#"));
        if let (Some(class), Some(template)) = (class, &decl.template) {
            let at = self.at(id);
            self.facts.method_calls.insert((template.clone(), decl.name.clone(), class, at));
        }
    }
}
