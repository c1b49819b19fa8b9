//! Region names → entries.

use crate::companions;
use crate::error::{Error, Result};
use lineup_debuginfo::{DebugInfo, FoundFunctions};
use lineup_model::region::{Region, Regions};
use lineup_recording::Header;
use lineup_recording::plan::Discovery;
use std::path::Path;

/// Names listed at most in a message.
const MOST_NAMES: usize = 8;

/// Finds each region's entries in the program. A name that the program does not have is left to the recorder, which
/// looks for it in the libraries as they are mapped, when the program has any.
pub(super) fn find(
    wanted: &Regions,
    debug: &DebugInfo,
    program: &Path,
    notes: &mut Vec<String>,
) -> Result<Regions> {
    wanted.iter().map(|(_, region)| find_one(region, debug, program, notes)).collect()
}

fn find_one(wanted: &Region, debug: &DebugInfo, program: &Path, notes: &mut Vec<String>) -> Result<Region> {
    let name = &wanted.name;
    let region = |image: &str, entries| Region { image: image.to_owned(), entries, ..wanted.clone() };
    match debug.find_functions(name) {
        FoundFunctions::OutOfLine(functions) => {
            for function in functions.iter().filter(|function| !function.inlined_into.is_empty()) {
                let callers = listed(&function.inlined_into);
                notes.push(format!(
                    "{} is also inlined into {callers}; those copies are not recorded",
                    function.name
                ));
            }
            let entries = functions.iter().map(|function| function.entry).collect();
            Ok(region(&program.to_string_lossy(), entries))
        }
        FoundFunctions::InlinedEverywhere { name, callers } => Err(Error::Region(format!(
            "{name} has no code of its own: it was inlined into {}; record those, or forbid inlining it",
            listed(&callers)
        ))),
        FoundFunctions::Unknown { .. } if uses_libraries(debug) => Ok(region("", Vec::new())),
        FoundFunctions::Unknown { near } => Err(unknown(name, &near)),
    }
}

/// Refuses regions that no run will ever enter.
pub(super) fn check_called(header: &Header, discovery: &Discovery, debug: &DebugInfo) -> Result<()> {
    let mut silent = Vec::new();
    for (id, region) in header.regions.iter() {
        if discovery.calls.get(usize::from(id.0)).copied().unwrap_or(0) > 0 {
            continue;
        }
        if let Some(program) = executed_with(discovery, &region.name) {
            return Err(Error::Region(format!(
                "{0} is a function of {program}, which was started by exec and so is not recorded; record it by \
                 itself: lineup record --region {0} -- {program}",
                region.name
            )));
        }
        let is_known =
            !region.entries.is_empty() || discovery.entries.iter().any(|(found, _, _)| *found == id.0);
        match (is_known, debug.find_functions(&region.name)) {
            (false, FoundFunctions::Unknown { near }) => return Err(unknown(&region.name, &near)),
            _ => silent.push(region.name.as_str()),
        }
    }
    let names = silent.join(", ");
    match silent.len() {
        0 => Ok(()),
        all if all == header.regions.len() => Err(Error::Region(format!(
            "the program ended without a call of {names}; do its arguments lead there?"
        ))),
        _ => Err(Error::Region(format!(
            "the program never called {names}; leave it out, or give arguments that lead there"
        ))),
    }
}

/// The first program that was started by `exec` and has a function of this name.
fn executed_with<'d>(discovery: &'d Discovery, name: &str) -> Option<&'d str> {
    let has = |program: &&String| {
        let debug = companions::load(Path::new(program));
        debug.is_ok_and(|debug| matches!(debug.find_functions(name), FoundFunctions::OutOfLine(_)))
    };
    discovery.executed.iter().find(has).map(String::as_str)
}

fn uses_libraries(debug: &DebugInfo) -> bool {
    debug.sections().iter().any(|section| section.name.as_ref() as &str == ".interp")
}

fn unknown(name: &str, near: &[String]) -> Error {
    Error::Region(match near {
        [] => format!("there is no function {name}"),
        near => format!("there is no function {name}; near names: {}", listed(near)),
    })
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
