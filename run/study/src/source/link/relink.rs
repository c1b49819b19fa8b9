//! One program, linked several times with small changes of layout: its objects in another order, those out of archives
//! among them, and padding between them. An order of all functions by lot would be a worse program, not another link of
//! the same.
//!
//! A build calls this in the place of a linker: objects that the compiler made for one link are gone when it has ended.

use crate::error::{Doing, Error, Result};
use crate::recorder::on_path;
use crate::source::link::archives::opened;
use crate::source::link::arguments::{expanded, own_objects, program_of, with_output};
use lineup_stats::random::{Seed, shuffle};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The command of `lineup` that stands for a linker.
pub const COMMAND: &str = "link-again";

/// The file next to the links with the program's name.
const NAME: &str = "name";

/// The file next to the links with the number of objects that changed places.
const OBJECTS: &str = "objects";

/// The folder next to the links for objects of archives.
const MEMBERS: &str = "members";

/// Pads in one link at most.
const MOST_PADS: usize = 8;

/// The unit of pads: linkers align code to it.
const STEP_BYTES: u64 = 16;

/// A pad has fewer steps than this: a page.
const MOST_STEPS: u64 = 256;

/// The terms of linking again.
pub struct Again {
    /// The number of links.
    pub links: u64,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The folder for the links.
    pub into: PathBuf,
    /// The linker and its arguments.
    pub command: Vec<OsString>,
}

/// Links as asked, and then in other layouts; true when the linker was content.
///
/// # Errors
/// When a link in another layout fails.
pub fn serve(again: &Again) -> Result<bool> {
    let (linker, words) =
        again.command.split_first().ok_or_else(|| Error::Start("there is no linker to run".into()))?;
    if !link(linker, words)? {
        return Ok(false);
    }
    let words = expanded(words)?;
    let Some(output) = program_of(&words) else { return Ok(true) };
    let folder = numbered(&again.into)?;
    let output = std::path::absolute(&output).doing("cannot find the path of the program")?;
    let write = || format!("cannot write in {}", folder.display());
    let words = opened(linker, &words, &folder.join(MEMBERS))?;
    for number in 0..again.links {
        let seed = Seed(again.seed).part(number);
        let place = folder.join(format!("{number:04}"));
        fs::create_dir(&place).doing_with(write)?;
        let to = place.join(output.file_name().unwrap_or_default());
        let words = varied(&words, &to, &pads(&place, seed)?, seed);
        if !link(linker, &words)? {
            let why = "was linked as asked, and cannot be linked with its objects in another order";
            return Err(Error::file(output, why));
        }
    }
    fs::write(folder.join(OBJECTS), own_objects(&words).len().to_string()).doing_with(write)?;
    fs::write(folder.join(NAME), output.as_os_str().as_bytes()).doing_with(write)?;
    Ok(true)
}

/// Links of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramLinks {
    /// Their files.
    pub files: Vec<PathBuf>,
    /// The number of objects that changed places.
    pub objects: usize,
}

impl ProgramLinks {
    /// A remark on links that hardly differ.
    pub fn remark(&self) -> Option<String> {
        const FEW: usize = 4;
        let file = self.files.first().and_then(|file| file.file_name()).unwrap_or_default();
        (self.objects < FEW).then(|| {
            format!(
                "{} has {} objects that a link can put in another order: its links differ by little more than where all of its \
                 code and data begin, and the interval covers no more than that",
                file.display(),
                self.objects
            )
        })
    }
}

/// The last links of a program in this folder.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn links_of(folder: &Path, program: &Path) -> Result<Option<ProgramLinks>> {
    let cannot = || format!("cannot read {}", folder.display());
    let sorted = |folder: &Path| -> std::io::Result<Vec<PathBuf>> {
        let mut all: Vec<PathBuf> =
            fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        all.sort();
        Ok(all)
    };
    for links in sorted(folder).doing_with(cannot)?.into_iter().rev() {
        let Ok(name) = fs::read(links.join(NAME)) else { continue };
        let linked = PathBuf::from(OsString::from_vec(name));
        // The build may have seen the program at a path at which it is not.
        let found = [&linked, program].map(|path| path.canonicalize().ok());
        if linked == program || found[0].is_some() && found[0] == found[1] {
            let file = linked.file_name().unwrap_or_default();
            let is_link = |place: &PathBuf| place.is_dir() && !place.ends_with(MEMBERS);
            let places = sorted(&links).doing_with(cannot)?.into_iter().filter(is_link);
            let objects = fs::read_to_string(links.join(OBJECTS)).doing_with(cannot)?;
            let objects = objects.parse().map_err(|_| Error::file(&links, "does not list its objects"))?;
            return Ok(Some(ProgramLinks { files: places.map(|place| place.join(file)).collect(), objects }));
        }
    }
    Ok(None)
}

