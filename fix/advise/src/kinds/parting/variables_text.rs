//! Variables at file scope that get another alignment, or more room for each element: the text.

use crate::constraints::constraint::{Binding, Constraint};
use crate::layout::spelling::bare;
use crate::text::attributes::{self, Meaning};
use crate::text::definitions::{self, Statement};
use crate::text::language::SourceLanguage;
use crate::text::lex::Lexed;
use crate::text::occurrences::{self, File};
use crate::text::sources::Sources;
use crate::text::syntax::{parse, text_of};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tree_sitter::Node;

/// The edit of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Edit {
    /// Its definition gets an alignment.
    Align { bytes: u64 },
    /// Its definition gets an alignment and one more dimension, of which each use takes the first place.
    Spread { bytes: u64, per_line: u64 },
}

/// The texts that change, and the file that defines the variable.
pub(crate) struct Edited {
    pub(crate) path: String,
    pub(crate) texts: BTreeMap<String, String>,
}

/// A declaration of the variable.
struct Declared {
    path: String,
    line: u32,
    is_definition: bool,
    is_static: bool,
    /// The words of its type.
    words: BTreeSet<String>,
    /// The bytes of the whole statement.
    bytes: Range<usize>,
    /// Behind the name and its brackets.
    behind_brackets: usize,
    /// Behind the declarator.
    behind: usize,
    /// The alignment that stands in the declaration, or 0.
    align_bytes: u64,
}

/// Edits the one definition of a variable, and for a spread one also its declarations and uses.
///
/// # Errors
/// The constraint that keeps the variable unchanged.
pub(crate) fn edit(
    sources: &Sources,
    compiled: &BTreeSet<String>,
    name: &str,
    edit: Edit,
) -> Result<Edited, Binding> {
    let name = bare(name);
    let all = declarations(sources, compiled, name)?;
    let defining: Vec<&Declared> = all.iter().filter(|one| one.is_definition).collect();
    let definition = match defining.as_slice() {
        [definition] => *definition,
        [] => return Err(Binding::new(Constraint::OutsideSource).on([name]).because("no definition found")),
        [_, other, ..] => {
            return Err(Binding::new(Constraint::VariableDeclaration)
                .on([name])
                .at(&other.path, other.line)
                .because("defined more than once"));
        }
    };
    let mut changes: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    let (Edit::Align { bytes } | Edit::Spread { bytes, .. }) = edit;
    if definition.align_bytes < bytes {
        let aligned = format!(" __attribute__((aligned({bytes})))");
        changes.entry(definition.path.clone()).or_default().push((definition.behind, aligned));
    }
    if let Edit::Spread { per_line, .. } = edit {
        let is_of_assembly = |path: &&str| sources.language(path) == SourceLanguage::Assembly;
        if let Some(path) = sources.that_may_name(name).map(|(path, _)| path).find(is_of_assembly) {
            return Err(Binding::new(Constraint::Assembly).on([name]).at(path, 1));
        }
        let is_local = definition.is_static && !is_header(&definition.path);
        let is_meant = |path: &str| !is_local || path == definition.path;
        for one in all.iter().filter(|one| is_meant(&one.path)) {
            let more = (one.behind_brackets, format!("[{per_line}]"));
            changes.entry(one.path.clone()).or_default().insert(0, more);
        }
        let is_other = |path: &str| all.iter().all(|one| one.path != path) && defines(sources, path, name);
        for path in files(sources, name).filter(|path| is_meant(path) && !is_other(path)) {
            let own = all.iter().find(|one| one.path == path).map_or(0..0, |one| one.bytes.clone());
            let uses = elements((sources, path), (name, &definition.words), &own)?;
            changes
                .entry(path.to_owned())
                .or_default()
                .extend(uses.into_iter().map(|at| (at, "[0]".to_owned())));
        }
    }
    let texts = changes.into_iter().filter(|(_, changes)| !changes.is_empty());
    let texts = texts.map(|(path, changes)| {
        let text = inserted(sources.get(&path).unwrap_or_default(), changes);
        (path, text)
    });
    Ok(Edited { texts: texts.collect(), path: definition.path.clone() })
}

fn inserted(text: &str, mut changes: Vec<(usize, String)>) -> String {
    // Stable: insertions at one place are already in their order.
    changes.sort_by_key(|(at, _)| *at);
    let mut new = String::with_capacity(text.len() + 64 * changes.len());
    let mut from = 0;
    for (at, more) in changes {
        new.push_str(&text[from..at]);
        new.push_str(&more);
        from = at;
    }
    new.push_str(&text[from..]);
    new
}

fn is_header(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| matches!(extension, "h" | "hh" | "hpp" | "hxx"))
}

