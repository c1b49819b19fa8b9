//! The code of one file, and its executed part.

use crate::error::CodeError;
use crate::execution_counts::Executed;
use crate::flow::function::{Function, function};
use lineup_debuginfo::{DebugInfo, Region};
use lineup_model::abi::Machine;
use lineup_model::image::LoadedImage;
use lineup_model::program::SymbolKind;
use lineup_recording::ProfileRun;
use std::ops::Range;

/// The executed code of a file.
#[derive(Debug)]
pub struct Code<'d> {
    /// The file.
    pub debug: &'d DebugInfo,
    /// Counts of its instructions.
    pub executed: Executed,
    /// Functions of which some was executed, by address.
    pub functions: Vec<Function>,
    /// Functions of which some was executed and whose bytes are not all instructions.
    pub not_decoded: Vec<String>,
}

impl<'d> Code<'d> {
    /// The code that `runs` executed of the file that was mapped as `image`.
    ///
    /// # Errors
    /// When it is not x86-64, or has no symbols of functions.
    pub fn new(debug: &'d DebugInfo, image: &LoadedImage, runs: &[ProfileRun]) -> Result<Self, CodeError> {
        let machine = debug.abi().machine;
        if machine != Machine::X86_64 {
            return Err(CodeError::Machine { path: image.path.clone(), machine });
        }
        let mut code = Code {
            debug,
            executed: Executed::of(runs, image),
            functions: Vec::new(),
            not_decoded: Vec::new(),
        };
        let places = places(debug);
        if places.is_empty() {
            return Err(CodeError::NoFunctions { path: image.path.clone() });
        }
        for (name, addresses) in places {
            if code.executed.ranges_in(&addresses).is_empty() {
                continue;
            }
            match function(name, addresses, &code.executed, &|range| debug.code(range)) {
                Some(function) => code.functions.push(function),
                None => code.not_decoded.push(name.to_owned()),
            }
        }
        Ok(code)
    }
}

/// Functions by their symbols: the first name of each address, without symbols inside an earlier function.
fn places(debug: &DebugInfo) -> Vec<(&str, Range<u64>)> {
    let mut places: Vec<(&str, Range<u64>)> = Vec::new();
    for symbol in debug.symbols() {
        let addresses = symbol.address..symbol.address.saturating_add(symbol.size_bytes);
        let is_code = debug.section_at(symbol.address).is_some_and(|section| section.region == Region::Code);
        let is_within = places.last().is_some_and(|(_, last)| last.end > addresses.start);
        if symbol.kind == SymbolKind::Function && !addresses.is_empty() && is_code && !is_within {
            places.push((&symbol.name, addresses));
        }
    }
    places
}
