//! The script that the kernel starts.

use super::{BEGIN_MARKER, END_MARKER, PREFIX, loading, root};
use crate::error::Error;
use crate::modules::Module;

/// The path of the file with the wanted symbols in the guest.
pub(crate) const SYMBOL_PATTERNS: &str = "/lineup/symbols";

/// The symbols that the guest lists before the workload begins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum SymbolsWanted {
    /// None: the image already gives them.
    #[default]
    None,
    /// The symbols of these names.
    Named(Vec<String>),
    /// All. The console makes this slow.
    All,
}

/// The parameters of the script.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InitOptions {
    /// The workload, as a line of shell.
    pub workload: String,
    /// The folder in which the workload starts; `None` for the root.
    pub directory: Option<String>,
    /// True when the loopback interface comes up. There is no other network.
    pub loopback: bool,
    /// The symbols that are listed.
    pub symbols: SymbolsWanted,
    /// Modules that are loaded before the workload begins, in this order, including the modules of a root's disk.
    pub modules: Vec<Module>,
    /// True when the guest reports the addresses of its modules' sections.
    pub lists_sections: bool,
    /// True when the workload sees a root file system on a disk of its own instead of the initramfs.
    pub has_root: bool,
}

/// The script, to be `/init`, and the file it reads, if it lists symbols by name.
///
/// # Errors
///
/// When the folder of the workload, or the name of a symbol, cannot be written into a script.
pub fn init_script(options: &InitOptions) -> Result<InitScript, Error> {
    let directory = options.directory.as_deref().unwrap_or("/");
    if !directory.starts_with('/') || directory.contains(['\'', '\n', '\0']) {
        return Err(Error::GuestPath { path: directory.into(), why: "a script cannot name it" });
    }
    let loopback = if options.loopback { "ifconfig lo 127.0.0.1 up\n" } else { "" };
    let symbols = symbols(&options.symbols)?;
    let fail = if options.modules.is_empty() && !options.has_root { "" } else { loading::FAIL };
    let modules = loading::lines(&options.modules, options.lists_sections);
    let root = if options.has_root { root::MOUNTING } else { "" };
    let start = match options.has_root {
        true => root::START.to_owned(),
        false => format!("cd '{directory}'\n"),
    };
    let run = if options.has_root { root::RUN } else { "sh /lineup/workload </dev/null\n" };
    let text = format!(
        "#!/bin/busybox sh\n\
         export PATH=/bin:/sbin:/usr/bin:/usr/sbin:/usr/local/bin HOME=/root TERM=dumb\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sysfs /sys\n\
         mount -t devtmpfs devtmpfs /dev\n\
         say() {{ printf '{PREFIX}%s\\n' \"$*\"; }}\n\
         say booted $(uname -r) $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)\n\
         {loopback}{symbols}{fail}{modules}{root}{start}\
         say begin\n\
         hostname {BEGIN_MARKER}\n\
         {run}\
         status=$?\n\
         hostname {END_MARKER}\n\
         say end $status\n\
         poweroff -f\n\
         reboot -f\n"
    );
    let workload = match options.has_root {
        true => format!("cd '{directory}' || exit 1\n{}\n", options.workload),
        false => format!("{}\n", options.workload),
    };
    let modules = options.modules.clone();
    Ok(InitScript { text, workload, patterns: patterns(&options.symbols), modules })
}

/// The files of a guest that the script consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitScript {
    /// For `/init`.
    pub text: String,
    /// For `/lineup/workload`.
    pub workload: String,
    /// For `/lineup/symbols`, if symbols are listed by name.
    pub patterns: Option<String>,
    /// For `/lineup/modules`.
    pub modules: Vec<Module>,
}

impl InitScript {
    /// The tree of a guest that runs the script.
    ///
    /// # Errors
    ///
    /// See [`crate::initramfs::base`].
    pub fn tree(&self, busybox: &[u8]) -> Result<crate::initramfs::Tree, Error> {
        let file = |text: &str| crate::initramfs::InitramfsEntry::File {
            mode: 0o755,
            contents: text.as_bytes().to_vec(),
        };
        let mut tree = crate::initramfs::base(busybox, &self.text)?;
        tree.put("/lineup/workload", file(&self.workload))?;
        if let Some(patterns) = &self.patterns {
            tree.put(SYMBOL_PATTERNS, file(patterns))?;
        }
        for Module { name, contents } in &self.modules {
            let module = crate::initramfs::InitramfsEntry::File { mode: 0o644, contents: contents.clone() };
            tree.put(&loading::module_file(name), module)?;
        }
        Ok(tree)
    }
}

