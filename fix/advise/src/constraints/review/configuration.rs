//! Members that a configuration leaves out, or whose size it decides.

use crate::constraints::review::declared_types::{is_named_after, type_names};
use crate::constraints::review::locks::LOCKS;
use crate::layout::subject::Subject;
use crate::text::body::{Body, TextUnit};
use crate::text::body_parts::BodyPartKind;
use crate::text::lex::{Kind, directive_word};
use crate::text::located_declaration;
use crate::text::sources::{Question, Sources};
use lineup_model::types::TypeId;
use std::ops::Range;

/// Words of options that no kernel in use has on: their members are not there.
const DEBUGGING: [&str; 12] = [
    "DEBUG",
    "LOCKDEP",
    "PROVE_",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "UBSAN",
    "LOCK_STAT",
    "TRACE_IRQFLAGS",
    "FAULT_INJECTION",
    "SELFTEST",
    "KUNIT",
];

/// Constants that the configuration decides, and types of such a size.
const SIZES: [&str; 8] = [
    "NR_CPUS",
    "MAX_NUMNODES",
    "MAX_NR_ZONES",
    "MAX_ZONELISTS",
    "NODES_SHIFT",
    "cpumask_t",
    "nodemask_t",
    "MAX_POSSIBLE_PHYSMEM_BITS",
];

/// The units of which the configuration decides whether they are there, or how large, each with the reason.
pub(super) fn conditional(
    subject: &Subject<'_>,
    body: &Body<'_>,
    ranges: &[Range<usize>],
    sources: &Sources,
) -> Vec<(usize, String)> {
    let units = body.units.iter().zip(ranges).enumerate();
    let found = units.filter_map(|(index, (unit, fields))| {
        if is_conditional(body, unit) {
            return conditions(body, index).map(|because| (index, because));
        }
        if let Some(size) =
            body.code_words(unit).find(|word| SIZES.contains(word) || word.starts_with("CONFIG_"))
        {
            return Some((index, format!("{size} decides its size")));
        }
        let because = fields
            .clone()
            .find_map(|field| of_type(subject, subject.aggregate.members.get(field)?.ty, sources));
        Some((index, because?))
    });
    found.collect()
}

/// The conditions of a unit inside `#if`; `None` if only debugging options put it there.
fn conditions(body: &Body<'_>, unit: usize) -> Option<String> {
    let lexed = &body.found.lexed;
    let pieces = &body.pieces[body.units[unit].pieces.clone()];
    let tokens = pieces.iter().flat_map(|piece| piece.tokens.clone());
    let mut directives =
        tokens.filter(|&token| lexed.tokens[token].kind == Kind::Directive).map(|token| lexed.str(token));
    directives.find_map(depends)
}

/// The condition of a directive that is no debugging option.
fn depends(directive: &str) -> Option<String> {
    let word = directive_word(directive);
    let condition = directive.trim_start_matches('#').trim_start().strip_prefix(word)?.trim();
    let is_debugging = DEBUGGING.iter().any(|word| condition.contains(word));
    let asks = word.starts_with("if") || word.starts_with("elif");
    (asks && !is_debugging).then(|| condition.to_owned())
}

/// The reason why the size of an object of a type depends on the configuration. Locks are taken to have one size.
fn of_type(subject: &Subject<'_>, id: TypeId, sources: &Sources) -> Option<String> {
    if is_named_after(subject.types, id, &LOCKS) {
        return None;
    }
    subject.types.aggregate(id)?;
    let depends = |name: &&str| {
        let answer = || Some(declares_conditionally(sources, name));
        sources.answer(Question::DependsOnConfiguration, name, answer) == Some(true)
    };
    let name = type_names(subject.types, id).into_iter().find(depends)?;
    Some(format!("its type {name} has members inside #if"))
}

fn declares_conditionally(sources: &Sources, name: &str) -> bool {
    let Ok(found) = located_declaration::find(sources, name, None) else { return false };
    let inside = found.declaration.open..found.declaration.close;
    let mut directives = inside.filter(|&token| found.lexed.tokens[token].kind == Kind::Directive);
    directives.any(|token| depends(found.lexed.str(token)).is_some())
}

/// Whether any of the unit's pieces stands inside `#if`.
fn is_conditional(body: &Body<'_>, unit: &TextUnit) -> bool {
    body.pieces[unit.pieces.clone()].iter().any(|piece| piece.kind == BodyPartKind::Conditional)
}
