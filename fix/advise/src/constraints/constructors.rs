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
    for_each_cpp_file(sources, class, |path, text, root| {
        visit(root, |node| {
            let found = match node.kind() {
                "field_initializer" if constructs(node, text, class) => member_of(node, text)
                    .zip(node.named_child(1))
                    .map(|(name, value)| (name, depends(value, text, members, &parameters(node, text)))),
                "field_declaration" if class_of(node, text) == Some(class) => {
                    let name = node.child_by_field_name("declarator").map(|name| text_of(name, text));
                    let value = node.child_by_field_name("default_value");
                    name.zip(value)
                        .map(|(name, value)| (name, depends(value, text, members, &BTreeSet::new())))
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

/// The other members that an initialising expression reads; an empty list when it only calls
/// something; `None` when its place in the order cannot matter.
fn depends(
    value: Node<'_>,
    text: &str,
    members: &[&str],
    parameters: &BTreeSet<String>,
) -> Option<Vec<String>> {
    let mut others = Vec::new();
    let mut calls = false;
    visit(value, |node| {
        let word = text_of(node, text);
        match node.kind() {
            "call_expression" | "new_expression" | "lambda_expression" | "this" => calls = true,
            "update_expression" | "assignment_expression" => calls = true,
            "identifier" | "field_identifier" if members.contains(&word) && !parameters.contains(word) => {
                others.push(word.to_string());
            }
            _ => {}
        }
    });
    (calls || !others.is_empty()).then_some(others)
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
}
