//! The folder for the results of a study. Results of an earlier one stay where they are.

use super::result_files::{
    self, CODE_FOLDER, LOCK, PAGE, PATCH, PLACEMENT_FOLDER, REJECTED, REPORT, TOGETHER_FOLDER, UNPROVEN,
};
use anyhow::{Context, Result, bail};
use lineup_check::certificate::{FORMS, NAME as CERTIFICATE};
use lineup_study::heap_pools::PLAN_FILES;
use lineup_study::source::scratch::STUDY_MARK;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The files with a study's conclusions.
const RESULTS: [&str; 7] = [PAGE, REPORT, PATCH, UNPROVEN, REJECTED, LOCK, CERTIFICATE];

/// The folders of a study's recordings.
const RECORDINGS: [&str; 3] = ["before", "after", "counts"];

/// The folders of what a certificate compares, of the levers and of the series of commits.
const FOLDERS: [&str; 5] =
    [FORMS, PLACEMENT_FOLDER, CODE_FOLDER, TOGETHER_FOLDER, result_files::SERIES_FOLDER];

/// Makes the output folder and checks that it can be written, before any long work. If it holds a study's results,
/// another folder next to it is made, unless these are to be overwritten.
pub(crate) fn prepare(wanted: &Path, source: &Path, overwrites: bool) -> Result<PathBuf> {
    let out = if overwrites { wanted.to_owned() } else { without_results(wanted) };
    if out != wanted {
        eprintln!(
            "lineup: {} holds results of an earlier study, so this one writes to {}; --overwrite deletes the earlier ones",
            wanted.display(),
            out.display()
        );
    }
    check(&out, source)?;
    fs::create_dir_all(&out).with_context(|| format!("cannot make the output folder {}", out.display()))?;
    fs::write(out.join(STUDY_MARK), "")
        .with_context(|| format!("cannot write in the output folder {}", out.display()))?;
    remove_earlier(&out)?;
    Ok(out)
}

/// The folder, or the first one next to it without a study's results.
fn without_results(wanted: &Path) -> PathBuf {
    let beside = |number: u32| {
        let mut name = wanted.file_name().map(OsString::from).unwrap_or_default();
        name.push(format!("-{number}"));
        wanted.with_file_name(name)
    };
    let mut folders = std::iter::once(wanted.to_owned()).chain((2..).map(beside));
    folders.find(|folder| !has_results(folder)).unwrap_or_else(|| wanted.to_owned())
}

fn has_results(out: &Path) -> bool {
    is_of_study(out) && RESULTS.iter().any(|name| out.join(name).exists())
}

/// True when a study has written the folder.
fn is_of_study(out: &Path) -> bool {
    // Recordings and logs are those of studies by versions that left no mark.
    [STUDY_MARK, "before/calls.rec", "before/build.log"].iter().any(|name| out.join(name).exists())
        || fs::read_to_string(out.join(REPORT)).is_ok_and(|text| text.contains("lineup.study/"))
}

/// Removes an earlier study's results from the folder, so that a report found there belongs to the last study.
fn remove_earlier(out: &Path) -> Result<()> {
    for name in RESULTS.into_iter().chain(PLAN_FILES) {
        result_files::remove(out, name)?;
    }
    for name in FOLDERS {
        let path = out.join(name);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove the earlier {}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses a folder in which files of someone else's would be replaced.
fn check(out: &Path, source: &Path) -> Result<()> {
    let named = out.display();
    if let (Ok(out), Ok(source)) = (out.canonicalize(), source.canonicalize())
        && out == source
    {
        bail!(
            "--out {named} is the source folder, which is never written to; name another, such as lineup-study"
        );
    }
    let mut taken = RESULTS
        .iter()
        .chain(&PLAN_FILES)
        .chain(&RECORDINGS)
        .chain(&FOLDERS)
        .map(|name| out.join(name))
        .filter(|path| path.exists());
    match taken.next() {
        Some(path) if !is_of_study(out) => bail!(
            "--out {named} holds {}, which no study wrote and which this one would replace; name another folder",
            path.display()
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_earlier_studies_stay_unless_they_are_to_be_overwritten() {
        let place = tempfile::tempdir().expect("a folder");
        let out = place.path().join("out");
        let prepared = |overwrites| prepare(&out, Path::new("/"), overwrites).expect("a folder");
        assert_eq!(prepared(false), out);
        assert_eq!(prepared(false), out, "a study that left no results needs no other folder");
        for (number, file) in [(2, "fix.patch"), (3, "lineup.lock")] {
            let now = if number == 2 { out.clone() } else { place.path().join("out-2") };
            fs::write(now.join(file), "earlier").expect("writes");
            assert_eq!(prepared(false), place.path().join(format!("out-{number}")));
            assert_eq!(fs::read_to_string(now.join(file)).expect("stays"), "earlier");
        }
        assert_eq!(prepared(true), out);
        assert!(!out.join("fix.patch").exists());
    }

    #[test]
    fn files_that_no_study_wrote_are_not_replaced() {
        let place = tempfile::tempdir().expect("a folder");
        fs::write(place.path().join("fix.patch"), "someone else's").expect("writes");
        for overwrites in [false, true] {
            let refused = prepare(place.path(), Path::new("/"), overwrites).expect_err("refused");
            assert!(refused.to_string().contains("fix.patch, which no study wrote"), "{refused}");
        }
    }
}
