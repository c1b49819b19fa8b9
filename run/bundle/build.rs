//! Builds the native engine, the emulator's plugin and the heap library, and embeds them, compressed, in an optimised
//! `lineup`: `cargo install` puts only programs on a user's path. A development build uses the libraries next to it, so that nothing
//! is built twice.

use flate2::{Compression, write::GzEncoder};
use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries' sources, relative to this package's folder.
const SOURCES: [&str; 11] = [
    "../../recorder/engine",
    "../../recorder/plugin",
    "../../base/cache",
    "../../recorder/follow",
    "../../fix/heap",
    "../../fix/heap-plan",
    "../../base/model",
    "../../recorder/profile",
    "../../read/recording",
    "../../Cargo.toml",
    "../../Cargo.lock",
];

/// The file that git writes when another commit is checked out.
const CHECKED_OUT: &str = "../../.git/logs/HEAD";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no folder for what is built")?);
    let is_optimised = env::var("PROFILE")? == "release";
    let text = match is_optimised {
        true => with_libraries(&out)?,
        false => constants("development build", ["None"; 3].map(str::to_owned)),
    };
    fs::write(out.join("built.rs"), text)?;
    Ok(())
}

fn with_libraries(out: &Path) -> Result<String, Box<dyn Error>> {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    if Path::new(CHECKED_OUT).is_file() {
        println!("cargo::rerun-if-changed={CHECKED_OUT}");
    }
    let folder = built(&out.join("libraries"))?;
    let mut libraries =
        ["liblineup_engine.so", "liblineup_plugin.so", "liblineup_heap.so"].map(str::to_owned);
    for library in &mut libraries {
        let packed = out.join(format!("{library}.gz"));
        compress(&folder.join(&library), &packed)?;
        *library = format!("Some(include_bytes!({packed:?}))");
    }
    let built_from = commit().unwrap_or_else(|| "optimised build".to_owned());
    Ok(constants(&built_from, libraries))
}

fn compress(library: &Path, packed: &Path) -> io::Result<()> {
    let mut encoder = GzEncoder::new(File::create(packed)?, Compression::best());
    io::copy(&mut File::open(library)?, &mut encoder)?;
    encoder.finish()?.flush()
}

fn constants(built_from: &str, [engine, plugin, heap]: [String; 3]) -> String {
    format!(
        "const BUILT_FROM: &str = {built_from:?};\nconst ENGINE: Option<&[u8]> = {engine};\nconst PLUGIN: Option<&[u8]> = {plugin};\nconst HEAP: Option<&[u8]> = {heap};\n"
    )
}

/// Builds the libraries; returns their folder.
fn built(target: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let machine = env::var("TARGET")?;
    let mut cargo = Command::new(env::var_os("CARGO").ok_or("cargo does not say where it is")?);
    cargo.args(["build", "--release", "--locked", "--manifest-path", "../../Cargo.toml"]);
    cargo.args([
        "--package",
        "lineup-engine",
        "--package",
        "lineup-plugin",
        "--package",
        "lineup-heap",
        "--lib",
    ]);
    cargo.args(["--target", &machine]);
    cargo.arg("--target-dir").arg(target);
    // A linter stands for the compiler of the outer build alone.
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
    let status = cargo.status()?;
    if !status.success() {
        return Err(
            format!("the libraries that lineup brings into programs cannot be built ({status})").into()
        );
    }
    Ok(target.join(machine).join("release"))
}

/// The commit that is checked out, where these are git's files.
fn commit() -> Option<String> {
    let output =
        Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]).output().ok()?;
    let is_known = Path::new("../../.git").exists() && output.status.success();
    is_known.then(|| format!("commit {}", String::from_utf8_lossy(&output.stdout).trim()))
}
