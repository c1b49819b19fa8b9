//! A kernel's sources in Lineup's own folder, configured and built there: the user's tree is read and never written.
//!
//! The folder stays: `source` is a copy of the tree without builds' outputs, `objects` is kbuild's output folder
//! (`O=`). A second variant, and a later study, compile only changed files.

use crate::error::{BuildError, Doing, Error, Result, failed_in};
use crate::files::cannot_read;
use crate::process::child::{Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::Run;
use crate::progress::Progress;
use crate::source::build_environment::Environment;
use crate::source::build_failure::last_lines;
use crate::source::build_failure::{Fault, fault};
use crate::source::folder_state::FolderState;
use crate::source::kernel::copy::{refresh, replace};
use crate::source::kernel::kbuild::Kbuild;
use lineup_prove::run::Ending;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The interval between progress reports of a build.
const TELL: Duration = Duration::from_secs(30);

/// The lines of a failed step's log that are shown.
const LAST_LINES: usize = 20;

/// The options that a guest needs, and their purposes.
const NEEDED: [(&str, &str); 5] = [
    ("CONFIG_BLK_DEV_INITRD", "the guest's programs come as an initramfs"),
    ("CONFIG_BINFMT_ELF", "the guest runs busybox"),
    ("CONFIG_BINFMT_SCRIPT", "the guest's init is a script"),
    ("CONFIG_PRINTK", "the boot log is compared"),
    ("CONFIG_PROC_FS", "the guest's init mounts /proc"),
];

/// The configuration of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Configuration {
    /// A file in the form of `.config`; options that it leaves open take their defaults.
    File(PathBuf),
    /// A target of the kernel's own Makefile, such as `defconfig`.
    Target(String),
}

/// The kernel to build, and its folders.
#[derive(Clone, Debug)]
pub struct KernelSource {
    /// The user's tree.
    pub tree: PathBuf,
    /// The folder for the copy and its objects.
    pub folder: PathBuf,
    /// Further words for every `make`, such as `ARCH=arm`.
    pub make: Vec<String>,
    /// Compilers that run at once.
    pub jobs: usize,
    /// Paths that are not part of the tree: results that lie in it.
    pub leave_out: Vec<PathBuf>,
}

/// A copied tree.
pub struct KernelTree {
    source: KernelSource,
    copy: PathBuf,
    objects: PathBuf,
    /// Files of the copy that differ from the user's.
    edited: BTreeSet<String>,
    untouched: FolderState,
    interrupts: Interrupts,
}

/// A kernel that was built.
#[derive(Clone, Debug)]
pub struct BuiltKernel {
    /// The image that boots.
    pub image: PathBuf,
    /// The same with debug information.
    pub vmlinux: PathBuf,
}

