//! The console output of a guest, for the comparison of two runs: the kernel's lines apart from the workload's, and
//! without the parts that depend on the time.

use super::console::message;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum output kept. The rest is not compared, and a message says so.
const MOST_BYTES: usize = 32 << 20;

/// The lines of a guest's console.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Printed {
    /// The kernel's messages, with their time stamps.
    pub kernel: Vec<String>,
    /// The workload's output, from its beginning to its end.
    pub workload: Vec<String>,
    bytes: usize,
    is_cut: bool,
}

/// Shapes of lines in which two runs of one kernel differ: they carry no information about another kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Varying {
    kernel: BTreeSet<String>,
    workload: BTreeSet<String>,
}

impl Varying {
    /// The number of kinds of lines that are left out: of the kernel, and of the workload.
    pub fn counts(&self) -> [usize; 2] {
        [self.kernel.len(), self.workload.len()]
    }
}

impl Printed {
    /// Adds a line. Lines before the kernel's first time stamp are the firmware's, and are not kept.
    pub fn add(&mut self, line: &str, is_working: bool) {
        if has_time(line) {
            self.add_message(line);
        } else if is_working && self.fits(line) {
            self.workload.push(line.to_owned());
        }
    }

    /// Takes a line that is known to be the kernel's.
    pub fn add_message(&mut self, line: &str) {
        if self.fits(line) {
            self.kernel.push(line.to_owned());
        }
    }

    fn fits(&mut self, line: &str) -> bool {
        self.bytes += line.len() + 1;
        self.is_cut |= self.bytes > MOST_BYTES;
        !self.is_cut
    }

    /// True when lines were not kept because there were too many.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The shapes that differ between two runs of one kernel.
    pub fn varying(&self, again: &Printed) -> Varying {
        let (one, other) = (shapes(&self.kernel), shapes(&again.kernel));
        let kernel = one.keys().chain(other.keys()).filter(|shape| one.get(*shape) != other.get(*shape));
        let kernel = kernel.map(|shape| (*shape).clone()).collect();
        let workload = match self.workload == again.workload {
            true => BTreeSet::new(),
            false => {
                let (one, other): (BTreeSet<&String>, BTreeSet<&String>) =
                    (self.workload.iter().collect(), again.workload.iter().collect());
                one.symmetric_difference(&other).map(|line| shape(line)).collect()
            }
        };
        Varying { kernel, workload }
    }

    /// The kernel's messages, by kind, in alphabetical order: their order in time varies, and so do numbers.
    pub fn kernel_said(&self, varying: &Varying) -> String {
        let said = shapes(&self.kernel).into_iter().filter(|(shape, _)| !varying.kernel.contains(shape));
        said.map(|(shape, count)| format!("{count} {shape}\n")).collect()
    }

    /// The workload's output, in its order.
    pub fn workload_printed(&self, varying: &Varying) -> String {
        let kept = self.workload.iter().filter(|line| !varying.workload.contains(&shape(line)));
        kept.map(|line| format!("{line}\n")).collect()
    }

    /// The difference between another kernel's run and this one, in a sentence; `None` when there is none.
    pub fn difference(&self, other: &Printed, varying: &Varying) -> Option<String> {
        let (before, after) = (shapes(&self.kernel), shapes(&other.kernel));
        let lacks = |of: &BTreeMap<String, u64>, shape: &String, count: u64| {
            !varying.kernel.contains(shape) && of.get(shape).copied().unwrap_or(0) < count
        };
        let new = other.kernel.iter().find(|line| {
            let shape = shape(message(line));
            lacks(&before, &shape, after.get(&shape).copied().unwrap_or(0))
        });
        let gone = self.kernel.iter().find(|line| {
            let shape = shape(message(line));
            lacks(&after, &shape, before.get(&shape).copied().unwrap_or(0))
        });
        match (new, gone) {
            (Some(new), _) => return Some(format!("only the changed kernel says {:?}", message(new))),
            (None, Some(gone)) => {
                return Some(format!("the changed kernel no longer says {:?}", message(gone)));
            }
            (None, None) => {}
        }
        let (before, after) = (self.workload_printed(varying), other.workload_printed(varying));
        let (mut before, mut after) = (before.lines(), after.lines());
        loop {
            match (before.next(), after.next()) {
                (None, None) => return None,
                (one, other) if one == other => {}
                (Some(one), Some(other)) => {
                    return Some(format!("the workload prints {other:?} where it printed {one:?}"));
                }
                (Some(one), None) => return Some(format!("the workload no longer prints {one:?}")),
                (None, Some(other)) => {
                    return Some(format!("only with the change the workload prints {other:?}"));
                }
            }
        }
    }
}

