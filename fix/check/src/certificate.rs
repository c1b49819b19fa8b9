//! The certificate: its text, and the files beside it. The format is `docs/certificate.md`.

use crate::error::{Error, Result};
use crate::map::{Map, Moved, TypeMap};
use crate::obligation::{Findings, Kind, Obligation};
use crate::unit::{Forms, Variant, Variants};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

/// The first line of a certificate.
pub const HEADER: &str = "lineup-certificate 1";

/// The certificate's name in a folder.
pub const NAME: &str = "certificate.txt";

/// The folder of the forms, beside the certificate.
pub const FORMS: &str = "certificate.forms";

/// Records that the checker keeps and does not check: they say where the forms come from.
const ABOUT: [&str; 8] = ["compiler", "flags", "source", "object", "effects", "time", "note", "not-covered"];

/// How an obligation is discharged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Discharge {
    /// By a rule of the checker.
    Rule(String),
    /// By what an audit of a run saw.
    Audit(String),
    /// By the word of a person.
    Word(String),
    /// Not.
    Open,
}

/// A certificate.
#[derive(Debug, Default)]
pub struct Certificate {
    /// Records of [`ABOUT`], as they stand.
    pub about: Vec<String>,
    /// Unit, form, hashes before, hashes after.
    pub units: Vec<UnitRecord>,
    /// The map.
    pub map: Map,
    /// Counts and obligations; rules are in `discharges`.
    pub findings: Findings,
    /// By obligation.
    pub discharges: Vec<Discharge>,
}

/// A unit with the hashes of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitRecord {
    /// Its name: a relative path.
    pub name: String,
    /// `gimple` or `llvm`.
    pub form: String,
    /// SHA-256 of each file before.
    pub before: Vec<String>,
    /// The same after.
    pub after: Vec<String>,
}

/// Words of a person or an audit for obligations that no rule discharges.
#[derive(Debug, Default)]
pub struct Vouched {
    lines: Vec<(String, String, String, String, String)>,
}

impl Vouched {
    /// Reads lines `word KIND "FUNCTION" "ABOUT" "TEXT"` or `audit …`; `*` stands for any.
    pub fn read(text: &str) -> std::result::Result<Self, String> {
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match fields(line).as_deref() {
                Some([by, kind, function, about, said]) if by == "word" || by == "audit" => {
                    lines.push((by.clone(), kind.clone(), function.clone(), about.clone(), said.clone()));
                }
                _ => return Err(format!("not a line of the form `word KIND FUNCTION ABOUT TEXT`: {line}")),
            }
        }
        Ok(Self { lines })
    }

    fn of(&self, obligation: &Obligation) -> Discharge {
        let fits = |pattern: &str, text: &str| pattern == "*" || pattern == text;
        let line = self.lines.iter().find(|(_, kind, function, about, _)| {
            fits(kind, &obligation.kind.to_string())
                && fits(function, &obligation.function)
                && fits(about, &obligation.about)
        });
        match line {
            Some((by, .., said)) if by == "audit" => Discharge::Audit(said.clone()),
            Some((.., said)) => Discharge::Word(said.clone()),
            None => Discharge::Open,
        }
    }
}

/// SHA-256 in lower-case hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A text in quotes: `\` before quotes and itself, `\n` for the end of a line.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The fields of a line: words, and texts in quotes.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('"') {
            let mut text = String::new();
            let mut letters = inside.char_indices();
            let end = loop {
                match letters.next()? {
                    (at, '"') => break at,
                    (_, '\\') => text.push(match letters.next()?.1 {
                        'n' => '\n',
                        other => other,
                    }),
                    (_, other) => text.push(other),
                }
            };
            found.push(text);
            rest = inside[end + 1..].trim_start();
        } else {
            let end = rest.find(' ').unwrap_or(rest.len());
            found.push(rest[..end].to_owned());
            rest = rest[end..].trim_start();
        }
    }
    Some(found)
}

impl Certificate {
    /// A certificate of findings.
    pub fn new(
        variants: &Variants,
        map: Map,
        findings: Findings,
        about: Vec<String>,
        vouched: &Vouched,
    ) -> Self {
        let units = variants.iter().map(|(name, of)| UnitRecord {
            name: name.clone(),
            form: if matches!(of.forms, Forms::Llvm(..)) { "llvm" } else { "gimple" }.into(),
            before: of.before.clone(),
            after: of.after.clone(),
        });
        let discharges = findings.obligations.iter().map(|obligation| match obligation.rule {
            Some(rule) => Discharge::Rule(rule.into()),
            None => vouched.of(obligation),
        });
        Self { about, units: units.collect(), discharges: discharges.collect(), map, findings }
    }

