#![no_main]
//! A client that sends anything: bytes that may be messages, and texts that may declare a type which the program has.

use libfuzzer_sys::fuzz_target;
use lineup_lsp::wire::{Incoming, Message, outgoing};
use lineup_lsp::{Config, Evidence, Server, Stamp, World};
use lineup_model::abi::Abi;
use lineup_model::types::{
    Aggregate, AggregateKind, Language, Member, MemberRole, ScalarKind, SourceLocation, Type, TypeId,
    TypeKind, Types,
};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const FILE: &str = "/a.c";

/// A machine with one program, which has `struct s { int a; int b; }`. The text that was built is the fuzzer's.
struct Machine(String);

impl World for Machine {
    fn stamp(&self, _: &Path) -> Option<Stamp> {
        Some(Stamp { modified: SystemTime::UNIX_EPOCH, bytes: 1 })
    }

    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn text(&self, _: &Path) -> Result<String, String> {
        Ok(self.0.clone())
    }

    fn types(&self, _: &Path) -> Result<(Types, Abi), String> {
        let mut types = Types::new();
        let at = Some(SourceLocation { file: FILE.into(), line: 1 });
        let int = TypeKind::Scalar(ScalarKind::Integer { signed: true });
        let named = |name: &str, kind, size| Type {
            name: Some(name.into()),
            size_bytes: Some(size),
            declared_align: None,
            declared_at: at.clone(),
            unit: None,
            language: Language::C,
            kind,
        };
        types.push(named("int", int, 4));
        let member = |name: &str, offset| Member {
            name: Some(name.into()),
            ty: TypeId(0),
            offset_bits: Some(offset),
            bit_size: None,
            declared_align: None,
            role: MemberRole::Field,
            declared_at: None,
        };
        let whole = Aggregate {
            kind: AggregateKind::Struct,
            members: vec![member("a", 0), member("b", 64)],
            static_members: Vec::new(),
            is_declaration: false,
        };
        types.push(named("s", TypeKind::Aggregate(whole), 16));
        Ok((types, Abi::X86_64))
    }

    fn evidence(&self, _: &Path) -> Result<String, String> {
        Ok(self.0.clone())
    }
}

fn message(method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{params}}}")
}

fuzz_target!(|data: (&[u8], &str, u8, u8)| {
    let (bytes, text, line, character) = data;
    let _ = Evidence::parse(text);
    let config = Config {
        binaries: vec!["/p".into()],
        recording: Some("/r".into()),
        lock: Some("/l".into()),
        ..Config::default()
    };
    let mut server = Server::new(Machine(text.to_owned()), config, "0");
    let mut incoming = Incoming::default();
    let quoted = serde_json::Value::from(text);
    let opened = format!(
        "{{\"textDocument\":{{\"uri\":\"file://{FILE}\",\"languageId\":\"c\",\"version\":1,\"text\":{quoted}}}}}"
    );
    let at = format!(
        "{{\"textDocument\":{{\"uri\":\"file://{FILE}\"}},\"position\":{{\"line\":{line},\"character\":{character}}}}}"
    );
    let opening = message("textDocument/didOpen", &opened).replace("\"id\":1,", "");
    for body in [message("initialize", "{}"), opening, message("textDocument/hover", &at)] {
        incoming.push(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }
    incoming.push(bytes);
    while let Ok(Some(message)) = incoming.next_message() {
        for answer in server.handle(message) {
            // The answer can be read.
            let mut back = Incoming::default();
            back.push(&outgoing(&answer));
            assert_eq!(back.next_message().expect("a header"), Some(Message::Json(answer)));
        }
        if server.ended().is_some() {
            return;
        }
    }
});
