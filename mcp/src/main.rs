//! `lineup-mcp`: Lineup's commands as tools of the Model Context Protocol, over standard input and output.
//!
//! Each tool is one command of `lineup` with `--json`. The server starts it without a shell and passes each value as
//! one argument, never as an option. Tools only read, unless an option of the server allows more.

mod arguments;
mod server;
mod tools;

use clap::Parser;
use rmcp::ServiceExt;
use server::Server;
use std::path::PathBuf;
use std::process::ExitCode;

/// Offers Lineup's commands as tools over standard input and output (Model Context Protocol)
#[derive(Parser)]
#[command(name = "lineup-mcp", version, max_term_width = 100)]
struct Options {
    /// The `lineup` to start
    #[arg(long, value_name = "FILE", default_value = "lineup")]
    lineup: PathBuf,
    /// Let tools start programs and builds that the client names: find, and advise with a build
    #[arg(long)]
    allow_run: bool,
    /// Let tools write files that the client names, and start programs: study
    #[arg(long)]
    allow_write: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match serve(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lineup mcp: {error}");
            ExitCode::from(2)
        }
    }
}

fn serve(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    let allowed =
        tools::Allowed { run: options.allow_run || options.allow_write, write: options.allow_write };
    let server = Server { lineup: options.lineup, allowed };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let running = server.serve(rmcp::transport::stdio()).await?;
        running.waiting().await?;
        Ok(())
    });
    // A read of standard input cannot be cancelled, and no task waits for it.
    runtime.shutdown_background();
    result
}
