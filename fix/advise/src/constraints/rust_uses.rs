//! Uses of a type of Rust that may see the bytes of its objects.

use crate::constraints::constraint::Binding;
use crate::text::rust_file::{EVALUATING_MACROS, RustFile, attributes, words};
use crate::text::syntax::visit;
use crate::text::word_set::has_word;
use tree_sitter::Node;

/// Functions that do not ask for the layout of an argument's type.
const FUNCTIONS: [&str; 8] =
    ["new", "default", "collect", "with_capacity", "from_fn", "spawn", "from", "into"];
/// Functions that look at bytes of data without naming its type.
const BYTES: [&str; 12] = [
    "transmute",
    "transmute_copy",
    "from_raw_parts",
    "from_raw_parts_mut",
    "size_of_val",
    "align_of_val",
    "cast",
    "offset_of",
    "bytes_of",
    "as_bytes_mut",
    "zeroed",
    "assume_init",
];

/// Refuses uses that may see the bytes of an object: code of other languages, casts, functions and macros that are
/// given the type and are not known.
pub(crate) fn check_uses(file: &RustFile<'_>, name: &str) -> Result<(), Binding> {
    let mut refused = None;
    visit(file.tree.root_node(), |node| {
        let kind = node.child_by_field_name("type").map(|ty| ty.kind());
        let is_cast = node.kind() == "type_cast_expression" && kind == Some("pointer_type");
        let is_named = matches!(node.kind(), "identifier" | "field_identifier");
        if refused.is_none() && (is_cast || is_named && BYTES.contains(&file.str(node))) {
            refused = Some(
                file.at(node, "a file that names it casts pointers, or looks at bytes, of what is not known"),
            );
        }
        let is_name = matches!(node.kind(), "type_identifier" | "identifier") && file.str(node) == name;
        if is_name && refused.is_none() {
            refused = use_that_sees(file, node).map(|why| file.at(node, why));
        }
    });
    refused.map_or(Ok(()), Err)
}

fn use_that_sees(file: &RustFile<'_>, named: Node<'_>) -> Option<&'static str> {
    let mut below = named;
    while let Some(node) = below.parent() {
        let field = |name| node.child_by_field_name(name);
        let is_in = |name| field(name).is_some_and(|child| child == below);
        let last_word = |child: Node<'_>| words(file.str(child)).last().copied().unwrap_or_default();
        match node.kind() {
            "foreign_mod_item" => return Some("code of another language is given it"),
            "function_item" | "function_signature_item" => {
                let mut cursor = node.walk();
                let modifiers = node.children(&mut cursor).find(|child| child.kind() == "function_modifiers");
                let is_extern = modifiers.is_some_and(|all| file.str(all).contains("extern"));
                if is_extern && (is_in("parameters") || is_in("return_type")) {
                    return Some("code of another language is given it");
                }
            }
            "type_cast_expression" if is_in("type") => return Some("a pointer is cast to it"),
            "pointer_type" => return Some("a raw pointer leads to it"),
            "union_item" => return Some("it lies in a union"),
            "generic_function" if is_in("type_arguments") => {
                let function = field("function").map(last_word).unwrap_or_default();
                if !FUNCTIONS.contains(&function) {
                    return Some("a function that may look at its layout is given it");
                }
            }
            "macro_invocation" if !is_in("macro") => {
                let called = field("macro").map(last_word).unwrap_or_default();
                if !EVALUATING_MACROS.contains(&called) && called != "thread_local" {
                    return Some("a macro that may look at its layout is given it");
                }
            }
            "impl_item" if is_in("type") => {
                let implemented = field("trait").map(last_word);
                let is_unsafe = file.str(node).trim_start().starts_with("unsafe");
                if is_unsafe && !matches!(implemented, Some("Sync" | "Send")) {
                    return Some("an unsafe trait promises something of it");
                }
            }
            "static_item" => {
                let is_seen = |attribute: &Node<'_>| {
                    let words = words(file.str(*attribute)).join(" ");
                    ["no_mangle", "export_name", "link_section"].iter().any(|seen| has_word(&words, seen))
                };
                if attributes(node).iter().any(is_seen) {
                    return Some("a variable that others see holds it");
                }
            }
            _ => {}
        }
        below = node;
    }
    None
}
