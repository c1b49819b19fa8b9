//! The declarations of a text: structs, classes, unions and Rust's enums, with the places of their names and members.
//!
//! For editors: their texts are still being written, so text that is not understood is left out.

use crate::text::language::SourceLanguage;
use crate::text::syntax::{self, text_of, visit};
use std::ops::Range;
use tree_sitter::{Node, Parser, Tree};

/// The language of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TextLanguage {
    /// C.
    C,
    /// C++.
    Cpp,
    /// Rust.
    Rust,
}

/// A type that is declared with its members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declared {
    /// Its tag, or else the first name that a typedef gives it.
    pub name: String,
    /// The namespaces, classes and modules around it that the text names, outermost first.
    pub scope: Vec<String>,
    /// Bytes of the declaration, from its keyword to its last brace.
    pub bytes: Range<usize>,
    /// Bytes of the name.
    pub name_bytes: Range<usize>,
    /// Its members in the order of the text; those of members without a type name follow the member that they lie in.
    pub members: Vec<DeclaredMember>,
    /// True when every member is in the list, and each of them is in every build: no conditions, no macros, no errors.
    pub is_plain: bool,
}

/// A member of a [`Declared`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredMember {
    /// Its names from the type inwards: `["lock", "owner"]` is the member `owner` of the member `lock`.
    pub path: Vec<String>,
    /// Bytes of its own name; of a field without one (Rust), those of its type.
    pub bytes: Range<usize>,
}

impl Declared {
    /// The names of the members that are the type's own.
    pub fn own_members(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|member| member.path.len() == 1).map(|member| member.path[0].as_str())
    }
}

/// All types that a text declares with their members, in its order; a type that lies in another one follows it.
pub fn declared(text: &str, language: TextLanguage) -> Vec<Declared> {
    let Some(tree) = parse(text, language) else { return Vec::new() };
    let mut all = Vec::new();
    let mut scope = Vec::new();
    walk(tree.root_node(), text, &mut scope, &mut all);
    all
}

fn parse(text: &str, language: TextLanguage) -> Option<Tree> {
    match language {
        TextLanguage::C => syntax::parse(text, SourceLanguage::C),
        TextLanguage::Cpp => syntax::parse(text, SourceLanguage::Cpp),
        TextLanguage::Rust => {
            let mut parser = Parser::new();
            parser.set_language(&tree_sitter_rust::LANGUAGE.into()).ok()?;
            parser.parse(text, None)
        }
    }
}

/// Deeper trees are not followed: a text of brackets alone would take all of the stack.
const MAX_DEPTH: usize = 400;

fn walk(node: Node<'_>, text: &str, scope: &mut Vec<String>, all: &mut Vec<Declared>) {
    if scope.len() > MAX_DEPTH {
        return;
    }
    let opened = match node.kind() {
        "struct_specifier" | "class_specifier" | "union_specifier" | "struct_item" | "union_item"
        | "enum_item" => declaration(node, text, scope).map(|declared| {
            let name = declared.name.clone();
            all.push(declared);
            name
        }),
        "namespace_definition" | "mod_item" => {
            node.child_by_field_name("name").map(|name| text_of(name, text).to_string())
        }
        _ => None,
    };
    // Every enclosing scope is in the list, so that the depth is known. Those without a name are taken out of scopes.
    scope.push(opened.unwrap_or_default());
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
    children.into_iter().for_each(|child| walk(child, text, scope, all));
    scope.pop();
}

fn declaration(node: Node<'_>, text: &str, scope: &[String]) -> Option<Declared> {
    let body = node.child_by_field_name("body")?;
    let name = node.child_by_field_name("name").or_else(|| typedef_name(node))?;
    let parts = scope.iter().flat_map(|part| part.split("::")).filter(|part| !part.is_empty());
    let mut scope: Vec<String> = parts.map(str::to_string).collect();
    // `struct a::b {` is declared outside the class that it belongs to; of `struct pool<int> {` the name is `pool`.
    let written = text_of(name, text).split('<').next().unwrap_or_default();
    let mut names: Vec<&str> = written.split("::").map(str::trim).collect();
    let last = names.pop().filter(|last| !last.is_empty())?.to_string();
    scope.extend(names.into_iter().map(str::to_string));
    let mut found = Members { text, all: Vec::new(), is_plain: !body.has_error() || is_understood(body) };
    found.read(body, &[], 0);
    Some(Declared {
        name: last,
        scope,
        bytes: node.byte_range(),
        name_bytes: name.byte_range(),
        members: found.all,
        is_plain: found.is_plain,
    })
}

/// True when nothing is wrong with a body but that bit-fields have no name, which the grammar does not know.
fn is_understood(body: Node<'_>) -> bool {
    let mut is_understood = true;
    visit(body, |node| {
        let is_bit_field = || node.next_sibling().is_some_and(|next| next.kind() == "bitfield_clause");
        is_understood &= !node.is_error() && (!node.is_missing() || is_bit_field());
    });
    is_understood
}

