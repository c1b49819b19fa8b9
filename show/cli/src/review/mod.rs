//! `lineup review`: a change's effects on layouts, lines per call and promises.

mod built;
mod calls;
mod certificate;
mod findings;
mod json;

use crate::advice_options::line_size;
use crate::built_commit::How;
use crate::files;
use crate::outcome::Outcome;
use crate::progress::Stages;
use crate::record::variable;
use crate::surroundings::Surroundings;
use anyhow::{Context, Result, bail};
use built::Built;
use clap::Args;
use lineup_advise::guard::Lock;
use lineup_model::line::LineSize;
use lineup_model::region::Region;
use lineup_review::{FailIf, GuardFile, Review, Rule, review};
use lineup_study::git::{self, Scratch};
use lineup_study::interrupt::Interrupts;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Reviews a change: builds the commits before and after it, and compares layouts, lines per call and
/// promises. Prints a comment in Markdown; exits with 1 on the conditions of --fail-if.
///
/// Both commits are built in a scratch clone. The working tree and the refs of the repository are never touched.
#[derive(Args)]
pub(crate) struct Options {
    /// Revision of the branch that the change goes into; the review starts where the head left it
    #[arg(long, value_name = "REV")]
    base: String,
    /// Revision that the change leads to
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    head: String,
    /// Shell command that builds a checked-out commit, with debug information (-g)
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    /// Show what the builds print
    #[arg(long)]
    show_build: bool,
    /// Program, library or object file that the build makes, from the repository's top, whose types are compared; the
    /// program that is run when left out
    #[arg(long = "file", value_name = "FILE", required_unless_present = "command")]
    files: Vec<PathBuf>,
    /// Compare this type, wherever it is declared; when left out all types that the repository declares
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Bytes in a cache line: 32, 64 or 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    line_size: LineSize,
    /// The promises, from the repository's top, as the head has them
    #[arg(long, value_name = "LOCK", default_value = USUAL_GUARD)]
    guard: PathBuf,
    /// Function whose calls are recorded on both sides, callees included
    #[arg(long = "region", value_name = "F", requires = "command")]
    regions: Vec<Region>,
    /// Calls of each region to record at most, spread over the run
    #[arg(long, value_name = "N", default_value_t = 200)]
    calls: u64,
    /// Recordings of each side: more of them show smaller changes in programs whose runs differ
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(2..))]
    runs: u64,
    /// Also run lineup find on both sides, and report new findings
    #[arg(long, requires = "command")]
    find: bool,
    /// Exit with 1 on this: guard, growth, split, lines, code-lines, instructions or finding; lines, code-lines and
    /// instructions take a bound: 'lines > +2%' [default: guard]
    #[arg(long, value_name = "RULE")]
    fail_if: Vec<FailIf>,
    /// Check this certificate of a study's patch again, and that the change is this patch; exit with 1 when it is not
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Also write regressions in SARIF, for code hosts
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Write the comment, or the JSON, to this file instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON (schema lineup.review/1)
    #[arg(long)]
    json: bool,
    /// Where the scratch clone and the builds are kept for the next review; else they are removed
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Add a variable to the program's environment
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = variable)]
    environment: Vec<(OsString, OsString)>,
    #[command(flatten)]
    limits: Surroundings,
    /// The program to record, run in each commit's folder, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const USUAL_GUARD: &str = "lineup.lock";

