//! The differences between two runs, and the masks of a comparison.

use super::{
    Call, CallList, CallSite, Content, Effects, FileLeft, ProcessPath, Stream, Target, ending_in_words,
};
use crate::run::Ending;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Names one effect in all runs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Key<'e> {
    Stream(&'e ProcessPath, &'e Target),
    Calls(&'e ProcessPath, &'e CallSite),
    File(&'e str),
    End(&'e ProcessPath),
}

/// One effect.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect<'e> {
    Stream(&'e Stream),
    Calls(&'e CallList),
    File(&'e FileLeft),
    End(Option<Ending>),
}

/// All effects of a run by their names.
pub(super) fn listed(effects: &Effects) -> BTreeMap<Key<'_>, Effect<'_>> {
    let mut all = BTreeMap::new();
    for (path, process) in &effects.processes {
        let streams = process.streams.iter();
        all.extend(streams.map(|(target, stream)| (Key::Stream(path, target), Effect::Stream(stream))));
        let calls = process.calls.iter();
        all.extend(calls.map(|(site, list)| (Key::Calls(path, site), Effect::Calls(list))));
        all.insert(Key::End(path), Effect::End(process.ending));
    }
    all.extend(effects.files.iter().map(|(path, left)| (Key::File(path), Effect::File(left))));
    all
}

impl Key<'_> {
    /// The effect in words.
    pub(super) fn words(&self) -> String {
        let by = |process: &ProcessPath| match *process == ProcessPath::root() {
            true => String::new(),
            false => format!(" by process {process}"),
        };
        match self {
            Key::Stream(process, target) => format!("bytes written to {target}{}", by(process)),
            Key::Calls(process, site) if site.target == Target::System => {
                format!("{}{}", site.name, by(process))
            }
            Key::Calls(process, site) => format!("{} on {}{}", site.name, site.target, by(process)),
            Key::File(path) => format!("file {path}"),
            Key::End(process) if **process == ProcessPath::root() => "end of the program".into(),
            Key::End(process) => format!("end of process {process}"),
        }
    }
}

/// A part of an effect: a call, or the whole of anything else.
#[derive(PartialEq, Eq, Debug)]
struct Part {
    what: String,
    /// Small chunks that are compared one by one.
    atoms: Vec<u64>,
}

impl Effect<'_> {
    fn parts(&self) -> Vec<Part> {
        match self {
            Effect::Stream(stream) => vec![Part { what: String::new(), atoms: atoms_of(&stream.content) }],
            Effect::Calls(list) => list.kept().iter().map(call_part).chain(further(list)).collect(),
            Effect::File(left) => {
                let what = format!("{}, permissions {:o}", left.kind.word(), left.permissions);
                vec![Part { what, atoms: atoms_of(&left.content) }]
            }
            Effect::End(ending) => vec![Part { what: ending_in_words(*ending), atoms: Vec::new() }],
        }
    }
}

/// A fingerprint of each chunk, and one of everything when there is more than the chunks cover.
fn atoms_of(content: &Content) -> Vec<u64> {
    let chunks = content.chunks().iter().map(|chunk| chunk.fingerprint);
    let rest =
        (content.covered_bytes() < content.whole.size_bytes).then(|| first_word(&content.whole.fingerprint));
    chunks.chain(rest).collect()
}

/// The size, then the bytes in words of eight: where a word holds an address, an id or a time that differs between two
/// runs, all of that word is left out.
fn call_part(call: &Call) -> Part {
    let words = call.bytes.chunks(8).map(first_word);
    let rest = (call.size_bytes > call.bytes.len() as u64).then(|| first_word(&call.fingerprint));
    Part {
        what: call.what.clone(),
        atoms: std::iter::once(call.size_bytes).chain(words).chain(rest).collect(),
    }
}

fn further(list: &CallList) -> Option<Part> {
    (list.further() > 0)
        .then(|| Part { what: format!("{} further calls", list.further()), atoms: Vec::new() })
}

fn first_word(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The part of an effect that is not compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Mask {
    /// Nothing of it can be.
    All,
    /// Some of it cannot be; by part.
    Parts(BTreeMap<usize, PartMask>),
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct PartMask {
    what: bool,
    all_atoms: bool,
    atoms: BTreeSet<usize>,
}

impl Mask {
    pub(super) fn nothing() -> Self {
        Mask::Parts(BTreeMap::new())
    }

    pub(super) fn is_nothing(&self) -> bool {
        *self == Mask::nothing()
    }

    /// The mask of the differences between two runs of the same variant.
    pub(super) fn between(one: &Effect<'_>, other: &Effect<'_>) -> Self {
        let (one, other) = (one.parts(), other.parts());
        if one.len() != other.len() {
            return Mask::All;
        }
        let unlike = one.iter().zip(&other).enumerate().filter(|(_, (a, b))| a != b);
        let masks: BTreeMap<usize, PartMask> =
            unlike.map(|(at, (a, b))| (at, PartMask::between(a, b))).collect();
        // An effect with nothing left to compare is masked as a whole.
        let leaves_nothing = |(at, part): (usize, &Part)| {
            masks
                .get(&at)
                .is_some_and(|mask| mask.what_is_left(part) == 0 && (mask.what || part.what.is_empty()))
        };
        match !one.is_empty() && one.iter().enumerate().all(leaves_nothing) {
            true => Mask::All,
            false => Mask::Parts(masks),
        }
    }

    /// Leaves out the parts that either mask leaves out.
    pub(super) fn and(self, other: Mask) -> Mask {
        let (Mask::Parts(mut parts), Mask::Parts(others)) = (self, other) else { return Mask::All };
        for (at, mask) in others {
            let part = parts.entry(at).or_default();
            part.what |= mask.what;
            part.all_atoms |= mask.all_atoms;
            part.atoms.extend(mask.atoms);
        }
        Mask::Parts(parts)
    }

    /// The masked parts, in words.
    pub(super) fn words(&self, effect: &Effect<'_>) -> String {
        let Mask::Parts(masks) = self else { return "all of it".into() };
        match effect {
            Effect::Calls(list) => format!("parts of {} of {} calls", masks.len(), list.count()),
            Effect::Stream(Stream { content, .. }) | Effect::File(FileLeft { content, .. }) => {
                let atoms = masks.get(&0).map_or(0, |mask| mask.atoms.len());
                let all = masks.get(&0).is_some_and(|mask| mask.all_atoms);
                match all {
                    true => "its content".into(),
                    false => format!("{atoms} of {} lines or pieces", content.chunks().len()),
                }
            }
            Effect::End(_) => "all of it".into(),
        }
    }
}

impl PartMask {
    fn between(one: &Part, other: &Part) -> Self {
        let all_atoms = one.atoms.len() != other.atoms.len();
        let unlike = one.atoms.iter().zip(&other.atoms).enumerate().filter(|(_, (a, b))| a != b);
        let atoms = if all_atoms { BTreeSet::new() } else { unlike.map(|(at, _)| at).collect() };
        Self { what: one.what != other.what, all_atoms, atoms }
    }

    /// The number of atoms of the part that are still compared.
    fn what_is_left(&self, part: &Part) -> usize {
        if self.all_atoms { 0 } else { part.atoms.len() - self.atoms.len() }
    }
}

/// The first difference between two effects of the same name, in words, as far as the mask shows it: the place and how.
pub(super) fn difference(
    one: &Effect<'_>,
    other: &Effect<'_>,
    mask: &Mask,
) -> Option<(Option<usize>, String)> {
    let Mask::Parts(masks) = mask else { return None };
    let (parts, others) = (one.parts(), other.parts());
    let nothing = PartMask::default();
    for (at, (a, b)) in parts.iter().zip(&others).enumerate() {
        let mask = masks.get(&at).unwrap_or(&nothing);
        if !mask.what && a.what != b.what {
            return Some((Some(at), format!("{} against {}", a.what, b.what)));
        }
        if mask.all_atoms {
            continue;
        }
        let unlike = |(index, (x, y)): (usize, (&u64, &u64))| {
            (x != y && !mask.atoms.contains(&index)).then_some(index)
        };
        let atom = a.atoms.iter().zip(&b.atoms).enumerate().find_map(unlike);
        let atom = atom.or((a.atoms.len() != b.atoms.len()).then_some(a.atoms.len().min(b.atoms.len())));
        if let Some(atom) = atom {
            return Some((Some(at), bytes_differ(one, other, at, atom)));
        }
    }
    (parts.len() != others.len())
        .then(|| (None, format!("number of calls: {} against {}", count(one), count(other))))
}

fn count(effect: &Effect<'_>) -> u64 {
    match effect {
        Effect::Calls(list) => list.count(),
        _ => 1,
    }
}

/// Shows the bytes that differ, in a call's argument or in a stream.
fn bytes_differ(one: &Effect<'_>, other: &Effect<'_>, part: usize, atom: usize) -> String {
    match (one, other) {
        (Effect::Calls(one), Effect::Calls(other)) => match (one.kept().get(part), other.kept().get(part)) {
            (Some(one), Some(other)) => argument_differs(one, other, atom),
            _ => String::new(),
        },
        (Effect::Stream(Stream { content: one, .. }), Effect::Stream(Stream { content: other, .. }))
        | (Effect::File(FileLeft { content: one, .. }), Effect::File(FileLeft { content: other, .. })) => {
            content_differs(one, other, atom)
        }
        _ => String::new(),
    }
}

fn argument_differs(one: &Call, other: &Call, atom: usize) -> String {
    if one.size_bytes != other.size_bytes {
        return format!("{} bytes against {}", one.size_bytes, other.size_bytes);
    }
    let from = 8 * atom.saturating_sub(1);
    match first_unlike(&one.bytes, &other.bytes, from) {
        Some(at) => {
            format!("offset {at} of {} bytes: {}", one.size_bytes, shown(&one.bytes, &other.bytes, at))
        }
        None => format!("they part after the first {} bytes", one.bytes.len()),
    }
}

fn content_differs(one: &Content, other: &Content, atom: usize) -> String {
    let sizes = match (one.whole.size_bytes, other.whole.size_bytes) {
        (a, b) if a == b => format!("{a} bytes"),
        (a, b) => format!("{a} bytes against {b}"),
    };
    let chunks = one.chunks().iter().take(atom);
    let start: u64 = chunks.map(|chunk| u64::from(chunk.size_bytes)).sum();
    let (a, b) = (&one.whole.head, &other.whole.head);
    match usize::try_from(start).ok().and_then(|start| first_unlike(a, b, start)) {
        Some(at) => format!("offset {at}: {} ({sizes})", shown(a, b, at)),
        None if start < one.covered_bytes().min(other.covered_bytes()) => {
            format!("at offset {start} or soon after it ({sizes})")
        }
        None => format!("after offset {start} ({sizes})"),
    }
}

pub(super) fn first_unlike(one: &[u8], other: &[u8], from: usize) -> Option<usize> {
    let pairs = one.iter().zip(other).enumerate().skip(from);
    pairs.filter(|(_, (a, b))| a != b).map(|(at, _)| at).next()
}

/// Some bytes from this offset on, of both.
pub(super) fn shown(one: &[u8], other: &[u8], at: usize) -> String {
    let hex = |bytes: &[u8]| {
        bytes.iter().skip(at).take(8).fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{byte:02x}", if text.is_empty() { "" } else { " " });
            text
        })
    };
    format!("{} against {}", hex(one), hex(other))
}
