//! The whole interface of a machine.

use super::{Abi, Entries, Gates, Host, InnerJumps, Restarts, Timing, Translation};

/// A machine: the engine's whole interface to it.
pub(crate) trait Machine:
    Abi + Gates + Entries + Translation + Restarts + InnerJumps + Timing
{
}

const _: () = {
    const fn is_whole<M: Machine>() {}
    is_whole::<Host>();
};
