//! The filter that stops a process at the system calls that are observed, and lets all others run at full speed.

use super::calls::{self, Meaning, Scope};
use super::error::EffectsError;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

#[cfg(target_arch = "x86_64")]
const MACHINE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const MACHINE: TargetArch = TargetArch::aarch64;

/// Installs the filter in this process, which then becomes the program. A tracer must already be attached: without one
/// the filtered calls fail. The process and its descendants can gain no rights any more (`no_new_privs`), because the
/// kernel demands it.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn install(scope: Scope) -> Result<(), EffectsError> {
    let program = program(scope).map_err(|error| EffectsError::Filter(error.to_string()))?;
    seccompiler::apply_filter(&program).map_err(|error| EffectsError::Filter(error.to_string()))
}

fn program(scope: Scope) -> Result<BpfProgram, seccompiler::BackendError> {
    let rules = calls::all(scope).map(|call| Ok((call.number, rules(call.meaning, call.name)?)));
    let rules = rules.collect::<Result<BTreeMap<_, _>, seccompiler::BackendError>>()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trace(0), MACHINE)?;
    let mut program: BpfProgram = filter.try_into()?;
    // The library ends processes that make another machine's calls (32-bit programs). They are to run; that they are
    // not observed is noticed when such a program starts.
    for instruction in &mut program {
        if instruction.code == (libc::BPF_RET | libc::BPF_K) as u16
            && instruction.k == libc::SECCOMP_RET_KILL_PROCESS
        {
            instruction.k = libc::SECCOMP_RET_ALLOW;
        }
    }
    Ok(program)
}

/// The argument conditions under which a call stops the program; an empty list stops it unconditionally.
fn rules(meaning: Meaning, name: &str) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let has = |place: u8, bits: i32| {
        SeccompCondition::new(place, Length::Dword, Compare::MaskedEq(bits as u64), bits as u64)
    };
    match meaning {
        // Opened only to be read: nothing leaves the process. `openat2` has its flags in memory, `creat` none.
        Meaning::Open(path) if matches!(name, "open" | "openat") => {
            let flags = path.path as u8 + 1;
            let changing = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC];
            changing.iter().map(|bits| SeccompRule::new(vec![has(flags, *bits)?])).collect()
        }
        Meaning::MapShared => {
            Ok(vec![SeccompRule::new(vec![has(2, libc::PROT_WRITE)?, has(3, libc::MAP_SHARED)?])?])
        }
        _ => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_ends_no_process() {
        let program = program(Scope::WithClient).unwrap();
        let returns = program.iter().filter(|one| one.code == (libc::BPF_RET | libc::BPF_K) as u16);
        let actions: std::collections::BTreeSet<u32> = returns.map(|one| one.k).collect();
        assert_eq!(actions, [libc::SECCOMP_RET_TRACE, libc::SECCOMP_RET_ALLOW].into());
    }
}
