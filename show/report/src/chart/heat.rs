//! A grid of values, darker where they are greater.

use maud::{Markup, html};

/// The values of the map, row by row; `None` where nothing was observed.
#[derive(Clone, PartialEq, Debug)]
pub struct Heat {
    /// The columns' name.
    pub x_name: String,
    /// The columns' values.
    pub x: Vec<String>,
    /// The rows' name.
    pub y_name: String,
    /// The rows' values.
    pub y: Vec<String>,
    /// The values.
    pub rows: Vec<Vec<Option<f64>>>,
    /// The value with the darkest colour; greater ones are no darker.
    pub greatest: f64,
}

const CELL: f64 = 74.0;
const ROW: f64 = 30.0;
const LEFT: f64 = 96.0;
const TOP: f64 = 36.0;

/// The grid, each cell with its value. Shades follow the square root, so that small values differ too.
pub fn heat_map(title: &str, heat: &Heat) -> Markup {
    let width = LEFT + CELL * heat.x.len() as f64;
    let height = TOP + ROW * heat.y.len() as f64;
    let x = |column: usize| LEFT + CELL * column as f64;
    let y = |row: usize| TOP + ROW * row as f64;
    html! {
        svg.chart style=(format!("max-width:{width}px")) viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(title) {
            title { (title) }
            text.axis x="0" y="12" { (heat.y_name) " ↓  " (heat.x_name) " →" }
            @for (column, value) in heat.x.iter().enumerate() {
                text.tick x=(x(column) + CELL / 2.0) y=(TOP - 8.0) text-anchor="middle" { (value) }
            }
            @for (row, values) in heat.rows.iter().enumerate() {
                text.tick x=(LEFT - 8.0) y=(y(row) + ROW / 2.0 + 4.0) text-anchor="end" { (heat.y.get(row).map_or("", String::as_str)) }
                @for (column, value) in values.iter().enumerate() {
                    rect.heat x=(x(column)) y=(y(row)) width=(CELL) height=(ROW) fill-opacity=(shade(*value, heat.greatest)) {}
                    text.cell x=(x(column) + CELL / 2.0) y=(y(row) + ROW / 2.0 + 4.0) text-anchor="middle" {
                        (value.map_or("not observed".to_string(), |value| format!("{value:.3}")))
                    }
                }
            }
        }
    }
}

/// From 0 to 0.6, so that text on the darkest cell keeps a contrast of more than 4.5 on light and dark paper.
fn shade(value: Option<f64>, greatest: f64) -> String {
    let share = value.filter(|_| greatest > 0.0).map_or(0.0, |value| (value / greatest).clamp(0.0, 1.0));
    format!("{:.3}", 0.6 * share.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_its_value_and_its_shade() {
        let heat = Heat {
            x_name: "shares".into(),
            x: vec!["2".into(), "64".into()],
            y_name: "domains".into(),
            y: vec!["16".into()],
            rows: vec![vec![Some(4.0), None]],
            greatest: 4.0,
        };
        let svg = heat_map("t", &heat).into_string();
        assert!(svg.contains("fill-opacity=\"0.600\"") && svg.contains("fill-opacity=\"0.000\""), "{svg}");
        assert!(svg.contains("4.000") && svg.contains("not observed"), "{svg}");
    }

    #[test]
    fn shades_keep_to_their_range() {
        assert_eq!(shade(Some(9.0), 4.0), "0.600");
        assert_eq!(shade(Some(1.0), 4.0), "0.300");
        assert_eq!(shade(Some(1.0), 0.0), "0.000");
    }
}
