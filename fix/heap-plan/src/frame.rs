//! Return addresses by module and offset.

use std::fmt;

/// The longest chain of return addresses that names a site: its own, and those of four callers.
pub const CALLERS: usize = 5;

/// The longest build id that is kept, in bytes: SHA-1 has 20.
const LONGEST: usize = 32;

/// A module's build id, as its linker wrote it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BuildId {
    bytes: [u8; LONGEST],
    length: u8,
}

impl BuildId {
    /// Of the note's bytes; `None` where there is none, or too many.
    pub fn new(of: &[u8]) -> Option<Self> {
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..of.len()).filter(|room| !room.is_empty())?.copy_from_slice(of);
        Some(BuildId { bytes, length: of.len() as u8 })
    }

    fn parse(text: &str) -> Option<Self> {
        let (mut bytes, length) = ([0; LONGEST], text.len() / 2);
        if !text.len().is_multiple_of(2) || length > LONGEST || !text.is_ascii() {
            return None;
        }
        for (byte, at) in bytes.iter_mut().zip((0..text.len()).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
        }
        BuildId::new(&bytes[..length])
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes[..usize::from(self.length)].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One return address. Its text is `BUILDID+0xOFFSET`, with `/DISTANCE` where its caller's follows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Frame {
    /// The module that it lies in.
    pub module: BuildId,
    /// Its address less the module's load bias.
    pub offset: u64,
    /// Bytes on the stack from this return address to that of the caller; `None` in the last frame.
    pub distance: Option<u32>,
}

impl Frame {
    /// Reads the text.
    pub fn parse(text: &str) -> Option<Self> {
        let (place, distance) = match text.split_once('/') {
            Some((place, distance)) => (place, Some(distance.parse().ok()?)),
            None => (text, None),
        };
        let (module, offset) = place.split_once("+0x")?;
        let offset = u64::from_str_radix(offset, 16).ok()?;
        Some(Frame { module: BuildId::parse(module)?, offset, distance })
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", self.module, self.offset)?;
        match self.distance {
            Some(distance) => write!(f, "/{distance}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_is_written() {
        for text in ["0a1b+0x12", "00ff00ff+0x0/16"] {
            assert_eq!(Frame::parse(text).expect("a frame").to_string(), text);
        }
        let long = format!("{}+0x1", "ab".repeat(LONGEST + 1));
        for text in
            ["", "+0x1", "abc+0x1", "ab+1", "ab+0xg", "ab+0x1/", "ab+0x1/-1", "é1+0x1", "zz+0x1", &long]
        {
            assert_eq!(Frame::parse(text), None, "{text}");
        }
    }
}
