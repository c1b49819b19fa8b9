//! `lineup advise --group TYPE --by WORK=FUNCTION,…`: orders in groups, as a file for `--order` and `--what-if`.

use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_advise::order_file::{Work, grouped};
use lineup_advise::type_named;
use lineup_advise::usage::Usage;
use lineup_explain::Explained;
use lineup_model::line::LineSize;

/// Groups of members, and their source.
#[derive(Args)]
pub(crate) struct GroupOptions {
    /// Print an order of this type in groups, for --order and --what-if: members that are only read apart from those
    /// that are written, and each by which of the kinds of work in --by use them
    #[arg(long = "group", value_name = "TYPE", requires = "by", conflicts_with_all = ["order", "what_if", "patch"])]
    types: Vec<String>,
    /// A kind of work, and the recorded functions that do it: tx=tcp_sendmsg,tcp_write_xmit
    #[arg(long, value_name = "NAME=FUNCTION,…", requires = "types", value_parser = work)]
    by: Vec<(String, Vec<String>)>,
}

fn work(text: &str) -> Result<(String, Vec<String>), String> {
    let is_word =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let (name, functions) = text.split_once('=').unwrap_or_default();
    let functions: Vec<String> = functions.split(',').map(str::to_owned).collect();
    match is_word(name) && functions.iter().all(|function| !function.is_empty()) {
        true => Ok((name.to_owned(), functions)),
        false => {
            Err("write NAME=FUNCTION,FUNCTION; the name is a word, and goes into the names of groups".into())
        }
    }
}

impl GroupOptions {
    /// True when groups are wanted instead of advice.
    pub(crate) fn are_wanted(&self) -> bool {
        !self.types.is_empty()
    }

    /// Prints the orders.
    pub(crate) fn print(&self, recorded: &Explained, line: LineSize) -> Result<Outcome> {
        let usage = Usage::of_explained(recorded);
        let types = recorded.types();
        let mut works = Vec::new();
        for (name, functions) in &self.by {
            let mut work = Work { name: name.clone(), regions: Default::default() };
            for function in functions {
                let region = usage.regions.id_of(function);
                work.regions
                    .insert(region.with_context(|| format!("--by {name}: {function} was not recorded"))?);
            }
            works.push(work);
        }
        let mut text = String::new();
        for name in &self.types {
            let id = type_named(types, name)
                .with_context(|| format!("--group {name}: no such type was recorded"))?;
            match grouped(types, &usage, id, &works, line.bytes()) {
                Some(order) => text += &order.to_string(),
                None => bail!(
                    "--group {name}: none of the functions uses its members, or its layout is not understood"
                ),
            }
        }
        output::print(&text)?;
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_work_has_a_name_and_functions() {
        assert_eq!(work("tx=a,b"), Ok(("tx".into(), vec!["a".into(), "b".into()])));
        assert!(["tx", "=a", "tx=", "tx=a,,b", "t-x=a"].iter().all(|text| work(text).is_err()));
    }
}