fn symbols(wanted: &SymbolsWanted) -> Result<String, Error> {
    let list = match wanted {
        SymbolsWanted::None => return Ok(String::new()),
        SymbolsWanted::All => "cat /proc/kallsyms".to_owned(),
        SymbolsWanted::Named(names) => {
            let odd = names.iter().find(|name| name.is_empty() || name.contains(char::is_whitespace));
            if let Some(name) = odd {
                let why = "a symbol has no spaces";
                return Err(Error::Option { option: "symbol", value: name.clone(), why });
            }
            // The whole third word must be one of the names.
            format!("awk 'NR == FNR {{ want[$1]; next }} $3 in want' {SYMBOL_PATTERNS} /proc/kallsyms")
        }
    };
    Ok(format!("say symbols\n{list}\nsay symbols-end\n"))
}

fn patterns(wanted: &SymbolsWanted) -> Option<String> {
    match wanted {
        SymbolsWanted::Named(names) => Some(names.iter().map(|name| format!("{name}\n")).collect()),
        SymbolsWanted::None | SymbolsWanted::All => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_markers_stand_around_the_workload_alone() {
        let script = init_script(&InitOptions { workload: "sleep 1".into(), ..Default::default() }).unwrap();
        let around = "say begin\nhostname lineup-begin\nsh /lineup/workload </dev/null\nstatus=$?\nhostname lineup-end\n\
                      say end $status\npoweroff -f\n";
        assert!(script.text.contains(around), "{}", script.text);
        assert_eq!(script.text.matches("hostname").count(), 2);
        assert!(!script.text.contains("ifconfig") && !script.text.contains("kallsyms"));
        assert_eq!(script.workload, "sleep 1\n");
    }

    #[test]
    fn loopback_symbols_and_folder_come_when_asked_for() {
        let symbols = SymbolsWanted::Named(vec!["sched_clock".into(), "jiffies".into()]);
        let options = InitOptions {
            workload: "x".into(),
            directory: Some("/a b".into()),
            loopback: true,
            symbols,
            ..Default::default()
        };
        let script = init_script(&options).unwrap();
        assert!(script.text.contains("ifconfig lo 127.0.0.1 up\nsay symbols\nawk "));
        assert!(script.text.contains("cd '/a b'\n"));
        assert_eq!(script.patterns.as_deref(), Some("sched_clock\njiffies\n"));
        assert!(script.tree(b"busybox").unwrap().get("/lineup/symbols").is_some());
    }

    #[test]
    fn a_root_is_mounted_before_the_workload_and_is_all_that_it_sees() {
        let modules = vec![Module { name: "overlay".into(), contents: vec![1] }];
        let options = InitOptions {
            workload: "redis-server --version".into(),
            directory: Some("/srv".into()),
            modules,
            has_root: true,
            ..Default::default()
        };
        let script = init_script(&options).unwrap();
        let at =
            |text: &str| script.text.find(text).unwrap_or_else(|| panic!("no {text} in {}", script.text));
        assert!(at("insmod /lineup/modules/overlay.ko") < at("mount -t ext4"));
        assert!(at("mount -t ext4") < at("mount -t overlay") && at("mount -t overlay") < at("say begin"));
        assert!(at("say begin") < at("chroot /lineup/root \"$shell\" /lineup/workload"));
        assert_eq!(script.workload, "cd '/srv' || exit 1\nredis-server --version\n");
        assert!(script.tree(b"busybox").unwrap().get("/lineup/modules/overlay.ko").is_some());
    }

    #[test]
    fn modules_are_loaded_without_a_root_too_and_tell_where_they_lie_when_asked() {
        let modules = vec![Module { name: "binfmt_misc".into(), contents: vec![1] }];
        let options = InitOptions { workload: "ls".into(), modules, ..Default::default() };
        let script = init_script(&options).unwrap();
        assert!(script.text.contains("insmod /lineup/modules/binfmt_misc.ko || fail "));
        assert!(!script.text.contains("sections") && !script.text.contains("pmem"));
        let script = init_script(&InitOptions { lists_sections: true, ..options }).unwrap();
        let at =
            |text: &str| script.text.find(text).unwrap_or_else(|| panic!("no {text} in {}", script.text));
        assert!(at("insmod") < at("/sys/module/binfmt_misc/sections/") && at("sections/") < at("say begin"));
    }

    #[test]
    fn what_would_break_the_script_is_refused() {
        let quoted = InitOptions { directory: Some("/it's".into()), ..Default::default() };
        assert!(init_script(&quoted).is_err());
        let symbols = SymbolsWanted::Named(vec!["two words".into()]);
        assert!(init_script(&InitOptions { symbols, ..Default::default() }).is_err());
    }
}
