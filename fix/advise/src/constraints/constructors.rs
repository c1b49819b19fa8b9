//! C++ constructors initialise members in declaration order: which members that holds in place, and how
//! initialiser lists follow a new order.

use crate::patch::text_edits::replace;
use crate::text::language::SourceLanguage;
use crate::text::sources::Sources;
use crate::text::syntax::{line_of, parts, text_of, visit};
use std::collections::{BTreeMap, BTreeSet};
use tree_sitter::Node;

/// Members whose initialisation may depend on the order, and the first place that says so.
pub(crate) fn order_dependent(
    sources: &Sources,
    class: &str,
    members: &[&str],
) -> (BTreeSet<String>, Option<(String, u32)>) {
    let mut dependent = BTreeSet::new();
    let mut place = None;
    let readers = Readers { members, methods: methods(sources, class) };
    for_each_cpp_file(sources, class, |path, text, root| {
        visit(root, |node| {
            let found = match node.kind() {
                "field_initializer" if constructs(node, text, class) => member_of(node, text)
                    .zip(node.named_child(1))
                    .map(|(name, value)| (name, readers.depends(value, text, &parameters(node, text)))),
                "field_declaration" if class_of(node, text) == Some(class) => {
                    let name = node.child_by_field_name("declarator").map(|name| text_of(name, text));
                    let value = node.child_by_field_name("default_value");
                    name.zip(value)
                        .map(|(name, value)| (name, readers.depends(value, text, &BTreeSet::new())))
                }
                _ => None,
            };
            if let Some((name, Some(others))) = found
                && members.contains(&name)
            {
                dependent.insert(name.to_string());
                dependent.extend(others);
                place.get_or_insert_with(|| (path.to_string(), line_of(node)));
            }
        });
    });
    (dependent, place)
}

/// The files whose constructor initialiser lists change, with the lists in the order of `rank`.
pub(crate) fn follow(
    sources: &Sources,
    class: &str,
    rank: &dyn Fn(&str) -> Option<usize>,
) -> BTreeMap<String, String> {
    let mut edited = BTreeMap::new();
    for_each_cpp_file(sources, class, |path, text, root| {
        let mut exchanges: Vec<(std::ops::Range<usize>, &str)> = Vec::new();
        visit(root, |node| {
            if node.kind() != "field_initializer_list" || !constructs_list(node, text, class) {
                return;
            }
            let items = parts(node);
            let mut sorted = items.clone();
            sorted.sort_by_key(|item| member_of(*item, text).and_then(rank).map_or(0, |rank| rank + 1));
            let pairs = items.iter().zip(&sorted).filter(|(from, to)| from != to);
            exchanges.extend(pairs.map(|(from, to)| (from.byte_range(), text_of(*to, text))));
        });
        if !exchanges.is_empty() {
            edited.insert(path.to_string(), replace(text, exchanges));
        }
    });
    edited
}

/// True when the class declares a constructor: then it is no aggregate.
pub(crate) fn has_constructor(sources: &Sources, class: &str) -> bool {
    let mut found = false;
    for_each_cpp_file(sources, class, |_, text, root| {
        visit(root, |node| {
            let is_declarator = node.kind() == "function_declarator" && class_of(node, text) == Some(class);
            let name = node.child_by_field_name("declarator").map(|name| text_of(name, text));
            found |= is_declarator && name == Some(class);
        });
    });
    found
}

fn for_each_cpp_file(sources: &Sources, class: &str, mut each: impl FnMut(&str, &str, Node<'_>)) {
    for (path, _) in sources.that_may_name(class) {
        if sources.language(path) == SourceLanguage::Cpp {
            sources.with_tree(path, |text, tree| each(path, text, tree.root_node()));
        }
    }
}

fn member_of<'t>(initialiser: Node<'_>, text: &'t str) -> Option<&'t str> {
    initialiser.named_child(0).map(|name| text_of(name, text))
}

fn constructs(initialiser: Node<'_>, text: &str, class: &str) -> bool {
    initialiser.parent().is_some_and(|list| constructs_list(list, text, class))
}

fn constructs_list(list: Node<'_>, text: &str, class: &str) -> bool {
    let name =
        list.parent().and_then(function_declarator).and_then(|node| node.child_by_field_name("declarator"));
    name.is_some_and(|name| text_of(name, text).rsplit("::").next() == Some(class))
}

fn function_declarator(function: Node<'_>) -> Option<Node<'_>> {
    function.child_by_field_name("declarator").filter(|node| node.kind() == "function_declarator")
}

fn parameters(initialiser: Node<'_>, text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let list = initialiser
        .parent()
        .and_then(|list| list.parent())
        .and_then(function_declarator)
        .and_then(|node| node.child_by_field_name("parameters"));
    if let Some(list) = list {
        visit(list, |node| {
            if node.kind() == "identifier" {
                names.insert(text_of(node, text).to_string());
            }
        });
    }
    names
}

/// The innermost class around a node.
fn class_of<'t>(node: Node<'_>, text: &'t str) -> Option<&'t str> {
    let mut at = node.parent();
    while let Some(node) = at {
        if matches!(node.kind(), "class_specifier" | "struct_specifier") {
            return node.child_by_field_name("name").map(|name| text_of(name, text));
        }
        at = node.parent();
    }
    None
}

/// The methods that code inside a class may call by their names alone, but for static ones: those of the class, and of
/// every class where it has a base.
fn methods(sources: &Sources, class: &str) -> BTreeSet<String> {
    let mut has_base = false;
    for_each_cpp_file(sources, class, |_, text, root| {
        visit(root, |node| {
            let derived = node.parent().filter(|_| node.kind() == "base_class_clause");
            let name = derived.and_then(|derived| derived.child_by_field_name("name"));
            has_base |= name.is_some_and(|name| text_of(name, text) == class);
        });
    });
    let mut found = BTreeSet::new();
    // Every file may name the empty text.
    for_each_cpp_file(sources, if has_base { "" } else { class }, |_, text, root| {
        visit(root, |node| {
            let of = class_of(node, text).filter(|of| has_base || *of == class);
            if node.kind() != "function_declarator" || of.is_none() || is_static(node, text) {
                return;
            }
            let name = node.child_by_field_name("declarator").map(|name| text_of(name, text).to_string());
            found.extend(name);
        });
    });
    found
}

fn is_static(declarator: Node<'_>, text: &str) -> bool {
    let mut declaration = declarator.parent();
    while let Some(around) = declaration.filter(|around| around.kind().ends_with("declarator")) {
        declaration = around.parent();
    }
    let Some(declaration) = declaration else { return false };
    let mut cursor = declaration.walk();
    declaration
        .children(&mut cursor)
        .any(|part| part.kind() == "storage_class_specifier" && text_of(part, text) == "static")
}

/// The members of a class, and the methods that may read any of them.
struct Readers<'m> {
    members: &'m [&'m str],
    methods: BTreeSet<String>,
}

