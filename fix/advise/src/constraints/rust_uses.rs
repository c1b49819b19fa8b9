//! Uses of a type of Rust that may see the bytes of its objects.

use crate::constraints::constraint::Binding;
use crate::text::rust_file::{EVALUATING_MACROS, RustFile, attributes, words};
use crate::text::sources::Sources;
use crate::text::syntax::visit;
use crate::text::word_set::has_word;
use std::collections::BTreeSet;
use tree_sitter::Node;

/// Functions that do not ask for the layout of an argument's type; `new` with one is that of `Layout`.
const FUNCTIONS: [&str; 7] = ["default", "collect", "with_capacity", "from_fn", "spawn", "from", "into"];
/// Functions that look at bytes of data without naming its type.
const BYTES: [&str; 15] = [
    "transmute",
    "transmute_copy",
    "from_raw_parts",
    "from_raw_parts_mut",
    "size_of_val",
    "align_of_val",
    "for_value",
    "align_to",
    "align_to_mut",
    "cast",
    "offset_of",
    "bytes_of",
    "as_bytes_mut",
    "zeroed",
    "assume_init",
];

/// Functions that look at the layout of their type argument. A file that names the type may call them with others.
const LAYOUTS: [&str; 4] = ["size_of", "align_of", "write_bytes", "alloc_zeroed"];

/// Refuses uses that may see the bytes of an object: code of other languages, casts, functions and macros that are
/// given the type, by its name or another one, and are not known; functions that look at the bytes of any type.
pub(crate) fn check_uses(sources: &Sources, name: &str) -> Result<(), Binding> {
    let mut names = vec![name.to_owned()];
    let mut checked = BTreeSet::new();
    while let Some(name) = names.pop() {
        for (path, text) in sources.rust_that_names(&name) {
            let file = RustFile::read(path, text)?;
            check_named(&file, &name)?;
            names.extend(other_names(&file, &name));
        }
        checked.insert(name);
        names.retain(|name| !checked.contains(name));
    }
    let words = || BYTES.iter().chain(&LAYOUTS).copied().chain(["as"]);
    let files: BTreeSet<(&str, &str)> = words().flat_map(|word| sources.rust_that_names(word)).collect();
    // Packages that `cargo vendor` copied are libraries like those that are not in the folder.
    let is_own = |path: &str| !path.split('/').any(|folder| folder == "vendor");
    for (path, text) in files.into_iter().filter(|(path, _)| is_own(path)) {
        check_generic(&RustFile::read(path, text)?)?;
    }
    Ok(())
}

/// Other names that a file gives the type: `type A = T;` and `use m::T as A;`.
fn other_names(file: &RustFile<'_>, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    visit(file.tree.root_node(), |node| {
        let (of, own) = match node.kind() {
            "type_item" => ("type", "name"),
            "use_as_clause" => ("path", "alias"),
            _ => return,
        };
        let is_of = node.child_by_field_name(of).is_some_and(|of| has_word(file.str(of), name));
        found.extend(node.child_by_field_name(own).filter(|_| is_of).map(|own| file.str(own).to_owned()));
    });
    found
}

/// Refuses code that looks at the bytes of a type which its caller chooses.
fn check_generic(file: &RustFile<'_>) -> Result<(), Binding> {
    let mut refused = None;
    visit(file.tree.root_node(), |node| {
        let named = matches!(node.kind(), "identifier" | "field_identifier").then(|| file.str(node));
        let sees = named.is_some_and(|name| BYTES.contains(&name) || LAYOUTS.contains(&name));
        if refused.is_none() && (sees || is_cast_to_bytes(file, node)) && is_generic(file, node) {
            refused = Some(file.at(node, "code for any type looks at the bytes of its objects"));
        }
    });
    refused.map_or(Ok(()), Err)
}

/// True for a cast to a pointer to a type of the language, such as `*const u8`, or to one that is left out.
fn is_cast_to_bytes(file: &RustFile<'_>, node: Node<'_>) -> bool {
    let cast = (node.kind() == "type_cast_expression").then(|| node.child_by_field_name("type")).flatten();
    let to = cast.filter(|ty| ty.kind() == "pointer_type").and_then(|ty| ty.child_by_field_name("type"));
    to.is_some_and(|to| to.kind() == "primitive_type" || matches!(file.str(to), "_" | "c_void"))
}

/// True inside a function or an implementation that a type is given to, or a trait.
fn is_generic(file: &RustFile<'_>, node: Node<'_>) -> bool {
    std::iter::successors(node.parent(), Node::parent).any(|above| {
        let has_type = |parameters: Node<'_>| {
            let mut cursor = parameters.walk();
            let is_type =
                |one: Node<'_>| !matches!(one.kind(), "lifetime" | "lifetime_parameter" | "const_parameter");
            parameters.named_children(&mut cursor).any(is_type)
        };
        let takes_any = |parameters: Node<'_>| {
            let words = words(file.str(parameters));
            words.contains(&"impl") || words.contains(&"dyn")
        };
        let field = |name| above.child_by_field_name(name);
        above.kind() == "trait_item"
            || field("type_parameters").is_some_and(has_type)
            || above.kind() == "function_item" && field("parameters").is_some_and(takes_any)
    })
}

/// Refuses uses in a file that has this name of the type.
fn check_named(file: &RustFile<'_>, name: &str) -> Result<(), Binding> {
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
