//! The sign with which a pointer is moved: libclang does not distinguish `+` from `-`, and shows a macro's text
//! nowhere.

use crate::tree::Operator;
use std::collections::{BTreeSet, HashMap};

/// The macros of a unit by name, each with the text of all its definitions.
#[derive(Default, Debug)]
pub(crate) struct Macros {
    bodies: HashMap<Vec<u8>, Vec<u8>>,
}

/// The token after a piece of an expression.
enum Next<'t> {
    /// A word, and the text behind it.
    Word(&'t [u8], &'t [u8]),
    /// Another token that the operand of a subtraction may contain.
    Other(&'t [u8]),
    Minus,
    End,
}

impl Macros {
    /// The macros that these files define, whether they do so under the unit's conditions or not.
    pub(crate) fn of(files: Vec<String>) -> Macros {
        let mut macros = Macros::default();
        for file in files {
            macros.add(&std::fs::read(file).unwrap_or_default());
        }
        macros
    }

    fn add(&mut self, text: &[u8]) {
        let mut lines = text.split(|&byte| byte == b'\n');
        while let Some(line) = lines.next() {
            let Some(rest) = line.trim_ascii_start().strip_prefix(b"#") else { continue };
            let Some(rest) = rest.trim_ascii_start().strip_prefix(b"define") else { continue };
            let (name, body) = word(rest.trim_ascii_start());
            let known = self.bodies.entry(name.to_vec()).or_default();
            known.extend(body);
            let mut last = line;
            while last.trim_ascii_end().ends_with(b"\\") {
                let Some(next) = lines.next() else { break };
                known.extend(next);
                last = next;
            }
        }
    }

    /// True when an expression that moves a pointer and starts here is a subtraction for certain.
    pub(super) fn is_subtraction(&self, text: &[u8]) -> bool {
        let (name, rest) = word(text);
        match self.bodies.contains_key(name) {
            // Its operator is in the macro, in a macro named there, or in the arguments.
            true => {
                let given = behind_brackets(rest).map_or(rest, |behind| &rest[..rest.len() - behind.len()]);
                let mut seen = BTreeSet::new();
                !has_plus(given)
                    && self.only_subtracts(name, &mut seen)
                    && self.names_only_such(given, &mut seen)
            }
            false => self.minus_follows(text),
        }
    }

    /// The text of the macro that stands here.
    pub(super) fn body(&self, text: &[u8]) -> Option<&[u8]> {
        self.bodies.get(word(text).0).map(Vec::as_slice)
    }

    /// True when the macro that stands here, or one that it names, may write its arguments out as text or join them
    /// with other words. `assert` does so only when the program ends.
    pub(super) fn spells_arguments(&self, text: &[u8]) -> bool {
        let mut seen = BTreeSet::new();
        let mut names = vec![word(text).0];
        while let Some(name) = names.pop() {
            let Some(body) = self.bodies.get(name).filter(|_| seen.insert(name) && name != b"assert") else {
                continue;
            };
            if body.contains(&b'#') {
                return true;
            }
            names.extend(body.split(|byte| !is_word(*byte)).filter(|name| !name.is_empty()));
        }
        false
    }

    /// True of the name of a macro of which every definition is a number, another such macro, or stands in brackets.
    pub(crate) fn give_values(&self, text: &[u8]) -> bool {
        let (name, rest) = word(text);
        let mut seen = BTreeSet::new();
        rest.is_empty() && !name.first().is_none_or(u8::is_ascii_digit) && self.gives_value(name, &mut seen)
    }

