//! Scratch copies of the user's source folder, and builds in them.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Copies of one source folder. All live at paths of equal length, because a path's length moves
/// the program's stack and with it the timing.
pub struct Scratch {
    root: TempDir,
    source: PathBuf,
    build: String,
    leave_out: PathBuf,
}

/// One copy.
#[derive(Clone)]
pub struct Tree {
    /// The copy's folder.
    pub path: PathBuf,
}

/// The copies a study makes.
#[derive(Clone, Copy)]
pub enum Role {
    /// The program as it is.
    Before,
    /// The program with the patch.
    After,
    /// A candidate that the compiler is to judge.
    Candidate,
}

impl Role {
    fn folder(self) -> &'static str {
        match self {
            Role::Before => "a",
            Role::After => "b",
            Role::Candidate => "c",
        }
    }
}

impl Scratch {
    /// Prepares copies of `source`, built with the shell command `build`. `leave_out` (the output
    /// folder) is not copied when it lies inside.
    pub fn new(source: &Path, build: &str, leave_out: &Path) -> Result<Self> {
        let source = source
            .canonicalize()
            .with_context(|| format!("cannot read the source folder {}", source.display()))?;
        if !source.is_dir() {
            bail!(
                "{} is not a folder; --source names the folder that holds the program's sources",
                source.display()
            );
        }
        let root =
            tempfile::Builder::new().prefix("lineup-").tempdir().context("cannot make a scratch folder")?;
        let leave_out = leave_out.canonicalize().unwrap_or_else(|_| leave_out.to_path_buf());
        Ok(Self { root, source, build: build.to_owned(), leave_out })
    }

    /// The user's folder.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// A fresh copy.
    pub fn copy(&self, role: Role) -> Result<Tree> {
        let path = self.root.path().join(role.folder());
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("cannot empty {}", path.display()))?;
        }
        self.copy_folder(&self.source, &path)
            .with_context(|| format!("cannot copy {} to {}", self.source.display(), path.display()))?;
        Ok(Tree { path })
    }

    /// Runs the build command in a copy.
    pub fn build(&self, tree: &Tree) -> Result<()> {
        let output =
            crate::tool::output(Command::new("sh").args(["-c", &self.build]).current_dir(&tree.path))
                .context("cannot run sh for the build")?;
        if output.status.success() {
            return Ok(());
        }
        bail!(
            "the build `{}` failed in a copy of {} ({}); its last lines:\n{}",
            self.build,
            self.source.display(),
            output.status,
            last_lines(&output.stdout, &output.stderr, 20)
        );
    }

    fn copy_folder(&self, from: &Path, to: &Path) -> Result<()> {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (path, target) = (entry.path(), to.join(entry.file_name()));
            if path == self.leave_out || entry.file_name() == ".git" {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(&path)?, &target)?;
            } else if kind.is_dir() {
                self.copy_folder(&path, &target)?;
            } else if kind.is_file() {
                copy_file(&path, &target)?;
            }
        }
        Ok(())
    }
}

/// Copies one file with its permissions and modification time: `make` decides by the latter what
/// is up to date.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("{}", from.display()))?;
    let modified = fs::metadata(from)?.modified()?;
    let file = fs::File::options().append(true).open(to);
    if let Ok(file) = file {
        file.set_modified(modified)?;
    }
    Ok(())
}

fn last_lines(stdout: &[u8], stderr: &[u8], most: usize) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(most)..].join("\n")
}

impl Tree {
    /// Replaces the text of a file, named relative to the folder.
    pub fn write(&self, file: &Path, text: &str) -> Result<()> {
        let path = self.path.join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}
