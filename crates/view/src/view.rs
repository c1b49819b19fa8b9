//! Which list is open, which row is chosen, and what a key does.

use crate::column::Column;
use crate::row::{self, Row};
use crate::subject::{CallRow, Subject};
use lineup_report::visible::one_line;
use std::cmp::Reverse;

/// A list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum List {
    /// The functions whose calls were recorded.
    Functions,
    /// Types and variables.
    Types,
    /// The lines of one type or variable.
    Lines,
    /// The calls.
    Calls,
}

impl List {
    /// All lists, in the order in which Tab goes through them.
    pub const ALL: [List; 4] = [List::Functions, List::Types, List::Lines, List::Calls];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            List::Functions => "Functions",
            List::Types => "Types",
            List::Lines => "Lines",
            List::Calls => "Calls",
        }
    }
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The row above.
    Up,
    /// The row below.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// The first row.
    First,
    /// The last row.
    Last,
    /// The next list.
    Next,
    /// The list before.
    Previous,
    /// A list by its place.
    List(List),
    /// Into the row: from a function to its calls, from a type to its lines.
    Enter,
    /// Back to where Enter was pressed, and else to all calls.
    Back,
    /// Another order of the calls.
    Sort,
    /// Leave.
    Quit,
}

/// How calls are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    AsMade,
    MostDataLines,
    MostInstructions,
}

/// A subject, and where in it the user is.
pub struct View {
    subject: Subject,
    list: List,
    /// The chosen row of each list.
    chosen: [usize; 4],
    /// The type whose lines are shown, with their rows.
    owner: usize,
    lines: Vec<Row>,
    /// The function whose calls alone are shown.
    only: Option<usize>,
    order: Order,
    /// The calls that are shown, as positions.
    calls: Vec<usize>,
}

impl View {
    /// The first list of a subject.
    pub fn new(subject: Subject) -> View {
        let lines = subject.maps.first().map(row::lines).unwrap_or_default();
        let calls = (0..subject.calls.len()).collect();
        View {
            subject,
            list: List::Functions,
            chosen: [0; 4],
            owner: 0,
            lines,
            only: None,
            order: Order::AsMade,
            calls,
        }
    }

    /// The list that is open.
    pub fn list(&self) -> List {
        self.list
    }

    /// What the open list is of.
    pub fn heading(&self) -> String {
        let name = |name: &str| one_line(name).into_owned();
        let rows = self.rows();
        match self.list {
            List::Functions => {
                format!("{}: {rows} functions, lines of 64 bytes per call", name(&self.subject.title))
            }
            List::Types => format!("{rows} types and variables, most accessed first"),
            List::Lines => match self.subject.maps.get(self.owner) {
                Some(map) => format!("lines of {}", row::owner(map).name),
                None => "no type was named".to_owned(),
            },
            List::Calls => {
                let of = self.only.and_then(|only| self.subject.regions.get(only));
                let of = of.map_or_else(String::new, |region| format!(" of {}", name(&region.name)));
                let order = match self.order {
                    Order::AsMade => "as they were made",
                    Order::MostDataLines => "most data lines first",
                    Order::MostInstructions => "most instructions first",
                };
                format!("{rows} calls{of}, {order}")
            }
        }
    }

    /// What has to be known of the subject, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        self.subject.notes.iter().map(|note| one_line(note).into_owned()).collect()
    }

    /// The columns of the open list, beside names.
    pub fn columns(&self) -> &'static [Column] {
        match self.list {
            List::Functions => row::FUNCTIONS,
            List::Types => row::TYPES,
            List::Lines => row::LINES,
            List::Calls => row::CALLS,
        }
    }

    /// How many rows the open list has.
    pub fn rows(&self) -> usize {
        match self.list {
            List::Functions => self.subject.regions.len(),
            List::Types => self.subject.maps.len(),
            List::Lines => self.lines.len(),
            List::Calls => self.calls.len(),
        }
    }

    /// A row of the open list.
    pub fn row(&self, index: usize) -> Option<Row> {
        match self.list {
            List::Functions => self.subject.regions.get(index).map(|region| row::function(index, region)),
            List::Types => self.subject.maps.get(index).map(row::owner),
            List::Lines => self.lines.get(index).cloned(),
            List::Calls => {
                let call = self.subject.calls.get(*self.calls.get(index)?)?;
                Some(row::call(call, &self.subject))
            }
        }
    }

    /// The chosen row of the open list.
    pub fn chosen(&self) -> usize {
        self.chosen[self.list as usize]
    }

    /// The first row that is shown where `rows` fit: the chosen one is among them.
    pub fn first_shown(&self, rows: usize) -> usize {
        let rows = rows.max(1);
        let last = self.rows().saturating_sub(rows);
        self.chosen().saturating_sub(rows / 2).min(last)
    }

    /// Does what a key asks for, where `page` rows fit; false when the view is left.
    pub fn press(&mut self, key: Key, page: usize) -> bool {
        match key {
            Key::Up => self.choose(self.chosen().saturating_sub(1)),
            Key::Down => self.choose(self.chosen() + 1),
            Key::PageUp => self.choose(self.chosen().saturating_sub(page.max(1))),
            Key::PageDown => self.choose(self.chosen() + page.max(1)),
            Key::First => self.choose(0),
            Key::Last => self.choose(usize::MAX),
            Key::Next => self.step(1),
            Key::Previous => self.step(List::ALL.len() - 1),
            Key::List(list) => self.list = list,
            Key::Enter => self.enter(),
            Key::Back => self.back(),
            Key::Sort => self.sort(),
            Key::Quit => return false,
        }
        true
    }

    fn choose(&mut self, row: usize) {
        self.chosen[self.list as usize] = row.min(self.rows().saturating_sub(1));
    }

    fn step(&mut self, by: usize) {
        self.list = List::ALL[(self.list as usize + by) % List::ALL.len()];
    }

    fn enter(&mut self) {
        match self.list {
            List::Functions if self.chosen() < self.subject.regions.len() => {
                self.only = Some(self.chosen());
                self.list = List::Calls;
                self.put_calls();
            }
            List::Types => {
                let Some(map) = self.subject.maps.get(self.chosen()) else { return };
                (self.owner, self.lines) = (self.chosen(), row::lines(map));
                self.list = List::Lines;
                self.choose(0);
            }
            List::Functions | List::Lines | List::Calls => {}
        }
    }

    fn back(&mut self) {
        match self.list {
            List::Lines => self.list = List::Types,
            List::Calls if self.only.take().is_some() => {
                self.put_calls();
                self.list = List::Functions;
            }
            List::Functions | List::Types | List::Calls => self.list = List::Functions,
        }
    }

    fn sort(&mut self) {
        if self.list != List::Calls {
            return;
        }
        self.order = match self.order {
            Order::AsMade => Order::MostDataLines,
            Order::MostDataLines => Order::MostInstructions,
            Order::MostInstructions => Order::AsMade,
        };
        self.put_calls();
    }

    /// Selects and orders the calls anew.
    fn put_calls(&mut self) {
        let calls = &self.subject.calls;
        let is_shown = |call: &CallRow| self.only.is_none_or(|only| call.region == only);
        self.calls = (0..calls.len()).filter(|index| is_shown(&calls[*index])).collect();
        match self.order {
            Order::AsMade => {}
            Order::MostDataLines => self.calls.sort_by_key(|index| Reverse(calls[*index].data_lines)),
            Order::MostInstructions => self.calls.sort_by_key(|index| Reverse(calls[*index].instructions)),
        }
        self.chosen[List::Calls as usize] = 0;
    }
}
