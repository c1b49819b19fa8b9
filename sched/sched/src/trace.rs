//! A run as a file for the Perfetto trace viewer: one track per CPU, one slice per span that a task ran.

use crate::scenario::Scenario;
use crate::sim::Observer;
use std::io::{self, Write};

/// Writes spans as they are observed, in the JSON trace format. Call [`Trace::finish`] at the end.
pub struct Trace<W> {
    to: W,
    names: Vec<String>,
    /// For each CPU the last span, kept back because the next may adjoin it.
    open: Vec<Option<Slice>>,
    outcome: io::Result<()>,
}

#[derive(Clone, Copy)]
struct Slice {
    task: usize,
    from_ns: u64,
    to_ns: u64,
}

impl<W: Write> Trace<W> {
    /// Starts the file with the names of the tracks.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(mut to: W, scenario: &Scenario) -> io::Result<Self> {
        write!(to, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        write!(to, "{{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{{\"name\":\"CPUs\"}}}}")?;
        for cpu in 0..scenario.topology.cpus {
            let tid = cpu + 1;
            write!(
                to,
                ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":\"CPU {cpu}\"}}}}"
            )?;
        }
        let names = scenario.task_names().iter().map(|name| escaped(name)).collect();
        Ok(Self { to, names, open: vec![None; scenario.topology.cpus], outcome: Ok(()) })
    }

    /// Ends the file and gives back its writer.
    ///
    /// # Errors
    /// The first failure to write since the start.
    pub fn finish(mut self) -> io::Result<W> {
        for cpu in 0..self.open.len() {
            self.close(cpu);
        }
        self.outcome?;
        writeln!(self.to, "]}}")?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn close(&mut self, cpu: usize) {
        let Some(Slice { task, from_ns, to_ns }) = self.open[cpu].take() else { return };
        if self.outcome.is_err() || from_ns == to_ns {
            return;
        }
        let name = &self.names[task];
        let (start, length) = (Micros(from_ns), Micros(to_ns - from_ns));
        let tid = cpu + 1;
        self.outcome = write!(
            self.to,
            ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{tid},\"name\":\"{name}\",\"ts\":{start},\"dur\":{length}}}"
        );
    }
}

impl<W: Write> Observer for Trace<W> {
    fn ran(&mut self, cpu: usize, task: usize, from_ns: u64, to_ns: u64) {
        if let Some(open) = &mut self.open[cpu]
            && open.task == task
            && open.to_ns == from_ns
        {
            open.to_ns = to_ns;
            return;
        }
        self.close(cpu);
        self.open[cpu] = Some(Slice { task, from_ns, to_ns });
    }
}

/// Nanoseconds in the format's unit.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A name as the inside of a JSON string.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}
