//! Functions by address.

use serde::Serialize;

/// Functions of a kernel, as runtime addresses.
#[derive(Clone, Default, Debug)]
pub struct Symbols {
    /// First address, address after the last, name; by first address.
    functions: Vec<(u64, u64, String)>,
}

/// The place of an address: its symbol and the distance from it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct SymbolisedAddress {
    /// The address.
    pub address: u64,
    /// The function; `None` when no symbol covers the address.
    pub function: Option<String>,
    /// Distance from the function's first byte; 0 without one.
    pub offset_bytes: u64,
}

impl SymbolisedAddress {
    /// `function+0x12`, or the address.
    pub fn text(&self) -> String {
        match &self.function {
            Some(function) => format!("{function}+{:#x}", self.offset_bytes),
            None => format!("{:#x}", self.address),
        }
    }

    /// The function's name, or the address.
    pub fn function_text(&self) -> String {
        self.function.clone().unwrap_or_else(|| self.text())
    }
}

impl Symbols {
    /// From addresses, sizes in bytes and names. A function of size 0 reaches up to the next one; of several at one
    /// address the longest is taken.
    pub fn new(functions: impl IntoIterator<Item = (u64, u64, String)>) -> Self {
        let mut all: Vec<(u64, u64, String)> = functions.into_iter().collect();
        all.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
        all.dedup_by_key(|function| function.0);
        let starts: Vec<u64> = all.iter().skip(1).map(|function| function.0).collect();
        let functions = all.into_iter().enumerate().map(|(index, (start, size, name))| {
            let next = starts.get(index).copied().unwrap_or(u64::MAX);
            let end = if size == 0 { next } else { start.saturating_add(size).min(next) };
            (start, end, name)
        });
        Symbols { functions: functions.collect() }
    }

    /// From lines of `address kind name`, as `/proc/kallsyms` and `System.map` have them. Lines of other form and
    /// symbols that are not code are left out.
    pub fn from_map(text: &str) -> Self {
        let function = |line: &str| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let kind = words.next()?;
            let name = words.next()?;
            matches!(kind, "t" | "T" | "w" | "W").then(|| (address, 0, name.to_owned()))
        };
        Symbols::new(text.lines().filter_map(function))
    }

    /// True without symbols.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// These and others.
    pub fn and(self, others: Symbols) -> Self {
        Symbols::new(self.functions.into_iter().chain(others.functions))
    }

    /// The place of an address.
    pub fn place(&self, address: u64) -> SymbolisedAddress {
        match self.index(address).and_then(|index| self.functions.get(index)) {
            Some((start, _, name)) => {
                SymbolisedAddress { address, function: Some(name.clone()), offset_bytes: address - start }
            }
            None => SymbolisedAddress { address, function: None, offset_bytes: 0 },
        }
    }

    /// The number of the function that covers an address.
    pub(crate) fn index(&self, address: u64) -> Option<usize> {
        let index = self.functions.partition_point(|function| function.0 <= address).checked_sub(1)?;
        self.functions.get(index).filter(|function| address < function.1).map(|_| index)
    }

    /// The number of the function that covers all of a range.
    pub(crate) fn index_of_range(&self, from: u64, bytes: u64) -> Option<usize> {
        let index = self.index(from)?;
        (from.saturating_add(bytes) <= self.functions[index].1).then_some(index)
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        self.functions.get(index).map_or("", |function| &function.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_lies_in_the_function_that_covers_it() {
        let symbols =
            Symbols::new([(0x100, 0x20, "a".to_owned()), (0x140, 0, "b".into()), (0x160, 8, "c".into())]);
        assert_eq!(symbols.place(0x11f).text(), "a+0x1f");
        assert_eq!(symbols.place(0x120).text(), "0x120");
        assert_eq!(symbols.place(0x15f).text(), "b+0x1f");
        assert_eq!(symbols.place(0x168).function, None);
        assert_eq!(symbols.place(0xff).function, None);
    }

    #[test]
    fn a_range_over_two_functions_lies_in_neither() {
        let symbols = Symbols::new([(0x100, 0x10, "a".to_owned()), (0x110, 0x40, "b".into())]);
        assert_eq!(symbols.index_of_range(0x100, 32), None);
        assert_eq!(symbols.index_of_range(0x120, 32), Some(1));
    }

    #[test]
    fn a_map_gives_its_code_and_what_is_no_line_is_left_out() {
        let symbols = Symbols::from_map(
            "ffffffff81000000 T _stext\nffffffff81000010 t helper.cold\t[mod]\nffffffff82000000 D jiffies\nnonsense\n",
        );
        assert_eq!(symbols.place(0xffff_ffff_8100_0012).text(), "helper.cold+0x2");
        assert_eq!(symbols.functions.len(), 2);
    }
}
