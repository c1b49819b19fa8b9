//! `cargo xtask tidy`: the workspace's own rules, checked. `cargo xtask test`: every built test, in one queue. `cargo
//! xtask dist`: an archive of all installed files. `cargo xtask wins`: the benchmark of rediscovery.

mod dist;
mod edges;
mod files;
mod machine;
mod programs;
mod schemas;
mod test;
mod text;
mod wins;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(),
        Some("test") => test::test(std::env::args().skip(2)),
        Some("dist") => dist::dist(&cargo_metadata::MetadataCommand::new().exec()?),
        Some("wins") => wins::wins(std::env::args().skip(2)),
        other => bail!("unknown task {other:?}; the tasks are tidy, test, dist and wins"),
    }
}

fn tidy() -> Result<()> {
    let metadata = cargo_metadata::MetadataCommand::new().exec()?;
    let mut broken = edges::check(&metadata);
    broken.extend(programs::check(&metadata));
    broken.extend(files::check(&metadata)?);
    broken.extend(schemas::check(metadata.workspace_root.as_std_path(), &files::sources(&metadata)?)?);
    broken.extend(text::check(metadata.workspace_root.as_std_path())?);
    for line in &broken {
        eprintln!("tidy: {line}");
    }
    if !broken.is_empty() {
        bail!("{} rule(s) broken", broken.len());
    }
    println!("tidy: {} packages, every edge allowed", metadata.workspace_members.len());
    Ok(())
}
