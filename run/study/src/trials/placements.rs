//! Placements of a program's memory that need no source: other allocators in place of the C library's, the C library's
//! own settings, and huge pages.

use crate::error::{Doing, Error, Result};
use crate::process::child::{Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::Run;
use lineup_model::executable::names_loader;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// Words in the environment that place a program's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// A short name, such as `mimalloc`.
    pub name: String,
    /// The allocator that the loader puts before the program's; `None` where its own stays.
    pub library: Option<PathBuf>,
    /// The variables with their values.
    pub environment: Vec<(OsString, OsString)>,
}

/// The candidates, and those that this machine or this program rules out.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Candidates {
    /// To be tried.
    pub list: Vec<Candidate>,
    /// Names, each with the reason.
    pub not_tried: Vec<(String, String)>,
    /// True of a program that loads libraries.
    pub(crate) loads_libraries: bool,
    /// The reason why huge pages are not tried.
    pub(crate) no_huge_pages: Option<&'static str>,
}

/// The name of the C library's setting for huge pages.
pub const HUGE_HEAP_NAME: &str = "huge pages for the heap";
/// The name of its settings for memory that stays with the process.
pub const KEPT_MEMORY_NAME: &str = "freed memory is kept";
/// The name of both.
pub const HUGE_KEPT_MEMORY_NAME: &str = "huge pages, freed memory is kept";
/// Added to an allocator's name where it has its setting for huge pages.
pub const WITH_HUGE_PAGES: &str = ", huge pages";
/// The names of allocators that distributions have.
pub const ALLOCATOR_NAMES: [&str; 3] = ["mimalloc", "jemalloc", "tcmalloc"];

/// Allocators that distributions have, each with its libraries and its package in Debian.
const ALLOCATORS: [(&str, &[&str], &str); 3] = [
    (ALLOCATOR_NAMES[0], &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"], "libmimalloc2.0"),
    (ALLOCATOR_NAMES[1], &["libjemalloc.so.2"], "libjemalloc2"),
    (ALLOCATOR_NAMES[2], &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"], "libtcmalloc-minimal4"),
];

/// An allocator's own setting for huge pages.
const HUGE: [(&str, &[(&str, &str)]); 2] = [
    ("mimalloc", &[("MIMALLOC_ALLOW_LARGE_OS_PAGES", "1"), ("MIMALLOC_LARGE_OS_PAGES", "1")]),
    ("jemalloc", &[("MALLOC_CONF", "thp:always,metadata_thp:auto")]),
];

/// Folders in which the loader looks, and folders of packages for one machine.
const FOLDERS: [&str; 5] = ["/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib"];

pub(crate) const PRELOAD: &str = "LD_PRELOAD";
pub(crate) const TUNABLES: &str = "GLIBC_TUNABLES";

/// Settings of the GNU C library, from `info libc "Memory Allocation Tunables"`. 32 MiB is the largest threshold that it
/// takes.
pub(crate) const HUGE_HEAP: &str = "glibc.malloc.hugetlb=1";
const KEPT_MEMORY: &str = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=4294967296:glibc.malloc.top_pad=16777216";
const THREAD_CACHES: &str = "glibc.malloc.tcache_count=2000";
const ONE_ARENA: &str = "glibc.malloc.arena_max=1";

/// The system's policy for transparent huge pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HugePages {
    /// All memory gets them.
    Always,
    /// Memory gets them whose program asks.
    OnRequest,
    /// There are none.
    Never,
}

impl HugePages {
    fn here() -> Self {
        let policy = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        match policy.split(['[', ']']).nth(1) {
            Some("always") => HugePages::Always,
            Some("madvise") => HugePages::OnRequest,
            _ => HugePages::Never,
        }
    }

    fn not_to_be_had(self) -> Option<&'static str> {
        match self {
            HugePages::OnRequest => None,
            HugePages::Always => {
                Some("the system gives huge pages to all memory already (transparent_hugepage: always)")
            }
            HugePages::Never => Some("the system gives no huge pages (transparent_hugepage: never)"),
        }
    }
}

