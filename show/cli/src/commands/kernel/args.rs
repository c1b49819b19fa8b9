//! Arguments of `lineup kernel`.

use std::path::PathBuf;

/// Identifies a kernel image, and boots it under full-system emulation
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The image as distributed: bzImage, Image, zImage, such as /boot/vmlinuz-*.
    pub(crate) image: PathBuf,
    /// The image's vmlinux with debug information.
    #[arg(long, value_name = "VMLINUX")]
    pub(crate) debug: Option<PathBuf>,
    /// Boot it, without a recording.
    #[arg(long)]
    pub(crate) boot: bool,
    /// Workload of the guest: idle, busy, wakeup, net, a script, or a command.
    #[arg(long, value_name = "NAME|SCRIPT|COMMAND", default_value = "idle", requires = "boot")]
    pub(crate) workload: String,
    /// Virtual CPUs.
    #[arg(long, default_value_t = 1, requires = "boot")]
    pub(crate) cpus: u32,
    /// The guest's memory in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 512, requires = "boot")]
    pub(crate) memory: u32,
    /// Appended to the kernel's command line; `mitigations=…` and `kaslr` replace what is there otherwise.
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true, requires = "boot")]
    pub(crate) cmdline: String,
    /// A static busybox for the guest's machine [default: the installed one].
    #[arg(long, value_name = "FILE", requires = "boot")]
    pub(crate) busybox: Option<PathBuf>,
    /// The guest's root: a folder, or archives of a container's layers, lowest first; read-only, changes in memory.
    #[arg(long, value_name = "DIR|TAR", requires = "boot")]
    pub(crate) rootfs: Vec<PathBuf>,
    /// The folder of the kernel's modules, for --rootfs [default: lib/modules/RELEASE next to the image's folder].
    #[arg(long, value_name = "DIR", requires = "rootfs")]
    pub(crate) modules: Option<PathBuf>,
    /// Stop the guest after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "boot",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Show the guest's console.
    #[arg(long, requires = "boot")]
    pub(crate) console: bool,
    /// Have the guest list a sample of its symbols, and compare them with the image's.
    #[arg(long, requires = "boot")]
    pub(crate) check_symbols: bool,
    /// Print JSON, the form lineup.kernel/1.
    #[arg(long)]
    pub(crate) json: bool,
}