    /// The obligations that nothing discharges.
    pub fn open(&self) -> impl Iterator<Item = &Obligation> {
        let all = self.findings.obligations.iter().zip(&self.discharges);
        all.filter(|(_, discharge)| **discharge == Discharge::Open).map(|(obligation, _)| obligation)
    }

    /// The sources that it is of: name, hash before, hash after.
    pub fn sources(&self) -> Vec<[String; 3]> {
        let records = self.about.iter().filter_map(|record| fields(record.strip_prefix("source ")?));
        records.filter_map(|fields| fields.try_into().ok()).collect()
    }

    /// One line that says what it shows.
    pub fn summary(&self) -> String {
        let of = &self.findings;
        let count = |wanted: fn(&Discharge) -> bool| self.discharges.iter().filter(|one| wanted(one)).count();
        format!(
            "{} functions and {} objects equal up to the map of {} types; {} plain accesses, {} numbers explained; \
             obligations: {} by rules, {} by audit, {} by word, {} open",
            of.functions,
            of.objects,
            self.map.types.len(),
            of.plain,
            of.explained,
            count(|one| matches!(one, Discharge::Rule(_))),
            count(|one| matches!(one, Discharge::Audit(_))),
            count(|one| matches!(one, Discharge::Word(_))),
            count(|one| *one == Discharge::Open),
        )
    }

    /// Its text.
    pub fn to_text(&self) -> String {
        let mut lines = vec![HEADER.to_owned()];
        lines.extend(self.about.iter().cloned());
        for unit in &self.units {
            lines.push(format!(
                "unit {} {} before {} after {}",
                unit.form,
                quoted(&unit.name),
                unit.before.join(" "),
                unit.after.join(" ")
            ));
        }
        for of in &self.map.types {
            lines.push(format!("type {} bytes {} {}", quoted(&of.name), of.bytes.0, of.bytes.1));
            lines.extend(of.members.iter().map(|member| {
                format!(
                    "member {} bits {} at {} {}",
                    quoted(&member.name),
                    member.bits,
                    member.before,
                    member.after
                )
            }));
        }
        let of = &self.findings;
        lines.push(format!(
            "counts functions {} objects {} plain {} explained {}",
            of.functions, of.objects, of.plain, of.explained
        ));
        for (number, (obligation, discharge)) in of.obligations.iter().zip(&self.discharges).enumerate() {
            lines.push(format!("obligation {number} {}", identity(obligation)));
            lines.push(match discharge {
                Discharge::Rule(name) => format!("discharged {number} rule {name}"),
                Discharge::Audit(said) => format!("discharged {number} audit {}", quoted(said)),
                Discharge::Word(said) => format!("discharged {number} word {}", quoted(said)),
                Discharge::Open => format!("open {number}"),
            });
        }
        lines.push("end".into());
        lines.join("\n") + "\n"
    }

