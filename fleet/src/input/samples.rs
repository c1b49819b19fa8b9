//! Reads `lineup explain --json`: a summary of perf's samples.

use super::{About, Filling};
use crate::json::Json;
use crate::table::Cell;
use crate::tables::{MEMBERS, REGIONS};

pub(super) fn fill(filling: &mut Filling<'_>, document: Json<'_>) -> Result<About, String> {
    if document.flag("is_whole") == Some(false) {
        return Err("damaged: the samples were cut off, so that shares are of an unknown whole".into());
    }
    let events = document.required("events")?.map(|event| event.whole("samples").unwrap_or(0));
    // The shares of one event are comparable: those of the one with most samples.
    let most = (0_u64..).zip(events).max_by_key(|(at, samples)| (*samples, u64::MAX - at)).map(|(at, _)| at);
    let of_most = document.required("functions")?.filter(|function| function.whole("event") == most);
    for function in of_most {
        let (samples, share) = (function.whole_cell("samples"), function.number_cell("share"));
        let mut row = std::array::from_fn(|_| Cell::None);
        row[..2].clone_from_slice(&[filling.run.clone(), function.text_cell("name")]);
        row[13..].clone_from_slice(&[samples, share]);
        filling.table(&REGIONS).push::<15>(row);
    }
    for owner in document.required("data")? {
        owner.list("members").for_each(|member| member_row(filling, owner, member));
    }
    let files = document.list("files");
    let program = files.max_by_key(|file| file.whole("samples").unwrap_or(0));
    Ok(About {
        source: "samples",
        host: document.text("host"),
        build_id: program.and_then(|file| file.text("build_id")),
        program: program.and_then(|file| file.text("path")),
        machine: document.text("architecture"),
        ..About::default()
    })
}

fn member_row(filling: &mut Filling<'_>, owner: Json<'_>, member: Json<'_>) {
    let path = member.text("path").filter(|path| !path.is_empty());
    let row = [
        filling.run.clone(),
        Cell::None,
        owner.text_cell("name"),
        owner.text_cell("kind"),
        path.into(),
        member.whole_cell("offset"),
        member.whole_cell("size_bytes"),
        member.number_cell("samples"),
        member.whole_cell("loads"),
        member.whole_cell("stores"),
        Cell::None,
        Cell::None,
        Cell::None,
        member.whole_cell("weight"),
        member.whole_cell("hitm"),
    ];
    filling.table(&MEMBERS).push(row);
}
