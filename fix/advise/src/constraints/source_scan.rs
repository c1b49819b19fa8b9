//! Uses of a type in the source that limit the moves of its members.

use crate::constraints::constraint::{Binding, Constraint};
use crate::text::declaration::statement_end;
use crate::text::language::SourceLanguage;
use crate::text::lex::Lexed;
use crate::text::parsed_file::Parsed;
use crate::text::sources::Sources;
use std::collections::BTreeMap;
use std::ops::Range;

/// The type and members to search for.
pub(crate) struct ScanTarget<'a> {
    /// The names of the type: tag and typedefs.
    pub(crate) names: &'a [String],
    /// Its members' names.
    pub(crate) members: &'a [&'a str],
    /// Names of those that are pointers.
    pub(crate) pointers: &'a [&'a str],
    /// Names of types that its objects begin as: the type of the first member, and types that begin
    /// with a member of the same name.
    pub(crate) begins_as: &'a [String],
}

/// Every constraint found, in order of file and line. Constraints without names forbid any change.
pub(crate) fn scan(sources: &Sources, wanted: &ScanTarget<'_>) -> Vec<Binding> {
    let mut bindings = Vec::new();
    for (path, text) in sources.iter() {
        if sources.language(path) == SourceLanguage::Assembly {
            bindings.extend(assembly(path, text, wanted));
            continue;
        }
        let Some(file) = sources.parsed(path).filter(|file| may_bind(file, wanted)) else { continue };
        let lexed = file.lexed();
        let bodies = function_bodies(&lexed);
        let variables = Variables::of(&lexed, &bodies, wanted.names);
        let begins = Variables::of(&lexed, &bodies, wanted.begins_as);
        let scanner = Scanner { path, lexed: &lexed, wanted, variables, begins };
        bindings.extend((0..lexed.tokens.len()).filter_map(|index| scanner.at(index)));
    }
    bindings.sort();
    bindings.dedup();
    bindings
}

const OFFSETS: [&str; 2] = ["offsetof", "__builtin_offsetof"];
const MEMORY_CALLS: [&str; 4] = ["memcpy", "memmove", "memset", "memcmp"];
const IO_CALLS: [&str; 12] = [
    "fread", "fwrite", "read", "write", "pread", "pwrite", "send", "recv", "sendto", "recvfrom", "ioctl",
    "mmap",
];

/// False when the file has nothing for certain that [`Scanner`] looks for.
fn may_bind(file: &Parsed, wanted: &ScanTarget<'_>) -> bool {
    let names = |all: &[String]| all.iter().any(|name| file.may_name(name));
    names(wanted.names)
        && (OFFSETS.iter().chain(&MEMORY_CALLS).chain(&IO_CALLS).any(|call| file.may_name(call))
            || names(wanted.begins_as)
            || file.may_measure_parts())
}

/// Assembly that names the type, or `type_member`.
fn assembly(path: &str, text: &str, wanted: &ScanTarget<'_>) -> Option<Binding> {
    let word_starts_with = |word: &str| wanted.names.iter().any(|name| word.starts_with(name.as_str()));
    let is_separator = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let line = text.lines().position(|line| line.split(is_separator).any(word_starts_with))?;
    Some(Binding::new(Constraint::Assembly).at(path, u32::try_from(line + 1).unwrap_or(u32::MAX)))
}

/// Functions, each from its parameters to the end of its body.
fn function_bodies(lexed: &Lexed<'_>) -> Vec<Range<usize>> {
    let end = lexed.tokens.len();
    let mut bodies: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < end {
        let body = || {
            let close = lexed.closing(at, end).filter(|_| lexed.str(at) == "(")?;
            let mut open = lexed.next_code(close + 1, end)?;
            while matches!(lexed.str(open), "const" | "noexcept" | "override" | "final") {
                open = lexed.next_code(open + 1, end)?;
            }
            lexed.closing(open, end).filter(|_| lexed.str(open) == "{")
        };
        let body = body();
        bodies.extend(body.map(|close| at..close));
        at = body.unwrap_or(at) + 1;
    }
    bodies
}

