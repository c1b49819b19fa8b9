//! Reads the results of a study: its `report.json`.

use super::{About, Filling};
use crate::json::Json;
use crate::table::Cell;
use crate::tables::VERDICTS;

pub(super) fn fill(filling: &mut Filling<'_>, document: Json<'_>) -> Result<About, String> {
    let title = document.text_cell("title");
    for region in document.required("regions")? {
        for footprint in region.list("footprints").filter(|one| one.text("kind").as_deref() == Some("data")) {
            let mean = |side: &str| footprint.get(side).number("mean");
            let (before, after) = (mean("before"), mean("after"));
            let ratio =
                before.zip(after).filter(|(before, _)| *before > 0.0).map(|(before, after)| after / before);
            let row = [
                filling.run.clone(),
                title.clone(),
                "data_lines".into(),
                region.text_cell("name"),
                footprint.whole_cell("line_bytes"),
                before.into(),
                after.into(),
                ratio.into(),
                Cell::None,
                Cell::None,
                Cell::None,
            ];
            filling.table(&VERDICTS).push(row);
        }
    }
    let time = document.get("proof").get("time");
    if time.number("ratio").is_some() {
        let median = |side: &str| median(time.numbers(side));
        let row = [
            filling.run.clone(),
            title,
            "time".into(),
            Cell::None,
            Cell::None,
            median("before_ns").into(),
            median("after_ns").into(),
            time.number_cell("ratio"),
            time.number_cell("ratio_low"),
            time.number_cell("ratio_high"),
            time.text_cell("verdict"),
        ];
        filling.table(&VERDICTS).push(row);
    }
    Ok(About { source: "study", data_model: document.text("data_model"), ..About::default() })
}

/// The middle value, or the mean of both.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values.get(middle).copied(),
        _ => Some((values.get(middle.checked_sub(1)?)? + values.get(middle)?) / 2.0),
    }
}
