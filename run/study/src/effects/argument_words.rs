//! Arguments of system calls in words.

use super::calls::ArgumentSize;
use super::memory;
use super::ptrace::Tid;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A socket address in words.
pub(super) fn address(bytes: &[u8]) -> String {
    let family = bytes.first_chunk::<2>().map(|family| i32::from(u16::from_ne_bytes(*family)));
    let port = || bytes.get(2..4).map_or(0, |port| u16::from(port[0]) << 8 | u16::from(port[1]));
    let part = |from: usize, to: usize| bytes.get(from..to).unwrap_or_default();
    match family {
        Some(libc::AF_INET) => match <[u8; 4]>::try_from(part(4, 8)) {
            Ok(ip) => format!("{}:{}", Ipv4Addr::from(ip), port()),
            Err(_) => "a short address".into(),
        },
        Some(libc::AF_INET6) => match <[u8; 16]>::try_from(part(8, 24)) {
            Ok(ip) => format!("[{}]:{}", Ipv6Addr::from(ip), port()),
            Err(_) => "a short address".into(),
        },
        Some(libc::AF_UNIX) => {
            let name = bytes.get(2..).unwrap_or_default();
            let path = name.strip_prefix(&[0]).unwrap_or(name).split(|byte| *byte == 0).next();
            format!("local {}", String::from_utf8_lossy(path.unwrap_or_default()))
        }
        Some(family) => format!("address family {family}"),
        None => "no address".into(),
    }
}

/// A request to a device: its name, and its argument's size in bytes.
pub(super) struct Request {
    pub(super) words: String,
    /// `None` when neither the request's number nor the list of old requests gives it.
    pub(super) size_bytes: Option<u64>,
    /// True when it only queries the device.
    pub(super) is_query: bool,
}

/// Old requests whose numbers do not encode the size of their argument: number, name, bytes. An argument that the
/// kernel only writes has 0 bytes.
const OLD_REQUESTS: &[(u64, &str, u64)] = &[
    (libc::TCGETS, "TCGETS", 0),
    (libc::TCSETS, "TCSETS", 36),
    (libc::TCSETSW, "TCSETSW", 36),
    (libc::TCSETSF, "TCSETSF", 36),
    (libc::TIOCGWINSZ, "TIOCGWINSZ", 0),
    (libc::TIOCSWINSZ, "TIOCSWINSZ", 8),
    (libc::TIOCGPGRP, "TIOCGPGRP", 0),
    (libc::TIOCSPGRP, "TIOCSPGRP", 4),
    (libc::TIOCSCTTY, "TIOCSCTTY", 0),
    (libc::TIOCNOTTY, "TIOCNOTTY", 0),
    (libc::FIONREAD, "FIONREAD", 0),
    (libc::FIONBIO, "FIONBIO", 4),
    (libc::FIOASYNC, "FIOASYNC", 4),
    (libc::FIOCLEX, "FIOCLEX", 0),
    (libc::FIONCLEX, "FIONCLEX", 0),
    (libc::SIOCGIFCONF, "SIOCGIFCONF", 16),
    (libc::SIOCGIFNAME, "SIOCGIFNAME", 40),
    (libc::SIOCGIFFLAGS, "SIOCGIFFLAGS", 40),
    (libc::SIOCSIFFLAGS, "SIOCSIFFLAGS", 40),
    (libc::SIOCGIFADDR, "SIOCGIFADDR", 40),
    (libc::SIOCSIFADDR, "SIOCSIFADDR", 40),
    (libc::SIOCGIFINDEX, "SIOCGIFINDEX", 40),
    (libc::SIOCGIFHWADDR, "SIOCGIFHWADDR", 40),
    (libc::SIOCGIFMTU, "SIOCGIFMTU", 40),
];

/// Requests that only ask for a terminal's properties, or for the number of bytes that can be read.
const QUERIES: &[&str] = &["TCGETS", "TIOCGWINSZ", "TIOCGPGRP", "FIONREAD", "FIOCLEX", "FIONCLEX"];

/// Decodes a request's number. Bits 0 to 7 hold its own number, 8 to 15 the kind of device, 16 to 29 the size. Bit 30
/// means that the kernel reads the argument (`_IOW`), bit 31 that it writes it (`_IOR`).
pub(super) fn request(number: u64) -> Request {
    let number = number & 0xffff_ffff;
    if let Some((_, name, size_bytes)) = OLD_REQUESTS.iter().find(|(old, _, _)| *old == number) {
        let is_query = QUERIES.contains(name);
        return Request { words: (*name).to_owned(), size_bytes: Some(*size_bytes), is_query };
    }
    let (size, direction) = (number >> 16 & 0x3fff, number >> 30);
    let size_bytes = match direction {
        0 => None,
        2 => Some(0),
        _ => Some(size),
    };
    Request { words: format!("request {number:#x}"), size_bytes, is_query: false }
}

/// An argument's size in bytes.
pub(super) fn argument_bytes(tid: Tid, size: ArgumentSize, address: u64, arguments: &[u64; 6]) -> u64 {
    match size {
        ArgumentSize::Place(place) => arguments.get(place).copied().unwrap_or(0),
        ArgumentSize::Inside(offset) => {
            let size = memory::bytes(tid, address.wrapping_add(offset), 4);
            size.first_chunk::<4>().map_or(0, |size| u64::from(u32::from_ne_bytes(*size)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requests_number_tells_how_many_bytes_it_hands_over() {
        // _IOW('U', 13, 24 bytes), _IOWR of the same, _IOR of the same, _IO.
        assert_eq!(request(0x4018_550d).size_bytes, Some(24));
        assert_eq!(request(0xc018_550d).size_bytes, Some(24));
        assert_eq!(request(0x8018_550d).size_bytes, Some(0));
        assert_eq!(request(0x550d).size_bytes, None);
        assert_eq!(request(libc::FIONBIO).size_bytes, Some(4));
        assert!(request(libc::TCGETS).is_query);
    }

    #[test]
    fn addresses_are_told_in_words() {
        assert_eq!(address(&[2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]), "127.0.0.1:8080");
        assert_eq!(address(b"\x01\0/run/x\0"), "local /run/x");
        assert_eq!(address(b"\x01\0\0abstract"), "local abstract");
        assert_eq!(address(&[2, 0, 1]), "a short address");
        assert_eq!(address(&[]), "no address");
    }
}
