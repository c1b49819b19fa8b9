//! The engines' names on the command line.

use clap::ValueEnum;
use lineup_study::recorder::Engine;
use std::fmt;

/// An engine that a user may name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum EngineName {
    Qemu,
    Native,
}

impl From<EngineName> for Engine {
    fn from(name: EngineName) -> Engine {
        match name {
            EngineName::Qemu => Engine::Emulator,
            EngineName::Native => Engine::Native,
        }
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineName::Qemu => "qemu",
            EngineName::Native => "native",
        })
    }
}
