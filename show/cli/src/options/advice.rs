//! Options of advice and of its report, the same for `lineup advise` and `lineup study`.

use crate::options::quantities::part;
use crate::options::values::{line_size, type_and_member};
use crate::terminal::outcome::Outcome;
use crate::terminal::output::text_style;
use anyhow::{Context, Result};
use clap::Args;
use lineup_advise::held_file;
use lineup_advise::meaning::{Meaning, Reviewed};
use lineup_advise::order_file::{self, WrittenOrder};
use lineup_advise::proposal::{Advice, Refusal};
use lineup_advise::randomisation::Randomisation;
use lineup_model::line::LineSize;
use lineup_report::text::Telling;
use lineup_study::source::meaning::Units;
use std::path::{Path, PathBuf};

/// The limits of a better layout, and when it is worth a patch.
#[derive(Args, Clone)]
pub(crate) struct AdviceOptions {
    /// Cache-line size that decides between layouts
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    pub(crate) line_size: LineSize,
    /// Leave this member where it is
    #[arg(long = "pin", value_name = "TYPE.MEMBER", value_parser = type_and_member)]
    pins: Vec<(String, String)>,
    /// Do not change this type
    #[arg(long = "keep", value_name = "TYPE")]
    keeps: Vec<String>,
    /// Do not let comments, such as "must be first", hold this type or this member of it
    #[arg(long = "lift", value_name = "TYPE[.MEMBER]", value_parser = type_or_member)]
    lifts: Vec<(String, Option<String>)>,
    /// Allow a type to grow to keep write-shared members apart
    #[arg(long)]
    pub(crate) allow_growth: bool,
    /// Percentage of a region's cache lines that an edit must save to be in the patch; smaller ones are only listed
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = part)]
    least_share: f64,
    /// Move at most this many members of a type, for a patch that is quick to read; "all" for any number [default: 3 in
    /// a kernel, else all]
    #[arg(long, value_name = "N|all", value_parser = most_moved)]
    most_moved: Option<MostMoved>,
    /// Write the orders in this file as they are, instead of looking for better ones: TYPE: member, align(64) group
    /// NAME { member }, rest
    #[arg(long, value_name = "FILE", conflicts_with = "most_moved")]
    order: Option<PathBuf>,
    /// Read the units in this compile_commands.json with clang, instead of those that the build compiles
    #[arg(long, value_name = "FILE")]
    compile_commands: Option<PathBuf>,
    /// Do not read the sources with clang; only their text and debug information pin members
    #[arg(long, conflicts_with = "compile_commands")]
    no_clang: bool,
    /// Obey the constraints in this file, such as one of `lineup shuffle`
    #[arg(long, value_name = "FILE")]
    constraints: Option<PathBuf>,
}

/// The limit of moves; `None` without one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MostMoved(Option<usize>);

/// Moves of a type in a patch for a kernel, unless the user gives another number.
const FEW_MOVES: usize = 3;

/// How much of a report is printed.
#[derive(Args, Clone)]
pub(crate) struct ReportOptions {
    /// Print the whole report, with line maps, reasons, coverage and the patch, instead of one screen
    #[arg(long)]
    full: bool,
    /// With --full, also print what is predicted for the data model that was not recorded
    #[arg(long, requires = "full")]
    all_data_models: bool,
}

impl ReportOptions {
    /// The same as the library takes them, for standard output.
    pub(crate) fn telling(&self) -> Telling {
        Telling { style: text_style(), is_full: self.full, all_data_models: self.all_data_models }
    }

    /// The hint on the first screen that there is more.
    pub(crate) fn more(&self) -> &'static str {
        if self.full { "" } else { "\nLine maps, reasons, coverage: --full\n" }
    }
}

impl AdviceOptions {
    /// The units that are read with clang.
    pub(crate) fn units(&self) -> Units {
        match (&self.compile_commands, self.no_clang) {
            (Some(list), _) => Units::Listed(list.clone()),
            (None, true) => Units::Unread,
            (None, false) => Units::Built,
        }
    }

