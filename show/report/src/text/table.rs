//! One table, two looks.

use super::TextStyle;
use super::wrap::fitted;
use crate::visible::one_line;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Row, TableStyle, presets};

/// A column's alignment.
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
        table.set_content_arrangement(ContentArrangement::Disabled);
        if let TextStyle::Terminal { columns } = style {
            let (fitting, left_out) = self.fitting(usize::from(columns.max(40)));
            if !left_out.is_empty() {
                return format!(
                    "{}not in {columns} columns: {}\n",
                    fitting.render(style),
                    left_out.join(", ")
                );
            }
        }
        let widths = match style {
            TextStyle::Terminal { columns } => {
                table.load_style(RULED);
                self.widths(usize::from(columns.max(40)))
            }
            TextStyle::Plain => {
                table.load_style(presets::NOTHING);
                vec![usize::MAX; self.columns.len()]
            }
        };
        let cell = |(text, width): (&str, &usize)| fitted(text, *width).join("\n");
        table.set_header(self.columns.iter().map(|(name, _)| name.as_str()).zip(&widths).map(cell));
        for row in &self.rows {
            table.add_row(Row::from(
                row.iter().map(String::as_str).zip(&widths).map(cell).collect::<Vec<_>>(),
            ));
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

impl Table {
    /// The table without the columns of figures that `columns` characters have no room for, from the last one on, and
    /// their names. The first column stays.
    fn fitting(&self, columns: usize) -> (Self, Vec<String>) {
        let (mut table, mut left_out) = (self.clone(), Vec::new());
        loop {
            let needed: usize = table.least().iter().sum();
            let last = table.columns.iter().rposition(|(_, align)| *align == Align::Right);
            let Some(last) = last.filter(|last| *last > 0 && needed > table.room(columns)) else { break };
            left_out.insert(0, table.columns.remove(last).0);
            for row in &mut table.rows {
                row.remove(last);
            }
        }
        (table, left_out)
    }

    /// Characters for all cells of a row. A column takes three more for its margins, the table one.
    fn room(&self, columns: usize) -> usize {
        columns.saturating_sub(3 * self.columns.len() + 1)
    }

    fn cells(&self, index: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |row| row[index].as_str())
    }

    /// The least width of each column: figures stay whole, and so do short words.
    fn least(&self) -> Vec<usize> {
        let longest = |text: &str| text.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
        let least = self.columns.iter().enumerate().map(|(index, (name, align))| {
            let head = longest(name).max(1);
            match align {
                Align::Left => head.max(self.cells(index).map(longest).max().unwrap_or(0).min(LEAST_WORDS)),
                Align::Right => head.max(self.widest(index)),
            }
        });
        least.collect()
    }

    fn widest(&self, index: usize) -> usize {
        self.cells(index).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// The width of each column, so that the table fits into `columns` characters: the widest columns give way, words
    /// before figures.
    fn widths(&self, columns: usize) -> Vec<usize> {
        let all = self.columns.iter().enumerate();
        let mut widths: Vec<usize> =
            all.map(|(index, (name, _))| self.widest(index).max(name.chars().count())).collect();
        let (least, room) = (self.least(), self.room(columns));
        shrink(&mut widths, &least, room);
        shrink(&mut widths, &vec![LEAST_FIGURES; self.columns.len()], room);
        widths
    }
}

/// A column of words shrinks to this many characters, and not below while others can shrink.
const LEAST_WORDS: usize = 12;

/// No column gets narrower than this.
const LEAST_FIGURES: usize = 3;

/// Takes characters from the widest columns, none below its least, until all fit.
fn shrink(widths: &mut [usize], least: &[usize], room: usize) {
    while widths.iter().sum::<usize>() > room {
        let can = widths.iter_mut().zip(least).filter(|(width, least)| **width > **least);
        match can.max_by_key(|(width, _)| **width) {
            Some((width, _)) => *width -= 1,
            None => break,
        }
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

    /// Figures stay whole: the last of them give way, and the table says which.
    #[test]
    fn columns_of_figures_that_have_no_room_are_left_out() {
        let figures = ["stalls", "time", "accesses", "L1 misses", "L2 misses", "used"];
        let words = ["data", "members", "functions"].map(|name| (name, Align::Left));
        let mut table = Table::new(figures.map(|name| (name, Align::Right)).into_iter().chain(words));
        let long = "shop::Cache<unsigned long>::value(unsigned long, unsigned long)";
        table.row(["> 99.9 %", "30.2 %", "1,931,549", "1,298,630", "309,399", "17 B", long, long, long]);
        let text = table.render(TextStyle::Terminal { columns: 80 });
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let (rows, end) = text.split_once("not in 80 columns: ").expect("some have no room");
        assert!(rows.contains("> 99.9 %") && rows.contains("30.2 %"), "{text}");
        for (name, figure) in [("accesses", "1,931,549"), ("L1 misses", "1,298,630"), ("used", "17 B")] {
            assert_ne!(rows.contains(figure), end.contains(name), "{text}");
        }
        assert!(table.render(TextStyle::Terminal { columns: 200 }).lines().count() > 3);
    }

    /// The words of a table between blanks, rules left out.
    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().filter(|word| !word.contains('─')).collect()
    }

    #[test]
    fn no_word_is_split_at_80_columns() {
        let long =
            "std::_Hashtable<std::pair<constcharptr,size_t>,std::allocator<char>>::_M_insert_unique_node";
        let mut table = Table::new([
            ("", Align::Left),
            ("region", Align::Left),
            ("touched (* written)", Align::Left),
            ("true handovers", Align::Right),
            ("calls", Align::Right),
        ]);
        let sentence = format!("{long}, queue.head_of_all_waiting_requests *, queue.tail");
        table.row(["A", long, &sentence, "18,446,744,073,709,551,615", "1,000"]);
        table.row(["B", "short name", "a few words that have to go onto a line of their own", "1", "2"]);
        let own = "a few words that have to go onto a line of their own";
        let given = format!(
            "A B region calls 1 2 true handovers touched (* written) short name 18,446,744,073,709,551,615 1,000 {own} {sentence}"
        );
        for columns in [80, 100, 132] {
            let text = table.render(TextStyle::Terminal { columns });
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{text}");
            let whole_or_cut =
                |word: &&str| given.split(' ').any(|given| given == *word) || word.contains('…');
            assert!(words(&text).iter().all(whole_or_cut), "{text}");
            for word in
                ["true", "handovers", "18,446,744,073,709,551,615", "1,000", "queue.tail", "have", "written)"]
            {
                assert!(words(&text).contains(&word), "{word} in {text}");
            }
        }
    }
}
