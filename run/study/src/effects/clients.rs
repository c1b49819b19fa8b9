//! The connections that the run's processes accept, whichever process or thread serves them.

use super::ptrace::Tid;
use lineup_prove::effects::{Call, Connection, ConnectionCollector};
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};

/// The bytes of one read of a file that the kernel moved to a client.
const PART_BYTES: usize = 1 << 16;

/// Connections by the numbers of their sockets, which all processes of a run share.
pub(super) struct Clients {
    connections: HashMap<u64, usize>,
    collector: ConnectionCollector,
}

impl Clients {
    /// No connection yet, in a run whose folder's path does not count.
    pub(super) fn new(hidden: &[u8]) -> Self {
        Self { connections: HashMap::new(), collector: ConnectionCollector::new(hidden) }
    }

    /// A call gave a connection this descriptor.
    pub(super) fn accepted(&mut self, tid: Tid, number: u64) {
        if let Some(socket) = socket(tid, number) {
            let connection = self.collector.accepted();
            self.connections.insert(socket, connection);
        }
    }

    /// The connection behind a descriptor.
    pub(super) fn of(&self, tid: Tid, number: u64) -> Option<usize> {
        if self.connections.is_empty() {
            return None;
        }
        self.connections.get(&socket(tid, number)?).copied()
    }

    pub(super) fn received(&mut self, connection: usize, bytes: &[u8]) {
        self.collector.received(connection, bytes);
    }

    pub(super) fn sent(&mut self, connection: usize, bytes: &[u8]) {
        self.collector.sent(connection, bytes);
    }

    /// A call that sent nothing acted on the connection.
    pub(super) fn called(&mut self, connection: usize, name: &str, call: &Call) {
        let hex: String = call.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.collector.called(connection, format!("{name} {} {hex}", call.what).trim_end());
    }

    /// The kernel sent bytes of an open file; false when they cannot be read any more.
    pub(super) fn sent_from_file(
        &mut self,
        connection: usize,
        (tid, number): (Tid, u64),
        offset: u64,
        size_bytes: u64,
    ) -> bool {
        let path = format!("/proc/{tid}/fd/{number}");
        let is_file = fs::metadata(&path).is_ok_and(|about| about.is_file());
        let Some(file) = is_file.then(|| File::open(path).ok()).flatten() else { return false };
        let mut buffer = vec![0; PART_BYTES];
        let mut done = 0;
        while done < size_bytes {
            let wanted = usize::try_from(size_bytes - done).unwrap_or(PART_BYTES).min(PART_BYTES);
            match file.read_at(&mut buffer[..wanted], offset + done) {
                Ok(count) if count > 0 => {
                    self.sent(connection, &buffer[..count]);
                    done += count as u64;
                }
                _ => return false,
            }
        }
        true
    }

    /// All connections of the run.
    pub(super) fn finish(self) -> Vec<Connection> {
        self.collector.finish()
    }
}

/// The number of the socket behind a descriptor.
fn socket(tid: Tid, number: u64) -> Option<u64> {
    // Descriptors are 32-bit numbers; the upper half of the register may hold anything.
    let about = fs::metadata(format!("/proc/{tid}/fd/{}", number as i32)).ok()?;
    about.file_type().is_socket().then(|| about.ino())
}
