//! The names and kinds that one declaration inside a struct or class declares.
//!
//! The names that debug info knows guide the reading: in `spinlock_t lock __aligned_somehow;` the member is `lock`, for
//! any meaning of the macro.

use crate::text::attributes::{self, Meaning};
use crate::text::lex::{Kind, Lexed};
use std::ops::Range;

/// The kind of a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// Data members.
    Data,
    /// Bit-fields, unnamed ones included.
    Bits,
    /// An anonymous struct or union, or a `struct_group`.
    Anonymous,
    /// Something with parentheses or a lone word: a macro that may declare members.
    Macro,
    /// A type declared inside.
    NestedType,
    /// A method, friend, using, typedef, …
    Function,
    /// A static member.
    Static,
}

/// The shape of a declaration, and the names it declares in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Declarator {
    pub(crate) shape: Shape,
    pub(crate) names: Vec<String>,
}

fn takes_arguments(word: &str) -> bool {
    attributes::is(word, Meaning::Arguments)
}

fn is_type_keyword(word: &str) -> bool {
    matches!(word, "struct" | "union" | "class" | "enum")
}

const GROUP_MACROS: [&str; 4] =
    ["struct_group", "struct_group_attr", "struct_group_tagged", "__struct_group"];

/// Reads the declaration in `tokens` (its `;` included).
pub(crate) fn read(lexed: &Lexed<'_>, tokens: Range<usize>, is_cpp: bool, members: &[&str]) -> Declarator {
    let reader = Reader { lexed, flat: flatten(lexed, tokens.clone()), members };
    let first = reader.word(0);
    let named = |shape| Declarator { shape, names: Vec::new() };
    if GROUP_MACROS.contains(&first) {
        return Declarator { shape: Shape::Anonymous, names: words_among(lexed, tokens, members) };
    }
    match first {
        "static" | "constexpr" => return named(Shape::Static),
        "using" | "typedef" => return named(Shape::NestedType),
        "friend" | "extern" | "virtual" | "explicit" | "operator" | "inline" | "template"
        | "static_assert" | "_Static_assert" | "~" => return named(Shape::Function),
        ";" => return named(Shape::Static),
        _ => {}
    }
    if is_cpp && reader.is_type_only() {
        return named(Shape::NestedType);
    }
    if is_cpp && reader.is_method() {
        return named(Shape::Function);
    }
    if let Some(body) = reader.type_body() {
        return reader.after_type_body(body);
    }
    let names = reader.names(0);
    let shape = if reader.has_bit_width() {
        Shape::Bits
    } else if names.is_empty() || reader.is_lone_word() || reader.is_macro_call() {
        Shape::Macro
    } else {
        Shape::Data
    };
    let names = if shape == Shape::Macro { words_among(lexed, tokens, members) } else { names };
    Declarator { shape, names }
}

/// Words in `tokens` that are member names, each once, in order.
pub(crate) fn words_among(lexed: &Lexed<'_>, tokens: Range<usize>, members: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for index in tokens.filter(|&index| lexed.is_word(index)) {
        let word = lexed.str(index);
        if members.contains(&word) && !names.iter().any(|name| name == word) {
            names.push(word.to_string());
        }
    }
    names
}

/// A token outside brackets, or a whole bracketed group.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Flat {
    Token(usize),
    /// From its opening to its closing token.
    Group(usize, usize),
}

fn flatten(lexed: &Lexed<'_>, tokens: Range<usize>) -> Vec<Flat> {
    let mut flat = Vec::new();
    let mut at = tokens.start;
    while let Some(index) = lexed.next_code(at, tokens.end) {
        match lexed.str(index) {
            "(" | "[" | "{" => {
                let close = lexed.closing(index, tokens.end).unwrap_or(tokens.end.saturating_sub(1));
                flat.push(Flat::Group(index, close));
                at = close + 1;
            }
            _ => {
                flat.push(Flat::Token(index));
                at = index + 1;
            }
        }
    }
    flat
}

struct Reader<'l, 'a> {
    lexed: &'l Lexed<'a>,
    flat: Vec<Flat>,
    members: &'l [&'l str],
}

impl Reader<'_, '_> {
    /// The text of flat element `at`; for a group its opening bracket.
    fn word(&self, at: usize) -> &str {
        match self.flat.get(at) {
            Some(Flat::Token(index) | Flat::Group(index, _)) => self.lexed.str(*index),
            None => "",
        }
    }

