//! Separates the dynamic linker's work inside a call from the call's own.

use super::open_call::Binding;
use super::state::Thread;
use crate::blocks::{Block, Linkage};
use crate::flow::Flow;

impl<Own> Thread<Own> {
    /// Notices when the dynamic linker begins to look for a function and when it has found it. It is reached through
    /// the common stub, and continues to the function by a jump on the same level.
    pub(super) fn follow_binding(&mut self, previous: &Block, block: &Block) {
        match &mut self.binding {
            None if block.linkage == Linkage::Common => {
                self.binding = Some(Binding { depth: self.tracker.depth(), begun: false });
                // On Arm the stub is the same for known and unknown functions.
                if previous.linkage == Linkage::Stub && self.manner.uses_slots {
                    self.move_to_binding(previous);
                }
            }
            None => {}
            Some(binding) => {
                // On i386 the linker continues by a `ret` to an address that it put on the stack.
                let flow = previous.facts.flow;
                let goes_on = flow == Flow::Indirect || self.tracker.lost_return(flow);
                let is_jump = goes_on && self.tracker.depth() == binding.depth;
                let is_over = (is_jump && binding.begun) || self.tracker.depth() < binding.depth;
                binding.begun |= is_jump;
                if is_over {
                    self.binding = None;
                }
            }
        }
    }

    /// The stub that led to the common one was executed only because the function was not known yet.
    fn move_to_binding(&mut self, stub: &Block) {
        // A call that began with the stub has executed only the stub; calls outside it have executed more.
        for call in self.open.iter_mut().rev() {
            let own = self.counted.instructions.wrapping_sub(call.before.instructions);
            let Some(lacks) = stub.instructions.checked_sub(own).filter(|lacks| *lacks > 0) else { break };
            call.before.instructions = call.before.instructions.wrapping_sub(lacks);
            call.before.binding_instructions += lacks;
        }
        self.counted.instructions = self.counted.instructions.wrapping_sub(stub.instructions);
        self.counted.binding_instructions += stub.instructions;
        let least = self.open.last().map_or(0, |call| call.first_access);
        while self.accesses.len() > least
            && self.accesses.last().is_some_and(|last| (stub.facts.start..stub.facts.end).contains(&last.pc))
        {
            self.accesses.pop();
        }
    }
}
