//! What the user asked for.

use lineup_model::line::LineSize;

/// Options of advice.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// `--pin Type.member`: type and member that keeps its offset.
    pub pins: Vec<(String, String)>,
    /// `--keep Type`: types whose layout is an ABI.
    pub keeps: Vec<String>,
    /// `--lift Type` or `--lift Type.member`: types, or members of them, that comments do not hold.
    pub lifts: Vec<(String, Option<String>)>,
    /// `--line-size`: the line size that decides; 32, 64 or 128.
    pub primary: LineSize,
    /// Whether a type may grow to keep write-shared members away from read-mostly ones.
    pub allow_growth: bool,
    /// `--least-share`: the share of a region's lines, from 0 to 1, that an edit has to save in some region to be in the patch.
    pub least_share: f64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            pins: Vec::new(),
            keeps: Vec::new(),
            lifts: Vec::new(),
            primary: LineSize::B64,
            allow_growth: false,
            least_share: 0.01,
        }
    }
}