    /// The same as the library takes them, with the user's constraints, for a kernel.
    pub(crate) fn meant_of_kernel(&self) -> Result<lineup_advise::options::Options> {
        let most_moved = self.most_moved.unwrap_or(MostMoved(Some(FEW_MOVES))).0;
        Ok(lineup_advise::options::Options { most_moved, ..self.meant()? })
    }

    /// The same as the library takes them, with the user's constraints.
    pub(crate) fn meant(&self) -> Result<lineup_advise::options::Options> {
        Ok(lineup_advise::options::Options {
            pins: self.pins.clone(),
            keeps: self.keeps.clone(),
            lifts: self.lifts.clone(),
            primary: self.line_size,
            allow_growth: self.allow_growth,
            least_share: self.least_share,
            most_moved: self.most_moved.and_then(|most| most.0),
            orders: self.order.as_deref().map(read_orders).transpose()?.unwrap_or_default(),
            randomisation: Randomisation::Unknown,
            prefetches: Vec::new(),
            pools: Vec::new(),
            failed: Vec::new(),
            meaning: read_constraints(self.constraints.as_deref())?,
        })
    }
}

/// Orders that are kept in a file.
pub(crate) fn read_orders(file: &Path) -> Result<Vec<WrittenOrder>> {
    let text = lineup_mapping::read_text(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(order_file::parse(&file.display().to_string(), &text)?)
}

/// Constraints that are kept in a file.
pub(crate) fn read_constraints(file: Option<&Path>) -> Result<Meaning> {
    let Some(file) = file else { return Ok(Meaning::default()) };
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    held_file::parse(&text).with_context(|| file.display().to_string())
}

/// Reports reviews in the file of constraints that name no use in the sources.
pub(crate) fn tell_unfounded_reviews(meaning: &Meaning) {
    for Reviewed { type_name, file, says, .. } in meaning.unfounded_reviews() {
        eprintln!("note: the review of {type_name} in {file} fits no use that was found: {says:?}");
    }
}

/// Whether every order of `--order` was written. Of others the reasons are printed, and the command ends with 1.
pub(crate) fn outcome_of_orders(orders: &[WrittenOrder], advice: &Advice) -> Outcome {
    if orders.is_empty() {
        return Outcome::Done;
    }
    for name in &advice.already_good {
        eprintln!("lineup: the members of {name} lie in the order of --order already");
    }
    if advice.refusals.is_empty() {
        return Outcome::Done;
    }
    for Refusal { owner, constraints, .. } in &advice.refusals {
        let reasons: Vec<String> = constraints.iter().map(ToString::to_string).collect();
        eprintln!("lineup: the order of {owner} is not applied: {}", reasons.join("; "));
    }
    Outcome::Finding
}

fn type_or_member(text: &str) -> Result<(String, Option<String>), String> {
    match text.rsplit_once('.') {
        None if !text.is_empty() => Ok((text.to_owned(), None)),
        Some((ty, member)) if !ty.is_empty() && !member.is_empty() => {
            Ok((ty.to_owned(), Some(member.to_owned())))
        }
        _ => Err(format!("{text:?}: write TYPE or TYPE.MEMBER")),
    }
}

fn most_moved(text: &str) -> Result<MostMoved, String> {
    match text.parse() {
        _ if text == "all" => Ok(MostMoved(None)),
        Ok(moves) if moves > 0 => Ok(MostMoved(Some(moves))),
        _ => Err(format!("{text} is neither a number of moves nor \"all\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_a_number_or_all() {
        assert_eq!(most_moved("4"), Ok(MostMoved(Some(4))));
        assert_eq!(most_moved("all"), Ok(MostMoved(None)));
        assert!(most_moved("0").is_err() && most_moved("any").is_err());
    }
}
