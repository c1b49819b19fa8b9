//! The effects of a run's processes, for people and for programs.

mod text;

pub use text::{agreement_text, difference_text, effects_text};

use crate::ReportError;
use lineup_prove::effects::{self, Content, Effects, EffectsAgreement};
use lineup_prove::run::Ending;
use serde::Serialize;

/// The form `lineup.effects/1`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct EffectsReport {
    schema: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The processes, the program itself first.
    pub processes: Vec<ProcessReport>,
    /// The files that the run left.
    pub files: Vec<FileReport>,
    /// Connections that the run accepted from the client that drove it, in their order.
    pub connections: Vec<ConnectionReport>,
    /// Actions of the run that were not observed.
    pub not_observed: Vec<String>,
}

/// The effects of one process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProcessReport {
    /// Its place in the tree of processes: `0` is the program, `0.1` its first child.
    pub process: String,
    /// The status that it exited with.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Bytes that went somewhere in order.
    pub streams: Vec<StreamReport>,
    /// Calls that count one by one.
    pub calls: Vec<CallsReport>,
}

/// A stream of bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StreamReport {
    /// Their destination.
    pub target: String,
    /// Their number.
    pub size_bytes: u64,
    /// SHA-256 of all of them.
    pub sha256: String,
    /// The first of them in hexadecimal.
    pub first_bytes: String,
    /// System calls that wrote them.
    pub written_by: Vec<String>,
}

/// Calls of one name on one thing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CallsReport {
    /// The system call.
    pub name: String,
    /// Its object.
    pub target: String,
    /// Their number.
    pub count: u64,
    /// The first of them.
    pub calls: Vec<CallReport>,
}

/// One call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CallReport {
    /// The request.
    pub what: String,
    /// The number of bytes that went with it.
    pub size_bytes: u64,
    /// SHA-256 of all of them.
    pub sha256: String,
    /// The first of them in hexadecimal.
    pub first_bytes: String,
}

/// Something left in the file system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FileReport {
    /// Relative to the run's folder, absolute outside it.
    pub path: String,
    /// `file`, `folder`, `symbolic link`, `special file` or `removed`.
    pub kind: &'static str,
    /// Permission bits in octal.
    pub permissions: String,
    /// Its size.
    pub size_bytes: u64,
    /// SHA-256 of its content.
    pub sha256: String,
    /// System calls that changed it.
    pub changed_by: Vec<String>,
}

/// A connection that the run accepted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ConnectionReport {
    /// The number of requests and answers that took turns.
    pub exchanges: u64,
    /// Bytes that came in.
    pub received_bytes: u64,
    /// A fingerprint of all of them.
    pub received_fingerprint: String,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// A fingerprint of all of them.
    pub sent_fingerprint: String,
    /// The first bytes of the first request in hexadecimal.
    pub first_request: String,
    /// The first bytes of the answer to it in hexadecimal.
    pub first_answer: String,
}

/// The most calls of one site that the report shows.
const SHOWN_CALLS: usize = 100;

/// The most bytes that the report shows of a stream or a call.
const SHOWN_BYTES: usize = 64;

impl EffectsReport {
    /// The report of a run.
    pub fn of(command: Vec<String>, effects: &Effects) -> Self {
        Self {
            schema: "lineup.effects/1",
            command,
            processes: effects.processes.iter().map(|(path, process)| report(path, process)).collect(),
            files: effects.files.iter().map(|(path, left)| file(path, left)).collect(),
            connections: effects.connections.iter().map(connection).collect(),
            not_observed: effects.not_observed.iter().cloned().collect(),
        }
    }

