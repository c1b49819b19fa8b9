//! Messages between the command and the recorder of an audit: the [`Table`] of the code's accesses, by type, and the
//! [`Findings`] that every process of an audited run writes. Both are lines of text.
//!
//! An audit watches a whole program, and keeps counts by type and kind of evidence: it grows with neither accesses nor
//! objects.

use crate::plan::{PlanError, hex};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

/// A type, by its place in [`Table::types`].
pub type TypeNumber = u16;

/// A byte of an object of known type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TypedByte {
    /// The type.
    pub ty: TypeNumber,
    /// Offset in the object; in the first element, where it is one of an array.
    pub offset: u32,
}

/// The accesses of one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Site {
    /// The byte that it loads.
    pub load: Option<TypedByte>,
    /// The byte that it stores.
    pub store: Option<TypedByte>,
    /// Bytes of the operand: an emulator may access them in parts.
    pub size_bytes: u32,
    /// It addresses the frame of its function.
    pub is_on_stack: bool,
}

/// A variable at a fixed place that holds objects of one type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Global {
    /// Link address.
    pub start: u64,
    /// Size of all of it.
    pub size_bytes: u64,
    /// The type of the objects.
    pub ty: TypeNumber,
}

/// The accesses of one program's code.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Table {
    /// The program's file.
    pub program: String,
    /// Folder for [`Findings`], one file for each process.
    pub output: String,
    /// Sizes of the types, in bytes.
    pub types: Vec<u64>,
    /// By link address.
    pub sites: BTreeMap<u64, Site>,
    /// Link addresses of the regions' own code.
    pub regions: Vec<Range<u64>>,
    /// Sorted by address.
    pub globals: Vec<Global>,
}

/// A kind of evidence against moving members, with its distinguishing facts. Places are link addresses of instructions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Evidence {
    /// Bytes that code stored in an object of one type were loaded as another's.
    Alias {
        /// The type they were stored as.
        stored: TypedByte,
        /// The type they were loaded as.
        loaded: TypedByte,
        /// The load.
        pc: u64,
    },
    /// Bytes from one offset to before another were given to a system call.
    Handed {
        /// The first byte.
        from: TypedByte,
        /// Behind the last one.
        to_offset: u32,
        /// The call's name.
        call: String,
        /// The store of one of them; 0 when they were there from the start.
        pc: u64,
        /// They had been copied before.
        is_copy: bool,
    },
    /// Bytes that a system call delivered were loaded as part of an object.
    Filled {
        /// The type they were loaded as.
        loaded: TypedByte,
        /// The offset in the object of the first byte that the call delivered; negative before the object.
        begins: i64,
        /// The call's name.
        call: String,
        /// The load.
        pc: u64,
    },
    /// An object lies in memory that other processes or a device see.
    Shared {
        /// The type.
        ty: TypeNumber,
        /// An access.
        pc: u64,
    },
}

/// The number of occurrences, and their amount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Amount {
    /// Times that it was seen.
    pub times: u64,
    /// Bytes in all.
    pub bytes: u64,
}

/// The findings of one process, or of several.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Findings {
    /// Evidence.
    pub evidence: BTreeMap<Evidence, Amount>,
    /// Accesses by code outside the regions, by type.
    pub outside: BTreeMap<TypeNumber, u64>,
    /// Processes.
    pub processes: u64,
    /// Kinds of evidence beyond the kept ones.
    pub not_kept: u64,
}

impl Table {
    /// As text.
    pub fn to_text(&self) -> String {
        let mut text = format!("program {}\noutput {}\n", self.program, self.output);
        for size in &self.types {
            let _ = writeln!(text, "type {size}");
        }
        for global in &self.globals {
            let _ = writeln!(text, "global {:x} {} {}", global.start, global.size_bytes, global.ty);
        }
        for region in &self.regions {
            let _ = writeln!(text, "region {:x} {:x}", region.start, region.end);
        }
        for (pc, site) in &self.sites {
            let byte = |byte: Option<TypedByte>| byte.map_or("-".into(), typed);
            let stack = u8::from(site.is_on_stack);
            let (load, store) = (byte(site.load), byte(site.store));
            let _ = writeln!(text, "site {pc:x} {load} {store} {} {stack}", site.size_bytes);
        }
        text
    }

    /// Reads it back.
    ///
    /// # Errors
    /// Names the line that cannot be read.
    pub fn parse(text: &str) -> Result<Table, PlanError> {
        let mut table = Table::default();
        for (number, line) in text.lines().enumerate() {
            let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
            let words: Vec<&str> = rest.split(' ').collect();
            let read = table.read(key, rest, &words);
            let wrong = || PlanError { line: number + 1, what: "audit table", text: line.to_owned() };
            read.ok_or_else(wrong)?;
        }
        Ok(table)
    }

    fn read(&mut self, key: &str, rest: &str, words: &[&str]) -> Option<()> {
        match key {
            "program" => rest.clone_into(&mut self.program),
            "output" => rest.clone_into(&mut self.output),
            "type" => self.types.push(rest.parse().ok()?),
            "global" => self.globals.push(global(words)?),
            "region" => {
                let [start, end] = words else { return None };
                self.regions.push(hex(start)?..hex(end)?);
            }
            "site" => {
                let (pc, site) = site(words)?;
                self.sites.insert(pc, site);
            }
            _ => return None,
        }
        Some(())
    }
}

fn typed(byte: TypedByte) -> String {
    format!("{}+{}", byte.ty, byte.offset)
}

fn typed_byte(word: &str) -> Option<TypedByte> {
    let (ty, offset) = word.split_once('+')?;
    Some(TypedByte { ty: ty.parse().ok()?, offset: offset.parse().ok()? })
}