    fn is_word(&self, at: usize) -> bool {
        matches!(self.flat.get(at), Some(Flat::Token(index)) if self.lexed.tokens[*index].kind == Kind::Word)
    }

    /// `class inner;`
    fn is_type_only(&self) -> bool {
        self.flat.len() == 3
            && is_type_keyword(self.word(0))
            && self.is_word(1)
            && !self.members.contains(&self.word(1))
    }

    /// `int count GUARDED_BY(lock);`: a macro behind a member's name.
    fn is_annotation(&self, at: usize) -> bool {
        at > 1 && self.is_upper_case(at - 1) && self.members.contains(&self.word(at - 2))
    }

    /// The flat element of the `{…}` of a type declared here.
    fn type_body(&self) -> Option<usize> {
        let keyword = (0..self.flat.len()).find(|&at| is_type_keyword(self.word(at)))?;
        let body = (keyword..self.flat.len()).find(|&at| self.word(at) == "{")?;
        (keyword..body).all(|at| !matches!(self.word(at), "=" | ";" | ",")).then_some(body)
    }

    fn after_type_body(&self, body: usize) -> Declarator {
        let names = self.names(body + 1);
        let keyword = (0..body).find(|&at| is_type_keyword(self.word(at))).unwrap_or(0);
        let is_tagged = (keyword + 1..body).any(|at| {
            self.is_word(at) && !takes_arguments(self.word(at)) && !self.word(at).starts_with("__")
        });
        let is_enum = self.word(keyword) == "enum";
        if !names.is_empty() {
            Declarator { shape: Shape::Data, names }
        } else if is_enum || is_tagged {
            Declarator { shape: Shape::NestedType, names }
        } else {
            let Some(Flat::Group(open, close)) = self.flat.get(body) else {
                return Declarator { shape: Shape::NestedType, names };
            };
            let inner = words_among(self.lexed, *open..*close, self.members);
            Declarator { shape: Shape::Anonymous, names: inner }
        }
    }

    /// A parameter list outside attributes and declarators: `type name(…)`, `T(…)`, `operator+(…)`.
    fn is_method(&self) -> bool {
        (1..self.flat.len()).any(|at| {
            self.word(at) == "("
                && self.angle_depth(at) == 0
                && (self.is_word(at - 1) || self.word(at - 1) == ">" || self.word(0) == "operator")
                && !takes_arguments(self.word(at - 1))
                && !self.is_function_pointer_group(at)
                && !(at == 1 && self.is_upper_case(0))
                && !self.is_annotation(at)
                && !(0..at).any(|before| matches!(self.word(before), "=" | "{"))
        }) || (0..self.flat.len()).any(|at| self.word(at) == "operator")
    }

    /// The number of template argument lists that are open before `at`.
    fn angle_depth(&self, at: usize) -> usize {
        (0..at).fold(0, |depth: usize, at| match self.word(at) {
            "<" => depth + 1,
            ">" => depth.saturating_sub(1),
            _ => depth,
        })
    }

    fn is_upper_case(&self, at: usize) -> bool {
        let word = self.word(at);
        word.len() > 1 && !word.bytes().any(|byte| byte.is_ascii_lowercase())
    }

    fn is_macro_call(&self) -> bool {
        self.flat.len() == 3 && self.is_word(0) && self.word(1) == "("
    }

    fn is_lone_word(&self) -> bool {
        self.flat.len() == 2 && self.is_word(0)
    }

    fn has_bit_width(&self) -> bool {
        let equals = (0..self.flat.len()).find(|&at| self.word(at) == "=").unwrap_or(self.flat.len());
        (0..equals).any(|at| self.word(at) == ":")
    }

    /// `(*name)` or `(&name)`: a group that holds a declarator.
    fn is_function_pointer_group(&self, at: usize) -> bool {
        self.pointer_group_name(at).is_some()
    }

    fn pointer_group_name(&self, at: usize) -> Option<&str> {
        let Some(Flat::Group(open, close)) = self.flat.get(at) else { return None };
        if self.lexed.str(*open) != "(" {
            return None;
        }
        let inside: Vec<usize> = (*open + 1..*close).filter(|&index| self.lexed.is_code(index)).collect();
        let star = inside.iter().position(|&index| matches!(self.lexed.str(index), "*" | "&" | "^"))?;
        let plain = |index: usize| self.lexed.is_word(index) || matches!(self.lexed.str(index), "::" | "(");
        if !inside[..star].iter().all(|&index| plain(index)) {
            return None;
        }
        // `(const Key &key)` lists parameters; `(Class::*name)(…)` and `(API *name)(…)` declare.
        let is_followed =
            matches!(self.flat.get(at + 1), Some(Flat::Group(next, _)) if self.lexed.str(*next) != "{");
        if star > 0 && !is_followed {
            return None;
        }
        inside[star + 1..]
            .iter()
            .map(|&index| (index, self.lexed.str(index)))
            .find(|(index, word)| {
                self.lexed.is_word(*index)
                    && !matches!(*word, "const" | "volatile" | "restrict" | "__restrict")
            })
            .map(|(_, word)| word)
    }

