//! Arguments of calls.

use super::Collector;
use crate::facts::{Act, Call, Origin, PointerPlace, Reach, Shape, Source, Value};
use crate::library_functions::{self, Rule};
use crate::tree::{Decl, DeclKind, Kind, Name, NodeId, TypeId, TypeKind};

/// The place of pointers that a thread keeps for itself.
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
        // In `make()(x)` libclang names `make`, which is not the function called with `x`.
        let is_given_by_call = |&callee: &NodeId| {
            tree.node(tree.bare(callee)).kind == Kind::Call && self.signature(callee).is_some()
        };
        let is_named = |decl: &&Decl| {
            matches!(decl.kind, DeclKind::Function | DeclKind::Special | DeclKind::Template)
                && (decl.class.is_some() || !callees.first().is_some_and(is_given_by_call))
        };
        match decl.filter(is_named) {
            Some(decl) => {
                self.note_atomic_reference(decl, &arguments, id);
                // `std::addressof(x->a)` is `&x->a`.
                if let (true, [place]) =
                    (library_functions::is_address_of(&decl.usr, &decl.name), &arguments[..])
                {
                    return self.address_of_place(*place);
                }
                for callee in callees {
                    self.object_of_method(callee);
                }
                match self.rule(&decl.name) {
                    Some(rule) => self.known_call(id, decl, rule, &arguments),
                    None => self.direct_call(id, decl, &arguments),
                }
            }
            None => self.call_through(id, &callees, &arguments),
        }
    }

    fn rule(&self, function: &str) -> Option<Rule> {
        let of_kernel = self.is_kernel.then(|| library_functions::kernel::rule(function)).flatten();
        of_kernel.or_else(|| library_functions::rule(function))
    }

    /// The object before `.` or `->` of a method's call; the name of a called function is no use of it as a value.
    fn object_of_method(&mut self, callee: NodeId) {
        let inner = self.tree.bare(callee);
        let is_name = self.tree.decl_of(inner).is_some_and(|decl| decl.kind == DeclKind::Function);
        match is_name {
            true => self.object_before(inner),
            false => drop(self.value(callee)),
        }
    }

    fn known_call(&mut self, id: NodeId, decl: &Decl, rule: Rule, arguments: &[NodeId]) -> Vec<Value> {
        let (function, named) = (&*decl.name, decl.parameters);
        if let Rule::Copies { .. } | Rule::Fills { .. } | Rule::Compares { .. } = rule {
            return self.memory(id, rule, arguments);
        }
        let values: Vec<Vec<Value>> = arguments.iter().map(|&argument| self.pointer(argument)).collect();
        self.note_text(arguments, &values, id);
        self.note_texts((function, named), arguments, &values, id);
        self.note_numbers_given(decl, arguments, id);
        self.note_elements(id, function, arguments);
        if library_functions::takes_size(function) {
            // The size is not one of what is printed.
            self.note_sizes(id, &arguments[..named.min(arguments.len())]);
        }
        if library_functions::ends_life(function) {
            self.act(&values.concat(), &Act::Freed, id);
        }
        self.note_ended(decl, arguments, &values, id);
        let value = |at: usize| values.get(at).cloned().unwrap_or_default();
        self.note_aligned_call(function, arguments, &values, id);
        self.note_object_size(function, arguments, &values, id);
        self.note_thread_result(function, arguments, &values, id);
        self.note_list_in_member(function, arguments);
        if let Some(protection) = library_functions::protection(function).and_then(|at| arguments.get(at))
            && self.may_execute(*protection)
        {
            self.act(&value(0), &Act::Executable, id);
        }
        match rule {
            Rule::Returns(at) if library_functions::gives_fresh_memory(function) => {
                let mut values = value(at);
                values.push(self.memory_given(id));
                values
            }
            Rule::Returns(at) => value(at),
            Rule::CallsBack { function, passes, gives } => {
                for called in &value(function) {
                    for &(from, to) in passes {
                        match &called.source {
                            Source::Function(usr) => {
                                self.note_key(arguments[from], PointerPlace::Parameter(usr.clone(), to));
                                self.given_to_callback(usr, &value(from), id);
                                self.flow(&value(from), &PointerPlace::Parameter(usr.clone(), to))
                            }
                            _ => self.given_through(arguments[function], &value(from), to, id),
                        }
                    }
                }
                gives.map(value).unwrap_or_default()
            }
            Rule::Keeps(at) => {
                self.flow(&value(at), &PointerPlace::Variable(KEPT.into()));
                Vec::new()
            }
            Rule::Recalls => vec![Value::place(PointerPlace::Variable(KEPT.into()))],
            Rule::Allocates => vec![self.memory_given(id)],
            _ => Vec::new(),
        }
    }

    /// `bsearch(&key, …)` of a variable that is a number: the parameter leads to that alone.
    fn note_key(&mut self, argument: NodeId, to: PointerPlace) {
        let tree = self.tree;
        let inner = tree.node(tree.uncast(argument));
        let Some(&variable) = inner.children.first().filter(|_| inner.kind == Kind::AddressOf) else {
            return;
        };
        let ty = tree.ty(tree.node(variable).ty);
        let is_variable = tree.node(tree.bare(variable)).kind == Kind::DeclRef;
        if let (true, TypeKind::Scalar | TypeKind::Pointer(_)) = (is_variable, ty.kind) {
            let used = Act::As(self.shape(tree.node(variable).ty), ty.spelling.clone());
            self.act(&[Value::place(to)], &used, argument);
        }
    }

    /// The memory that a call gives.
    pub(super) fn memory_given(&self, id: NodeId) -> Value {
        let site = self.tree.node(id).site;
        let place = format!("{}:{}:{}", self.tree.files[site.file], site.line, site.column);
        Value::origin(Origin::Memory(place.into(), 0))
    }

    /// `new T`, `new (place) T`: with a place, the object lies there.
    pub(super) fn new_object(&mut self, id: NodeId) -> Vec<Value> {
        let tree = self.tree;
        let node = tree.node(id);
        let type_at = node.children.iter().position(|&child| tree.node(child).kind == Kind::TypeRef);
        let (places, rest) = node.children.split_at(type_at.unwrap_or(0));
        let is_pointer = |&place: &NodeId| tree.pointee(tree.node(place).ty).is_some();
        let mut values = Vec::new();
        for place in places {
            let found = self.pointer(*place);
            values.extend(if is_pointer(place) { found } else { Vec::new() });
        }
        self.visit(rest);
        let Some(ahead) = tree.pointee(node.ty).filter(|_| !values.is_empty()) else {
            return vec![self.memory_given(id)];
        };
        if matches!(tree.ty(ahead).kind, TypeKind::Record(_)) {
            let placed = Act::Placed(self.shape(ahead), tree.ty(ahead).spelling.clone());
            self.act(&values, &placed, id);
        }
        self.note_aligned_target(&values, id);
        // In a template the type is not known: the place is what its users take the result for.
        match tree.ty(ahead).kind {
            TypeKind::Dependent => values,
            _ => vec![self.memory_given(id)],
        }
    }

    /// Functions that take text, and are given an object as if it were one.
    fn note_text(&mut self, arguments: &[NodeId], values: &[Vec<Value>], id: NodeId) {
        for (&argument, values) in arguments.iter().zip(values) {
            let to = self.tree.pointee(self.tree.node(argument).ty);
            let written = self.tree.pointee(self.tree.node(self.tree.bare(argument)).ty);
            let is_bytes = |ty: TypeId| self.tree.ty(ty).kind == TypeKind::Byte;
            if to.is_some_and(is_bytes) || written.is_some_and(is_bytes) {
                self.act(values, &Act::Text, id);
            }
        }
    }

    fn direct_call(&mut self, id: NodeId, decl: &Decl, arguments: &[NodeId]) -> Vec<Value> {
        let tree = self.tree;
        let sent = self.note_sent_pointer(decl, arguments, id);
        let mut given = Vec::new();
        for &argument in arguments {
            let mut values = self.pointer(argument);
            values.extend(self.object_given(argument));
            given.push(values);
        }
        self.note_further_objects(decl, arguments, id);
        self.note_texts((&decl.name, decl.parameters), arguments, &given, id);
        let carried = self.note_carried(decl, arguments, &given, id);
        for (index, (&argument, values)) in arguments.iter().zip(&given).enumerate() {
            if sent != Some(argument) && !carried.contains(&index) {
                self.given(decl, argument, values, id);
            }
            self.pass_on_variadic(decl, argument);
            self.note_given_for(id, argument, arguments);
        }
        self.note_ended(decl, arguments, &given, id);
        self.note_sizes(id, arguments);
        self.note_numbers_given(decl, arguments, id);
        self.note_distances_given(&decl.usr, arguments);
        self.note_array_parameters(id, decl, &given);
        self.note_library_iterators(id, decl, &given);
        self.note_library_bytes(id, decl, arguments);
        self.note_sorted_keys(decl, &given, id);
        self.note_direct_file(decl, arguments);
        self.note_offset_in_file(decl, &given, id);
        self.note_open_lookup(decl, arguments, id);
        self.note_given_by_value(id, decl);
        // `object[key]`: the object before an operator that is a method is not one of its parameters.
        let is_operator = decl.class.is_some() && decl.name.starts_with("operator");
        if is_operator && given.len() == decl.parameters + 1 {
            given.remove(0);
        }
        if library_functions::frees(&decl.name) {
            // The bytes of a freed object matter to nobody any more.
            given.clear();
        }
        for (at, &argument) in arguments.iter().enumerate() {
            let is_reference = decl.signature.takes.get(at).is_some_and(|&ty| self.refers_to_number(ty));
            if is_reference && tree.pointee(tree.node(argument).ty).is_none() && at < given.len() {
                let target = self.address_of_place(argument);
                given[at].extend(Self::objects(&target));
            }
        }
        if let Some(template) = &decl.template {
            for (at, values) in given.iter().enumerate() {
                self.flow(values, &PointerPlace::Parameter(template.clone(), at));
            }
        }
        let result = self.note_call(id, (decl.usr.clone(), decl.parameters), arguments, given);
        self.note_method_of_bytes(decl, id);
        if let Some(template) = &decl.template {
            self.flow(&[Value::place(PointerPlace::Return(template.clone()))], &result);
            self.note_made_by_template(template, decl, &result, id);
        }
        let ty = tree.node(id).ty;
        if !self.holds_pointer(ty) {
            return Vec::new();
        }
        let mut values = vec![Value::place(result)];
        // Bytes that a library keeps, such as a string's, are no object's.
        let gives_bytes = tree.pointee(ty).is_some_and(|to| tree.ty(to).kind == TypeKind::Byte);
        let is_typed = self.is_kernel && tree.record_pointed_to(ty).is_some();
        let is_code_here = !gives_bytes
            && (decl.kind != DeclKind::Function || decl.template.is_some() || decl.is_virtual || is_typed);
        let is_memory =
            library_functions::gives_fresh_memory(&decl.name) || self.is_anonymous_mapping(decl, arguments);
        if !is_code_here && !is_memory {
            let foreign = Value::origin(Origin::Foreign(decl.usr.clone(), decl.name.clone()));
            if let Some(record) = tree.record_pointed_to(ty).and_then(|record| self.usr(record)) {
                let spelling = tree.ty(ty).spelling.clone();
                self.act(std::slice::from_ref(&foreign), &Act::As(Shape::Record(record), spelling), id);
            }
            values.push(foreign);
        }
        if is_memory {
            values.push(self.memory_given(id));
        }
        let protection = library_functions::protection(&decl.name).and_then(|at| arguments.get(at));
        if protection.is_some_and(|&protection| self.may_execute(protection)) {
            self.act(&values, &Act::Executable, id);
        }
        values
    }

    /// `dlsym(library, name)` whose result is not used as a function at once.
    fn note_open_lookup(&mut self, decl: &Decl, arguments: &[NodeId], id: NodeId) {
        let tree = self.tree;
        let Some(&name) = arguments.get(1).filter(|_| matches!(&*decl.name, "dlsym" | "dlvsym")) else {
            return;
        };
        let is_cast = |node: &NodeId| matches!(tree.node(*node).kind, Kind::Wrap | Kind::Cast);
        let casts =
            self.above.iter().rev().filter(|node| **node != id).copied().take_while(|node| is_cast(node));
        let leads_to_code = |node: NodeId| {
            tree.pointee(tree.node(node).ty).is_some_and(|to| tree.ty(to).kind == TypeKind::Function)
        };
        let is_written = tree.below(name).iter().any(|node| tree.texts.contains_key(node));
        if !is_written && !casts.into_iter().any(leads_to_code) {
            let by = format!("{}()", decl.name);
            self.facts.open_lookups.insert((by.into(), self.at(id)));
        }
    }

    /// `pread(memory, bytes, size, (off_t)x)`: the bytes of the process itself, by their address.
    fn note_offset_in_file(&mut self, decl: &Decl, given: &[Vec<Value>], id: NodeId) {
        let offset = library_functions::offset_in_file(&decl.name).and_then(|at| given.get(at));
        let whole = |value: &Value| match &value.source {
            Source::Origin(Origin::MemberOf(record, _)) => Value::origin(Origin::Object(record.clone())),
            _ => value.clone(),
        };
        let objects: Vec<Value> = offset.into_iter().flatten().map(whole).collect();
        self.act(&Self::objects(&objects), &Act::Leaves("an offset in a file".into()), id);
    }

    /// `int pipe(int ends[2])`: the function uses that many elements from the address on.
    fn note_array_parameters(&mut self, id: NodeId, decl: &Decl, given: &[Vec<Value>]) {
        for (&ty, values) in decl.signature.takes.iter().zip(given) {
            let ty = self.tree.ty(ty);
            if let (TypeKind::Array(_, Some(2..)), Some(bytes)) = (ty.kind, ty.size_bytes) {
                self.act(&Self::objects(values), &Act::Spans(bytes), id);
            }
        }
    }

    /// `std::copy_n(&x->a, 3, to)`: the C++ library may step a pointer that it is given by value.
    fn note_library_iterators(&mut self, id: NodeId, decl: &Decl, given: &[Vec<Value>]) {
        let tree = self.tree;
        if !library_functions::may_step(&decl.usr, &decl.name) {
            return;
        }
        let Some(function) = tree.function_types.get(&decl.ty) else { return };
        // The object before an operator that is a method is not one of its parameters.
        let object = usize::from(decl.class.is_some() && decl.name.starts_with("operator"));
        for (&ty, values) in function.takes.iter().zip(given.iter().skip(object)) {
            let is_reference = tree.ty(ty).spelling.ends_with('&') && &*decl.name != "advance";
            let mut to = tree.pointee(ty).filter(|_| !is_reference);
            if &*decl.name == "advance" {
                to = to.and_then(|to| tree.pointee(to));
            }
            if let Some(to) = to.map(|to| tree.ty(to))
                && matches!(to.kind, TypeKind::Scalar | TypeKind::Pointer(_))
            {
                self.act(values, &Act::Walk(to.spelling.clone(), true), id);
            }
        }
    }

    /// `sum(2, object)` of a function that takes further arguments.
    fn note_further_objects(&mut self, decl: &Decl, arguments: &[NodeId], id: NodeId) {
        let tree = self.tree;
        if self.is_kernel || !tree.ty(decl.ty).spelling.contains("...") {
            return;
        }
        for &argument in arguments.iter().skip(decl.parameters) {
            let record = tree.record_of(tree.node(argument).ty).and_then(|record| self.usr(record));
            let at = self.at(id);
            self.facts.further_objects.extend(record.map(|record| (decl.usr.clone(), record, at)));
        }
    }

    /// True for `mmap(…, -1, …)`: without a file nobody else has laid out the memory.
    fn is_anonymous_mapping(&self, decl: &Decl, arguments: &[NodeId]) -> bool {
        let file = library_functions::file_of_mapping(&decl.name).and_then(|at| arguments.get(at));
        file.is_some_and(|&file| self.tree.node(self.tree.bare(file)).value == Some(-1))
    }

    /// True when memory with this protection may be executed, also where the compiler does not know the number.
    fn may_execute(&self, protection: NodeId) -> bool {
        let value = self.tree.node(self.tree.bare(protection)).value;
        value.is_none_or(|value| value & library_functions::PROT_EXEC != 0)
    }

    /// `vprint(format, list)`: the further arguments of the caller become those of the called.
    fn pass_on_variadic(&mut self, decl: &Decl, argument: NodeId) {
        let is_list = self.tree.ty(self.tree.node(argument).ty).spelling.contains("__va_list");
        if let Some(function) = self.function.clone().filter(|_| is_list) {
            for is_text in [false, true] {
                let from = Value::place(PointerPlace::Variable(super::variadic(&function, is_text)));
                self.flow(&[from], &PointerPlace::Variable(super::variadic(&decl.usr, is_text)));
            }
        }
    }

    /// An object that is given whole, or by reference.
    pub(super) fn object_given(&self, argument: NodeId) -> Option<Value> {
        let record = self.tree.record_of(self.tree.node(argument).ty)?;
        Some(Value::origin(Origin::Object(self.usr(record)?)))
    }

    fn given(&mut self, decl: &Decl, argument: NodeId, values: &[Value], at: NodeId) {
        let tree = self.tree;
        let (usr, name) = (decl.usr.clone(), decl.name.clone());
        // A number that an allocator is given is a size, a node or flags.
        if self.is_kernel
            && library_functions::gives_fresh_memory(&decl.name)
            && tree.pointee(tree.node(argument).ty).is_none()
        {
            return;
        }
        if let Some(template) = decl.template.clone() {
            self.act(values, &Act::Instantiated(template, name.clone()), at);
        }
        let record = self.record_behind(argument).or_else(|| tree.record_of(tree.node(argument).ty));
        // In a kernel a pointer to a pointer to it is as good.
        let held = tree.pointee(tree.node(argument).ty).and_then(|held| tree.record_pointed_to(held));
        let is_typed = record.is_some() || (self.is_kernel && held.is_some());
        // The compiler generates these from code compiled here, for the type's own layout.
        let in_class_template =
            decl.class.is_some_and(|class| tree.records[class].names.iter().any(|name| name.contains('<')));
        let is_code_here = self.is_kernel
            || decl.kind == DeclKind::Special
            || decl.kind == DeclKind::Template
            || decl.template.is_some()
            || decl.is_virtual
            || in_class_template
            || decl.name.starts_with("operator");
        let to = tree.pointee(tree.node(argument).ty);
        let is_bytes = to.is_some_and(|to| matches!(tree.ty(to).kind, TypeKind::Byte | TypeKind::Void));
        if !(is_code_here && (is_typed || (decl.kind == DeclKind::Special && !is_bytes))) {
            self.act(values, &Act::Given(usr, name), at);
        }
    }

    fn call_through(&mut self, id: NodeId, callees: &[NodeId], arguments: &[NodeId]) -> Vec<Value> {
        self.visit(callees);
        let leads_to_code = |callee: &NodeId| !self.is_kernel || !self.is_bpf(*callee);
        let Some(&callee) = callees.first().filter(|callee| leads_to_code(callee)) else {
            for &argument in arguments {
                self.value(argument);
            }
            return Vec::new();
        };
        self.note_call_without_parameters(callee, arguments, id);
        let mut given = Vec::new();
        for &argument in arguments {
            let mut values = self.pointer(argument);
            values.extend(self.object_given(argument));
            let is_typed = self.is_kernel && self.record_behind(argument).is_some();
            if let Some(name) = self.signature(callee).filter(|_| !is_typed) {
                self.act(&values, &Act::GivenThrough(name), id);
            }
            self.note_given_for(id, argument, arguments);
            given.push(values);
        }
        let Some(name) = self.signature(callee) else { return Vec::new() };
        let values = vec![Value::place(self.note_call(id, (name, usize::MAX), arguments, given))];
        let ty = self.tree.node(id).ty;
        // A function of another type may be called there.
        if let Some(ahead) = self.tree.pointee(ty).filter(|_| !self.is_kernel) {
            self.note_use_as(&values, ahead, id);
        }
        if self.holds_pointer(ty) { values } else { Vec::new() }
    }

    pub(super) fn note_call(
        &mut self,
        id: NodeId,
        called: (Name, usize),
        arguments: &[NodeId],
        given: Vec<Vec<Value>>,
    ) -> PointerPlace {
        let (function, named) = called;
        let site = self.tree.node(id).site;
        let file = &self.tree.files[site.file];
        // Calls that one macro makes share a line and a column.
        let name = format!("{file}:{}:{}:{function}", site.line, site.column);
        let result = PointerPlace::Result(name.into());
        let is_text = |at: &usize| {
            let to = arguments.get(*at).and_then(|&argument| self.tree.pointee(self.tree.node(argument).ty));
            to.is_some_and(|to| self.tree.ty(to).kind == TypeKind::Byte)
        };
        let texts = (named..given.len()).filter(is_text).collect();
        let at = self.at(id);
        self.facts.calls.insert(Call { function, given, named, texts, result: result.clone(), at });
        result
    }

    fn given_through(&mut self, callee: NodeId, values: &[Value], index: usize, at: NodeId) {
        let Some(name) = self.signature(callee) else { return };
        self.flow(values, &PointerPlace::Parameter(name.clone(), index));
        self.act(values, &Act::GivenThrough(name), at);
    }

    /// A pointer to functions that BPF programs call, or to the programs: nothing flows from one such function to all
    /// others.
    fn is_bpf(&self, callee: NodeId) -> bool {
        self.signature(callee).is_some_and(|name| library_functions::kernel::is_bpf(&name))
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