fn global(words: &[&str]) -> Option<Global> {
    let [start, size, ty] = words else { return None };
    Some(Global { start: hex(start)?, size_bytes: size.parse().ok()?, ty: ty.parse().ok()? })
}

fn site(words: &[&str]) -> Option<(u64, Site)> {
    let [pc, load, store, size, stack] = words else { return None };
    let byte = |word: &str| if word == "-" { Some(None) } else { typed_byte(word).map(Some) };
    let size_bytes = size.parse().ok()?;
    let is_on_stack = *stack == "1";
    Some((hex(pc)?, Site { load: byte(load)?, store: byte(store)?, size_bytes, is_on_stack }))
}

impl Findings {
    /// As text.
    pub fn to_text(&self) -> String {
        let mut text = format!("processes {}\nnot-kept {}\n", self.processes, self.not_kept);
        for (ty, times) in &self.outside {
            let _ = writeln!(text, "outside {ty} {times}");
        }
        for (evidence, Amount { times, bytes }) in &self.evidence {
            let _ = match evidence {
                Evidence::Alias { stored, loaded, pc } => {
                    writeln!(text, "alias {times} {bytes} {pc:x} {} {}", typed(*stored), typed(*loaded))
                }
                Evidence::Handed { from, to_offset, call, pc, is_copy } => {
                    let copy = u8::from(*is_copy);
                    writeln!(text, "handed {times} {bytes} {pc:x} {} {to_offset} {call} {copy}", typed(*from))
                }
                Evidence::Filled { loaded, begins, call, pc } => {
                    writeln!(text, "filled {times} {bytes} {pc:x} {} {begins} {call}", typed(*loaded))
                }
                Evidence::Shared { ty, pc } => writeln!(text, "shared {times} {bytes} {pc:x} {ty}"),
            };
        }
        text
    }

    /// Adds another process's findings. A line that was cut off, because the process was killed, is passed over.
    pub fn add_text(&mut self, text: &str) {
        for line in text.lines() {
            let _ = self.add_line(line);
        }
    }

    fn add_line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["processes", count] => self.processes += count.parse::<u64>().ok()?,
            ["not-kept", count] => self.not_kept += count.parse::<u64>().ok()?,
            ["outside", ty, times] => {
                let times: u64 = times.parse().ok()?;
                *self.outside.entry(ty.parse().ok()?).or_default() += times;
            }
            [kind, times, bytes, pc, ref rest @ ..] => {
                let evidence = evidence(kind, hex(pc)?, rest)?;
                let (times, bytes): (u64, u64) = (times.parse().ok()?, bytes.parse().ok()?);
                let amount = self.evidence.entry(evidence).or_default();
                amount.times += times;
                amount.bytes += bytes;
            }
            _ => {}
        }
        Some(())
    }
}

fn evidence(kind: &str, pc: u64, words: &[&str]) -> Option<Evidence> {
    Some(match (kind, words) {
        ("alias", [stored, loaded]) => {
            Evidence::Alias { stored: typed_byte(stored)?, loaded: typed_byte(loaded)?, pc }
        }
        ("handed", [from, to_offset, call, copy]) => Evidence::Handed {
            from: typed_byte(from)?,
            to_offset: to_offset.parse().ok()?,
            call: (*call).to_owned(),
            pc,
            is_copy: *copy == "1",
        },
        ("filled", [loaded, begins, call]) => Evidence::Filled {
            loaded: typed_byte(loaded)?,
            begins: begins.parse().ok()?,
            call: (*call).to_owned(),
            pc,
        },
        ("shared", [ty]) => Evidence::Shared { ty: ty.parse().ok()?, pc },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(ty: TypeNumber, offset: u32) -> TypedByte {
        TypedByte { ty, offset }
    }

    #[test]
    fn a_table_comes_back_as_it_was() {
        let site = Site { load: Some(byte(1, 8)), store: None, size_bytes: 8, is_on_stack: true };
        let table = Table {
            program: "/a b/program".into(),
            output: "/tmp/out".into(),
            types: vec![16, 24],
            sites: BTreeMap::from([(0x1000, site), (0x2000, Site::default())]),
            globals: vec![Global { start: 0x4000, size_bytes: 48, ty: 1 }],
            regions: vec![0x1000..0x1800, 0x2000..0x2100],
        };
        assert_eq!(Table::parse(&table.to_text()), Ok(table));
        assert_eq!(Table::parse("type many").unwrap_err().line, 1);
        assert!(Table::parse("site 10 1+ - 8 0").is_err() && Table::parse("else").is_err());
    }

    #[test]
    fn findings_of_processes_add_up_and_cut_off_lines_are_passed_over() {
        let (call, pc) = ("write".to_owned(), 0x1000);
        let all = [
            Evidence::Alias { stored: byte(0, 4), loaded: byte(1, 4), pc },
            Evidence::Handed { from: byte(0, 0), to_offset: 16, call: call.clone(), pc: 0, is_copy: true },
            Evidence::Filled { loaded: byte(1, 0), begins: -24, call, pc },
            Evidence::Shared { ty: 1, pc },
        ];
        let amount = Amount { times: 2, bytes: 16 };
        let findings = Findings {
            evidence: all.into_iter().map(|evidence| (evidence, amount)).collect(),
            outside: BTreeMap::from([(1, 7)]),
            processes: 1,
            not_kept: 3,
        };
        let mut sum = Findings::default();
        sum.add_text(&findings.to_text());
        assert_eq!(sum, findings);
        sum.add_text(&findings.to_text());
        sum.add_text("shared 5 40 10");
        assert!(sum.evidence.values().all(|amount| *amount == Amount { times: 4, bytes: 32 }));
        assert_eq!((sum.evidence.len(), sum.outside[&1], sum.processes, sum.not_kept), (4, 14, 2, 6));
    }
}
