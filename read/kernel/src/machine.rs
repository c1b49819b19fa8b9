//! The emulator's command line.
//!
//! Time is counted in instructions and begins on a fixed day, nothing random reaches the guest, and there is no
//! network: the same request gives the same run.

use crate::error::Error;
use lineup_model::machine::{Board, Machine};

/// Nanoseconds of the guest's time per instruction, as a power of two: the emulator's `-icount shift`.
pub const TIME_SHIFT: u32 = 1;

/// The oldest emulator that knows every option used here: 7.1, which can keep random seeds out of the device tree.
pub const OLDEST_EMULATOR: (u32, u32) = (7, 1);

/// From this version on, with counted time, one thread of the host runs all processors. The emulator then gives plugins
/// the processor for which code was translated, not the one that runs it.
const MISTAKES_PROCESSORS_SINCE: (u32, u32) = (10, 0);

/// Less memory is refused: no kernel that distributions ship unpacks into it.
pub const MIN_MEMORY_MIB: u32 = 16;

/// The guest that is booted: its kernel and its virtual machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestMachine {
    /// The kernel's machine.
    pub machine: Machine,
    /// Major and minor version of the emulator.
    pub emulator: (u32, u32),
    /// Virtual CPUs.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// The file of the kernel image.
    pub kernel: String,
    /// The file of the initramfs.
    pub initramfs: String,
    /// The image of the guest's root file system, if it has one, and its length.
    pub root: Option<RootImage>,
    /// Appended to the kernel's command line. Its settings replace other settings there; may be empty.
    pub cmdline: String,
    /// The guest's memory is a file of the emulator's, which its plugin can read.
    pub shares_memory: bool,
    /// The emulator's `-plugin` argument, `FILE,KEY=VALUE…`.
    pub plugin: Option<String>,
}

/// The file with the guest's root file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RootImage {
    /// The file.
    pub file: String,
    /// Its length.
    pub mib: u64,
}

/// The emulated board for a machine's kernels.
///
/// # Errors
///
/// When no full-system emulation is set up for the machine.
pub fn board(machine: Machine) -> Result<&'static Board, Error> {
    machine.description().board.ok_or(Error::NotBootable { machine })
}

/// True when a command line lets the kernel choose its own addresses.
pub fn has_kaslr(cmdline: &str) -> bool {
    cmdline.split_whitespace().any(|word| word == "kaslr")
}

