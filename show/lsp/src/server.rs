//! Messages in, messages out.

use crate::cached_file::CachedFile;
use crate::config::Config;
use crate::diagnose;
use crate::documents::Document;
use crate::evidence::Evidence;
use crate::freshness::{self, Freshness};
use crate::hover::{self, Beside};
use crate::position::Lines;
use crate::program::Program;
use crate::uri;
use crate::view::View;
use crate::wire::Message;
use crate::world::World;
use lineup_advise::guard::Lock;
use lineup_advise::outline::Declared;
use lineup_model::layout::Layout;
use lsp_types::{
    Diagnostic, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, Hover,
    HoverContents, HoverParams, HoverProviderCapability, InitializeResult, MarkupContent, MarkupKind,
    MessageType, PublishDiagnosticsParams, SaveOptions, ServerCapabilities, ServerInfo, ShowMessageParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
    Uri,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Types of one declaration that are shown: those of other programs, or of a template's other arguments.
const MOST_VIEWS: usize = 4;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const NOT_INITIALIZED: i64 = -32002;

/// The client's way of ending the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionEnd {
    /// As the protocol demands: `shutdown`, then `exit`.
    Properly,
    /// By `exit` alone.
    Abruptly,
}

/// The server's stage of life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Started,
    Running,
    ShutDown,
    Ended(SessionEnd),
}

/// A language server for one client.
pub struct Server<W> {
    world: W,
    config: Config,
    version: String,
    life: Life,
    /// True when the client can be asked to report changes of files.
    can_watch: bool,
    documents: BTreeMap<String, Document>,
    programs: Vec<CachedFile<Program>>,
    evidence: Option<CachedFile<Evidence>>,
    lock: Option<CachedFile<Lock>>,
    out: Vec<Value>,
}

/// An error as the protocol has it: code and message.
type Refusal = (i64, String);

impl<W: World> Server<W> {
    /// A server with the command line's configuration. `version` is its own, for the client.
    pub fn new(world: W, config: Config, version: impl Into<String>) -> Self {
        Server {
            world,
            config,
            version: version.into(),
            life: Life::Started,
            can_watch: false,
            documents: BTreeMap::new(),
            programs: Vec::new(),
            evidence: None,
            lock: None,
            out: Vec::new(),
        }
    }

    /// The client's way of ending it; `None` while it runs.
    pub fn ended(&self) -> Option<SessionEnd> {
        match self.life {
            Life::Ended(how) => Some(how),
            _ => None,
        }
    }

    /// Takes a message and returns the messages that answer it, in their order.
    pub fn handle(&mut self, message: Message) -> Vec<Value> {
        match message {
            Message::NotJson(what) => self.refuse(&Value::Null, (PARSE_ERROR, what)),
            Message::Json(message) => self.json(message),
        }
        std::mem::take(&mut self.out)
    }

