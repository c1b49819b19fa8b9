//! Workloads that need nothing but busybox.

use std::fmt;
use std::str::FromStr;

/// A workload that Lineup brings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BuiltIn {
    /// Sleeps five seconds of the guest's time.
    Idle,
    /// Sorts and packs generated numbers.
    Busy,
    /// Two processes wake each other through pipes.
    Wakeup,
    /// Sends data over the loopback interface.
    Net,
}

impl BuiltIn {
    /// All of them.
    pub const ALL: [BuiltIn; 4] = [BuiltIn::Idle, BuiltIn::Busy, BuiltIn::Wakeup, BuiltIn::Net];

    /// Its lines of shell.
    pub fn script(self) -> &'static str {
        match self {
            BuiltIn::Idle => "sleep 5",
            BuiltIn::Busy => {
                "seq 1 60000 | awk '{ print ($1 * 7919) % 60013, $1 }' > /tmp/numbers\n\
                 sort -n /tmp/numbers > /tmp/sorted\n\
                 gzip -9 -c /tmp/sorted > /tmp/packed\n\
                 test -s /tmp/packed"
            }
            BuiltIn::Wakeup => {
                "mkfifo /tmp/there /tmp/back\n\
                 (while read -r n; do echo \"$n\"; done < /tmp/there > /tmp/back) &\n\
                 exec 3> /tmp/there 4< /tmp/back\n\
                 n=0\n\
                 while [ $n -lt 5000 ]; do echo $n >&3; read -r answer <&4 || exit 1; n=$((n + 1)); done\n\
                 test \"$answer\" = 4999"
            }
            BuiltIn::Net => {
                // A server whose input ends at once would end the connection.
                "mkfifo /tmp/open\n\
                 nc -l -p 7000 < /tmp/open > /tmp/received &\n\
                 exec 3> /tmp/open\n\
                 sleep 1\n\
                 head -c 8388608 /dev/zero | nc 127.0.0.1 7000\n\
                 wait\n\
                 test $(wc -c < /tmp/received) = 8388608"
            }
        }
    }

    /// True when it needs the loopback interface.
    pub fn needs_loopback(self) -> bool {
        self == BuiltIn::Net
    }
}

impl fmt::Display for BuiltIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BuiltIn::Idle => "idle",
            BuiltIn::Busy => "busy",
            BuiltIn::Wakeup => "wakeup",
            BuiltIn::Net => "net",
        })
    }
}

impl FromStr for BuiltIn {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|workload| workload.to_string() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name() {
        for workload in BuiltIn::ALL {
            assert_eq!(workload.to_string().parse(), Ok(workload));
        }
        assert_eq!("idl".parse::<BuiltIn>(), Err(()));
    }
}
