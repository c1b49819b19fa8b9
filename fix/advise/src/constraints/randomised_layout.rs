//! Types whose layout the compiler may randomise.

use crate::constraints::comment_rules::Lifts;
use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::randomisation::Randomisation;
use crate::layout::subject::Subject;
use crate::text::attributes::{self, Meaning};
use crate::text::located_declaration::LocatedDeclaration;
use lineup_model::types::{TypeId, TypeKind, Types};

/// Types behind typedefs and qualifiers are followed this deep.
const MOST_NESTING: u32 = 8;

/// The refusal of a type whose layout the compiler may randomise. `--lift TYPE` stands for a configuration that was
/// not found, and cannot switch an option off.
pub(crate) fn refusal(
    randomisation: &Randomisation,
    subject: &Subject<'_>,
    found: &LocatedDeclaration<'_>,
    lifts: Lifts<'_>,
) -> Option<Binding> {
    let annotation = words(found).find(|(_, word)| attributes::is(word, Meaning::Randomises));
    let binding = |token: usize| {
        let line = found.lexed.line_at(found.lexed.tokens[token].start());
        Binding::new(Constraint::RandomisedLayout).at(&found.path, line)
    };
    match (randomisation, annotation) {
        (Randomisation::Unknown, Some((token, _))) if !lifts.frees_type() => Some(binding(token).because(
            "no configuration was found that says whether CONFIG_RANDSTRUCT is on: --source may name a configured \
             tree; --lift TYPE assumes that it is off",
        )),
        (Randomisation::On { option, configuration }, Some((token, _))) => {
            Some(binding(token).because(format!("{option} is on in {configuration}")))
        }
        (Randomisation::On { option, configuration }, None) if is_of_functions(subject) => {
            let is_exempt =
                words(found).any(|(_, word)| attributes::is(word, Meaning::KeepsOrder));
            let why = format!(
                "{option} is on in {configuration}, and the compiler randomises types that hold only pointers to \
                 functions"
            );
            (!is_exempt).then(|| binding(found.declaration.keyword).because(why))
        }
        _ => None,
    }
}

/// The words around the body of a declaration, by token.
fn words<'f>(found: &'f LocatedDeclaration<'_>) -> impl Iterator<Item = (usize, &'f str)> {
    let declaration = &found.declaration;
    let around = (declaration.keyword..declaration.open).chain(declaration.tail.clone());
    around.map(|index| (index, found.lexed.str(index)))
}

fn is_of_functions(subject: &Subject<'_>) -> bool {
    let members = &subject.aggregate.members;
    !members.is_empty() && members.iter().all(|member| is_function_pointer(subject.types, member.ty, 0))
}

fn is_function_pointer(types: &Types, id: TypeId, depth: u32) -> bool {
    let kind = |id: TypeId| types.get(id).map(|ty| &ty.kind);
    match kind(id).filter(|_| depth < MOST_NESTING) {
        Some(TypeKind::Pointer(Some(target))) => match kind(*target) {
            Some(TypeKind::Function { .. }) => true,
            Some(TypeKind::Typedef(Some(target))) => matches!(kind(*target), Some(TypeKind::Function { .. })),
            _ => false,
        },
        Some(TypeKind::Qualified(Some(target)) | TypeKind::Typedef(Some(target))) => {
            is_function_pointer(types, *target, depth + 1)
        }
        _ => false,
    }
}
