//! A case: a public commit that changed a layout, in a file of its own.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The kind of change.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Order,
    Split,
    Columns,
    Shrink,
    Inline,
    Gather,
    Parting,
    Prefetch,
    Pages,
    Placement,
    Code,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Split => "split",
            Self::Columns => "columns",
            Self::Shrink => "shrink",
            Self::Inline => "inline",
            Self::Gather => "gather",
            Self::Parting => "parting",
            Self::Prefetch => "prefetch",
            Self::Pages => "pages",
            Self::Placement => "placement",
            Self::Code => "code",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The name of its file, and of its folder with the user.
    #[serde(skip)]
    pub(crate) name: String,
    /// Owner and name of the public repository.
    #[serde(rename = "project")]
    _project: String,
    /// The commit before the change, which is built.
    parent: String,
    #[serde(rename = "change")]
    _change: String,
    pub(crate) kind: Kind,
    /// Types, variables or functions: a finding of any of them is the right one.
    pub(crate) data: Vec<String>,
    #[serde(rename = "sentence")]
    _sentence: String,
    #[serde(rename = "claim")]
    _claim: String,
    #[serde(rename = "workload")]
    _workload: String,
    /// The change gained no time: nothing should be proposed.
    #[serde(default)]
    pub(crate) control: bool,
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

impl Case {
    /// The cases of a folder, which has a folder for each project.
    pub(crate) fn all(folder: &Path) -> Result<Vec<Self>> {
        let mut cases = Vec::new();
        for project in entries(folder)? {
            for file in entries(&project)? {
                cases.push(Self::read(&file).with_context(|| format!("{}", file.display()))?);
            }
        }
        cases.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(cases)
    }

    fn read(file: &Path) -> Result<Self> {
        let mut case: Self = toml::from_str(&fs::read_to_string(file)?)?;
        case.name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if case.data.is_empty() || case.parent.is_empty() {
            bail!("it names no data or no parent");
        }
        Ok(case)
    }

    /// Whether a name is of this case's data: of the type, its template, or a member of it.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        let is_boundary = |rest: &str| rest.is_empty() || rest.starts_with(['.', '<', ' ', '[']);
        self.data.iter().any(|data| {
            let last = name.rsplit("::").next().unwrap_or(name);
            [name, last].iter().any(|name| name.strip_prefix(data.as_str()).is_some_and(is_boundary))
        })
    }
}
