//! The form of a printed result.

/// The form of a result.
#[derive(clap::Args, Clone, Copy)]
#[group(multiple = false)]
pub(crate) struct Format {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print comma-separated values.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Print a Markdown table of at most 72 columns, for a commit message or a mailing list.
    #[arg(long)]
    pub(crate) markdown: bool,
}
