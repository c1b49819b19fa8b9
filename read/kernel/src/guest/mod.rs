//! The programs in the guest, and their messages on its console.
//!
//! A recorder starts at the first call of `sethostname` and stops at the second: the init script sets the host name to
//! [`BEGIN_MARKER`] and [`END_MARKER`] around the workload.

mod console;
mod loading;
mod printed;
mod root;
mod script;
mod workloads;

pub use console::{Console, Event, Trouble};
pub use printed::{Printed, Varying};
pub use root::{DISK_MODULES, FILES};
pub use script::{InitOptions, SymbolsWanted, init_script};
pub use workloads::BuiltIn;

/// The prefix of each line of the init script.
pub const PREFIX: &str = "lineup-guest: ";

/// The host name that is set when the workload begins.
pub const BEGIN_MARKER: &str = "lineup-begin";

/// The host name that is set when the workload has ended.
pub const END_MARKER: &str = "lineup-end";

/// The functions of a kernel that a call of `sethostname` enters, most specific first.
pub const MARKER_FUNCTIONS: [&str; 3] =
    ["__x64_sys_sethostname", "__arm64_sys_sethostname", "sys_sethostname"];

/// The applets of busybox that have a name in the guest.
pub const APPLETS: &[&str] = &[
    "ash",
    "awk",
    "basename",
    "bc",
    "bunzip2",
    "bzcat",
    "bzip2",
    "cat",
    "chgrp",
    "chmod",
    "chown",
    "chroot",
    "chrt",
    "cksum",
    "clear",
    "cmp",
    "comm",
    "cp",
    "cut",
    "date",
    "dd",
    "df",
    "diff",
    "dirname",
    "dmesg",
    "du",
    "echo",
    "egrep",
    "env",
    "expand",
    "expr",
    "factor",
    "false",
    "fgrep",
    "find",
    "fold",
    "free",
    "getopt",
    "grep",
    "gunzip",
    "gzip",
    "halt",
    "head",
    "hexdump",
    "hostname",
    "id",
    "ifconfig",
    "insmod",
    "ip",
    "kill",
    "killall",
    "less",
    "ln",
    "ls",
    "lzcat",
    "md5sum",
    "mkdir",
    "mkfifo",
    "mknod",
    "mktemp",
    "more",
    "mount",
    "mv",
    "nc",
    "nice",
    "nl",
    "nproc",
    "od",
    "paste",
    "pidof",
    "ping",
    "poweroff",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "reboot",
    "renice",
    "rev",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "setsid",
    "sh",
    "sha1sum",
    "sha256sum",
    "shred",
    "shuf",
    "sleep",
    "sort",
    "split",
    "stat",
    "stty",
    "sync",
    "sysctl",
    "tac",
    "tail",
    "tar",
    "taskset",
    "tee",
    "test",
    "time",
    "timeout",
    "top",
    "touch",
    "tr",
    "true",
    "truncate",
    "tty",
    "umount",
    "uname",
    "uniq",
    "unxz",
    "uptime",
    "usleep",
    "uudecode",
    "uuencode",
    "vi",
    "watch",
    "wc",
    "wget",
    "which",
    "whoami",
    "xargs",
    "xxd",
    "xzcat",
    "yes",
    "zcat",
];