/// The progress and the interrupts of the command.
pub(super) struct Around<'a> {
    pub(super) stages: &'a Stages,
    pub(super) interrupts: &'a Interrupts,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let around = Around { stages: &stages, interrupts: &interrupts };
    let repository = git::repository()?;
    let tip = git::resolve(&repository, &options.base)?;
    let head = git::resolve(&repository, &options.head)?;
    let scratch_folder = interrupts.temporary_folder().context("making a temporary folder")?;
    let folder = match &options.dir {
        Some(folder) => std::path::absolute(folder)?,
        None => scratch_folder.path().to_owned(),
    };
    let scratch = Scratch::open(&repository, &folder)?;
    let base = scratch.merge_base(&tip, &head)?.unwrap_or(tip);
    let built = |commit: &str, name: &str| side(options, &scratch, commit, name, &around);
    let (base, head) = (built(&base, "base")?, built(&head, "head")?);
    let guard = guard(options, &head.root)?;
    let fail_if = match options.fail_if.as_slice() {
        [] => vec![FailIf::any(Rule::Guard)],
        rules => rules.to_vec(),
    };
    let wanted = lineup_review::Options {
        types: &options.types,
        line: options.line_size,
        guard: guard.as_ref(),
        fail_if: &fail_if,
    };
    let mut found = review(&base.side(), &head.side(), &wanted);
    if let Some(file) = &options.certificate {
        stages.stage("checking the certificate again");
        found.certificate = Some(certificate::checked(file, [&base.root, &head.root])?);
    }
    stages.end();
    write(options, &found)?;
    Ok(if found.fails() { Outcome::Finding } else { Outcome::Done })
}

/// Builds one side, reads its types and records its calls.
fn side(
    options: &Options,
    scratch: &Scratch,
    commit: &str,
    name: &str,
    around: &Around<'_>,
) -> Result<Built> {
    let how = How {
        build: options.build.as_deref(),
        streams: if options.show_build { Streams::Shown } else { Streams::Captured },
    };
    let title = scratch.title(commit)?;
    let root = match how.built(scratch, commit, around.stages, around.interrupts)? {
        Ok(root) => root,
        Err(said) => bail!(
            "the {name}, {title}, does not build{}",
            match String::from_utf8_lossy(&said.head).trim() {
                "" => "; --show-build shows what the build prints".to_owned(),
                said => format!(" (--show-build shows all that it prints): {}", first_lines(said)),
            }
        ),
    };
    // Compilers write where a file really is.
    let root = root.canonicalize().with_context(|| root.display().to_string())?;
    Built::read(options, root, title, around).with_context(|| format!("the {name}"))
}

/// The number of complaints shown for a build: the first one mostly shows the cause.
const COMPLAINTS: usize = 6;

fn first_lines(said: &str) -> String {
    said.lines().take(COMPLAINTS).collect::<Vec<_>>().join("\n")
}

impl Options {
    /// Files whose types are compared, from the repository's top.
    fn compared(&self) -> Result<Vec<PathBuf>> {
        let files = match (self.files.as_slice(), self.command.first()) {
            ([], Some(program)) if Path::new(program).is_relative() && has_folder(program) => {
                vec![PathBuf::from(program)]
            }
            ([], _) => bail!("give the files whose types are compared with --file"),
            (files, _) => files.to_vec(),
        };
        match files.iter().find(|file| file.is_absolute()) {
            Some(file) => bail!("{}: --file is given from the repository's top", file.display()),
            None => Ok(files),
        }
    }
}

fn has_folder(program: &OsString) -> bool {
    program.as_encoded_bytes().contains(&b'/')
}

/// The promises as the head has them; the usual file may be missing.
fn guard(options: &Options, root: &Path) -> Result<Option<GuardFile>> {
    let path = root.join(&options.guard);
    let name = options.guard.display().to_string();
    if !path.exists() {
        if name != USUAL_GUARD {
            bail!("the head has no {name}");
        }
        return Ok(None);
    }
    let text = lineup_mapping::read_text(&path).with_context(|| name.clone())?;
    Ok(Some(GuardFile { lock: Lock::parse(&name, &text)?, name }))
}

fn write(options: &Options, found: &Review) -> Result<()> {
    if let Some(path) = &options.sarif {
        let text = lineup_review::sarif(found, env!("CARGO_PKG_VERSION")).context("cannot write SARIF")?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let text = match options.json {
        true => json::text(found)?,
        false => lineup_review::markdown(found),
    };
    match &options.output {
        Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display())),
        None => files::print(&text),
    }
}
