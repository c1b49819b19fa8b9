//! Names of code that a compiler made at run time, from the map that it wrote for perf: `/tmp/perf-PID.map`.

use std::collections::BTreeMap;

/// Functions by where they begin.
#[derive(Clone, Default, Debug)]
pub struct JitMap {
    functions: BTreeMap<u64, (u64, String)>,
}

impl JitMap {
    /// Reads lines of `START SIZE NAME`, numbers in hexadecimal. What is no such line is passed over; a later line takes the
    /// place of an earlier one, as code does.
    ///
    /// ```
    /// use lineup_samples::jit::JitMap;
    ///
    /// let map = JitMap::parse("7f0010 20 LazyCompile:*f a.js:1\nnothing\n7f0030 10 g\n");
    /// assert_eq!(map.at(0x7f002f), Some("LazyCompile:*f a.js:1"));
    /// assert_eq!((map.at(0x7f0030), map.at(0x7f0040)), (Some("g"), None));
    /// ```
    pub fn parse(text: &str) -> JitMap {
        let line = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let hexadecimal = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
            let (start, size) = (hexadecimal(words.next()?)?, hexadecimal(words.next()?)?);
            Some((start, (start.saturating_add(size), words.next()?.to_owned())))
        };
        JitMap { functions: text.lines().filter_map(line).collect() }
    }

    /// The function that covers an address.
    pub fn at(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(name)
    }
}
