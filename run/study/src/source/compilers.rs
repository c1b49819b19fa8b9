//! GCC's compilers and this machine's linkers with a few more options, for a build that stays unchanged.
//!
//! GCC looks for its compilers (`cc1`, `cc1plus`) where it looks for its linker: first in the folders of
//! `COMPILER_PATH`. Scripts of these names there add options to every unit that the build compiles, whichever build
//! system runs.

use crate::error::{Doing, Result};
use crate::process::interrupt::Interrupts;
use crate::source::link::linkers::{Linkers, keeps_relocations};
use std::fs;
use std::path::{Path, PathBuf};

/// The compilers that GCC starts for C and C++.
const NAMES: [&str; 2] = ["cc1", "cc1plus"];

/// Options by which a linker joins several objects: the counting library is added later.
const JOINED: [&str; 4] = ["-r", "-i", "-Ur", "--relocatable"];

/// Made where a compiler ran.
const RAN: &str = "ran";

/// A change in the way a program is compiled and linked.
#[derive(Clone, Copy, Debug)]
pub enum Compiled<'c> {
    /// Its functions lie in an order.
    InOrder(&'c FunctionOrder),
    /// It counts its execution, and leaves the counts in this folder when it ends.
    Counting(&'c Path),
    /// It is optimised by counts in a folder.
    ByCounts {
        /// The folder of the counts.
        folder: &'c Path,
        /// True when functions stay in one piece, as `llvm-bolt` needs them.
        in_one_piece: bool,
    },
    /// AddressSanitizer and UndefinedBehaviorSanitizer watch it.
    Sanitized,
}

/// An order of functions, as each linker takes it.
#[derive(Clone, Debug)]
pub struct FunctionOrder {
    /// A script for GNU ld.
    pub script: PathBuf,
    /// Patterns of sections for gold.
    pub sections: PathBuf,
    /// Names of symbols for lld.
    pub symbols: PathBuf,
}

impl Linkers {
    /// Compilers and linkers that do this to every program. Programs keep relocations, except for those that count or
    /// have sanitizers.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn that_compile(how: Compiled<'_>, interrupts: &Interrupts) -> Result<Linkers> {
        let linkers = Linkers::of(interrupts, |_, linker| Ok(linking(how, linker)))?;
        for name in NAMES {
            linkers.write(name, &compiling(how, name, &linkers.path_of(RAN)))?;
        }
        Ok(linkers)
    }

    /// True when a build used one of the compilers.
    pub fn have_compiled(&self) -> bool {
        self.path_of(RAN).exists()
    }
}

/// GCC as the build knows it, asked for something: it must not find these scripts.
fn asking_gcc() -> String {
    match std::env::var_os("COMPILER_PATH").filter(|theirs| !theirs.is_empty()) {
        Some(theirs) => format!("env COMPILER_PATH={} \"$COLLECT_GCC\"", quoted(Path::new(&theirs))),
        None => "env -u COMPILER_PATH \"$COLLECT_GCC\"".to_owned(),
    }
}

/// A script that stands for a compiler.
fn compiling(how: Compiled<'_>, name: &str, ran: &Path) -> String {
    let words = match how {
        Compiled::InOrder(_) => "-ffunction-sections".to_owned(),
        Compiled::Counting(folder) => {
            format!("-fprofile-generate={} -fprofile-update=prefer-atomic", quoted(folder))
        }
        // Instrumented code brings other warnings, which stop nothing.
        Compiled::Sanitized => "-fsanitize=address -fsanitize=undefined -fsanitize-recover=address \
                                -fno-omit-frame-pointer -Wno-error"
            .to_owned(),
        Compiled::ByCounts { folder, in_one_piece } => {
            let pieces = if in_one_piece { " -fno-reorder-blocks-and-partition" } else { "" };
            // Other inlining brings other warnings, which stop nothing.
            format!(
                "-fprofile-use={} -fprofile-correction -Wno-missing-profile -Wno-error{pieces}",
                quoted(folder)
            )
        }
    };
    let (gcc, ran) = (asking_gcc(), quoted(ran));
    format!("#!/bin/sh\n: >{ran}\nreal=$({gcc} -print-prog-name={name})\nexec \"$real\" \"$@\" {words}\n")
}

/// A script that stands for a linker.
fn linking(how: Compiled<'_>, linker: &Path) -> String {
    match how {
        Compiled::ByCounts { .. } => keeps_relocations(linker, ""),
        Compiled::Counting(_) => with_libraries(linker, "", &format!("{} -lc", gcc_file("libgcov.a"))),
        // The loader must find them before all other libraries.
        Compiled::Sanitized => {
            let libraries = [gcc_file("libasan.so"), gcc_file("libubsan.so")].join(" ");
            with_libraries(linker, &format!("--push-state --no-as-needed {libraries} --pop-state"), "")
        }
        Compiled::InOrder(order) => match ordering(linker, order) {
            Some(words) => keeps_relocations(linker, &words),
            None => {
                let name = quoted(linker);
                format!("#!/bin/sh\necho {name} puts no functions in an order >&2\nexit 1\n")
            }
        },
    }
}

