//! Calls of a program that is named, recorded by both engines and compared access by access: by hand, see
//! `scripts/engines`.

use super::engines::SAME_LIBRARY;
use super::program::lineup_record;
use lineup_model::access::{Access, AccessKind, Call, CallEnd};
use lineup_model::image::LoadedImage;
use lineup_recording::{MOST_ACCESSES, Recording, read_all};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// The part of an access that must be equal: the instruction, by its file and its place there.
type Site = (u32, u64, AccessKind, u32);

/// The common parts of two recordings.
#[derive(Default)]
struct Files(HashMap<String, u32>);

impl Files {
    fn number(&mut self, path: &str) -> u32 {
        let next = self.0.len() as u32 + 1;
        *self.0.entry(path.to_owned()).or_insert(next)
    }

    /// The recording's files by their number here.
    fn of(&mut self, images: &[LoadedImage]) -> Vec<(LoadedImage, u32)> {
        images.iter().map(|image| (image.clone(), self.number(&image.path))).collect()
    }
}

fn place(images: &[(LoadedImage, u32)], address: u64) -> (u32, u64) {
    let found = images.iter().find(|(image, _)| image.contains(address));
    found.map_or((0, address), |(image, number)| (*number, image.to_link(address)))
}

fn sites(images: &[(LoadedImage, u32)], call: &Call) -> Vec<Site> {
    let site = |access: &Access| {
        let (file, pc) = place(images, access.pc);
        (file, pc, access.kind, access.size_bytes)
    };
    call.accesses.iter().map(site).collect()
}

/// Without loads of instructions that load and store at one place.
fn stored(sites: &[Site]) -> Vec<Site> {
    let is_again =
        |next: &Site, own: &Site| (next.0, next.1, next.3) == (own.0, own.1, own.3) && next.2 != own.2;
    let is_kept = |number: usize| {
        let own = &sites[number];
        own.2 != AccessKind::Load || !sites.get(number + 1).is_some_and(|next| is_again(next, own))
    };
    (0..sites.len()).filter(|number| is_kept(*number)).map(|number| sites[number]).collect()
}

fn code(images: &[(LoadedImage, u32)], call: &Call) -> BTreeSet<(u32, u64)> {
    call.code_granules.iter().map(|granule| place(images, *granule)).collect()
}

/// A call's ending and its size.
fn facts(call: &Call) -> (CallEnd, u32, u64) {
    (call.end, call.depth, call.instructions)
}

/// Lines of 64 bytes, however they lie.
fn lines(accesses: &[Access]) -> usize {
    let line = |access: &Access| {
        access.address >> 6..=(access.address + u64::from(access.size_bytes.max(1)) - 1) >> 6
    };
    accesses.iter().flat_map(line).collect::<BTreeSet<_>>().len()
}

#[derive(Default)]
struct Compared {
    calls: usize,
    accesses: usize,
    instructions: u64,
    /// Calls that differ in their instructions, their accesses or their ending, and how the first does.
    unlike: usize,
    first: Option<String>,
    /// Calls whose only difference is that the emulator lacks loads of locked instructions: in a program with threads
    /// it reports them as stores.
    locked: usize,
    /// Calls of which both kept only the first accesses.
    cut: usize,
    /// Calls in which a part of memory is not where it was at the call's beginning: it was mapped again.
    moved_within: usize,
    /// Calls with another number of lines, since a part of memory begins elsewhere within its line.
    other_lines: usize,
    /// Differences without a known reason.
    unexplained: usize,
}

/// Distances between both engines' addresses of each page of a call; `None` when a page has two.
fn distances(one: &Call, other: &Call) -> Option<BTreeMap<u64, u64>> {
    let mut all = BTreeMap::new();
    one.accesses
        .iter()
        .zip(&other.accesses)
        .all(|(one, other)| {
            let distance = one.address.wrapping_sub(other.address);
            *all.entry(other.address >> 12).or_insert(distance) == distance
        })
        .then_some(all)
}

fn compare(native: &Recording, emulated: &Recording) -> Compared {
    let mut files = Files::default();
    let (ours, theirs) = (files.of(&native.images), files.of(&emulated.images));
    let files = files.0;
    let mut compared = Compared { calls: native.calls.len(), ..Compared::default() };
    for (one, other) in native.calls.iter().zip(&emulated.calls) {
        compared.accesses += one.accesses.len();
        compared.instructions += one.instructions;
        let (left, right) = (sites(&ours, one), sites(&theirs, other));
        compared.cut += usize::from(right.len() == MOST_ACCESSES);
        let is_alike = facts(one) == facts(other) && code(&ours, one) == code(&theirs, other);
        if is_alike && left.len() > right.len() && stored(&left) == stored(&right) {
            compared.locked += 1;
            continue;
        }
        if left != right || !is_alike {
            compared.unlike += 1;
            let at = left.iter().zip(&right).position(|(left, right)| left != right);
            let pair = at.map(|at| (left[at], right[at]));
            compared.first.get_or_insert_with(|| {
                let (ran, emulated) = (code(&ours, one), code(&theirs, other));
                let code: Vec<_> = ran.symmetric_difference(&emulated).take(8).collect();
                let accesses = (left.len(), right.len());
                format!(
                    "{:?} {:?}, accesses {accesses:?}, from {at:?} on: {pair:x?}, code {code:x?} of {files:?}",
                    facts(one),
                    facts(other)
                )
            });
        }
        let moved = distances(one, other);
        compared.moved_within += usize::from(moved.is_none());
        if lines(&one.accesses) != lines(&other.accesses) {
            compared.other_lines += 1;
            let is_whole = moved.is_some_and(|all| all.values().all(|distance| distance % 64 == 0));
            compared.unexplained += usize::from(is_whole);
        }
    }
    compared
}

#[test]
#[ignore = "by hand: scripts/engines names programs"]
fn calls_of_a_named_program_are_equal() {
    let named = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is to be set"));
    let (folder, region, command) =
        (named("LINEUP_EQUAL_FOLDER"), named("LINEUP_EQUAL_REGION"), named("LINEUP_EQUAL_COMMAND"));
    let kept = tempfile::tempdir().expect("a folder");
    let record = |engine: &str| {
        let out = kept.path().join(engine);
        let mut arguments =
            vec!["--engine", engine, "--env", SAME_LIBRARY, "--out", out.to_str().expect("a path")];
        region.split(' ').for_each(|region| arguments.extend(["--region", region]));
        arguments.push("--");
        arguments.extend(command.split(' '));
        let output = lineup_record(Path::new(&folder), &arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut recording =
            read_all(&std::fs::read(&out).expect("the recording")).expect("a readable recording");
        // They stand in the order in which they were written.
        recording.calls.sort_by_key(|call| (call.region.0, call.sequence));
        recording
    };
    let (native, emulated) = (record("native"), record("qemu"));
    assert_eq!(native.calls.len(), emulated.calls.len());
    let compared = compare(&native, &emulated);
    println!(
        "compared: {} {} {} {} {} {} {} {}",
        compared.calls,
        compared.instructions,
        compared.accesses,
        compared.unlike,
        compared.locked,
        compared.cut,
        compared.moved_within,
        compared.other_lines
    );
    assert_eq!(compared.first, None, "of {} calls {} differ", compared.calls, compared.unlike);
    assert_eq!(compared.unexplained, 0);
}
