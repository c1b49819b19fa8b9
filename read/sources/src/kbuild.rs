//! The compiler calls of a kernel's build, which kbuild writes into a file `.NAME.o.cmd` next to every object.

use crate::compiler_command::CompileCommand;
use crate::read::normal;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Names of files, each kept once: a kernel's thousand units read the same thousand headers.
#[derive(Default, Debug)]
pub struct FileNames {
    paths: Vec<PathBuf>,
    /// By the folder that a name is relative to, and the written name.
    written: HashMap<PathBuf, HashMap<Box<str>, u32>>,
    known: HashMap<PathBuf, u32>,
}

impl FileNames {
    /// The files, by number.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The file of this number.
    pub fn path(&self, file: u32) -> &Path {
        &self.paths[file as usize]
    }

    fn add(&mut self, folder: &Path, name: &str) -> u32 {
        if let Some(&file) = self.written.get(folder).and_then(|names| names.get(name)) {
            return file;
        }
        let path = normal(&folder.join(name));
        let next = u32::try_from(self.paths.len()).unwrap_or(u32::MAX);
        let file = *self.known.entry(path.clone()).or_insert(next);
        if file == next {
            self.paths.push(path);
        }
        self.written.entry(folder.to_owned()).or_default().insert(name.into(), file);
        file
    }
}

/// One unit of a kernel's build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KbuildUnit {
    /// The compiler call.
    pub command: CompileCommand,
    /// The source and every header that the compiler read for it, by their numbers in [`FileNames`].
    pub files: Box<[u32]>,
}

/// The unit in the text of one such file; the names of its files are added to `names`. Its compiler ran in the build's
/// top folder, which the object's own name gives. `None` for a file without a compiler call: links, archives, assembly,
/// torn files.
pub fn from_kbuild(file: &Path, text: &str, names: &mut FileNames) -> Option<KbuildUnit> {
    let line = text.lines().find(|line| line.starts_with("cmd_") || line.starts_with("savedcmd_"))?;
    let (target, command) = line.split_once(":=")?;
    let target = target.trim().trim_start_matches("saved").strip_prefix("cmd_")?;
    let directory = top(file, target)?;
    let command = command.split(" ; ").next()?.replace("$(pound)", "#").replace("$$", "$");
    let arguments = shell_words::split(&command).ok()?;
    let command = CompileCommand { directory, arguments };
    if !command.is_compiler() || command.sources().next().is_none() {
        return None;
    }
    let files = command.sources().chain(dependencies(text)).map(|name| names.add(&command.directory, name));
    let files = files.collect();
    Some(KbuildUnit { command, files })
}

/// The headers in `deps_x.o := \`, one a line; entries in `$(wildcard …)` are only options for make.
fn dependencies(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().skip_while(|line| !line.starts_with("deps_")).skip(1);
    let of_list = lines.take_while(|line| line.starts_with(' '));
    of_list
        .map(move |line| line.trim().trim_end_matches('\\').trim_end())
        .filter(|path| !path.is_empty() && !path.starts_with('$'))
}

/// The folder that `target` is relative to, from the file's position: `/k/kernel/.x.o.cmd` of `kernel/x.o` lies in the
/// build of `/k`.
fn top(file: &Path, target: &str) -> Option<PathBuf> {
    let folder = file.parent()?;
    match Path::new(target).parent() {
        Some(inside) if !inside.as_os_str().is_empty() => {
            let mut top = folder;
            for part in inside.components().rev() {
                (top.file_name()? == part.as_os_str()).then_some(())?;
                top = top.parent()?;
            }
            Some(top.to_owned())
        }
        _ => Some(folder.to_owned()),
    }
}

/// True for the names of such files.
pub fn is_kbuild_file(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".o.cmd")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "savedcmd_kernel/x.o := gcc -Wp,-MMD,kernel/.x.o.d -nostdinc -I./include -D__KERNEL__ \
                        -DNAME='\"x\"' -c -o kernel/x.o kernel/x.c  ; ./tools/objtool kernel/x.o\n\n\
                        source_kernel/x.o := kernel/x.c\n\ndeps_kernel/x.o := \\\n    $(wildcard include/config/SMP) \\\n  \
                        include/linux/x.h \\\n\nkernel/x.o: $(deps_kernel/x.o)\n";

    #[test]
    fn kbuild_says_how_a_unit_was_compiled_and_where() {
        let mut names = FileNames::default();
        let unit = from_kbuild(Path::new("/k/kernel/.x.o.cmd"), TEXT, &mut names).expect("a compiler call");
        let KbuildUnit { command, files } = &unit;
        let files: Vec<&Path> = files.iter().map(|&file| names.path(file)).collect();
        assert_eq!(command.source_paths(), [Path::new("/k/kernel/x.c")]);
        assert_eq!(files, [Path::new("/k/kernel/x.c"), Path::new("/k/include/linux/x.h")]);
        assert!(command.arguments.contains(&"-DNAME=\"x\"".to_string()), "{:?}", command.arguments);
        let before_6_3 = TEXT.replace("savedcmd_", "cmd_");
        let again = from_kbuild(Path::new("/k/kernel/.x.o.cmd"), &before_6_3, &mut names);
        assert_eq!((again, names.paths().len()), (Some(unit), 2), "each name is kept once");
    }

    #[test]
    fn what_is_no_compiler_call_or_lies_elsewhere_is_passed_over() {
        for text in [
            "cmd_kernel/built-in.a := rm -f kernel/built-in.a; ar cDPrST kernel/built-in.a kernel/x.o\n",
            "cmd_kernel/x.o := gcc -D__ASSEMBLY__ -c -o kernel/x.o kernel/x.S\n",
            "cmd_kernel/x.o := ld -r -o kernel/x.o kernel/y.c\n",
            "cmd_kernel/x.o := gcc -DNAME='x -c -o kernel/x.o kernel/x.c\n",
            "cmd_other/x.o := gcc -c -o other/x.o other/x.c\n",
            "",
        ] {
            let unit = from_kbuild(Path::new("/k/kernel/.x.o.cmd"), text, &mut FileNames::default());
            assert_eq!(unit, None, "{text}");
        }
        assert!(is_kbuild_file(".x.o.cmd") && !is_kbuild_file(".x.o.d") && !is_kbuild_file("x.o.cmd"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_broken(cut in 0..TEXT.len(), noise in ".{0,40}", path in "[a-z/.]{0,20}") {
            let mut text: String = TEXT.chars().take(cut).collect();
            text += &noise;
            let mut names = FileNames::default();
            from_kbuild(Path::new(&path), &text, &mut names);
            from_kbuild(Path::new("/k/kernel/.x.o.cmd"), &text, &mut names);
        }
    }
}
