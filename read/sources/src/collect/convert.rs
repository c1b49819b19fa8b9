//! Casts, written and implicit.

use super::Collector;
use crate::facts::{Act, Origin, PointerPlace, Reach, Shape, Source, Value};
use crate::tree::{DeclKind, Kind, Name, NodeId, TypeId, TypeKind};

/// Integers below this that are cast to pointers are marks, not addresses.
const LEAST_ADDRESS: i64 = 4096;

impl Collector<'_> {
    /// The value after a cast, and the cast's facts about the objects.
    pub(super) fn convert(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let children = &tree.node(id).children;
        let Some((&child, rest)) = children.split_last() else { return Vec::new() };
        self.visit(rest);
        if let (true, Some(&pointer)) = (tree.atomics.contains(&id), rest.first()) {
            let values = self.value(pointer);
            self.note_atomic("an atomic operation", pointer, &values, id);
        }
        let (from, to) = (tree.node(child).ty, tree.node(id).ty);
        if self.is_variadic_argument(child) {
            let function = self.function.clone().unwrap_or_else(|| "".into());
            let mut found = vec![Value::place(PointerPlace::Variable(variadic(&function, false)))];
            if tree.below(child).iter().any(|&id| tree.node(id).kind == Kind::Member) {
                found.push(Value::place(PointerPlace::Variable(variadic(IN_MEMBERS, false))));
            }
            if tree.record_of(to).is_some() {
                self.note_use_as(&found, to, id);
                return Vec::new();
            }
            // A value given as text is not read as an object.
            let is_object = tree
                .pointee(to)
                .is_some_and(|to| tree.record_of(to).is_some() || tree.ty(to).kind == TypeKind::Scalar);
            match tree.pointee(to).filter(|_| is_object) {
                Some(ahead) => self.note_use_as(&found, ahead, id),
                None => found.push(Value::place(PointerPlace::Variable(variadic(&function, true)))),
            }
            return found;
        }
        let mut values = self.value(child);
        match (tree.pointee(from), tree.ty(to).kind) {
            (Some(behind), TypeKind::Pointer(ahead)) => {
                if tree.ty(behind).spelling != tree.ty(ahead).spelling {
                    values.extend(self.typed_object(child));
                    self.note_function_type(&values, ahead, id);
                    self.note_function_cast(behind, ahead, id);
                    self.note_short_allocation(child, ahead);
                    self.note_stride(child, ahead, id);
                    self.note_format(behind, ahead, id);
                    self.note_use_as(&values, ahead, id);
                    self.note_typed_place(&values, behind, id);
                }
                values
            }
            (Some(_), TypeKind::Scalar) if tree.ty(to).size_bytes == Some(8) => {
                values.extend(self.typed_object(child));
                values
            }
            // An array of numbers in parentheses is still that array.
            (Some(_), TypeKind::Array(..)) if !self.is_array(child) => values,
            (Some(_), TypeKind::Array(..)) => {
                let is_array = |value: &Value| matches!(value.source, Source::Origin(Origin::Numbers(..)));
                values.into_iter().filter(is_array).collect()
            }
            (Some(_), _) => Vec::new(),
            (None, TypeKind::Pointer(ahead)) => {
                if tree.ty(from).kind == TypeKind::Function {
                    return values;
                }
                if let Some(address) = self.written_address(child) {
                    let origin = Origin::Foreign("".into(), format!("the address {address:#x}").into());
                    values.push(Value::origin(origin));
                }
                self.note_function_type(&values, ahead, id);
                self.note_stride(child, ahead, id);
                self.note_use_as(&values, ahead, id);
                values
            }
            _ => {
                self.note_reference_cast(id, child);
                values
            }
        }
    }

    fn written_address(&self, id: NodeId) -> Option<i64> {
        let node = self.tree.node(self.tree.uncast(id));
        node.value.filter(|value| node.kind == Kind::Integer && *value >= LEAST_ADDRESS)
    }

    fn is_variadic_argument(&self, child: NodeId) -> bool {
        let node = self.tree.node(child);
        let mut ty = node.ty;
        while let Some(inner) = self.tree.pointee(ty) {
            ty = inner;
        }
        let is_list = self.tree.ty(ty).spelling.contains("__va_list");
        let own = self.above.last().map(|&id| self.tree.node(id).ty);
        is_list && own.is_some_and(|own| !self.tree.ty(own).spelling.contains("__va_list"))
    }

    /// A function that is cast to another type may be called as that type.
    fn note_function_type(&mut self, values: &[Value], ahead: TypeId, at: NodeId) {
        let ahead = self.tree.ty(ahead);
        if ahead.kind != TypeKind::Function {
            return;
        }
        for value in values {
            if let Source::Function(function) = &value.source {
                self.facts.taken.insert((ahead.spelling.clone(), function.clone()));
            }
        }
        self.act(values, &Act::Code(ahead.spelling.clone()), at);
    }

    pub(super) fn note_use_as(&mut self, values: &[Value], ahead: TypeId, at: NodeId) {
        let tree = self.tree;
        let ty = tree.ty(ahead);
        let shape = match ty.kind {
            TypeKind::Record(record) if tree.records[record].is_complete => self.shape(ahead),
            TypeKind::Array(of, count) => {
                // `(int (*)[4])&x->a`.
                if let Some(bytes) = ty.size_bytes.filter(|&bytes| bytes > 0) {
                    self.act(&Self::objects(values), &Act::Spans(bytes), at);
                }
                if tree.ty(of).kind == TypeKind::Scalar && count.is_some_and(|count| count > 1) {
                    self.use_as(&Self::objects(values), &Act::Walk(tree.ty(of).spelling.clone(), true), at);
                }
                return self.note_use_as(values, of, at);
            }
            TypeKind::Scalar => self.shape(ahead),
            TypeKind::Pointer(_) => Shape::Pointer,
            _ => return,
        };
        if let TypeKind::Pointer(held) = ty.kind {
            let shape = self.shape(held);
            if matches!(shape, Shape::Record(_) | Shape::Scalar(2..)) {
                self.use_as(values, &Act::AsHandle(shape, tree.ty(held).spelling.clone()), at);
            }
        }
        self.use_as(values, &Act::As(shape, ty.spelling.clone()), at);
    }

    /// A use through a cast that converts an argument of a call, or another use.
    fn use_as(&mut self, values: &[Value], act: &Act, at: NodeId) {
        let Some(parameter) = self.parameter_given() else { return self.act(values, act, at) };
        let place = self.at(at);
        for value in values {
            self.facts.given_as.insert((value.clone(), act.clone(), place.clone(), parameter.clone()));
        }
    }

    /// The parameter that receives the present node's conversion, for a function that only its own unit or header
    /// defines.
    fn parameter_given(&self) -> Option<(Name, usize)> {
        let tree = self.tree;
        let is_cast = |id: &NodeId| matches!(tree.node(*id).kind, Kind::Wrap | Kind::Cast);
        let casts = self.above.iter().rev().take_while(|id| is_cast(id)).count();
        let outermost = self.above.len().checked_sub(casts)?;
        let (argument, call) = (*self.above.get(outermost)?, *self.above.get(outermost.checked_sub(1)?)?);
        let decl = tree.decl_of(call).filter(|_| tree.node(call).kind == Kind::Call)?;
        let is_alone = decl.kind == DeclKind::Function
            && !(decl.is_exported || decl.is_virtual || decl.template.is_some() || decl.class.is_some());
        let index = tree.arguments.get(&call)?.iter().position(|given| *given == Some(argument))?;
        (is_alone && index < decl.parameters).then(|| (decl.usr.clone(), index))
    }

    /// `(void **)&pointer`: values that others store there are used as the pointer's type.
    fn note_typed_place(&mut self, values: &[Value], behind: TypeId, at: NodeId) {
        let TypeKind::Pointer(held) = self.tree.ty(behind).kind else { return };
        if self.tree.record_of(held).is_none() {
            return;
        }
        let places = values.iter().filter(|value| value.reach == Reach::Address);
        let places = places.filter_map(|value| match &value.source {
            Source::Place(place) => Some(Value::place(place.clone())),
            _ => None,
        });
        let places: Vec<Value> = places.collect();
        self.note_use_as(&places, held, at);
    }

    /// `reinterpret_cast<X &>(object)`, `reinterpret_cast<X &>(object.member)`.
    fn note_reference_cast(&mut self, id: NodeId, child: NodeId) {
        let tree = self.tree;
        let (to, from) = (tree.node(id).ty, tree.node(child).ty);
        // A cast of the member's value has the reading of it between.
        if let (Kind::Cast, Some((record, member))) = (&tree.node(id).kind, self.member_named(child)) {
            self.note_use_as(&[Value::origin(Origin::MemberOf(record, member))], to, id);
        }
        let is_made = matches!(tree.node(tree.bare(child)).kind, Kind::Call | Kind::InitList);
        let is_cast = tree.node(id).kind == Kind::Cast && !is_made;
        let (Some(from), true) = (tree.record_of(from), is_cast) else { return };
        if tree.record_of(to) != Some(from)
            && let Some(usr) = self.usr(from)
        {
            self.note_use_as(&[Value::origin(Origin::Object(usr))], to, id);
        }
    }
}

/// Stands for all functions whose further arguments a member leads to.
pub(super) const IN_MEMBERS: &str = "(members)";

/// The place of a function's arguments beyond the named ones: the texts among them, or the others.
pub(crate) fn variadic(function: &str, is_text: bool) -> crate::tree::Name {
    let what = if is_text { "texts" } else { "arguments" };
    format!("{function} (further {what})").into()
}
