//! The code that a whole program executed: read, followed, and written for people and for tools.

use super::args::CodeOptions;
use super::view;
use crate::commands::explain::args::Options;
use crate::recordings::debug_info;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use crate::whole_program::{code_page, counts};
use anyhow::{Context, Result, bail};
use lineup_codelayout::{
    Code, bolt_profile, call_graph, linker_script, sample_profile, section_order, symbol_order,
};
use lineup_find::Recorded;
use lineup_model::image::LoadedImage;
use lineup_study::progress::Progress;
use std::path::{Path, PathBuf};

/// Functions shown by default.
const FUNCTIONS: usize = 20;

/// Shows the executed code, and writes the files that are wanted.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    let recorded = counts::read(&options.recording, &stages)?;
    if let Some(damage) = &recorded.damage {
        stages
            .line(&format!("lineup: {}: {damage}; what stands before is used", options.recording.display()));
    }
    if recorded.runs.is_empty() {
        bail!(
            "{}: holds no counts of a whole program; record it with lineup record --whole-program",
            options.recording.display()
        );
    }
    let files = &options.code;
    let image = image(&recorded, files.image.as_deref())?;
    let path = Path::new(&image.path);
    let debug = debug_info::debug_info(path, &stages)
        .with_context(|| format!("{}: cannot be read", path.display()))?;
    if let (Some(then), Some(now)) = (image.build_id.as_deref(), debug.build_id())
        && then != now
    {
        bail!("{}: is not the file that was recorded: its build id differs; record it again", path.display());
    }
    stages.stage("following the ways through the code");
    let code = Code::new(&debug, image, &recorded.runs)?;
    stages.end();
    write(files, &code)?;
    if let Some(file) = &files.sample_profile {
        write_sample_profile(file, &code, path, &stages)?;
    }
    uses(files).iter().for_each(|used| stages.line(used));
    let summary = code.summary(&image.path);
    if let Some(file) = &options.html {
        write_file(file, &code_page::page(&code, &summary, files.calls.as_deref(), &stages)?)?;
    }
    let out = match options.json {
        true => serde_json::to_string_pretty(&summary)? + "\n",
        false => view::text(&summary, options.top.unwrap_or(FUNCTIONS), output::text_style()),
    };
    output::print(&out)?;
    Ok(Outcome::Done)
}

/// The examined file.
fn image<'r>(recorded: &'r Recorded, wanted: Option<&Path>) -> Result<&'r LoadedImage> {
    let program = recorded.header.command.first().map(Path::new);
    let is_wanted = |image: &&LoadedImage| {
        let path = Path::new(&image.path);
        let named = |name: &Path| path == name || path.file_name() == Some(name.as_os_str());
        match (wanted, program) {
            (Some(wanted), _) => named(wanted),
            (None, Some(program)) => path == program || path.file_name() == program.file_name(),
            (None, None) => false,
        }
    };
    recorded.images.iter().find(is_wanted).with_context(|| {
        let names =
            recorded.images.iter().map(|image| image.path.as_str()).filter(|path| path.starts_with('/'));
        let names: Vec<&str> = names.collect();
        let wanted = wanted.or(program).unwrap_or(Path::new("the program"));
        format!("{} was not mapped; --image takes one of {}", wanted.display(), names.join(", "))
    })
}

/// Writes the files that are wanted.
fn write(options: &CodeOptions, code: &Code<'_>) -> Result<()> {
    type Writer = fn(&Code<'_>) -> String;
    let files: [(&Option<PathBuf>, Writer); 5] = [
        (&options.bolt, bolt_profile),
        (&options.symbol_order, symbol_order),
        (&options.call_graph, call_graph),
        (&options.section_order, section_order),
        (&options.linker_script, linker_script),
    ];
    for (file, writer) in files {
        if let Some(file) = file {
            write_file(file, &writer(code))?;
        }
    }
    Ok(())
}

/// The use of each written file, and its demands on the program's build.
fn uses(options: &CodeOptions) -> Vec<String> {
    const SECTIONS: &str = "the program compiled with -ffunction-sections";
    let files = [
        (
            &options.bolt,
            "llvm-bolt PROGRAM -o NEW -data=FILE -reorder-blocks=ext-tsp -split-functions -reorder-functions=cdsort",
            "the program linked with -Wl,--emit-relocs; before LLVM 17, cdsort is called hfsort+",
        ),
        (&options.symbol_order, "ld.lld --symbol-ordering-file=FILE", SECTIONS),
        (&options.call_graph, "ld.lld --call-graph-ordering-file=FILE", SECTIONS),
        (&options.section_order, "ld.gold --section-ordering-file=FILE", SECTIONS),
        (&options.linker_script, "gcc -Wl,-T,FILE, with GNU ld", SECTIONS),
        (
            &options.sample_profile,
            "clang -O2 -g -fprofile-sample-use=FILE, which compiles the program anew",
            "the recorded program compiled by clang with -g -fdebug-info-for-profiling",
        ),
    ];
    let written = files.into_iter().filter_map(|(file, command, built)| {
        let command = command.replace("FILE", &file.as_ref()?.display().to_string());
        Some(format!("lineup: use: {command}; {built}"))
    });
    written.collect()
}

/// Writes counts by source line, and reports the parts that they leave out.
fn write_sample_profile(file: &Path, code: &Code<'_>, path: &Path, stages: &Stages) -> Result<()> {
    let profile = sample_profile(code).with_context(|| path.display().to_string())?;
    write_file(file, &profile.text)?;
    if profile.not_by_clang > 0 {
        stages.line(&format!(
            "lineup: {}: of the functions that were executed, {} left out: not compiled by clang, or without debug lines",
            file.display(),
            profile.not_by_clang
        ));
    }
    if !profile.ambiguous.is_empty() {
        stages.line(&format!(
            "lineup: {}: several functions are named {}; clang cannot distinguish them, so they are left out. \
             clang -funique-internal-linkage-names gives static functions names of their own",
            file.display(),
            profile.ambiguous.join(", ")
        ));
    }
    Ok(())
}

fn write_file(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
