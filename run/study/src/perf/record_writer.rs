//! Takes records out of the kernel's buffers, into a file, while the program runs.

use crate::perf::open_events::OpenEvents;
use lineup_samples::container::{About, Container};
use lineup_samples::synthetic_records::SyntheticRecord;
use perf_event::Sampler;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The interval between reads of the buffers. A buffer holds the records of many intervals.
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes that are written at once.
const WRITTEN_AT_ONCE: usize = 1 << 18;
/// Numbers of records.
const LOST: u32 = 2;
const THROTTLED: u32 = 5;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
/// The offsets of a sample's identity and time: first is its identity, then instruction, thread, time.
const ID_AT: usize = 0;
const TIME_AT: usize = 24;

/// The numbers of written records.
#[derive(Clone, Default, Debug)]
pub(super) struct Counts {
    /// Samples of each event, in the events' order.
    pub(super) samples: Vec<u64>,
    pub(super) lost_records: u64,
    pub(super) lost_samples: u64,
    pub(super) throttled: u64,
    /// The latest time of a sample.
    latest_ns: u64,
}

/// The file and the buffers.
pub(super) struct RecordWriter {
    opened: OpenEvents,
    container: Container<BufWriter<File>>,
    event_by_id: HashMap<u64, usize>,
    counts: Counts,
}

impl RecordWriter {
    /// Begins the file with the records that are known already.
    pub(super) fn begin(
        file: File,
        opened: OpenEvents,
        known: &[SyntheticRecord],
    ) -> io::Result<RecordWriter> {
        let descriptions: Vec<_> = opened.events.iter().map(|event| event.description.clone()).collect();
        let ids = descriptions.iter().enumerate();
        let event_by_id =
            ids.flat_map(|(number, event)| event.ids.iter().map(move |id| (*id, number))).collect();
        let counts = Counts { samples: vec![0; descriptions.len()], ..Counts::default() };
        let mut container = Container::file(BufWriter::with_capacity(WRITTEN_AT_ONCE, file), descriptions)?;
        known.iter().try_for_each(|made| container.record(made.number, made.misc, &made.body))?;
        Ok(RecordWriter { opened, container, event_by_id, counts })
    }

    /// Writes the incoming records until it is over, and ends the file.
    pub(super) fn run(mut self, is_over: &AtomicBool, about: &About) -> io::Result<(Counts, File)> {
        loop {
            // Asked before the last round, so that nothing stays behind.
            let is_last = is_over.load(Ordering::Acquire);
            self.round()?;
            if is_last {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.tell_lost()?;
        let file = self.container.finish(about)?.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok((self.counts, file))
    }

    /// Empties every buffer once.
    fn round(&mut self) -> io::Result<()> {
        let mut had_some = false;
        for buffer in self.opened.buffers.values_mut() {
            had_some |= drain(buffer, &mut self.container, &self.event_by_id, &mut self.counts)?;
        }
        if had_some { self.container.round() } else { Ok(()) }
    }

    /// The last lost records have no record of their own: the kernel writes one when there is room for the next.
    fn tell_lost(&mut self) -> io::Result<()> {
        let untold = self.opened.lost().saturating_sub(self.counts.lost_records);
        if untold == 0 {
            return Ok(());
        }
        self.counts.lost_records += untold;
        let lost = self.opened.maker().lost(untold, self.counts.latest_ns);
        self.container.record(lost.number, lost.misc, &lost.body)?;
        self.container.round()
    }
}

fn drain(
    buffer: &mut Sampler,
    container: &mut Container<BufWriter<File>>,
    event_by_id: &HashMap<u64, usize>,
    counts: &mut Counts,
) -> io::Result<bool> {
    let mut had_some = false;
    while let Some(record) = buffer.next_record() {
        had_some = true;
        let body = record.to_contiguous();
        counts.see(record.ty(), &body, event_by_id);
        container.record(record.ty(), record.misc(), &body)?;
    }
    Ok(had_some)
}

fn word(body: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(body.get(at..at + 8)?.try_into().ok()?))
}

impl Counts {
    fn see(&mut self, number: u32, body: &[u8], event_by_id: &HashMap<u64, usize>) {
        match number {
            SAMPLE => {
                let event = word(body, ID_AT).and_then(|id| event_by_id.get(&id));
                if let Some(count) = event.and_then(|event| self.samples.get_mut(*event)) {
                    *count += 1;
                }
                self.latest_ns = self.latest_ns.max(word(body, TIME_AT).unwrap_or_default());
            }
            LOST => self.lost_records += word(body, 8).unwrap_or_default(),
            LOST_SAMPLES => self.lost_samples += word(body, 0).unwrap_or_default(),
            THROTTLED => self.throttled += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_by_what_they_are() {
        let body = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let ids = HashMap::from([(70, 0), (71, 1)]);
        let mut counts = Counts { samples: vec![0; 2], ..Counts::default() };
        for (number, words) in [
            (SAMPLE, &[71, 0x1000, 0, 900][..]),
            (SAMPLE, &[71, 0x1000, 0, 800]),
            (SAMPLE, &[70, 0x1000, 0, 700]),
            (SAMPLE, &[99]),
            (LOST, &[70, 12]),
            (LOST_SAMPLES, &[3]),
            (THROTTLED, &[]),
            (10, &[]),
        ] {
            counts.see(number, &body(words), &ids);
        }
        assert_eq!((counts.samples, counts.latest_ns), (vec![1, 2], 900));
        assert_eq!((counts.lost_records, counts.lost_samples, counts.throttled), (12, 3, 1));
    }
}
