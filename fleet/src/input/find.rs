//! Reads `lineup find --json` of a whole program.

use super::{About, Filling};
use crate::json::Json;
use crate::table::Cell;
use crate::tables::{FINDINGS, MEMBERS};

pub(super) fn fill(filling: &mut Filling<'_>, document: Json<'_>) -> Result<About, String> {
    for (rank, finding) in (1_u64..).zip(document.required("findings")?) {
        let row = [
            filling.run.clone(),
            finding.text_cell("subject"),
            finding.text_cell("kind"),
            rank.into(),
            finding.number_cell("stalls"),
            finding.number_cell("gain"),
        ];
        filling.table(&FINDINGS).push(row);
    }
    for owner in document.required("owners")? {
        let mut members = owner.list("members").peekable();
        if members.peek().is_none() {
            member_row(filling, owner, owner, Cell::None);
        }
        members.for_each(|member| member_row(filling, owner, member, member.text_cell("path")));
    }
    let program = document.list("command").next().and_then(Json::own_text).map(str::to_owned);
    Ok(About { source: "find", program, ..About::default() })
}

fn member_row(filling: &mut Filling<'_>, owner: Json<'_>, counted: Json<'_>, member: Cell) {
    let row = [
        filling.run.clone(),
        Cell::None,
        owner.text_cell("name"),
        owner.text_cell("class"),
        member,
        counted.whole_cell("offset"),
        counted.whole_cell("size_bytes"),
        counted.number_cell("accesses"),
        Cell::None,
        Cell::None,
        counted.number_cell("l1_misses"),
        counted.number_cell("l2_misses"),
        counted.number_cell("stall_cycles"),
        Cell::None,
        Cell::None,
    ];
    filling.table(&MEMBERS).push(row);
}
