//! `cargo xtask dist`: the command with its completions, manual pages and documents, as one archive.
//!
//! The files are first staged in `target/dist/lineup`, in the folders that packages have below `/usr`. The archive and
//! the Debian package (`make deb`) contain that folder.

use anyhow::{Context, Result, bail};
use cargo_metadata::Metadata;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of the repository that go along, and where to.
const DOCUMENTS: [(&str, &str); 5] = [
    ("README.md", "share/doc/lineup/README.md"),
    ("CHANGELOG.md", "share/doc/lineup/CHANGELOG.md"),
    ("LICENSE-MIT", "share/doc/lineup/LICENSE-MIT"),
    ("LICENSE-APACHE", "share/doc/lineup/LICENSE-APACHE"),
    ("show/cli/debian/copyright", "share/doc/lineup/copyright"),
];

/// Shells, and the place of each one's completions.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/lineup"),
    ("zsh", "share/zsh/vendor-completions/_lineup"),
    ("fish", "share/fish/vendor_completions.d/lineup.fish"),
];

/// Builds the archive and prints where it is.
pub(crate) fn dist(metadata: &Metadata) -> Result<()> {
    let root = metadata.workspace_root.as_std_path();
    let target = metadata.target_directory.as_std_path();
    succeed(Command::new(env!("CARGO")).current_dir(root).args([
        "build",
        "--release",
        "--locked",
        "--package",
        "lineup",
        "--package",
        "lineup-check",
    ]))?;
    let staged = target.join("dist/lineup");
    if staged.exists() {
        fs::remove_dir_all(&staged)?;
    }
    let program = staged.join("bin/lineup");
    put(&target.join("release/lineup"), &program)?;
    put(&target.join("release/lineup-check"), &staged.join("bin/lineup-check"))?;
    for (shell, place) in SHELLS {
        let output = Command::new(&program).args(["completions", shell]).output()?;
        if !output.status.success() {
            bail!("lineup completions {shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
        write(&staged.join(place), &output.stdout)?;
    }
    let manual = staged.join("share/man/man1");
    fs::create_dir_all(&manual)?;
    succeed(Command::new(&program).arg("manual").arg(&manual))?;
    for (file, place) in DOCUMENTS {
        put(&root.join(file), &staged.join(place))?;
    }
    put_all(&root.join("docs"), &staged.join("share/doc/lineup/docs"))?;
    println!("{}", archive(metadata, &staged)?.display());
    Ok(())
}

/// The archive. Equal files give equal bytes.
fn archive(metadata: &Metadata, staged: &Path) -> Result<PathBuf> {
    let lineup = metadata.packages.iter().find(|package| package.name.as_str() == "lineup");
    let version = &lineup.context("the workspace has no package lineup")?.version;
    let name = format!("lineup-{version}-{}-linux-gnu", std::env::consts::ARCH);
    let file = staged.with_file_name(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mtime=@0",
        "--use-compress-program=gzip -n",
    ]);
    tar.arg(format!("--transform=s,^lineup,{name},")).arg("-cf").arg(&file);
    succeed(tar.arg("-C").arg(staged.parent().context("no folder")?).arg("lineup"))?;
    Ok(file)
}

/// A folder with all that is in it.
fn put_all(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => put_all(&entry.path(), &to)?,
            false => put(&entry.path(), &to)?,
        }
    }
    Ok(())
}

fn put(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("no folder")?)?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}

fn write(to: &Path, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(to.parent().context("no folder")?)?;
    fs::write(to, bytes).with_context(|| to.display().to_string())
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{:?}", command.get_program()))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}
