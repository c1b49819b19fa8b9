//! Initialisers that give values to a type's members by position, and their changes for an order: names of the members
//! are inserted, or the values change places.

use crate::constraints::constraint::{Binding, Constraint};
use crate::layout::holders::{Holders, holds, is_array, shared_name, type_names};
use crate::patch::value_exchange::{self, Follows};
use crate::text::language::SourceLanguage;
use crate::text::parsed_file::Parsed;
use crate::text::sources::Sources;
use crate::text::syntax::{self, Site, SiteKind, Untyped, line_of, node_at, parts, text_of};
use crate::text::word_set::{self, Words};
use lineup_model::types::{Aggregate, Member, TypeId, TypeKind, Types};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use tree_sitter::Node;

/// Text to insert, by file and byte offset.
pub(crate) type Insertions = BTreeMap<String, BTreeMap<usize, String>>;

/// Names for more values make a patch longer than the room that they are for.
const MOST_NAMED: usize = 16;

/// The values by position of a type, and how they follow.
#[derive(Clone, Default, Debug)]
pub(crate) struct Positional {
    /// The inserted text.
    insertions: Insertions,
    /// The values that change places: for each list by file, the places of its values.
    exchanges: BTreeMap<String, Vec<value_exchange::Values>>,
    /// The places where lists of the type's values begin: file and line. Lines that other lists share are left out.
    pub(crate) lists: BTreeSet<(String, u32)>,
}

impl Positional {
    /// Whether there are no values by position, nor lists that may hold such.
    pub(crate) fn is_empty(&self) -> bool {
        self.insertions.is_empty() && self.exchanges.is_empty() && self.lists.is_empty()
    }

    /// Whether names can be given to all values by position, of which there are few.
    pub(crate) fn may_be_named(&self) -> bool {
        let values: usize = self.insertions.values().map(BTreeMap::len).sum();
        self.exchanges.is_empty() && values <= MOST_NAMED
    }

    /// Whether all values by position are for the first members, which an order does not move.
    pub(crate) fn stay(&self, aggregate: &Aggregate, order: &[usize]) -> bool {
        let named = self.named();
        let is_named = |member: &Member| member.name.as_deref().is_some_and(|name| named.contains(name));
        let end = aggregate.members.iter().rposition(is_named).map_or(0, |last| last + 1);
        self.exchanges.is_empty() && order.iter().take(end).copied().eq(0..end)
    }

    /// The members whose values get their names.
    pub(crate) fn named(&self) -> BTreeSet<&str> {
        let texts = self.insertions.values().flat_map(BTreeMap::values);
        texts.map(|text| text.trim_start_matches('.').trim_end_matches(" = ")).collect()
    }

    /// The texts in which the values follow an order of members.
    pub(crate) fn edited(&self, sources: &Sources, order: &[usize]) -> BTreeMap<String, String> {
        let inserted = self.insertions.iter().filter_map(|(path, insertions)| {
            sources.get(path).map(|text| (path.clone(), insert(text, insertions)))
        });
        let exchanged = self.exchanges.iter().filter_map(|(path, lists)| {
            sources.get(path).map(|text| (path.clone(), value_exchange::apply(text, lists, order)))
        });
        inserted.chain(exchanged).collect()
    }
}

