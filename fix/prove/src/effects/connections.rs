//! The bytes between a server and its clients, connection by connection and exchange by exchange.

use super::content::hide_folder;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest number of bytes kept of one request or answer; later ones are fingerprinted.
const KEPT_PIECE_BYTES: usize = 1 << 16;

/// The largest number of bytes kept of all different requests and answers of one run.
const KEPT_BYTES: usize = 16 << 20;

/// The largest number of exchanges kept of one run; later ones are counted.
const KEPT_EXCHANGES: usize = 1 << 20;

/// A connection that the run accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    /// Requests and answers in their order.
    pub exchanges: Vec<Exchange>,
    /// The number of exchanges that are not kept.
    pub further: u64,
    /// All bytes that came from the client.
    pub received: StreamTotal,
    /// All bytes that went to the client.
    pub sent: StreamTotal,
    /// Other calls on its socket, one a line.
    pub settings: Arc<Piece>,
}

/// The bytes that came in until the server sent some, and the bytes that it sent until more came in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// The bytes from the client; empty where the server speaks first.
    pub request: Arc<Piece>,
    /// The bytes to the client; empty where it never answered.
    pub answer: Arc<Piece>,
}

/// Some bytes that belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The first of them; none when the run had more different ones than can be kept.
    pub bytes: Vec<u8>,
    /// Their number.
    pub size_bytes: u64,
    /// A fingerprint of all of them.
    pub fingerprint: [u8; 32],
}

impl Piece {
    /// The piece that consists of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut builder = PieceBuilder::default();
        builder.add(bytes);
        builder.finish(b"")
    }

    /// True when all bytes are kept.
    pub(super) fn is_whole(&self) -> bool {
        self.bytes.len() as u64 == self.size_bytes
    }
}

/// All bytes of one direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamTotal {
    /// Their number.
    pub size_bytes: u64,
    /// A fingerprint of all of them.
    pub fingerprint: [u8; 32],
}

#[derive(Default)]
struct PieceBuilder {
    bytes: Vec<u8>,
    size_bytes: u64,
    /// The bytes beyond the kept ones.
    rest: Sha256,
}

impl PieceBuilder {
    fn is_empty(&self) -> bool {
        self.size_bytes == 0
    }

    fn add(&mut self, bytes: &[u8]) {
        self.size_bytes += bytes.len() as u64;
        let (kept, rest) = bytes.split_at(bytes.len().min(KEPT_PIECE_BYTES - self.bytes.len()));
        self.bytes.extend_from_slice(kept);
        self.rest.update(rest);
    }

    fn finish(mut self, folder: &[u8]) -> Piece {
        hide_folder(&mut self.bytes, folder);
        let mut all = Sha256::new();
        all.update(&self.bytes);
        if self.size_bytes > self.bytes.len() as u64 {
            all.update(self.rest.finalize());
        }
        Piece { bytes: self.bytes, size_bytes: self.size_bytes, fingerprint: all.finalize().into() }
    }
}

#[derive(Default)]
struct TotalBuilder {
    size_bytes: u64,
    hasher: Sha256,
}

impl TotalBuilder {
    fn add(&mut self, piece: &Piece) {
        self.size_bytes += piece.size_bytes;
        match piece.is_whole() {
            true => self.hasher.update(&piece.bytes),
            false => self.hasher.update(piece.fingerprint),
        }
    }

    fn finish(self) -> StreamTotal {
        StreamTotal { size_bytes: self.size_bytes, fingerprint: self.hasher.finalize().into() }
    }
}

/// Pieces that are kept once however often they occur.
#[derive(Default)]
struct PieceStore {
    pieces: HashMap<[u8; 32], Arc<Piece>>,
    kept_bytes: usize,
}

impl PieceStore {
    fn shared(&mut self, mut piece: Piece) -> Arc<Piece> {
        if let Some(known) = self.pieces.get(&piece.fingerprint) {
            return known.clone();
        }
        if self.kept_bytes + piece.bytes.len() > KEPT_BYTES {
            piece.bytes = Vec::new();
        }
        self.kept_bytes += piece.bytes.len();
        let piece = Arc::new(piece);
        self.pieces.insert(piece.fingerprint, piece.clone());
        piece
    }
}

#[derive(Default)]
struct OpenConnection {
    request: PieceBuilder,
    answer: PieceBuilder,
    exchanges: Vec<Exchange>,
    further: u64,
    received: TotalBuilder,
    sent: TotalBuilder,
    settings: String,
}

/// Takes in the connections of one run. Connections are numbered from 0 in the order in which they were accepted.
pub struct ConnectionCollector {
    folder: Vec<u8>,
    store: PieceStore,
    connections: Vec<OpenConnection>,
    kept_exchanges: usize,
}

