//! Names of types as users and compilers spell them.

use lineup_debuginfo::is_meant;

/// The name of a template's instance in a form common to both compilers' spellings: `Ring<short int, 5u>` and
/// `Ring<short, 5>`.
pub(super) fn common_spelling(name: &str) -> String {
    let mut spelling = String::new();
    let mut words: Vec<&str> = Vec::new();
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    for word in name.split_inclusive(|character| !is_part(character)) {
        let end = word.find(|character| !is_part(character)).unwrap_or(word.len());
        let (word, rest) = word.split_at(end);
        words.extend((!word.is_empty()).then_some(word));
        if rest == " " {
            continue;
        }
        spelling += &plain_integer(&words);
        spelling += rest;
        words.clear();
    }
    spelling + &plain_integer(&words)
}

/// The words of a type of integers without redundant ones, in one order.
fn plain_integer(words: &[&str]) -> String {
    const OF_INTEGERS: [&str; 6] = ["unsigned", "signed", "long", "short", "int", "char"];
    if words.is_empty() || !words.iter().all(|word| OF_INTEGERS.contains(word)) {
        return words.iter().map(|word| number(word)).collect::<Vec<_>>().join(" ");
    }
    let is_plain = |word: &&&str| match **word {
        "int" => !words.iter().any(|other| ["long", "short"].contains(other)),
        "signed" => words.contains(&"char"),
        _ => true,
    };
    let mut plain: Vec<&str> = words.iter().filter(is_plain).copied().collect();
    plain.sort_by_key(|word| OF_INTEGERS.iter().position(|known| known == word));
    if plain == ["unsigned"] { "unsigned int".to_owned() } else { plain.join(" ") }
}

/// A number without its suffix.
fn number(word: &str) -> &str {
    let digits = word.trim_end_matches(['u', 'l', 'U', 'L']);
    if digits.parse::<u128>().is_ok() { digits } else { word }
}

/// A name that leaves out parts of the one that debug information has.
pub(super) struct Shortened {
    name: String,
    /// The name up to its last template argument.
    open: Option<String>,
}

impl Shortened {
    pub(super) fn new(wanted: &str) -> Shortened {
        let name = without_hidden(&common_spelling(wanted));
        let open = name.strip_suffix('>').map(|open| format!("{open},"));
        Shortened { name, open }
    }

    /// True when the name is the full name or means it, as [`is_meant`] has it.
    pub(super) fn is_meant(&self, full: &str) -> (bool, bool) {
        if !full.contains(['<', ':', '.', '[']) {
            return (false, false);
        }
        if let Some(found) = self.is_meant_in_go(full) {
            return (false, found);
        }
        if let Some((plain, _)) = full.split_once("!(") {
            return (false, is_meant(plain, &self.name));
        }
        // D writes a point between a module and what it holds.
        if self.name.contains('.') && is_meant(full, &self.name.replace('.', "::")) {
            return (false, true);
        }
        let full = without_hidden(&common_spelling(full));
        let has_more_arguments = || self.open.as_deref().is_some_and(|open| is_beginning(open, &full));
        (full == self.name, is_meant(&full, &self.name) || has_more_arguments())
    }

    /// Whether a full name of Go's form is meant; `None` for any other form.
    fn is_meant_in_go(&self, full: &str) -> Option<bool> {
        let plain = full.split('[').next().unwrap_or(full);
        if plain.contains("::") || plain.contains('<') || !plain.contains('.') {
            return None;
        }
        let is_end = |full: &str| {
            full == self.name || full.strip_suffix(self.name.as_str()).is_some_and(|lead| lead.ends_with('.'))
        };
        Some(is_end(full) || is_end(plain))
    }
}

/// True when a full name, without leading namespaces, begins with `open`, whose last template argument list is still
/// open, and ends with that list.
fn is_beginning(open: &str, full: &str) -> bool {
    let Some(at) = full.find(open) else { return false };
    if at > 0 && !full[..at].ends_with("::") {
        return false;
    }
    let depth_of = |text: &str| text.matches('<').count() as i64 - text.matches('>').count() as i64;
    if depth_of(&full[..at]) != 0 || depth_of(open) != 1 {
        return false;
    }
    let mut depth = 1_i64;
    let rest = &full[at + open.len()..];
    for (place, found) in rest.char_indices() {
        depth += i64::from(found == '<') - i64::from(found == '>');
        if depth == 0 {
            return place + 1 == rest.len();
        }
    }
    false
}

