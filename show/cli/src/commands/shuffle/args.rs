//! Arguments of `lineup shuffle`.

use crate::options::values;
use anyhow::{Result, bail};
use clap::Args;
use lineup_advise::shuffle::Movable;
use std::path::PathBuf;

/// Arguments of `lineup shuffle`.
#[derive(Args)]
pub(crate) struct Options {
    /// The program, a path inside the source folder; built with -g
    pub(crate) program: PathBuf,
    /// Folder with the program's sources; never written to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) source: PathBuf,
    /// Shell command that builds the program in a copy of the source folder [default: that of CMake, Cargo, Meson or Ninja
    /// where files around the program show one, else make]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: Option<String>,
    /// Shell command that tests the program, run in the copy; it must succeed with the unchanged program
    #[arg(long, value_name = "COMMAND", required_unless_present = "list")]
    pub(crate) test: Option<String>,
    /// Say which types may move and which not, and shuffle nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Random layouts to test
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) first_seed: u64,
    /// Shuffle this type only
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// Obey the constraints in this file, and add those that the test shows
    #[arg(long, value_name = "FILE")]
    pub(crate) constraints: Option<PathBuf>,
    /// Leave this member where it is
    #[arg(long = "pin", value_name = "TYPE.MEMBER", value_parser = values::type_and_member)]
    pub(crate) pins: Vec<(String, String)>,
    /// Do not change this type
    #[arg(long = "keep", value_name = "TYPE")]
    pub(crate) keeps: Vec<String>,
    /// Read the units in this compile_commands.json with clang, instead of those that the build compiles
    #[arg(long, value_name = "FILE")]
    pub(crate) compile_commands: Option<PathBuf>,
    /// Print JSON (schema lineup.shuffle/1)
    #[arg(long)]
    pub(crate) json: bool,
}

impl Options {
    /// The reason why the seeds from this one on were not tested, and the place of the others' results.
    pub(crate) fn cut_short(&self, error: lineup_study::error::Error, seed: u64) -> anyhow::Error {
        let file = self.constraints.as_deref().filter(|file| file.exists());
        let learnt = file.map_or_else(String::new, |file| {
            format!("; the constraints found until then are kept in {}", file.display())
        });
        let done = match seed - self.first_seed {
            0 => "no seed was tested to its end".to_owned(),
            _ => format!("the results of seeds {} to {} stand above", self.first_seed, seed - 1),
        };
        anyhow::Error::new(error).context(format!(
            "seed {seed} was not tested to its end; {done}{learnt}; --first-seed {seed} continues"
        ))
    }

    /// The types asked for, or all.
    pub(crate) fn chosen(&self, movable: Vec<Movable>) -> Result<Vec<Movable>> {
        for name in &self.types {
            if !movable.iter().any(|ty| ty.type_name == *name) {
                bail!("{name} is not a type that may move; `--list` shows them, and why the others may not");
            }
        }
        let is_chosen = |ty: &Movable| self.types.is_empty() || self.types.contains(&ty.type_name);
        Ok(movable.into_iter().filter(is_chosen).collect())
    }
}