impl ConnectionCollector {
    /// A collector for a run in this folder, whose path does not count. An empty folder leaves the path unreplaced.
    pub fn new(folder: &[u8]) -> Self {
        Self {
            folder: folder.to_vec(),
            store: PieceStore::default(),
            connections: Vec::new(),
            kept_exchanges: 0,
        }
    }

    /// A connection was accepted; returns its number.
    pub fn accepted(&mut self) -> usize {
        self.connections.push(OpenConnection::default());
        self.connections.len() - 1
    }

    /// Bytes came from the client.
    pub fn received(&mut self, connection: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.connections.get(connection).is_some_and(|open| !open.answer.is_empty()) {
            self.end_exchange(connection);
        }
        if let Some(open) = self.connections.get_mut(connection) {
            open.request.add(bytes);
        }
    }

    /// Bytes went to the client.
    pub fn sent(&mut self, connection: usize, bytes: &[u8]) {
        if let Some(open) = self.connections.get_mut(connection) {
            open.answer.add(bytes);
        }
    }

    /// Another call acted on the connection's socket.
    pub fn called(&mut self, connection: usize, words: &str) {
        if let Some(open) = self.connections.get_mut(connection) {
            open.settings.push_str(words);
            open.settings.push('\n');
        }
    }

    /// The collected connections.
    pub fn finish(mut self) -> Vec<Connection> {
        (0..self.connections.len()).for_each(|connection| self.end_exchange(connection));
        let Self { mut store, connections, .. } = self;
        let done = connections.into_iter().map(|open| Connection {
            exchanges: open.exchanges,
            further: open.further,
            received: open.received.finish(),
            sent: open.sent.finish(),
            settings: store.shared(Piece::of(open.settings.as_bytes())),
        });
        done.collect()
    }

    fn end_exchange(&mut self, connection: usize) {
        let Some(open) = self.connections.get_mut(connection) else { return };
        let [request, answer] = [std::mem::take(&mut open.request), std::mem::take(&mut open.answer)];
        if request.is_empty() && answer.is_empty() {
            return;
        }
        let [request, answer] = [request, answer].map(|builder| builder.finish(&self.folder));
        open.received.add(&request);
        open.sent.add(&answer);
        if self.kept_exchanges >= KEPT_EXCHANGES {
            open.further += 1;
            return;
        }
        self.kept_exchanges += 1;
        let [request, answer] = [request, answer].map(|piece| self.store.shared(piece));
        open.exchanges.push(Exchange { request, answer });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(connection: &Connection) -> Vec<(&[u8], &[u8])> {
        let exchanges = connection.exchanges.iter();
        exchanges.map(|one| (one.request.bytes.as_slice(), one.answer.bytes.as_slice())).collect()
    }

    #[test]
    fn an_exchange_ends_where_bytes_come_in_after_an_answer() {
        let mut collector = ConnectionCollector::new(b"");
        let one = collector.accepted();
        for (is_request, bytes) in
            [(false, "hi\n"), (true, "a"), (true, "b"), (false, "A"), (false, "B"), (true, "c")]
        {
            match is_request {
                true => collector.received(one, bytes.as_bytes()),
                false => collector.sent(one, bytes.as_bytes()),
            }
        }
        let done = collector.finish();
        let expected: [(&[u8], &[u8]); 3] = [(b"", b"hi\n"), (b"ab", b"AB"), (b"c", b"")];
        assert_eq!(shown(&done[0]), expected);
    }

    #[test]
    fn totals_do_not_depend_on_how_a_stream_is_cut_into_exchanges() {
        let mut collector = ConnectionCollector::new(b"");
        let [one, other] = [collector.accepted(), collector.accepted()];
        for byte in [b"x", b"y"] {
            collector.received(one, byte);
            collector.sent(one, byte);
        }
        collector.received(other, b"xy");
        collector.sent(other, b"xy");
        let done = collector.finish();
        assert_eq!((done[0].received, done[0].sent), (done[1].received, done[1].sent));
        assert_ne!(done[0].exchanges.len(), done[1].exchanges.len());
    }

    #[test]
    fn the_runs_folder_and_long_answers_do_not_confuse_the_fingerprint() {
        let mut long = vec![b'x'; KEPT_PIECE_BYTES + 10];
        let one = Piece::of(&long);
        assert!(!one.is_whole());
        *long.last_mut().unwrap() = b'y';
        assert_ne!(one.fingerprint, Piece::of(&long).fingerprint);
        let answer = |folder: &[u8], text: &[u8]| {
            let mut collector = ConnectionCollector::new(folder);
            let number = collector.accepted();
            collector.sent(number, text);
            collector.finish()
        };
        assert_eq!(answer(b"/tmp/a", b"in /tmp/a/x"), answer(b"/tmp/b", b"in /tmp/b/x"));
    }
}
