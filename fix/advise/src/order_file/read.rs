//! The text of a file of orders → orders.

use super::{Group, Item, WrittenOrder};
use crate::error::AdviseError;

/// The largest alignment that makes sense: a page.
const MOST_ALIGNED_BYTES: u64 = 4096;

/// Reads the text of the file of orders `name`.
///
/// # Errors
/// The error, with its place.
pub fn parse(name: &str, text: &str) -> Result<Vec<WrittenOrder>, AdviseError> {
    let mut reader = Reader { file: name, words: words(text), at: 0 };
    let mut orders = Vec::new();
    while let Some(order) = reader.order()? {
        orders.push(order);
    }
    Ok(orders)
}

/// A word or a sign of the text, with its line.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    line: u32,
}

/// Words, and the signs `,` `:` `{` `}` alone; a comment goes from `#` to the line's end.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut all = Vec::new();
    for (text, line) in text.lines().zip(1..) {
        let mut rest = text.split('#').next().unwrap_or("").trim_start();
        while !rest.is_empty() {
            let end = rest.find(|c: char| c.is_whitespace() || is_sign(c)).unwrap_or(rest.len());
            let end = if end == 0 { 1 } else { end };
            all.push(Word { text: &rest[..end], line });
            rest = rest[end..].trim_start();
        }
    }
    all
}

fn is_sign(c: char) -> bool {
    matches!(c, ',' | ':' | '{' | '}')
}

struct Reader<'t> {
    file: &'t str,
    words: Vec<Word<'t>>,
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> &'t str {
        self.words.get(self.at).map_or("", |word| word.text)
    }

    /// The line of the next word, or of the last one.
    fn line(&self) -> u32 {
        self.words.get(self.at).or(self.words.last()).map_or(1, |word| word.line)
    }

    fn wrong(&self, what: &str) -> AdviseError {
        let found = if self.peek().is_empty() { "the end" } else { self.peek() };
        self.error(format!("{what}, not {found}"))
    }

    fn error(&self, what: String) -> AdviseError {
        AdviseError::OrderSyntax { name: self.file.to_owned(), line: self.line(), what }
    }

    /// Passes over a sign, if it comes next.
    fn passes(&mut self, sign: &str) -> bool {
        let is_next = self.peek() == sign;
        self.at += usize::from(is_next);
        is_next
    }

    /// The next word, which is no sign.
    fn word(&mut self, wanted: &str) -> Result<&'t str, AdviseError> {
        let word = self.peek();
        if word.is_empty() || word.starts_with(is_sign) {
            return Err(self.wrong(wanted));
        }
        self.at += 1;
        Ok(word)
    }

    /// `TYPE: item, item, …`, until no comma follows.
    fn order(&mut self) -> Result<Option<WrittenOrder>, AdviseError> {
        if self.at == self.words.len() {
            return Ok(None);
        }
        let line = self.line();
        let mut name = self.word("the name of a type")?;
        if name == "struct" {
            name = self.word("the name of a type")?;
        }
        if !self.passes(":") {
            return Err(self.wrong("write TYPE: member, member, …: a colon"));
        }
        let mut order = WrittenOrder {
            type_name: name.to_owned(),
            file: self.file.to_owned(),
            line,
            items: Vec::new(),
            groups: Vec::new(),
        };
        loop {
            self.item(&mut order)?;
            // A comma behind the last one does no harm.
            if !self.passes(",") || self.begins_an_order() {
                return Ok(Some(order));
            }
        }
    }

    /// True at the end, and where a colon follows the next word, or the one behind `struct`.
    fn begins_an_order(&self) -> bool {
        let after = self.at + 1 + usize::from(self.peek() == "struct");
        self.at == self.words.len() || self.words.get(after).is_some_and(|word| word.text == ":")
    }

    /// A member or a group, with the annotations before it.
    fn item(&mut self, order: &mut WrittenOrder) -> Result<(), AdviseError> {
        let align_bytes = self.alignment()?;
        let opens = self.words.get(self.at + 2).is_some_and(|word| word.text == "{");
        if !(self.peek() == "group" && opens) {
            let name = self.word("the name of a member")?.to_owned();
            order.items.push(Item { name, align_bytes });
            return Ok(());
        }
        self.at += 1;
        let name = self.word("the name of a group")?.to_owned();
        self.at += 1;
        let begin = order.items.len();
        while !self.passes("}") {
            let align_bytes = self.alignment()?;
            let member = self.word("the name of a member, or }")?.to_owned();
            order.items.push(Item { name: member, align_bytes });
            if !self.passes(",") && self.peek() != "}" {
                return Err(self.wrong("a comma between two members, or }"));
            }
        }
        if order.items.len() == begin {
            return Err(self.error(format!("the group {name} has no member")));
        }
        order.groups.push(Group { name, align_bytes, members: begin..order.items.len() });
        Ok(())
    }

    /// `align(N)`.
    fn alignment(&mut self) -> Result<Option<u64>, AdviseError> {
        let given = self.peek().strip_prefix("align(").and_then(|rest| rest.strip_suffix(')'));
        let Some(given) = given else { return Ok(None) };
        let bytes = given.parse().ok().filter(|bytes: &u64| bytes.is_power_of_two());
        match bytes.filter(|bytes| *bytes <= MOST_ALIGNED_BYTES) {
            Some(bytes) => {
                self.at += 1;
                Ok(Some(bytes))
            }
            None => Err(self.wrong("align(N) with a power of two of at most 4096")),
        }
    }
}
