//! The command that applies a patch.

use std::ffi::OsString;
use std::path::Path;

/// The command that applies a patch in the source folder, from where the user stands: `git` where the folder belongs to
/// a repository, else `patch`.
pub(crate) fn apply(source: &Path, patch: &Path) -> Vec<OsString> {
    let folder = std::path::absolute(source).unwrap_or_else(|_| source.to_owned());
    let is_here = source == Path::new(".");
    // In another folder a relative name leads elsewhere.
    let absolute = std::path::absolute(patch).unwrap_or_else(|_| patch.to_owned());
    let patch = if is_here { patch.to_owned() } else { absolute };
    let (tool, into, apply) = match folder.ancestors().any(|above| above.join(".git").exists()) {
        true => ("git", "-C", ["apply"].as_slice()),
        false => ("patch", "-d", ["-p1", "-i"].as_slice()),
    };
    let mut command = vec![OsString::from(tool)];
    if !is_here {
        command.extend([into.into(), source.into()]);
    }
    command.extend(apply.iter().map(OsString::from));
    command.push(patch.into());
    command
}
