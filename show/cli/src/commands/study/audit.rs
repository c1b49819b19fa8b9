//! `--audit COMMAND`: the whole program is watched while the user's commands run it, and its accesses constrain types.

use super::plan::Plan;
use super::variant::Variant;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::meaning::{Effect, Hold, Meaning, TypeMeaning};
use lineup_debuginfo::DebugInfo;
use lineup_explain::audit::{CodeTypes, TypeEvidence};
use lineup_model::types::TypeId;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, AuditRequest};
use std::collections::BTreeMap;

/// Evidence of one type that is quoted.
const MOST_QUOTED: usize = 3;

/// The result of an audit.
pub(crate) struct Audited {
    /// Its constraints on types.
    pub(crate) meaning: Meaning,
    /// The commands that ran, in a sentence.
    pub(crate) summary: String,
}

/// Runs the commands of `--audit`; `None` without any.
pub(crate) fn run(
    plan: &Plan,
    before: &Variant,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Option<Audited>> {
    if plan.audits.is_empty() {
        return Ok(None);
    }
    stages.stage("auditing the whole program while --audit runs it");
    let folder = &before.tree().path;
    let program = folder.join(before.program());
    let debug = before.recorded.debug();
    let debug = debug.with_context(|| format!("--audit: {} has no debug information", program.display()))?;
    let regions: Vec<&str> = plan.regions.iter().map(|(_, region)| region.name.as_str()).collect();
    let mut code = CodeTypes::of(debug, &regions)?;
    let request = AuditRequest {
        folder,
        program: &program,
        commands: &plan.audits,
        table: &|program, output| code.table(program, output),
        run: plan.run(before.tree())?,
    };
    let (findings, remarks) = recorder::audit(&request, interrupts)?;
    let evidence = code.evidence(&findings);
    let outside = code.outside(&findings);
    let outside = outside.into_iter().filter_map(|(ty, count)| Some((name(debug, ty)?, count)));
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in outside {
        *sums.entry(name).or_default() += count;
    }
    let held = of_types(debug, evidence);
    let mut summary =
        format!("{} processes of the whole program: {} types held", findings.processes, held.len());
    if findings.not_kept > 0 {
        summary += &format!("; {} observations exceeded the limit", findings.not_kept);
    }
    for remark in remarks {
        summary += &format!("; {remark}");
    }
    let meaning = Meaning { types: held, outside: Some(sums), ..Meaning::default() };
    Ok(Some(Audited { meaning, summary }))
}

/// A type's own name, or that of a typedef.
fn name(debug: &DebugInfo, ty: TypeId) -> Option<String> {
    let types = debug.types();
    let own = types.get(ty)?.name.as_deref();
    let typedef = || types.get(*types.typedefs_of(ty).first()?)?.name.as_deref();
    own.or_else(typedef).map(str::to_owned)
}

fn of_types(debug: &DebugInfo, evidence: Vec<TypeEvidence>) -> Vec<TypeMeaning> {
    let mut by_name: BTreeMap<String, Vec<Hold>> = BTreeMap::new();
    for one in evidence {
        let Some(name) = name(debug, one.ty) else { continue };
        let holds = by_name.entry(name).or_default();
        if holds.len() < MOST_QUOTED {
            let times = if one.times == 1 { "once".into() } else { format!("{} times", one.times) };
            let because = format!("{}: {times}, {} bytes in all", one.because, one.bytes);
            let binding = Binding::new(Constraint::SeenInRun).because(because);
            let binding = match one.at {
                Some(at) => binding.at(at.file.rsplit('/').next().unwrap_or_default(), at.line),
                None => binding,
            };
            holds.push(Hold { binding, effect: Effect::Forbid });
        }
    }
    let bare = |name: &str| name.rsplit("::").next().unwrap_or_default().to_owned();
    let of_type = |(name, holds): (String, Vec<Hold>)| TypeMeaning {
        names: vec![bare(&name), name],
        path: String::new(),
        holds,
    };
    by_name.into_iter().map(of_type).collect()
}
