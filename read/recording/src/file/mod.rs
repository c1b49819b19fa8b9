//! The file itself: blocks and records, written and read.

pub(crate) mod decoder;
pub(crate) mod encoder;
pub(crate) mod frame;
pub(crate) mod reader;
pub(crate) mod writer;