/// A declaration of a name with one of the types: `T x`, `struct T *x`, `const T *const x[3]`.
struct Variable {
    is_pointer: bool,
    /// The function that it is local to, as far as that is certain.
    within: Option<Range<usize>>,
}

/// The declarations by name.
struct Variables<'t>(BTreeMap<&'t str, Vec<Variable>>);

impl<'t> Variables<'t> {
    fn of(lexed: &Lexed<'t>, bodies: &[Range<usize>], types: &[String]) -> Variables<'t> {
        let mut all: BTreeMap<&'t str, Vec<Variable>> = BTreeMap::new();
        for index in 0..lexed.tokens.len() {
            if !lexed.is_word(index) || !types.iter().any(|name| name == lexed.str(index)) {
                continue;
            }
            let (mut at, mut is_pointer) = (index + 1, false);
            while let Some(next) = lexed.next_code(at, lexed.tokens.len()) {
                at = next + 1;
                match lexed.str(next) {
                    "*" => is_pointer = true,
                    "&" | "const" | "restrict" | "volatile" => {}
                    name if lexed.is_word(next) => {
                        let within = bodies.iter().find(|body| body.contains(&index)).cloned();
                        all.entry(name).or_default().push(Variable { is_pointer, within });
                        break;
                    }
                    _ => break,
                }
            }
        }
        Variables(all)
    }

    /// The declarations that a name may be of at a token.
    fn visible(&self, word: &str, index: usize) -> impl Iterator<Item = &Variable> {
        let all = self.0.get(word).map_or(&[][..], Vec::as_slice);
        all.iter().filter(move |one| one.within.as_ref().is_none_or(|body| body.contains(&index)))
    }
}

struct Scanner<'s, 't> {
    path: &'s str,
    lexed: &'s Lexed<'t>,
    wanted: &'s ScanTarget<'s>,
    variables: Variables<'t>,
    begins: Variables<'t>,
}

impl Scanner<'_, '_> {
    fn at(&self, index: usize) -> Option<Binding> {
        match self.lexed.punctuation(index) {
            Some(b'(') => return self.cast(index),
            Some(b'-') => return self.address_difference(index),
            _ if !self.lexed.is_word(index) => return None,
            _ => {}
        }
        match self.lexed.str(index) {
            word if OFFSETS.contains(&word) => self.offsetof(index),
            word if MEMORY_CALLS.contains(&word) => self.memory_call(index),
            word if IO_CALLS.contains(&word) => self.io_call(index),
            _ => None,
        }
    }

    fn binding(&self, constraint: Constraint, index: usize) -> Binding {
        let line = self.lexed.tokens.get(index).map_or(1, |token| self.lexed.line_at(token.start()));
        Binding::new(constraint).at(self.path, line)
    }

