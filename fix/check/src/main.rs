//! `lineup-check`: makes a certificate of a layout patch, or checks one again.

use lineup_check::certificate::{self, Certificate, Vouched};
use lineup_check::map::Map;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
lineup-check CERTIFICATE
  Checks a certificate again from the folder certificate.forms beside it.
lineup-check make --before DIR --after DIR --out DIR [--map FILE] [--about FILE] [--vouched FILE]
  Compares the forms of both variants (NAME.gimple with NAME.o, or NAME.ll) and writes a certificate.
  --map      records `type` and `member`; without it the map is read from the debug information
  --about    records of compilers, flags, sources, objects, effects and time, kept as they stand
  --vouched  lines `word KIND FUNCTION ABOUT TEXT` or `audit …` for obligations that no rule discharges

Exit: 0 all obligations are discharged; 1 some are open; 2 the variants differ, or a file is wrong.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        [] | ["--help" | "-h"] => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        ["--version"] => {
            println!("lineup-check {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        ["make", ref options @ ..] => make(options),
        [path] => certificate::check_again(Path::new(path)).map_err(|error| error.to_string()),
        _ => Err(format!("unknown arguments\n{HELP}")),
    };
    match result {
        Ok(certificate) => {
            // A reader that went away wants no more lines.
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "{}", certificate.summary());
            let mut is_whole = true;
            for open in certificate.open() {
                is_whole = false;
                let _ = writeln!(
                    out,
                    "open: {} {} in {} at {}: {}",
                    open.kind, open.about, open.function, open.place, open.statement
                );
            }
            if is_whole { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(error) => {
            eprintln!("lineup-check: {error}");
            ExitCode::from(2)
        }
    }
}

fn make(options: &[&str]) -> Result<Certificate, String> {
    let value = |name: &str| {
        let at = options.iter().position(|option| *option == name)?;
        options.get(at + 1).map(PathBuf::from)
    };
    let needed = |name: &str| value(name).ok_or_else(|| format!("{name} is missing\n{HELP}"));
    let known = ["--before", "--after", "--out", "--map", "--about", "--vouched"];
    if let Some(unknown) = options.iter().step_by(2).find(|option| !known.contains(option)) {
        return Err(format!("unknown option {unknown}\n{HELP}"));
    }
    let (before, after, out) = (needed("--before")?, needed("--after")?, needed("--out")?);
    let text = |path: PathBuf| {
        std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let map = value("--map").map(|path| map(&text(path)?)).transpose()?;
    let about = value("--about").map(text).transpose()?.unwrap_or_default();
    let about: Vec<String> = about.lines().map(str::to_owned).collect();
    let vouched = value("--vouched").map(text).transpose()?.unwrap_or_default();
    let vouched = Vouched::read(&vouched)?;
    let certificate = certificate::compared(&before, &after, map, about, &vouched);
    let certificate = certificate.map_err(|error| error.to_string())?;
    certificate::write(&out, &certificate, &before, &after).map_err(|error| error.to_string())?;
    Ok(certificate)
}

/// A map alone is a certificate with nothing else.
fn map(text: &str) -> Result<Map, String> {
    let text = format!("{}\n{}\nend\n", certificate::HEADER, text.trim_end());
    Certificate::read(&text).map(|certificate| certificate.map)
}
