//! The kind of memory in which objects lay, as far as the recorder looked.

use lineup_model::access::{MemoryEvent, MemoryEventKind};

/// The mappings that the recorder saw.
#[derive(Default, Debug)]
pub(crate) struct Mappings {
    /// Mappings of one process alone, sorted, with gaps between them.
    private: Vec<(u64, u64)>,
    /// The number of mappings that are shared with others, or are a device's.
    shared: usize,
}

impl Mappings {
    /// The mappings in all memory events of the recorder.
    pub(crate) fn new(events: &[MemoryEvent]) -> Mappings {
        let of = |kind| events.iter().filter(move |event| event.kind == kind);
        let ends = |event: &MemoryEvent| {
            (event.address, event.address.saturating_add(event.size_bytes.unwrap_or(0)))
        };
        let mut all: Vec<(u64, u64)> = of(MemoryEventKind::Private).map(ends).collect();
        all.sort_unstable();
        let mut private: Vec<(u64, u64)> = Vec::new();
        for (start, end) in all {
            match private.last_mut().filter(|last| start <= last.1) {
                Some(last) => last.1 = last.1.max(end),
                None => private.push((start, end)),
            }
        }
        Mappings { private, shared: of(MemoryEventKind::Shared).count() }
    }

    /// Whether the recorder looked at all.
    pub(crate) fn are_known(&self) -> bool {
        !self.private.is_empty() || self.shared > 0
    }

    /// The number of mappings that others share, or that are a device's.
    pub(crate) fn shared(&self) -> usize {
        self.shared
    }

    /// Whether these bytes are a process's alone.
    pub(crate) fn are_private(&self, start: u64, size_bytes: u64) -> bool {
        let before = self.private.partition_point(|(from, _)| *from <= start);
        let holds = |(_, to): &(u64, u64)| start.saturating_add(size_bytes) <= *to;
        before.checked_sub(1).and_then(|last| self.private.get(last)).is_some_and(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::access::{ProcessId, ThreadId};

    fn mapping(kind: MemoryEventKind, address: u64, size_bytes: u64) -> MemoryEvent {
        let size_bytes = Some(size_bytes);
        MemoryEvent { at: 0, process: ProcessId(0), thread: ThreadId(0), kind, address, size_bytes }
    }

    #[test]
    fn what_lies_in_private_mappings_whole_is_the_processs_own() {
        use MemoryEventKind::{Private, Shared};
        // The heap grew between two looks, and lies next to the program's data.
        let events = [
            mapping(Private, 0x2000, 0x1000),
            mapping(Private, 0x1000, 0x1000),
            mapping(Private, 0x2000, 0x3000),
            mapping(Shared, 0x9000, 0x1000),
        ];
        let mappings = Mappings::new(&events);
        assert!(mappings.are_known() && mappings.shared() == 1);
        assert!(mappings.are_private(0x1ff8, 16) && mappings.are_private(0x4fff, 1));
        assert!(!mappings.are_private(0x4ff8, 16) && !mappings.are_private(0x9000, 8));
        assert!(!mappings.are_private(0xff8, 16));
        assert!(!Mappings::new(&[]).are_known());
    }
}
