//! An installed `llvm-bolt`, which reorders code by a profile.

use crate::error::{Doing, Error, Result};
use crate::process::tool;
use crate::recorder::on_path;
use crate::source::build_failure::last_lines;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Versions that are looked for, newest first.
const VERSIONS: std::ops::RangeInclusive<u32> = 16..=22;

/// The number of output lines that the error shows when it fails.
const LAST_LINES: usize = 8;

/// Functions that are left out of an order at most: a program with more of them is none that BOLT can order.
const MOST_SKIPPED: usize = 64;

/// The evidence from which BOLT computes an order.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'e> {
    /// The profile: how often each branch was taken.
    pub profile: &'e Path,
    /// Names of functions in the wanted order; `None` for the order that follows calls.
    pub order: Option<&'e Path>,
}

/// An `llvm-bolt` that runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bolt {
    program: PathBuf,
    /// Its version text, such as `Debian LLVM version 19.1.7`.
    version: String,
    /// Its name for the order of functions that follows calls.
    function_order: &'static str,
}

impl Bolt {
    /// The BOLT at this path, else the one on the search path, else the newest that Debian's packages install.
    ///
    /// # Errors
    /// When there is none, or it does not run.
    pub fn find(given: Option<&Path>) -> Result<Bolt> {
        match given {
            Some(given) => Bolt::at(given),
            None => {
                let found = candidates().into_iter().find(|path| path.is_file());
                found
                    .map_or_else(|| Err(Error::not_installed("llvm-bolt", "bolt-19")), |path| Bolt::at(&path))
            }
        }
    }

    fn at(program: &Path) -> Result<Bolt> {
        let ask = |option: &str| -> Result<String> {
            let answer = tool::output(Command::new(program).arg(option));
            let answer = answer.doing_with(|| format!("cannot run {}", program.display()))?;
            Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
        };
        let version = ask("--version")?;
        let version = version.lines().find(|line| line.contains("LLVM version"));
        let Some(version) = version.map(|line| line.trim().to_owned()) else {
            return Err(Error::file(program, "is not llvm-bolt: it prints no version of LLVM"));
        };
        // Until LLVM 17 the same order had another name.
        let function_order = if ask("--help")?.contains("=cdsort") { "cdsort" } else { "hfsort+" };
        Ok(Bolt { program: program.to_owned(), version, function_order })
    }

    /// Its path.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Its version text.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The words that make `to` of `from` by a profile, without the functions that it cannot move.
    pub fn command(
        &self,
        from: &Path,
        evidence: Evidence<'_>,
        skipped: &BTreeSet<String>,
        to: &Path,
    ) -> Vec<OsString> {
        let with = |option: &str, file: &Path| {
            let mut word = OsString::from(option);
            word.push(file);
            word
        };
        let mut words: Vec<OsString> = vec![
            self.program.clone().into(),
            from.into(),
            "-o".into(),
            to.into(),
            with("-data=", evidence.profile),
            "-reorder-blocks=ext-tsp".into(),
            "-split-functions".into(),
        ];
        match evidence.order {
            None => words.push(format!("-reorder-functions={}", self.function_order).into()),
            Some(order) => {
                words.push("-reorder-functions=user".into());
                words.push(with("-function-order=", order));
            }
        }
        words.extend(skip_option(skipped));
        // Later steps read types and places from the result.
        words.push("-update-debug-sections".into());
        words
    }

    /// Makes `to` of `from` by a profile. Functions that BOLT fails at are added to `skipped`, and the rest is put in
    /// order without them.
    ///
    /// # Errors
    /// When it cannot be run, or fails at no function of its own, with its last words.
    pub fn reorder(
        &self,
        from: &Path,
        evidence: Evidence<'_>,
        skipped: &mut BTreeSet<String>,
        to: &Path,
    ) -> Result<()> {
        self.make_without(skipped, &self.program, "order", [from, to], |skipped| {
            self.command(from, evidence, skipped, to).split_off(1)
        })
    }