/// The changes for an order in every initialiser that gives values to `wanted` by position. With `is_read` a compiler
/// has read every unit: it knows the types of values whose type stands elsewhere, except in templates.
///
/// # Errors
/// The initialisers that cannot be rewritten safely, with their places.
pub(crate) fn by_position(
    sources: &Sources,
    types: &Types,
    wanted: TypeId,
    follows: Follows,
    is_read: bool,
) -> Result<Positional, Vec<Binding>> {
    let names = type_names(types);
    let shared = shared_name(types, wanted);
    let mut holders = Holders { types, wanted, known: HashMap::new() };
    let told: Vec<&str> =
        names.iter().filter(|(_, id)| holders.holds(**id)).map(|(name, _)| *name).chain(shared).collect();
    let all_told = Words::of(&told.join(" "));
    let may_give_values = |file: &Parsed| {
        file.words().may_have_one_of(&all_told)
            && told.iter().any(|name| file.may_name(name) && may_give_values(file.text(), name))
    };
    let mut positional = Positional::default();
    let numbering = value_exchange::Numbering::of(sources, follows);
    let mut refusals = Vec::new();
    let mut macros: Option<HashMap<&str, (&str, u32)>> = None;
    for (path, text) in sources.iter() {
        let is_cpp = sources.language(path) == SourceLanguage::Cpp;
        // Lists in C have their type next to them.
        if !is_cpp && !sources.parsed(path).is_some_and(may_give_values) {
            continue;
        }
        let mut walker = Walker {
            text,
            path,
            types,
            wanted,
            is_cpp,
            macros: macros.get_or_insert_with(|| macros_of_values(sources)),
            follows,
            is_read,
            numbering: &numbering,
            found: BTreeMap::new(),
            exchanged: Vec::new(),
            lists: Vec::new(),
            refusals: Vec::new(),
        };
        sources.with_tree(path, |text, tree| {
            for site in syntax::sites(tree, text) {
                let is_shared = |words: &Vec<String>| words.iter().any(|word| Some(word.as_str()) == shared);
                if matches!(&site.kind, SiteKind::Typed(words) if is_shared(words)) {
                    if node_at(tree, &site).is_none_or(|node| gives_values(node, text)) {
                        walker.refuse_at(site.line, "two types have the name of this one's");
                    }
                    continue;
                }
                let ty = match &site.kind {
                    SiteKind::Typed(words) => words.iter().find_map(|name| names.get(name.as_str()).copied()),
                    _ => None,
                };
                match ty.filter(|&id| holders.holds(id)) {
                    Some(ty) => walker.typed(node_at(tree, &site), ty),
                    None => walker.untyped(&site),
                }
            }
        });
        refusals.append(&mut walker.refusals);
        let lines = sources.with_tree(path, |_, tree| value_exchange::clear_lines(tree, &walker.lists));
        positional.lists.extend(lines.into_iter().flatten().map(|line| (path.to_string(), line)));
        if !walker.found.is_empty() {
            positional.insertions.insert(path.to_string(), walker.found);
        }
        if !walker.exchanged.is_empty() {
            positional.exchanges.insert(path.to_string(), walker.exchanged);
        }
    }
    refusals.sort();
    refusals.dedup();
    if refusals.is_empty() { Ok(positional) } else { Err(refusals) }
}

/// False when no declaration or literal of C in the text gives values to something of this type for certain. Most texts
/// that name a type declare pointers to it.
fn may_give_values(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let after = &text[at + name.len()..];
        let is_part = |byte: Option<u8>| byte.is_some_and(word_set::is_part);
        if is_part(after.bytes().next()) || is_part(text[..at].bytes().next_back()) {
            return false;
        }
        let statement = &after[..after.find(';').unwrap_or(after.len())];
        let assigned = statement.find('=').map(|at| &statement[at..]);
        match after.trim_start().as_bytes().first() {
            // `struct T *p = q;` gives a pointer; `struct T *p = q, x = { 1 };` gives more.
            Some(b'*') => assigned.is_some_and(|values| values.contains('{')),
            Some(b')') if after.trim_start()[1..].trim_start().starts_with('{') => true,
            Some(b'[' | b'{' | b'/' | b'\\') => true,
            _ => assigned.is_some(),
        }
    })
}

/// False when a declaration gives its type's objects no values for certain: pointers to them, functions, and zeros.
fn gives_values(node: Node<'_>, text: &str) -> bool {
    let is_given = |declarator: Node<'_>| {
        let (Some(inner), Some(value)) =
            (declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value"))
        else {
            return false;
        };
        let is_other =
            matches!(inner.kind(), "pointer_declarator" | "function_declarator" | "reference_declarator");
        let values = parts(value);
        let are_zeros = values.len() < 2 && values.iter().all(|value| text_of(*value, text) == "0");
        !(is_other || are_zeros && value.kind() == "initializer_list")
    };
    let mut cursor = node.walk();
    let declarators: Vec<Node<'_>> = node.children_by_field_name("declarator", &mut cursor).collect();
    node.kind().starts_with("compound") || declarators.into_iter().any(is_given)
}

/// Macros whose body is a positional brace initialiser, with their places.
fn macros_of_values(sources: &Sources) -> HashMap<&str, (&str, u32)> {
    let mut macros = HashMap::new();
    for (path, _) in sources.iter() {
        let found = sources.parsed(path).map_or(&[][..], Parsed::macros);
        macros.extend(found.iter().map(|one| (one.name.as_str(), (path, one.line))));
    }
    macros
}

struct Walker<'w> {
    text: &'w str,
    path: &'w str,
    types: &'w Types,
    wanted: TypeId,
    is_cpp: bool,
    macros: &'w HashMap<&'w str, (&'w str, u32)>,
    follows: Follows,
    is_read: bool,
    numbering: &'w value_exchange::Numbering,
    found: BTreeMap<usize, String>,
    exchanged: Vec<value_exchange::Values>,
    lists: Vec<Range<usize>>,
    refusals: Vec<Binding>,
}

