//! The cold part of a struct of Rust: a second struct in a `Box`.
//!
//! The compiler finds the uses. Cargo checks the workspace with the fields moved; each error of an unknown field is a
//! place that reaches it through the `Box` then, and a value that is built field by field gets a second one inside.
//! Fields with uses that cannot be written so stay in the struct, and the rest is tried again.

use crate::constraints::constraint::{Binding, Constraint};
use crate::error::AdviseError;
use crate::judge::compiler::{CargoCheck, Judge, RustError};
use crate::kinds::cold_part::class_text::refused;
use crate::kinds::cold_part::field_list::{FieldList, Piece, PiecedText, indented};
use crate::kinds::cold_part::rust_struct::{BoxNames, RustStruct, names};
use crate::kinds::cold_part::rust_values::Evaluation;
use crate::text::rust_file::{EVALUATING_MACROS, RustFile, attributes, words};
use crate::text::sources::Sources;
use crate::text::syntax::visit;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tree_sitter::Node;

/// Checks by Cargo: each finds uses that errors hid in the one before.
const MOST_CHECKS: usize = 16;

/// Further macros that evaluate what they are given, and do not show its words but in the message of a failed assertion.
const MORE_MACROS: [&str; 4] = ["debug_assert", "debug_assert_eq", "debug_assert_ne", "unreachable"];

fn evaluates(name: &str) -> bool {
    EVALUATING_MACROS.contains(&name) || MORE_MACROS.contains(&name)
}

/// The texts with a `Box`, the names of the fields in it, and its own field.
pub(crate) struct BoxedPart {
    pub(crate) texts: BTreeMap<String, String>,
    pub(crate) moved: BTreeSet<String>,
    pub(crate) member: String,
    /// The fields that would have left, and why they stay; empty without any.
    pub(crate) held: String,
}

/// The known uses of the fields that may leave.
#[derive(Clone, PartialEq, Eq, Default)]
struct Uses {
    /// Places of names of fields in expressions, by file.
    accesses: BTreeMap<String, BTreeMap<usize, String>>,
    /// Values that are built field by field, by file.
    values: BTreeMap<String, BTreeMap<usize, FieldList>>,
    /// Texts that import the second struct where the first is imported, by file and place.
    imports: BTreeMap<String, BTreeMap<usize, String>>,
}

/// A change of a text.
enum Change<'c> {
    /// These bytes become this.
    Text(Range<usize>, String),
    /// A value that is built field by field.
    Value(&'c FieldList),
    /// The declaration.
    Declaration(Range<usize>),
}

impl Change<'_> {
    fn bytes(&self) -> &Range<usize> {
        match self {
            Change::Text(range, _) | Change::Declaration(range) => range,
            Change::Value(list) => &list.inside,
        }
    }
}

/// The struct of this name with these fields in a `Box`, as far as Cargo takes it, or the reason why none leaves. The
/// sources are those with earlier edits.
pub(crate) fn write(
    judge: &mut dyn Judge,
    (sources, earlier): (&Sources, &BTreeMap<String, String>),
    name: &str,
    cold: &BTreeSet<String>,
) -> Result<Result<BoxedPart, Binding>, AdviseError> {
    let read = RustStruct::read(sources, name).and_then(|read| Ok((names(sources, &read)?, read)));
    let (names, mut declared) = match read {
        Ok(read) => read,
        Err(binding) => return Ok(Err(binding)),
    };
    let is_declared = |field: &String| declared.fields.fields.iter().any(|one| one.name == *field);
    if let Some(field) = cold.iter().find(|field| !is_declared(field)) {
        return Ok(Err(Binding::new(Constraint::StaleDebugInfo).on([field])));
    }
    let path = declared.path.clone();
    let unchanged = match checked(judge, earlier, &path)? {
        Ok(check) => check,
        Err(binding) => return Ok(Err(binding)),
    };
    if let Some(error) = unchanged.errors.first() {
        let why = format!("cargo check --all-targets refuses the sources as they are: {}", error.words);
        return Ok(Err(refused(why).at(&error.path, error.line)));
    }
    declared.hold_published(&unchanged, sources);
    let mut search = Search { sources, names, declared, uses: Uses::default() };
    for _ in 0..MOST_CHECKS {
        let moved = search.declared.moved(cold);
        if moved.is_empty() {
            let why = search.declared.why_held(cold);
            return Ok(Err(refused(format!("no field could leave: {why}"))));
        }
        let texts = match search.texts(&moved) {
            Ok(texts) => texts,
            // Fields were held.
            Err(()) => continue,
        };
        let mut plain = earlier.clone();
        plain.extend(texts.iter().map(|(path, text)| (path.clone(), text.text.clone())));
        let check = match checked(judge, &plain, &path)? {
            Ok(check) => check,
            Err(binding) => return Ok(Err(binding)),
        };
        let is_new = match check.errors.is_empty() {
            true => search.hold_conditional(&moved),
            false => {
                search.learn(&check.errors, &texts, &moved) || search.blame(&check.errors, &texts, &moved)
            }
        };
        if check.errors.is_empty() && !is_new {
            let mut texts = match judge.format_rust(&plain, &path) {
                Ok(texts) => texts,
                Err(error) => return Ok(Err(disagrees(error.into_first_words()?))),
            };
            texts.retain(|path, text| earlier.get(path) != Some(text));
            let held = search.declared.why_held(cold);
            return Ok(Ok(BoxedPart { texts, moved, member: search.names.member, held }));
        }
        if let Some(error) =
            check.errors.iter().find(|one| is_own(one)).or(check.errors.first()).filter(|_| !is_new)
        {
            return Ok(Err(disagrees(error.words.clone()).at(&error.path, error.line)));
        }
    }
    Ok(Err(refused(format!("its uses were not all found in {MOST_CHECKS} checks by Cargo"))))
}