    /// Reads a certificate.
    pub fn read(text: &str) -> std::result::Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return Err(format!("it does not begin with `{HEADER}`"));
        }
        let mut found = Self::default();
        let mut is_whole = false;
        for line in lines {
            if is_whole {
                return Err(format!("a line behind the end: {line}"));
            }
            let fields = fields(line).ok_or_else(|| format!("a text without its end: {line}"))?;
            is_whole = found.take(line, &fields).ok_or_else(|| format!("not a known record: {line}"))?;
        }
        match is_whole && found.discharges.len() == found.findings.obligations.len() {
            true => Ok(found),
            false => Err("it has no end".into()),
        }
    }

    /// Adds a record; true at the end.
    fn take(&mut self, line: &str, fields: &[String]) -> Option<bool> {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        match fields[..] {
            ["end"] => return Some(true),
            [name, ..] if ABOUT.contains(&name) => self.about.push(line.into()),
            ["unit", form, name, "before", ref hashes @ ..] => {
                let at = hashes.iter().position(|word| *word == "after")?;
                let list = |hashes: &[&str]| hashes.iter().map(|hash| (*hash).to_owned()).collect::<Vec<_>>();
                let (before, after) = (list(&hashes[..at]), list(&hashes[at + 1..]));
                self.units.push(UnitRecord { name: name.into(), form: form.into(), before, after });
            }
            ["type", name, "bytes", before, after] => {
                let bytes = (before.parse().ok()?, after.parse().ok()?);
                self.map.types.push(TypeMap { name: name.into(), bytes, members: Vec::new() });
            }
            ["member", name, "bits", bits, "at", before, after] => {
                let (bits, before, after) = (bits.parse().ok()?, before.parse().ok()?, after.parse().ok()?);
                self.map.types.last_mut()?.members.push(Moved { name: name.into(), bits, before, after });
            }
            [
                "counts",
                "functions",
                functions,
                "objects",
                objects,
                "plain",
                plain,
                "explained",
                explained,
            ] => {
                self.findings.functions = functions.parse().ok()?;
                self.findings.objects = objects.parse().ok()?;
                self.findings.plain = plain.parse().ok()?;
                self.findings.explained = explained.parse().ok()?;
            }
            [
                "obligation",
                number,
                kind,
                "unit",
                unit,
                "function",
                function,
                "place",
                place,
                "about",
                about,
                "statement",
                statement,
            ] => {
                if number.parse() != Ok(self.findings.obligations.len()) {
                    return None;
                }
                let (kind, _) = Kind::ALL.iter().find(|(_, name)| *name == kind)?;
                self.findings.obligations.push(Obligation {
                    unit: unit.into(),
                    function: function.into(),
                    place: place.into(),
                    kind: *kind,
                    about: about.into(),
                    statement: statement.into(),
                    rule: None,
                });
            }
            ["open", number] => self.discharge(number, Discharge::Open)?,
            ["discharged", number, "rule", name] => self.discharge(number, Discharge::Rule(name.into()))?,
            ["discharged", number, "audit", said] => self.discharge(number, Discharge::Audit(said.into()))?,
            ["discharged", number, "word", said] => self.discharge(number, Discharge::Word(said.into()))?,
            _ => return None,
        }
        Some(false)
    }

    fn discharge(&mut self, number: &str, discharge: Discharge) -> Option<()> {
        let is_next = number.parse() == Ok(self.discharges.len())
            && self.discharges.len() + 1 == self.findings.obligations.len();
        is_next.then(|| self.discharges.push(discharge))
    }

    /// Compares with what a check found again: every count, obligation and rule.
    pub fn agree(&self, found: &Findings) -> Result<()> {
        let disagree = |said: String, found: String| Error::Certificate { said, found };
        let counts = |of: &Findings| {
            format!(
                "counts functions {} objects {} plain {} explained {}",
                of.functions, of.objects, of.plain, of.explained
            )
        };
        if counts(&self.findings) != counts(found) {
            return Err(disagree(counts(&self.findings), counts(found)));
        }
        let count = self.findings.obligations.len().max(found.obligations.len());
        for number in 0..count {
            let (said, is) = (self.findings.obligations.get(number), found.obligations.get(number));
            let text = |one: Option<&Obligation>| one.map(identity).unwrap_or_default();
            if text(said) != text(is) {
                return Err(disagree(text(said), text(is)));
            }
            let rule = is.and_then(|is| is.rule);
            let discharge = &self.discharges[number];
            let is_right = match (discharge, rule) {
                (Discharge::Rule(name), rule) => rule == Some(name.as_str()),
                (_, Some(_)) => false,
                (_, None) => true,
            };
            if !is_right {
                let found = rule.map_or("open".into(), |rule| format!("rule {rule}"));
                return Err(disagree(format!("{} {discharge:?}", text(said)), found));
            }
        }
        Ok(())
    }
}

/// The fields of an obligation, as its line has them.
fn identity(of: &Obligation) -> String {
    format!(
        "{} unit {} function {} place {} about {} statement {}",
        of.kind,
        quoted(&of.unit),
        quoted(&of.function),
        quoted(&of.place),
        quoted(&of.about),
        quoted(&of.statement)
    )
}

fn of_file<T>(path: &Path, result: std::io::Result<T>) -> Result<T> {
    result.map_err(|source| Error::File { path: path.into(), source })
}

fn unreadable(name: &str, what: &str) -> Error {
    Error::Unreadable { unit: name.into(), what: what.into() }
}

/// Strings of a program are in any encoding: of other texts than UTF-8 each byte becomes one character.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| error.into_bytes().iter().map(|byte| char::from(*byte)).collect())
}

