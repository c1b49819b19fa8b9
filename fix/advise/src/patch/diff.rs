//! Edited texts as one unified diff, and back.

use crate::error::AdviseError;
use crate::text::sources::Sources;
use diffy::patch_set::{FileOperation, FilePatch, ParseOptions, PatchKind, PatchSet};
use similar::TextDiff;
use std::collections::BTreeMap;

/// A diff that `git apply` and `patch -p1` take in the source folder; empty when nothing changes.
pub fn unified_diff(sources: &Sources, edited: &BTreeMap<String, String>) -> String {
    diff(&|path| sources.get(path), edited)
}

/// The same of texts of any kind.
pub fn diff_of_texts(original: &BTreeMap<String, String>, edited: &BTreeMap<String, String>) -> String {
    diff(&|path| original.get(path).map(String::as_str), edited)
}

fn diff<'s>(original: &dyn Fn(&str) -> Option<&'s str>, edited: &BTreeMap<String, String>) -> String {
    let mut patch = String::new();
    for (path, new) in edited {
        let old = original(path).unwrap_or("");
        if old == new {
            continue;
        }
        let diff = TextDiff::from_lines(old, new);
        let (from, to) = (header_name("a", path), header_name("b", path));
        patch.push_str(&diff.unified_diff().context_radius(3).header(&from, &to).to_string());
    }
    patch
}

/// A file's name as `git diff` heads its lines with it: a tab ends a name with blanks, and one with other special characters
/// stands in quotes. GNU patch and `git apply` read both.
fn header_name(side: &str, path: &str) -> String {
    let is_special = |byte: u8| byte < b' ' || matches!(byte, b'"' | b'\\' | 0x7f..);
    if !path.bytes().any(is_special) {
        let end = if path.contains(' ') { "\t" } else { "" };
        return format!("{side}/{path}{end}");
    }
    let mut quoted = format!("\"{side}/");
    for byte in path.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b'\t' => quoted.push_str("\\t"),
            b'\n' => quoted.push_str("\\n"),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}

/// The texts that a patch changes, as it leaves them: the reverse of [`unified_diff`]. Words before the first file are
/// passed over. Paths begin with one folder that is left out, as `git diff` writes them (`a/…`, `b/…`).
///
/// # Errors
/// [`AdviseError::Patch`] for a text that is no patch, for one that does not fit the sources, and for one that makes,
/// removes or renames files.
pub fn apply(sources: &Sources, patch: &str) -> Result<BTreeMap<String, String>, AdviseError> {
    let mut edited = BTreeMap::new();
    for file in PatchSet::parse(patch, ParseOptions::unidiff()) {
        let file = file.map_err(|error| AdviseError::Patch(format!("it is no unified diff: {error}")))?;
        let (path, text) = applied(sources, &file)?;
        if edited.insert(path.clone(), text).is_some() {
            return Err(AdviseError::Patch(format!("it changes {path} twice")));
        }
    }
    Ok(edited)
}

