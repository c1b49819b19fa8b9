//! Bytes of a console in, events out.

use super::PREFIX;

/// A longer line is cut into pieces, so that a guest without line ends does not fill the memory.
const MAX_LINE_BYTES: usize = 64 << 10;

/// A kind of kernel failure, recognised by its message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trouble {
    /// It panicked; no output follows.
    Panic,
    /// It panicked because init could not run or ended.
    InitLost,
    /// It panicked because it found no root file system.
    NoRoot,
    /// The kernel hit a bug, but continues.
    Oops,
    /// A process was killed for want of memory, or there was too little to start.
    OutOfMemory,
    /// A CPU or task made no progress.
    Lockup,
}

/// Something that happened in the guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The init script runs.
    Booted {
        /// The kernel's release, as `uname -r` prints it.
        release: String,
        /// The kernel's clock source.
        clocksource: String,
    },
    /// A line of the guest's `/proc/kallsyms`.
    SymbolLine(String),
    /// All wanted symbols were listed.
    SymbolsListed,
    /// The address of a section of a module.
    ModuleSection {
        /// The module.
        module: String,
        /// The section's name.
        section: String,
        /// Its address.
        address: u64,
    },
    /// A requirement of the workload could not be set up.
    NotSetUp(String),
    /// The workload starts now.
    WorkloadBegan,
    /// The workload has ended.
    WorkloadEnded {
        /// Its exit status.
        status: i32,
    },
    /// Any other line: of the workload, or of the kernel.
    Output(String),
    /// The kernel is in trouble.
    Trouble {
        /// The kind of failure.
        trouble: Trouble,
        /// The line that reports it.
        line: String,
    },
    /// The kernel switches the machine off, or restarts it, which ends the emulator as well.
    PoweredOff,
}

/// Phrases with which kernel lines begin, more specific ones first.
const TROUBLES: &[(&str, Trouble)] = &[
    ("Kernel panic - not syncing: Attempted to kill init", Trouble::InitLost),
    ("Kernel panic - not syncing: No working init found", Trouble::InitLost),
    ("Kernel panic - not syncing: Requested init ", Trouble::InitLost),
    ("Kernel panic - not syncing: VFS: Unable to mount root", Trouble::NoRoot),
    ("Kernel panic - not syncing: Out of memory", Trouble::OutOfMemory),
    ("Kernel panic - not syncing: System is deadlocked on memory", Trouble::OutOfMemory),
    ("Kernel panic - not syncing", Trouble::Panic),
    ("Out of memory: Killed process", Trouble::OutOfMemory),
    ("Out of memory and no killable processes", Trouble::OutOfMemory),
    ("Initramfs unpacking failed: write error", Trouble::OutOfMemory),
    ("BUG: kernel NULL pointer dereference", Trouble::Oops),
    ("BUG: unable to handle", Trouble::Oops),
    ("Unable to handle kernel", Trouble::Oops),
    ("Internal error: Oops", Trouble::Oops),
    ("kernel BUG at", Trouble::Oops),
    ("Oops: ", Trouble::Oops),
    ("general protection fault", Trouble::Oops),
    ("watchdog: BUG: soft lockup", Trouble::Lockup),
    ("Watchdog detected hard LOCKUP", Trouble::Lockup),
    ("watchdog: Watchdog detected hard LOCKUP", Trouble::Lockup),
    ("NMI watchdog: ", Trouble::Lockup),
    ("rcu: INFO: rcu_", Trouble::Lockup),
    ("INFO: task ", Trouble::Lockup),
];

/// Phrases with which the kernel announces its end.
const ENDS: &[&str] =
    &["reboot: Power down", "reboot: Restarting system", "reboot: System halted", "reboot: machine restart"];

/// Cuts a console's bytes into lines and recognises them.
#[derive(Clone, Debug, Default)]
pub struct Console {
    partial: Vec<u8>,
    lists_symbols: bool,
}

impl Console {
    /// Takes received bytes, and returns the events in them.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.partial.len() >= MAX_LINE_BYTES {
                events.extend(self.line());
            }
        }
        events
    }

    /// Returns the events of a last line without an end.
    pub fn finish(&mut self) -> Vec<Event> {
        match self.partial.is_empty() {
            true => Vec::new(),
            false => self.line(),
        }
    }

    fn line(&mut self) -> Vec<Event> {
        let bytes = std::mem::take(&mut self.partial);
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        // The workload's last line may lack its end.
        match text.split_once(PREFIX) {
            Some(("", said)) => self.said(said).into_iter().collect(),
            Some((before, said)) => [Some(other(before)), self.said(said)].into_iter().flatten().collect(),
            None if self.lists_symbols => vec![Event::SymbolLine(text.into())],
            None => vec![other(text)],
        }
    }

    fn said(&mut self, said: &str) -> Option<Event> {
        let words: Vec<&str> = said.split_whitespace().collect();
        Some(match words.as_slice() {
            ["booted", release, clocksource @ ..] => {
                Event::Booted { release: (*release).into(), clocksource: clocksource.join(" ") }
            }
            ["symbols"] => {
                self.lists_symbols = true;
                return None;
            }
            ["symbols-end"] => {
                self.lists_symbols = false;
                Event::SymbolsListed
            }
            ["section", module, section, address] => section_at(module, section, address)?,
            ["failed", why @ ..] => Event::NotSetUp(why.join(" ")),
            ["begin"] => Event::WorkloadBegan,
            ["end", status] => match status.parse() {
                Ok(status) => Event::WorkloadEnded { status },
                Err(_) => Event::Output(said.into()),
            },
            _ => Event::Output(said.into()),
        })
    }
}