impl KernelTree {
    /// Copies the tree, or its changes since the last time.
    ///
    /// # Errors
    /// When it is not a kernel's tree, or cannot be copied.
    pub fn copy(source: KernelSource, interrupts: &Interrupts) -> Result<KernelTree> {
        let tree =
            source.tree.canonicalize().doing_with(|| format!("cannot read {}", source.tree.display()))?;
        for part in ["Makefile", "Kconfig"] {
            if !tree.join(part).is_file() {
                let why =
                    format!("holds no {part}: --kernel-source names the top folder of a kernel's sources");
                return Err(Error::file(tree, why));
            }
        }
        let folder = std::path::absolute(&source.folder).doing("the build folder's path")?;
        let leave_out: Vec<PathBuf> = source
            .leave_out
            .iter()
            .chain([&folder])
            .map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()))
            .collect();
        let (copy, objects) = (folder.join("source"), folder.join("objects"));
        fs::create_dir_all(&objects).doing_with(|| format!("cannot make {}", objects.display()))?;
        // kbuild looks up its outputs by names without links.
        let [copy, objects] = [&copy, &objects].map(|path| match path.parent().map(Path::canonicalize) {
            Some(Ok(parent)) => parent.join(path.file_name().unwrap_or_default()),
            _ => path.clone(),
        });
        let untouched = FolderState::note_times(&tree, &leave_out)?;
        let source = KernelSource { tree, folder, leave_out, ..source };
        refresh(&source.tree, &source.leave_out, &copy)?;
        let interrupts = interrupts.clone();
        Ok(KernelTree { source, copy, objects, edited: BTreeSet::new(), untouched, interrupts })
    }

    /// The user's tree.
    pub fn tree(&self) -> &Path {
        &self.source.tree
    }

    /// The copy; debug information names its files.
    pub fn copied_to(&self) -> &Path {
        &self.copy
    }

    /// The folder of the build, with its configuration.
    pub fn objects(&self) -> &Path {
        &self.objects
    }

    /// Configures the build, and returns notes for the user. Debug information is switched on where it is off.
    ///
    /// # Errors
    /// When the configuration cannot be made, or a guest cannot run with it.
    pub fn configure(
        &self,
        configuration: &Configuration,
        log: &Path,
        progress: &dyn Progress,
    ) -> Result<Vec<String>, BuildError> {
        let config = self.objects.join(".config");
        match configuration {
            Configuration::File(file) => {
                fs::copy(file, &config)
                    .doing_with(|| format!("cannot read the configuration {}", file.display()))
                    .map_err(BuildError::around)?;
                self.make(&["olddefconfig"], "configuring the kernel", log, progress)?;
            }
            Configuration::Target(target) => {
                self.make(&[target], "configuring the kernel", log, progress)?;
            }
        }
        let mut remarks = Vec::new();
        let before = options_in(&config).map_err(BuildError::around)?;
        if !is_on(&before, "CONFIG_DEBUG_INFO") {
            let wanted = "\n# CONFIG_DEBUG_INFO_NONE is not set\nCONFIG_DEBUG_KERNEL=y\n\
                          CONFIG_DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT=y\n";
            append(&config, wanted).map_err(BuildError::around)?;
            self.make(&["olddefconfig"], "switching debug information on", log, progress)?;
            let after = options_in(&config).map_err(BuildError::around)?;
            remarks.push(format!("debug information was switched on: {}", changed(&before, &after)));
        }
        let options = options_in(&config).map_err(BuildError::around)?;
        check(&options).map_err(BuildError::around)?;
        Ok(remarks)
    }

    /// Builds the kernel with these texts, by their paths in the tree, in place of the user's.
    ///
    /// # Errors
    /// See [`BuildError`]: all that was printed is in the log.
    pub fn build(
        &mut self,
        edits: &BTreeMap<String, String>,
        log: &Path,
        progress: &dyn Progress,
    ) -> Result<BuiltKernel, BuildError> {
        self.edit(edits).map_err(BuildError::around)?;
        let name = self.image_name(log, progress)?;
        let target = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let what = if edits.is_empty() { "building the kernel" } else { "building the changed kernel" };
        self.make(&[&target, "vmlinux"], what, log, progress)?;
        let built = BuiltKernel { image: self.objects.join(name), vmlinux: self.objects.join("vmlinux") };
        for file in [&built.image, &built.vmlinux] {
            if !file.is_file() {
                let what = format!("{what} ended well and made no {}; see {}", file.display(), log.display());
                return Err(BuildError::Failed { what });
            }
        }
        self.untouched.check().map_err(BuildError::around)?;
        Ok(built)
    }

    /// kbuild's notes on the units that it compiled; their texts are named as in the tree.
    ///
    /// # Errors
    /// When the objects cannot be listed.
    pub fn kbuild(&self) -> Result<Option<Kbuild>> {
        Kbuild::find_built(&self.objects, &self.copy)
    }

    /// # Errors
    /// When a file of the user's tree has changed since the start.
    pub fn check_untouched(&self) -> Result<()> {
        self.untouched.check()
    }

    /// The image's path among the objects.
    fn image_name(&self, log: &Path, progress: &dyn Progress) -> Result<PathBuf, BuildError> {
        let words = self.make(&["-s", "image_name"], "asking for the image's name", log, progress)?;
        let name = words.lines().rev().map(str::trim).find(|line| !line.is_empty());
        match name.filter(|name| !name.contains(char::is_whitespace)) {
            Some(name) => Ok(PathBuf::from(name)),
            None => Err(BuildError::Failed {
                what: format!("`make image_name` printed no name of an image but {words:?}"),
            }),
        }
    }

    /// Runs a target of the kernel's Makefile. All of its output is added to the log, and returned.
    fn make(
        &self,
        targets: &[&str],
        what: &str,
        log: &Path,
        progress: &dyn Progress,
    ) -> Result<String, BuildError> {
        let begins_at = fs::metadata(log).map_or(0, |log| log.len());
        let words = self.words(targets);
        let line = format!(
            "exec >>{} 2>&1 </dev/null\nexec {}",
            shell_words::quote(&log.to_string_lossy()),
            shell_words::join(&words)
        );
        let environment = Environment::new(&self.interrupts).map_err(BuildError::around)?;
        let further = [
            // We may have been started by make ourselves.
            ("MAKEFLAGS", ""),
            ("MAKELEVEL", ""),
            // Two builds of the same sources are the same.
            ("KBUILD_BUILD_TIMESTAMP", "2026-01-01"),
            ("KBUILD_BUILD_VERSION", "1"),
            ("KBUILD_BUILD_USER", "lineup"),
            ("KBUILD_BUILD_HOST", "lineup"),
        ];
        let run = Run {
            command: ["sh", "-c", &line].map(Into::into).into(),
            directory: Some(self.copy.clone()),
            environment: environment.with(further.map(|(name, value)| (name.into(), value.into()))),
            ..Run::default()
        };
        let started = Waiting::start(&run, Streams::Remembered, &self.interrupts);
        let waiting =
            started.map_err(failed_in("cannot run sh for the build")).map_err(BuildError::around)?;
        let telling = Telling { log, begins_at, last: std::cell::Cell::new(Instant::now()), progress };
        let finished = waiting.run_if(&|| telling.tell());
        let finished =
            finished.map_err(failed_in("cannot run sh for the build")).map_err(BuildError::around)?;
        self.interrupts.check()?;
        let printed = telling.printed().unwrap_or_default();
        if finished.ending == Ending::Exited(0) {
            return Ok(printed);
        }
        Err(failed(what, finished.ending, &printed, log))
    }

    fn words(&self, targets: &[&str]) -> Vec<String> {
        let mut words = vec!["make".to_owned(), format!("-j{}", self.source.jobs.max(1))];
        words.push(format!("O={}", self.objects.display()));
        words.extend(self.source.make.iter().cloned());
        words.extend(targets.iter().map(|target| (*target).to_owned()));
        words
    }

    /// Writes these texts into files of the copy, and restores the user's texts in all others.
    fn edit(&mut self, edits: &BTreeMap<String, String>) -> Result<()> {
        let files: BTreeSet<String> = self.edited.iter().chain(edits.keys()).cloned().collect();
        for file in files {
            let text = match edits.get(&file) {
                Some(text) => text.as_bytes().to_vec(),
                None => {
                    let original = self.source.tree.join(&file);
                    fs::read(&original).doing_with(|| cannot_read(&original))?
                }
            };
            replace(&self.copy.join(&file), &text)?;
            match edits.contains_key(&file) {
                true => self.edited.insert(file),
                false => self.edited.remove(&file),
            };
        }
        Ok(())
    }
}

