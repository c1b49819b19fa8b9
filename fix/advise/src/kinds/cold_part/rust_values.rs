//! Values and types of Rust whose evaluation or end nobody sees.

use crate::text::rust_file::{RustFile, attributes, declaration, words};
use crate::text::sources::Sources;
use crate::text::syntax::visit;
use tree_sitter::Node;

/// The evaluation of a value: whether it may change place with others'.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Evaluation {
    /// It is the same at any time.
    Constant,
    /// It reads variables, and changes nothing.
    Reads,
    /// It may do anything.
    Acts,
}

/// Functions and methods that make a value and do nothing else.
const MAKING: [&str; 18] = [
    "new",
    "default",
    "with_capacity",
    "from",
    "clone",
    "to_string",
    "to_owned",
    "to_vec",
    "into",
    "len",
    "is_empty",
    "as_str",
    "as_bytes",
    "min",
    "max",
    "repeat",
    "wrapping_mul",
    "wrapping_add",
];

/// Types of the standard library whose values end without a visible effect.
const PLAIN: [&str; 12] = [
    "String",
    "PathBuf",
    "OsString",
    "Duration",
    "Instant",
    "SystemTime",
    "Ipv4Addr",
    "Ipv6Addr",
    "IpAddr",
    "SocketAddr",
    "AtomicU64",
    "AtomicUsize",
];

/// The same, when their arguments' do.
const HOLDING: [&str; 11] = [
    "Vec",
    "Option",
    "Box",
    "VecDeque",
    "HashMap",
    "HashSet",
    "BTreeMap",
    "BTreeSet",
    "Result",
    "Cell",
    "PhantomData",
];

/// Types inside types.
const DEEPEST: usize = 6;

impl Evaluation {
    /// Of a value, or of a field's value in a list.
    pub(crate) fn of(file: &RustFile<'_>, node: Node<'_>) -> Evaluation {
        let inside = || {
            let mut cursor = node.walk();
            node.named_children(&mut cursor)
                .map(|child| Self::of(file, child))
                .max()
                .unwrap_or(Self::Constant)
        };
        let field = |name| node.child_by_field_name(name);
        let begins_upper = |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase());
        match node.kind() {
            "integer_literal" | "float_literal" | "string_literal" | "raw_string_literal"
            | "char_literal" | "boolean_literal" | "unit_expression" | "field_declaration"
            | "line_comment" | "block_comment" => Self::Constant,
            "scoped_identifier" => Self::Constant,
            "identifier" if file.str(node).chars().all(|c| !c.is_ascii_lowercase()) => Self::Constant,
            "identifier" if file.str(node) == "None" => Self::Constant,
            "identifier" | "self" | "shorthand_field_initializer" => Self::Reads,
            "field_initializer" | "field_expression" | "type_cast_expression" => {
                field("value").map_or(Self::Acts, |value| Self::of(file, value))
            }
            "unary_expression"
            | "tuple_expression"
            | "array_expression"
            | "parenthesized_expression"
            | "arguments" => inside(),
            "reference_expression" | "binary_expression" | "index_expression" => inside().max(Self::Reads),
            "call_expression" => {
                let Some((function, arguments)) = field("function").zip(field("arguments")) else {
                    return Self::Acts;
                };
                let arguments = Self::of(file, arguments);
                let called = words(file.str(function));
                let (last, first) = (called.last().copied(), called.first().copied());
                let (last, first) = (last.unwrap_or_default(), first.unwrap_or_default());
                match function.kind() {
                    _ if begins_upper(last) => arguments,
                    "scoped_identifier" if MAKING.contains(&last) && is_of_library(first) => arguments,
                    "field_expression" if MAKING.contains(&last) => {
                        let receiver = function.child_by_field_name("value");
                        receiver.map_or(Self::Acts, |one| Self::of(file, one)).max(arguments).max(Self::Reads)
                    }
                    _ => Self::Acts,
                }
            }
            "macro_invocation" => {
                let makes = field("macro").is_some_and(|name| matches!(file.str(name), "format" | "vec"));
                let mut calls = false;
                visit(node, |inner| {
                    let is_inner = inner.kind() == "token_tree" && inner.parent() != Some(node);
                    calls |= is_inner || file.str(inner) == "!" && inner.parent() != Some(node);
                });
                if makes && !calls { Self::Reads } else { Self::Acts }
            }
            _ => Self::Acts,
        }
    }
}