fn link(linker: &OsStr, words: &[OsString]) -> Result<bool> {
    let status = Command::new(linker).args(words).status();
    Ok(status.doing_with(|| format!("cannot run {}", linker.display()))?.success())
}

/// A new folder; several links may run at once.
fn numbered(into: &Path) -> Result<PathBuf> {
    for number in 0..10_000u32 {
        let folder = into.join(format!("{number:04}"));
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => {
                return made
                    .map(|()| folder)
                    .doing_with(|| format!("cannot make a folder in {}", into.display()));
            }
        }
    }
    Err(Error::file(into, "holds 10,000 programs already; give --build a build of fewer"))
}

/// Objects that hold nothing but room, of sizes by lot.
fn pads(folder: &Path, seed: Seed) -> Result<Vec<PathBuf>> {
    (0..MOST_PADS)
        .map(|number| {
            let path = folder.join(format!("pad{number}.o"));
            assemble(&pad(seed.part(number as u64)), &path)?;
            Ok(path)
        })
        .collect()
}

/// The assembly of a pad.
fn pad(seed: Seed) -> String {
    let sections = [
        (".text", ", 0x90"),
        (".section .text.unlikely,\"ax\",%progbits", ", 0x90"),
        (".section .rodata,\"a\",%progbits", ""),
        (".data", ""),
        (".bss", ""),
    ];
    let part = |(number, (section, fill)): (u64, (&str, &str))| {
        let bytes = STEP_BYTES * (seed.part(number).0 % MOST_STEPS);
        format!("{section}\n.skip {bytes}{fill}\n")
    };
    let parts: String = (0..).zip(sections).map(part).collect();
    format!("{parts}.section .note.GNU-stack,\"\",%progbits\n")
}

fn assemble(text: &str, to: &Path) -> Result<()> {
    let assembler = on_path(Path::new("as")).ok_or_else(|| Error::not_installed("as", "binutils"))?;
    let doing = || format!("cannot run {}", assembler.display());
    let mut child = Command::new(&assembler).arg("-o").arg(to).arg("-").stdin(Stdio::piped()).spawn();
    let child = child.as_mut().map_err(|error| std::io::Error::from(error.kind())).doing_with(doing)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes()).doing_with(doing)?;
    }
    match child.wait().doing_with(doing)?.success() {
        true => Ok(()),
        false => Err(Error::Start(format!("{} does not take padding", assembler.display()))),
    }
}

/// The words of another link: the program elsewhere, its own objects in another order, pads between them.
fn varied(words: &[OsString], to: &Path, pads: &[PathBuf], seed: Seed) -> Vec<OsString> {
    let words = with_output(words, to);
    let places = own_objects(&words);
    let mut objects: Vec<OsString> = places.iter().map(|at| words[*at].clone()).collect();
    shuffle(&mut objects, seed);
    let mut pads = pads.iter();
    // Pads stand before the first objects: with few of them, the first moves all code.
    let mut objects = objects.into_iter();
    let mut all: Vec<OsString> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if places.contains(&at) {
            all.extend(pads.next().map(|pad| pad.clone().into_os_string()));
            all.extend(objects.next());
        } else {
            all.push(word.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_starts_a_program_stays_and_its_own_objects_move() {
        let line = words("-o p /usr/lib/Scrt1.o crti.o -L/x a.o b.o c.o -Map=p.map -lc crtend.o crtn.o");
        let pads: Vec<PathBuf> = ["p0.o".into(), "p1.o".into()].into();
        let orders: Vec<String> = (0..20)
            .map(|seed| {
                let varied = varied(&line, Path::new("/l/p"), &pads, Seed(seed));
                varied.join(OsStr::new(" ")).to_string_lossy().into_owned()
            })
            .collect();
        for order in &orders {
            assert!(order.starts_with("-o /l/p /usr/lib/Scrt1.o crti.o -L/x p0.o "), "{order}");
            assert!(order.ends_with(" -lc crtend.o crtn.o") && !order.contains("Map"), "{order}");
            assert!(["a.o", " p1.o ", "b.o", "c.o"].iter().all(|object| order.contains(object)), "{order}");
        }
        assert!(orders.iter().any(|order| *order != orders[0]));
    }

    #[test]
    fn pads_differ_by_steps_of_what_code_is_aligned_to() {
        let sizes = |seed| -> Vec<u64> {
            let text = pad(Seed(seed));
            let skips = text.lines().filter_map(|line| line.strip_prefix(".skip "));
            skips
                .map(|skip| skip.split(',').next().and_then(|size| size.parse().ok()).expect("a size"))
                .collect()
        };
        assert!(sizes(1).iter().all(|size| size % STEP_BYTES == 0 && *size < 4096));
        assert_ne!(sizes(1), sizes(2));
    }
}
