//! The certificate of the patch, in short.

use lineup_model::figure::{counted, whole};
use serde::Serialize;

/// The result of `lineup-check` for the patch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum CertificateReport {
    /// Both variants are equal up to the map of members.
    Written {
        /// The certificate.
        file: String,
        /// Functions that were compared.
        functions: u64,
        /// Objects whose initial data were compared.
        objects: u64,
        /// Plain accesses of members of changed types.
        plain_accesses: u64,
        /// Uses of the layout that a rule discharges.
        by_rules: u64,
        /// Uses of the layout that nothing discharges.
        open: u64,
        /// Open uses by kind, most first.
        open_kinds: Vec<OpenKind>,
    },
    /// There is no certificate.
    NotCovered {
        /// Why.
        because: String,
    },
}

/// Open uses of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OpenKind {
    /// The kind's name in a certificate.
    pub kind: String,
    /// How many there are.
    pub count: u64,
}

impl CertificateReport {
    /// One line.
    pub fn sentence(&self) -> String {
        match self {
            Self::NotCovered { because } => format!("no certificate, not covered: {because}"),
            Self::Written { file, functions, open, by_rules, .. } => {
                let uses = match open {
                    0 if *by_rules == 1 => "the one use of the layout is discharged by rules".to_owned(),
                    0 => format!("all {} uses of the layout are discharged by rules", whole(*by_rules)),
                    1 => "1 use of the layout is open".to_owned(),
                    open => format!("{} uses of the layout are open", whole(*open)),
                };
                let are = if *functions == 1 { "is" } else { "are" };
                format!("{file}: {} {are} equal but for the layout; {uses}", counted(*functions, "function"))
            }
        }
    }
}