fn disagrees(why: String) -> Binding {
    Binding::new(Constraint::CompilerDisagrees).because(why)
}

/// Whether an error is not the mere consequence of others at the same value or pattern.
fn is_own(error: &RustError) -> bool {
    !matches!(error.code.as_str(), "E0027" | "E0062" | "E0063")
}

fn checked(
    judge: &mut dyn Judge,
    texts: &BTreeMap<String, String>,
    path: &str,
) -> Result<Result<CargoCheck, Binding>, AdviseError> {
    Ok(match judge.check_rust(texts, path) {
        Ok(Some(check)) => Ok(check),
        Ok(None) => Err(refused("no Cargo package holds its declaration, or none can be checked")),
        Err(error) => Err(disagrees(error.into_first_words()?)),
    })
}

/// The state of the search for uses.
struct Search<'s> {
    sources: &'s Sources,
    names: BoxNames,
    declared: RustStruct,
    uses: Uses,
}

impl Search<'_> {
    fn file(&self, path: &str) -> Option<RustFile<'_>> {
        let (path, text) = self.sources.rust_file(path)?;
        RustFile::parse(path, text)
    }

    fn hold(&mut self, field: &str, why: &str) {
        self.declared.held.entry(field.to_owned()).or_insert_with(|| why.to_owned());
    }

    /// The texts with these fields moved; `Err` when one was found that has to stay.
    fn texts(&mut self, moved: &BTreeSet<String>) -> Result<BTreeMap<String, PiecedText>, ()> {
        let mut crossing = BTreeSet::new();
        for list in self.uses.values.values().flat_map(BTreeMap::values) {
            if let Err(fields) = place(list, moved) {
                crossing.extend(fields);
            }
        }
        if !crossing.is_empty() {
            crossing.iter().for_each(|field| {
                self.hold(field, "has a value whose evaluation may not change place with another's")
            });
            return Err(());
        }
        let paths: BTreeSet<&String> = [&self.declared.path]
            .into_iter()
            .chain(self.uses.accesses.keys())
            .chain(self.uses.values.keys())
            .collect();
        Ok(paths.into_iter().filter_map(|path| Some((path.clone(), self.text(path, moved)?))).collect())
    }

    fn text(&self, path: &str, moved: &BTreeSet<String>) -> Option<PiecedText> {
        let file = self.file(path)?;
        let mut changes: Vec<Change<'_>> = Vec::new();
        let accesses = self.uses.accesses.get(path).into_iter().flatten();
        changes.extend(
            accesses
                .filter(|(_, field)| moved.contains(*field))
                .map(|(at, _)| Change::Text(*at..*at, format!("{}.", self.names.member))),
        );
        let imports = self.uses.imports.get(path).into_iter().flatten();
        changes.extend(imports.map(|(at, text)| Change::Text(*at..*at, text.clone())));
        let values = self.uses.values.get(path).into_iter().flat_map(BTreeMap::values);
        let has_moved = |list: &&FieldList| list.fields.iter().any(|field| moved.contains(&field.name));
        changes.extend(values.filter(has_moved).map(Change::Value));
        if path == self.declared.path {
            changes.push(Change::Declaration(self.declared.bytes.clone()));
            if let Some((range, text)) = self.declared.without_debug() {
                changes.push(Change::Text(range.clone(), text.clone()));
            }
        }
        changes.sort_by_key(|change| (change.bytes().start, std::cmp::Reverse(change.bytes().end)));
        let mut strings = Vec::new();
        visit(file.tree.root_node(), |node| {
            if matches!(node.kind(), "string_literal" | "raw_string_literal" | "block_comment") {
                strings.push(node.byte_range());
            }
        });
        let writer = Writer { file: &file, changes: &changes, moved, search: self, strings: &strings };
        Some(PiecedText::new(file.text, writer.pieces(0..file.text.len(), 0)))
    }

    /// Takes uses from the compiler's errors, and returns whether there were new ones.
    fn learn(
        &mut self,
        errors: &[RustError],
        texts: &BTreeMap<String, PiecedText>,
        moved: &BTreeSet<String>,
    ) -> bool {
        let (held, mut uses) = (self.declared.held.len(), self.uses.clone());
        for error in errors {
            let Some(at) = self.origin(error, texts) else { continue };
            let Some(file) = self.file(&error.path) else { continue };
            let Some(leaf) = file.tree.root_node().descendant_for_byte_range(at, at + 1) else { continue };
            if error.code == "E0422" {
                let texts = imports(&file, leaf, &self.declared.name, &self.names.part);
                uses.imports.entry(error.path.clone()).or_default().extend(texts);
                continue;
            }
            let field = file.str(leaf).to_owned();
            if !moved.contains(&field) {
                continue;
            }
            let learnt = match error.code.as_str() {
                "E0609" | "E0615" => macro_allows(&file, leaf).map(|()| {
                    uses.accesses
                        .entry(error.path.clone())
                        .or_default()
                        .insert(leaf.start_byte(), field.clone());
                }),
                "E0560" => value(&file, leaf).map(|list| {
                    uses.values.entry(error.path.clone()).or_default().insert(list.inside.start, list);
                }),
                "E0026" => Err("is taken out by a pattern"),
                _ => Ok(()),
            };
            let place = format!("{}:{}", error.path, leaf.start_position().row + 1);
            if let Err(why) = learnt {
                self.hold(&field, &format!("{why} at {place}"));
            }
        }
        let is_new = uses != self.uses || self.declared.held.len() > held;
        self.uses = uses;
        is_new
    }

    /// Holds fields that are used on the lines of errors which no rule explains, and returns whether there were any.
    fn blame(
        &mut self,
        errors: &[RustError],
        texts: &BTreeMap<String, PiecedText>,
        moved: &BTreeSet<String>,
    ) -> bool {
        let mut held = Vec::new();
        for error in errors.iter().filter(|one| is_own(one)) {
            let Some((at, text)) = self.origin(error, texts).zip(self.sources.get(&error.path)) else {
                continue;
            };
            let line = |at: usize| text.get(..at).unwrap_or_default().matches('\n').count();
            let accesses = self.uses.accesses.get(&error.path).into_iter().flatten();
            let there = accesses.filter(|(place, field)| moved.contains(*field) && line(**place) == line(at));
            let why = format!(
                "is used where the compiler says: {} at {}:{}",
                error.words,
                error.path,
                line(at) + 1
            );
            held.extend(there.map(|(_, field)| (field.clone(), why.clone())));
        }
        held.iter().for_each(|(field, why)| self.hold(field, why));
        !held.is_empty()
    }

    fn origin(&self, error: &RustError, texts: &BTreeMap<String, PiecedText>) -> Option<usize> {
        let whole;
        let text = match texts.get(&error.path) {
            Some(text) => text,
            None => {
                let text = self.sources.get(&error.path)?;
                whole = PiecedText::new(text, vec![Piece::Old(0..text.len())]);
                &whole
            }
        };
        text.origin(error.line, error.column)
    }

    /// Holds fields that code under a condition names which the check did not compile, and returns whether there were
    /// any.
    fn hold_conditional(&mut self, moved: &BTreeSet<String>) -> bool {
        let mut held = Vec::new();
        for field in moved {
            for (path, text) in self.sources.rust_that_names(field) {
                let Some(file) = RustFile::parse(path, text) else { continue };
                let known = self.uses.accesses.get(path);
                visit(file.tree.root_node(), |node| {
                    let is_access = node.child_count() == 0
                        && file.str(node) == field
                        && node.prev_sibling().is_some_and(|before| before.kind() == ".");
                    let is_known = known.is_some_and(|known| known.contains_key(&node.start_byte()));
                    if is_access && !is_known && is_conditional(&file, node) {
                        let why =
                            format!("is named under a condition at {path}:{}", node.start_position().row + 1);
                        held.push((field.clone(), why));
                    }
                });
            }
        }
        held.iter().for_each(|(field, why)| self.hold(field, why));
        !held.is_empty()
    }
}

