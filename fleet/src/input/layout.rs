//! Reads layouts of types: `lineup layout --json`.

use super::{About, Filling};
use crate::json::Json;
use crate::table::Cell;
use crate::tables::LAYOUTS;

pub(super) fn fill(filling: &mut Filling<'_>, document: Json<'_>) -> Result<About, String> {
    for ty in document.required("types")? {
        for (index, member) in ty.required("members")?.enumerate() {
            let name = member.text("name").unwrap_or_else(|| "(anonymous)".into());
            let row = [
                filling.run.clone(),
                filling.labels.build_id.clone().into(),
                ty.text_cell("name"),
                ty.text_cell("kind"),
                ty.whole_cell("size_bytes"),
                Cell::None,
                Cell::None,
                index.into(),
                name.into(),
                member.text_cell("type"),
                member.whole_cell("offset_bits"),
                member.whole_cell("bit_size"),
                member.whole_cell("size_bytes"),
                Cell::None,
            ];
            filling.table(&LAYOUTS).push(row);
        }
    }
    Ok(About { source: "layout", program: document.text("file"), ..About::default() })
}