/// The options by which a linker puts functions in an order; `None` where it cannot.
fn ordering(linker: &Path, order: &FunctionOrder) -> Option<String> {
    // `ld` is a link to different linkers on different machines.
    let linker = linker.canonicalize().unwrap_or_else(|_| linker.to_owned());
    let name = linker.file_name()?.to_string_lossy().into_owned();
    match name {
        name if name.contains("gold") => Some(format!("--section-ordering-file={}", quoted(&order.sections))),
        name if name.contains("lld") => {
            Some(format!("--symbol-ordering-file={} --no-warn-symbol-ordering", quoted(&order.symbols)))
        }
        name if name.contains("mold") => None,
        _ => Some(format!("-T {}", quoted(&order.script))),
    }
}

/// In a script: the path of a library of GCC's.
fn gcc_file(name: &str) -> String {
    format!("\"$({} -print-file-name={name})\"", asking_gcc())
}

/// A linker that adds libraries to programs and libraries, in front of all files or behind them.
fn with_libraries(linker: &Path, front: &str, behind: &str) -> String {
    let joined = JOINED.join("|");
    let linker = quoted(linker);
    format!(
        "#!/bin/sh\n\
         for word; do\n\
         case $word in {joined}) exec {linker} \"$@\";; esac\n\
         done\n\
         [ -n \"$COLLECT_GCC\" ] || exec {linker} \"$@\"\n\
         exec {linker} {front} \"$@\" {behind}\n"
    )
}

fn quoted(path: &Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}

/// Copies counts that were made by a program compiled in one folder to where one that is compiled in another looks for
/// them: GCC names their files by the paths of objects, with `#` for `/`. True when there are any.
///
/// # Errors
/// When they cannot be read or written.
pub fn counts_for(folder: &Path, [compiled_in, to_compile_in]: [&Path; 2], to: &Path) -> Result<bool> {
    let cannot = || format!("cannot copy the counts in {}", folder.display());
    let hashed = |path: &Path| path.to_string_lossy().replace('/', "#");
    let real = compiled_in.canonicalize().unwrap_or_else(|_| compiled_in.to_owned());
    let (from, real, into) = (hashed(compiled_in), hashed(&real), hashed(to_compile_in));
    fs::create_dir_all(to).doing_with(cannot)?;
    let mut are_any = false;
    for entry in fs::read_dir(folder).doing_with(cannot)? {
        let entry = entry.doing_with(cannot)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".gcda") {
            let name = name.replace(&real, &into).replace(&from, &into);
            fs::copy(entry.path(), to.join(name)).doing_with(cannot)?;
            are_any = true;
        }
    }
    Ok(are_any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tool;
    use std::process::Command;

    /// A program whose profile says that `rare` never runs.
    const PROGRAM: &str = "int rare(int x) { return x * 3; }\n\
                           int main(int count, char **words) { (void)words; return count > 5 ? rare(count) : 0; }\n";

    #[test]
    fn a_build_that_is_not_changed_counts_and_is_optimised_by_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for copy in ["c", "d"] {
            fs::create_dir(at(copy)).expect("a folder");
            fs::write(at(copy).join("m.c"), PROGRAM).expect("a file");
        }
        let interrupts = Interrupts::watch().expect("watches");
        let build = |copy: &str, how: Compiled<'_>| {
            let linkers = Linkers::that_compile(how, &interrupts).expect("scripts");
            assert!(!linkers.have_compiled());
            let variables = linkers.variables(&at(copy)).expect("variables");
            let mut gcc = Command::new("gcc");
            gcc.args(["-O2", "-o", "m", "m.c"]).current_dir(at(copy)).envs(variables);
            let output = tool::output(&mut gcc).expect("gcc runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(linkers.have_compiled());
        };
        let (counted, moved) = (at("counted"), at("moved"));
        build("c", Compiled::Counting(&counted));
        assert!(tool::output(&mut Command::new(at("c/m"))).expect("runs").status.success());
        let paths = [at("c"), at("d")];
        assert!(counts_for(&counted, paths.each_ref().map(PathBuf::as_path), &moved).expect("copies"));
        build("d", Compiled::ByCounts { folder: &moved, in_one_piece: false });
        let symbols = tool::output(Command::new("readelf").args(["-SW"]).arg(at("d/m"))).expect("readelf");
        let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
        assert!(symbols.contains(".rela.text"), "relocations are kept: {symbols}");
        // Functions that never ran are compiled for size, and lie apart.
        let code = tool::output(Command::new("nm").arg(at("d/m"))).expect("nm");
        let code = String::from_utf8_lossy(&code.stdout).into_owned();
        let address = |name: &str| {
            let line = code.lines().find(|line| line.ends_with(&format!(" {name}"))).expect("a symbol");
            u64::from_str_radix(line.split(' ').next().unwrap_or_default(), 16).expect("an address")
        };
        assert!(address("rare") < address("main"), "{code}");
    }

    #[test]
    fn an_order_is_told_to_each_linker_in_its_own_words() {
        let order = FunctionOrder {
            script: "/o/script".into(),
            sections: "/o/sections".into(),
            symbols: "/o/symbols".into(),
        };
        let said = |name: &str| ordering(Path::new(name), &order);
        assert_eq!(said("/nowhere/ld.bfd").as_deref(), Some("-T /o/script"));
        assert_eq!(said("/nowhere/ld.gold").as_deref(), Some("--section-ordering-file=/o/sections"));
        let lld = said("/nowhere/ld.lld").expect("it can");
        assert!(lld.starts_with("--symbol-ordering-file=/o/symbols"), "{lld}");
        assert_eq!(said("/nowhere/ld.mold"), None);
    }
}
