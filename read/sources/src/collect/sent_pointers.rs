//! Pointers that are written to a file and read back: their bytes cross, not those of their targets.

use super::Collector;
use crate::facts::{Act, PointerPlace, Reach, Shape, Source, Value};
use crate::tree::{Decl, Kind, NodeId, TypeKind};

/// The place of such pointers in the meantime.
const SENT: &str = "sent as a pointer";

impl Collector<'_> {
    /// `write(pipe, &x, sizeof x)` and `read(pipe, &x, sizeof x)` of a pointer `x`: any such read may return the value
    /// of any such write. Returns the argument with the address, for such a call.
    pub(super) fn note_sent_pointer(
        &mut self,
        decl: &Decl,
        arguments: &[NodeId],
        at: NodeId,
    ) -> Option<NodeId> {
        let is_sent = sends(&decl.name).filter(|_| decl.class.is_none())?;
        let [_, buffer, size, ..] = *arguments else { return None };
        let tree = self.tree;
        let address = tree.node(tree.uncast(buffer));
        let object = address.children.first().copied().filter(|_| address.kind == Kind::AddressOf)?;
        let ty = tree.ty(tree.node(object).ty);
        let TypeKind::Pointer(to) = ty.kind else { return None };
        let bytes = tree.node(tree.bare(size)).value.and_then(|bytes| u64::try_from(bytes).ok())?;
        if Some(bytes) != ty.size_bytes {
            return None;
        }
        let sent = Value::place(PointerPlace::Variable(SENT.into()));
        if is_sent {
            let values = self.pointer(object);
            self.flow(&values, &PointerPlace::Variable(SENT.into()));
            return Some(buffer);
        }
        for value in self.value(buffer).into_iter().filter(|value| value.reach == Reach::Address) {
            if let Source::Place(place) = value.source {
                self.flow(std::slice::from_ref(&sent), &place);
            }
        }
        if let Some(record) = tree.record_of(to).and_then(|record| self.usr(record)) {
            self.act(&[sent], &Act::As(Shape::Record(record), tree.ty(to).spelling.clone()), at);
        }
        Some(buffer)
    }
}

/// True when a function sends bytes, false when it receives them; `None` for other functions.
fn sends(function: &str) -> Option<bool> {
    match function {
        "write" | "send" => Some(true),
        "read" | "recv" => Some(false),
        _ => None,
    }
}
