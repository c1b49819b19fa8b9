//! Two threads that pass a byte to and fro through pipes: a load on wake-ups and switches.

use crate::error::{LoadError, system};
use crate::stop::Stop;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::time::{Duration, Instant};

/// The number and duration of the round trips.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrips {
    /// The number of completed round trips.
    pub count: u64,
    /// The time all of them took.
    pub elapsed: Duration,
    /// In how many the two ends ran on different CPUs.
    pub apart: u64,
}

impl RoundTrips {
    /// The percentage of round trips whose ends ran on different CPUs; `None` without round trips.
    pub fn apart_percent(&self) -> Option<f64> {
        (self.count > 0).then(|| 100.0 * self.apart as f64 / self.count as f64)
    }

    /// Nanoseconds per round trip; `None` without round trips.
    pub fn nanoseconds_each(&self) -> Option<f64> {
        (self.count > 0).then(|| self.elapsed.as_nanos() as f64 / self.count as f64)
    }
}

/// Makes round trips until `count` are done or the flag is set. With a CPU number both threads stay on that CPU: their
/// CPUs decide the cost of a round trip, by an order of magnitude.
///
/// # Errors
/// When the kernel refuses a pipe, a thread or the placing.
pub fn round_trips(count: u64, cpu: Option<u32>, stop: &Stop) -> Result<RoundTrips, LoadError> {
    let (there_reader, there) = pipe().map_err(system("a pipe"))?;
    let (back, back_writer) = pipe().map_err(system("a pipe"))?;
    std::thread::scope(|scope| {
        let echo = scope.spawn(move || {
            place(cpu)?;
            echo(there_reader, back_writer)
        });
        let trips = place(cpu).and_then(|()| drive(count, there, back, stop));
        let echoed = echo.join().unwrap_or(Ok(()));
        echoed.and(trips)
    })
}

/// Sends and waits. Dropping the writer at the end ends the echo.
fn drive(
    count: u64,
    mut there: PipeWriter,
    mut back: PipeReader,
    stop: &Stop,
) -> Result<RoundTrips, LoadError> {
    let started = Instant::now();
    let (mut done, mut apart) = (0, 0);
    let mut byte = [0u8; 1];
    while done < count && !stop.is_set() {
        there.write_all(&byte).map_err(system("writing to a pipe"))?;
        back.read_exact(&mut byte).map_err(system("reading from a pipe"))?;
        done += 1;
        apart += u64::from(byte != here());
    }
    Ok(RoundTrips { count: done, elapsed: started.elapsed(), apart })
}

/// The CPU that this thread runs on, as the byte that is passed: both ends see where the other was.
fn here() -> [u8; 1] {
    [sched_getcpu() as u8]
}

fn echo(mut reader: PipeReader, mut writer: PipeWriter) -> Result<(), LoadError> {
    let mut byte = [0u8; 1];
    while reader.read(&mut byte).map_err(system("reading from a pipe"))? > 0 {
        writer.write_all(&here()).map_err(system("writing to a pipe"))?;
    }
    Ok(())
}

/// Keeps the calling thread on one CPU.
pub(crate) fn place(cpu: Option<u32>) -> Result<(), LoadError> {
    let Some(cpu) = cpu else { return Ok(()) };
    let number = usize::try_from(cpu).ok().filter(|cpu| *cpu < CpuSet::MAX_CPU);
    let Some(number) = number else {
        return Err(LoadError::Parameter {
            what: "the CPU",
            value: cpu.into(),
            range: "a CPU of this machine",
        });
    };
    let mut set = CpuSet::new();
    set.set(number);
    sched_setaffinity(None, &set).map_err(system("staying on one CPU"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_round_trips_are_made_pinned_or_not() {
        for cpu in [None, Some(0)] {
            let trips = round_trips(200, cpu, &Stop::new()).unwrap();
            assert_eq!(trips.count, 200);
            assert!(trips.nanoseconds_each().unwrap() > 0.0);
            assert!(if cpu.is_some() { trips.apart == 0 } else { trips.apart <= 200 });
        }
    }

    #[test]
    fn a_set_flag_and_an_impossible_cpu_end_it_at_once() {
        let stop = Stop::new();
        stop.set();
        assert_eq!(round_trips(u64::MAX, None, &stop).unwrap().nanoseconds_each(), None);
        assert!(round_trips(1, Some(100_000), &Stop::new()).is_err());
    }
}