    fn json(&mut self, mut message: Value) {
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        let id = message.get("id").cloned();
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // An answer to the server's own request; nothing depends on it.
            let is_answer = message.get("result").is_some() || message.get("error").is_some();
            if !is_answer {
                let what = "neither a request nor a notification".to_string();
                self.refuse(&id.unwrap_or_default(), (INVALID_REQUEST, what));
            }
            return;
        };
        match id {
            None => self.notified(method, params),
            Some(id) => match self.asked(method, params) {
                Ok(result) => self.out.push(json!({ "jsonrpc": "2.0", "id": id, "result": result })),
                Err(refusal) => self.refuse(&id, refusal),
            },
        }
    }

    fn refuse(&mut self, id: &Value, (code, message): Refusal) {
        self.out.push(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }));
    }

    fn asked(&mut self, method: &str, params: Value) -> Result<Value, Refusal> {
        match (self.life, method) {
            (Life::Started, "initialize") => Ok(self.initialize(&params)),
            (Life::Started, _) => Err((NOT_INITIALIZED, "the server waits for initialize".to_string())),
            (Life::ShutDown | Life::Ended(_), _) => {
                Err((INVALID_REQUEST, "the server is shut down and waits for exit".to_string()))
            }
            (Life::Running, "initialize") => Err((INVALID_REQUEST, "initialize was sent before".to_string())),
            (Life::Running, "shutdown") => {
                self.life = Life::ShutDown;
                Ok(Value::Null)
            }
            (Life::Running, "textDocument/hover") => Ok(value(self.hover(&read(params)?))),
            (Life::Running, _) => {
                Err((METHOD_NOT_FOUND, format!("{method} is nothing that this server does")))
            }
        }
    }

    fn notified(&mut self, method: &str, params: Value) {
        if method == "exit" {
            let is_proper = self.life == Life::ShutDown;
            self.life = Life::Ended(if is_proper { SessionEnd::Properly } else { SessionEnd::Abruptly });
            return;
        }
        if self.life != Life::Running {
            return;
        }
        // A malformed notification is ignored: it gives nothing to act on, and has no answer.
        match method {
            "initialized" => self.initialized(),
            "textDocument/didOpen" => self.with(params, Self::opened),
            "textDocument/didChange" => self.with(params, Self::changed),
            "textDocument/didClose" => self.with(params, Self::closed),
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                self.refresh();
                self.publish_all();
            }
            _ => {}
        }
    }

    fn with<P: DeserializeOwned>(&mut self, params: Value, act: impl FnOnce(&mut Self, P)) {
        match read(params) {
            Ok(params) => act(self, params),
            Err((_, what)) => self.log(MessageType::WARNING, &what),
        }
    }

    fn initialize(&mut self, params: &Value) -> Value {
        self.life = Life::Running;
        self.can_watch = params.pointer("/capabilities/workspace/didChangeWatchedFiles/dynamicRegistration")
            == Some(&Value::Bool(true));
        match self.config.clone().with_options(params["initializationOptions"].clone()) {
            Ok(config) => self.config = config,
            Err(error) => self.show(MessageType::ERROR, &error.to_string()),
        }
        if let Some(root) = root(params) {
            self.config = self.config.clone().below(&root);
        }
        self.programs = self.config.binaries.iter().map(|path| CachedFile::new(path)).collect();
        self.evidence = self.config.recording.as_deref().map(CachedFile::new);
        self.lock = self.config.lock.as_deref().map(CachedFile::new);
        let sync = TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::FULL),
            save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
            ..TextDocumentSyncOptions::default()
        };
        value(InitializeResult {
            capabilities: ServerCapabilities {
                text_document_sync: Some(TextDocumentSyncCapability::Options(sync)),
                hover_provider: Some(HoverProviderCapability::Simple(true)),
                ..ServerCapabilities::default()
            },
            server_info: Some(ServerInfo { name: "lineup".to_string(), version: Some(self.version.clone()) }),
        })
    }

    fn initialized(&mut self) {
        if self.config.binaries.is_empty() {
            let what = "lineup: no program is named: set initializationOptions.binaries, or name one behind `lineup lsp`";
            self.show(MessageType::WARNING, what);
        }
        if self.can_watch {
            let pattern = |path: &std::path::Path| {
                path.display().to_string().replace(['*', '?', '[', ']', '{', '}'], "?")
            };
            let watchers: Vec<Value> =
                self.config.files().map(|path| json!({ "globPattern": pattern(path) })).collect();
            let registration = json!({
                "id": "lineup-files",
                "method": "workspace/didChangeWatchedFiles",
                "registerOptions": { "watchers": watchers },
            });
            self.out.push(json!({
                "jsonrpc": "2.0", "id": "lineup-watch", "method": "client/registerCapability",
                "params": { "registrations": [registration] },
            }));
        }
    }

    fn opened(&mut self, params: DidOpenTextDocumentParams) {
        let text = params.text_document;
        let Some(path) = uri::path(text.uri.as_str()) else { return };
        let Some(document) = Document::new(path, &text.language_id, text.version, text.text) else { return };
        self.documents.insert(text.uri.as_str().to_string(), document);
        self.look_again(text.uri.as_str());
    }

    fn changed(&mut self, params: DidChangeTextDocumentParams) {
        let uri = params.text_document.uri.as_str();
        let Some(document) = self.documents.get_mut(uri) else { return };
        document.change(params.text_document.version, params.content_changes);
        self.look_again(uri);
    }

    fn closed(&mut self, params: DidCloseTextDocumentParams) {
        if self.documents.remove(params.text_document.uri.as_str()).is_some() {
            let nothing = PublishDiagnosticsParams::new(params.text_document.uri, Vec::new(), None);
            self.notify("textDocument/publishDiagnostics", nothing);
        }
    }

    /// After something happened to one text: its diagnostics, or everybody's when files were written meanwhile.
    fn look_again(&mut self, uri: &str) {
        match self.refresh() {
            true => self.publish_all(),
            false => self.publish(uri),
        }
    }

    /// Reads files that were not read, or were written since. True when there is something new.
    fn refresh(&mut self) -> bool {
        let world = &self.world;
        let mut errors = Vec::new();
        let mut is_new = false;
        for program in &mut self.programs {
            let read =
                |path: &std::path::Path| world.types(path).map(|(types, abi)| Program::new(types, abi));
            if program.refresh(world, read) {
                is_new = true;
                errors.extend(program.error());
            }
        }
        if let Some(evidence) = &mut self.evidence {
            let read = |path: &std::path::Path| {
                Evidence::parse(&world.evidence(path)?).map_err(|error| error.to_string())
            };
            if evidence.refresh(world, read) {
                is_new = true;
                errors.extend(evidence.error());
            }
        }
        if let Some(lock) = &mut self.lock {
            let read = |path: &std::path::Path| {
                Lock::parse("the file", &world.text(path)?).map_err(|error| error.to_string())
            };
            if lock.refresh(world, read) {
                is_new = true;
                errors.extend(lock.error());
            }
        }
        errors.iter().for_each(|error| self.show(MessageType::WARNING, &format!("lineup: {error}")));
        is_new
    }

    fn hover(&mut self, params: &HoverParams) -> Option<Hover> {
        if self.refresh() {
            self.publish_all();
        }
        let place = &params.text_document_position_params;
        let document = self.documents.get(place.text_document.uri.as_str())?;
        let (declared, member) = document.at(place.position)?;
        let views = self.views(document, declared);
        let shown = views.len().min(MOST_VIEWS);
        let mut texts: Vec<String> = views
            .iter()
            .take(shown)
            .filter_map(|view| self.with_program(view, hover::text(view, member, self.beside())?))
            .collect();
        if views.len() > shown {
            texts.extend((!texts.is_empty()).then(|| format!("{} more of this name.", views.len() - shown)));
        }
        let value = match (texts.is_empty(), self.programs.iter().find_map(CachedFile::error)) {
            (false, _) => texts.join("\n\n---\n\n"),
            (true, Some(error)) => hover::plain(&error),
            (true, None) => return None,
        };
        let bytes = member.map_or(&declared.name_bytes, |member| &member.bytes);
        Some(Hover {
            contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value }),
            range: Some(Lines::of(&document.text).range(bytes)),
        })
    }

    /// Where there are several programs, each text names its own.
    fn with_program(&self, view: &View<'_>, text: String) -> Option<String> {
        let name = hover::plain(&view.program_name);
        Some(if self.programs.len() > 1 { format!("{text}\n\nIn {name}.") } else { text })
    }

    fn beside(&self) -> Beside<'_> {
        Beside {
            evidence: self
                .evidence
                .as_ref()
                .and_then(|kept| Some((kept.get()?, kept.path().file_name()?.to_str()?))),
            lock: self.lock.as_ref().and_then(CachedFile::get),
        }
    }

    /// The programs' views of a declaration, each layout once.
    fn views(&self, document: &Document, declared: &Declared) -> Vec<View<'_>> {
        let mut views: Vec<View<'_>> = Vec::new();
        for kept in &self.programs {
            let Some(program) = kept.get() else { continue };
            let of_text = freshness::of_text(&self.world, &document.path, &document.text, kept.stamp());
            for id in program.named(&self.world, &document.path, declared, document.language) {
                let Some(layout) = Layout::of(&program.types, id, self.config.line) else { continue };
                let asked = (document.text.as_str(), document.language, kept.stamp());
                let freshness = match of_text.clone() {
                    Freshness::AsBuilt => freshness::of_type(&self.world, program, id, declared, asked),
                    other => other,
                };
                let view = View { program, program_name: kept.name(), id, layout, freshness };
                let same = |other: &View<'_>| {
                    other.type_name() == view.type_name()
                        && other.freshness == view.freshness
                        && (other.layout.size_bytes, other.places())
                            == (view.layout.size_bytes, view.places())
                };
                if !views.iter().any(same) {
                    views.push(view);
                }
            }
        }
        // Types of the same name with other members are those of other files or modules.
        if views.iter().any(|view| view.freshness != Freshness::OtherMembers) {
            views.retain(|view| view.freshness != Freshness::OtherMembers);
        }
        views
    }

    fn publish_all(&mut self) {
        let uris: Vec<String> = self.documents.keys().cloned().collect();
        uris.iter().for_each(|uri| self.publish(uri));
    }

    fn publish(&mut self, uri: &str) {
        let Some(document) = self.documents.get(uri) else { return };
        let Ok(name) = uri.parse::<Uri>() else { return };
        let diagnostics = self.diagnostics(document);
        let version = Some(document.version);
        self.notify(
            "textDocument/publishDiagnostics",
            PublishDiagnosticsParams::new(name, diagnostics, version),
        );
    }

    fn diagnostics(&self, document: &Document) -> Vec<Diagnostic> {
        let lines = Lines::of(&document.text);
        let mut all = Vec::new();
        for declared in &document.declared {
            let views = self.views(document, declared);
            let Some(view) = views.first() else { continue };
            if matches!(view.freshness, Freshness::NotSaved) || self.is_newer(document, view) {
                // This concerns the whole text, so once is enough.
                return diagnose::of_text(&view.freshness, &view.program_name, declared, &lines)
                    .into_iter()
                    .collect();
            }
            // A template is one declaration of many types, each with holes of its own.
            let mut names = BTreeSet::new();
            let instances: Vec<_> = views
                .iter()
                .filter(|view| names.insert(view.type_name().to_owned()))
                .map(|view| (view.type_name(), diagnose::of_type(view, declared, &lines, self.beside())))
                .collect();
            all.extend(diagnose::of_instances(instances));
        }
        all
    }

    /// True when the text's own file was written after the program.
    fn is_newer(&self, document: &Document, view: &View<'_>) -> bool {
        let own = document.path.file_name().map(|name| name.to_string_lossy().into_owned());
        matches!(&view.freshness, Freshness::Newer(file) if Some(file) == own.as_ref())
    }

    fn notify(&mut self, method: &str, params: impl Serialize) {
        self.out.push(json!({ "jsonrpc": "2.0", "method": method, "params": value(params) }));
    }

    fn show(&mut self, typ: MessageType, message: &str) {
        let message = hover::plain(message);
        self.notify("window/showMessage", ShowMessageParams { typ, message });
    }

    fn log(&mut self, typ: MessageType, message: &str) {
        let message = hover::plain(message);
        self.notify("window/logMessage", lsp_types::LogMessageParams { typ, message });
    }
}

/// The folder that the client has open.
fn root(params: &Value) -> Option<PathBuf> {
    let of_folder = params.pointer("/workspaceFolders/0/uri").and_then(Value::as_str);
    let of_uri = || params["rootUri"].as_str();
    let by_uri = of_folder.or_else(of_uri).and_then(uri::path);
    by_uri.or_else(|| params["rootPath"].as_str().map(PathBuf::from))
}

fn read<P: DeserializeOwned>(params: Value) -> Result<P, Refusal> {
    serde_json::from_value(params).map_err(|error| (INVALID_PARAMS, error.to_string()))
}

/// A value of the protocol as JSON; its types always have such a form.
fn value(of: impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}
