//! Packets of Arm's Statistical Profiling Extension: a head of one byte or two, then a value of 1, 2, 4 or 8 bytes.

/// A packet of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet {
    /// Nothing: it fills room.
    Padding,
    /// The record ends, without a time.
    End,
    /// The record ends at this time, in ticks of the machine's timer.
    Timestamp(u64),
    /// The events, one bit each.
    Events(u64),
    /// The data source, in the processor's numbers.
    Source(u16),
    /// The kernel's context of the thread: its number.
    Context(u32),
    /// The kind of instruction: its class, and the detail within the class.
    Operation {
        /// The class.
        class: u8,
        /// The detail within it.
        detail: u8,
    },
    /// An address, by its kind.
    Address {
        /// The kind of address.
        index: u8,
        /// The address, with the bits in its top byte.
        value: u64,
    },
    /// A count of cycles, by its kind.
    Counter {
        /// The kind of count.
        index: u8,
        /// The number of cycles.
        cycles: u16,
    },
    /// An unknown packet of known length.
    Unknown,
}

const PADDING: u8 = 0;
const END: u8 = 1;
const TIMESTAMP: u8 = 0x71;
const EVENTS: u8 = 0x42;
const SOURCE: u8 = 0x43;
const CONTEXT: u8 = 0x64;
const OPERATION: u8 = 0x48;
const ADDRESS: u8 = 0xb0;
const COUNTER: u8 = 0x98;
/// The first byte of a head of two bytes. Its lowest bits are the highest of the index.
const EXTENDED: u8 = 0x20;
/// The second byte of a head of two bytes that asks for alignment.
const ALIGNMENT: u8 = 0;
/// Bits of a head that give the size of its value.
const SIZE: u8 = 0x30;

/// The packet at the start of some bytes, with its length. `position` is where it begins in the trace. `None` when the
/// bytes end before it does.
///
/// ```
/// use lineup_samples::spe::{Packet, packet};
///
/// assert_eq!(packet(&[0x98, 0x2c, 0x01, 0x71], 0), Some((Packet::Counter { index: 0, cycles: 300 }, 3)));
/// assert_eq!(packet(&[0x71, 0x01], 3), None);
/// ```
pub fn packet(bytes: &[u8], position: u64) -> Option<(Packet, usize)> {
    let head = *bytes.first()?;
    if head & !3 == EXTENDED {
        return extended(head, bytes, position);
    }
    let short = match head {
        PADDING => Some(Packet::Padding),
        END => Some(Packet::End),
        // Heads of this kind have no value.
        _ if head >> 6 == 0 => Some(Packet::Unknown),
        _ => None,
    };
    if let Some(packet) = short {
        return Some((packet, 1));
    }
    let (value, length) = value(head, bytes.get(1..)?)?;
    let packet = match head {
        TIMESTAMP => Packet::Timestamp(value),
        _ if head & !SIZE == EVENTS => Packet::Events(value),
        _ if head & !SIZE == SOURCE => Packet::Source(value as u16),
        _ if head & !3 == CONTEXT => Packet::Context(value as u32),
        _ if head & !3 == OPERATION => Packet::Operation { class: head & 3, detail: value as u8 },
        _ => indexed(head, 0, value),
    };
    Some((packet, 1 + length))
}

/// One with a head of two bytes.
fn extended(head: u8, bytes: &[u8], position: u64) -> Option<(Packet, usize)> {
    let second = *bytes.get(1)?;
    if second == ALIGNMENT {
        let boundary = 1u64 << ((head & 3) + 1);
        let length = position.wrapping_add(2).wrapping_neg() % boundary + 2;
        return (bytes.len() as u64 >= length).then_some((Packet::Padding, length as usize));
    }
    if second >> 6 == 0 {
        return Some((Packet::Unknown, 2));
    }
    let (value, length) = value(second, bytes.get(2..)?)?;
    Some((indexed(second, (head & 3) << 3, value), 2 + length))
}

/// Addresses and counters, whose heads are the same whether they have one byte or two.
fn indexed(head: u8, above: u8, value: u64) -> Packet {
    let index = above | head & 7;
    match head & !7 {
        ADDRESS => Packet::Address { index, value },
        COUNTER => Packet::Counter { index, cycles: value as u16 },
        _ => Packet::Unknown,
    }
}

/// The value behind a head, and how many bytes it has.
fn value(head: u8, behind: &[u8]) -> Option<(u64, usize)> {
    let length = 1usize << ((head & SIZE) >> 4);
    let mut word = [0; 8];
    word.get_mut(..length)?.copy_from_slice(behind.get(..length)?);
    Some((u64::from_le_bytes(word), length))
}
