//! `lineup study --kernel-source --code`: the functions that recorded calls go into in one row of the kernel's image.

use super::figures;
use super::plan::commands;
use super::trials::{Trials, failure_of};
use super::variant::Variant;
use crate::commands::study::code::counts::per_call;
use crate::commands::study::comparison::{Compared, MORE_LINES};
use crate::commands::study::inside::inside;
use crate::commands::study::{outputs, result_files};
use crate::host::facts;
use crate::recordings::debug_info;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_advise::patch::diff_of_texts;
use lineup_codelayout::{
    Fetched, FetchedFunction, KERNEL_SCRIPT, fetched_functions, with_row, with_sections,
};
use lineup_debuginfo::DebugInfo;
use lineup_recording::{Event, Reader};
use lineup_report::kernel_order_message;
use lineup_report::study::{CodeReport, Fact, Patch, ProgramFindings, StudyReport};
use lineup_study::progress::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::BufReader;
use std::path::Path;

/// The functions of the row, and the texts that put them there.
struct Row {
    functions: Vec<FetchedFunction>,
    units: usize,
    /// Functions that no unit of C holds by its own name, or that lie in a section of the kernel's choice.
    left: usize,
    original: BTreeMap<String, String>,
    edited: BTreeMap<String, String>,
}

/// Orders, builds, boots and compares.
pub(crate) fn run(trials: &mut Trials<'_>, setting: Vec<Fact>) -> Result<Outcome> {
    let row = Row::of(trials)?;
    trials.stages.line(&format!(
        "lineup: {} functions of {} units come into one row; {} others that calls go into stay where they are",
        row.functions.len(),
        row.units,
        row.left
    ));
    let tried = match trials.changed(&row.edited) {
        Ok(after) => trials.compare(&after, None).map(|compared| (after, compared)),
        Err(error) => Err(error),
    };
    let tried = match tried {
        Ok(tried) => Ok(tried),
        Err(error) => Err(failure_of(error)?.because),
    };
    trials.stages.end();
    trials.tree.check_untouched()?;
    conclude(trials, row, tried, setting)
}

impl Row {
    fn of(trials: &Trials<'_>) -> Result<Row> {
        let folder = trials.plan.out.join("before");
        let debug = vmlinux(&folder, trials.stages)?;
        let fetched = fetched(&folder.join("calls.rec"))?;
        let copy = trials.tree.copied_to();
        let mut functions = fetched_functions(&debug, &fetched);
        let all = functions.len();
        let mut units: BTreeSet<String> = BTreeSet::new();
        functions.retain(|function| match unit(&debug, function, copy) {
            Some(unit) => {
                units.insert(unit);
                true
            }
            None => false,
        });
        if functions.is_empty() {
            bail!("the recorded calls go into no function that a unit of C in the tree holds");
        }
        let read = |path: &str| {
            let file = copy.join(path);
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
        };
        let script = read(KERNEL_SCRIPT)?;
        let names = functions.iter().map(|function| function.name.as_str());
        let with_row = with_row(&script, names).with_context(|| {
            format!("{KERNEL_SCRIPT} does not list sections of code as those of Linux 5.x and 6.x do")
        })?;
        let mut edited = BTreeMap::from([(KERNEL_SCRIPT.to_owned(), with_row)]);
        let mut original = BTreeMap::from([(KERNEL_SCRIPT.to_owned(), script)]);
        let mut by_makefile: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for unit in &units {
            let (makefile, name) =
                makefile(unit, copy).with_context(|| format!("no Makefile compiles {unit}"))?;
            by_makefile.entry(makefile).or_default().push(name);
        }
        for (makefile, names) in by_makefile {
            let text = read(&makefile)?;
            edited.insert(makefile.clone(), with_sections(&text, names.into_iter()));
            original.insert(makefile, text);
        }
        Ok(Row { left: all - functions.len(), units: units.len(), functions, original, edited })
    }

    /// The number of functions in the row of a built image, one behind the other in its order.
    fn kept_in(&self, debug: &DebugInfo) -> usize {
        let mut addresses: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for symbol in debug.symbols() {
            addresses.entry(&symbol.name).or_default().push(symbol.address);
        }
        let only = |function: &FetchedFunction| match addresses.get(function.name.as_str()).map(Vec::as_slice)
        {
            Some([address]) => Some(*address),
            _ => None,
        };
        let mut last = 0;
        let mut kept = 0;
        for address in self.functions.iter().filter_map(only) {
            // Functions in sections that the kernel itself places lie behind the row.
            if address > last && address - last < MOST_APART_BYTES || last == 0 {
                last = address;
                kept += 1;
            }
        }
        kept
    }
}

/// The largest distance between functions of the row; functions farther away are not in it.
const MOST_APART_BYTES: u64 = 64 << 10;