    /// The report as JSON.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn to_json(&self) -> Result<String, ReportError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

fn report(path: &effects::ProcessPath, process: &effects::ProcessEffects) -> ProcessReport {
    let (exit_status, signal) = match process.ending {
        Some(Ending::Exited(status)) => (Some(status), None),
        Some(Ending::Killed(signal)) => (None, Some(signal)),
        Some(Ending::Stopped) | None => (None, None),
    };
    let streams = process.streams.iter().map(|(target, stream)| {
        let Content { whole, .. } = &stream.content;
        StreamReport {
            target: target.to_string(),
            size_bytes: whole.size_bytes,
            sha256: hex(&whole.fingerprint),
            first_bytes: hex(whole.head.get(..SHOWN_BYTES).unwrap_or(&whole.head)),
            written_by: names(&stream.written_by),
        }
    });
    let calls = process.calls.iter().map(|(site, list)| CallsReport {
        name: site.name.to_owned(),
        target: site.target.to_string(),
        count: list.count(),
        calls: list.kept().iter().take(SHOWN_CALLS).map(call).collect(),
    });
    ProcessReport {
        process: path.to_string(),
        exit_status,
        signal,
        streams: streams.collect(),
        calls: calls.collect(),
    }
}

fn call(call: &effects::Call) -> CallReport {
    CallReport {
        what: call.what.clone(),
        size_bytes: call.size_bytes,
        sha256: hex(&call.fingerprint),
        first_bytes: hex(call.bytes.get(..SHOWN_BYTES).unwrap_or(&call.bytes)),
    }
}

fn file(path: &str, left: &effects::FileLeft) -> FileReport {
    FileReport {
        path: path.to_owned(),
        kind: left.kind.word(),
        permissions: format!("{:o}", left.permissions),
        size_bytes: left.content.whole.size_bytes,
        sha256: hex(&left.content.whole.fingerprint),
        changed_by: names(&left.changed_by),
    }
}

fn connection(connection: &effects::Connection) -> ConnectionReport {
    let first = connection.exchanges.first();
    let head = |piece: &effects::Piece| hex(piece.bytes.get(..SHOWN_BYTES).unwrap_or(&piece.bytes));
    ConnectionReport {
        exchanges: connection.exchanges.len() as u64 + connection.further,
        received_bytes: connection.received.size_bytes,
        received_fingerprint: hex(&connection.received.fingerprint),
        sent_bytes: connection.sent.size_bytes,
        sent_fingerprint: hex(&connection.sent.fingerprint),
        first_request: first.map(|exchange| head(&exchange.request)).unwrap_or_default(),
        first_answer: first.map(|exchange| head(&exchange.answer)).unwrap_or_default(),
    }
}

fn names(names: &std::collections::BTreeSet<&'static str>) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The compared effects of two variants, and those that were not compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct EffectsCheck {
    /// Effects that were compared and are equal, such as `standard output`, `3 files left behind`, `12 ioctl`.
    pub compared: Vec<String>,
    /// Effects that differ already between two runs of the same variant, and their share.
    pub not_compared: Vec<NotCompared>,
    /// Actions of the runs that were not observed.
    pub not_observed: Vec<String>,
    /// The number of observed runs, both variants together.
    pub runs: u64,
}

/// An effect that differs from run to run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NotCompared {
    /// The effect, such as `bytes written to standard output`.
    pub effect: String,
    /// The part that is left out.
    pub share: String,
}

impl From<&EffectsAgreement> for EffectsCheck {
    fn from(agreement: &EffectsAgreement) -> Self {
        let not_compared = agreement.not_compared().iter();
        Self {
            compared: agreement.compared().to_vec(),
            not_compared: not_compared
                .map(|one| NotCompared { effect: one.effect.clone(), share: one.share.clone() })
                .collect(),
            not_observed: agreement.not_observed().iter().cloned().collect(),
            runs: agreement.runs(),
        }
    }
}

impl EffectsCheck {
    /// Whether all that the program writes differs from run to run, so that the variants have only their ends in common.
    pub fn has_only_ends(&self) -> bool {
        let is_end = |effect: &String| effect.starts_with("exit status") || effect.starts_with("end of");
        !self.not_compared.is_empty() && self.compared.iter().all(is_end)
    }

    /// The compared effects and the others, in one sentence.
    pub fn sentence(&self) -> String {
        let mut sentence = format!("compared and equal: {}", listed(&self.compared));
        if !self.not_compared.is_empty() {
            let left_out: Vec<String> =
                self.not_compared.iter().map(|one| format!("{} ({})", one.effect, one.share)).collect();
            sentence += &format!(
                "; not compared: {}, different between two runs of the same program",
                listed(&left_out)
            );
        }
        if !self.not_observed.is_empty() {
            sentence += &format!("; not observed: {}", listed(&self.not_observed));
        }
        sentence
    }
}

/// The most things that a sentence names; it counts the rest.
const NAMED: usize = 12;

fn listed(words: &[String]) -> String {
    match words {
        [] => "nothing".into(),
        words if words.len() <= NAMED => words.join(", "),
        words => format!("{} and {} more", words[..NAMED].join(", "), words.len() - NAMED),
    }
}
