//! The varied parameters: sizes of caches, and their line.

use anyhow::{Context, Result, bail};
use lineup_cache::CacheSpec;
use std::str::FromStr;

/// One `--vary`: a cache or the line, and its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Vary {
    what: SweepAxis,
    values: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SweepAxis {
    /// The size of a cache, by its name in specifications.
    Size(&'static str),
    /// The line of all caches.
    Line,
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Vary, String> {
        let form = || format!("{text}: write l1i=, l1d=, l2= or line= and values, such as l2=off,256K,1M");
        let (name, values) = text.split_once('=').ok_or_else(form)?;
        let what = match name {
            "l1i" => SweepAxis::Size("l1i"),
            "l1d" => SweepAxis::Size("l1d"),
            "l2" => SweepAxis::Size("l2"),
            "line" => SweepAxis::Line,
            _ => return Err(form()),
        };
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if values.iter().any(String::is_empty) {
            return Err(form());
        }
        Ok(Vary { what, values })
    }
}

/// One combination: its name, and its caches.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Variant {
    /// Such as `l2=256K`.
    pub(crate) name: String,
    pub(crate) caches: Vec<CacheSpec>,
}

/// Every combination of the values, the last `--vary` changing fastest.
///
/// # Errors
/// When a combination makes no cache.
pub(crate) fn variants(base: &[CacheSpec], varied: &[Vary]) -> Result<Vec<Variant>> {
    let mut variants = vec![Variant { name: String::new(), caches: base.to_vec() }];
    for vary in varied {
        let each =
            |variant: &Variant| vary.values.iter().map(|value| changed(variant, vary.what, value)).collect();
        let grown: Vec<Vec<Variant>> = variants.iter().map(each).collect::<Result<_>>()?;
        variants = grown.into_iter().flatten().collect();
    }
    Ok(variants)
}

fn changed(variant: &Variant, what: SweepAxis, value: &str) -> Result<Variant> {
    let (key, caches) = match what {
        SweepAxis::Line => ("line", with_line(&variant.caches, value)?),
        SweepAxis::Size(level) => (level, with_size(&variant.caches, level, value)?),
    };
    let separator = if variant.name.is_empty() { "" } else { " " };
    Ok(Variant { name: format!("{}{separator}{key}={value}", variant.name), caches })
}

fn with_line(caches: &[CacheSpec], line: &str) -> Result<Vec<CacheSpec>> {
    caches
        .iter()
        .map(|spec| {
            let text = spec.to_string();
            let (rest, _) = text.rsplit_once(',').context("a cache's text has three parts")?;
            format!("{rest},{line}").parse().with_context(|| format!("--vary line={line}"))
        })
        .collect()
}

fn with_size(caches: &[CacheSpec], level: &str, size: &str) -> Result<Vec<CacheSpec>> {
    let (own, others): (Vec<&CacheSpec>, Vec<&CacheSpec>) =
        caches.iter().partition(|spec| spec.level().name() == level);
    let mut caches: Vec<CacheSpec> = others.into_iter().copied().collect();
    if size == "off" {
        if level != "l2" {
            bail!("--vary {level}=off: only the second level can be off");
        }
        return Ok(caches);
    }
    let own = own.last().with_context(|| format!("--vary {level}: name that cache with --cache first"))?;
    let text = format!("{level}={size},{},{}", own.ways(), own.line());
    caches.push(text.parse().with_context(|| format!("--vary {level}={size}"))?);
    Ok(caches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Vec<CacheSpec> {
        ["l1i=32K,8,64", "l1d=32K,8,64", "l2=1M,16,64"].iter().map(|spec| spec.parse().unwrap()).collect()
    }

    fn names(varied: &[&str]) -> Result<Vec<(String, Vec<String>)>> {
        let varied: Vec<Vary> = varied.iter().map(|text| text.parse().unwrap()).collect();
        let shown =
            |variant: Variant| (variant.name, variant.caches.iter().map(ToString::to_string).collect());
        Ok(variants(&base(), &varied)?.into_iter().map(shown).collect())
    }

    #[test]
    fn a_cache_takes_each_size_or_is_off() {
        let found = names(&["l2=off,256K"]).unwrap();
        assert_eq!(found[0], ("l2=off".into(), vec!["l1i=32K,8,64".into(), "l1d=32K,8,64".into()]));
        assert_eq!(found[1].0, "l2=256K");
        assert_eq!(found[1].1[2], "l2=256K,16,64");
    }

    #[test]
    fn several_are_combined() {
        let found = names(&["l1i=16K,32K", "line=32,64"]).unwrap();
        let labels: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(labels, ["l1i=16K line=32", "l1i=16K line=64", "l1i=32K line=32", "l1i=32K line=64"]);
        assert!(found[0].1.contains(&"l1i=16K,8,32".to_owned()));
    }

    #[test]
    fn what_makes_no_cache_is_refused() {
        assert!(names(&["l1i=off"]).is_err());
        assert!(names(&["l2=100K"]).is_err());
        assert!("l3=1M".parse::<Vary>().is_err());
        assert!("l2=".parse::<Vary>().is_err());
    }
}
