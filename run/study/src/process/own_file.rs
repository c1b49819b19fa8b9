//! The file that this process runs.

use std::path::PathBuf;
use std::{env, io};

/// The file that this process runs, also where another file has its name by now, as after a build of Lineup.
pub(crate) fn own_file() -> io::Result<PathBuf> {
    let own = env::current_exe()?;
    Ok(if own.exists() { own } else { "/proc/self/exe".into() })
}
