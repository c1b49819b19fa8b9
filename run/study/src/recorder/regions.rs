//! Region names → entries.

use super::Subject;
use crate::error::{Error, Result};
use crate::process::run::Stopped;
use lineup_debuginfo::{DebugInfo, FoundFunctions};
use lineup_model::first_names;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_recording::plan::Discovery;
use lineup_recording::{Header, Unfollowed};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;

/// Names listed at most in a message.
const MOST_NAMES: usize = 8;

/// Finds each region's entries in the program. The recorder looks for a name that the program does not have in
/// libraries and in other programs, as they are mapped.
pub(super) fn find(wanted: &Regions, subject: &Subject, notes: &mut Vec<String>) -> Result<Regions> {
    check_distinct(wanted)?;
    let program = subject.mapped_text()?;
    let found: Regions = wanted
        .iter()
        .map(|(_, region)| find_one(region, subject.debug(), &program, notes))
        .collect::<Result<_>>()?;
    notes.extend(same_code(&found));
    Ok(found)
}

/// Refuses a name that is empty or given twice: a call counts for one region.
fn check_distinct(wanted: &Regions) -> Result<()> {
    let mut names = HashSet::new();
    for (_, Region { name, .. }) in wanted.iter() {
        if name.is_empty() {
            return Err(Error::Region("a region has no name; --region FUNCTION gives one".to_owned()));
        }
        if !names.insert(name) {
            return Err(Error::Region(format!("the region {name} is named twice; name it once")));
        }
    }
    Ok(())
}

/// A sentence on each region of which another one before it has the code: names may mean the same function.
fn same_code(found: &Regions) -> Vec<String> {
    let all: Vec<&Region> = found.iter().map(|(_, region)| region).collect();
    let shared = all.iter().enumerate().filter_map(|(place, region)| {
        let has_entry = |entry: &u64| region.entries.contains(entry);
        let first = all[..place].iter().find(|other| other.entries.iter().any(has_entry))?;
        let (name, first) = (&region.name, &first.name);
        Some(format!("{name} and {first} name the same code: its calls count for one of them"))
    });
    shared.collect()
}

fn find_one(wanted: &Region, debug: &DebugInfo, program: &str, notes: &mut Vec<String>) -> Result<Region> {
    let name = &wanted.name;
    let region = |image: &str, entries| Region { image: image.to_owned(), entries, ..wanted.clone() };
    match debug.find_functions(name) {
        FoundFunctions::OutOfLine(functions) => {
            for function in functions.iter().filter(|function| !function.inlined_into.is_empty()) {
                let callers = first_names(&function.inlined_into, MOST_NAMES);
                notes.push(format!(
                    "{} is also inlined into {callers}; those copies are not recorded",
                    function.name
                ));
            }
            let entries = functions.iter().map(|function| function.entry).collect();
            Ok(region(program, entries))
        }
        FoundFunctions::InlinedEverywhere { name, callers } => Err(Error::Region(format!(
            "{name} has no code of its own: it was inlined into {}; record those, or forbid inlining it",
            first_names(&callers, MOST_NAMES)
        ))),
        FoundFunctions::Unknown { .. } => Ok(region("", Vec::new())),
    }
}

/// The regions without those that the program has inlined everywhere, and a sentence on each of these. If none would be
/// left, all stay: a recording then says what to do.
pub fn without_inlined(wanted: &Regions, subject: &Subject) -> (Regions, Vec<String>) {
    let (mut kept, mut left_out) = (Regions::default(), Vec::new());
    for (_, region) in wanted.iter() {
        match subject.debug().find_functions(&region.name) {
            FoundFunctions::InlinedEverywhere { name, callers } => left_out.push(format!(
                "{name} is not studied: it has no code of its own, since it was inlined into {}; --region with one of \
                 these studies its code there",
                first_names(&callers, MOST_NAMES)
            )),
            FoundFunctions::OutOfLine(_) | FoundFunctions::Unknown { .. } => kept.push(region.clone()),
        }
    }
    match kept.is_empty() {
        true => (wanted.clone(), Vec::new()),
        false => (kept, left_out),
    }
}

