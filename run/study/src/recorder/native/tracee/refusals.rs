//! Processes that cannot be attached to, one sentence each.

use crate::companions;
use crate::error::Error;
use crate::recorder::native::tracee::ptrace::Tid;
use crate::recorder::rights;
use lineup_model::executable::names_loader;
use std::fs;
use std::path::Path;

/// The text of a process's `status` file.
struct Status(String);

const IGNORES_FAULTS: &str =
    "it ignores SIGSEGV, with which a thread that calls functions for lineup reports that it is done";

impl Status {
    fn of(process: &str) -> Option<Status> {
        fs::read_to_string(format!("/proc/{process}/status")).ok().map(Status)
    }

    fn ignores_faults(&self) -> bool {
        let ignored = u64::from_str_radix(self.field("SigIgn"), 16).unwrap_or_default();
        ignored & 1 << (libc::SIGSEGV - 1) != 0
    }

    fn field(&self, name: &str) -> &str {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().trim()
    }

    fn number(&self, name: &str) -> i64 {
        self.field(name).parse().unwrap_or_default()
    }

    /// Real, effective and saved numbers of its user or group.
    fn owners(&self, name: &str) -> Vec<&str> {
        self.field(name).split_whitespace().take(3).collect()
    }
}

/// The reason why a process cannot be attached to; `None` when no obstacle is known.
pub(crate) fn refusal(process: Tid) -> Option<String> {
    let (Some(status), Some(own)) = (Status::of(&process.to_string()), Status::of("self")) else {
        return Some(format!("there is no process {process}"));
    };
    let why = of_status(process, &status, &own).or_else(|| {
        let differs = |name: &str| {
            let space = |process: &str| fs::read_link(format!("/proc/{process}/ns/{name}")).ok();
            space(&process.to_string()).is_none_or(|space_of| Some(space_of) != space("self"))
        };
        [("mnt", "other mounts"), ("pid", "other process numbers")]
            .into_iter()
            .find(|(name, _)| differs(name))
            .map(|(_, what)| {
                format!("it sees {what} than lineup does, as in a container; run lineup in there")
            })
    });
    why.or_else(|| of_program(process)).map(|why| format!("process {process} cannot be attached to: {why}"))
}

fn of_status(process: Tid, status: &Status, own: &Status) -> Option<String> {
    let group = status.number("Tgid");
    let state = status.field("State");
    let tracer = status.number("TracerPid");
    if group != i64::from(process) {
        return Some(format!("it is a thread of process {group}; name that"));
    }
    if process.unsigned_abs() == std::process::id() {
        return Some("it is lineup itself".into());
    }
    if state.starts_with(['Z', 'X']) {
        return Some("it has ended".into());
    }
    if state.starts_with(['T', 't']) && tracer == 0 {
        return Some("it is stopped; continue it first".into());
    }
    if tracer != 0 {
        let name = fs::read_to_string(format!("/proc/{tracer}/comm")).unwrap_or_default();
        let name = if name.is_empty() { String::new() } else { format!(" ({})", name.trim_end()) };
        return Some(format!(
            "process {tracer}{name} traces it already; detach or end that, then record again"
        ));
    }
    if ["Uid", "Gid"].iter().any(|name| {
        let effective = own.owners(name).get(1).copied();
        status.owners(name).iter().any(|owner| Some(*owner) != effective)
    }) {
        let (their, ours) = (status.owners("Uid"), own.owners("Uid"));
        return Some(format!(
            "it runs with the rights of user {}, and lineup with those of {}; run lineup as that user and group",
            their.first().unwrap_or(&"?"),
            ours.get(1).unwrap_or(&"?")
        ));
    }
    if status.number("Seccomp") != 0 {
        return Some(
            "it has forbidden itself system calls (seccomp), and may be ended for those of the engine".into(),
        );
    }
    if status.ignores_faults() {
        return Some(IGNORES_FAULTS.into());
    }
    if status.field("x86_Thread_features").contains("shstk") {
        return Some(
            "its return addresses are kept twice (a CET shadow stack), which the engine does not do".into(),
        );
    }
    None
}