/// The files of C and C++ that may name the variable.
fn files<'s>(sources: &'s Sources, name: &'s str) -> impl Iterator<Item = &'s str> {
    let paths = sources.that_may_name(name).map(|(path, _)| path);
    paths.filter(|path| sources.language(path) != SourceLanguage::Assembly)
}

/// Whether a file has a variable of that name.
fn defines(sources: &Sources, path: &str, name: &str) -> bool {
    sources.lexed(path).is_some_and(|lexed| {
        let statements = definitions::statements(&lexed);
        statements.iter().any(|one| definitions::declares(&lexed, one, name))
    })
}

fn declarations(
    sources: &Sources,
    compiled: &BTreeSet<String>,
    name: &str,
) -> Result<Vec<Declared>, Binding> {
    let mut all = Vec::new();
    for path in files(sources, name) {
        let Some(lexed) = sources.lexed(path) else { continue };
        for statement in definitions::statements(&lexed).iter().filter(|one| !one.is_function) {
            if let Some(token) = definitions::name_token(&lexed, statement, name) {
                all.push(read(&lexed, statement, token, path, name)?);
            }
        }
    }
    // Debug information does not name every file. If it names one that defines the variable, the others belong to other
    // programs.
    if all.iter().any(|one: &Declared| one.is_definition && compiled.contains(&one.path)) {
        all.retain(|one| compiled.contains(&one.path) || is_header(&one.path));
    }
    Ok(all)
}

fn read(
    lexed: &Lexed<'_>,
    statement: &Statement,
    token: usize,
    path: &str,
    name: &str,
) -> Result<Declared, Binding> {
    let line = lexed.line_at(lexed.tokens[token].start());
    let refuse = |why: &str| {
        Binding::new(Constraint::VariableDeclaration).on([name]).at(path, line).because(why.to_owned())
    };
    let words: Vec<&str> = statement
        .tokens
        .clone()
        .filter(|index| lexed.is_word(*index))
        .map(|index| lexed.str(index))
        .collect();
    if let Some(word) = words.iter().find(|word| is_placed(word)) {
        return Err(refuse(&format!("{word}: where it lies means something")));
    }
    let end = statement.tokens.end;
    let mut at = token + 1;
    let mut behind_brackets = lexed.tokens[token].end();
    while let Some(open) = lexed.next_code(at, end).filter(|open| lexed.str(*open) == "[") {
        let close = lexed.closing(open, end).ok_or_else(|| refuse("brackets do not match"))?;
        behind_brackets = lexed.tokens[close].end();
        at = close + 1;
    }
    let mut behind = behind_brackets;
    let mut has_value = false;
    while let Some(index) = lexed.next_code(at, end) {
        match lexed.str(index) {
            "=" | "{" => {
                has_value = true;
                break;
            }
            "," | ";" => break,
            "(" | "[" => at = lexed.closing(index, end).ok_or_else(|| refuse("brackets do not match"))? + 1,
            _ => at = index + 1,
        }
        behind = lexed.tokens[at - 1].end();
    }
    let before = statement.tokens.start..token;
    let has = |word: &str| before.clone().any(|index| lexed.is_word(index) && lexed.str(index) == word);
    Ok(Declared {
        path: path.to_owned(),
        line,
        is_definition: !has("extern") || has_value,
        is_static: has("static"),
        words: before
            .clone()
            .filter(|index| lexed.is_word(*index))
            .map(|index| lexed.str(index).to_owned())
            .collect(),
        bytes: lexed.tokens[statement.tokens.start].start()..lexed.tokens[end - 1].end(),
        behind_brackets,
        behind,
        align_bytes: align_bytes(lexed, statement.tokens.start..at),
    })
}

/// The largest alignment that is written as a number.
fn align_bytes(lexed: &Lexed<'_>, tokens: Range<usize>) -> u64 {
    let asks = |index: &usize| lexed.is_word(*index) && attributes::is(lexed.str(*index), Meaning::Aligns);
    let number = |index: usize| {
        let open = lexed.next_code(index + 1, tokens.end).filter(|open| lexed.str(*open) == "(")?;
        let number = lexed.next_code(open + 1, tokens.end)?;
        lexed.str(number).parse::<u64>().ok()
    };
    tokens.clone().filter(asks).filter_map(number).max().unwrap_or(0)
}

/// Words that ask for a certain place of a variable, or that make it none.
fn is_placed(word: &str) -> bool {
    [Meaning::Placed, Meaning::Section, Meaning::Packs].iter().any(|one| attributes::is(word, *one))
}