/// The name that a typedef around a type without a tag gives it.
fn typedef_name(node: Node<'_>) -> Option<Node<'_>> {
    let around = node.parent().filter(|around| around.kind() == "type_definition")?;
    let mut cursor = around.walk();
    let mut names = around.children_by_field_name("declarator", &mut cursor);
    names.find(|declarator| declarator.kind() == "type_identifier")
}

struct Members<'t> {
    text: &'t str,
    all: Vec<DeclaredMember>,
    is_plain: bool,
}

impl Members<'_> {
    /// Reads the members of a body. `path` leads to the declaration whose type the body is.
    fn read(&mut self, body: Node<'_>, path: &[String], depth: usize) {
        if depth > MAX_DEPTH {
            self.is_plain = false;
            return;
        }
        if body.kind() == "ordered_field_declaration_list" {
            return self.by_position(body);
        }
        let mut cursor = body.walk();
        for part in body.named_children(&mut cursor) {
            match part.kind() {
                "field_declaration" => self.field(part, path, depth),
                "enum_variant" => {
                    self.name(part, path);
                    // A variant without values, or that no value can have, may be left out.
                    self.is_plain = false;
                }
                "comment"
                | "line_comment"
                | "block_comment"
                | "access_specifier"
                | "function_definition"
                | "declaration"
                | "template_declaration"
                | "friend_declaration"
                | "using_declaration"
                | "alias_declaration"
                | "type_definition"
                | "static_assert_declaration" => {}
                kind if kind.starts_with("preproc_") => {
                    self.is_plain = false;
                    self.read(part, path, depth + 1);
                }
                // A field's attribute may be a condition.
                _ => self.is_plain = false,
            }
        }
    }

    /// The fields of Rust's `struct pair(u8, u32);`, which debug information calls `__0` and `__1`.
    fn by_position(&mut self, body: Node<'_>) {
        let mut cursor = body.walk();
        let types = body.children_by_field_name("type", &mut cursor).filter(|ty| ty.is_named());
        for (number, ty) in types.enumerate() {
            self.all.push(DeclaredMember { path: vec![format!("__{number}")], bytes: ty.byte_range() });
        }
    }

    fn name(&mut self, node: Node<'_>, path: &[String]) {
        match node.child_by_field_name("name") {
            Some(name) => self.add(name, path),
            None => self.is_plain = false,
        }
    }

    fn add(&mut self, name: Node<'_>, path: &[String]) {
        if name.is_missing() {
            return;
        }
        let own = text_of(name, self.text).to_string();
        let path = path.iter().cloned().chain([own]).collect();
        self.all.push(DeclaredMember { path, bytes: name.byte_range() });
    }

    fn field(&mut self, field: Node<'_>, path: &[String], depth: usize) {
        if field.child_by_field_name("name").is_some() {
            return self.name(field, path);
        }
        if self.is_static(field) {
            return;
        }
        let mut cursor = field.walk();
        let declarators: Vec<Node<'_>> = field.children_by_field_name("declarator", &mut cursor).collect();
        let ty = field.child_by_field_name("type");
        let body = ty.filter(|ty| ty.kind() != "enum_specifier");
        let body = body.and_then(|ty| Some((ty, ty.child_by_field_name("body")?)));
        if declarators.is_empty() {
            match body {
                // Its members count as the type's own, unless it only declares a type inside.
                Some((ty, body)) if ty.child_by_field_name("name").is_none() => {
                    self.read(body, path, depth + 1);
                }
                Some(_) => {}
                // A bit-field without a name takes room and is no member; anything else is a macro.
                None => self.is_plain &= is_nameless_bit_field(field) || declares_a_type(ty),
            }
            return;
        }
        for declarator in declarators {
            let Some(name) = declared_name(declarator) else {
                self.is_plain &= is_function(declarator);
                continue;
            };
            self.add(name, path);
            if let Some((ty, body)) = body
                && ty.child_by_field_name("name").is_none()
            {
                let inner: Vec<String> =
                    path.iter().cloned().chain([text_of(name, self.text).to_string()]).collect();
                self.read(body, &inner, depth + 1);
            }
        }
    }

    fn is_static(&self, field: Node<'_>) -> bool {
        let mut cursor = field.walk();
        let mut parts = field.children(&mut cursor);
        parts.any(|part| {
            part.kind() == "storage_class_specifier" && text_of(part, self.text) == "static"
                || part.kind() == "friend"
        })
    }
}

fn is_nameless_bit_field(field: Node<'_>) -> bool {
    let mut cursor = field.walk();
    field.named_children(&mut cursor).any(|part| part.kind() == "bitfield_clause")
}

/// `enum colour { RED };` or `struct other;` among the members.
fn declares_a_type(ty: Option<Node<'_>>) -> bool {
    ty.is_some_and(|ty| ty.kind().ends_with("_specifier"))
}

