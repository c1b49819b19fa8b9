//! A kernel's configuration, in the forms in which builds and kernels keep it: `.config` and `include/config/auto.conf`
//! (`CONFIG_SMP=y`), `include/generated/autoconf.h` (`#define CONFIG_SMP 1`), packed as in `/proc/config.gz`, and inside
//! an image between the marks of IKCONFIG.

use flate2::read::GzDecoder;
use memchr::memmem;
use std::collections::BTreeMap;
use std::io::Read;

/// IKCONFIG's marks around the packed configuration.
const MARKS: [&[u8]; 2] = [b"IKCFG_ST", b"IKCFG_ED"];

/// No configuration is longer.
const MOST_BYTES: u64 = 16 << 20;

/// kbuild heads its own files with these words. A file without them may leave options open.
const HEAD: &str = "Automatically generated";

/// The options that let the compiler randomise layouts. The specific ones come first.
const RANDOMISING: [&str; 4] = [
    "CONFIG_RANDSTRUCT_FULL",
    "CONFIG_RANDSTRUCT_PERFORMANCE",
    "CONFIG_GCC_PLUGIN_RANDSTRUCT",
    "CONFIG_RANDSTRUCT",
];

/// Options with their values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    values: BTreeMap<String, String>,
    /// Options that are said to be off.
    off: Vec<String>,
    is_whole: bool,
}

impl Configuration {
    /// Reads a configuration, packed with gzip or not; `None` when the bytes name no option.
    pub fn parse(bytes: &[u8]) -> Option<Configuration> {
        let unpacked = match bytes.starts_with(&[0x1f, 0x8b]) {
            true => Some(unpack(bytes)?),
            false => None,
        };
        let text = String::from_utf8_lossy(unpacked.as_deref().unwrap_or(bytes));
        let mut found =
            Configuration { values: BTreeMap::new(), off: Vec::new(), is_whole: text.contains(HEAD) };
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set")) {
                found.off.push(name.to_owned());
                continue;
            }
            let option = match line.strip_prefix("#define ") {
                Some(defined) => defined.split_once(' '),
                None => line.split_once('='),
            };
            if let Some((name, value)) = option.filter(|(name, _)| name.starts_with("CONFIG_")) {
                found.values.insert(name.to_owned(), value.trim().to_owned());
            }
        }
        (!found.values.is_empty() || !found.off.is_empty()).then_some(found)
    }

    /// The configuration that IKCONFIG keeps in an unpacked kernel, or in its debug file.
    pub fn in_image(vmlinux: &[u8]) -> Option<Configuration> {
        let [first, last] = MARKS;
        memmem::find_iter(vmlinux, first).find_map(|at| {
            let packed = vmlinux.get(at + first.len()..)?;
            let end = memmem::find(packed, last)?;
            packed.starts_with(&[0x1f, 0x8b]).then(|| Configuration::parse(&packed[..end])).flatten()
        })
    }

    /// Whether kbuild wrote it: an option that such a file does not name is off.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether an option is built in.
    pub fn is_on(&self, option: &str) -> bool {
        self.values.get(option).is_some_and(|value| value == "y" || value == "1")
    }

    /// The option by which the compiler randomises layouts; `Some(None)` when there is none; `None` when the
    /// configuration leaves it open.
    pub fn randomising_option(&self) -> Option<Option<&'static str>> {
        if let Some(option) = RANDOMISING.into_iter().find(|option| self.is_on(option)) {
            return Some(Some(option));
        }
        let says_none = self.is_on("CONFIG_RANDSTRUCT_NONE")
            || ["CONFIG_RANDSTRUCT", "CONFIG_GCC_PLUGIN_RANDSTRUCT"]
                .iter()
                .any(|option| self.off.iter().any(|off| off == option));
        (self.is_whole || says_none).then_some(None)
    }
}

fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    GzDecoder::new(bytes).take(MOST_BYTES + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= MOST_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    const WHOLE: &str = "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.12.0 Kernel Configuration\n#\n\
                         CONFIG_SMP=y\n# CONFIG_IKCONFIG is not set\n";

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).expect("packs");
        encoder.finish().expect("packs")
    }

    fn randomising(text: &str) -> Option<Option<&'static str>> {
        Configuration::parse(text.as_bytes()).expect("a configuration").randomising_option()
    }

    #[test]
    fn an_option_that_a_whole_configuration_does_not_name_is_off() {
        assert_eq!(randomising(WHOLE), Some(None));
        assert_eq!(randomising("CONFIG_SMP=y\n"), None, "a fragment leaves it open");
        assert_eq!(randomising("CONFIG_RANDSTRUCT_NONE=y\n"), Some(None));
        assert_eq!(randomising("# CONFIG_GCC_PLUGIN_RANDSTRUCT is not set\n"), Some(None));
    }

    #[test]
    fn each_form_names_the_option_that_randomises() {
        let full = Some(Some("CONFIG_RANDSTRUCT_FULL"));
        assert_eq!(randomising(&format!("{WHOLE}CONFIG_RANDSTRUCT_FULL=y\nCONFIG_RANDSTRUCT=y\n")), full);
        assert_eq!(
            randomising(&format!("{WHOLE}CONFIG_GCC_PLUGIN_RANDSTRUCT=y\n")),
            Some(Some("CONFIG_GCC_PLUGIN_RANDSTRUCT"))
        );
        let header = "/*\n * Automatically generated file; DO NOT EDIT.\n */\n#define CONFIG_SMP 1\n\
                      #define CONFIG_RANDSTRUCT_FULL 1\n";
        assert_eq!(randomising(header), full);
        let both = Configuration::parse(&packed(&format!("{WHOLE}CONFIG_RANDSTRUCT_FULL=y\n")));
        assert_eq!(both.expect("packed").randomising_option(), full);
    }

    #[test]
    fn the_configuration_in_an_image_is_between_its_marks() {
        let image = [b"IKCFG_ST no archive", &b"IKCFG_ST"[..], &packed(WHOLE), b"IKCFG_ED", b"text"].concat();
        let found = Configuration::in_image(&image).expect("found");
        assert!(found.is_on("CONFIG_SMP") && found.is_whole() && !found.is_on("CONFIG_IKCONFIG"));
        assert_eq!(Configuration::in_image(b"IKCFG_ST"), None);
        assert_eq!(Configuration::in_image(&image[..60]), None, "cut off");
    }

    #[test]
    fn text_without_options_is_no_configuration() {
        assert_eq!(Configuration::parse(b"int main(void) { return 0; }\n"), None);
        assert_eq!(Configuration::parse(&[0x1f, 0x8b, 0, 1]), None);
    }
}