impl Readers<'_> {
    /// The other members that an initialising expression may read; an empty list when it only calls something; `None`
    /// when its place in the order cannot matter.
    fn depends(&self, value: Node<'_>, text: &str, parameters: &BTreeSet<String>) -> Option<Vec<String>> {
        let mut others = Vec::new();
        let (mut calls, mut reads_all) = (false, false);
        visit(value, |node| {
            let word = text_of(node, text);
            match node.kind() {
                "call_expression" => {
                    calls = true;
                    reads_all |= self.is_given_the_object(node, text);
                }
                "new_expression" | "lambda_expression" | "this" => calls = true,
                "update_expression" | "assignment_expression" => calls = true,
                "identifier" | "field_identifier"
                    if self.members.contains(&word) && !parameters.contains(word) =>
                {
                    others.push(word.to_string());
                }
                _ => {}
            }
        });
        if reads_all {
            others = self.members.iter().map(|member| member.to_string()).collect();
        }
        (calls || !others.is_empty()).then_some(others)
    }

    /// `get()` and `this->get()` of a method, `peek(this)`.
    fn is_given_the_object(&self, call: Node<'_>, text: &str) -> bool {
        let is_method = call.child_by_field_name("function").is_some_and(|function| match function.kind() {
            "identifier" => self.methods.contains(text_of(function, text)),
            _ => is_this(function.child_by_field_name("argument"), text),
        });
        let arguments = call.child_by_field_name("arguments");
        let given = arguments.into_iter().flat_map(|arguments| parts(arguments));
        is_method || given.into_iter().any(|argument| is_this(Some(argument), text))
    }
}

/// `this`, `*this`.
fn is_this(node: Option<Node<'_>>, text: &str) -> bool {
    node.is_some_and(|node| matches!(text_of(node, text), "this" | "*this"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_macro_before_the_name_of_a_class_hides_no_constructor() {
        let sources = |inside: &str| {
            let text =
                format!("class API value : public base {{\npublic:\n  {inside}\n  int a;\n  long b;\n}};\n");
            Sources::new([("a.cc".to_string(), text)])
        };
        let made = sources("explicit value(int x) : a(x), b(a + 1) {}");
        assert!(has_constructor(&made, "value"));
        let (dependent, _) = order_dependent(&made, "value", &["a", "b"]);
        assert_eq!(dependent.into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(!has_constructor(&sources("int go() const final;"), "value"));
        let by_default =
            Sources::new([("a.cc".to_string(), "struct API value { int a = 1; long b = a; };".to_string())]);
        assert_eq!(order_dependent(&by_default, "value", &["a", "b"]).0.len(), 2);
    }

    #[test]
    fn a_method_that_an_initial_value_calls_may_read_every_member() {
        let of = |inside: &str| {
            let text = format!("struct t {{ int a = 4; {inside} short c = 1; }};");
            let sources = Sources::new([("a.cc".to_string(), text)]);
            let (dependent, _) = order_dependent(&sources, "t", &["a", "b", "c"]);
            dependent.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of("long b = get(); int get() const { return a; }"), ["a", "b", "c"]);
        assert_eq!(of("long b = this->get(); int get() const;"), ["a", "b", "c"]);
        assert_eq!(of("long b = peek(this);"), ["a", "b", "c"]);
        assert_eq!(of("long b = [this] { return get(); }(); int get() const;"), ["a", "b", "c"]);
        assert_eq!(of("long b; t() : b(get()) {} int get() const;"), ["a", "b", "c"]);
        assert_eq!(of("long b = get(); static int get() { return 1; }"), ["b"]);
        assert_eq!(of("long b = next();"), ["b"]);
        let derived = "struct base { int get(); }; struct t : base { int a; long b = get(); };";
        let sources = Sources::new([("a.cc".to_string(), derived.to_string())]);
        assert_eq!(order_dependent(&sources, "t", &["a", "b"]).0.len(), 2);
    }
}