fn is_of_library(name: &str) -> bool {
    const NUMBERS: [&str; 14] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
    ];
    PLAIN.contains(&name) || HOLDING.contains(&name) || NUMBERS.contains(&name)
}

/// Whether the end of a value of this type shows nothing: no code of the program's own runs.
pub(crate) fn ends_unseen(sources: &Sources, file: &RustFile<'_>, ty: Node<'_>) -> bool {
    ends_unseen_within(sources, file, ty, DEEPEST)
}

fn ends_unseen_within(sources: &Sources, file: &RustFile<'_>, ty: Node<'_>, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let field = |name| ty.child_by_field_name(name);
    let of_children = |parent: Node<'_>| {
        let mut cursor = parent.walk();
        parent.named_children(&mut cursor).all(|one| ends_unseen_within(sources, file, one, depth))
    };
    let last = |node: Node<'_>| words(file.str(node)).last().copied().unwrap_or_default();
    match ty.kind() {
        "primitive_type" | "reference_type" | "pointer_type" | "function_type" | "unit_type" => true,
        "array_type" => field("element").is_some_and(|one| ends_unseen_within(sources, file, one, depth)),
        "tuple_type" => of_children(ty),
        "type_identifier" | "scoped_type_identifier" => {
            let name = last(ty);
            match PLAIN.contains(&name) {
                true => !is_declared(sources, name),
                false => own_ends_unseen(sources, name, depth),
            }
        }
        "generic_type" => {
            let name = field("type").map(last).unwrap_or_default();
            let holds = HOLDING.contains(&name) && !is_declared(sources, name);
            holds && field("type_arguments").is_some_and(of_children)
        }
        _ => false,
    }
}

/// Whether the sources declare a type of this name themselves.
fn is_declared(sources: &Sources, name: &str) -> bool {
    let files = sources.rust_that_names(name).filter_map(|(path, text)| RustFile::parse(path, text));
    let mut declared = false;
    for file in files {
        visit(file.tree.root_node(), |node| {
            let declares = matches!(node.kind(), "struct_item" | "enum_item" | "union_item" | "type_item");
            declared |= declares && node.child_by_field_name("name").is_some_and(|own| file.str(own) == name);
        });
    }
    declared
}

/// The same of a type of the program's own.
fn own_ends_unseen(sources: &Sources, name: &str, depth: usize) -> bool {
    let Ok(files) = RustFile::all_that_name(sources, name) else { return false };
    let Ok((number, item)) = declaration(&files, name) else { return false };
    let file = &files[number];
    let derives = |attribute: &Node<'_>, derived: &str| words(file.str(*attribute)).contains(&derived);
    if attributes(item).iter().any(|one| derives(one, "Copy")) {
        return true;
    }
    let mut is_unseen = item.kind() != "union_item" && item.child_by_field_name("type_parameters").is_none();
    for file in &files {
        visit(file.tree.root_node(), |node| {
            let word = |field| node.child_by_field_name(field).map(|one| words(file.str(one)));
            let last = |field| word(field).and_then(|words| words.last().copied());
            let drops = node.kind() == "impl_item" && last("trait") == Some("Drop");
            is_unseen &= !(drops && last("type") == Some(name));
        });
    }
    visit(item, |node| {
        let ty = match node.kind() {
            "field_declaration" => node.child_by_field_name("type"),
            "ordered_field_declaration_list" => {
                let mut cursor = node.walk();
                let types = node.children_by_field_name("type", &mut cursor);
                is_unseen &= types.into_iter().all(|ty| ends_unseen_within(sources, file, ty, depth));
                None
            }
            "type_item" => Some(node),
            _ => None,
        };
        is_unseen &= ty.is_none_or(|ty| ends_unseen_within(sources, file, ty, depth));
    });
    is_unseen
}
