//! A view on a terminal's cells.

use crate::column::Fit;
use crate::row::{Look, Row};
use crate::view::{List, View};
use lineup_report::visible::shortened;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// What the keys do, longest first: the first that fits is shown.
const KEYS: [&str; 3] = [
    "↑↓ PgUp PgDn move · Enter opens · Esc back · Tab or 1–4 lists · s sorts calls · q quits",
    "↑↓ move · Enter · Esc · Tab · s sort · q",
    "Tab ↑↓ Enter q",
];

/// What is said of a list without rows.
const NOTHING: &str = "nothing was recorded here";

/// Draws a view, and gives how many rows of its list fit.
pub fn draw(view: &View, frame: &mut Frame<'_>) -> usize {
    let notes = view.notes();
    // Where there is little room, the list has it.
    let shown = if frame.area().height > 12 { notes.len().min(2) as u16 } else { 0 };
    let parts = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(shown),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [tabs, heading, told, titles, list, keys] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(lists(view, tabs.width)), tabs);
    let width = usize::from(frame.area().width).max(3);
    let fits = |text: &str| shortened(text, width);
    frame.render_widget(Paragraph::new(fits(&view.heading())), heading);
    frame.render_widget(
        Paragraph::new(notes.iter().map(|note| Line::raw(fits(note))).collect::<Vec<_>>()),
        told,
    );
    let fit = Fit::of(view.columns(), list.width);
    frame.render_widget(Paragraph::new(column_titles(view, fit)), titles);
    rows(view, fit, frame, list);
    let known = KEYS.into_iter().find(|text| text.chars().count() <= usize::from(keys.width));
    let faint = Style::new().add_modifier(Modifier::DIM);
    frame.render_widget(Paragraph::new(Span::styled(known.unwrap_or_default(), faint)), keys);
    usize::from(list.height)
}

/// The names of the lists; the open one is in brackets as well, for who sees no colours.
fn lists(view: &View, width: u16) -> Line<'static> {
    let is_narrow = width < 48;
    let one = |(number, list): (usize, &List)| {
        let name = if is_narrow { list.name().to_owned() } else { format!("{} {}", number + 1, list.name()) };
        if *list == view.list() {
            Span::styled(format!("[{name}]"), Style::new().add_modifier(Modifier::BOLD))
        } else {
            Span::raw(format!(" {name} "))
        }
    };
    Line::from(List::ALL.iter().enumerate().map(one).collect::<Vec<_>>())
}

fn column_titles(view: &View, fit: Fit) -> Line<'static> {
    let mut text = padded("", fit.name);
    for column in &view.columns()[..fit.shown] {
        text.push_str(&format!(" {:>width$}", column.title, width = usize::from(column.width)));
    }
    Line::styled(text, Style::new().add_modifier(Modifier::UNDERLINED))
}

fn rows(view: &View, fit: Fit, frame: &mut Frame<'_>, area: Rect) {
    if view.rows() == 0 {
        return frame.render_widget(Paragraph::new(shortened(NOTHING, usize::from(area.width).max(3))), area);
    }
    let first = view.first_shown(usize::from(area.height));
    let shown = (first..first + usize::from(area.height)).map_while(|index| Some((index, view.row(index)?)));
    let lines: Vec<Line<'_>> =
        shown.map(|(index, row)| line(view, fit, &row, index == view.chosen())).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn line(view: &View, fit: Fit, row: &Row, is_chosen: bool) -> Line<'static> {
    let has_cells = !row.cells.is_empty();
    let room = if has_cells { fit.name } else { u16::MAX };
    let mut text =
        padded(&shortened(&row.name, usize::from(room).max(3)), if has_cells { fit.name } else { 0 });
    for (cell, column) in row.cells.iter().zip(&view.columns()[..fit.shown]) {
        let width = usize::from(column.width);
        text.push_str(&format!(" {:>width$}", shortened(cell, width)));
    }
    let style = match row.look {
        Look::Plain => Style::new(),
        Look::Heading | Look::Used => Style::new().add_modifier(Modifier::BOLD),
        Look::Faint => Style::new().add_modifier(Modifier::DIM),
    };
    let style =
        if is_chosen { style.remove_modifier(Modifier::DIM).add_modifier(Modifier::REVERSED) } else { style };
    Line::styled(text, style)
}

/// The text with spaces up to a width in cells: some characters take two.
fn padded(text: &str, width: u16) -> String {
    let taken = Span::raw(text).width();
    format!("{text}{}", " ".repeat(usize::from(width).saturating_sub(taken)))
}
