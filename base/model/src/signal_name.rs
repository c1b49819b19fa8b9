//! Names of signals.

/// Linux' names of its signals from 1 on, on most machines: x86, Arm, RISC-V and others.
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];
/// The first real-time signal that programs may use; the C library keeps those before it.
const FIRST_REAL_TIME: i32 = 34;
/// The last.
const LAST_REAL_TIME: i32 = 64;

/// The name of a signal for messages: `SIGSEGV`, `SIGRTMIN+2`, or its number where it has no name.
pub fn signal_name(signal: i32) -> String {
    let known = usize::try_from(signal).ok().and_then(|number| NAMES.get(number.checked_sub(1)?));
    match (known, signal) {
        (Some(name), _) => (*name).to_owned(),
        (None, FIRST_REAL_TIME) => "SIGRTMIN".to_owned(),
        (None, FIRST_REAL_TIME..=LAST_REAL_TIME) => format!("SIGRTMIN+{}", signal - FIRST_REAL_TIME),
        (None, _) => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        assert_eq!(
            [2, 9, 11, 15, 31].map(signal_name),
            ["SIGINT", "SIGKILL", "SIGSEGV", "SIGTERM", "SIGSYS"]
        );
        assert_eq!([34, 36, 64].map(signal_name), ["SIGRTMIN", "SIGRTMIN+2", "SIGRTMIN+30"]);
        assert_eq!([0, 32, 65, -1].map(signal_name), ["signal 0", "signal 32", "signal 65", "signal -1"]);
    }
}
