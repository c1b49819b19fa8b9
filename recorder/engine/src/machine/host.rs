//! Types of the machine that this library is built for.

use super::{Abi, Host};

/// The program's registers while the engine runs.
pub(crate) type HostRegisters = <Host as Abi>::Registers;
/// The registers in a signal's context.
pub(crate) type HostContext = <Host as Abi>::Context;
