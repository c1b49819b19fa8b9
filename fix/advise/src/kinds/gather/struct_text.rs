//! The text of a gathering: definitions become members, uses are renamed.

use crate::constraints::constraint::{Binding, Constraint};
use crate::patch::text_edits::replace;
use crate::text::definitions::{self, Definition, Statement};
use crate::text::language::SourceLanguage;
use crate::text::lex::Lexed;
use crate::text::occurrences::{self, File};
use crate::text::sources::Sources;
use crate::text::syntax::parse;
use crate::text::{body_parts, lines};
use lineup_model::types::Types;
use std::collections::BTreeSet;
use std::ops::Range;

/// A variable with all that is edited for it.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) name: String,
    pub(crate) definition: Definition,
    /// Bytes of the definition with its comments, whole lines.
    pub(crate) span: Range<usize>,
    /// Comments above the definition, and after it on its line.
    pub(crate) comments: (String, String),
    /// Uses outside the declarator.
    pub(crate) uses: Vec<Range<usize>>,
    pub(crate) line: u32,
}

/// Variables to gather, in the order of the new struct's members.
#[derive(Clone, Debug)]
pub(crate) struct Gathering {
    pub(crate) name: String,
    pub(crate) align_bytes: u64,
    pub(crate) regions: Vec<String>,
    pub(crate) variables: Vec<Planned>,
}

impl Gathering {
    /// Notes for the user: attributes that were dropped.
    pub(crate) fn notes(&self, path: &str) -> Vec<Binding> {
        let dropped = self.variables.iter().filter(|variable| !variable.definition.dropped.is_empty());
        dropped
            .map(|variable| {
                let why = format!("{} is dropped", variable.definition.dropped.join(" "));
                Binding::new(Constraint::SectionAttribute)
                    .on([&variable.name])
                    .at(path, variable.line)
                    .because(why)
            })
            .collect()
    }
}

/// Finds the one definition of a variable and its uses.
///
/// # Errors
/// The constraint that keeps the variable where it is.
pub(crate) fn plan(
    sources: &Sources,
    compiled: &BTreeSet<String>,
    name: &str,
) -> Result<(String, Planned), Binding> {
    let mut found: Vec<(&str, Lexed<'_>, Statement)> = Vec::new();
    for (path, _) in sources.that_may_name(name) {
        if sources.language(path) == SourceLanguage::Assembly {
            continue;
        }
        let Some(lexed) = sources.lexed(path) else { continue };
        for statement in definitions::statements(&lexed) {
            if definitions::declares(&lexed, &statement, name) {
                found.push((path, lexed.clone(), statement));
            }
        }
    }
    if found.iter().any(|(path, _, _)| compiled.contains(*path)) {
        let named: BTreeSet<&str> = compiled.iter().map(|path| file_name(path)).collect();
        let is_copy = |path: &str| !compiled.contains(path) && named.contains(file_name(path));
        found.retain(|(path, _, _)| compiled.contains(*path) || is_header(path) && !is_copy(path));
    }
    let line = |lexed: &Lexed<'_>, statement: &Statement| {
        lexed.line_at(lexed.tokens[statement.tokens.start].start())
    };
    let (path, lexed, statement) = match found.as_slice() {
        [(path, lexed, statement)] => (*path, lexed, statement),
        [] => return Err(Binding::new(Constraint::OutsideSource).on([name]).because("no definition found")),
        [(first, first_lexed, first_statement), (path, lexed, statement), ..] => {
            let first = format!("{first}:{}", line(first_lexed, first_statement));
            return Err(Binding::new(Constraint::VariableDeclaration)
                .on([name])
                .at(path, line(lexed, statement))
                .because(format!("declared more than once, at {first} as well")));
        }
    };
    let definition = definitions::read(lexed, statement, name, path)?;
    if !definition.is_static {
        used_elsewhere(sources, compiled, path, name)?;
    }
    let start = lexed.tokens[statement.tokens.start].start();
    let declarator_end = definition
        .initialiser
        .as_ref()
        .map_or_else(|| lexed.tokens[statement.tokens.end - 1].end(), |initialiser| initialiser.start);
    let tree =
        parse(lexed.text, sources.language(path)).ok_or_else(|| Binding::new(Constraint::UnclearSource))?;
    let file = File { path, lexed, root: tree.root_node() };
    let uses = occurrences::of_variable(&file, name, &(start..declarator_end))?;
    let (span, comments) = with_comments(lexed, statement);
    let line = line(lexed, statement);
    Ok((path.to_string(), Planned { name: name.to_string(), definition, span, comments, uses, line }))
}