    /// Makes `to` from `from`: a program that counts its execution and leaves a profile when it ends. Functions that
    /// BOLT fails at are not counted.
    ///
    /// # Errors
    /// When it cannot be run, or fails at no function of its own, with its last output.
    pub fn instrument(&self, from: &Path, profile: &Path, to: &Path) -> Result<()> {
        let mut file = OsString::from("-instrumentation-file=");
        file.push(profile);
        // BOLT finds its instrumentation library next to its own file, and not next to links to it.
        let program = self.program.canonicalize().unwrap_or_else(|_| self.program.clone());
        self.make_without(&mut BTreeSet::new(), &program, "instrument", [from, to], |skipped| {
            let words = [from.into(), "-instrument".into(), file.clone(), "-o".into(), to.into()];
            words.into_iter().chain(skip_option(skipped)).collect()
        })
    }

    fn make_without(
        &self,
        skipped: &mut BTreeSet<String>,
        bolt: &Path,
        what: &str,
        [from, to]: [&Path; 2],
        words: impl Fn(&BTreeSet<String>) -> Vec<OsString>,
    ) -> Result<()> {
        loop {
            let output = tool::output(Command::new(bolt).args(words(skipped)));
            let output = output.doing_with(|| format!("cannot run {}", bolt.display()))?;
            if output.status.success() && to.is_file() {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            let function = failed_at(&said).filter(|_| skipped.len() < MOST_SKIPPED);
            if function.is_some_and(|function| skipped.insert(function)) {
                continue;
            }
            return Err(Error::Tool {
                tool: self.program.display().to_string(),
                what: format!("could not {what} {} ({})", from.display(), output.status),
                next: format!("its last lines:\n{}", last_lines(&said, LAST_LINES)),
            });
        }
    }
}

/// The option that leaves these functions where they are. BOLT takes their names for regular expressions.
fn skip_option(skipped: &BTreeSet<String>) -> Option<OsString> {
    let names: Vec<String> = skipped.iter().map(|name| regex::escape(name)).collect();
    (!names.is_empty()).then(|| format!("-skip-funcs={}", names.join(",")).into())
}

/// The function that an error of BOLT names: the first, as in `BOLT-ERROR: … in function f/1(*2). Consider …`.
fn failed_at(said: &str) -> Option<String> {
    let mut errors = said.lines().filter(|line| line.starts_with("BOLT-ERROR"));
    errors.find_map(|line| {
        let (_, rest) = line.split_once("in function ")?;
        let name = rest.split_whitespace().next()?.trim_end_matches(['.', ',', ':']);
        // Behind a name stands the number of other names that the function has.
        let name = name.split_once("(*").map_or(name, |(name, _)| name);
        (!name.is_empty()).then(|| name.to_owned())
    })
}

/// The candidate paths, best first.
fn candidates() -> Vec<PathBuf> {
    let versions = || VERSIONS.rev();
    let named =
        std::iter::once("llvm-bolt".to_owned()).chain(versions().map(|one| format!("llvm-bolt-{one}")));
    // In its own folder it finds the libraries that belong to it.
    let installed = versions().map(|one| PathBuf::from(format!("/usr/lib/llvm-{one}/bin/llvm-bolt")));
    named.filter_map(|name| on_path(Path::new(&name))).chain(installed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_that_an_error_names_is_skipped() {
        let said = "BOLT-INFO: x in function y\nBOLT-ERROR: unable to get new address corresponding to input address \
                    0x2b4a0 in function luaV_execute/1(*2). Consider adding this function to --skip-funcs=...\n";
        assert_eq!(failed_at(said).as_deref(), Some("luaV_execute/1"));
        assert_eq!(failed_at("BOLT-ERROR: library not found: /usr/lib/libbolt_rt_instr.a"), None);
        let skipped = ["f.part.0", "g/1"].map(str::to_owned).into();
        assert_eq!(skip_option(&skipped), Some("-skip-funcs=f\\.part\\.0,g/1".into()));
        assert_eq!(skip_option(&BTreeSet::new()), None);
    }

    #[test]
    fn what_is_no_bolt_is_refused() {
        let refusal = Bolt::find(Some(Path::new("/bin/true"))).expect_err("it is none");
        assert!(refusal.to_string().contains("is not llvm-bolt"), "{refusal}");
        let refusal = Bolt::find(Some(Path::new("/nowhere/llvm-bolt"))).expect_err("it is not there");
        assert!(refusal.to_string().contains("cannot run /nowhere/llvm-bolt"), "{refusal}");
    }
}