/// A name without namespaces that have none, and without reserved ones such as `std::__cxx11`.
fn without_hidden(name: &str) -> String {
    let name = name.replace("(anonymous namespace)::", "");
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let mut shown = String::new();
    let mut parts = name.split("::").peekable();
    while let Some(part) = parts.next() {
        let last = part.trim_end_matches(is_part).len();
        let is_hidden = parts.peek().is_some() && part[last..].starts_with("__");
        shown += if is_hidden { &part[..last] } else { part };
        if parts.peek().is_some() && !is_hidden {
            shown += "::";
        }
    }
    shown
}

/// Up to `limit` names one of whose parts, without template arguments, is the last part of `wanted`; the shortest
/// first.
pub(super) fn with_part(wanted: &str, names: &[&str], limit: usize) -> Vec<String> {
    let plain = |name: &str| name.split(['<', '[']).next().unwrap_or(name).to_owned();
    let last = plain(wanted);
    let last = last.rsplit([':', '.']).next().unwrap_or_default().trim();
    let has_part = |name: &&&str| plain(name).split([':', '.']).any(|part| part == last);
    let mut found: Vec<&str> = names.iter().filter(has_part).filter(|_| !last.is_empty()).copied().collect();
    found.sort_by_key(|name| (name.len(), *name));
    found.dedup();
    found.truncate(limit);
    found.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{Shortened, common_spelling, with_part};

    #[test]
    fn spellings_of_both_compilers_come_to_one() {
        for (one, other) in [
            ("lab::Ring<short int, 5>", "lab::Ring<short, 5>"),
            ("Map<long unsigned int, Box<unsigned char> >", "Map<unsigned long, Box<unsigned char>>"),
            ("Few<long long unsigned int, 3u>", "Few<unsigned long long, 3>"),
            ("Ref<unsigned int *const>", "Ref<unsigned *const>"),
        ] {
            assert_eq!(common_spelling(one), common_spelling(other));
        }
        for (one, other) in [
            ("Ring<short, 5>", "Ring<short, 6>"),
            ("Ring<signed char>", "Ring<char>"),
            ("Ring<long>", "Ring<long long>"),
            ("Ring<unsigned>", "Ring<int>"),
        ] {
            assert_ne!(common_spelling(one), common_spelling(other));
        }
    }

    #[test]
    fn a_name_may_leave_out_what_sources_leave_out() {
        for (full, wanted) in [
            ("std::vector<bool, std::allocator<bool> >", "std::vector<bool>"),
            ("std::vector<bool, std::allocator<bool> >", "vector<bool>"),
            ("std::__cxx11::list<int, std::allocator<int> >", "std::list<int>"),
            ("std::__1::map<int, long, std::__1::less<int> >", "std::map<int, long>"),
            ("a::(anonymous namespace)::Slot", "a::Slot"),
            ("main.Ring[int8]", "Ring"),
            ("main.Ring[int8]", "main.Ring"),
            ("main.Ring[int8]", "Ring[int8]"),
            ("main.Queue", "Queue"),
            ("shapes::Ring!(short, 3)", "Ring"),
            ("shapes::Slot", "shapes.Slot"),
        ] {
            assert_ne!(Shortened::new(wanted).is_meant(full), (false, false), "{full} {wanted}");
        }
        for (full, wanted) in [
            ("std::vector<bool, std::allocator<bool> >", "std::vector<boo>"),
            ("std::vector<bool, std::allocator<bool> >", "ector<bool>"),
            ("std::vector<int>::iterator<bool>", "std::vector<int>"),
            ("Pair<Box<int>, long>", "Box<int>"),
            ("a::b::Slot", "a::Slot"),
            ("main.Queue", "ueue"),
            ("main.Ring[int8]", "Ring[int]"),
        ] {
            assert_eq!(Shortened::new(wanted).is_meant(full), (false, false), "{full} {wanted}");
        }
    }

    #[test]
    fn names_with_the_part_that_is_wanted_come_first() {
        let names = ["a::v1::Slot", "b::Slot<int>", "crate::run::{async_fn_env#0}", "Slots", "main.Slot"];
        assert_eq!(with_part("a::Slot", &names, 5), ["main.Slot", "a::v1::Slot", "b::Slot<int>"]);
        assert_eq!(with_part("run", &names, 5), ["crate::run::{async_fn_env#0}"]);
        assert_eq!(with_part("Slot<long>", &names, 1), ["main.Slot"]);
        assert!(with_part("Slo", &names, 5).is_empty());
    }
}