/// The files of the folder that debug info names, as units or as the place of a declaration: other variants of a file
/// in its folder, and copies that a build made, are not part of the program.
pub(crate) fn compiled_files(sources: &Sources, types: &Types) -> BTreeSet<String> {
    let units = types.iter().filter_map(|(_, ty)| ty.unit.as_deref());
    let declaring = types.iter().filter_map(|(_, ty)| Some(ty.declared_at.as_ref()?.file.as_ref()));
    let named: BTreeSet<&str> = units.chain(declaring).collect();
    named.into_iter().filter_map(|path| sources.matching_path(path)).map(str::to_string).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_header(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| matches!(extension, "h" | "hh" | "hpp" | "hxx"))
}

/// Refuses a variable with external linkage that another file names.
fn used_elsewhere(
    sources: &Sources,
    compiled: &BTreeSet<String>,
    home: &str,
    name: &str,
) -> Result<(), Binding> {
    let belongs = |path: &str| compiled.is_empty() || compiled.contains(path) || is_header(path);
    for (path, _) in sources.that_may_name(name).filter(|(path, _)| *path != home && belongs(path)) {
        let Some(lexed) = sources.lexed(path) else { continue };
        let hit = (0..lexed.tokens.len()).find(|&index| {
            let before = lexed.previous_code(index).map_or("", |before| lexed.str(before));
            lexed.is_word(index) && lexed.str(index) == name && !matches!(before, "." | ">")
        });
        if let Some(index) = hit {
            let line = lexed.line_at(lexed.tokens[index].start());
            return Err(Binding::new(Constraint::ExternalLinkage).on([name]).at(path, line));
        }
    }
    Ok(())
}

/// Whole lines of a definition with its comments, and those comments.
fn with_comments(lexed: &Lexed<'_>, statement: &Statement) -> (Range<usize>, (String, String)) {
    let tokens = body_parts::with_comments(lexed, &statement.tokens, 0..lexed.tokens.len());
    let text = lexed.text;
    let from = lexed.tokens[tokens.start].start();
    let code = lexed.tokens[statement.tokens.start].start()..lexed.tokens[statement.tokens.end - 1].end();
    let to = lexed.tokens[tokens.end - 1].end();
    let comments = (text[from..code.start].trim_end().to_string(), text[code.end..to].trim().to_string());
    let start = lines::line_start(text, from);
    let rest = text[to..].find('\n').map_or(text.len(), |newline| to + newline + 1);
    let owns_lines = text[start..from].trim().is_empty() && text[to..rest].trim().is_empty();
    (if owns_lines { start..rest } else { from..to }, comments)
}

/// A name for the new variable that no file uses: `sched_clock_hot`.
pub(crate) fn free_name(sources: &Sources, region: &str) -> String {
    let stem: String = region
        .rsplit("::")
        .next()
        .unwrap_or(region)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let stem = if stem.is_empty() || stem.starts_with(|c: char| c.is_ascii_digit()) {
        "_".to_string() + &stem
    } else {
        stem
    };
    let is_taken = |name: &str| sources.iter().any(|(_, text)| text.contains(name));
    let mut name = format!("{stem}_hot");
    let mut number = 2;
    while is_taken(&name) {
        name = format!("{stem}_hot{number}");
        number += 1;
    }
    name
}