/// The ends of the subscripts of all uses in a file.
fn elements(
    (sources, path): (&Sources, &str),
    (name, words): (&str, &BTreeSet<String>),
    own: &Range<usize>,
) -> Result<Vec<usize>, Binding> {
    let unclear = || Binding::new(Constraint::UnclearSource).on([name]).at(path, 1);
    let lexed = sources.lexed(path).ok_or_else(unclear)?;
    let tree = parse(lexed.text, sources.language(path)).ok_or_else(unclear)?;
    let file = File { path, lexed: &lexed, root: tree.root_node() };
    let all = occurrences::of_variable(&file, name, own)?;
    let value = lexed.text[own.clone()].split_once('=').map(|(_, value)| value.trim_end_matches(';'));
    if value
        .is_some_and(|value| !matches!(value.split_whitespace().collect::<String>().as_str(), "{0}" | "{}"))
    {
        return Err(Binding::new(Constraint::PositionalInitialiser)
            .on([name])
            .at(path, lexed.line_at(own.start)));
    }
    let end = |used: Range<usize>| {
        let node = file.root.descendant_for_byte_range(used.start, used.end);
        let found = node.and_then(|node| element_end(node, lexed.text, words));
        found.ok_or_else(|| {
            Binding::new(Constraint::VariableDeclaration)
                .on([name])
                .at(path, lexed.line_at(used.start))
                .because(
                    "used otherwise than by its elements' values: what is beside an element may be meant",
                )
        })
    };
    all.into_iter().map(end).collect()
}

/// The end of the subscript, where a use takes an element's value and no more.
fn element_end(node: Node<'_>, text: &str, words: &BTreeSet<String>) -> Option<usize> {
    let subscript = node.parent().filter(|parent| parent.kind() == "subscript_expression")?;
    if subscript.child_by_field_name("argument") != Some(node) {
        return None;
    }
    let mut outer = subscript.parent()?;
    while outer.kind() == "parenthesized_expression" {
        outer = outer.parent()?;
    }
    let operator =
        |node: Node<'_>| node.child_by_field_name("operator").map(|operator| text_of(operator, text));
    let is_address = outer.kind() == "pointer_expression" && operator(outer) == Some("&");
    (!is_address || is_for_one_element(outer, text, words)).then_some(subscript.end_byte())
}

/// Whether an address is used only for the bytes there: dereferenced at once, or given to an atomic operation.
fn is_for_one_element(address: Node<'_>, text: &str, words: &BTreeSet<String>) -> bool {
    let Some(mut outer) = address.parent() else { return false };
    // `*(volatile double *)&a[i]`: the type of the elements, with a qualifier. Another may be larger than an element.
    let mut is_other = false;
    while matches!(outer.kind(), "parenthesized_expression" | "cast_expression") {
        let ty = outer.child_by_field_name("type").map(|ty| text_of(ty, text));
        is_other |= ty.is_some_and(|ty| !is_of(ty, words));
        let Some(next) = outer.parent() else { return false };
        outer = next;
    }
    let operator = outer.child_by_field_name("operator").map(|operator| text_of(operator, text));
    if outer.kind() == "pointer_expression" {
        return operator == Some("*") && !is_other;
    }
    let callee = (outer.kind() == "argument_list").then(|| outer.parent()).flatten();
    let callee =
        callee.and_then(|call| call.child_by_field_name("function")).map(|callee| text_of(callee, text));
    let is_atomic =
        |callee: &str| ["__atomic_", "__sync_", "atomic_"].iter().any(|start| callee.starts_with(start));
    callee.is_some_and(is_atomic) && !is_other
}

