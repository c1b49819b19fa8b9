//! Memory that is allocated as plain bytes, used as objects, and exchanged with code that is not compiled here.

use crate::facts::{Act, Shape, Where};
use crate::tree::Name;
use std::collections::BTreeMap;

/// What is done with one block of memory.
#[derive(Default)]
struct Block {
    /// The records that it is used as.
    used_as: Vec<Name>,
    /// The first thing that makes its bytes matter: in words, and where.
    crossing: Option<(String, Where)>,
}

/// All blocks, by the place of the call that gave them.
#[derive(Default)]
pub(super) struct Blocks {
    blocks: BTreeMap<Name, Block>,
}

impl Blocks {
    pub(super) fn note(&mut self, block: &Name, act: &Act, at: &Where) {
        let crossing = match act {
            Act::As(Shape::Record(record), _) => {
                let used_as = &mut self.blocks.entry(block.clone()).or_default().used_as;
                if !used_as.contains(record) {
                    used_as.push(record.clone());
                }
                return;
            }
            Act::Given(_, name) => format!("is given to {name}(), which is not compiled here"),
            Act::GivenThrough(_) => "is given to a function that is not compiled here".to_string(),
            Act::Leaves(to) => format!("goes to {to}"),
            Act::Bytes => "is read byte by byte".to_string(),
            Act::Compared => "is compared byte by byte".to_string(),
            Act::Assembly => "is used by assembly".to_string(),
            _ => return,
        };
        self.blocks.entry(block.clone()).or_default().crossing.get_or_insert((crossing, at.clone()));
    }

    /// The records whose bytes matter: record, reason, place.
    pub(super) fn crossings(self) -> impl Iterator<Item = (Name, String, Where)> {
        self.blocks.into_values().flat_map(|block| {
            let (crossing, at) = block.crossing.unzip();
            let reason = crossing.map(|crossing| format!("memory that is used as one {crossing}"));
            let records = if reason.is_some() { block.used_as } else { Vec::new() };
            records
                .into_iter()
                .zip(std::iter::repeat(reason.zip(at)))
                .filter_map(|(record, found)| found.map(|(reason, at)| (record, reason, at)))
        })
    }
}