impl Walker<'_> {
    /// A declaration or compound literal of type `ty`.
    fn typed(&mut self, node: Option<Node<'_>>, ty: TypeId) {
        let Some(node) = node else { return };
        if let Some(value) = node.child_by_field_name("value").filter(|_| node.kind().starts_with("compound"))
        {
            return self.value(value, ty, 0);
        }
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children_by_field_name("declarator", &mut cursor).collect();
        for declarator in children {
            self.declarator(declarator, ty);
        }
    }

    /// Values whose type stands elsewhere may be those of the type.
    fn untyped(&mut self, site: &Site) {
        let members = self.member_count();
        match site.kind {
            // A file that is not compiled makes nothing of them.
            SiteKind::Untyped(Untyped { is_in_template: false, .. }) if self.is_read => {}
            SiteKind::Untyped(Untyped { count, .. }) if self.is_cpp && count > 1 && count <= members => {
                self.refuse_at(site.line, "a braced list that may give its values");
            }
            SiteKind::Binding(count) if count == members => {
                self.refuse_at(site.line, "a structured binding takes members by position");
            }
            _ => {}
        }
    }

    fn member_count(&self) -> usize {
        self.types.aggregate(self.wanted).map_or(0, |(_, aggregate)| aggregate.members.len())
    }

    fn declarator(&mut self, declarator: Node<'_>, ty: TypeId) {
        if declarator.kind() != "init_declarator" {
            return;
        }
        let (Some(inner), Some(value)) =
            (declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value"))
        else {
            return;
        };
        match inner.kind() {
            "pointer_declarator" | "function_declarator" | "reference_declarator" => {}
            "array_declarator" => self.elements(inner, value, ty),
            _ => self.value(value, ty, 0),
        }
    }

    /// `T x[] = { {…}, {…} }`, for as many dimensions as declared.
    fn elements(&mut self, declarator: Node<'_>, value: Node<'_>, ty: TypeId) {
        let inner = declarator.child_by_field_name("declarator");
        if inner.is_some_and(|inner| inner.kind() == "pointer_declarator") {
            return;
        }
        if value.kind() != "initializer_list" {
            return self.value(value, ty, 0);
        }
        for element in parts(value) {
            let element = pair_value(element).unwrap_or(element);
            match inner.filter(|inner| inner.kind() == "array_declarator") {
                Some(inner) => self.elements(inner, element, ty),
                None => self.value(element, ty, 0),
            }
        }
    }

    fn refuse(&mut self, node: Node<'_>, why: &str) {
        self.refuse_at(line_of(node), why);
    }

    fn refuse_at(&mut self, line: u32, why: &str) {
        let binding = Binding::new(Constraint::PositionalInitialiser);
        self.refusals.push(binding.at(self.path, line).because(why));
    }

    /// A value that initialises an object of type `ty`.
    fn value(&mut self, value: Node<'_>, ty: TypeId, depth: u32) {
        let Some(stripped) = self.types.strip(ty).filter(|_| depth < 32) else { return };
        let Some(kind) = self.types.get(stripped).map(|ty| &ty.kind) else { return };
        match kind {
            TypeKind::Array { element, counts } if value.kind() == "initializer_list" => {
                for part in parts(value) {
                    let part = pair_value(part).unwrap_or(part);
                    if counts.len() == 1 {
                        self.value(part, *element, depth + 1);
                    } else if holds(self.types, *element, self.wanted, 0) {
                        self.refuse(part, "nested arrays");
                    }
                }
            }
            TypeKind::Aggregate(aggregate) => {
                if value.kind() == "initializer_list" {
                    let members = aggregate.members.clone();
                    self.list(value, stripped, &members, depth);
                } else if holds(self.types, stripped, self.wanted, 0) {
                    self.macro_value(value);
                }
            }
            _ => {}
        }
    }

    /// `T x = T_INIT(1, 2)`: the macro's body decides.
    fn macro_value(&mut self, value: Node<'_>) {
        if is_plain_value(value) {
            return self.refuse(value, "braces are left out");
        }
        let name = value.child_by_field_name("function").unwrap_or(value);
        if let Some((path, line)) = self.macros.get(text_of(name, self.text)) {
            let why = format!("macro {}", text_of(name, self.text));
            self.refusals.push(Binding::new(Constraint::PositionalInitialiser).at(path, *line).because(why));
        }
    }

    fn list(&mut self, list: Node<'_>, ty: TypeId, members: &[Member], depth: u32) {
        let elements = parts(list);
        let is_zero = |node: &Node<'_>| text_of(*node, self.text) == "0";
        if elements.is_empty() || (elements.len() == 1 && is_zero(&elements[0])) {
            return;
        }
        if list.has_error() && holds(self.types, ty, self.wanted, 0) {
            return self.refuse(list, "the initialiser is not understood");
        }
        if ty == self.wanted {
            self.lists.push(list.byte_range());
            if self.follows == Follows::Exchanged {
                self.exchange(list, members);
            }
        }
        let mut position = 0;
        for element in elements {
            if let Some(value) = pair_value(element) {
                position = self.designated(element, value, members, depth);
                continue;
            }
            let Some(member) = members.get(position) else { break };
            position += 1;
            self.positional(element, ty, member, depth);
        }
    }

    /// Values that change places; a list in which all are named follows unchanged.
    fn exchange(&mut self, list: Node<'_>, members: &[Member]) {
        if !self.is_cpp && parts(list).into_iter().all(|element| pair_value(element).is_some()) {
            return;
        }
        match value_exchange::values(list, self.text, members, self.numbering) {
            Err(why) => self.refuse(list, why),
            Ok(values) if self.exchanged.iter().any(|other| other.overlaps(&values)) => {
                self.refuse(list, "it stands inside another one");
            }
            Ok(values) => self.exchanged.push(values),
        }
    }

    /// The position after the designated member.
    fn designated(&mut self, pair: Node<'_>, value: Node<'_>, members: &[Member], depth: u32) -> usize {
        let field = parts(pair).into_iter().find(|part| part.kind() == "field_designator");
        let name = field.map(|field| text_of(field, self.text).trim_start_matches('.').trim());
        let Some(index) = members.iter().position(|member| member.name.as_deref() == name && name.is_some())
        else {
            return members.len();
        };
        let single = parts(pair).iter().filter(|part| part.kind().ends_with("designator")).count() == 1;
        if single {
            self.value(value, members[index].ty, depth + 1);
        }
        index + 1
    }

    fn positional(&mut self, element: Node<'_>, ty: TypeId, member: &Member, depth: u32) {
        let is_aggregate = self.types.aggregate(member.ty).is_some();
        let holds_wanted = holds(self.types, member.ty, self.wanted, 0);
        let is_list = element.kind() == "initializer_list";
        if ty == self.wanted {
            let could_elide = (is_aggregate || is_array(self.types, member.ty))
                && !is_list
                && is_plain_value(element)
                && element.kind() != "string_literal";
            match member.name.as_deref() {
                None => self.refuse(element, "an anonymous member is initialised"),
                Some(_) if could_elide => self.refuse(element, "braces are left out"),
                Some(_) if self.follows == Follows::Exchanged => {}
                Some(_) if self.is_cpp => self.refuse(element, "C++ designators follow declaration order"),
                Some(name) => {
                    self.found.insert(element.start_byte(), format!(".{name} = "));
                }
            }
        } else if holds_wanted && is_aggregate && !is_list && is_plain_value(element) {
            return self.refuse(element, "braces are left out");
        }
        self.value(element, member.ty, depth + 1);
    }
}