/// Looks for regions without a symbol in any file of the run, in the debug information of the programs that ran;
/// returns whether any was found.
pub(super) fn find_elsewhere(
    regions: &mut Regions,
    discovery: &Discovery,
    subject: &Subject,
) -> Result<bool> {
    let is_nowhere = |id: RegionId, region: &Region| {
        region.entries.is_empty() && !discovery.entries.iter().any(|(found, _, _)| *found == id.0)
    };
    if !regions.iter().any(|(id, region)| is_nowhere(id, region)) {
        return Ok(false);
    }
    let own = subject.mapped_text()?;
    let others: Vec<&String> = discovery.images.iter().filter(|image| **image != own).collect();
    let mut infos = subject.others();
    let mut found_any = false;
    let find = |(id, region): (RegionId, &Region)| -> Result<Region> {
        let mut region = region.clone();
        for image in others.iter().filter(|_| is_nowhere(id, &region)) {
            let Some(debug) = infos.of(Path::new(image)) else { continue };
            match debug.find_functions(&region.name) {
                FoundFunctions::OutOfLine(functions) => {
                    region.entries = functions.iter().map(|function| function.entry).collect();
                    region.image = (*image).clone();
                    found_any = true;
                    break;
                }
                FoundFunctions::InlinedEverywhere { name, callers } => {
                    return Err(Error::Region(format!(
                        "{name} has no code of its own in {image}: it was inlined into {}; record those, or forbid \
                     inlining it",
                        first_names(&callers, MOST_NAMES)
                    )));
                }
                FoundFunctions::Unknown { .. } => {}
            }
        }
        Ok(region)
    };
    *regions = regions.iter().map(find).collect::<Result<_>>()?;
    Ok(found_any)
}

/// Refuses a region that no file has, with names like it when the program has some.
pub(super) fn check_known(name: &str, debug: &DebugInfo) -> Result<()> {
    match debug.find_functions(name) {
        FoundFunctions::Unknown { near } if !near.is_empty() => Err(unknown(name, &near)),
        _ => Ok(()),
    }
}

/// Refuses regions that are not functions, and a request of which no run will ever enter a region. The summary of the
/// calls reports other regions without calls.
pub(super) fn check_called(header: &Header, discovery: &Discovery, subject: &Subject) -> Result<()> {
    let mut silent = Vec::new();
    for (id, region) in header.regions.iter() {
        if discovery.calls.get(usize::from(id.0)).copied().unwrap_or(0) > 0 {
            continue;
        }
        check_followed(&region.name, &discovery.unfollowed, subject)?;
        let is_known =
            !region.entries.is_empty() || discovery.entries.iter().any(|(found, _, _)| *found == id.0);
        match (is_known, subject.debug().find_functions(&region.name)) {
            (false, FoundFunctions::Unknown { near }) => {
                let lacks = |cause| Error::DebugInfo { file: nowhere(&region.name, discovery), cause };
                subject.debug().require_debug_info().map_err(lacks)?;
                return Err(unknown(&region.name, &near));
            }
            _ => silent.push(&region.name),
        }
    }
    match silent.len() {
        all if all == header.regions.len() => {
            Err(never_called(header.regions.iter().map(|(_, region)| region), subject, None, None))
        }
        _ => Ok(()),
    }
}

/// No region was called. `elsewhere` says what else ran, where the calls may have been made.
pub(super) fn never_called<'r>(
    regions: impl Iterator<Item = &'r Region>,
    subject: &Subject,
    stopped: Option<Stopped>,
    elsewhere: Option<String>,
) -> Error {
    let names: Vec<&str> = regions.map(|region| region.name.as_str()).collect();
    Error::Region(without_call(&names, subject, stopped, elsewhere))
}

/// The sentence on functions that the program did not call, with the likely reason. `stopped` says why Lineup ended the
/// program, and `elsewhere` what else ran, where the calls may have been made.
pub fn without_call(
    names: &[&str],
    subject: &Subject,
    stopped: Option<Stopped>,
    elsewhere: Option<String>,
) -> String {
    let cold = names.iter().find_map(|name| Some((name, &name[..name.find(COLD)?])));
    let listed = names.join(", ");
    let what = match stopped {
        Some(Stopped::Time) => {
            format!("Lineup ended the program after the time of --max-seconds, before it called {listed}")
        }
        Some(Stopped::Driven) => {
            format!("Lineup ended the program when its client was done, before it called {listed}")
        }
        _ => format!("the program ended without a call of {listed}"),
    };
    let next = match (cold, inlined(names, subject), elsewhere, stopped) {
        (Some((part, function)), ..) => {
            format!("{part} is a part that {function} jumps to and nothing calls; record {function}")
        }
        (None, Some(inlined), elsewhere, _) => {
            elsewhere.into_iter().fold(inlined, |said, more| format!("{said}; {more}"))
        }
        (None, None, Some(elsewhere), _) => elsewhere,
        (None, None, None, Some(Stopped::Time)) => "give it more time".to_owned(),
        (None, None, None, Some(Stopped::Driven)) => "do the client's requests lead there?".to_owned(),
        (None, None, None, _) => "do its arguments lead there?".to_owned(),
    };
    format!("{what}; {next}")
}