    fn gives_value<'m>(&'m self, name: &'m [u8], seen: &mut BTreeSet<&'m [u8]>) -> bool {
        if name.first().is_some_and(u8::is_ascii_digit) {
            return true;
        }
        let Some(body) = self.bodies.get(name) else { return false };
        if !seen.insert(name) {
            return true;
        }
        let mut rest = body.trim_ascii();
        let mut units = 0;
        while !rest.is_empty() {
            units += 1;
            rest = match (behind_brackets(rest), word(rest)) {
                (Some(behind), _) if rest.starts_with(b"(") => behind,
                (_, (unit, behind)) if !unit.is_empty() && self.gives_value(unit, seen) => behind,
                _ => return false,
            }
            .trim_ascii_start();
        }
        units > 0
    }

    /// True when a macro that this text names may write more than an expression.
    pub(crate) fn write_statements(&self, text: &[u8]) -> bool {
        const WORDS: [&[u8]; 11] = [
            b"if",
            b"else",
            b"for",
            b"while",
            b"do",
            b"switch",
            b"case",
            b"return",
            b"goto",
            b"break",
            b"continue",
        ];
        let words = |text: &'_ [u8]| -> Vec<Vec<u8>> {
            let words = text.split(|byte| !is_word(*byte)).filter(|word| !word.is_empty());
            words.map(<[u8]>::to_vec).collect()
        };
        let mut seen = BTreeSet::new();
        let mut names = words(text);
        while let Some(name) = names.pop() {
            let Some(body) = self.bodies.get(&name) else { continue };
            if !seen.insert(name) {
                continue;
            }
            let inner = words(body);
            let is_more = body.iter().any(|byte| b";{}".contains(byte));
            if is_more || inner.iter().any(|word| WORDS.contains(&word.as_slice())) {
                return true;
            }
            names.extend(inner);
        }
        false
    }

    /// The operator of the macro that stands here, when its text has exactly one that joins two numbers.
    pub(super) fn operator(&self, text: &[u8]) -> Option<Operator> {
        let body = self.bodies.get(word(text).0)?;
        let (mut found, mut compares) = (None, false);
        let mut at = 0;
        while let Some(rest) = body.get(at..).filter(|rest| !rest.is_empty()) {
            let (operator, length) = match rest {
                [b'-', b'>', ..] => (None, 2),
                [b'=' | b'!', b'=', ..] => {
                    compares = true;
                    (None, 2)
                }
                [b'<', b'<', ..] => (Some(Operator::ShiftLeft), 2),
                [b'+', ..] => (Some(Operator::Plus), 1),
                [b'-', ..] => (Some(Operator::Minus), 1),
                [b'%', ..] => (Some(Operator::Remainder), 1),
                [b'&', b' ', b'0'..=b'9', ..] => (Some(Operator::And), 1),
                [b'&' | b'|' | b'^' | b'/' | b'<' | b'>', ..] => return None,
                _ => (None, 1),
            };
            at += length;
            match (found, operator) {
                (Some(known), Some(new)) if known != new => return None,
                (_, Some(new)) => found = Some(new),
                _ => {}
            }
        }
        found.or(compares.then_some(Operator::Equal))
    }

    /// The operation on an address of the macro that stands here, when it only takes some of the address's lowest bits.
    pub(super) fn masks(&self, text: &[u8]) -> Option<Operator> {
        let (name, rest) = word(text);
        let own = self.bodies.get(name)?;
        if let Some(operator) = Self::mask_in(own) {
            return Some(operator);
        }
        // `assert(IS_ALIGNED(x->v, 16))`.
        let given = behind_brackets(rest).map_or(&[][..], |behind| &rest[..rest.len() - behind.len()]);
        let words = given.split(|byte| !is_word(*byte)).filter(|word| !word.is_empty());
        let mut found = words.filter_map(|word| self.bodies.get(word)).map(|body| Self::mask_in(body));
        let first = found.next()??;
        found.all(|other| other == Some(first)).then_some(first)
    }

    fn mask_in(body: &[u8]) -> Option<Operator> {
        let count = |byte: u8| body.iter().filter(|&&known| known == byte).count();
        let is_double = body.windows(2).any(|pair| pair == b"&&");
        match (count(b'&'), count(b'%')) {
            _ if has_plus(body) || body.contains(&b'~') || is_double => None,
            (1, 0) => Some(Operator::And),
            (0, 1) => Some(Operator::Remainder),
            _ => None,
        }
    }

    /// True when neither a macro nor those that it names contain a `+`.
    fn only_subtracts<'m>(&'m self, name: &'m [u8], seen: &mut BTreeSet<&'m [u8]>) -> bool {
        let Some(body) = self.bodies.get(name) else { return true };
        !seen.insert(name) || (!has_plus(body) && self.names_only_such(body, seen))
    }

    fn names_only_such<'m>(&'m self, text: &'m [u8], seen: &mut BTreeSet<&'m [u8]>) -> bool {
        let is_separator = |byte: &u8| !is_word(*byte);
        text.split(is_separator).filter(|name| !name.is_empty()).all(|name| self.only_subtracts(name, seen))
    }

    fn minus_follows(&self, mut text: &[u8]) -> bool {
        loop {
            text = match next(text) {
                Next::Minus => return true,
                Next::End => return false,
                Next::Word(name, _) if self.bodies.contains_key(name) => return false,
                Next::Word(_, rest) | Next::Other(rest) => rest,
            };
        }
    }
}