/// A line of a module's section; nothing where the kernel keeps the address to itself.
fn section_at(module: &str, section: &str, address: &str) -> Option<Event> {
    let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok().filter(|address| *address > 0)?;
    Some(Event::ModuleSection { module: module.into(), section: section.into(), address })
}

/// A line that is not the init script's.
fn other(line: &str) -> Event {
    let message = message(line);
    if let Some((_, trouble)) = TROUBLES.iter().find(|(phrase, _)| message.starts_with(phrase)) {
        return Event::Trouble { trouble: *trouble, line: message.into() };
    }
    match ENDS.iter().any(|phrase| message.starts_with(phrase)) {
        true => Event::PoweredOff,
        false => Event::Output(line.into()),
    }
}

/// A kernel's line without its time stamp and caller: "[    1.234567][    T1] reboot: Power down".
pub(super) fn message(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some(inside) = rest.strip_prefix('[')
        && let Some((stamp, after)) = inside.split_once(']')
        && stamp.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | ' '))
    {
        rest = after.trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_an_address_or_is_none() {
        let told = |line: &str| Console::default().push(format!("lineup-guest: {line}\n").as_bytes());
        let expected = Event::ModuleSection {
            module: "overlay".into(),
            section: ".text".into(),
            address: 0xffff_ffff_c000_0000,
        };
        assert_eq!(told("section overlay .text 0xffffffffc0000000"), [expected]);
        assert_eq!(told("section overlay .text 0x0000000000000000"), []);
        assert_eq!(told("section overlay .text (null)"), []);
    }

    #[test]
    fn a_good_run_is_told_in_order_whatever_the_pieces() {
        let text = "lineup-guest: booted 6.1.0-50-cloud-amd64 tsc\r\nlineup-guest: begin\r\n3 7\r\nno end\
                    lineup-guest: end 3\r\n[    4.1] reboot: Power down\r\n";
        let expected = [
            Event::Booted { release: "6.1.0-50-cloud-amd64".into(), clocksource: "tsc".into() },
            Event::WorkloadBegan,
            Event::Output("3 7".into()),
            Event::Output("no end".into()),
            Event::WorkloadEnded { status: 3 },
            Event::PoweredOff,
        ];
        for piece in [1, 7, text.len()] {
            let mut console = Console::default();
            let mut events: Vec<Event> =
                text.as_bytes().chunks(piece).flat_map(|bytes| console.push(bytes)).collect();
            events.extend(console.finish());
            assert_eq!(events, expected);
        }
    }

    #[test]
    fn listed_symbols_are_kept_apart_from_output() {
        let mut console = Console::default();
        let events = console
            .push(b"lineup-guest: symbols\nffffffff81000000 T _text\nlineup-guest: symbols-end\nffff T no\n");
        assert_eq!(
            events,
            [
                Event::SymbolLine("ffffffff81000000 T _text".into()),
                Event::SymbolsListed,
                Event::Output("ffff T no".into()),
            ]
        );
    }

    #[test]
    fn troubles_are_told_apart() {
        let trouble = |line: &str| match Console::default().push(format!("{line}\n").as_bytes()).as_slice() {
            [Event::Trouble { trouble, .. }] => Some(*trouble),
            _ => None,
        };
        for (line, expected) in [
            (
                "[    0.9] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100",
                Trouble::InitLost,
            ),
            (
                "[    0.9][    T1] Kernel panic - not syncing: Requested init /x failed (error -2).",
                Trouble::InitLost,
            ),
            (
                "[ 0.5] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
                Trouble::NoRoot,
            ),
            ("[ 0.5] Kernel panic - not syncing: System is deadlocked on memory", Trouble::OutOfMemory),
            ("Kernel panic - not syncing: Fatal exception in interrupt", Trouble::Panic),
            ("[ 9.1] Out of memory: Killed process 77 (sort) total-vm:9kB", Trouble::OutOfMemory),
            ("[ 9.1] BUG: kernel NULL pointer dereference, address: 0000000000000000", Trouble::Oops),
            ("[ 30.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [sh:70]", Trouble::Lockup),
            ("[ 30.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", Trouble::Lockup),
        ] {
            assert_eq!(trouble(line), Some(expected), "{line}");
        }
        // A workload that prints such a phrase in the midst of a line is no trouble.
        assert_eq!(trouble("searching for Kernel panic - not syncing"), None);
        assert_eq!(trouble("end [x] Oops: "), None);
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let mut console = Console::default();
        let events = console.push(&vec![b'x'; MAX_LINE_BYTES]);
        assert_eq!(events, [Event::Output("x".repeat(MAX_LINE_BYTES))]);
        assert_eq!(console.push(b"\xff\n"), [Event::Output("\u{fffd}".into())]);
    }
}
