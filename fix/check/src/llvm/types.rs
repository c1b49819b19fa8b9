//! LLVM's types: where the elements of a struct lie.

use super::lexer::{at_commas, group, words};
use std::collections::HashMap;

/// Definitions of named types: their words.
#[derive(Debug, Default)]
pub struct Definitions<'a> {
    /// By name, `%struct.node`.
    pub named: HashMap<&'a str, Vec<&'a str>>,
}

/// An element of a struct: its type and distance in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element<'w, 'a> {
    /// The type's words.
    pub of: &'w [&'a str],
    /// Distance from the start.
    pub at: u64,
    /// Size.
    pub bytes: u64,
}

const DEPTH: usize = 40;

impl<'a> Definitions<'a> {
    /// Reads the definitions of a unit.
    pub fn read(text: &'a str) -> Self {
        let mut named = HashMap::new();
        for line in text.lines().filter(|line| line.starts_with('%')) {
            let words = words(line);
            if let [name, "=", "type", ..] = words[..] {
                named.insert(name, words[3..].to_vec());
            }
        }
        Self { named }
    }

    /// Size and alignment in bytes of a type on a machine of 64 bits.
    pub fn size(&self, of: &[&str]) -> Option<(u64, u64)> {
        self.size_within(of, DEPTH)
    }

    fn size_within(&self, of: &[&str], depth: usize) -> Option<(u64, u64)> {
        let depth = depth.checked_sub(1)?;
        if of.last() == Some(&"*") {
            return Some((8, 8));
        }
        match of {
            [one] if one.starts_with('i') && one[1..].parse::<u64>().is_ok() => {
                let bits: u64 = one[1..].parse().ok()?;
                let bytes = bits.div_ceil(8).next_power_of_two();
                Some((bytes, bytes.min(if bits > 64 { 16 } else { 8 })))
            }
            ["half" | "bfloat"] => Some((2, 2)),
            ["float"] => Some((4, 4)),
            ["double"] => Some((8, 8)),
            ["x86_fp80" | "fp128"] => Some((16, 16)),
            [name] => self.size_within(self.named.get(name)?, depth),
            ["[", count, "x", rest @ .., "]"] => {
                let (bytes, align) = self.size_within(rest, depth)?;
                Some((bytes.checked_mul(count.parse().ok()?)?, align))
            }
            ["<", count, "x", rest @ .., ">"] if count.parse::<u64>().is_ok() => {
                let (bytes, _) = self.size_within(rest, depth)?;
                let bytes = bytes.checked_mul(count.parse().ok()?)?.checked_next_power_of_two()?;
                Some((bytes, bytes))
            }
            ["{", ..] | ["<", "{", ..] => {
                let elements = self.elements_within(of, depth)?;
                let is_packed = of[0] == "<";
                let aligns = elements.iter().map(|element| Some(self.size_within(element.of, depth)?.1));
                let align = aligns.collect::<Option<Vec<u64>>>()?.into_iter().max().unwrap_or(1);
                let align = if is_packed { 1 } else { align };
                let end = elements.last().map_or(0, |element| element.at + element.bytes);
                Some((end.next_multiple_of(align), align))
            }
            _ => None,
        }
    }

    /// The elements of a struct type, or of the struct that a name stands for.
    pub fn elements<'w>(&'w self, of: &'w [&'a str]) -> Option<Vec<Element<'w, 'a>>> {
        self.elements_within(of, DEPTH)
    }

    fn elements_within<'w>(&'w self, of: &'w [&'a str], depth: usize) -> Option<Vec<Element<'w, 'a>>> {
        let of = match of {
            [name] => self.named.get(name)?.as_slice(),
            other => other,
        };
        let (inside, is_packed) = match of {
            ["{", inside @ .., "}"] => (inside, false),
            ["<", "{", inside @ .., "}", ">"] => (inside, true),
            _ => return None,
        };
        let mut at: u64 = 0;
        let mut found = Vec::new();
        for of in at_commas(inside) {
            let (bytes, align) = self.size_within(of, depth)?;
            at = if is_packed { at } else { at.next_multiple_of(align) };
            found.push(Element { of, at, bytes });
            at = at.checked_add(bytes)?;
        }
        Some(found)
    }

    /// Length of a type at the start of some words.
    pub fn length(words: &[&str]) -> Option<usize> {
        let mut length = match *words.first()? {
            "{" | "[" | "<" => group(words)?,
            _ => 1,
        };
        loop {
            match words.get(length) {
                Some(&"*") => length += 1,
                // The parameters of a function's type, with a star behind it.
                Some(&"(") => {
                    let behind = length + group(&words[length..])?;
                    if words.get(behind) != Some(&"*") {
                        return Some(length);
                    }
                    length = behind;
                }
                _ => return Some(length),
            }
        }
    }
}

/// The record that a type's name stands for: `%struct.node.12` is `node`.
pub fn record_name(of: &str) -> Option<&str> {
    let of = of.strip_prefix('%')?.trim_matches('"');
    let (_, name) = of.split_once('.').filter(|(kind, _)| matches!(*kind, "struct" | "class" | "union"))?;
    let name = name.strip_suffix(".base").unwrap_or(name);
    match name.rsplit_once('.') {
        Some((before, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => Some(before),
        _ => Some(name),
    }
}
