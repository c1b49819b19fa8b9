//! Checks the promises of a guard.

use crate::finding::{Finding, Rule};
use crate::repository_line::RepositoryLine;
use crate::side::{BuiltFile, Side};
use lineup_advise::guard::{CheckReport, Lock, Violation};
use lineup_model::types::Types;

/// A `lineup.lock`, and where the repository has it.
#[derive(Clone, PartialEq, Debug)]
pub struct GuardFile {
    /// The file, from the repository's top.
    pub name: String,
    /// Its promises.
    pub lock: Lock,
}

/// A file's check against the promises.
#[derive(Clone, PartialEq, Debug)]
pub struct GuardState {
    /// The file that was checked.
    pub file: String,
    /// The head's check.
    pub head: CheckReport,
    /// The base's check, by the same promises.
    pub base: Option<CheckReport>,
}

/// Holds both sides against the guard. A promise about a type that another file has is kept there.
pub(crate) fn check(guard: &GuardFile, base: &Side<'_>, head: &Side<'_>) -> (Vec<GuardState>, Vec<Finding>) {
    let mut states = Vec::new();
    let mut findings: Vec<Finding> = Vec::new();
    for (index, file) in head.files.iter().enumerate() {
        let lock = of_this_file(&guard.lock, head, index);
        let report = lock.check(file.types, file.abi);
        let before = base.files.get(index).map(|file| lock.check(file.types, file.abi));
        for violation in &report.violations {
            let finding = finding(violation, before.as_ref(), guard, (head, file));
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
        states.push(GuardState { file: file.name.to_owned(), head: report, base: before });
    }
    (states, findings)
}

/// The groups whose types this file has; the first file answers for types that none has.
fn of_this_file(lock: &Lock, side: &Side<'_>, index: usize) -> Lock {
    let has = |file: &BuiltFile<'_>, name: &str| complete(file.types, name).is_some();
    let is_ours = |name: &str| match side.files.get(index) {
        Some(file) if has(file, name) => true,
        _ => index == 0 && !side.files.iter().any(|file| has(file, name)),
    };
    Lock { groups: lock.groups.iter().filter(|group| is_ours(&group.type_name)).cloned().collect() }
}

fn complete(types: &Types, name: &str) -> Option<lineup_model::types::TypeId> {
    let named = types.by_name();
    named.get(name)?.iter().copied().find(|&id| types.aggregate(id).is_some())
}

fn finding(
    violation: &Violation,
    before: Option<&CheckReport>,
    guard: &GuardFile,
    (head, file): (&Side<'_>, &BuiltFile<'_>),
) -> Finding {
    let was_broken = before.is_some_and(|before| {
        let same =
            |known: &Violation| known.type_name == violation.type_name && known.member == violation.member;
        before.violations.iter().any(same)
    });
    let of_member =
        violation.member.as_deref().and_then(|member| member_place(file.types, violation, member, head));
    let of_type = || {
        let ty = file.types.get(complete(file.types, &violation.type_name)?)?;
        RepositoryLine::in_repository(ty.declared_at.as_ref()?, head.root)
    };
    let known = if was_broken { " (it was broken before the change, too)" } else { "" };
    Finding {
        rule: Rule::Guard,
        subject: match &violation.member {
            Some(member) => format!("{}::{member}", violation.type_name),
            None => violation.type_name.clone(),
        },
        message: format!("{}{known}", violation.message),
        place: of_member
            .or_else(of_type)
            .or_else(|| Some(RepositoryLine { file: guard.name.clone(), line: 1 })),
        ratio: None,
        fails: false,
    }
}

fn member_place(
    types: &Types,
    violation: &Violation,
    member: &str,
    head: &Side<'_>,
) -> Option<RepositoryLine> {
    let (_, aggregate) = types.aggregate(complete(types, &violation.type_name)?)?;
    let first = member.split('.').next()?;
    let member = aggregate.members.iter().find(|known| known.name.as_deref() == Some(first))?;
    RepositoryLine::in_repository(member.declared_at.as_ref()?, head.root)
}
