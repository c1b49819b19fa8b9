//! The missing part of debug information.

use serde::Serialize;

/// The missing part of debug information without which accesses get no names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// There is no debug information.
    DebugInfo,
    /// It describes functions and lines but no types: compiled with `-g1`.
    Types,
    /// A kernel's own description of its types (BTF) does not contain variables' places.
    Places,
}

impl Lack {
    /// The missing part and the remedy.
    pub fn advice(self) -> &'static str {
        match self {
            Lack::DebugInfo => "no debug information; build with -g",
            Lack::Types => "compiled with -g1: no types; build with -g",
            Lack::Places => "BTF describes types, not where variables are; record with --debug VMLINUX",
        }
    }
}
