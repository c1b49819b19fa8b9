//! Functions that the C library calls back, and the results of threads.

use super::Collector;
use super::convert::IN_MEMBERS;
use crate::facts::{Act, PointerPlace, Reach, Source, Value};
use crate::library_functions;
use crate::tree::{Decl, Kind, Name, NodeId, RecordId};

/// The place of the results of all threads.
const RESULTS: &str = "given by threads";

impl Collector<'_> {
    /// `qsort(all, n, sizeof *all, strcmp)`: a callback that is not compiled here is given the objects.
    pub(super) fn given_to_callback(&mut self, usr: &Name, values: &[Value], at: NodeId) {
        let name = library_functions::plain_name(usr);
        let act = match library_functions::reads_text(name) {
            true => Act::Text,
            false => Act::Given(usr.clone(), name.into()),
        };
        if !self.is_kernel {
            self.act(values, &act, at);
        }
    }

    /// `free(bytes)`, which ends an object that does not show its type.
    pub(super) fn note_ended(
        &mut self,
        decl: &Decl,
        arguments: &[NodeId],
        values: &[Vec<Value>],
        id: NodeId,
    ) {
        let may_end = library_functions::ends_life(&decl.name) || library_functions::resizes(&decl.name);
        if self.is_kernel || self.tree.is_cpp || !may_end {
            return;
        }
        let at = self.at(id);
        let caller = self.function.clone().unwrap_or_else(|| "".into());
        for (&argument, values) in arguments.iter().zip(values) {
            let record = self.record_behind(self.tree.uncast(argument));
            // An element of a list of further arguments looks like the list.
            let is_list = |record: &RecordId| {
                self.tree.records[*record].names.iter().any(|name| name.starts_with("__va_list"))
            };
            if record.is_none_or(|record| is_list(&record)) {
                let ended =
                    values.iter().map(|value| (decl.usr.clone(), caller.clone(), value.clone(), at.clone()));
                self.facts.ended.extend(ended);
            }
        }
    }

    /// `va_start(state->list, last)`, `va_copy(state->list, list)`.
    pub(super) fn note_list_in_member(&mut self, function: &str, arguments: &[NodeId]) {
        let tree = self.tree;
        let starts = matches!(library_functions::plain_spelling(function), "va_start" | "va_copy");
        let Some(&list) = arguments.first().filter(|_| starts && !self.is_kernel) else { return };
        if let Some(function) = self.function.clone()
            && tree.below(list).iter().any(|&id| tree.node(id).kind == Kind::Member)
        {
            let from = Value::place(PointerPlace::Variable(super::variadic(&function, false)));
            self.flow(&[from], &PointerPlace::Variable(super::variadic(IN_MEMBERS, false)));
        }
    }

    /// `pthread_join(thread, &result)` gives what the function of some thread returns, or gives to `pthread_exit`.
    pub(super) fn note_thread_result(
        &mut self,
        function: &str,
        arguments: &[NodeId],
        values: &[Vec<Value>],
        id: NodeId,
    ) {
        let results = PointerPlace::Variable(RESULTS.into());
        let functions = library_functions::thread_function(function).and_then(|at| values.get(at));
        for started in functions.into_iter().flatten() {
            if let Source::Function(usr) = &started.source {
                self.flow(&[Value::place(PointerPlace::Return(usr.clone()))], &results);
            }
        }
        match (function, values) {
            ("pthread_exit", [given, ..]) => self.flow(given, &results),
            ("pthread_join", [_, to, ..]) => {
                let given = [Value::place(results)];
                for value in to.iter().filter(|value| value.reach == Reach::Address) {
                    if let Source::Place(place) = &value.source {
                        self.flow(&given, place);
                    }
                }
                let tree = self.tree;
                let place = tree.node(tree.uncast(arguments[1]));
                let held = place.children.first().filter(|_| place.kind == Kind::AddressOf);
                if let Some(ahead) = held.and_then(|&held| tree.pointee(tree.node(held).ty)) {
                    self.note_use_as(&given, ahead, id);
                }
            }
            _ => {}
        }
    }
}
