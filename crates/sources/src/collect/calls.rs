//! What is given to functions.

use super::Collector;
use super::convert::variadic;
use crate::facts::{Act, Origin, Place, Reach, Shape, Source, Value};
use crate::known::{self, Rule};
use crate::tree::{Decl, DeclKind, Name, NodeId, TypeKind};

/// Where pointers are that a thread keeps for itself.
const KEPT: &str = "kept by the thread";

impl Collector<'_> {
    pub(super) fn call(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let arguments: Vec<NodeId> = match tree.arguments.get(&id) {
            Some(arguments) => arguments.iter().flatten().copied().collect(),
            None => Vec::new(),
        };
        let callees: Vec<NodeId> =
            tree.node(id).children.iter().copied().filter(|child| !arguments.contains(child)).collect();
        let decl = tree.decl_of(id);
        match decl
            .filter(|decl| matches!(decl.kind, DeclKind::Function | DeclKind::Special | DeclKind::Template))
        {
            Some(decl) => {
                for callee in callees {
                    self.object_of_method(callee);
                }
                match known::rule(&decl.name) {
                    Some(rule) => self.known_call(id, rule, &arguments),
                    None => self.direct_call(id, decl, &arguments),
                }
            }
            None => self.call_through(id, &callees, &arguments),
        }
    }

    /// The object before `.` or `->` of a method's call; the name of a called function is no use of it as a value.
    fn object_of_method(&mut self, callee: NodeId) {
        let inner = self.tree.bare(callee);
        let is_name = self.tree.decl_of(inner).is_some_and(|decl| decl.kind == DeclKind::Function);
        match is_name {
            true => self.visit(&self.tree.node(inner).children.clone()),
            false => drop(self.value(callee)),
        }
    }

    fn known_call(&mut self, id: NodeId, rule: Rule, arguments: &[NodeId]) -> Vec<Value> {
        if let Rule::Copies { .. } | Rule::Fills { .. } | Rule::Compares { .. } = rule {
            return self.memory(id, rule, arguments);
        }
        let values: Vec<Vec<Value>> = arguments.iter().map(|&argument| self.pointer(argument)).collect();
        let value = |at: usize| values.get(at).cloned().unwrap_or_default();
        match rule {
            Rule::Returns(at) => value(at),
            Rule::CallsBack { function, passes } => {
                for called in &value(function) {
                    for &(from, to) in passes {
                        match &called.source {
                            Source::Function(usr) => {
                                self.flow(&value(from), &Place::Parameter(usr.clone(), to))
                            }
                            _ => self.given_through(arguments[function], &value(from), to, id),
                        }
                    }
                }
                passes.first().map(|&(from, _)| value(from)).unwrap_or_default()
            }
            Rule::Keeps(at) => {
                self.flow(&value(at), &Place::Variable(KEPT.into()));
                Vec::new()
            }
            Rule::Recalls => vec![Value::place(Place::Variable(KEPT.into()))],
            _ => Vec::new(),
        }
    }

    fn direct_call(&mut self, id: NodeId, decl: &Decl, arguments: &[NodeId]) -> Vec<Value> {
        let tree = self.tree;
        for (at, &argument) in arguments.iter().enumerate() {
            let mut values = self.pointer(argument);
            values.extend(self.object_given(argument));
            self.flow(&values, &Place::Parameter(decl.usr.clone(), at));
            self.flow(&values, &Place::Variable(variadic(&decl.usr)));
            self.given(decl, argument, &values, id);
        }
        let ty = tree.node(id).ty;
        if !self.holds_pointer(ty) {
            return Vec::new();
        }
        let mut values = vec![Value::place(Place::Return(decl.usr.clone()))];
        let is_code_here = decl.kind != DeclKind::Function || decl.template.is_some() || decl.is_virtual;
        if !is_code_here && !known::gives_fresh_memory(&decl.name) {
            let foreign = Value::origin(Origin::Foreign(decl.usr.clone(), decl.name.clone()));
            if let Some(record) = tree.record_pointed_to(ty).and_then(|record| self.usr(record)) {
                let spelling = tree.ty(ty).spelling.clone();
                self.act(&[foreign.clone()], &Act::As(Shape::Record(record), spelling), id);
            }
            values.push(foreign);
        }
        values
    }

    /// An object that is given whole, or by reference.
    fn object_given(&self, argument: NodeId) -> Option<Value> {
        let record = self.tree.record_of(self.tree.node(argument).ty)?;
        Some(Value::origin(Origin::Object(self.usr(record)?)))
    }

    fn given(&mut self, decl: &Decl, argument: NodeId, values: &[Value], at: NodeId) {
        let tree = self.tree;
        let (usr, name) = (decl.usr.clone(), decl.name.clone());
        if let Some(template) = decl.template.clone() {
            self.act(values, &Act::Instantiated(template, name.clone()), at);
        }
        let record = self.record_behind(argument).or_else(|| tree.record_of(tree.node(argument).ty));
        let is_typed = record.is_some();
        // The compiler makes these from what is compiled here, for the type's own layout.
        let in_class_template =
            decl.class.is_some_and(|class| tree.records[class].names.iter().any(|name| name.contains('<')));
        let is_code_here = decl.kind == DeclKind::Special
            || decl.kind == DeclKind::Template
            || decl.template.is_some()
            || decl.is_virtual
            || in_class_template
            || decl.name.starts_with("operator");
        if !(is_code_here && (is_typed || decl.kind == DeclKind::Special)) {
            self.act(values, &Act::Given(usr, name), at);
        }
    }

    fn call_through(&mut self, id: NodeId, callees: &[NodeId], arguments: &[NodeId]) -> Vec<Value> {
        self.visit(callees);
        let Some(&callee) = callees.first() else {
            for &argument in arguments {
                self.value(argument);
            }
            return Vec::new();
        };
        for (at, &argument) in arguments.iter().enumerate() {
            let mut values = self.pointer(argument);
            values.extend(self.object_given(argument));
            self.given_through(callee, &values, at, id);
        }
        match self.holds_pointer(self.tree.node(id).ty) {
            true => {
                self.signature(callee).map(|name| Value::place(Place::Return(name))).into_iter().collect()
            }
            false => Vec::new(),
        }
    }

    fn given_through(&mut self, callee: NodeId, values: &[Value], index: usize, at: NodeId) {
        let Some(name) = self.signature(callee) else { return };
        self.flow(values, &Place::Parameter(name.clone(), index));
        self.act(values, &Act::GivenThrough(name), at);
    }

    /// The name that all functions share that may be called through this pointer.
    fn signature(&self, callee: NodeId) -> Option<Name> {
        let ty = self.tree.node(callee).ty;
        let function = self.tree.pointee(ty).unwrap_or(ty);
        let function = self.tree.ty(function);
        (function.kind == TypeKind::Function).then(|| function.spelling.clone())
    }

    /// Values that are addresses of places are not objects that cross.
    pub(super) fn objects(values: &[Value]) -> Vec<Value> {
        values.iter().filter(|value| value.reach != Reach::Address).cloned().collect()
    }
}
