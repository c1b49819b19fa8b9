//! Pointers that a library carries for the program: it gives them back to the program's own functions, and looks at
//! nothing behind them.

use super::Collector;
use crate::facts::{Carried, PointerPlace, Source, Value};
use crate::library_functions;
use crate::tree::{Decl, DeclKind, Name, NodeId, Record, TypeId, TypeKind};
use std::collections::BTreeSet;

/// The callbacks that receive a carried pointer.
#[derive(Default)]
struct Callbacks {
    functions: BTreeSet<Name>,
    /// Types of functions that pointers lead to.
    signatures: BTreeSet<Name>,
    /// The parameters that may take it.
    to: BTreeSet<PointerPlace>,
}

impl Collector<'_> {
    /// `event_new(base, fd, EV_READ, on_read, connection)`: the arguments that a function, unless it is compiled here,
    /// only carries to the functions that it is given with them. It knows no type of such an argument, and no length.
    pub(super) fn note_carried(
        &mut self,
        decl: &Decl,
        arguments: &[NodeId],
        given: &[Vec<Value>],
        at: NodeId,
    ) -> BTreeSet<usize> {
        let is_plain = decl.kind == DeclKind::Function && decl.class.is_none() && decl.template.is_none();
        if self.is_kernel || !is_plain {
            return BTreeSet::new();
        }
        if library_functions::takes_options(&decl.name) {
            return self.note_option(decl, arguments, given, at);
        }
        let carried: BTreeSet<usize> =
            (0..arguments.len()).filter(|&index| self.is_cookie_parameter(decl, index)).collect();
        if carried.is_empty() {
            return carried;
        }
        let callbacks = self.callbacks(decl, arguments, given);
        if callbacks.to.is_empty() {
            return BTreeSet::new();
        }
        for &index in &carried {
            self.carry(decl, &given[index], &callbacks, at);
        }
        carried
    }

    fn carry(&mut self, decl: &Decl, values: &[Value], callbacks: &Callbacks, at: NodeId) {
        let carried = Carried {
            by: decl.usr.clone(),
            name: decl.name.clone(),
            values: values.to_vec(),
            functions: callbacks.functions.clone(),
            signatures: callbacks.signatures.clone(),
            to: callbacks.to.clone(),
            at: self.at(at),
        };
        self.facts.carried.insert(carried);
    }

    /// A `void *` without a neighbouring number that may be its length, in a function that takes no size at all.
    fn is_cookie_parameter(&self, decl: &Decl, index: usize) -> bool {
        let tree = self.tree;
        let is_void = |&ty: &TypeId| tree.pointee(ty).is_some_and(|to| tree.ty(to).kind == TypeKind::Void);
        if !decl.signature.takes.get(index).is_some_and(is_void) {
            return false;
        }
        if library_functions::carries(&decl.name) == Some(index) {
            return true;
        }
        let is_number = |ty: &TypeId| matches!(tree.ty(*ty).kind, TypeKind::Scalar | TypeKind::Byte);
        let is_size = |ty: &TypeId| is_number(ty) && tree.ty(*ty).size_bytes == Some(8);
        let beside = [index.checked_sub(1), Some(index + 1)].into_iter().flatten();
        let has_number_beside = beside.filter_map(|at| decl.signature.takes.get(at)).any(is_number);
        !has_number_beside && !decl.signature.takes.iter().any(is_size)
    }

    /// The functions among the arguments, and those of their parameters that take a pointer without a type.
    fn callbacks(&self, decl: &Decl, arguments: &[NodeId], given: &[Vec<Value>]) -> Callbacks {
        let mut callbacks = Callbacks::default();
        let is_swapped = self.may_be_swapped(decl, arguments);
        for (values, &ty) in given.iter().zip(&decl.signature.takes) {
            let Some(called) = self.tree.pointee(ty).map(|to| self.tree.ty(to)) else { continue };
            if called.kind != TypeKind::Function {
                continue;
            }
            let taking = void_parameters(&called.spelling);
            for value in values {
                match &value.source {
                    Source::Function(usr) => {
                        let own = if taking.is_empty() {
                            self.own_cookies(usr, is_swapped)
                        } else {
                            taking.clone()
                        };
                        callbacks.functions.insert(usr.clone());
                        callbacks
                            .to
                            .extend(own.into_iter().map(|at| PointerPlace::Parameter(usr.clone(), at)));
                    }
                    Source::Place(_) if !taking.is_empty() => {
                        let signature = &called.spelling;
                        callbacks.signatures.insert(signature.clone());
                        callbacks
                            .to
                            .extend(taking.iter().map(|&at| PointerPlace::Parameter(signature.clone(), at)));
                    }
                    _ => {}
                }
            }
        }
        callbacks
    }

    /// `g_signal_connect_swapped`: a flag at the end means that the callback takes the pointer first.
    fn may_be_swapped(&self, decl: &Decl, arguments: &[NodeId]) -> bool {
        let tree = self.tree;
        let is_flag = decl.signature.takes.last().is_some_and(|&ty| tree.ty(ty).kind == TypeKind::Scalar);
        let is_zero = |&flag: &NodeId| tree.node(tree.uncast(flag)).value == Some(0);
        is_flag && !arguments.last().is_some_and(is_zero)
    }

    /// For a function that is given as another type (`G_CALLBACK(clicked)`): its parameters without a type, or else the
    /// last; where the arguments may be swapped, the first as well.
    fn own_cookies(&self, function: &Name, is_swapped: bool) -> Vec<usize> {
        let tree = self.tree;
        let own = tree.decls.iter().find(|decl| decl.kind == DeclKind::Function && decl.usr == *function);
        let Some(own) = own else { return Vec::new() };
        let to = |at: usize| tree.pointee(own.signature.takes[at]).map(|to| tree.ty(to).kind);
        let mut taking: Vec<usize> =
            (0..own.signature.takes.len()).filter(|&at| to(at) == Some(TypeKind::Void)).collect();
        if taking.is_empty() {
            taking.extend(own.signature.takes.len().checked_sub(1));
        }
        if is_swapped && !own.signature.takes.is_empty() {
            taking.push(0);
        }
        taking
    }

    /// `curl_easy_setopt(handle, CURLOPT_WRITEDATA, file)`: the functions of other options are called with the value of
    /// this one.
    fn note_option(
        &mut self,
        decl: &Decl,
        arguments: &[NodeId],
        given: &[Vec<Value>],
        at: NodeId,
    ) -> BTreeSet<usize> {
        let [_, option, _] = *arguments else { return BTreeSet::new() };
        let option = self.tree.decl_of(self.tree.bare(option)).map(|option| option.name.clone());
        let Some(option) = option else { return BTreeSet::new() };
        let kept = PointerPlace::Variable(format!("carried by {}", decl.name).into());
        if option.ends_with("DATA") {
            let callbacks = Callbacks { to: BTreeSet::from([kept]), ..Callbacks::default() };
            self.carry(decl, &given[2], &callbacks, at);
            return BTreeSet::from([2]);
        }
        for value in given[2].iter().filter(|_| option.ends_with("FUNCTION")) {
            if let Source::Function(usr) = &value.source {
                let taking = self.own_cookies(usr, false);
                for parameter in taking.into_iter().map(|at| PointerPlace::Parameter(usr.clone(), at)) {
                    self.flow(&[Value::place(kept.clone())], &parameter);
                }
            }
        }
        BTreeSet::new()
    }
}

