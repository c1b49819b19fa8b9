//! The CPUs that threads may run on.

use crate::error::{Doing, Result};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that this process may run on, in ascending order.
pub fn allowed_cpus() -> Result<Vec<u32>> {
    let set = sched_getaffinity(None).doing("asking for the allowed CPUs")?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    Ok(cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect())
}

/// Keeps a thread on these CPUs; the calling one for `None`.
pub(crate) fn keep_on(thread: Option<Pid>, cpus: impl IntoIterator<Item = u32>) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus.into_iter().filter(|cpu| (*cpu as usize) < CpuSet::MAX_CPU) {
        set.set(cpu as usize);
    }
    sched_setaffinity(thread, &set)
}