/// The name of a data member; `None` for functions.
fn declared_name(declarator: Node<'_>) -> Option<Node<'_>> {
    let mut node = declarator;
    for _ in 0..MAX_DEPTH {
        match node.kind() {
            "field_identifier" | "identifier" => return Some(node),
            "function_declarator" if is_function(node) => return None,
            _ => {}
        }
        let inner = node.child_by_field_name("declarator");
        // Pointers and parentheses give their inner declarator no field's name in every grammar.
        node = inner.or_else(|| {
            let mut cursor = node.walk();
            node.named_children(&mut cursor)
                .find(|part| part.kind().ends_with("declarator") || part.kind() == "field_identifier")
        })?;
    }
    None
}

/// A member function, and no pointer to a function.
fn is_function(declarator: Node<'_>) -> bool {
    let mut node = declarator;
    for _ in 0..MAX_DEPTH {
        match node.kind() {
            "function_declarator" => {
                let inner = node.child_by_field_name("declarator");
                return inner.is_none_or(|inner| inner.kind() != "parenthesized_declarator");
            }
            "pointer_declarator" | "reference_declarator" => {}
            _ => return false,
        }
        let mut cursor = node.walk();
        let Some(inner) = node.named_children(&mut cursor).find(|part| part.kind().ends_with("declarator"))
        else {
            return false;
        };
        node = inner;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types as `scope::name: members`, with a mark where not all is plain.
    fn outline(text: &str, language: TextLanguage) -> Vec<String> {
        let line = |one: Declared| {
            assert_eq!(
                text[one.name_bytes.clone()].split('<').next().unwrap().rsplit("::").next(),
                Some(&*one.name)
            );
            for member in one.members.iter().filter(|member| !member.path[0].starts_with("__")) {
                assert_eq!(text[member.bytes.clone()], *member.path.last().unwrap());
            }
            let members: Vec<String> = one.members.iter().map(|member| member.path.join(".")).collect();
            let name: Vec<String> = one.scope.into_iter().chain([one.name]).collect();
            format!("{}: {}{}", name.join("::"), members.join(" "), if one.is_plain { "" } else { " …" })
        };
        declared(text, language).into_iter().map(line).collect()
    }

    #[test]
    fn members_of_c_are_found_through_every_declarator() {
        let text = "struct task {\n  int a, *b[3]; unsigned c : 3, d : 1; unsigned : 2;\n  void (*call)(int x);\n\
                    union { long e; struct { char f; } g; };\n  struct list { struct list *next; } h;\n  char rest[];\n};\n\
                    typedef struct { short s; } pair_t;\nstruct task *t(struct task *x);\nstruct opaque;\n";
        assert_eq!(
            outline(text, TextLanguage::C),
            ["task: a b c d call e g g.f h rest", "task::list: next", "pair_t: s"]
        );
    }

    #[test]
    fn what_depends_on_conditions_or_macros_is_not_plain() {
        let text = "struct a {\n  int x;\n#ifdef CONFIG\n  int y;\n#endif\n};\nstruct b { DECLARE_BITMAP(map, 64); int z; };\n";
        let found = outline(text, TextLanguage::C);
        assert_eq!(found[0], "a: x y …");
        assert!(found[1].starts_with("b: ") && found[1].ends_with(" …"), "{found:?}");
    }

    #[test]
    fn data_of_classes_are_told_from_functions_and_static_members() {
        let text = "namespace n { template <class T> class pool : base {\n public:\n  pool(); ~pool();\n  int size() const { return 1; }\n\
                    T *get(int); static int count; friend class other;\n  int (*hook)(T);\n private:\n  T value; int left{1};\n\
                    enum mode { on }; mode m;\n}; }\nclass n::inner { int x; };\nclass API exported { int y; };\n";
        assert_eq!(
            outline(text, TextLanguage::Cpp),
            ["n::pool: hook value left m", "n::inner: x", "exported: y"]
        );
    }

    #[test]
    fn fields_of_rust_have_names_or_positions() {
        let text = "mod m {\n  pub struct A<T> { pub x: T, y: u8 }\n  struct P(u8, pub u32);\n}\nstruct Unit;\n\
                    union U { a: u8 }\nenum E { One(u8), Two { z: u8 } }\nstruct C { #[cfg(unix)] a: u8 }\n";
        assert_eq!(
            outline(text, TextLanguage::Rust),
            ["m::A: x y", "m::P: __0 __1", "U: a", "E: One Two …", "C: a …"]
        );
    }

    #[test]
    fn half_written_and_deep_texts_are_survived() {
        for text in
            ["struct", "struct {", "struct a { int", "}}}}", "class a { class b {", "struct a { int x; ", ""]
        {
            for language in [TextLanguage::C, TextLanguage::Cpp, TextLanguage::Rust] {
                declared(text, language);
            }
        }
        let deep = "struct a { ".repeat(20_000);
        declared(&deep, TextLanguage::C);
        declared(&"(".repeat(100_000), TextLanguage::C);
    }
}
