//! Answers to a client.

use crate::tools::{Allowed, Call, Does, TOOLS, Tool};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as Offered, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// No client reads more at once.
const MOST_BYTES: u64 = 4 << 20;

/// The instructions for all tools that a client gets.
const INSTRUCTIONS: &str = "Lineup finds the cache lines that make hot paths slow. Results are the JSON forms of docs/json.md; \
    an error has a code, what is wrong and what to do next. Only a study compares and times; advice is predicted.";

/// Offers the tools.
pub(crate) struct Server {
    /// The `lineup` program.
    pub(crate) lineup: PathBuf,
    pub(crate) allowed: Allowed,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("lineup", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(offered).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::named(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        let call = tool
            .call(request.arguments)
            .map_err(|error| ErrorData::invalid_params(format!("{}: {error}", tool.name), None))?;
        if let Some(option) = call.does.refused(self.allowed) {
            let what = format!("{} is not allowed to do this", tool.name);
            return Ok(failed("not-allowed", &what, &format!("start `lineup mcp` with {option}")).into());
        }
        self.run(&call, &context).await.map(Into::into)
    }
}

impl Server {
    /// Runs a command to its end, or ends it when the client cancels the call.
    async fn run(
        &self,
        call: &Call,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let mut command = Command::new(&self.lineup);
        command.args(&call.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.kill_on_drop(true).spawn() {
            Ok(child) => child,
            Err(error) => {
                let what = format!("cannot start {}: {error}", self.lineup.display());
                return Ok(failed("missing-tool", &what, "name it with --lineup"));
            }
        };
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let said = tokio::select! {
            said = async { tokio::join!(read(stdout), read(stderr)) } => said,
            () = context.ct.cancelled() => {
                // Waits for the ended process, so that no part of it is left.
                let _ = child.kill().await;
                return Err(ErrorData::internal_error("the call was given up", None));
            }
        };
        let (Some(stdout), Some(stderr)) = said else {
            let _ = child.kill().await;
            let what = format!("the answer has more than {MOST_BYTES} bytes");
            return Ok(failed("too-much", &what, "ask for less: of layout, name the types"));
        };
        let status =
            child.wait().await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(result(status, &stdout, &stderr))
    }
}

/// The output of a program, `None` when it is more than a client reads.
async fn read(from: Option<impl AsyncRead + Unpin>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // The bytes read before a pipe broke are the whole output.
    let _ = from?.take(MOST_BYTES + 1).read_to_end(&mut bytes).await;
    (bytes.len() as u64 <= MOST_BYTES).then_some(bytes)
}

/// A tool as the protocol describes it.
fn offered(tool: &Tool) -> Offered {
    let annotations = ToolAnnotations::new()
        .read_only(tool.does == Does::Reads)
        .destructive(tool.does == Does::Writes)
        .open_world(tool.does != Does::Reads);
    Offered::new(tool.name, tool.description, Arc::new(tool.input_schema())).with_annotations(annotations)
}

/// The result of a command. Exit code 1 reports a finding, not an error.
fn result(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> CallToolResult {
    match serde_json::from_slice::<Value>(stdout) {
        Ok(document) => told(document, !matches!(status.code(), Some(0 | 1))),
        Err(_) => {
            let said = String::from_utf8_lossy(stderr);
            failed("failed", &format!("lineup ended with {status}: {}", said.trim()), "see the message")
        }
    }
}

/// An error in the form that commands print.
fn failed(code: &str, what: &str, next: &str) -> CallToolResult {
    let message = format!("{what}; {next}");
    told(
        json!({ "schema": "lineup.error/1", "code": code, "message": message, "what": what, "next": next }),
        true,
    )
}

fn told(document: Value, is_error: bool) -> CallToolResult {
    let content = vec![ContentBlock::text(document.to_string())];
    let mut result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(document);
    result
}
