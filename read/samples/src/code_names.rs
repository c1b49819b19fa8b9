//! Names of code that are in no program's file: for code that a compiler made at run time, and for the kernel.

use std::collections::BTreeMap;

/// Functions by where they begin.
#[derive(Clone, Default, Debug)]
pub struct CodeNames {
    functions: BTreeMap<u64, (u64, String)>,
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
}

impl CodeNames {
    /// Reads the map that a compiler at run time wrote for perf, `/tmp/perf-PID.map`: lines of `START SIZE NAME`,
    /// numbers in hexadecimal. Other lines are passed over; a later line replaces an earlier one, as its code does.
    ///
    /// ```
    /// use lineup_samples::code_names::CodeNames;
    ///
    /// let map = CodeNames::of_jit_map("7f0010 20 LazyCompile:*f a.js:1\nnothing\n7f0030 10 g\n");
    /// assert_eq!(map.at(0x7f002f), Some("LazyCompile:*f a.js:1"));
    /// assert_eq!((map.at(0x7f0030), map.at(0x7f0040)), (Some("g"), None));
    /// ```
    pub fn of_jit_map(text: &str) -> CodeNames {
        let line = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let (start, size) = (hexadecimal(words.next()?)?, hexadecimal(words.next()?)?);
            Some((start, (start.saturating_add(size), words.next()?.to_owned())))
        };
        CodeNames { functions: text.lines().filter_map(line).collect() }
    }

    /// Reads a kernel's symbols as `/proc/kallsyms` has them. Functions are identified by their distance from `_text`,
    /// each up to the next one. Modules are left out. The result is empty when addresses are hidden, or `_text` is
    /// missing.
    ///
    /// ```
    /// use lineup_samples::code_names::CodeNames;
    ///
    /// let kernel = "ffff0000 T _text\nffff0040 t schedule\nffff0100 D data\nffff0080 T tick\nffff4000 t f [mod]\n";
    /// let kernel = CodeNames::of_kallsyms(kernel);
    /// assert_eq!((kernel.at(0x7f), kernel.at(0x80)), (Some("schedule"), Some("tick")));
    /// assert_eq!(CodeNames::of_kallsyms("0 T _text\n0 T tick\n").at(0), None);
    /// ```
    pub fn of_kallsyms(text: &str) -> CodeNames {
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            let (address, kind, name) =
                (hexadecimal(words.next()?)?, words.next()?, words.next()?.to_owned());
            let is_code = matches!(kind, "t" | "T" | "w" | "W");
            (is_code && address > 0 && words.next().is_none()).then_some((address, name))
        };
        let mut all: Vec<(u64, String)> = text.lines().filter_map(line).collect();
        // Of several symbols at one address, the first that the kernel lists.
        all.sort_by_key(|(address, _)| *address);
        let Some(start) = all.iter().find(|(_, name)| name == "_text").map(|(address, _)| *address) else {
            return CodeNames::default();
        };
        all.retain(|(address, _)| *address >= start);
        all.dedup_by_key(|(address, _)| *address);
        let ends: Vec<u64> =
            all.iter().skip(1).map(|(address, _)| address - start).chain([u64::MAX]).collect();
        let functions =
            all.into_iter().zip(ends).map(|((address, name), end)| (address - start, (end, name)));
        CodeNames { functions: functions.collect() }
    }

    /// Reads the functions of a module from the symbols of the kernel that runs, `/proc/kallsyms`, identified by their
    /// distance from the module's load address. The result is empty when this kernel has the module at another address.
    ///
    /// ```
    /// use lineup_samples::code_names::CodeNames;
    ///
    /// let kernel = "ffff4000 t first\t[mod]\nffff4040 T second\t[mod]\n\
    ///               ffff4800 d data\t[mod]\nffff9000 t f\t[other]\n";
    /// let module = CodeNames::of_module(kernel, "mod", 0xffff_4000..0xffff_5000);
    /// assert_eq!((module.at(0x3f), module.at(0x40)), (Some("first"), Some("second")));
    /// assert_eq!(CodeNames::of_module(kernel, "mod", 0xffff_6000..0xffff_7000).at(0), None);
    /// ```
    pub fn of_module(kallsyms: &str, module: &str, loaded: std::ops::Range<u64>) -> CodeNames {
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            let (address, kind, name) =
                (hexadecimal(words.next()?)?, words.next()?, words.next()?.to_owned());
            let own = words.next()?.strip_prefix('[')?.strip_suffix(']')? == module;
            let is_code = matches!(kind, "t" | "T" | "w" | "W");
            (own && is_code).then_some((address, name))
        };
        let mut all: Vec<(u64, String)> = kallsyms.lines().filter_map(line).collect();
        if all.iter().any(|(address, _)| !loaded.contains(address)) {
            return CodeNames::default();
        }
        all.sort_by_key(|(address, _)| *address);
        all.dedup_by_key(|(address, _)| *address);
        let ends: Vec<u64> = all.iter().skip(1).map(|(address, _)| *address).chain([loaded.end]).collect();
        let functions = all.into_iter().zip(ends);
        let functions = functions.map(|((at, name), end)| (at - loaded.start, (end - loaded.start, name)));
        CodeNames { functions: functions.collect() }
    }

    /// The function that covers a place.
    pub fn at(&self, place: u64) -> Option<&str> {
        let (_, (end, name)) = self.functions.range(..=place).next_back()?;
        (place < *end).then_some(name)
    }
}
