//! A recording of calls that was read through, with the program that it is of.

use crate::recordings::debug_info::debug_info;
use crate::recordings::module_types;
use crate::terminal::progress::{ReadInStage, Stages};
use anyhow::{Context, Result, bail};
use lineup_debuginfo::{DebugInfo, FoundFunctions};
use lineup_explain::{Explained, Explanation, Survey};
use lineup_model::access::Call;
use lineup_recording::{Event, Reader, RecordingError};
use lineup_study::companions::DebugInfos;
use lineup_study::progress::Progress;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A recording that was read through. Its file stays open: every pass over the calls reads the same bytes.
pub(crate) struct Surveyed {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// Everything but the calls.
    pub(crate) survey: Survey,
}

/// Reads everything of a recording but its calls. Records after damage are left out, with a message.
pub(crate) fn survey(path: &Path, stages: &Stages) -> Result<Surveyed> {
    let surveyed = survey_any(path, stages)?;
    surveyed.require_calls()?;
    Ok(surveyed)
}

/// The same, where there may be no calls.
pub(crate) fn survey_any(path: &Path, stages: &Stages) -> Result<Surveyed> {
    let name = || path.display().to_string();
    stages.stage(&format!("reading {}", path.display()));
    let file = lineup_mapping::open(path).with_context(name)?;
    let survey = Survey::read(reader(&file, stages).with_context(name)?);
    if let Some(damage) = &survey.damage {
        stages.line(&format!("lineup: {}: {damage}; what stands before is used", path.display()));
    }
    Ok(Surveyed { path: path.to_owned(), file, survey })
}

/// Reads an open recording from its start.
pub(crate) fn reader<'s>(
    file: &File,
    stages: &'s Stages,
) -> Result<Reader<BufReader<ReadInStage<'s>>>, RecordingError> {
    Reader::new(BufReader::new(ReadInStage::new(file.try_clone()?, stages)))
}

impl Surveyed {
    pub(crate) fn require_calls(&self) -> Result<()> {
        if self.survey.calls == 0 {
            bail!("{}: no call was recorded; check that the program calls the regions", self.path.display());
        }
        Ok(())
    }

    /// The number of calls of which not every access was recorded; `None` when it was not counted.
    pub(crate) fn calls_cut(&self) -> Option<u64> {
        let summary = self.survey.summary.as_ref()?;
        Some(summary.regions.iter().map(|counts| counts.truncated).sum())
    }

    /// The path at which a mapped file is now. A missing file may lie next to the recording, where a study keeps the
    /// program that it built, and its libraries in folders as they were around the program.
    fn present_file(&self, image: &Path) -> PathBuf {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let parts: Vec<_> = image.components().skip(1).collect();
        let mut kept = (0..parts.len()).map(|first| folder.join(parts[first..].iter().collect::<PathBuf>()));
        match image.exists() {
            true => image.to_owned(),
            false => kept.find(|kept| kept.is_file()).unwrap_or_else(|| image.to_owned()),
        }
    }

    /// The number of regions whose functions a mapped file has; `None` when it cannot be read.
    fn regions_in(&self, image: &Path, infos: &mut DebugInfos, needs_debug_info: bool) -> Option<usize> {
        let debug = infos.of_moved(image, &self.present_file(image))?;
        let has = |name: &str| matches!(debug.find_functions(name), FoundFunctions::OutOfLine(_));
        let regions = self.survey.header.regions.iter();
        (!needs_debug_info || debug.has_debug_info())
            .then(|| regions.filter(|(_, region)| has(&region.name)).count())
    }

    /// The file below `folder` that has most of the regions' functions, by its mapped path: a program, else a library
    /// that was built with debug information.
    pub(crate) fn program_with_regions(&self, folder: &Path, infos: &mut DebugInfos) -> Option<PathBuf> {
        let mut with_most = |is_library: bool| {
            let images = self.survey.images.iter().filter(|image| image.is_shared_library() == is_library);
            let paths =
                images.map(|image| PathBuf::from(&image.path)).filter(|path| path.starts_with(folder));
            let counted = paths.filter_map(|path| Some((self.regions_in(&path, infos, is_library)?, path)));
            let most = counted.filter(|(regions, _)| *regions > 0).max_by_key(|(regions, _)| *regions);
            most.map(|(_, path)| path)
        };
        with_most(false).or_else(|| with_most(true))
    }

