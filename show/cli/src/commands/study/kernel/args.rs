//! Converts the command line for the study of a kernel into its settings.

use crate::kernels::guest::{KernelOptions, latency};
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_recording::Latency;
use lineup_study::source::kernel_tree::{BuiltKernel, Configuration, KernelSource};
use std::path::{Path, PathBuf};

/// Arguments that concern a kernel alone.
#[derive(Args, Clone)]
pub(crate) struct KernelSourceOptions {
    /// Study a kernel: the top folder of its sources, never written to. Both variants are built in a copy, booted under
    /// full-system emulation, recorded and compared
    #[arg(long, value_name = "DIR", conflicts_with_all =
          ["source", "build", "program", "engine", "one_pass", "audits", "pressures", "guard", "command"])]
    pub(crate) kernel_source: Option<PathBuf>,
    /// The kernel's configuration: a file, or a target of its Makefile such as defconfig [default: the tree's .config,
    /// else defconfig]
    #[arg(long, value_name = "FILE|TARGET", requires = "kernel_source")]
    config: Option<String>,
    /// Folder for the copy of the sources and all that is built; it stays, so that the next study compiles only what
    /// changed [default: the folder build in --out]
    #[arg(long, value_name = "DIR", requires = "kernel_source")]
    kernel_build: Option<PathBuf>,
    /// A further word for every make, such as ARCH=arm or CROSS_COMPILE=arm-linux-gnueabihf-
    #[arg(long = "make", value_name = "WORD", requires = "kernel_source")]
    make: Vec<String>,
    /// Compilers that run at once [default: as many as processors]
    #[arg(long, value_name = "N", requires = "kernel_source", value_parser = clap::value_parser!(u16).range(1..=512))]
    jobs: Option<u16>,
    /// Workload of the guest: idle, busy, wakeup, net, a script, or a command
    #[arg(long, value_name = "NAME|SCRIPT|COMMAND", default_value = "idle", requires = "kernel_source")]
    workload: String,
    /// The guest's processors
    #[arg(long, value_name = "N", default_value_t = 1, requires = "kernel_source",
          value_parser = clap::value_parser!(u32).range(1..=16))]
    guest_cpus: u32,
    /// The guest's memory in MiB
    #[arg(long, value_name = "MIB", default_value_t = 512, requires = "kernel_source")]
    memory: u32,
    /// Appended to the kernel's command line
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        allow_hyphen_values = true,
        requires = "kernel_source"
    )]
    cmdline: String,
    /// A static busybox for the guest's machine [default: the installed one]
    #[arg(long, value_name = "FILE", requires = "kernel_source")]
    busybox: Option<PathBuf>,
    /// Stop a guest after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, requires = "kernel_source",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Recorded boots of each kernel, with other allocations and another phase of the timer: lines that differ as much
    /// between boots of one kernel are no result; 1 leaves this out
    #[arg(long, value_name = "N", default_value_t = 3, requires = "kernel_source",
          value_parser = clap::value_parser!(u32).range(1..=20))]
    boots: u32,
    /// Cycles that a miss stalls: from the second level, from memory
    #[arg(long, value_name = "L2,MEMORY", value_parser = latency, requires = "kernel_source")]
    latency: Option<Latency>,
}

/// Whether a word can be a target that configures a kernel: their names end so, and are no paths.
fn may_be_target(word: &str) -> bool {
    word.ends_with("config") && !word.starts_with(['.', '-']) && !word.contains(['/', ' ', '='])
}

/// The boot log is compared, with its times left out; a comparison needs to know which lines are the kernel's.
const LOG: &str = "loglevel=7 printk.time=1";

impl KernelSourceOptions {
    /// The source to build, and its folders.
    pub(crate) fn source(&self, tree: &Path, out: &Path, named: &Path) -> Result<KernelSource> {
        let jobs = match self.jobs {
            Some(jobs) => usize::from(jobs),
            None => std::thread::available_parallelism().context("counting the processors")?.get(),
        };
        Ok(KernelSource {
            tree: tree.to_owned(),
            folder: self.kernel_build.clone().unwrap_or_else(|| named.join("build")),
            make: self.make.clone(),
            jobs,
            leave_out: vec![out.to_owned(), named.to_owned()],
        })
    }

    /// The kernel's configuration, and its description in words.
    ///
    /// # Errors
    /// When the value is neither a file nor can be the name of a target.
    pub(crate) fn configuration(&self, tree: &Path) -> Result<(Configuration, String)> {
        let own = tree.join(".config");
        Ok(match &self.config {
            Some(named) if Path::new(named).is_file() => {
                (Configuration::File(named.into()), format!("the file {named}"))
            }
            Some(named) if Path::new(named).is_dir() => {
                bail!("--config {named}: it is a folder; name the file of the configuration in it")
            }
            Some(named) if !may_be_target(named) => {
                bail!(
                    "--config {named}: there is no such file, and no target of the kernel's Makefile has such a name; \
                     targets are defconfig, tinyconfig, kvm_guest.config and the like"
                )
            }
            Some(named) => (Configuration::Target(named.clone()), format!("make {named}")),
            None if own.is_file() => (Configuration::File(own), "the tree's own .config".into()),
            None => (Configuration::Target("defconfig".into()), "make defconfig".into()),
        })
    }

    /// The guest's memory in MiB.
    pub(crate) fn memory(&self) -> u32 {
        self.memory
    }

    /// Recorded boots of each kernel.
    pub(crate) fn boots(&self) -> u32 {
        self.boots
    }

    /// The guest's workload.
    pub(crate) fn workload(&self) -> &str {
        &self.workload
    }

    /// The guest of a kernel that was built, as `lineup record --kernel` takes it.
    pub(crate) fn guest(&self, built: &BuiltKernel) -> KernelOptions {
        KernelOptions {
            kernel: Some(built.image.clone()),
            debug: Some(built.vmlinux.clone()),
            workload: self.workload.clone(),
            cpus: self.guest_cpus,
            machine: None,
            memory: self.memory,
            cmdline: format!("{LOG} {}", self.cmdline).trim_end().to_owned(),
            busybox: self.busybox.clone(),
            rootfs: Vec::new(),
            module: Vec::new(),
            modules: None,
            timeout: self.timeout,
            console: false,
            latency: self.latency,
            stream: 0,
            intervene: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_a_file_or_the_name_of_a_target() {
        for target in ["defconfig", "x86_64_defconfig", "tinyconfig", "kvm_guest.config", "allnoconfig"] {
            assert!(may_be_target(target), "{target}");
        }
        for other in
            ["/nonexistent", "configs/small.config", ".config", "clean", "mrproper", "-f", "small.cfg", ""]
        {
            assert!(!may_be_target(other), "{other}");
        }
    }
}