/// Names of forms below a folder, relative and without `.gz`.
fn names(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in of_file(&next, fs::read_dir(&next))? {
            let entry = of_file(&next, entry)?;
            let path = entry.path();
            if of_file(&path, entry.file_type())?.is_dir() {
                open.push(path);
            } else if let Some(name) = path.strip_prefix(folder).ok().and_then(Path::to_str) {
                found.push(name.strip_suffix(".gz").unwrap_or(name).to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A form is at most this large.
const LARGEST: u64 = 4 << 30;

fn form(folder: &Path, name: &str) -> Result<Vec<u8>> {
    let is_inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside {
        return Err(unreadable(name, "its name leads outside of the folder of forms"));
    }
    let plain = folder.join(name);
    if plain.is_file() {
        return of_file(&plain, fs::read(&plain));
    }
    let packed = folder.join(format!("{name}.gz"));
    let file = of_file(&packed, fs::File::open(&packed))?;
    let mut bytes = Vec::new();
    of_file(&packed, GzDecoder::new(file).take(LARGEST).read_to_end(&mut bytes))?;
    Ok(bytes)
}

/// Reads the forms of two folders: `NAME.gimple` with `NAME.o`, and `NAME.ll`.
pub fn read_forms(before: &Path, after: &Path) -> Result<Variants> {
    let (old, new) = (names(before)?, names(after)?);
    if let Some(single) =
        old.iter().find(|name| !new.contains(name)).or_else(|| new.iter().find(|name| !old.contains(name)))
    {
        return Err(unreadable(single, "only one variant has it"));
    }
    let mut variants = Variants::new();
    for name in &old {
        let both = |name: &str| Ok::<_, Error>((form(before, name)?, form(after, name)?));
        let (unit, files) = match (name.strip_suffix(".gimple"), name.strip_suffix(".ll")) {
            (Some(unit), _) => (unit, vec![both(name)?, both(&format!("{unit}.o"))?]),
            (_, Some(unit)) => (unit, vec![both(name)?]),
            _ => continue,
        };
        let hashes = (files.iter().map(|(one, _)| hash(one)), files.iter().map(|(_, other)| hash(other)));
        let (before, after) = (hashes.0.collect(), hashes.1.collect());
        let mut files = files.into_iter();
        let (one, other) = files.next().unwrap_or_default();
        let texts = (text(one), text(other));
        let forms = match files.next() {
            Some(objects) => Forms::Gimple { dumps: texts, objects },
            None => Forms::Llvm(texts.0, texts.1),
        };
        variants.insert(unit.into(), Variant { forms, before, after });
    }
    match variants.is_empty() {
        true => Err(unreadable(
            &before.display().to_string(),
            "it holds no forms: NAME.gimple with NAME.o, or NAME.ll",
        )),
        false => Ok(variants),
    }
}

/// Compares the forms of two folders; without a map by that of their debug information. `about` are records that are
/// kept as they stand.
pub fn compared(
    before: &Path,
    after: &Path,
    map: Option<Map>,
    about: Vec<String>,
    vouched: &Vouched,
) -> Result<Certificate> {
    let variants = read_forms(before, after)?;
    let map = map.map_or_else(|| crate::unit::map_of(&variants), Ok)?;
    let findings = crate::unit::check(&variants, &map)?;
    let certificate = Certificate::new(&variants, map, findings, about, vouched);
    // A reader must read all that is written.
    Certificate::read(&certificate.to_text()).map_err(|what| unreadable("the certificate", &what))?;
    Ok(certificate)
}

/// Writes a certificate and its forms into a folder, which it makes; returns the certificate's path.
pub fn write(out: &Path, certificate: &Certificate, before: &Path, after: &Path) -> Result<PathBuf> {
    for (variant, source) in [("before", before), ("after", after)] {
        for unit in &certificate.units {
            let ends: &[&str] = if unit.form == "llvm" { &["ll"] } else { &["gimple", "o"] };
            for end in ends {
                let name = format!("{}.{end}", unit.name);
                let path = out.join(FORMS).join(variant).join(format!("{name}.gz"));
                let folder = path.parent().unwrap_or(out);
                of_file(folder, fs::create_dir_all(folder))?;
                let file = of_file(&path, fs::File::create(&path))?;
                let mut packer = GzEncoder::new(file, Compression::default());
                of_file(&path, packer.write_all(&form(source, &name)?))?;
                of_file(&path, packer.finish())?;
            }
        }
    }
    let path = out.join(NAME);
    of_file(&path, fs::write(&path, certificate.to_text()))?;
    Ok(path)
}

/// Checks a certificate again from the files beside it.
pub fn check_again(path: &Path) -> Result<Certificate> {
    let bytes = of_file(path, fs::read(path))?;
    let name = path.display().to_string();
    let certificate = String::from_utf8(bytes)
        .map_err(|_| "it is no text".to_owned())
        .and_then(|text| Certificate::read(&text));
    let certificate = certificate.map_err(|what| unreadable(&name, &what))?;
    let forms = path.parent().unwrap_or(Path::new(".")).join(FORMS);
    let variants = read_forms(&forms.join("before"), &forms.join("after"))?;
    let again =
        Certificate::new(&variants, Map::default(), Findings::default(), Vec::new(), &Vouched::default());
    for unit in &certificate.units {
        let found = again.units.iter().find(|other| other.name == unit.name);
        if found != Some(unit) {
            let found = found.map_or("none".into(), |found| {
                format!("{} → {}", found.before.join(" "), found.after.join(" "))
            });
            return Err(Error::Hash { path: forms.join(&unit.name), found });
        }
    }
    if certificate.units.len() != again.units.len() {
        return Err(unreadable(&name, "it does not name all forms beside it"));
    }
    let findings = crate::unit::check(&variants, &certificate.map)?;
    certificate.agree(&findings)?;
    Ok(certificate)
}
