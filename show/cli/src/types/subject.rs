//! A file and its types.

use crate::types::guard;
use lineup_debuginfo::DebugInfo;
use lineup_debuginfo::btf::Btf;
use lineup_model::abi::Abi;
use lineup_model::types::{TypeId, Types};
use std::path::PathBuf;

/// A file and its types, or some of them.
pub(crate) struct Subject {
    pub(crate) path: PathBuf,
    pub(super) source: Source,
}

pub(super) enum Source {
    Dwarf(Box<DebugInfo>),
    Btf(Box<Btf>),
}

impl Subject {
    pub(crate) fn types(&self) -> &Types {
        match &self.source {
            Source::Dwarf(info) => info.types(),
            Source::Btf(btf) => &btf.types,
        }
    }

    /// The machine that the file was compiled for. Raw BTF names no machine: then the size of its pointers gives the
    /// data model.
    pub(crate) fn abi(&self) -> Option<Abi> {
        match &self.source {
            Source::Dwarf(info) => Some(info.abi()),
            Source::Btf(btf) => guard::data_model(&btf.types),
        }
    }

    /// The first type that belongs to the file itself and not to its base.
    pub(crate) fn first_own(&self) -> TypeId {
        match &self.source {
            Source::Dwarf(_) => TypeId(0),
            Source::Btf(btf) => btf.first_own,
        }
    }
}
