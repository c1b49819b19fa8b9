//! One table, two looks.

use super::TextStyle;
use crate::visible::one_line;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Row, TableStyle, presets};

/// How a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// Rules above, below and under the head; none between rows.
const RULED: TableStyle = {
    let rule = LineStyle::new('─', '─', '─', '─');
    TableStyle::new().top_border(rule).header_separator(rule).bottom_border(rule)
};

/// A table of text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        Self {
            columns: columns.into_iter().map(|(name, align)| (name.to_owned(), align)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Characters that steer a terminal are spelled out. Missing cells stay empty, cells beyond
    /// the last column are dropped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let mut row: Vec<String> =
            cells.into_iter().map(|cell| one_line(cell.as_ref()).into_owned()).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines of text, each ended.
    ///
    /// ```
    /// use lineup_report::text::{Align, Table, TextStyle};
    /// let mut table = Table::new([("member", Align::Left), ("size", Align::Right)]);
    /// table.row(["list", "16"]);
    /// assert_eq!(table.render(TextStyle::Plain), "member  size\nlist      16\n");
    /// ```
    pub fn render(&self, style: TextStyle) -> String {
        let mut table = comfy_table::Table::new();
        match style {
            TextStyle::Terminal { columns } => {
                table.load_style(RULED);
                table.set_content_arrangement(ContentArrangement::Dynamic);
                table.set_width(columns.max(40));
            }
            TextStyle::Plain => {
                table.load_style(presets::NOTHING);
                table.set_content_arrangement(ContentArrangement::Disabled);
            }
        }
        table.set_header(self.columns.iter().map(|(name, _)| name));
        for row in &self.rows {
            table.add_row(Row::from(row));
        }
        for (column, (_, align)) in table.column_iter_mut().zip(&self.columns) {
            column.set_cell_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        tidy(&table.to_string(), style)
    }
}

/// Without spaces at the ends of lines and, for a pipe, without the margin.
fn tidy(text: &str, style: TextStyle) -> String {
    let mut tidied = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim_end();
        let line = if style == TextStyle::Plain { line.strip_prefix(' ').unwrap_or(line) } else { line };
        tidied.push_str(line);
        tidied.push('\n');
    }
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([("region", Align::Left), ("lines", Align::Right)]);
        table.row(["adjust", "130"]);
        table.row(["evil\u{1b}[2J\u{202e}", "1"]);
        table
    }

    #[test]
    fn a_pipe_gets_aligned_columns() {
        insta::assert_snapshot!(table().render(TextStyle::Plain), @r#"
        region                 lines
        adjust                   130
        evil\u{1b}[2J\u{202e}      1
        "#);
    }

    #[test]
    fn a_terminal_gets_rules() {
        insta::assert_snapshot!(table().render(TextStyle::Terminal { columns: 60 }), @r#"
        ─────────────────────────────────
          region                  lines
        ─────────────────────────────────
          adjust                    130
          evil\u{1b}[2J\u{202e}       1
        ─────────────────────────────────
        "#);
    }

    #[test]
    fn a_row_of_the_wrong_length_does_no_harm() {
        let mut table = Table::new([("a", Align::Left)]);
        table.row(["1", "2", "3"]);
        table.row(Vec::<String>::new());
        assert_eq!(table.render(TextStyle::Plain), "a\n1\n\n");
    }
}