/// The candidates for a program, and allocators that the user names. `is_parallel` is true of a program that keeps
/// several processors busy.
///
/// # Errors
/// When the program or a named allocator cannot be read, or the program loads no libraries.
pub fn candidates(program: &Path, named: &[PathBuf], is_parallel: bool) -> Result<Candidates> {
    let read = |file: &Path| fs::read(file).doing_with(|| format!("cannot read {}", file.display()));
    let bytes = read(program)?;
    let is_script = bytes.starts_with(b"#!");
    let is_dynamic = is_script || names_loader(&bytes);
    let huge = HugePages::here();
    let mut found = Candidates {
        loads_libraries: is_dynamic,
        no_huge_pages: huge.not_to_be_had(),
        ..Candidates::default()
    };
    if is_dynamic {
        for (name, files, package) in ALLOCATORS {
            match files.iter().find_map(|file| installed(file)) {
                Some(library) => found.add_allocator(name, &library, huge),
                None => found.leave_out(name, format!("not installed; on Debian: apt install {package}")),
            }
        }
        for file in named {
            read(file)?;
            let library = fs::canonicalize(file).doing_with(|| format!("cannot read {}", file.display()))?;
            let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.add_allocator(&name, &library, HugePages::Never);
        }
    } else {
        if let Some(file) = named.first() {
            let why = format!("{} is linked statically and loads no library", program.display());
            return Err(Error::argument(format!("--allocator {}", file.display()), why));
        }
        found.leave_out("other allocators", "the program is linked statically and loads no library".into());
    }
    let settings = [
        (HUGE_HEAP_NAME, HUGE_HEAP.to_owned(), huge.not_to_be_had()),
        (KEPT_MEMORY_NAME, KEPT_MEMORY.to_owned(), None),
        (HUGE_KEPT_MEMORY_NAME, format!("{HUGE_HEAP}:{KEPT_MEMORY}"), huge.not_to_be_had()),
        ("larger caches of threads", THREAD_CACHES.to_owned(), None),
        (
            "one arena",
            ONE_ARENA.to_owned(),
            (!is_parallel).then_some("the program keeps one processor busy, and has one arena already"),
        ),
    ];
    for (name, setting, why_not) in settings {
        match why_not {
            Some(why) => found.leave_out(name, why.to_owned()),
            None => found.list.push(Candidate {
                name: name.to_owned(),
                library: None,
                environment: vec![(TUNABLES.into(), in_front(&setting, std::env::var_os(TUNABLES)))],
            }),
        }
    }
    Ok(found)
}

impl Candidates {
    fn add_allocator(&mut self, name: &str, library: &Path, huge: HugePages) {
        let preload = in_front(library, std::env::var_os(PRELOAD));
        let alone = Candidate {
            name: name.to_owned(),
            library: Some(library.to_owned()),
            environment: vec![(PRELOAD.into(), preload)],
        };
        let settings = HUGE.iter().find(|(of, _)| *of == name && huge == HugePages::OnRequest);
        let with_huge_pages = settings.map(|(_, settings)| {
            let mut candidate = alone.clone();
            candidate.name.push_str(WITH_HUGE_PAGES);
            let settings = settings.iter().map(|(variable, value)| ((*variable).into(), (*value).into()));
            candidate.environment.extend(settings);
            candidate
        });
        self.list.push(alone);
        self.list.extend(with_huge_pages);
    }

    pub(crate) fn leave_out(&mut self, name: &str, why: String) {
        self.not_tried.push((name.to_owned(), why));
    }

    /// Leaves out candidates whose allocator no process of the program loads: each runs once.
    ///
    /// # Errors
    /// When the program cannot be run.
    pub fn keep_loaded(&mut self, run: &Run, interrupts: &Interrupts) -> Result<()> {
        let mut kept = Vec::new();
        for candidate in std::mem::take(&mut self.list) {
            let is_loaded = match &candidate.library {
                // Its settings are those of an allocator that was seen already.
                Some(library) if candidate.environment.len() == 1 => {
                    is_loaded_by(library, &candidate.on(run), interrupts)?
                }
                Some(library) => kept.iter().any(|one: &Candidate| one.library.as_ref() == Some(library)),
                None => true,
            };
            match is_loaded {
                true => kept.push(candidate),
                false => self.leave_out(
                    &candidate.name,
                    "no process of the program loads it: it is no library for this machine, or they set their own environment, or gain rights"
                        .into(),
                ),
            }
        }
        self.list = kept;
        Ok(())
    }
}