/// Major and minor version from the emulator's output for `--version`.
pub fn emulator_version(text: &str) -> Option<(u32, u32)> {
    let (_, version) = text.lines().next()?.split_once("version ")?;
    let mut numbers = version.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

impl GuestMachine {
    /// The emulator's arguments.
    ///
    /// # Errors
    ///
    /// When an option is out of range or the machine cannot be emulated.
    pub fn arguments(&self) -> Result<Vec<String>, Error> {
        let refuse =
            |option, value: &dyn ToString, why| Error::Option { option, value: value.to_string(), why };
        if !(1..=8).contains(&self.cpus) {
            return Err(refuse("--cpus", &self.cpus, "give 1 to 8: the emulated boards have no more"));
        }
        let board = board(self.machine)?;
        if !(MIN_MEMORY_MIB..=board.max_memory_mib).contains(&self.memory_mib) {
            let why = "give 16 to 65536 MiB, on 32-bit machines at most 2048";
            return Err(refuse("--memory", &self.memory_mib, why));
        }
        if self.cmdline.contains(['\n', '\0']) {
            return Err(refuse("--cmdline", &self.cmdline, "it is one line"));
        }
        let mut arguments: Vec<String> = ["-accel", "tcg"].map(str::to_owned).to_vec();
        let mut add = |option: &str, value: &str| arguments.extend([option.to_owned(), value.to_owned()]);
        for (option, value) in board.options {
            add(option, value);
        }
        add("-smp", &self.cpus.to_string());
        let memory = match &self.root {
            Some(root) => {
                format!("{0}M,slots=1,maxmem={1}M", self.memory_mib, u64::from(self.memory_mib) + root.mib)
            }
            None => format!("{}M", self.memory_mib),
        };
        add("-m", &memory);
        if self.shares_memory {
            add("-object", &format!("memory-backend-memfd,id=memory,size={}M", self.memory_mib));
            add("-machine", "memory-backend=memory");
        }
        if let Some(RootImage { file, mib }) = &self.root {
            if self.machine != Machine::X86_64 {
                let why = "the emulator has such a disk for x86-64 alone; a workload's files can be named on its line";
                return Err(refuse("--rootfs", file, why));
            }
            // The disk is memory: a request to a disk of the host's would be answered at no fixed instruction. The
            // guest's writes, of which a mounted root has none, would go to a copy.
            let object = "memory-backend-file,id=root,share=off";
            add("-object", &format!("{object},size={mib}M,mem-path={}", file.replace(',', ",,")));
            add("-device", "virtio-pmem-pci,memdev=root");
        }
        if self.counts_time() {
            add("-icount", "shift=1,sleep=off");
        }
        add("-rtc", "base=2026-01-01,clock=vm");
        add("-nic", "none");
        add("-display", "none");
        add("-serial", "stdio");
        add("-monitor", "none");
        add("-kernel", &self.kernel);
        add("-initrd", &self.initramfs);
        add("-append", &self.kernel_cmdline()?);
        if let Some(plugin) = &self.plugin {
            add("-plugin", plugin);
        }
        arguments.extend(["-nodefaults".to_owned(), "-no-reboot".to_owned()]);
        Ok(arguments)
    }

    /// True when the guest's time is the count of its instructions, so that runs repeat to the bit. QEMU 7.2 does not
    /// bring up a second x86 processor so, and newer ones mistake processors; there several run on threads of their
    /// own, in real time.
    pub fn counts_time(&self) -> bool {
        let board = self.machine.description().board;
        let can_count = |board: &Board| {
            (board.counts_time_on_several_cpus_since..MISTAKES_PROCESSORS_SINCE).contains(&self.emulator)
        };
        self.cpus == 1 || board.is_some_and(can_count)
    }

    /// The kernel's command line. Its addresses are those of the image unless the request contains `kaslr`. It works
    /// around no processor fault unless the request names some (`mitigations=`). A panic restarts the machine at once,
    /// which ends the emulator. In real time an x86 kernel must not wait for its timer to tick within some
    /// milliseconds: a busy host may stop the timer, and the kernel would panic.
    ///
    /// # Errors
    ///
    /// When no full-system emulation is set up for the machine.
    pub fn kernel_cmdline(&self) -> Result<String, Error> {
        let board = board(self.machine)?;
        let own = self.cmdline.trim();
        let unless = |is_replaced: bool, word| if is_replaced { "" } else { word };
        let console = format!("console={}", board.console);
        let is_late = self.machine == Machine::X86_64 && !self.counts_time();
        let parts = [
            &console,
            unless(has_kaslr(own), "nokaslr"),
            "quiet",
            unless(own.split_whitespace().any(|word| word.starts_with("mitigations=")), "mitigations=off"),
            board.cmdline,
            unless(!is_late, "no_timer_check"),
            "panic=-1",
            own,
        ];
        Ok(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<&str>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(machine: Machine) -> GuestMachine {
        GuestMachine {
            machine,
            emulator: (7, 2),
            cpus: 1,
            memory_mib: 512,
            kernel: "K".into(),
            initramfs: "I".into(),
            root: None,
            cmdline: String::new(),
            shares_memory: false,
            plugin: None,
        }
    }

    #[test]
    fn what_the_request_sets_replaces_what_is_set_otherwise() {
        let cmdline = |own: &str| {
            GuestMachine { cmdline: own.into(), ..guest(Machine::X86_64) }.kernel_cmdline().unwrap()
        };
        let usual = "console=ttyS0 nokaslr quiet mitigations=off tsc=reliable panic=-1";
        assert_eq!(cmdline(" "), usual);
        assert_eq!(
            cmdline("mitigations=auto"),
            "console=ttyS0 nokaslr quiet tsc=reliable panic=-1 mitigations=auto"
        );
        assert_eq!(
            cmdline("nohz=off kaslr"),
            "console=ttyS0 quiet mitigations=off tsc=reliable panic=-1 nohz=off kaslr"
        );
        assert_eq!(cmdline("nokaslr x.kaslr"), format!("{usual} nokaslr x.kaslr"));
    }

    #[test]
    fn the_command_line_of_an_x86_guest_is_this_one() {
        let guest = GuestMachine {
            cmdline: "init=/x".into(),
            plugin: Some("P.so,plan=F".into()),
            ..guest(Machine::X86_64)
        };
        assert_eq!(
            guest.arguments().unwrap(),
            [
                "-accel",
                "tcg",
                "-cpu",
                "max,-rdrand,-rdseed",
                "-smp",
                "1",
                "-m",
                "512M",
                "-icount",
                "shift=1,sleep=off",
                "-rtc",
                "base=2026-01-01,clock=vm",
                "-nic",
                "none",
                "-display",
                "none",
                "-serial",
                "stdio",
                "-monitor",
                "none",
                "-kernel",
                "K",
                "-initrd",
                "I",
                "-append",
                "console=ttyS0 nokaslr quiet mitigations=off tsc=reliable panic=-1 init=/x",
                "-plugin",
                "P.so,plan=F",
                "-nodefaults",
                "-no-reboot",
            ]
        );
    }

    #[test]
    fn time_is_counted_but_where_an_emulator_cannot_do_so_for_several_processors() {
        let counts = |machine, cpus, emulator| {
            let arguments = GuestMachine { cpus, emulator, ..guest(machine) }.arguments().unwrap();
            arguments.contains(&"-icount".to_owned())
        };
        assert!(counts(Machine::X86_64, 1, (7, 2)));
        assert!(!counts(Machine::X86_64, 2, (7, 2)));
        assert!(!counts(Machine::X86_64, 2, (10, 0)));
        assert!(counts(Machine::X86_64, 1, (10, 0)));
        assert!(!counts(Machine::AArch64, 2, (10, 0)));
        assert!(counts(Machine::AArch64, 2, (7, 2)));
    }

    #[test]
    fn in_real_time_an_x86_kernel_does_not_check_its_timer() {
        let checks = |machine, cpus| {
            let arguments = GuestMachine { cpus, ..guest(machine) }.arguments().unwrap();
            !arguments.iter().any(|argument| argument.contains(" no_timer_check "))
        };
        assert!(!checks(Machine::X86_64, 2));
        assert!(checks(Machine::X86_64, 1) && checks(Machine::AArch64, 2) && checks(Machine::Arm, 2));
    }

    #[test]
    fn arm_guests_have_a_board_without_random_seeds() {
        for (machine, cpu) in [(Machine::AArch64, "cortex-a72"), (Machine::Arm, "cortex-a15")] {
            let arguments = guest(machine).arguments().unwrap();
            assert_eq!(arguments[2..6], ["-M", "virt,dtb-randomness=off", "-cpu", cpu]);
            assert!(arguments.contains(&"console=ttyAMA0 nokaslr quiet mitigations=off panic=-1".to_owned()));
        }
    }

    #[test]
    fn a_root_lies_in_memory_beside_the_guests() {
        let root = Some(RootImage { file: "/a,b".into(), mib: 96 });
        let arguments = GuestMachine { root: root.clone(), ..guest(Machine::X86_64) }.arguments().unwrap();
        let after = |option: &str| {
            let at = arguments.iter().position(|argument| argument == option).unwrap();
            arguments[at + 1].as_str()
        };
        assert_eq!(after("-m"), "512M,slots=1,maxmem=608M");
        assert_eq!(after("-object"), "memory-backend-file,id=root,share=off,size=96M,mem-path=/a,,b");
        assert_eq!(after("-device"), "virtio-pmem-pci,memdev=root");
        let error = GuestMachine { root, ..guest(Machine::AArch64) }.arguments().unwrap_err().to_string();
        assert!(error.contains("--rootfs"), "{error}");
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let said = |guest: GuestMachine| guest.arguments().unwrap_err().to_string();
        assert!(said(GuestMachine { cpus: 0, ..guest(Machine::Arm) }).contains("--cpus"));
        assert!(said(GuestMachine { memory_mib: 4, ..guest(Machine::X86_64) }).contains("--memory"));
        assert!(said(GuestMachine { memory_mib: 4096, ..guest(Machine::Arm) }).contains("2048"));
        assert!(said(GuestMachine { cmdline: "a\nb".into(), ..guest(Machine::Arm) }).contains("one line"));
        assert!(said(guest(Machine::I386)).contains("cannot be booted"));
    }

    #[test]
    fn the_emulators_version_is_read() {
        let text = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright\n";
        assert_eq!(emulator_version(text), Some((7, 2)));
        assert_eq!(emulator_version("something else"), None);
    }
}
