//! Placements by Lineup's heap library: a run in which it counts allocations, and plans made of the counts.

use crate::error::{Doing, Result};
use crate::process::child::{Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::Run;
use crate::recorder::library;
use crate::trials::placements::{Candidate, Candidates, HUGE_HEAP, PRELOAD, TUNABLES, in_front};
use lineup_bundle::Library;
use lineup_heap_plan::{Profile, Style, plan_of};
use std::fs;
use std::path::{Path, PathBuf};

/// The variables that the library reads.
const PLAN: &str = "LINEUP_HEAP_PLAN";
const PROFILE: &str = "LINEUP_HEAP_PROFILE";

/// A way to part objects into pools.
struct Pools {
    name: &'static str,
    file: &'static str,
    style: Style,
    with_huge_pages: bool,
}

/// The names of Lineup's pools, for which a model of the run predicts the gain.
pub const POOL_NAMES: [&str; 4] = [
    "Lineup's pools: by size",
    "Lineup's pools: by size, huge pages",
    "Lineup's pools: by site",
    "Lineup's pools: by site, huge pages",
];

const POOLS: [Pools; 4] = [
    Pools { name: POOL_NAMES[0], file: PLAN_FILES[0], style: Style::BySize, with_huge_pages: false },
    Pools { name: POOL_NAMES[1], file: PLAN_FILES[1], style: Style::BySize, with_huge_pages: true },
    Pools { name: POOL_NAMES[2], file: PLAN_FILES[2], style: Style::BySite, with_huge_pages: false },
    Pools { name: POOL_NAMES[3], file: PLAN_FILES[3], style: Style::BySite, with_huge_pages: true },
];

/// The files of plans, beside a study's report.
pub const PLAN_FILES: [&str; 4] =
    ["pools-by-size.plan", "pools-by-size-huge.plan", "pools-by-site.plan", "pools-by-site-huge.plan"];

/// All of Lineup's pools in words.
const ALL: &str = "Lineup's pools";

impl Candidates {
    /// Adds Lineup's pools, with plans in `folder`. The program runs once, while its allocations are counted.
    ///
    /// # Errors
    /// When the program cannot be run, or a plan cannot be written.
    pub fn add_pools(&mut self, run: &Run, folder: &Path, interrupts: &Interrupts) -> Result<()> {
        if !self.loads_libraries {
            self.leave_out(ALL, "the program is linked statically and loads no library".into());
            return Ok(());
        }
        let library = match library(Library::Heap) {
            Ok(library) => library,
            Err(error) => {
                self.leave_out(ALL, error.to_string());
                return Ok(());
            }
        };
        let profile = match counted(&library, run, interrupts)? {
            Ok(profile) => profile,
            Err(why) => {
                self.leave_out(ALL, why);
                return Ok(());
            }
        };
        let folder = fs::canonicalize(folder).doing_with(|| format!("finding {}", folder.display()))?;
        for pools in POOLS {
            let no_huge_pages = self.no_huge_pages.filter(|_| pools.with_huge_pages).map(str::to_owned);
            let plan = match no_huge_pages {
                Some(why) => Err(why),
                None => plan_of(&profile, pools.style, pools.with_huge_pages),
            };
            match plan {
                Ok(plan) => {
                    let file = folder.join(pools.file);
                    fs::write(&file, plan).doing_with(|| format!("writing {}", file.display()))?;
                    self.list.push(candidate(&pools, &library, file));
                }
                Err(why) => self.leave_out(pools.name, why),
            }
        }
        Ok(())
    }
}

impl Candidate {
    /// The same placement for another program: pools are planned by a run of it, with the plan in `folder`. Anything
    /// else is as it was.
    ///
    /// # Errors
    /// When the program cannot be run, or a plan cannot be written.
    pub fn planned_for(&self, run: &Run, folder: &Path, interrupts: &Interrupts) -> Result<Candidate> {
        if POOLS.iter().all(|pools| pools.name != self.name) {
            return Ok(self.clone());
        }
        let mut planned = Candidates { loads_libraries: true, ..Candidates::default() };
        planned.add_pools(run, folder, interrupts)?;
        Ok(planned.list.into_iter().find(|one| one.name == self.name).unwrap_or_else(|| self.clone()))
    }
}

fn candidate(pools: &Pools, library: &Path, plan: PathBuf) -> Candidate {
    let mut environment =
        vec![(PRELOAD.into(), in_front(library, std::env::var_os(PRELOAD))), (PLAN.into(), plan.into())];
    if pools.with_huge_pages {
        // Objects without a pool stay with the C library.
        environment.push((TUNABLES.into(), in_front(HUGE_HEAP, std::env::var_os(TUNABLES))));
    }
    Candidate { name: pools.name.to_owned(), library: Some(library.to_owned()), environment }
}

/// The allocations of a run's processes, or the reason why there are none.
fn counted(
    library: &Path,
    run: &Run,
    interrupts: &Interrupts,
) -> Result<std::result::Result<Profile, String>> {
    let folder = interrupts.temporary_folder().doing("making a folder for counts of allocations")?;
    let mut run = run.clone();
    run.environment.push((PRELOAD.into(), in_front(library, std::env::var_os(PRELOAD))));
    run.environment.push((PROFILE.into(), folder.path().join("profile").into()));
    Waiting::start(&run, Streams::Captured, interrupts)?.run()?;
    let mut profile = Profile::default();
    let mut processes = 0;
    for entry in fs::read_dir(folder.path()).doing("reading counts of allocations")? {
        let path = entry.doing("reading counts of allocations")?.path();
        let text = fs::read_to_string(&path).doing("reading counts of allocations")?;
        if let Err(error) = profile.add(&text) {
            return Ok(Err(format!("the counts of a process cannot be read: {error}")));
        }
        processes += 1;
    }
    Ok(match processes {
        0 => Err("no process of the program loads the library and ends by itself".into()),
        _ => Ok(profile),
    })
}
