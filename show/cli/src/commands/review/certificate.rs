//! The certificate of the change, checked again.

use anyhow::{Context, Result};
use lineup_check::certificate::{check_again, hash};
use lineup_review::CheckedCertificate;
use std::fs;
use std::path::Path;

/// Checks a certificate, and that it is of these two folders.
pub(crate) fn checked(file: &Path, [base, head]: [&Path; 2]) -> Result<CheckedCertificate> {
    let name = file.display().to_string();
    fs::metadata(file).with_context(|| format!("--certificate {name}"))?;
    let refused = |sentence: String| CheckedCertificate { file: name.clone(), is_refused: true, sentence };
    let certificate = match check_again(file) {
        Ok(certificate) => certificate,
        Err(error) => return Ok(refused(error.to_string())),
    };
    let sources = certificate.sources();
    let is_of = |root: &Path, source: &str, said: &str| {
        fs::read(root.join(source)).is_ok_and(|bytes| hash(&bytes) == said)
    };
    let other = sources
        .iter()
        .find(|[source, before, after]| !is_of(base, source, before) || !is_of(head, source, after));
    Ok(match (other, sources.is_empty()) {
        (Some([source, ..]), _) => refused(format!("it is of another {source} than these commits have")),
        (None, true) => refused("it names no sources".into()),
        (None, false) => {
            CheckedCertificate { sentence: certificate.summary(), is_refused: false, file: name }
        }
    })
}
