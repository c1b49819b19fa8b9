//! Functions that the C library calls back, and the results of threads.

use super::Collector;
use super::convert::IN_MEMBERS;
use crate::facts::{Act, PointerPlace, Reach, Source, Value};
use crate::library_functions;
use crate::tree::{Kind, Name, NodeId};

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