/// Whether a cast leads to a pointer to the type that these words declare.
fn is_of(cast: &str, words: &BTreeSet<String>) -> bool {
    let of_type = |word: &str| {
        !matches!(word, "volatile" | "const" | "static" | "extern") && !attributes::is(word, Meaning::Aligns)
    };
    let of_cast: BTreeSet<&str> =
        cast.trim_end_matches(['*', ' ']).split_whitespace().filter(|word| of_type(word)).collect();
    let declared: BTreeSet<&str> = words.iter().map(String::as_str).filter(|word| of_type(word)).collect();
    of_cast == declared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(files: &[(&str, &str)], name: &str, edit_: Edit) -> Result<BTreeMap<String, String>, String> {
        let sources = Sources::new(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
        edit(&sources, &BTreeSet::new(), name, edit_)
            .map(|edited| edited.texts)
            .map_err(|binding| binding.to_string())
    }

    #[test]
    fn a_definition_gets_an_alignment_wherever_it_stands() {
        for (text, expected) in [
            ("volatile long x = 1;", "volatile long x __attribute__((aligned(64))) = 1;"),
            ("static int a, x, b;", "static int a, x __attribute__((aligned(64))), b;"),
            ("static long x[2][3];", "static long x[2][3] __attribute__((aligned(64)));"),
            ("static u64 (*x)(void) = f;", "static u64 (*x)(void) __attribute__((aligned(64))) = f;"),
            ("static _Alignas(32) int x;", "static _Alignas(32) int x __attribute__((aligned(64)));"),
            (
                "struct s { int x; }; struct s x __attribute__((aligned(16)));",
                "struct s { int x; }; struct s x __attribute__((aligned(16))) __attribute__((aligned(64)));",
            ),
        ] {
            let texts = edited(&[("a.c", text)], "x", Edit::Align { bytes: 64 }).expect(text);
            assert_eq!(texts["a.c"], expected);
        }
        let texts = edited(&[("a.c", "_Alignas(128) long x;")], "x", Edit::Align { bytes: 64 });
        assert_eq!(texts, Ok(BTreeMap::new()), "it has one");
        let two = [("a.c", "extern long x;\nlong f(void) { return x; }"), ("b.c", "long x;")];
        let texts = edited(&two, "x", Edit::Align { bytes: 64 }).expect("one definition");
        assert_eq!(texts.keys().collect::<Vec<_>>(), ["b.c"]);
        assert_eq!(texts["b.c"], "long x __attribute__((aligned(64)));");
    }

    #[test]
    fn what_is_placed_or_defined_twice_is_left_alone() {
        for (files, why) in [
            (vec![("a.c", "static long x __attribute__((section(\"s\")));")], "section"),
            (vec![("a.c", "static __thread long x;")], "__thread"),
            (vec![("a.c", "static long x;"), ("b.c", "static long x;")], "more than once"),
            (vec![("a.c", "void f(void) { static long x; }")], "no definition"),
        ] {
            let refusal = edited(&files, "x", Edit::Align { bytes: 64 }).expect_err("a refusal");
            assert!(refusal.contains(why), "{refusal}");
        }
    }

    #[test]
    fn elements_get_room_in_all_files_that_use_them() {
        let files = [
            ("a.h", "extern volatile long x[];\n"),
            (
                "a.c",
                "#include \"a.h\"\nvolatile long x[2] = { 0 };\nvoid f(int i) { x[i] += x[1 - i]; __atomic_fetch_add(&x[i], 1, 5); }\n",
            ),
            (
                "b.c",
                "#include \"a.h\"\nlong g(int i) { return *(volatile long *)&x[i] + (int)sizeof(x[0]); }\n",
            ),
        ];
        let texts = edited(&files, "x", Edit::Spread { bytes: 64, per_line: 8 }).expect("all by element");
        assert_eq!(texts["a.h"], "extern volatile long x[][8];\n");
        assert!(
            texts["a.c"].contains("long x[2][8] __attribute__((aligned(64))) = { 0 };"),
            "{}",
            texts["a.c"]
        );
        assert!(
            texts["a.c"].contains("x[i][0] += x[1 - i][0]; __atomic_fetch_add(&x[i][0], 1, 5);"),
            "{}",
            texts["a.c"]
        );
        assert!(
            texts["b.c"].contains("*(volatile long *)&x[i][0] + (int)sizeof(x[0][0])"),
            "{}",
            texts["b.c"]
        );
    }

    #[test]
    fn an_array_that_is_used_as_a_whole_is_left_alone() {
        for uses in [
            "long *f(void) { return x; }",
            "long *f(int i) { return &x[i]; }",
            "long f(int i) { return *(x + i); }",
            "long f(int i) { return i[x]; }",
            "int f(void) { return sizeof(x) / sizeof(x[0]); }",
            "int f(int i) { return *(short *)&x[i]; }",
            "int f(int i) { return *(volatile struct wide *)&x[i]; }",
            "#define X(i) x[i]",
        ] {
            let text = format!("static long x[2];\n{uses}\n");
            let refusal = edited(&[("a.c", &text)], "x", Edit::Spread { bytes: 64, per_line: 8 });
            assert!(refusal.is_err(), "{uses}: {refusal:?}");
        }
        let by_assembly =
            [("a.c", "long x[2];\nlong f(int i) { return x[i]; }\n"), ("b.S", "\tmovq x+8(%rip), %rax\n")];
        let refusal = edited(&by_assembly, "x", Edit::Spread { bytes: 64, per_line: 8 });
        assert!(refusal.expect_err("assembly").contains("assembly"));
        let valued = "static long x[2] = { 1, 2 };\nlong f(int i) { return x[i]; }\n";
        let refusal = edited(&[("a.c", valued)], "x", Edit::Spread { bytes: 64, per_line: 8 });
        assert!(refusal.expect_err("values").contains("by position"));
    }
}
