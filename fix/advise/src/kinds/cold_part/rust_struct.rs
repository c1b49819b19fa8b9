//! The declaration of a struct of Rust: what keeps fields in it, and its text with a `Box` of a second struct.

use crate::constraints::constraint::Binding;
use crate::constraints::rust_uses::check_uses;
use crate::judge::compiler::CargoCheck;
use crate::kinds::cold_part::class_text::refused;
use crate::kinds::cold_part::field_list::{FieldList, ListedField, Piece};
use crate::kinds::cold_part::rust_values::ends_unseen;
use crate::text::rust_file::{RustFile, attributes, declaration, words};
use crate::text::sources::Sources;
use crate::text::syntax::visit;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tree_sitter::Node;

/// Attributes of a struct that mean nothing for its fields.
const OF_STRUCT: [&str; 8] =
    ["allow", "warn", "deny", "expect", "doc", "must_use", "derive", "non_exhaustive"];
/// Attributes of a field that may go with it.
const OF_FIELD: [&str; 6] = ["allow", "warn", "deny", "expect", "doc", "deprecated"];
/// Derived traits that a struct of the moved fields derives as well.
const DERIVES: [&str; 8] = ["Clone", "Default", "PartialEq", "Eq", "PartialOrd", "Ord", "Hash", "Debug"];
/// Derived traits that go through the fields in order, so that moved fields have to be the last ones.
const IN_ORDER: [&str; 3] = ["PartialOrd", "Ord", "Hash"];
/// Width of a line before a chain of calls is broken.
const CHAIN: usize = 60;

/// A struct that may give fields away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RustStruct {
    pub(crate) name: String,
    /// The file that declares it.
    pub(crate) path: String,
    /// The bytes from behind the opening brace to the end of the declaration.
    pub(crate) bytes: Range<usize>,
    pub(crate) fields: FieldList,
    /// Fields that stay, with the reason.
    pub(crate) held: BTreeMap<String, String>,
    /// Fields in order of declaration that a derived trait needs in this order.
    is_in_order: bool,
    visibility: String,
    of_fields: BTreeMap<String, String>,
    derives: Vec<String>,
    /// The attribute that derives `Debug`, and its text without it.
    debug: Option<(Range<usize>, String)>,
}

/// The names that an edit gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BoxNames {
    /// The second struct.
    pub(crate) part: String,
    /// The field.
    pub(crate) member: String,
}

/// True where a registry would take the package: crates.io takes none without a description and a license.
fn may_be_published(manifest: &toml::Table) -> bool {
    let package = manifest.get("package");
    let value = |key: &str| package.and_then(|package| package.get(key));
    match value("publish") {
        Some(toml::Value::Boolean(false)) => false,
        Some(toml::Value::Array(registries)) => !registries.is_empty(),
        Some(_) => true,
        None => {
            value("description").is_some() && (value("license").is_some() || value("license-file").is_some())
        }
    }
}

