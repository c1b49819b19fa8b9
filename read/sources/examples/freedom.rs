//! Says whether two members of a type may change places, by the rules over the sources: `held` or `free`.
//!
//! `freedom ROOT COMPILE_COMMANDS TYPE MEMBER...`, for `scripts/trust`.

use lineup_sources::{Build, CheckedType, Freedom, Standards, Verdict, check, from_json};
use std::collections::BTreeSet;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, commands, ty, members @ ..] = arguments.as_slice() else {
        return Err("usage: freedom ROOT COMPILE_COMMANDS TYPE MEMBER...".into());
    };
    let commands = from_json(Path::new(commands), &std::fs::read_to_string(commands)?)?;
    let build = Build {
        commands,
        root: root.into(),
        installed_headers: BTreeSet::new(),
        compiler_headers: None,
        standards: Standards { c: Some("gnu17".into()), cpp: None },
        in_program: BTreeSet::new(),
    };
    let checked = check(&build, &|_, _| {})?;
    let named: Vec<&CheckedType> = checked.named(ty).collect();
    let is_held = named.is_empty() || named.into_iter().any(|ty| holds(ty, members));
    println!("{}", if is_held { "held" } else { "free" });
    Ok(())
}

fn holds(ty: &CheckedType, members: &[String]) -> bool {
    let is_meant = |name: &String| members.contains(name);
    ty.freedom() == Freedom::Refused
        || ty.uses.iter().any(|found| match &found.verdict {
            Verdict::Refuse => true,
            Verdict::First => ty.members.first().is_some_and(is_meant),
            Verdict::Keep(names) | Verdict::Adjacent(names) | Verdict::InOrder(names) => {
                names.iter().any(is_meant)
            }
            Verdict::Boundary(name) | Verdict::Last(name) => is_meant(name),
            Verdict::Named(_) | Verdict::Exchanged(_) | Verdict::Harmless => false,
        })
}