fn vmlinux(folder: &Path, stages: &Stages) -> Result<DebugInfo> {
    let file = folder.join("vmlinux");
    debug_info::debug_info(&file, stages).with_context(|| format!("{}: cannot be read", file.display()))
}

/// The kernel's code that the recorded calls fetched.
fn fetched(recording: &Path) -> Result<Fetched> {
    let file = lineup_mapping::open(recording).with_context(|| recording.display().to_string())?;
    let (mut fetched, mut image) = (Fetched::default(), None);
    for event in Reader::new(BufReader::new(file))?.without_log() {
        match (event, &image) {
            (Event::Image(found), None) => image = Some(found),
            (Event::Call(call), Some(image)) => fetched.add(&call, image),
            _ => {}
        }
    }
    Ok(fetched)
}

/// The unit that holds a function, by its source.
fn unit(debug: &DebugInfo, function: &FetchedFunction, copy: &Path) -> Option<String> {
    let line = debug.code_line_of(function.addresses.start)?;
    let is_part = function.name.ends_with(".cold") || function.name.contains(' ');
    inside(Path::new(&*line.at.file), copy).filter(|path| path.ends_with(".c") && !is_part)
}

/// The Makefile that compiles a unit, and the unit's name there, without `.c`.
fn makefile<'u>(unit: &'u str, copy: &Path) -> Option<(String, &'u str)> {
    let stem = unit.strip_suffix(".c")?;
    let slashes = stem.match_indices('/').map(|(at, _)| at).rev();
    slashes.into_iter().find_map(|at| {
        let name =
            ["Kbuild", "Makefile"].into_iter().find(|name| copy.join(&stem[..at]).join(name).is_file())?;
        Some((format!("{}/{name}", &stem[..at]), &stem[at + 1..]))
    })
}

/// A kernel with the row, and its comparison; or the reason why it failed.
type OrderTrial = Result<(Variant, Compared), String>;

fn conclude(trials: &Trials<'_>, row: Row, tried: OrderTrial, setting: Vec<Fact>) -> Result<Outcome> {
    let (plan, before) = (trials.plan, trials.before);
    let diff = diff_of_texts(&row.original, &row.edited);
    let (after, compared, failed) = match tried {
        Ok((after, compared)) => (Some(after), Some(compared), None),
        Err(because) => (None, None, Some(because)),
    };
    let proof = compared.as_ref().and_then(|compared| compared.as_ref().ok());
    let not_proven = compared.as_ref().and_then(|compared| compared.as_ref().err().cloned());
    let not_proven =
        not_proven.or_else(|| failed.as_ref().map(|because| format!("the change failed: {because}")));
    let more = proof.and_then(|proof| proof.value().lines_difference).filter(|lines| *lines > MORE_LINES);
    let is_proposed = after.is_some() && more.is_none();
    let release = before.recorded.header().command.first().cloned().unwrap_or_default();
    let mut report = StudyReport::of_found(ProgramFindings {
        title: format!("Linux {release} under workload {}", plan.options.workload()),
        commands: commands(plan, trials.tree.tree(), is_proposed && proof.is_some()),
        setting,
        machine: facts::of_this_machine(),
        line: plan.advice.primary,
        built_in: trials.tree.copied_to(),
        before: &before.recorded,
        after: after.as_ref().filter(|_| proof.is_some()).map(|after| &after.recorded),
        advice: None,
        patch: None,
        not_proven,
        proof,
        call_times: None,
        not_timed: Vec::new(),
        contention: None,
    });
    if let Some(after) = &after {
        let kept = row.kept_in(&vmlinux(&plan.out.join("after"), trials.stages)?);
        let optimiser = format!(
            "{} functions of {} units in one row of the kernel's linker script, {kept} of which the built image has so",
            row.functions.len(),
            row.units
        );
        let of = |name: &str| plan.out.join(name).join("calls.rec");
        report.code = Some(CodeReport {
            calls: per_call(&of("before"), &of("after"))?,
            ..CodeReport::of_calls(optimiser, plan.options.workload())
        });
        report.guest = Some(figures::kernels_side_by_side([before, after], trials.varying));
        let text = kernel_order_message(&report) + &diff;
        let file = if proof.is_some() { result_files::PATCH } else { result_files::UNPROVEN }.into();
        report.patch = is_proposed.then_some(Patch { file, text });
    }
    outputs::write(plan.out, &report, (!is_proposed).then_some(diff.as_str()))?;
    output::print(&outputs::for_standard_output(plan.json, plan.report, plan.out, &report)?)?;
    if let Some(more) = more {
        eprintln!("lineup: the kernel in the new order needs {more:.2} lines of code per call more");
    }
    Ok(if is_proposed { Outcome::Done } else { Outcome::Finding })
}
