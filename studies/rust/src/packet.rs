//! What travels.

/// What a packet carries: an enum whose variants differ in size.
pub enum Payload {
    /// Nothing but the header.
    Probe,
    /// A number.
    Reading(u64),
    /// Text, on the heap.
    Message(Box<str>),
    /// Samples, on the heap.
    Samples(Vec<u32>),
}

impl Payload {
    /// How many bytes it takes on the wire.
    pub fn wire_bytes(&self) -> u32 {
        match self {
            Payload::Probe => 0,
            Payload::Reading(_) => 8,
            Payload::Message(text) => text.len() as u32,
            Payload::Samples(samples) => 4 * samples.len() as u32,
        }
    }

    /// A number that depends on the contents.
    pub fn digest(&self) -> u64 {
        match self {
            Payload::Probe => 1,
            Payload::Reading(value) => *value,
            Payload::Message(text) => {
                text.bytes().fold(7, |sum, byte| sum * 31 % 1_000_003 + u64::from(byte))
            }
            Payload::Samples(samples) => samples.iter().fold(0, |sum, sample| sum + u64::from(*sample)),
        }
    }
}

/// A packet under way. Its members are in the order that the compiler chooses.
pub struct Packet {
    /// What it carries.
    pub payload: Payload,
    /// Where it came from.
    pub source: u16,
    /// Where it goes.
    pub destination: u16,
    /// How many more hops it may make.
    pub hops_left: u8,
    /// Who sent it, for people to read.
    pub label: String,
    /// When it was sent.
    pub sent_at: u64,
    /// How many bytes it has moved so far, over all hops.
    pub moved_bytes: u64,
}