fn next(text: &[u8]) -> Next<'_> {
    match text {
        [b'-', b'>', rest @ ..] | [b'-', b'-', rest @ ..] | [b'+', b'+', rest @ ..] => Next::Other(rest),
        [b'-', ..] => Next::Minus,
        [b'(' | b'[', ..] => behind_brackets(text).map_or(Next::End, Next::Other),
        [byte, ..] if is_word(*byte) => {
            let (name, rest) = word(text);
            Next::Word(name, rest)
        }
        [byte, rest @ ..] if byte.is_ascii_whitespace() || b".&*".contains(byte) => Next::Other(rest),
        _ => Next::End,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The word at the start, and the rest.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| !is_word(byte)).unwrap_or(text.len());
    text.split_at(end)
}

fn has_plus(text: &[u8]) -> bool {
    text.contains(&b'+')
}

/// The text behind the bracket that closes the one at the start.
fn behind_brackets(text: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'"' | b'\'' | b';' => return None,
            _ => {}
        }
        if depth == 0 {
            return text.get(at + 1..).filter(|_| at > 0);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn macros() -> Macros {
        let mut macros = Macros::default();
        macros.add(
            b"#define ROOM (sizeof(void *))\n#define extra(L)\t((void *)((char *)(L) - ROOM))\n\
              #define NEXT(p) ((char *)(p) + 8)\n# define BACK(p) \\\n  (NEXT(p) \\\n - 16)\n#define PLUS +\n\
              #define REG(n) (*(int *)(base + (n)))\n#define BOTH(n) ((n) + 4 - 2)\n#define LOW(p) ((long)(p) & 15)\n\
              #define IS(n) (size == (n))\n",
        );
        macros
    }

    #[test]
    fn a_minus_that_is_written_is_one() {
        for text in ["(char *)(L) - 8;", "p-8", "a->b[i - 1].c - 8", "&x->b - n", "f(a, b) - 1"] {
            assert!(macros().is_subtraction(text.as_bytes()), "{text}");
        }
        for text in [
            "(char *)(L) + 8",
            "p)-8",
            "a->b[i - 1] + c - 8",
            "p++ + 1",
            "(a",
            "",
            "p = q - 8",
            "p PLUS 4 - 1",
        ] {
            assert!(!macros().is_subtraction(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_macro_with_one_operator_has_that() {
        assert_eq!(macros().operator(b"REG(8);"), Some(Operator::Plus));
        assert_eq!(macros().operator(b"LOW(&x->v) == 0"), Some(Operator::And));
        assert_eq!(macros().operator(b"IS(8)"), Some(Operator::Equal));
        assert_eq!(macros().operator(b"BOTH(8)"), None);
        assert_eq!(macros().operator(b"a + 8"), None);
    }

    #[test]
    fn a_macro_that_takes_the_lowest_bits_of_an_address_masks_it() {
        let mut macros = macros();
        macros.add(
            b"#define IS_ALIGNED(p, a) (((uintptr_t)(p) & ((a) - 1)) == 0)\n#define REST(p, a) ((long)(p) % (a))\n\
              #define UP(p, a) (((long)(p) + (a) - 1) & ~((a) - 1))\n#define BOTH_SET(p, a) ((p) && (a) - 1)\n",
        );
        assert_eq!(macros.masks(b"IS_ALIGNED(x->v, 16)"), Some(Operator::And));
        assert_eq!(macros.masks(b"REST(x->v, 16)"), Some(Operator::Remainder));
        for text in [&b"UP(p, 16)"[..], b"BOTH_SET(p, q)", b"x & 15"] {
            assert_eq!(macros.masks(text), None);
        }
    }

    #[test]
    fn a_macros_minus_is_one_where_no_plus_can_be_meant() {
        assert!(macros().is_subtraction(b"extra(L1), 3 + 4"));
        for text in ["extra(L + 1)", "NEXT(p) - 8", "BACK(p)", "extra(NEXT(p))"] {
            assert!(!macros().is_subtraction(text.as_bytes()), "{text}");
        }
    }
}