impl Drop for KernelTree {
    /// Restores the user's texts in the copy when the study is over. If that fails, the next study finds the difference
    /// when it compares the two.
    fn drop(&mut self) {
        let _ = self.edit(&BTreeMap::new());
    }
}

/// A build's log that grows.
struct Telling<'t> {
    log: &'t Path,
    begins_at: u64,
    last: std::cell::Cell<Instant>,
    progress: &'t dyn Progress,
}

impl Telling<'_> {
    /// Reports the build's progress now and then; never ends it.
    fn tell(&self) -> Option<bool> {
        if self.last.get().elapsed() >= TELL {
            self.last.set(Instant::now());
            let printed = self.printed().unwrap_or_default();
            if !printed.contains("  CC ") {
                return None;
            }
            let compiled = printed.lines().filter(|line| line.trim_start().starts_with("CC "));
            let (count, last) = compiled.fold((0, ""), |(count, _), line| (count + 1, line));
            let last = last.split_whitespace().last().unwrap_or("");
            self.progress.line(&format!("lineup: {count} units compiled so far, the last {last}"));
        }
        None
    }

    /// The output since the build began.
    fn printed(&self) -> std::io::Result<String> {
        let bytes = fs::read(self.log)?;
        let begins_at = usize::try_from(self.begins_at).unwrap_or(usize::MAX).min(bytes.len());
        Ok(String::from_utf8_lossy(bytes.get(begins_at..).unwrap_or_default()).into_owned())
    }
}

/// A step that failed, with its last words.
fn failed(what: &str, ending: Ending, printed: &str, log: &Path) -> BuildError {
    let complaints = printed.lines().filter(|line| line.contains("error:") || line.contains("Error:"));
    let first: Vec<&str> = complaints.take(3).collect();
    let said = match first.is_empty() {
        true => last_lines(printed, LAST_LINES),
        false => first.join("\n"),
    };
    let log = log.display();
    match fault(ending, printed) {
        Fault::Sources => {
            BuildError::Rejected { words: format!("{what} failed; all of it is in {log}:\n{said}") }
        }
        Fault::Machine(reason) => {
            BuildError::Failed { what: format!("{what} failed: {reason}; all of it is in {log}:\n{said}") }
        }
    }
}

fn append(file: &Path, text: &str) -> Result<()> {
    let held = fs::read_to_string(file).doing_with(|| cannot_read(file))?;
    fs::write(file, held + text).doing_with(|| format!("cannot write {}", file.display()))
}

/// The options that a configuration sets, with their values.
fn options_in(config: &Path) -> Result<BTreeMap<String, String>> {
    let text = fs::read_to_string(config).doing_with(|| cannot_read(config))?;
    let set = text.lines().filter(|line| line.starts_with("CONFIG_")).filter_map(|line| line.split_once('='));
    Ok(set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn is_on(options: &BTreeMap<String, String>, name: &str) -> bool {
    options.get(name).is_some_and(|value| value == "y")
}

/// Refuses a configuration with which a guest could not report anything.
fn check(options: &BTreeMap<String, String>) -> Result<()> {
    for (name, why) in NEEDED {
        if !is_on(options, name) {
            let why = format!("is not set to y, and {why}; set it in the file that --config names");
            return Err(Error::argument(name, why));
        }
    }
    if !is_on(options, "CONFIG_DEBUG_INFO") {
        let why = "cannot be switched on in this configuration, and offsets are read from it; a choice under \
                   CONFIG_DEBUG_KERNEL forbids it";
        return Err(Error::argument("CONFIG_DEBUG_INFO", why));
    }
    Ok(())
}

/// The options that two configurations set differently.
fn changed(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> String {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differ: Vec<&str> = names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| name.trim_start_matches("CONFIG_"))
        .collect();
    match differ.len() {
        0..=12 => differ.join(", "),
        count => format!("{} and {} others", differ[..12].join(", "), count - 12),
    }
}
