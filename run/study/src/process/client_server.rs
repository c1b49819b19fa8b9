//! A client and its server: the client starts when the server listens, and the server is ended when the client is done.

use crate::error::{Doing, Error, Result};
use crate::process::child::{Course, Finished, Streams, Waiting};
use crate::process::descendants::Descendants;
use crate::process::leftovers;
use crate::process::run::{Drive, Run, Stopped};
use lineup_prove::run::Ending;
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// The polling interval for the server's state.
const LOOK: Duration = Duration::from_millis(20);

/// The longest wait for a server to listen: it may run under an emulator.
const READY: Duration = Duration::from_secs(60);

/// The grace period of a server that its client asked to end, and of a client whose server has ended.
const FAREWELL: Duration = Duration::from_millis(500);

/// The state of a listening TCP socket and of a bound UDP socket in `/proc/net`, from the kernel's `tcp_states.h`.
const LISTENING: &str = "0A";
const BOUND: &str = "07";

/// The flag of a listening Unix socket in `/proc/net/unix`: `__SO_ACCEPTCON`.
const ACCEPTS: u64 = 0x10000;

/// Runs the client of a server that was released. Returns the reason to end the server, if there is one, and the
/// client's result. A client that fails is an error.
pub(crate) fn drive(
    server: &mut Waiting,
    drive: &Drive,
    deadline: Option<Instant>,
) -> Result<(Option<Stopped>, Option<Finished>)> {
    let line = &drive.line;
    if !await_readiness(server, drive)? {
        return Err(Error::Client(format!("the program ended before its client `{line}` was started")));
    }
    let (run, interrupts) = server.origin();
    let client = Run {
        command: ["/bin/sh", "-c", line].map(Into::into).to_vec(),
        directory: run.directory.clone(),
        environment: run.environment.clone(),
        ..Run::default()
    };
    let mut client = Waiting::start(&client, Streams::Captured, interrupts)?;
    let began = Instant::now();
    client.release()?;
    while !client.wait_until(Some(Instant::now() + LOOK))? {
        interrupts.check()?;
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok((Some(Stopped::Time), None));
        }
        if server.is_over(Duration::ZERO)? && !client.wait_until(Some(Instant::now() + FAREWELL))? {
            return Err(Error::Client(format!(
                "the program ended while its client `{line}` was still at work"
            )));
        }
    }
    let (wall, left_running) = leftovers::settle(&client, began, None)?;
    let client = client.conclude(Course { wall, stopped: None, left_running, client: None })?;
    if client.ending != Ending::Exited(0) {
        let said = String::from_utf8_lossy(&client.stderr.head);
        let what = format!("the client `{line}` failed ({}): {}", client.ending, said.trim());
        return Err(Error::Client(what));
    }
    let farewell = Instant::now() + FAREWELL;
    let mut ended = server.is_over(LOOK)?;
    while !ended && Instant::now() < farewell {
        ended = server.is_over(LOOK)?;
    }
    Ok(((!ended).then_some(Stopped::Driven), Some(client)))
}

/// Waits until the client may start; false when the server has ended.
fn await_readiness(server: &Waiting, drive: &Drive) -> Result<bool> {
    if let Some(after) = drive.after {
        let start = Instant::now() + after;
        server.wait_until(Some(start))?;
        std::thread::sleep(start.saturating_duration_since(Instant::now()));
        return Ok(!server.is_over(Duration::ZERO)?);
    }
    let latest = Instant::now() + READY;
    while !listens(&server.descendants()) {
        if server.is_over(LOOK)? {
            return Ok(false);
        }
        server.origin().1.check()?;
        if Instant::now() >= latest {
            return Err(Error::Client(format!(
                "the program listens on no socket after {} s, so its client `{}` was not started; start it after a \
                 fixed time with --drive-after SECONDS",
                READY.as_secs(),
                drive.line
            )));
        }
    }
    Ok(true)
}

/// True when one of the processes has a socket that clients can reach.
fn listens(descendants: &Descendants) -> bool {
    descendants.living().iter().any(|one| has_reachable_socket(one.pid))
}

fn has_reachable_socket(process: Pid) -> bool {
    let sockets = sockets_of(process);
    !sockets.is_empty() && !reachable(process).unwrap_or_default().is_disjoint(&sockets)
}

/// The numbers of all sockets that a process has open.
fn sockets_of(process: Pid) -> BTreeSet<u64> {
    let entries =
        fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero())).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    links
        .filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
        .collect()
}

/// The numbers of the sockets in a process's network that clients can reach.
fn reachable(process: Pid) -> Result<BTreeSet<u64>> {
    let read = |table: &str| {
        let path = format!("/proc/{}/net/{table}", process.as_raw_nonzero());
        fs::read_to_string(&path).doing_with(|| format!("cannot read {path}"))
    };
    let mut numbers = BTreeSet::new();
    for (table, state) in [("tcp", LISTENING), ("tcp6", LISTENING), ("udp", BOUND), ("udp6", BOUND)] {
        // A machine without IPv6 has no such table.
        numbers
            .extend(read(table).unwrap_or_default().lines().filter_map(|line| internet_socket(line, state)));
    }
    numbers.extend(read("unix")?.lines().filter_map(unix_socket));
    Ok(numbers)
}

/// `sl local remote st queues timer retransmits uid timeout inode …`.
fn internet_socket(line: &str, state: &str) -> Option<u64> {
    let mut columns = line.split_whitespace().skip(3);
    (columns.next()? == state).then_some(())?;
    columns.nth(5)?.parse().ok()
}

/// `address: references protocol flags type state inode path`.
fn unix_socket(line: &str) -> Option<u64> {
    let mut columns = line.split_whitespace().skip(3);
    let flags = u64::from_str_radix(columns.next()?, 16).ok()?;
    (flags & ACCEPTS != 0).then_some(())?;
    columns.nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_that_listen_are_told_from_others() {
        let tcp = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41234 1 x";
        assert_eq!(internet_socket(tcp, LISTENING), Some(41234));
        assert_eq!(internet_socket(&tcp.replace(" 0A ", " 01 "), LISTENING), None);
        let unix = "ffff: 00000002 00000000 00010000 0001 01 5551 /run/x";
        assert_eq!(unix_socket(unix), Some(5551));
        assert_eq!(unix_socket(&unix.replace("00010000", "00000000")), None);
        assert_eq!(unix_socket("Num       RefCount Protocol Flags    Type St Inode Path"), None);
    }

    #[test]
    fn a_socket_of_this_process_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(has_reachable_socket(rustix::process::getpid()));
        drop(listener);
    }
}
