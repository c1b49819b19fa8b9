//! One of the two builds, with its measurements.

use crate::repository_line::RepositoryLine;
use lineup_model::abi::Abi;
use lineup_model::types::Types;
use std::collections::BTreeMap;
use std::path::Path;

/// One of the two builds.
pub struct Side<'s> {
    /// The commit: its abbreviated hash and its subject.
    pub title: &'s str,
    /// The folder that it was checked out in: declarations below it are the repository's own.
    pub root: &'s Path,
    /// The files that are compared, in the same order on both sides.
    pub files: Vec<BuiltFile<'s>>,
    /// The needs of the regions' calls; empty when nothing was recorded.
    pub regions: Vec<RegionFigures>,
    /// Regions that were not recorded, since this side has no such function.
    pub regions_missing: Vec<String>,
    /// The findings of `lineup find`; `None` when it was not run.
    pub found: Option<Vec<FindingOfRun>>,
}

/// The types of a file that was built.
pub struct BuiltFile<'s> {
    /// The file, as it was named.
    pub name: &'s str,
    /// Its types.
    pub types: &'s Types,
    /// The ABI it was compiled for.
    pub abi: Abi,
}

/// The needs of a region's calls, run by run.
#[derive(Clone, PartialEq, Debug)]
pub struct RegionFigures {
    /// The function.
    pub name: String,
    /// The place of its declaration.
    pub place: Option<RepositoryLine>,
    /// The runs, one or more; runs of a program whose addresses or input differ show how far means can be trusted.
    pub runs: Vec<CallMeans>,
    /// Lines of objects of a type per call over all runs, by the type's name; the empty name stands for variables.
    pub type_lines_per_call: BTreeMap<String, f64>,
}

/// Means over the recorded calls of a run that ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallMeans {
    /// Calls that the program made; `None` when they were not counted.
    pub calls_made: Option<u64>,
    /// Calls that the means are of.
    pub calls: u64,
    /// Instructions per call.
    pub instructions_per_call: f64,
    /// Lines of data per call.
    pub data_lines_per_call: f64,
    /// Lines of code per call.
    pub code_lines_per_call: f64,
}

/// A finding of `lineup find`.
#[derive(Clone, PartialEq, Debug)]
pub struct FindingOfRun {
    /// Its subject.
    pub subject: String,
    /// The upper bound of its gain, as a share of all modelled stalls from 0 to 1.
    pub gain: f64,
    /// The place of the subject's declaration.
    pub place: Option<RepositoryLine>,
}