/// A value that is no object.
fn is_plain_value(value: Node<'_>) -> bool {
    matches!(value.kind(), "number_literal" | "char_literal" | "string_literal" | "true" | "false" | "null")
}

/// The value of `.member = value` or `[index] = value`.
fn pair_value(element: Node<'_>) -> Option<Node<'_>> {
    (element.kind() == "initializer_pair").then(|| element.child_by_field_name("value"))?
}

/// Applies insertions to a text.
pub(crate) fn insert(text: &str, insertions: &BTreeMap<usize, String>) -> String {
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for (&offset, inserted) in insertions {
        new.push_str(text.get(at..offset).unwrap_or(""));
        new.push_str(inserted);
        at = offset;
    }
    new.push_str(text.get(at..).unwrap_or(""));
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_give_values_is_told_from_pointers() {
        for text in [
            "struct t x = { 1 };",
            "static const struct t all[2] = { { 1 }, { 2 } };",
            "struct t x = T_INIT(1);",
            "f((struct t) { 1, 2 });",
            "f(&(struct t[]) { { 1 } });",
            "struct t *p = q, x = { 1 };",
            "struct t { int a; } x = { 1 };",
            "DEFINE_PER_CPU(struct t, all) = { 1 };",
            "struct t /* one */ x = { 1 };",
        ] {
            assert!(may_give_values(text, "t"), "{text}");
        }
        for text in [
            "struct t *p = q;",
            "int f(struct t *p) { return 1; }",
            "n = sizeof(struct t);",
            "struct tt x = { 1 };",
        ] {
            assert!(!may_give_values(text, "t"), "{text}");
        }
    }
}