impl RustStruct {
    /// The struct of this name, or what keeps all its fields in it.
    pub(crate) fn read(sources: &Sources, name: &str) -> Result<RustStruct, Binding> {
        let files = RustFile::all_that_name(sources, name)?;
        let (number, item) = declaration(&files, name)?;
        let file = &files[number];
        let at = |node: Node<'_>, why: &str| file.at(node, why);
        let body = item.child_by_field_name("body").filter(|body| body.kind() == "field_declaration_list");
        let Some(body) = body.filter(|_| item.kind() == "struct_item") else {
            return Err(at(item, "it is no struct with named fields"));
        };
        if item.child_by_field_name("type_parameters").is_some() {
            return Err(at(item, "it is generic"));
        }
        let (mut derives, mut debug) = (Vec::new(), None);
        for attribute in attributes(item) {
            let all = words(file.str(attribute));
            let Some((own, inside)) = all.split_first() else { continue };
            if *own == "repr" {
                return Err(at(attribute, "its layout is asked for"));
            }
            if !OF_STRUCT.contains(own) {
                return Err(at(attribute, "an attribute whose meaning for its fields is not known"));
            }
            if *own != "derive" {
                continue;
            }
            if inside.contains(&"Copy") {
                return Err(at(attribute, "it is Copy, and a Box is not"));
            }
            if let Some(other) = inside.iter().find(|one| !DERIVES.contains(one)) {
                return Err(at(
                    attribute,
                    &format!("derived {other} may show that fields are in a second struct"),
                ));
            }
            if inside.contains(&"Debug") {
                let others: Vec<&str> = inside.iter().copied().filter(|one| *one != "Debug").collect();
                let text = match others.is_empty() {
                    true => String::new(),
                    false => format!("#[derive({})]", others.join(", ")),
                };
                // An attribute that derives nothing else leaves no empty line.
                let end = match attribute.next_sibling().filter(|_| others.is_empty()) {
                    Some(next) => next.start_byte(),
                    None => attribute.end_byte(),
                };
                debug = Some((attribute.start_byte()..end, text));
            }
            derives.extend(inside.iter().filter(|one| **one != "Debug").map(|one| (*one).to_owned()));
        }
        check_uses(sources, name)?;
        for file in &files {
            is_no_pointer(file, name)?;
        }
        let fields = FieldList::of(file, body).filter(|list| list.is_by_lines);
        let fields = fields.ok_or_else(|| at(item, "fields share lines with others"))?;
        let (mut held, mut of_fields, mut has_cfg) = (BTreeMap::new(), BTreeMap::new(), false);
        let mut cursor = body.walk();
        for field in body.named_children(&mut cursor).filter(|child| child.kind() == "field_declaration") {
            let own = |name| field.child_by_field_name(name);
            let Some((named, ty)) = own("name").zip(own("type")) else { continue };
            let named = file.str(named).to_owned();
            let mut inner = field.walk();
            let visibility = field.children(&mut inner).find(|child| child.kind() == "visibility_modifier");
            of_fields.insert(named.clone(), visibility.map_or("", |node| file.str(node)).to_owned());
            let all = attributes(field);
            let known =
                |node: &Node<'_>| words(file.str(*node)).first().is_some_and(|own| OF_FIELD.contains(own));
            has_cfg |= all.iter().any(|node| file.str(*node).contains("cfg"));
            if !all.iter().all(known) {
                held.insert(named, "has an attribute".to_owned());
            } else if !ends_unseen(sources, file, ty) {
                held.insert(named, format!("is a {}, whose end may do something", file.str(ty)));
            }
        }
        if has_cfg && debug.is_some() {
            return Err(at(item, "it derives Debug, and a field is conditional"));
        }
        let mut cursor = item.walk();
        let visibility = item.children(&mut cursor).find(|child| child.kind() == "visibility_modifier");
        Ok(RustStruct {
            name: name.to_owned(),
            path: file.path.to_owned(),
            bytes: body.start_byte() + 1..item.end_byte(),
            is_in_order: derives.iter().any(|one| IN_ORDER.contains(&one.as_str())),
            visibility: visibility.map_or("", |node| file.str(node)).to_owned(),
            fields,
            held,
            of_fields,
            derives,
            debug,
        })
    }

    /// Notes the fields that stay because code outside the workspace may name them.
    pub(crate) fn hold_published(&mut self, cargo: &CargoCheck, sources: &Sources) {
        let manifest: toml::Table = cargo.manifest.parse().unwrap_or_default();
        let is_private = !may_be_published(&manifest);
        let library = match cargo.package.as_str() {
            "" => "src/lib.rs".to_owned(),
            package => format!("{package}/src/lib.rs"),
        };
        let has_library = manifest.contains_key("lib") || sources.get(&library).is_some();
        if is_private || !has_library || self.visibility != "pub" {
            return;
        }
        for (field, _) in self.of_fields.iter().filter(|(_, visibility)| *visibility == "pub") {
            let why =
                "is public in a library that may be published (publish = false in its Cargo.toml frees it)"
                    .to_owned();
            self.held.entry(field.clone()).or_insert(why);
        }
    }

    /// Of these fields those that may leave.
    pub(crate) fn moved(&mut self, cold: &BTreeSet<String>) -> BTreeSet<String> {
        let held = &self.held;
        let mut moved: BTreeSet<String> =
            cold.iter().filter(|field| !held.contains_key(*field)).cloned().collect();
        if self.is_in_order {
            let last: BTreeSet<String> = self
                .fields
                .fields
                .iter()
                .rev()
                .map(|field| field.name.clone())
                .take_while(|field| moved.contains(field))
                .collect();
            for field in moved.difference(&last) {
                let why = "is read in order by a derived trait".to_owned();
                self.held.insert(field.clone(), why);
            }
            moved = last;
        }
        moved
    }

    /// The reasons that keep fields in place, in a sentence.
    pub(crate) fn why_held(&self, cold: &BTreeSet<String>) -> String {
        let reasons = self.held.iter().filter(|(field, _)| cold.contains(*field));
        reasons.map(|(field, why)| format!("{field} {why}")).collect::<Vec<_>>().join("; ")
    }

    /// The attribute that derives `Debug`, and its text without that: printed, fields would be in a second struct.
    pub(crate) fn without_debug(&self) -> Option<&(Range<usize>, String)> {
        self.debug.as_ref()
    }