/// Kinds of lines, and how many there are of each.
fn shapes(lines: &[String]) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for line in lines {
        *counted.entry(shape(message(line))).or_insert(0) += 1;
    }
    counted
}

/// A line with each word that has a digit replaced, and its spaces taken together: times, addresses, sizes.
fn shape(line: &str) -> String {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut shape = String::new();
    for part in line.split_whitespace() {
        if !shape.is_empty() {
            shape.push(' ');
        }
        let mut rest = part;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|letter| is_word(letter) != is_word(first)).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            let has_digit = piece.bytes().any(|byte| byte.is_ascii_digit());
            shape.push_str(if has_digit { "#" } else { piece });
            rest = after;
        }
    }
    shape
}

/// True when a line begins with a kernel's time stamp: "[    1.234567]".
fn has_time(line: &str) -> bool {
    let stamp = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'));
    stamp.and_then(|(stamp, _)| stamp.trim().split_once('.')).is_some_and(|(seconds, rest)| {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number(seconds) && is_number(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(lines: &[(&str, bool)]) -> Printed {
        let mut printed = Printed::default();
        lines.iter().for_each(|(line, is_working)| printed.add(line, *is_working));
        printed
    }

    #[test]
    fn the_kernels_lines_are_told_from_the_workloads() {
        let printed = printed(&[
            ("SeaBIOS", false),
            ("[    0.000000] Linux version 6.1", false),
            ("[    2.1][    T1] in the midst", true),
            ("42", true),
            ("[ok] 42", true),
            ("after", false),
        ]);
        assert_eq!(printed.kernel.len(), 2);
        assert_eq!(printed.workload, ["42", "[ok] 42"]);
    }

    #[test]
    fn times_numbers_and_the_order_make_no_difference_and_other_words_do() {
        let one = printed(&[("[ 0.1] Memory: 480K/512K", false), ("[ 0.2] tsc: 3000.001 MHz", false)]);
        let other = printed(&[("[ 0.3] tsc: 2999.998 MHz", false), ("[ 0.4] Memory:  81K/512K", false)]);
        let none = Varying::default();
        assert_eq!(one.difference(&other, &none), None);
        assert_eq!(one.kernel_said(&none), other.kernel_said(&none));
        let more = printed(&[
            ("[ 0.1] Memory: 1K/2K", false),
            ("[ 0.2] tsc: 1.1 MHz", false),
            ("[ 0.3] WARNING: bad", false),
        ]);
        assert_eq!(
            one.difference(&more, &none).as_deref(),
            Some("only the changed kernel says \"WARNING: bad\"")
        );
        assert_eq!(
            more.difference(&one, &none).as_deref(),
            Some("the changed kernel no longer says \"WARNING: bad\"")
        );
    }

    #[test]
    fn what_one_kernel_says_only_sometimes_is_left_out() {
        let one = printed(&[("[ 0.1] a", false), ("took 11 ms", true), ("sum 5", true)]);
        let again =
            printed(&[("[ 0.1] a", false), ("[ 0.2] b", false), ("took 12 ms", true), ("sum 5", true)]);
        let varying = one.varying(&again);
        assert_eq!(varying.counts(), [1, 1]);
        let after = |took: &str, sum: &str| printed(&[("[ 0.1] a", false), (took, true), (sum, true)]);
        assert_eq!(one.difference(&after("took 13 ms", "sum 5"), &varying), None);
        let said = one.difference(&after("took 13 ms", "sum 6"), &varying).expect("another sum");
        assert_eq!(said, "the workload prints \"sum 6\" where it printed \"sum 5\"");
        let less = printed(&[("[ 0.1] a", false), ("took 1 ms", true)]);
        assert_eq!(
            one.difference(&less, &varying).as_deref(),
            Some("the workload no longer prints \"sum 5\"")
        );
    }

    #[test]
    fn numbers_of_the_workload_are_compared() {
        let none = Varying::default();
        assert!(printed(&[("1", true)]).difference(&printed(&[("2", true)]), &none).is_some());
    }

    #[test]
    fn a_flood_is_cut() {
        let mut printed = Printed::default();
        let line = "x".repeat(1 << 20);
        (0..40).for_each(|_| printed.add(&line, true));
        assert!(printed.is_cut() && printed.workload.len() < 40);
    }
}