/// True when a member of a system's type holds a pointer that comes back unchanged: its name implies it, and it has no
/// length as a neighbour.
pub(super) fn is_cookie(record: &Record, member: &str, is_void: impl Fn(TypeId) -> bool) -> bool {
    const LENGTHS: [&str; 4] = ["size", "len", "count", "bytes"];
    let Some(at) = record.fields.iter().position(|field| &*field.name == member) else { return false };
    let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
    let mut beside = beside.filter_map(|at| record.fields.get(at)).map(|field| field.name.to_lowercase());
    let has_length = beside.any(|name| LENGTHS.iter().any(|length| name.contains(length)));
    library_functions::is_cookie(member) && is_void(record.fields[at].ty) && !has_length
}

/// The parameters of a function's type, by its spelling, that are `void *`.
fn void_parameters(spelling: &str) -> Vec<usize> {
    let inside = spelling.rfind(')').and_then(|end| {
        let mut depth = 0;
        let start = spelling[..=end].char_indices().rev().find(|(_, c)| {
            depth += match c {
                ')' => 1,
                '(' => -1,
                _ => 0,
            };
            depth == 0
        });
        start.map(|(start, _)| &spelling[start + 1..end])
    });
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in inside.unwrap_or_default().chars() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        match parts.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    let is_void = |part: &String| part.replace("const", "").replace(' ', "") == "void*";
    parts.iter().enumerate().filter(|(_, part)| is_void(part)).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_without_a_type_are_found_in_the_spelling_of_a_function() {
        for (spelling, wanted) in [
            ("void (int, short, void *)", vec![2]),
            ("int (const void *, const void *)", vec![0, 1]),
            ("void (void)", vec![]),
            ("void (void (*)(int, void *), void *)", vec![1]),
            ("void (void **, char *)", vec![]),
        ] {
            assert_eq!(void_parameters(spelling), wanted, "{spelling}");
        }
    }
}
