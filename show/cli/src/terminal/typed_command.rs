//! Commands as they would be typed into a shell.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// A command as one line that a POSIX shell takes for just these words.
pub(crate) fn line(words: impl IntoIterator<Item = OsString>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| quoted(&word)).collect();
    words.join(" ")
}

fn quoted(word: &OsString) -> String {
    if let Some(text) = word.to_str() {
        return shell_words::quote(text).into_owned();
    }
    // Bytes that are not text are spelled as octal numbers, which printf turns into bytes again.
    let spelled: String = word.as_bytes().iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("\"$(printf '{spelled}')\"")
}

/// A command line as words.
pub(crate) fn split(command: &str, shell: bool) -> Result<Vec<std::ffi::OsString>> {
    if shell {
        return Ok(["/bin/sh", "-c", command].map(Into::into).to_vec());
    }
    let words = shell_words::split(command).with_context(|| format!("the command {command:?}"))?;
    if words.is_empty() {
        bail!("an empty command cannot be run");
    }
    Ok(words.into_iter().map(Into::into).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;
    use std::process::Command;

    #[test]
    fn a_shell_reads_back_the_words() {
        let words: Vec<OsString> = ["plain", "two words", "it's", "$HOME", ""].map(Into::into).to_vec();
        let odd = OsString::from_vec(b"a\xff\xfe%s\\ 'b".to_vec());
        let words: Vec<OsString> = words.into_iter().chain([odd]).collect();
        let script = format!("for word in {}; do printf '%s|' \"$word\"; done", line(words.clone()));
        let said = Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
        let expected: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"|"].concat()).collect();
        assert_eq!(said, expected);
    }
}
