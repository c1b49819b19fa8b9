//! Parsers of values that several commands take.

use anyhow::{Context, Result};
use lineup_model::line::LineSize;
use lineup_study::input::Input;
use lineup_study::interrupt::Interrupts;
use std::ffi::OsString;
use std::path::Path;

/// `KEY=VALUE`.
pub(crate) fn variable(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err(format!("{text}: write KEY=VALUE")),
    }
}

pub(crate) fn type_and_member(text: &str) -> Result<(String, String)> {
    let parts = text.rsplit_once('.').filter(|(ty, member)| !ty.is_empty() && !member.is_empty());
    let (ty, member) = parts.with_context(|| format!("{text:?}: write TYPE.MEMBER"))?;
    Ok((ty.to_owned(), member.to_owned()))
}

pub(crate) fn line_size(text: &str) -> Result<LineSize, String> {
    let size = text.parse().ok().and_then(LineSize::new).filter(|size| LineSize::ALL.contains(size));
    size.ok_or_else(|| format!("a cache line has 32, 64 or 128 bytes, not {text}"))
}

/// The input that a file gives to every run; empty when no file is named.
pub(crate) fn given_input(file: Option<&Path>, interrupts: &Interrupts) -> Result<Input> {
    Ok(match file {
        Some(file) => Input::from_file(file, interrupts)?,
        None => Input::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_names_type_and_member() {
        assert_eq!(type_and_member("a::B.c").unwrap(), ("a::B".into(), "c".into()));
        assert!(type_and_member("member").is_err());
    }
}
