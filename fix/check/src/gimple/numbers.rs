//! Numbers that temporary names are computed from.

use std::collections::HashMap;

/// Numbers of temporary names.
#[derive(Debug, Default)]
pub(super) struct Numbers<'a> {
    /// A multiple of the number, which stands on the line.
    pub(super) multiples: HashMap<&'a str, (i128, usize)>,
    /// At least the number.
    pub(super) least: HashMap<&'a str, i128>,
}

impl<'a> Numbers<'a> {
    /// Keeps the number that a temporary name is computed from.
    pub(super) fn learn(&mut self, name: &'a str, sign: &str, number: i128, line: usize) {
        match sign {
            "*" => drop(self.multiples.insert(name, (number, line))),
            "+" if number > 0 => drop(self.least.insert(name, number)),
            _ => {}
        }
    }
}