    /// Regions whose functions another mapped file has than the program, with that file.
    pub(crate) fn regions_outside(&self, program: &Path, infos: &mut DebugInfos) -> Vec<(String, PathBuf)> {
        let mut has = |image: &Path, name: &str| {
            let debug = infos.of_moved(image, &self.present_file(image));
            debug.is_some_and(|debug| matches!(debug.find_functions(name), FoundFunctions::OutOfLine(_)))
        };
        let outside = self.survey.header.regions.iter().filter_map(|(_, region)| {
            let mut images = self.survey.images.iter().map(|image| PathBuf::from(&image.path));
            let is_inside = has(program, &region.name);
            let file = images.find(|image| !is_inside && has(image, &region.name))?;
            Some((region.name.clone(), file))
        });
        outside.collect()
    }

    /// True when a mapped file has any of the regions' functions.
    pub(crate) fn has_regions(&self, image: &Path, infos: &mut DebugInfos) -> bool {
        self.regions_in(image, infos, false).is_some_and(|regions| regions > 0)
    }

    /// The program that was recorded, by the path at which it was mapped; where it has none of the regions' functions,
    /// the file that has them.
    pub(crate) fn recorded_program(&self, known: &mut DebugInfos) -> Result<PathBuf> {
        let wanted = self.survey.header.command.first().map(Path::new).and_then(Path::file_name);
        let mapped = self.survey.images.iter().map(|image| PathBuf::from(&image.path));
        let started = mapped.into_iter().find(|path| path.file_name() == wanted);
        if let Some(started) = started.clone().filter(|started| self.has_regions(started, known)) {
            return Ok(started);
        }
        self.program_with_regions(Path::new("/"), known)
            .or(started)
            .with_context(|| format!("{} does not say which program was recorded", self.path.display()))
    }

    /// The debug info of every file that the program had mapped, as [`Surveyed::present_file`] finds it. Debug info that was read before is taken from `known`.
    pub(crate) fn debug_infos(&self, known: &mut DebugInfos, stages: &Stages) -> Vec<Option<DebugInfo>> {
        let file_of = |image: &Path| self.present_file(image);
        let read = |image: &Path, file: &Path| known.take_or(image, || debug_info(file, stages));
        module_types::debug_infos(&self.survey.images, &self.survey.modules, file_of, read, stages)
    }

    /// Goes through the calls, in the order in which they stand in the file.
    pub(crate) fn each_call(&self, stages: &Stages, mut see: impl FnMut(&Call)) -> Result<()> {
        stages.stage(&format!("reading the calls in {}", self.path.display()));
        for event in reader(&self.file, stages)? {
            if let Event::Call(call) = event {
                see(&call);
            }
        }
        Ok(())
    }

    /// Names every access: two passes over the calls.
    pub(crate) fn explain(
        &self,
        debug: &[Option<DebugInfo>],
        wanted: lineup_explain::Options,
        stages: &Stages,
    ) -> Result<Explanation> {
        stages.stage(&format!("naming the accesses in {}", self.path.display()));
        Ok(self.survey.explain(debug, wanted, || reader(&self.file, stages))?)
    }
}

/// Explains a surveyed recording of the program at this path. `known` is debug info that was read before.
pub(crate) fn program(
    surveyed: Surveyed,
    program: &Path,
    mut known: DebugInfos,
    options: lineup_explain::Options,
    stages: &Stages,
) -> Result<Explained> {
    let position = surveyed.survey.images.iter().position(|image| Path::new(&image.path) == program);
    let program = position.with_context(|| {
        let (recording, program) = (surveyed.path.display(), program.display());
        format!("{recording} holds no trace of {program}; was it recorded with another path?")
    })?;
    let mut debug = surveyed.debug_infos(&mut known, stages);
    let explanation = surveyed.explain(&debug, options, stages)?;
    Ok(Explained::new(surveyed.survey, explanation, program, debug.swap_remove(program)))
}