/// Whether a node is in code that only some configurations compile; tests are compiled.
fn is_conditional(file: &RustFile<'_>, node: Node<'_>) -> bool {
    let says = |node: &Node<'_>| {
        let words = words(file.str(*node));
        words.first() == Some(&"cfg") && words != ["cfg", "test"]
    };
    let mut above = Some(node);
    while let Some(node) = above {
        let mut cursor = node.walk();
        let of_file = node.children(&mut cursor).filter(|child| child.kind() == "inner_attribute_item");
        let of_file: Vec<Node<'_>> = of_file.collect();
        if attributes(node).iter().any(says) || of_file.iter().any(says) {
            return true;
        }
        above = node.parent();
    }
    false
}

/// Texts, by place, that import `part` where the modules around a node import `name`.
fn imports(file: &RustFile<'_>, node: Node<'_>, name: &str, part: &str) -> BTreeMap<usize, String> {
    let mut texts = BTreeMap::new();
    visit(file.tree.root_node(), |leaf| {
        if leaf.kind() != "identifier" || file.str(leaf) != name {
            return;
        }
        let above: Vec<Node<'_>> = std::iter::successors(leaf.parent(), Node::parent).collect();
        let Some(at) = above.iter().position(|one| one.kind() == "use_declaration") else { return };
        let is_around =
            above.get(at + 1).is_some_and(|module| module.byte_range().contains(&node.start_byte()));
        match above.first().map(Node::kind) {
            Some("use_list") if is_around => {
                texts.insert(leaf.end_byte(), format!(", {part}"));
            }
            Some("scoped_identifier") if is_around && at == 1 => {
                texts.insert(leaf.start_byte(), "{".to_owned());
                texts.insert(leaf.end_byte(), format!(", {part}}}"));
            }
            _ => {}
        }
    });
    texts
}

