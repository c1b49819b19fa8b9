//! The path of a program inside its source folder.

use anyhow::{Context, Result, bail};
use std::path::{Component, Path, PathBuf};

/// The program's path relative to the source folder.
pub(crate) fn inside(program: &Path, source: &Path) -> Result<PathBuf> {
    let hint = "a study rebuilds the program, so name it by its path inside --source";
    let relative = if program.is_absolute() {
        let folder = source
            .canonicalize()
            .with_context(|| format!("cannot read the source folder {}", source.display()))?;
        let inside = program.strip_prefix(&folder).map(Path::to_owned);
        inside
            .ok()
            .with_context(|| format!("{} is not inside {}; {hint}", program.display(), source.display()))?
    } else {
        program.components().filter(|part| !matches!(part, Component::CurDir)).collect()
    };
    if relative.components().any(|part| part == Component::ParentDir) {
        bail!("{} leads out of the source folder; {hint}", program.display());
    }
    Ok(relative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_inside_the_source_folder() {
        assert_eq!(inside(Path::new("./build/x"), Path::new("src")).unwrap(), Path::new("build/x"));
        assert!(inside(Path::new("../x"), Path::new("src")).is_err());
        assert!(inside(Path::new("/bin/true"), Path::new(".")).is_err());
    }
}
