//! Messages as bytes: a header with the length, an empty line, JSON.

use crate::error::LspError;
use serde_json::Value;

/// Longer messages are refused: an editor sends whole texts, and no text is that long.
pub const MOST_BYTES: usize = 64 << 20;

/// Longer headers are not taken.
const MOST_HEADER_BYTES: usize = 4096;

/// Bytes that arrived and are not yet a message.
#[derive(Default, Debug)]
pub struct Incoming {
    bytes: Vec<u8>,
    /// Bytes before this one were looked through for the header's end.
    looked: usize,
}

/// The content of a message.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// JSON.
    Json(Value),
    /// Other bytes of the length in their header: the next message can be read.
    NotJson(String),
}

impl Incoming {
    /// Takes bytes as they arrive.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// True when part of a message has arrived.
    pub fn is_begun(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The next message, when all of it has arrived.
    ///
    /// # Errors
    /// [`LspError::Framing`] when it cannot be known where the message ends.
    pub fn next_message(&mut self) -> Result<Option<Message>, LspError> {
        let Some(end) = self.header_end()? else { return Ok(None) };
        let length = content_length(&self.bytes[..end])?;
        let body = end + HEADER_END.len();
        if self.bytes.len() - body < length {
            return Ok(None);
        }
        let message = match serde_json::from_slice(&self.bytes[body..body + length]) {
            Ok(value) => Message::Json(value),
            Err(error) => Message::NotJson(error.to_string()),
        };
        self.bytes.drain(..body + length);
        self.looked = 0;
        Ok(Some(message))
    }

    fn header_end(&mut self) -> Result<Option<usize>, LspError> {
        let from = self.looked.saturating_sub(HEADER_END.len());
        let rest = &self.bytes[from..];
        let found = rest.windows(HEADER_END.len()).position(|window| window == HEADER_END);
        let end = found.map(|at| from + at);
        if end.unwrap_or(self.bytes.len()) > MOST_HEADER_BYTES {
            return Err(LspError::Framing {
                what: format!("a header of more than {MOST_HEADER_BYTES} bytes"),
            });
        }
        // Found again at once while the body arrives.
        self.looked = end.unwrap_or(self.bytes.len());
        Ok(end)
    }
}

const HEADER_END: &[u8] = b"\r\n\r\n";

fn content_length(header: &[u8]) -> Result<usize, LspError> {
    let error = |what: String| LspError::Framing { what };
    let header = std::str::from_utf8(header).map_err(|_| error("a header that is not text".into()))?;
    let named = header.split("\r\n").filter_map(|line| line.split_once(':'));
    let mut lengths = named.filter(|(name, _)| name.trim().eq_ignore_ascii_case("content-length"));
    let (_, length) = lengths.next().ok_or_else(|| error("a header without Content-Length".into()))?;
    let length = length.trim();
    let number = length.parse::<usize>().map_err(|_| error(format!("a length of {length:?}")))?;
    if number > MOST_BYTES {
        return Err(error(format!("{number} bytes, and {MOST_BYTES} are the most")));
    }
    Ok(number)
}

/// A message in the form in which it is sent.
pub fn outgoing(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_come_out_whole_however_their_bytes_arrive() {
        let sent = [json!({ "a": "ä" }), json!([1]), json!(null)];
        let bytes: Vec<u8> = sent.iter().flat_map(outgoing).collect();
        for step in [1, 2, 3, 7, bytes.len()] {
            let mut incoming = Incoming::default();
            let mut got = Vec::new();
            for piece in bytes.chunks(step) {
                incoming.push(piece);
                while let Some(message) = incoming.next_message().expect("a header") {
                    got.push(message);
                }
            }
            assert_eq!(got, sent.clone().map(Message::Json), "{step} bytes at a time");
            assert!(!incoming.is_begun());
        }
    }

    #[test]
    fn what_is_not_json_is_passed_over_and_what_has_no_length_ends_it() {
        let mut incoming = Incoming::default();
        incoming.push(b"content-length: 3\r\nContent-Type: x\r\n\r\n{a}Content-Length: 2\r\n\r\n{}");
        assert!(matches!(incoming.next_message(), Ok(Some(Message::NotJson(_)))));
        assert_eq!(incoming.next_message().expect("the next"), Some(Message::Json(json!({}))));
        for header in
            ["Content-Length: -1", "Content-Length: 99999999999999999999", "X: 3", "Content-Length: 67108865"]
        {
            let mut incoming = Incoming::default();
            incoming.push(format!("{header}\r\n\r\n{{}}").as_bytes());
            assert!(incoming.next_message().is_err(), "{header}");
        }
        let mut endless = Incoming::default();
        endless.push(&[b'a'; MOST_HEADER_BYTES + 1]);
        assert!(endless.next_message().is_err());
        let mut nested = Incoming::default();
        let deep = "[".repeat(100_000);
        nested.push(format!("Content-Length: {}\r\n\r\n{deep}", deep.len()).as_bytes());
        assert!(matches!(nested.next_message(), Ok(Some(Message::NotJson(_)))));
    }
}
