//! Single objects of structs of C that come from blocks, as a proposal.

use std::collections::BTreeMap;

/// Single objects that come from blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolProposal {
    /// Their types.
    pub types: Vec<PooledType>,
    /// Texts that change, whole, by path.
    pub edited: BTreeMap<String, String>,
}

/// A struct of C whose single objects come from blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PooledType {
    /// The struct.
    pub type_name: String,
    /// Bytes of an object.
    pub size_bytes: u64,
    /// Calls that take objects from blocks.
    pub makes: usize,
    /// Calls that give them back.
    pub ends: usize,
    /// Objects in a block.
    pub block: u64,
    /// Blocks are huge pages.
    pub is_on_huge_pages: bool,
}

impl PooledType {
    /// The pool in a sentence without its full stop.
    pub fn in_words(&self) -> String {
        let calls = |count: usize| if count == 1 { "1 call".to_owned() } else { format!("{count} calls") };
        let PooledType { type_name, size_bytes, makes, ends, block, is_on_huge_pages } = self;
        let pages = if *is_on_huge_pages { " in huge pages" } else { "" };
        let ends = match ends {
            0 => "none gives one back".to_owned(),
            1 => "1 call gives one back".to_owned(),
            ends => format!("{ends} calls give them back"),
        };
        format!(
            "{type_name}, {size_bytes} bytes: {} objects from blocks of {block}{pages}, {ends}, and the program keeps the blocks",
            match makes {
                1 => format!("{} takes", calls(1)),
                makes => format!("{} take", calls(*makes)),
            }
        )
    }
}