/// Whether the macros around a name, if any, only evaluate it.
fn macro_allows(file: &RustFile<'_>, leaf: Node<'_>) -> Result<(), &'static str> {
    let mut above = leaf.parent();
    while let Some(node) = above {
        let called = node.child_by_field_name("macro").map(|called| file.str(called));
        match node.kind() {
            "macro_definition" => return Err("is named in the body of a macro"),
            "macro_invocation" if !called.is_some_and(evaluates) => {
                return Err("is given to a macro");
            }
            "token_tree" if is_of_unknown_macro(file, node) => return Err("is given to a macro"),
            _ => above = node.parent(),
        }
    }
    Ok(())
}

/// Whether a list of words belongs to a macro inside another one that is not among the known ones.
fn is_of_unknown_macro(file: &RustFile<'_>, tokens: Node<'_>) -> bool {
    let Some(mark) = tokens.prev_sibling().filter(|before| file.str(*before) == "!") else { return false };
    let name = mark.prev_sibling().filter(|name| name.kind() == "identifier");
    tokens.parent().is_some_and(|parent| parent.kind() == "token_tree")
        && name.is_some_and(|name| !evaluates(file.str(name)))
}

/// The value that is built field by field around the name of a field.
fn value(file: &RustFile<'_>, leaf: Node<'_>) -> Result<FieldList, &'static str> {
    let mut above = leaf.parent();
    while let Some(node) = above {
        match node.kind() {
            "field_initializer_list" => {
                let list = FieldList::of(file, node).ok_or("shares its line in a value with others")?;
                let has_base = list.fields.iter().any(|field| field.name.is_empty());
                return if has_base { Err("is given next to fields of another value") } else { Ok(list) };
            }
            "token_tree" | "macro_definition" => return Err("is in a value that a macro builds"),
            _ => above = node.parent(),
        }
    }
    Err("is in a value that is not understood")
}