/// The advice for the first of these functions that the compiler inlined somewhere: such copies are not called.
fn inlined(names: &[&str], subject: &Subject) -> Option<String> {
    let copies = |name: &&str| match subject.debug().find_functions(name) {
        FoundFunctions::OutOfLine(functions) => {
            let into: BTreeSet<String> =
                functions.into_iter().flat_map(|function| function.inlined_into).collect();
            (!into.is_empty()).then(|| (name.to_string(), into.into_iter().collect::<Vec<_>>()))
        }
        _ => None,
    };
    let (name, into) = names.iter().find_map(copies)?;
    let into = first_names(&into, MOST_NAMES);
    Some(format!(
        "it was inlined into {into}, and such copies are not recorded: record {into}, or forbid inlining {name}"
    ))
}

/// The suffix that compilers add to the name of a function's cold part.
const COLD: &str = ".cold";

/// The error for a region that neither the program nor a library has, where the programs that it starts cannot be
/// followed. `None` when the program has all regions.
pub(super) fn unreachable(header: &Regions, subject: &Subject) -> Option<Error> {
    let near = |(_, region): (RegionId, &Region)| match subject.debug().find_functions(&region.name) {
        FoundFunctions::Unknown { near } => Some((region.name.clone(), near)),
        _ => None,
    };
    let (name, near) = header.iter().find_map(near)?;
    let file = subject.program().display();
    if let Some(script) = subject.script() {
        return Some(Error::Region(format!(
            "there is no function {name} in {file}, which runs the script {}; `--children` also records the programs \
             that the script starts, and `--program FILE` names the one that has {name}",
            script.display()
        )));
    }
    if !near.is_empty() {
        return Some(unknown(&name, &near));
    }
    if !subject.debug().has_debug_info() {
        return Some(Error::Region(format!(
            "there is no function {name} among the symbols of {file}, which has no debug information: build it with -g, \
             and do not strip it; if it starts the program that has {name}, `--children` also records that one"
        )));
    }
    Some(Error::Region(format!(
        "there is no function {name} in {file} or a library that it loads; `nm -C {file}` lists its \
         functions, and `--children` also records the programs that it starts"
    )))
}

/// Refuses a region that no program had which was recorded, where others ran unrecorded.
pub(super) fn check_all_followed(name: &str, unfollowed: &[Unfollowed], subject: &Subject) -> Result<()> {
    check_followed(name, unfollowed, subject)?;
    match unfollowed.first() {
        None => Ok(()),
        Some(Unfollowed { program, why }) => Err(Error::Region(format!(
            "no program that was recorded has a function {name}; {program} is not recorded, nor what it started: it {why}"
        ))),
    }
}

/// Refuses a region that a program has which ran unrecorded.
pub(super) fn check_followed(name: &str, unfollowed: &[Unfollowed], subject: &Subject) -> Result<()> {
    let has = |unfollowed: &&Unfollowed| {
        let mut infos = subject.others();
        let debug = infos.of(Path::new(&unfollowed.program));
        debug.is_some_and(|debug| matches!(debug.find_functions(name), FoundFunctions::OutOfLine(_)))
    };
    match unfollowed.iter().find(has) {
        None => Ok(()),
        Some(Unfollowed { program, why }) => {
            Err(Error::Region(format!("{name} is a function of {program}, which is not recorded: it {why}")))
        }
    }
}

/// In how many files the function was looked for.
fn nowhere(name: &str, discovery: &Discovery) -> String {
    format!(
        "there is no function {name} in any of the files that ran: {}",
        first_names(&discovery.images, MOST_NAMES)
    )
}

fn unknown(name: &str, near: &[String]) -> Error {
    Error::Region(match near {
        [] => format!("there is no function {name}"),
        near => format!("there is no function {name}; near names: {}", first_names(near, MOST_NAMES)),
    })
}