    /// The declared names from flat element `from` on, one per comma-separated declarator.
    fn names(&self, from: usize) -> Vec<String> {
        let end = self.flat.len().saturating_sub(1);
        let mut names = Vec::new();
        let mut start = from;
        let mut angle = 0usize;
        for at in from..=end {
            match self.word(at) {
                "<" => angle += 1,
                ">" => angle = angle.saturating_sub(1),
                _ => {}
            }
            if at == end || (self.word(at) == "," && angle == 0) {
                names.extend(self.name_in(start, at, from == 0 && names.is_empty()));
                start = at + 1;
            }
        }
        names
    }

    /// The name in one declarator. `has_type` says that a type stands before it.
    fn name_in(&self, start: usize, end: usize, has_type: bool) -> Option<String> {
        let stop = (start..end).find(|&at| matches!(self.word(at), "=" | ":" | "{")).unwrap_or(end);
        let group = (start..stop).find(|&at| self.pointer_group_name(at).is_some());
        let is_call = group.is_some_and(|at| at > start && takes_arguments(self.word(at - 1)));
        if let (Some(at), false) = (group, is_call) {
            return self.pointer_group_name(at).map(str::to_string);
        }
        let words: Vec<&str> = (start..stop)
            .filter(|&at| self.is_word(at) && !takes_arguments(self.word(at)) && self.word(at + 1) != "::")
            .map(|at| self.word(at))
            .collect();
        if let Some(known) = words.iter().rev().find(|word| self.members.contains(*word)) {
            return Some(known.to_string());
        }
        let bracket = (start..stop).find(|&at| self.word(at) == "[").unwrap_or(stop);
        let last = (start..bracket).rev().find(|&at| self.is_word(at) && !takes_arguments(self.word(at)))?;
        let is_only_a_type = has_type && words.len() < 2 || is_keyword(self.word(last));
        (!is_only_a_type).then(|| self.word(last).to_string())
    }
}

fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "int"
            | "char"
            | "short"
            | "long"
            | "unsigned"
            | "signed"
            | "float"
            | "double"
            | "bool"
            | "_Bool"
            | "const"
            | "volatile"
            | "void"
    ) || is_type_keyword(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(text: &str, members: &[&str]) -> (Shape, Vec<String>) {
        let lexed = Lexed::new(text);
        let read = read(&lexed, 0..lexed.tokens.len(), false, members);
        (read.shape, read.names)
    }

    fn cpp(text: &str) -> (Shape, Vec<String>) {
        let lexed = Lexed::new(text);
        let read = read(&lexed, 0..lexed.tokens.len(), true, &[]);
        (read.shape, read.names)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn annotations_and_declared_types_are_told_from_methods_and_members() {
        let known = |text: &str| {
            let lexed = Lexed::new(text);
            let read = read(&lexed, 0..lexed.tokens.len(), true, &["count_", "version"]);
            (read.shape, read.names)
        };
        assert_eq!(known("int count_ GUARDED_BY(mu_);"), (Shape::Data, names(&["count_"])));
        assert_eq!(
            known("Version *const version GUARDED_BY(mu) = nullptr;"),
            (Shape::Data, names(&["version"]))
        );
        assert_eq!(known("int Count(int k) EXCLUSIVE_LOCKS_REQUIRED(mu_);"), (Shape::Function, Vec::new()));
        assert_eq!(known("int TAKE(int count_);"), (Shape::Function, Vec::new()));
        assert_eq!(known("class Iter;"), (Shape::NestedType, Vec::new()));
        assert_eq!(known("struct version;").0, Shape::Data);
    }

    #[test]
    fn methods_that_return_pointers_and_take_parameters_declare_no_member() {
        for text in [
            "Node *find(const Key &key) const;",
            "const Node* next(Node *node, int (*compare)(int, int));",
            "std::unique_ptr<Node> take(Node &&node) noexcept;",
            "bool operator==(const Rec &other) const;",
            "Rec &operator=(Rec &&) = default;",
            "explicit operator bool() const;",
            "int *begin() { return a; }",
        ] {
            assert_eq!(cpp(text), (Shape::Function, Vec::new()), "{text}");
        }
    }

    #[test]
    fn pointers_to_functions_and_members_are_members() {
        assert_eq!(cpp("int (*compare)(const Key &a, const Key &b);"), (Shape::Data, names(&["compare"])));
        assert_eq!(cpp("void (Rec::*step)(int *at);"), (Shape::Data, names(&["step"])));
        assert_eq!(cpp("int (WINAPI *call)(void *);"), (Shape::Data, names(&["call"])));
        assert_eq!(c("int (*table[4])(int);", &[]), (Shape::Data, names(&["table"])));
    }

    #[test]
    fn plain_members_arrays_and_several_declarators() {
        assert_eq!(c("int a;", &[]), (Shape::Data, names(&["a"])));
        assert_eq!(c("const char *a, b[3], **c;", &[]), (Shape::Data, names(&["a", "b", "c"])));
        assert_eq!(c("struct list_head list;", &["list"]), (Shape::Data, names(&["list"])));
        assert_eq!(c("struct mult mult __aligned(8);", &["mult"]), (Shape::Data, names(&["mult"])));
    }

    #[test]
    fn a_function_pointer_is_named_by_its_declarator_not_by_its_parameters() {
        assert_eq!(
            c("void (*handler)(struct dev *mult, int list);", &["mult", "list"]),
            (Shape::Data, names(&["handler"]))
        );
        assert_eq!(c("int (*(*f)(int))(void);", &[]), (Shape::Data, names(&["f"])));
        assert_eq!(c("u64 __read_mostly (*read)(void);", &[]), (Shape::Data, names(&["read"])));
    }

    #[test]
    fn debug_info_tells_members_from_attribute_macros() {
        assert_eq!(c("spinlock_t lock ____aligned_in_smp;", &["lock"]), (Shape::Data, names(&["lock"])));
    }

    #[test]
    fn bit_fields_named_and_not() {
        assert_eq!(c("unsigned a:3, b:4;", &[]), (Shape::Bits, names(&["a", "b"])));
        assert_eq!(c("unsigned :0;", &[]), (Shape::Bits, names(&[])));
        assert_eq!(c("enum state s:8;", &["s"]), (Shape::Bits, names(&["s"])));
    }

    #[test]
    fn nested_types_anonymous_members_and_macros() {
        assert_eq!(c("struct { int a; } s;", &[]), (Shape::Data, names(&["s"])));
        assert_eq!(c("union { int a; int b; };", &["a", "b"]), (Shape::Anonymous, names(&["a", "b"])));
        assert_eq!(c("struct in { int a; };", &[]).0, Shape::NestedType);
        assert_eq!(c("enum { A, B } e;", &[]), (Shape::Data, names(&["e"])));
        assert_eq!(c("CommonHeader;", &["next", "tt"]), (Shape::Macro, names(&[])));
        assert_eq!(c("DECLARE_BITMAP(bits, 64);", &["bits"]), (Shape::Macro, names(&["bits"])));
        assert_eq!(c("struct_group(g, int a; int b;);", &["a", "b"]), (Shape::Anonymous, names(&["a", "b"])));
    }

    #[test]
    fn cpp_methods_and_statics_are_no_data() {
        for text in [
            "void f(int value);",
            "explicit C(int a) : a_(a), b_{2} {}",
            "C(const C &) = delete;",
            "bool operator==(const C &o) const { return true; }",
            "std::vector<int> g() const;",
            "friend class D;",
            "~C();",
        ] {
            assert_eq!(cpp(text).0, Shape::Function, "{text}");
        }
        assert_eq!(cpp("static const int N = 3;").0, Shape::Static);
        assert_eq!(cpp("using T = int;").0, Shape::NestedType);
    }

    #[test]
    fn cpp_members_with_initialisers_templates_and_attributes() {
        assert_eq!(cpp("std::map<int, std::string> m_{};"), (Shape::Data, names(&["m_"])));
        assert_eq!(cpp("int x = f(1, 2), y{3};"), (Shape::Data, names(&["x", "y"])));
        assert_eq!(cpp("alignas(64) std::atomic<int> n;"), (Shape::Data, names(&["n"])));
        assert_eq!(cpp("std::function<void(int)> cb;"), (Shape::Data, names(&["cb"])));
        assert_eq!(cpp("int (C::*pm)(int);"), (Shape::Data, names(&["pm"])));
    }
}
