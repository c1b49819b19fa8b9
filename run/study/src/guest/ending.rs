//! The end of a guest's run, and the message about it.

use lineup_kernel::guest::Trouble;
use lineup_prove::run::Ending;
use std::fmt;
use std::time::Duration;

/// The stage that a guest reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The kernel starts.
    Booting,
    /// The init script runs, the workload does not yet.
    Booted,
    /// The workload runs.
    Working,
    /// The workload has ended.
    Ended,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Booting => "before the guest's init ran",
            Stage::Booted => "before the workload began",
            Stage::Working => "while the workload ran",
            Stage::Ended => "after the workload had ended",
        })
    }
}

/// The end of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GuestEnd {
    /// The workload ended with this status, and the guest switched itself off.
    Finished {
        /// The workload's exit status.
        status: i32,
    },
    /// The console stayed silent.
    Silent,
    /// The time was over.
    TimedOut(Stage),
    /// The kernel panicked.
    Panicked {
        /// When.
        stage: Stage,
        /// The kernel's trouble.
        trouble: Trouble,
        /// The panic's message.
        line: String,
    },
    /// The guest switched itself off, or restarted, before the workload had ended.
    EndedEarly(Stage),
    /// The workload's needs could not be set up.
    NotSetUp(String),
    /// The emulator itself failed.
    EmulatorFailed {
        /// Its exit status or signal.
        ending: Ending,
        /// Its error output.
        complaint: String,
    },
}

impl GuestEnd {
    /// The problem and the remedy; nothing when the run ended well.
    pub fn problem(&self, timeout: Duration, memory_mib: u32, killed: Option<&str>) -> Option<String> {
        let seconds = timeout.as_secs();
        let memory = killed.map(|line| {
            format!("; the guest ran out of its {memory_mib} MiB: {line}: give more with --memory")
        });
        let memory = memory.unwrap_or_default();
        Some(match self {
            GuestEnd::Finished { status: 0 } => return None,
            GuestEnd::Finished { status } => format!("the workload failed with status {status}{memory}"),
            GuestEnd::Silent => format!(
                "the kernel printed nothing within {seconds} s: it does not boot on the emulated machine, or needs more \
                 than {memory_mib} MiB (--memory) or more time (--timeout)"
            ),
            GuestEnd::TimedOut(stage) => {
                format!("the guest was stopped after {seconds} s (--timeout), {stage}{memory}")
            }
            GuestEnd::Panicked { stage, trouble, line } => {
                format!("the kernel panicked {stage}: {line}{}", hint(*trouble, memory_mib))
            }
            GuestEnd::EndedEarly(Stage::Booting) => format!(
                "the guest restarted before its init ran: the kernel does not run on the emulated machine, or needs more \
                 than {memory_mib} MiB (--memory){memory}"
            ),
            GuestEnd::EndedEarly(stage) => format!("the guest switched itself off {stage}{memory}"),
            GuestEnd::NotSetUp(why) => {
                format!(
                    "the guest has no root: {why}; give the folder of the kernel's modules with --modules{memory}"
                )
            }
            GuestEnd::EmulatorFailed { ending, complaint } => {
                format!("the emulator failed ({ending}): {}", complaint.trim())
            }
        })
    }
}

fn hint(trouble: Trouble, memory_mib: u32) -> String {
    match trouble {
        Trouble::InitLost => "; is an init= or rdinit= in --cmdline? Lineup's is /init".into(),
        Trouble::NoRoot => format!(
            "; it did not find /init in Lineup's initramfs: an rdinit= in --cmdline, a kernel without \
             CONFIG_BLK_DEV_INITRD, or less memory than it needs ({memory_mib} MiB, --memory)"
        ),
        Trouble::OutOfMemory => format!("; give it more than {memory_mib} MiB with --memory"),
        Trouble::Panic | Trouble::Oops | Trouble::Lockup => String::new(),
    }
}
