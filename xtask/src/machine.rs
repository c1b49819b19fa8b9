//! Checks that all machine-dependent code of the native engine stands behind one trait: its other files name no
//! instruction and no register.

/// The engine's own sources.
const ENGINE: &str = "recorder/engine/src/";

/// Machines, each a folder of this name below `machine/`.
const MACHINES: &[&str] = &["x86_64"];

/// Words of a machine: the libraries and macros that make its code, its names, and the names of its parts.
const WORDS: &[&str] = &[
    "iced_x86",
    "asm",
    "global_asm",
    "naked_asm",
    "naked",
    "arch",
    "x86",
    "x86_64",
    "aarch64",
    "syscall",
    "svc",
    "int3",
    "brk",
    "rdtsc",
    "_rdtsc",
    "cpuid",
    "__cpuid",
    "__cpuid_count",
    "is_x86_feature_detected",
    "rip",
    "rflags",
    "eflags",
];

/// The door names the existing machines, and tests for which one this is built.
const OF_DOOR: &[&str] = &["x86", "x86_64"];

/// General registers of 64 and 32 bits.
const REGISTERS: &[&str] = &["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"];

/// The words of a machine in an engine's source that is no machine's, one sentence each.
pub(crate) fn check(file: &str, text: &str) -> Vec<String> {
    let Some(own) = file.strip_prefix(ENGINE).filter(|own| !is_of_machine(own)) else { return Vec::new() };
    let is_known = |word: &str| own == "machine/mod.rs" && OF_DOOR.contains(&word);
    let words =
        text.lines().enumerate().flat_map(|(number, line)| words(line).map(move |word| (number, word)));
    let broken = words.filter(|(_, word)| is_machines(word) && !is_known(word));
    let tell = |(number, word): (usize, &str)| {
        format!("{file}:{} says {word}, which is for {ENGINE}machine/ to know", number + 1)
    };
    broken.map(tell).collect()
}

/// Whether a file below the engine's folder belongs to a machine.
fn is_of_machine(own: &str) -> bool {
    let Some(own) = own.strip_prefix("machine/") else { return false };
    let first = own.split('/').next().unwrap_or_default();
    MACHINES.contains(&first.strip_suffix(".rs").unwrap_or(first))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

fn is_machines(word: &str) -> bool {
    let number_after = |prefix: &str| word.strip_prefix(prefix).and_then(|rest| rest.parse::<u8>().ok());
    let is_general =
        ["r", "e"].iter().any(|size| word.strip_prefix(size).is_some_and(|rest| REGISTERS.contains(&rest)));
    let is_numbered = number_after("r").is_some_and(|number| (8..16).contains(&number));
    let is_vector = ["xmm", "ymm", "zmm"].iter().any(|size| number_after(size).is_some());
    WORDS.contains(&word) || is_general || is_numbered || is_vector || word.starts_with("REG_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(file: &str, text: &str) -> usize {
        check(&format!("recorder/{file}"), text).len()
    }

    #[test]
    fn only_a_machine_knows_instructions_and_registers() {
        for words in [
            "registers.rax = 1;",
            "use iced_x86::Decoder;",
            "std::arch::asm!(",
            "global_asm!(",
            "#[unsafe(naked)]",
            "use crate::machine::x86_64::gates;",
            "registers[libc::REG_RIP as usize]",
            "/// The program's `r15`, and `xmm0`.",
            "_rdtsc()",
        ] {
            assert_ne!(broken("engine/src/syscalls/calls.rs", words), 0, "{words}");
            assert_ne!(broken("engine/src/machine/gates.rs", words), 0, "{words}");
            assert_eq!(broken("engine/src/machine/x86_64/mod.rs", words), 0, "{words}");
            assert_eq!(broken("engine/src/machine/x86_64/gates.rs", words), 0, "{words}");
            assert_eq!(broken("profile/src/chains.rs", words), 0, "{words}");
        }
    }

    #[test]
    fn other_words_are_free() {
        let text = "let rest = search(charm, r1, fs::read, regions.max, asmuch, REGIONS, r16, rsp_of);";
        assert_eq!(broken("engine/src/syscalls/calls.rs", text), 0);
    }

    #[test]
    fn the_door_names_the_machines_and_nothing_of_theirs() {
        let named = "#[cfg(target_arch = \"x86_64\")] mod x86_64;";
        assert_eq!(broken("engine/src/machine/mod.rs", named), 0);
        assert_eq!(broken("engine/src/start/mod.rs", named), 2);
        assert_eq!(broken("engine/src/machine/mod.rs", "x86_64::asm!()"), 1);
        // A folder is a machine's when it is on the list.
        assert_eq!(broken("engine/src/machine/other/gates.rs", named), 2);
    }

    #[test]
    fn what_is_found_is_told_with_its_place() {
        let told = check("recorder/engine/src/syscalls/calls.rs", "\nregisters.rdi\n");
        assert_eq!(
            told,
            [
                "recorder/engine/src/syscalls/calls.rs:2 says rdi, which is for recorder/engine/src/machine/ to know"
            ]
        );
    }
}
