//! The header of a recording, and the plan of its first run.

use super::regions;
use super::request::RecordRequest;
use super::subject::Subject;
use crate::error::Result;
use lineup_recording::plan::{Plan, Task};
use lineup_recording::{Header, Selection};

/// Accesses kept per call at most: a call with more is cut, which is counted.
const MAX_ACCESSES_PER_CALL: u64 = 4 << 20;

/// The plan of a first run.
pub(super) fn plan(header: Header, subject: &Subject) -> Result<Plan> {
    Ok(Plan { program: subject.started_text()?, ..Plan::new(Task::Discover, header) })
}

/// The header that a request asks for, and notes for the user.
pub(super) fn header(request: &RecordRequest, subject: &Subject) -> Result<(Header, Vec<String>)> {
    // Only shown: the run has its own command.
    let command = request.run.command.iter().map(|word| word.to_string_lossy().into_owned());
    let mut header = Header::new(subject.debug().abi(), command.collect());
    let mut notes = Vec::new();
    header.mode = request.mode;
    header.regions = regions::find(&request.regions, subject, &mut notes)?;
    header.warmup_calls = request.warmup_calls;
    (header.max_calls, header.selection) = match request.stop_after {
        Some(calls) if request.selection != Selection::Threads => {
            (Some(first_calls(calls, request)), Selection::First)
        }
        _ => (request.max_calls, request.selection),
    };
    header.max_accesses = MAX_ACCESSES_PER_CALL;
    header.caches = request.caches.iter().map(ToString::to_string).collect();
    Ok((header, notes))
}

/// The number of first calls that are kept when the program is ended after `stop_after` calls. The program makes some
/// more until it is gone, a different number each time: these are not among the requested calls.
fn first_calls(stop_after: u64, request: &RecordRequest) -> u64 {
    let measured = stop_after.saturating_sub(request.warmup_calls).max(1);
    request.max_calls.map_or(measured, |most| most.min(measured))
}
