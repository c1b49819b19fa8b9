//! `lineup doctor`: checks of what works on this machine, and hints on what to install for the rest.

use crate::terminal::outcome::Outcome;
use crate::terminal::output::write_result;
use crate::terminal::progress::Stages;
use anyhow::{Result, bail};
use lineup_bundle::built_from;
use lineup_load::cgroup::Hierarchy;
use lineup_study::doctor::{self, Check, State, System};
use lineup_study::page_costs::PageCosts;
use serde_json::json;
use std::fmt::Write;

/// The options of `lineup doctor`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Exit with 1 when this does not work; a name from the first column [may be repeated]
    #[arg(long, value_name = "NAME")]
    require: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let system = System::here();
    let stages = Stages::new();
    let mut checks = doctor::checks(&system, &stages);
    stages.end();
    let purpose = "weighted groups of tasks in `load`";
    checks.push(Check { name: "cgroups".to_owned(), purpose, state: cgroups() });
    checks.push(Check {
        name: "costs of pages".to_owned(),
        purpose: "`find`: what first touches and translations of pages cost",
        state: State::Works(page_costs()),
    });
    for name in &options.require {
        if !checks.iter().any(|check| check.name == *name) {
            let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
            bail!("--require {name:?}: there is no such line; there are: {}", names.join(", "));
        }
    }
    let rendered = if options.json { to_json(&system, &checks)? } else { to_text(&system, &checks) };
    write_result(None, &rendered)?;
    let is_required = |check: &Check| options.require.contains(&check.name);
    match checks.iter().any(|check| is_required(check) && !check.state.works()) {
        true => Ok(Outcome::Finding),
        false => Ok(Outcome::Done),
    }
}

fn to_text(system: &System, checks: &[Check]) -> String {
    let mut text = format!("lineup {} ({}) on {}\n", env!("CARGO_PKG_VERSION"), built_from(), system.name);
    let longest = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for works in [true, false] {
        let those = |check: &&Check| check.state.works() == works;
        if checks.iter().any(|check| those(&check)) {
            text.push_str(if works { "\nWorks\n" } else { "\nDoes not work here\n" });
        }
        for check in checks.iter().filter(those) {
            let (what, next) = check.state.words();
            let _ = writeln!(text, "  {:longest$}  {what}", check.name);
            if works {
                continue;
            }
            let indent = longest + 4;
            let _ = writeln!(text, "{:indent$}for: {}", "", check.purpose);
            if let Some(next) = next {
                let _ = writeln!(text, "{:indent$}next: {next}", "");
            }
        }
    }
    text
}

fn to_json(system: &System, checks: &[Check]) -> Result<String> {
    let one = |check: &Check| {
        let (what, next) = check.state.words();
        json!({
            "name": check.name,
            "works": check.state.works(),
            "what": what,
            "for": check.purpose,
            "next": next,
        })
    };
    let all = json!({
        "schema": "lineup.doctor/1",
        "version": env!("CARGO_PKG_VERSION"),
        "built_from": built_from(),
        "system": system.name,
        "checks": checks.iter().map(one).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

/// The costs of pages here, as far as they were measured.
fn page_costs() -> String {
    match PageCosts::kept() {
        Some((costs, file)) => format!(
            "{} cycles for a first touch, {} for one of a huge page, {} for a dTLB miss, {} for a page walk; kept in {}",
            costs.first_touch_cycles,
            costs.huge_first_touch_cycles,
            costs.dtlb_l1_cycles,
            costs.dtlb_l2_cycles,
            file.display()
        ),
        None => "not measured yet; the first `lineup find` of a program does it".to_owned(),
    }
}

/// Tells whether control groups can be created.
fn cgroups() -> State {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let hierarchy = match Hierarchy::find(&mounts) {
        Ok(hierarchy) => hierarchy,
        Err(error) => return State::Cannot(error.to_string()),
    };
    let root = hierarchy.root().display();
    match rustix::fs::access(hierarchy.root(), rustix::fs::Access::WRITE_OK) {
        Ok(()) => State::Works(root.to_string()),
        Err(why) => {
            let what = format!("{root} may not be written to: {why}");
            State::Lacks(what, "run `lineup load` with sudo".to_owned())
        }
    }
}