impl Candidate {
    /// A run with this placement.
    pub fn on(&self, run: &Run) -> Run {
        let mut run = run.clone();
        run.environment.extend(self.environment.iter().cloned());
        run
    }

    /// The variables as a shell takes them in front of a command.
    pub fn in_front_of_a_command(&self) -> String {
        let words = self.environment.iter().map(|(name, value)| {
            let value = value.to_string_lossy();
            let value = shell_words::quote(&value);
            format!("{}={value}", name.to_string_lossy())
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// A value in front of what the user has there already.
pub(crate) fn in_front(value: impl AsRef<OsStr>, present: Option<OsString>) -> OsString {
    let mut value = value.as_ref().to_owned();
    if let Some(present) = present.filter(|present| !present.is_empty()) {
        value.push(":");
        value.push(present);
    }
    value
}

/// A library in the folders of the loader.
fn installed(file: &str) -> Option<PathBuf> {
    let of_machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    let folders = FOLDERS.iter().flat_map(|folder| [Path::new(folder).join(&of_machine), folder.into()]);
    folders.map(|folder| folder.join(file)).find(|library| library.is_file())
}

/// True when a process of a run loads a library, by the loader's own account of itself.
fn is_loaded_by(library: &Path, run: &Run, interrupts: &Interrupts) -> Result<bool> {
    let folder = interrupts.temporary_folder().doing("making a folder for the loader's account")?;
    let mut run = run.clone();
    run.environment.push(("LD_DEBUG".into(), "libs".into()));
    run.environment.push(("LD_DEBUG_OUTPUT".into(), folder.path().join("loaded").into()));
    Waiting::start(&run, Streams::Captured, interrupts)?.run()?;
    let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for entry in fs::read_dir(folder.path()).doing("reading the loader's account")? {
        let path = entry.doing("reading the loader's account")?.path();
        let account = fs::read(&path).doing("reading the loader's account")?;
        let account = String::from_utf8_lossy(&account);
        let mut begun = account.lines().filter_map(|line| line.split_once("calling init: "));
        if begun.any(|(_, file)| file.trim().ends_with(&name)) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_has_stays_behind_the_candidate() {
        assert_eq!(in_front("a.so", None), "a.so");
        assert_eq!(in_front("a.so", Some("".into())), "a.so");
        assert_eq!(in_front("a.so", Some("b.so".into())), "a.so:b.so");
    }

    #[test]
    fn a_command_line_quotes_what_a_shell_would_take_apart() {
        let candidate = Candidate {
            name: "own".into(),
            library: None,
            environment: vec![("LD_PRELOAD".into(), "/my libs/a.so".into()), ("X".into(), "1".into())],
        };
        assert_eq!(candidate.in_front_of_a_command(), "LD_PRELOAD='/my libs/a.so' X=1");
    }

    #[test]
    fn allocators_that_are_not_installed_are_named_with_their_package() {
        let found = candidates(Path::new("/bin/true"), &[], false).expect("a program");
        for (name, files, package) in ALLOCATORS {
            let is_installed = files.iter().any(|file| installed(file).is_some());
            let is_tried = found.list.iter().any(|candidate| candidate.name == name);
            assert_eq!(is_installed, is_tried, "{name}");
            let why = found.not_tried.iter().find(|(left_out, _)| left_out == name);
            assert_eq!(why.is_some_and(|(_, why)| why.contains(package)), !is_tried, "{name}");
        }
        assert!(found.not_tried.iter().any(|(name, _)| name == "one arena"));
        let parallel = candidates(Path::new("/bin/true"), &[], true).expect("a program");
        assert!(parallel.list.iter().any(|candidate| candidate.name == "one arena"));
    }
}
