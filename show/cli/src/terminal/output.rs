//! Standard output and its layout.

use anyhow::{Context, Result, bail};
use lineup_report::text::{Extent, TextStyle};
use lineup_study::closed_output;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Writes to standard output. A reader that closes the pipe early is no error.
pub(crate) fn print(text: &str) -> Result<()> {
    print_all(std::slice::from_ref(&text))
}

/// Writes texts to standard output one after another. A reader that closes the pipe early is no error.
pub(crate) fn print_all(texts: &[impl AsRef<str>]) -> Result<()> {
    if closed_output::was_closed() {
        bail!("cannot write to standard output: it is closed; leave `>&-` out, or write `>/dev/null`");
    }
    let mut out = std::io::stdout().lock();
    match texts.iter().try_for_each(|text| out.write_all(text.as_ref().as_bytes())) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// Writes a file that is made anew when it is missing, and creates its folder: the file is there whole or not at all.
pub(crate) fn write_kept(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().context("no folder")?;
    std::fs::create_dir_all(folder)?;
    let new = tempfile::NamedTempFile::new_in(folder)?;
    std::fs::write(new.path(), text)?;
    new.persist(path)?;
    Ok(())
}

/// The layout and extent of text, depending on the request for all of it. A file gets all.
pub(crate) fn text_for(file: Option<&Path>, is_full: bool) -> (TextStyle, Extent) {
    match file {
        Some(_) => (TextStyle::Plain, Extent::All),
        None if is_full => (text_style(), Extent::All),
        None => (text_style(), Extent::FirstScreen),
    }
}

/// The layout of text on standard output: for a person at a terminal, or for a pipe.
pub(crate) fn text_style() -> TextStyle {
    if !std::io::stdout().is_terminal() {
        return TextStyle::Plain;
    }
    let columns = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(100, |size| size.ws_col.max(40));
    TextStyle::Terminal { columns }
}

/// Prints a result or writes it to a file.
pub(crate) fn write_result(path: Option<&Path>, rendered: &str) -> Result<()> {
    match path {
        Some(path) => std::fs::write(path, rendered).with_context(|| format!("writing {}", path.display())),
        None => print(rendered),
    }
}