    fn arguments(&self, word: usize) -> Option<(Range<usize>, Vec<Range<usize>>)> {
        let end = self.lexed.tokens.len();
        let open = self.lexed.next_code(word + 1, end).filter(|&open| self.lexed.str(open) == "(")?;
        let close = self.lexed.closing(open, end)?;
        let mut arguments = Vec::new();
        let (mut start, mut at) = (open + 1, open + 1);
        while at < close {
            match self.lexed.str(at) {
                "(" | "[" | "{" => at = self.lexed.closing(at, close)?,
                "," => {
                    arguments.push(start..at);
                    start = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        arguments.push(start..close);
        Some((open..close + 1, arguments))
    }

    /// Whether a token is a name declared with the type.
    fn is_variable(&self, index: usize) -> bool {
        self.variables.visible(self.lexed.str(index), index).next().is_some()
    }

    fn has_variable(&self, tokens: &Range<usize>) -> bool {
        tokens.clone().any(|index| self.lexed.is_word(index) && self.is_variable(index))
    }

    fn has_word(&self, tokens: &Range<usize>, is_wanted: impl Fn(&str) -> bool) -> bool {
        tokens.clone().any(|index| self.lexed.is_word(index) && is_wanted(self.lexed.str(index)))
    }

    fn names_type(&self, word: &str) -> bool {
        self.wanted.names.iter().any(|name| name == word)
    }

    fn member_in(&self, tokens: &Range<usize>) -> Option<&str> {
        self.member_at(tokens).map(|index| self.lexed.str(index))
    }

    fn member_at(&self, tokens: &Range<usize>) -> Option<usize> {
        tokens.clone().find(|&index| self.wanted.members.contains(&self.lexed.str(index)))
    }

    /// `&x->m[i]` and `&x->m->n` of a pointer `m` lie behind it, outside of the object.
    fn is_behind_pointer(&self, member: usize) -> bool {
        let next = |at: usize| self.lexed.next_code(at, self.lexed.tokens.len());
        let follows = |at: usize| next(at).map_or("", |next| self.lexed.str(next));
        let is_followed = match follows(member + 1) {
            "[" => true,
            "-" => next(member + 1).is_some_and(|minus| follows(minus + 1) == ">"),
            _ => false,
        };
        is_followed && self.wanted.pointers.contains(&self.lexed.str(member))
    }

    /// `offsetof` alone follows the compiler. Arithmetic with it measures spans; assertions hold it.
    fn offsetof(&self, index: usize) -> Option<Binding> {
        let (call, arguments) = self.arguments(index)?;
        let [ty, member, ..] = arguments.as_slice() else { return None };
        if !self.has_word(ty, |word| self.names_type(word)) {
            return None;
        }
        let member = self.member_in(member)?.to_string();
        let statement = self.statement(index);
        if self
            .has_word(&statement, |word| matches!(word, "static_assert" | "_Static_assert" | "BUILD_BUG_ON"))
        {
            return Some(self.binding(Constraint::AssertedOffset, index).on([member]));
        }
        let after =
            self.lexed.next_code(call.end, self.lexed.tokens.len()).map_or("", |next| self.lexed.str(next));
        let before = self.lexed.previous_code(index);
        let takes_from_size =
            before.is_some_and(|minus| self.lexed.str(minus) == "-" && self.ends_sizeof(minus));
        let in_memory_call =
            self.has_word(&statement, |word| matches!(word, "memcpy" | "memset" | "memmove"));
        if after == "-" || takes_from_size || in_memory_call {
            return Some(
                self.binding(Constraint::MemorySpan, index).because(format!("offsetof of {member}")),
            );
        }
        let is_last = self.wanted.members.last() == Some(&member.as_str());
        match (after == "+" || before.is_some_and(|before| self.lexed.str(before) == "+"), is_last) {
            (true, true) => Some(self.binding(Constraint::FlexibleArrayLast, index).on([member])),
            (true, false) if !self.is_added_to_offset_in_other(index, &call) => {
                Some(self.binding(Constraint::Offsetof, index).because(format!("offset of {member}")))
            }
            _ => None,
        }
    }

    /// True of a sum of this offset and one in another type, and of nothing else: one of the two is a member of the
    /// other, and the sum follows the compiler as each of them does.
    fn is_added_to_offset_in_other(&self, index: usize, call: &Range<usize>) -> bool {
        let statement = self.statement(index);
        let is_sign = |at: Option<usize>| at.is_some_and(|at| matches!(self.lexed.str(at), "+" | "-" | "*"));
        let next = |at: usize| self.lexed.next_code(at, statement.end);
        let mut others =
            statement.clone().filter(|word| *word != index && self.lexed.str(*word) == "offsetof");
        others.any(|other| {
            let Some((at, arguments)) = self.arguments(other) else { return false };
            let is_other =
                arguments.first().is_some_and(|ty| !self.has_word(ty, |word| self.names_type(word)));
            let (first, second) = if other > index { (index, other) } else { (other, index) };
            let [first_end, second_end] = if other > index { [call.end, at.end] } else { [at.end, call.end] };
            let is_sum = next(first_end)
                .is_some_and(|plus| self.lexed.str(plus) == "+" && next(plus + 1) == Some(second));
            is_other && is_sum && !is_sign(self.lexed.previous_code(first)) && !is_sign(next(second_end))
        })
    }

    fn ends_sizeof(&self, minus: usize) -> bool {
        let start = self.statement(minus).start;
        self.has_word(&(start..minus), |word| word == "sizeof")
            && self.lexed.previous_code(minus).is_some_and(|before| self.lexed.str(before) == ")")
    }

    /// The tokens of the statement around `index`.
    fn statement(&self, index: usize) -> Range<usize> {
        let ends = |index: &usize| matches!(self.lexed.str(*index), ";" | "{" | "}");
        let start = (0..index).rev().find(ends).map_or(0, |before| before + 1);
        let end = (index..self.lexed.tokens.len()).find(ends).unwrap_or(self.lexed.tokens.len());
        start..statement_end(self.lexed, index).unwrap_or(end).max(end)
    }

    /// True when `tokens` hold `sizeof(T)`, or a variable declared with the type. The pair `&p`, `sizeof p` of a
    /// pointer is about the pointer's own bytes.
    fn measures_type(&self, tokens: &Range<usize>) -> bool {
        let is_of_type = |index: usize| {
            let word = self.lexed.str(index);
            self.names_type(word) || (self.is_variable(index) && !self.is_pointer_itself(index))
        };
        self.has_word(tokens, |word| word == "sizeof")
            && tokens.clone().any(|index| self.lexed.is_word(index) && is_of_type(index))
    }

    /// `&p` as an argument, `sizeof p` or `sizeof(p)`, for a name that stands for pointers alone.
    fn is_pointer_itself(&self, index: usize) -> bool {
        let next =
            self.lexed.next_code(index + 1, self.lexed.tokens.len()).map_or("", |at| self.lexed.str(at));
        let previous = |at: usize| self.lexed.previous_code(at).map(|at| (at, self.lexed.str(at)));
        let declared = || self.variables.visible(self.lexed.str(index), index);
        let are_pointers = declared().next().is_some() && declared().all(|one| one.is_pointer);
        let is_alone = are_pointers && matches!(next, "," | ")");
        let is_taken = match previous(index) {
            Some((_, "sizeof")) => true,
            Some((open, "(")) => previous(open).is_some_and(|(_, word)| word == "sizeof"),
            Some((address, "&")) => previous(address).is_some_and(|(_, word)| matches!(word, "(" | ",")),
            _ => false,
        };
        is_alone && is_taken
    }

    fn io_call(&self, index: usize) -> Option<Binding> {
        let (call, _) = self.arguments(index)?;
        let is_method = self.lexed.previous_code(index).is_some_and(|before| self.lexed.str(before) == ">");
        let member = self.member_in(&call).filter(|_| self.has_variable(&call));
        (self.measures_type(&call) && !is_method && member.is_none()).then(|| {
            self.binding(Constraint::CrossesAbi, index).because(format!("{}()", self.lexed.str(index)))
        })
    }

    /// `memset(&x->m, 0, sizeof a + sizeof b)` and the like.
    fn memory_call(&self, index: usize) -> Option<Binding> {
        let (_, arguments) = self.arguments(index)?;
        let size = arguments.last()?;
        let from_member = arguments.iter().take(arguments.len() - 1).find_map(|argument| {
            let takes_address = argument.clone().any(|token| self.lexed.str(token) == "&");
            let of_type = self.has_variable(argument);
            let member = self.member_at(argument).filter(|_| takes_address && of_type)?;
            (!self.is_behind_pointer(member)).then(|| self.lexed.str(member))
        })?;
        let is_arrow = |token: usize| self.lexed.str(token + 1) == ">";
        let is_span = size.clone().any(|token| match self.lexed.str(token) {
            "+" => true,
            "-" => !is_arrow(token),
            _ => false,
        });
        is_span.then(|| {
            self.binding(Constraint::MemorySpan, index).because(format!("from member {from_member}"))
        })
    }

    /// `(char *)&x->b - (char *)&x->a`.
    fn address_difference(&self, minus: usize) -> Option<Binding> {
        let after: Vec<&str> = (minus + 1..minus + 9).map(|index| self.lexed.str(index)).collect();
        let amp = after.iter().position(|word| *word == "&")?;
        let is_cast = after.first() == Some(&"(") && after.get(amp.checked_sub(1)?) == Some(&")");
        let statement = self.statement(minus);
        let of_type = self.variables.visible(after.get(amp + 1)?, minus).next().is_some();
        (is_cast && of_type && self.member_in(&statement).is_some())
            .then(|| self.binding(Constraint::MemorySpan, minus).because("difference of members' addresses"))
    }

    /// `(struct base *)x` for an object of the type, `(T *)x` for an object of the type it begins with.
    fn cast(&self, open: usize) -> Option<Binding> {
        let close = self.lexed.closing(open, (open + 8).min(self.lexed.tokens.len()))?;
        let inside = open + 1..close;
        let is_pointer = self.lexed.str(close.checked_sub(1)?) == "*";
        let operand = self.lexed.next_code(close + 1, self.lexed.tokens.len())?;
        let is_address = self.lexed.str(operand) == "&";
        let operand = if is_address { operand + 1 } else { operand };
        let follows = self.lexed.str(operand + 1);
        let whole = !matches!(follows, "." | "-" | "[" | "(")
            || (follows == "-" && self.lexed.str(operand + 2) != ">");
        if !is_pointer || !whole || !self.lexed.is_word(operand) {
            return None;
        }
        let word = self.lexed.str(operand);
        let up = self.has_word(&inside, |word| self.wanted.begins_as.iter().any(|name| name == word))
            && self.is_variable(operand);
        let down = self.has_word(&inside, |word| self.names_type(word))
            && self.begins.visible(word, operand).next().is_some();
        let first = self.wanted.members.first()?;
        (up || down)
            .then(|| self.binding(Constraint::FirstMemberIsObject, open).on([*first]).because("a cast"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(Constraint, Vec<String>)> {
        let sources = Sources::new([("a.c".to_string(), text.to_string())]);
        let wanted = ScanTarget {
            names: &["rec".to_string(), "rec_t".to_string()],
            members: &["base", "len", "far", "tail"],
            pointers: &["far"],
            begins_as: &["node".to_string()],
        };
        scan(&sources, &wanted).into_iter().map(|binding| (binding.constraint, binding.names)).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn plain_uses_forbid_nothing() {
        assert!(
            found("struct rec r; size_t o = offsetof(struct rec, len); memcpy(&r, &q, sizeof r);").is_empty()
        );
        assert!(
            found(
                "rec_t *r = (rec_t *)((char *)p - offsetof(rec_t, len)); memset(&r->len, 0, sizeof r->len);"
            )
            .is_empty()
        );
        assert!(found("struct other o; fwrite(&o, sizeof(struct other), 1, f); int rec_size;").is_empty());
    }

    #[test]
    fn spans_of_members_are_seen_in_every_spelling() {
        for text in [
            "memset(&r, 0, offsetof(struct rec, tail));",
            "n = offsetof(rec_t, tail) - offsetof(rec_t, len);",
            "n = sizeof(rec_t) - offsetof(rec_t, len);",
            "rec_t *r; memcpy(&r->len, q, sizeof a + sizeof b);",
            "rec_t *r; n = (char *)&r->tail - (char *)&r->len;",
        ] {
            assert_eq!(found(text).first().map(|found| found.0), Some(Constraint::MemorySpan), "{text}");
        }
    }

    #[test]
    fn a_local_of_one_function_is_none_of_another() {
        for text in [
            "void a(void) { struct other r; fread(&r, sizeof r, 1, f); }\nvoid b(void) { rec_t r = { 0 }; }",
            "long hot(const rec_t *p) { return p->len; }\nvoid c(void) { int p[2]; write(p[1], &j, sizeof j); }",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
        for text in [
            "static rec_t r;\nvoid a(void) { fread(&r, sizeof r, 1, f); }",
            "void a(void) { rec_t r; if (f) { fread(&r, sizeof r, 1, f); } }",
            "void a(rec_t r) { fwrite(&r, sizeof r, 1, f); }",
            "void T::a(rec_t &r) const { fwrite(&r, sizeof r, 1, f); }",
            "struct o { rec_t r; };\nvoid a(struct o *o) { fwrite(&o->r, sizeof o->r, 1, f); }",
            "A::A(rec_t &r) : b(1), c(2) { fwrite(&r, sizeof r, 1, f); }",
        ] {
            assert_eq!(found(text).first().map(|found| found.0), Some(Constraint::CrossesAbi), "{text}");
        }
    }

    #[test]
    fn memory_behind_a_pointer_is_no_span_of_the_object() {
        assert!(found("rec_t *r; memset(&r->far[n], 0, sizeof *q * (m - n));").is_empty());
        assert!(found("rec_t *r; memset(&r->far->len, 0, m + n);").is_empty());
        for text in ["&r->far, 0, m - n", "&r->len[n], 0, m - n", "&r->base.far - 1, 0, m + n"] {
            assert_eq!(found(&format!("rec_t *r; memset({text});")).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_tail_that_is_allocated_past_the_end_stays_last() {
        assert_eq!(
            found("p = malloc(offsetof(rec_t, tail) + n);"),
            [(Constraint::FlexibleArrayLast, names(&["tail"]))]
        );
        assert_eq!(found("n = offsetof(rec_t, len) + 4;"), [(Constraint::Offsetof, names(&[]))]);
    }

    #[test]
    fn an_offset_in_a_member_follows_the_member() {
        assert!(found("n = offsetof(rec_t, len) + offsetof(struct other, low);").is_empty());
        assert!(found("f(offsetof(struct outer, inner) + offsetof(struct rec, len));").is_empty());
        for text in [
            "n = offsetof(rec_t, len) + offsetof(struct other, low) + 4;",
            "n = 4 + offsetof(struct outer, inner) + offsetof(struct rec, len);",
            "n = offsetof(rec_t, len) + offsetof(rec_t, len);",
            "n = offsetof(rec_t, len) + (4 + offsetof(struct other, low));",
        ] {
            assert_eq!(found(text).first().map(|found| found.0), Some(Constraint::Offsetof), "{text}");
        }
    }

    #[test]
    fn files_and_sockets_are_an_abi() {
        assert_eq!(found("fwrite(p, sizeof(struct rec), 1, f);"), [(Constraint::CrossesAbi, names(&[]))]);
        assert_eq!(found("rec_t r; read(fd, &r, sizeof r);"), [(Constraint::CrossesAbi, names(&[]))]);
        assert!(found("rec_t r; read(fd, r.tail, sizeof r.tail);").is_empty(), "only a member crosses");
    }

    #[test]
    fn a_pointer_that_is_sent_is_no_object() {
        assert!(found("rec_t *r = x, *k; write(p[1], &r, sizeof r); read(p[0], &k, sizeof k);").is_empty());
        assert!(found("struct rec *r; write(p[1], &r, sizeof(r));").is_empty());
        for text in [
            "rec_t *r; write(p[1], r, sizeof r);",
            "rec_t *r; write(p[1], &r, sizeof *r);",
            "rec_t *r; write(p[1], &r[1], sizeof(r[1]));",
            "rec_t *r; write(p[1], &r, sizeof(rec_t));",
            "void f(void) { rec_t *r; } void g(void) { rec_t r; write(p[1], &r, sizeof r); }",
        ] {
            assert_eq!(found(text), [(Constraint::CrossesAbi, names(&[]))], "{text}");
        }
    }

    #[test]
    fn casts_in_both_directions_hold_the_first_member() {
        let first = [(Constraint::FirstMemberIsObject, names(&["base"]))];
        assert_eq!(found("void f(rec_t *r) { g((struct node *)r); }"), first);
        assert_eq!(found("void f(struct node *n) { rec_t *r = (rec_t *)n; }"), first);
        assert!(found("void f(rec_t *r) { g((struct node *)r->other); }").is_empty());
    }

    #[test]
    fn an_assertion_on_an_offset_pins_the_member() {
        assert_eq!(
            found("_Static_assert(offsetof(struct rec, len) == 8, \"len\");"),
            [(Constraint::AssertedOffset, names(&["len"]))]
        );
    }

    #[test]
    fn assembly_that_names_the_type_forbids_change() {
        let sources = Sources::new([("a.S".to_string(), "\n mov rec_len(%rdi), %eax\n".to_string())]);
        let wanted =
            ScanTarget { names: &["rec".to_string()], members: &["len"], pointers: &[], begins_as: &[] };
        let found = scan(&sources, &wanted);
        assert_eq!(found[0].to_string(), "assembly uses it at a.S:2");
    }
}
