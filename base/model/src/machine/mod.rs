//! Machines: one description each, which holds every fact about a machine that is plain data.
//!
//! Code asks the description for a fact (`machine.description().long_double_bytes`) and does not distinguish machines
//! itself. Facts that cannot be data, because they need decoded instructions, lie in one file per machine in the crates
//! that read instructions. ARCHITECTURE.md lists them under "How to add a machine".
//!
//! ```
//! use lineup_model::machine::{Machine, ReturnAddress};
//!
//! let on_stack = Machine::ALL.into_iter()
//!     .filter(|machine| machine.description().return_address == ReturnAddress::OnStack);
//! assert_eq!(on_stack.collect::<Vec<_>>(), [Machine::X86_64, Machine::I386]);
//! ```

mod description;
mod table;

pub use description::{
    BlockSide, Board, CodeMachine, Description, EmulatorRegisters, Machine, ReturnAddress, ThreadAbi,
};