/// The place of the `Box` among the values of fields that stay: with the last or the first that moves. `Err` names
/// moved fields that would change places with a value although one of both may do something.
fn place(list: &FieldList, moved: &BTreeSet<String>) -> Result<usize, BTreeSet<String>> {
    let is_moved = |index: &usize| moved.contains(&list.fields[*index].name);
    let all = 0..list.fields.len();
    let Some((first, last)) = all.clone().find(is_moved).zip(all.clone().rfind(is_moved)) else {
        return Ok(0);
    };
    let kind = |index: usize| list.fields[index].evaluation;
    let may_cross = |one: Evaluation, other: Evaluation| {
        one == Evaluation::Constant || other == Evaluation::Constant || one.max(other) == Evaluation::Reads
    };
    let crossing = |is_last: bool| -> BTreeSet<String> {
        let leaving = all.clone().filter(is_moved).filter(|&leaving| {
            let mut between = if is_last { leaving..last } else { first..leaving };
            between.any(|staying| !is_moved(&staying) && !may_cross(kind(leaving), kind(staying)))
        });
        leaving.map(|leaving| list.fields[leaving].name.clone()).collect()
    };
    match (crossing(true), crossing(false)) {
        (late, _) if late.is_empty() => Ok(last),
        (_, early) if early.is_empty() => Ok(first),
        (late, _) => Err(late),
    }
}

/// Writes one text.
struct Writer<'w, 's> {
    file: &'w RustFile<'w>,
    /// In order of their first bytes, outer ones first.
    changes: &'w [Change<'w>],
    moved: &'w BTreeSet<String>,
    search: &'w Search<'s>,
    strings: &'w [Range<usize>],
}

impl Writer<'_, '_> {
    /// The pieces of these bytes with the changes in them, from the change of this number on.
    fn pieces(&self, bytes: Range<usize>, from: usize) -> Vec<Piece> {
        let (mut pieces, mut at) = (Vec::new(), bytes.start);
        for (number, change) in self.changes.iter().enumerate().skip(from) {
            let range = change.bytes();
            if range.start < at || range.start >= bytes.end || range.end > bytes.end {
                continue;
            }
            pieces.push(Piece::Old(at..range.start));
            at = range.end;
            match change {
                Change::Text(_, text) => pieces.push(Piece::New(text.clone())),
                Change::Value(list) => pieces.extend(self.value(list, number + 1)),
                Change::Declaration(_) => {
                    pieces.extend(self.search.declared.pieces(self.file.text, self.moved, &self.search.names))
                }
            }
        }
        pieces.push(Piece::Old(at..bytes.end));
        pieces
    }

    /// A value that is built field by field, with a second one in a `Box` in it.
    fn value(&self, list: &FieldList, from: usize) -> Vec<Piece> {
        let BoxNames { part, member } = &self.search.names;
        // The path before the name of the struct, as in `model::T { … }`, leads to the second one as well.
        let before = self.file.text.get(..list.inside.start.saturating_sub(1)).unwrap_or_default().trim_end();
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let path = before.rsplit(|c| !is_path(c)).next().and_then(|path| path.rsplit_once("::"));
        let part = path.map_or(part.clone(), |(module, _)| format!("{module}::{part}"));
        let render = |bytes: Range<usize>| self.pieces(bytes, from);
        let (leaving, _) = list.partition(self.moved);
        let place = place(list, self.moved).unwrap_or_default();
        let (indent, new) = (&list.indent, |text: String| vec![Piece::New(text)]);
        let mut parts: Vec<Vec<Piece>> = Vec::new();
        for (index, field) in list.fields.iter().enumerate() {
            if index == place && list.is_by_lines {
                parts.push(new(format!("{indent}{member}: Box::new({part} {{\n")));
                let lines = leaving.iter().map(|leaving| list.field(leaving, &render));
                parts.extend(lines.map(|lines| indented(lines, self.file.text, list.step(), self.strings)));
                parts.push(new(format!("{indent}}}),\n")));
            } else if index == place {
                let inner = leaving.iter().map(|leaving| render(leaving.bytes.clone())).collect();
                let mut part = new(format!("{member}: Box::new({part} {{ "));
                part.extend(joined(inner));
                part.extend(new(" })".to_owned()));
                parts.push(part);
            }
            match self.moved.contains(&field.name) {
                true => {}
                false if list.is_by_lines => parts.push(list.field(field, &render)),
                false => parts.push(render(field.bytes.clone())),
            }
        }
        if !list.is_by_lines {
            return [new(" ".to_owned()), joined(parts), new(" ".to_owned())].concat();
        }
        let first = list.fields.first().map_or(list.inside.start, |field| field.whole.start);
        let last = list.fields.last().map_or(list.inside.start, |field| field.whole.end);
        [render(list.inside.start..first), parts.concat(), render(last..list.inside.end)].concat()
    }
}

/// Parts of a line with commas between them.
fn joined(parts: Vec<Vec<Piece>>) -> Vec<Piece> {
    parts.join(&Piece::New(", ".to_owned()))
}

#[cfg(test)]
#[path = "boxed_part_tests.rs"]
mod tests;
