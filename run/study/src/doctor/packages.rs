//! The command that installs a missing package on this system.

use std::fs;

/// Systems whose packages are known by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    /// Debian, Ubuntu and their derivatives.
    Debian,
    /// Fedora and its derivatives.
    Fedora,
    /// Another.
    Other,
}

/// The system that this is.
pub struct System {
    /// The system's name for itself.
    pub name: String,
    family: Family,
}

impl System {
    /// By `/etc/os-release`.
    pub fn here() -> System {
        System::read(&fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    fn read(text: &str) -> System {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            line.unwrap_or_default().trim_matches('"').to_owned()
        };
        let kinds = format!("{} {}", value("ID"), value("ID_LIKE"));
        let is = |kind: &str| kinds.split_whitespace().any(|one| one == kind);
        let family = match () {
            () if is("debian") => Family::Debian,
            () if is("fedora") => Family::Fedora,
            () => Family::Other,
        };
        let name = Some(value("PRETTY_NAME")).filter(|name| !name.is_empty());
        System { name: name.unwrap_or_else(|| "a system without /etc/os-release".to_owned()), family }
    }

    /// The command that installs a package by its names in Debian and in Fedora.
    pub fn install(&self, debian: &str, fedora: &str) -> String {
        match self.family {
            Family::Debian => format!("apt install {debian}"),
            Family::Fedora => format!("dnf install {fedora}"),
            Family::Other => format!("install what Debian calls {debian}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_known_by_what_they_are_made_of() {
        let ubuntu = "PRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\nID=ubuntu\nID_LIKE=debian\n";
        let system = System::read(ubuntu);
        assert_eq!((system.name.as_str(), system.family), ("Ubuntu 24.04.1 LTS", Family::Debian));
        assert_eq!(system.install("qemu-user", "qemu-user"), "apt install qemu-user");
        assert_eq!(System::read("ID=debian\n").family, Family::Debian);
        let rocky = System::read("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n");
        assert_eq!(rocky.install("linux-perf", "perf"), "dnf install perf");
        assert_eq!(System::read("ID=nixos\n").install("gcc", "gcc"), "install what Debian calls gcc");
    }
}
