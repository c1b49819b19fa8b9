//! The context of an access: the accesses of its call before it.

use crate::memory::live_times::Moment;
use foldhash::HashMap;
use lineup_model::access::{Access, AccessKind, ProcessId};

/// The context of an access: the accesses of its call before it. The machine splits accesses into adjacent pieces, and
/// code without a symbol belongs to the function before it. Each call has a context of its own.
#[derive(Clone, Default, Debug)]
pub struct AccessContext {
    process: ProcessId,
    /// Accesses so far.
    accesses: u32,
    last: Option<(u64, AccessKind, u64, u64)>,
    /// Per image without described functions: the symbol, by name number, that code last ran in. Code
    /// without a symbol runs on behalf of it: only named functions can be called from outside.
    entered: HashMap<usize, u32>,
}

impl AccessContext {
    /// The context of a call in this process.
    pub fn of(process: ProcessId) -> Self {
        AccessContext { process, ..Self::default() }
    }

    /// The moment of the next access of a call that began at `at`.
    pub(crate) fn next(&mut self, at: u64) -> Moment {
        self.accesses = self.accesses.saturating_add(1);
        self.moment(at)
    }

    /// The moment of the last access.
    pub(crate) fn moment(&self, at: u64) -> Moment {
        Moment { call: at, access: self.accesses, process: self.process }
    }

    /// The function, by name number, that code of an image runs on behalf of: `symbol`, or the last one that had a
    /// symbol.
    pub(crate) fn entered(&mut self, image: usize, symbol: Option<u32>) -> Option<u32> {
        match symbol {
            Some(symbol) => {
                self.entered.insert(image, symbol);
                Some(symbol)
            }
            None => self.entered.get(&image).copied(),
        }
    }

    /// Bytes of the operand that earlier pieces covered.
    pub(crate) fn before(&mut self, access: &Access, operand_bytes: u64) -> u64 {
        let size = u64::from(access.size_bytes);
        let into = match self.last {
            Some((pc, kind, end, covered))
                if pc == access.pc
                    && kind == access.kind
                    && end == access.address
                    && covered + size <= operand_bytes =>
            {
                covered
            }
            _ => 0,
        };
        self.last = Some((access.pc, access.kind, access.address.wrapping_add(size), into + size));
        into
    }
}