/// The file's text with the variables gathered.
///
/// # Errors
/// When a use stands before every place where the new struct could be defined.
pub(crate) fn write(sources: &Sources, path: &str, gathering: &Gathering) -> Result<String, Binding> {
    let text = sources.get(path).unwrap_or("");
    let renamed = |range: Range<usize>| {
        let mut edits = Vec::new();
        let names: Vec<(Range<usize>, String)> = gathering
            .variables
            .iter()
            .flat_map(|variable| {
                variable
                    .uses
                    .iter()
                    .map(|used| (used.clone(), format!("{}.{}", gathering.name, variable.name)))
            })
            .filter(|(used, _)| range.start <= used.start && used.end <= range.end)
            .collect();
        for (used, name) in &names {
            edits.push((used.start - range.start..used.end - range.start, name.as_str()));
        }
        replace(&text[range], edits)
    };
    let mut removed: Vec<Range<usize>> =
        gathering.variables.iter().map(|variable| variable.span.clone()).collect();
    removed.sort_by_key(|span| span.start);
    let at = insertion_index(gathering, &removed)?;
    let mut new = String::with_capacity(text.len() + 256);
    let mut from = 0;
    for (index, span) in removed.iter().enumerate() {
        new.push_str(&renamed(from..span.start));
        from = span.end;
        if index == at {
            new.push_str(&emit(text, gathering, &renamed));
        } else if new.ends_with("\n\n") && text[from..].starts_with('\n') {
            from += 1;
        }
    }
    new.push_str(&renamed(from..text.len()));
    Ok(new)
}

/// The definition that the new struct replaces: the last, unless a use stands before it.
fn insertion_index(gathering: &Gathering, removed: &[Range<usize>]) -> Result<usize, Binding> {
    let first_use = gathering
        .variables
        .iter()
        .flat_map(|variable| &variable.uses)
        .filter(|used| !removed.iter().any(|span| span.contains(&used.start)))
        .map(|used| used.start)
        .min()
        .unwrap_or(usize::MAX);
    let possible = removed.iter().rposition(|span| span.start <= first_use);
    possible.ok_or_else(|| {
        let names = gathering.variables.iter().map(|variable| variable.name.clone());
        Binding::new(Constraint::VariableDeclaration).on(names).because("used before it is defined")
    })
}

/// A value with its later lines one level deeper; left alone where a line break means something.
fn indented(value: &str, indent: &str) -> String {
    if value.contains('\\') || value.contains("R\"") {
        return value.to_string();
    }
    let deeper = |line: &str| if line.is_empty() { String::new() } else { format!("{indent}{line}") };
    let mut lines = value.split('\n');
    let first = lines.next().unwrap_or("").to_string();
    lines.fold(first, |all, line| format!("{all}\n{}", deeper(line)))
}

/// The new struct, its variable and its initialiser.
fn emit(text: &str, gathering: &Gathering, renamed: &dyn Fn(Range<usize>) -> String) -> String {
    let indent = if text.contains("\n    ") && !text.contains("\n\t") { "    " } else { "\t" };
    let mut new = format!(
        "/* Used together by {}: kept on as few cache lines as possible. */\n",
        gathering.regions.join(", ")
    );
    let is_static = gathering.variables.iter().all(|variable| variable.definition.is_static);
    new.push_str(if is_static { "static struct {\n" } else { "struct {\n" });
    for variable in &gathering.variables {
        let (above, after) = &variable.comments;
        for line in above.lines() {
            let line = line.trim();
            let star = if line.starts_with('*') { " " } else { "" };
            new.push_str(&format!("{indent}{star}{line}\n"));
        }
        let gap = if after.is_empty() { "" } else { " " };
        new.push_str(&format!("{indent}{};{gap}{after}\n", variable.definition.member));
    }
    new.push_str(&format!("}} {} __attribute__((aligned({})))", gathering.name, gathering.align_bytes));
    let initialised: Vec<String> = gathering
        .variables
        .iter()
        .filter_map(|variable| {
            let value = indented(&renamed(variable.definition.initialiser.clone()?), indent);
            Some(format!("{indent}.{} = {value},\n", variable.name))
        })
        .collect();
    if !initialised.is_empty() {
        new.push_str(" = {\n");
        new.push_str(&initialised.concat());
        new.push('}');
    }
    new.push_str(";\n");
    new
}