/// The reason why a process that has just become its program cannot be made to call functions; `None` when it can.
pub(crate) fn of_start(process: Tid) -> Option<&'static str> {
    Status::of(&process.to_string()).filter(Status::ignores_faults).map(|_| IGNORES_FAULTS)
}

/// True when a thread has forbidden itself system calls.
pub(crate) fn limits_calls(thread: Tid) -> bool {
    Status::of(&thread.to_string()).is_some_and(|status| status.number("Seccomp") != 0)
}

/// The reason why the process's program is not supported.
fn of_program(process: Tid) -> Option<String> {
    let link = format!("/proc/{process}/exe");
    let Ok(program) = fs::read_link(&link) else {
        return Some("it has no program, or the system does not show it".into());
    };
    if program.to_string_lossy().ends_with(" (deleted)") {
        return Some("the file of its program is not there any more".into());
    }
    let bytes = match companions::read(&program) {
        Ok(bytes) => bytes,
        Err(error) => return Some(error.to_string()),
    };
    const CLASS: usize = 4;
    const IS_64_BIT: u8 = 2;
    if bytes.get(CLASS) != Some(&IS_64_BIT) {
        return Some("it is a 32-bit program".into());
    }
    if !names_loader(&bytes) {
        return Some(
            "its program is linked statically, and its threads have no room for the engine's words: that is made when \
             lineup starts the program"
                .into(),
        );
    }
    rights::note(&program).map(|_| "its program's file gives it the rights of another user or group".into())
}

/// The reason why the kernel refused to attach, as far as it can be found out.
pub(crate) fn of_permission(process: Tid) -> String {
    let scope = fs::read_to_string(Path::new("/proc/sys/kernel/yama/ptrace_scope")).unwrap_or_default();
    let why = match scope.trim() {
        "1" => {
            "kernel.yama.ptrace_scope is 1, which allows only parents to attach; run lineup as root, or set it to 0"
        }
        "2" => "kernel.yama.ptrace_scope is 2, which allows only root to attach",
        "3" => "kernel.yama.ptrace_scope is 3, which allows nobody to attach",
        _ => "the system does not permit it (ptrace)",
    };
    format!("process {process} cannot be attached to: {why}")
}

/// The error when the engine cannot be injected into the program.
pub(crate) fn of_injection(why: String) -> Error {
    Error::Unfit { why: format!("the program is linked statically, and {why}"), has_run: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(theirs: &str) -> Option<String> {
        let own = Status("Uid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\n".into());
        let rest = "Tgid:\t5\nState:\tS (sleeping)\nTracerPid:\t0\nUid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\nSeccomp:\t0\n";
        of_status(5, &Status(format!("{theirs}\n{rest}")), &own)
    }

    #[test]
    fn each_reason_is_told() {
        assert_eq!(why(""), None);
        for (status, reason) in [
            ("Tgid:\t4", "a thread of process 4"),
            ("State:\tZ (zombie)", "has ended"),
            ("State:\tT (stopped)", "continue it"),
            // No process has a number above 4,194,304.
            ("TracerPid:\t4194305", "process 4194305 traces it"),
            ("Uid:\t1000\t0\t0\t0", "user 1000"),
            ("Gid:\t100\t5\t5\t5", "that user and group"),
            ("Seccomp:\t2", "seccomp"),
            ("SigIgn:\t0000000000000400", "SIGSEGV"),
            ("x86_Thread_features:\tshstk", "shadow stack"),
        ] {
            assert!(why(status).is_some_and(|why| why.contains(reason)), "{status}");
        }
    }

    #[test]
    fn what_is_not_there_or_ourselves_is_refused() {
        assert!(refusal(Tid::MAX).is_some_and(|why| why.contains("there is no process")));
        let own = Tid::try_from(std::process::id()).unwrap();
        assert!(refusal(own).is_some_and(|why| why.contains("lineup itself")));
    }
}