    /// The pieces for [`RustStruct::bytes`], without these fields, and with a second struct behind that has them.
    pub(crate) fn pieces(&self, text: &str, moved: &BTreeSet<String>, names: &BoxNames) -> Vec<Piece> {
        let BoxNames { part, member } = names;
        let old = |range: Range<usize>| vec![Piece::Old(range)];
        let (leaving, staying) = self.fields.partition(moved);
        let first = self.fields.fields.first().map_or(self.bytes.start, |field| field.whole.start);
        let last = self.fields.fields.last().map_or(self.bytes.start, |field| field.whole.end);
        let line = text.get(..self.bytes.start).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
        let outer: String = line.chars().take_while(|c| c.is_whitespace()).collect();
        let indent = &self.fields.indent;
        let visibility = self.visibility_of(&leaving);
        let seen = if visibility.is_empty() { String::new() } else { format!("{visibility} ") };
        let mut pieces = old(self.bytes.start..first);
        pieces.extend(staying.iter().flat_map(|field| self.fields.field(field, &old)));
        pieces.push(Piece::New(format!(
            "{indent}/// Fields that hot loops leave alone.\n{indent}{seen}{member}: Box<{part}>,\n"
        )));
        pieces.push(Piece::Old(last..self.bytes.end));
        let derives = match self.derives.is_empty() {
            true => String::new(),
            false => format!("{outer}#[derive({})]\n", self.derives.join(", ")),
        };
        pieces.push(Piece::New(format!(
            "\n\n{outer}/// Fields of [`{}`] in memory of their own.\n{derives}{outer}{seen}struct {part} {{\n",
            self.name
        )));
        pieces.extend(leaving.iter().flat_map(|field| self.fields.field(field, &old)));
        pieces.push(Piece::New(format!("{outer}}}{}", self.debug_text(moved, member, &outer))));
        pieces
    }

    /// The widest visibility of these fields.
    fn visibility_of(&self, leaving: &[&ListedField]) -> &str {
        let all: BTreeSet<&str> =
            leaving.iter().filter_map(|field| self.of_fields.get(&field.name)).map(String::as_str).collect();
        let widest = ["pub", "pub(crate)"].into_iter().find(|one| all.contains(one));
        widest.or(all.last().copied()).unwrap_or_default()
    }

    /// An implementation of `Debug` that prints what the derived one printed.
    fn debug_text(&self, moved: &BTreeSet<String>, member: &str, outer: &str) -> String {
        if self.debug.is_none() {
            return String::new();
        }
        let step = self.fields.step();
        let calls = self.fields.fields.iter().map(|field| {
            let name = &field.name;
            let printed = name.strip_prefix("r#").unwrap_or(name);
            let through = if moved.contains(name) { format!("{member}.") } else { String::new() };
            format!(".field(\"{printed}\", &self.{through}{name})")
        });
        let calls: Vec<String> = [format!(".debug_struct(\"{}\")", self.name)]
            .into_iter()
            .chain(calls)
            .chain([".finish()".into()])
            .collect();
        let is_long = calls.iter().map(String::len).sum::<usize>() > CHAIN;
        let deep = format!("\n{outer}{}", step.repeat(3));
        let chain = if is_long { format!("{deep}{}", calls.join(&deep)) } else { calls.concat() };
        let name = &self.name;
        [
            format!("\n\n{outer}impl std::fmt::Debug for {name} {{"),
            format!("\n{outer}{step}fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{"),
            format!("\n{outer}{}f{chain}", step.repeat(2)),
            format!("\n{outer}{step}}}\n{outer}}}"),
        ]
        .concat()
    }
}

/// Refuses a type that leads to another: a field that left would be looked for there.
fn is_no_pointer(file: &RustFile<'_>, name: &str) -> Result<(), Binding> {
    let mut found = Ok(());
    visit(file.tree.root_node(), |node| {
        let last = |field| {
            let node = node.child_by_field_name(field)?;
            words(file.str(node)).last().copied()
        };
        if node.kind() == "impl_item" && last("trait") == Some("Deref") && last("type") == Some(name) {
            found = Err(file.at(node, "it leads to another type by Deref"));
        }
    });
    found
}

/// Names that no source has.
pub(crate) fn names(sources: &Sources, declared: &RustStruct) -> Result<BoxNames, Binding> {
    const STEMS: [(&str, &str); 3] = [("cold", "Cold"), ("seldom", "Seldom"), ("rarely", "Rarely")];
    let has = |name: &str| declared.fields.fields.iter().any(|field| field.name == name);
    let free = STEMS.into_iter().find_map(|(member, suffix)| {
        let part = format!("{}{suffix}", declared.name);
        let is_free = !has(member) && sources.rust_that_names(&part).next().is_none();
        is_free.then(|| BoxNames { part, member: member.to_owned() })
    });
    free.ok_or_else(|| refused("the sources have the names cold, seldom and rarely already"))
}