fn applied(sources: &Sources, file: &FilePatch<'_, str>) -> Result<(String, String), AdviseError> {
    let operation = file.operation().strip_prefix(1);
    let FileOperation::Modify { original, modified } = &operation else {
        let what = "it makes, removes or renames files, and may only change texts";
        return Err(AdviseError::Patch(what.into()));
    };
    if original != modified {
        return Err(AdviseError::Patch(format!(
            "it renames {original} to {modified}, and may only change texts"
        )));
    }
    let path = original.to_string();
    let text = sources.get(&path).ok_or_else(|| {
        AdviseError::Patch(format!("it changes {path}, which is no source file in the folder"))
    })?;
    let PatchKind::Text(patch) = file.patch() else {
        return Err(AdviseError::Patch(format!("what it changes in {path} is no text")));
    };
    let text = diffy::apply(text, patch).map_err(|error| {
        AdviseError::Patch(format!("it does not fit {path} in the source folder: {error}"))
    })?;
    Ok((path, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "struct s {\n\tint a;\n\tint b;\n};\n";

    fn sources() -> Sources {
        Sources::new([("in/s.h".to_owned(), SOURCE.to_owned()), ("t.c".to_owned(), "int t;\n".to_owned())])
    }

    fn refusal(patch: &str) -> String {
        apply(&sources(), patch).expect_err("refused").to_string()
    }

    #[test]
    fn a_patch_that_was_written_is_read_back() {
        let sources = sources();
        let edited = BTreeMap::from([
            ("in/s.h".to_owned(), SOURCE.replace("int a", "long a")),
            ("t.c".to_owned(), "int t, u;\n".to_owned()),
        ]);
        let message = "s: a is a long\n\n  --- what follows ---\n\n";
        let patch = message.to_owned() + &unified_diff(&sources, &edited);
        assert_eq!(apply(&sources, &patch), Ok(edited));
    }

    #[test]
    fn patch_and_git_apply_take_names_of_any_kind() {
        for path in ["my src/sub dir/t.h", "a\"b.h", "tab\there.h", "back\\slash.h", "gr\u{fc}n.h", "plain.h"]
        {
            let original = BTreeMap::from([(path.to_owned(), SOURCE.to_owned())]);
            let edited = BTreeMap::from([(path.to_owned(), SOURCE.replace("int a", "long a"))]);
            let patch = diff_of_texts(&original, &edited);
            let sources = Sources::new(original.clone());
            assert_eq!(apply(&sources, &patch).as_ref(), Ok(&edited), "{patch}");
            for command in [&["patch", "-p1"][..], &["git", "apply"][..]] {
                let folder = tempfile::tempdir().expect("a folder");
                let file = folder.path().join(path);
                std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
                std::fs::write(&file, SOURCE).expect("a file");
                let mut process = std::process::Command::new(command[0]);
                process.args(&command[1..]).current_dir(folder.path()).stdin(std::process::Stdio::piped());
                let mut process =
                    process.stdout(std::process::Stdio::null()).spawn().expect("apt install patch git");
                let mut input = process.stdin.take().expect("a pipe");
                std::io::Write::write_all(&mut input, patch.as_bytes()).expect("it reads");
                drop(input);
                assert!(process.wait().expect("it ends").success(), "{command:?} {patch}");
                assert_eq!(std::fs::read_to_string(&file).ok().as_ref(), edited.get(path), "{command:?}");
            }
        }
    }

    /// Lines above it may have been added since.
    #[test]
    fn a_patch_fits_where_its_lines_have_moved() {
        let edited = BTreeMap::from([("in/s.h".to_owned(), SOURCE.replace("int a", "long a"))]);
        let patch = unified_diff(&sources(), &edited);
        let moved = format!("/* one\n * two */\n{SOURCE}");
        let applied = apply(&Sources::new([("in/s.h".to_owned(), moved.clone())]), &patch).expect("applies");
        assert_eq!(applied["in/s.h"], moved.replace("int a", "long a"));
    }

    #[test]
    fn what_is_no_patch_of_these_sources_is_refused() {
        for none in ["", "some words\n"] {
            assert!(refusal(none).contains("no unified diff"), "{}", refusal(none));
        }
        let hunk = "@@ -1 +1 @@\n-int t;\n+long t;\n";
        assert!(refusal(&format!("--- a/u.c\n+++ b/u.c\n{hunk}")).contains("u.c, which is no source file"));
        let other = "@@ -1 +1 @@\n-int other;\n+long t;\n";
        assert!(refusal(&format!("--- a/t.c\n+++ b/t.c\n{other}")).contains("does not fit t.c"));
        assert!(refusal("--- /dev/null\n+++ b/new.c\n@@ -0,0 +1 @@\n+int n;\n").contains("makes"));
        assert!(refusal("--- a/t.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-int t;\n").contains("removes"));
        assert!(
            refusal(&format!("--- a/t.c\n+++ b/../../etc/passwd\n{hunk}")).contains("may only change texts")
        );
        assert!(refusal(&format!("--- a/../x\n+++ b/../x\n{hunk}")).contains("no source file"));
        let one = format!("--- a/t.c\n+++ b/t.c\n{hunk}");
        assert!(refusal(&(one.clone() + &one)).contains("twice"));
    }
}
