//! Pools: single objects of a struct of C come from blocks, side by side and without the allocator's headers.
//!
//! `malloc` takes 32 bytes for an object of 24: a header, and room up to a multiple of 16. Objects in a block are as far
//! apart as in an array. The layout of an object stays, so time alone decides, and the caller tries pools as it tries
//! prefetches.
//!
//! The one danger is an object of a block that reaches `free` or `realloc`. So a type has a pool only where each call that
//! ends its objects is known. Where no code of the program ends memory, pointers to objects may become anything.

mod left_out_code;
mod text;

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::meaning::{Meaning, SeenBy, SplitMeaning};
use crate::error::AdviseError;
use crate::kind::{Description, FixKind, KindName, Task};
use crate::kinds::cold_part::heap_text::Calls;
use crate::options::{Options, WantedPool};
use crate::patch::text_edits::{Edit, apply};
use crate::proposal::{Advice, POOL, PoolProposal, PooledType, Refusal};
use crate::text::sources::Sources;
use lineup_model::object_uses::{ThreadStart, Threads};
use std::collections::BTreeMap;
use text::PoolText;

/// Objects from `malloc` lie at multiples of this.
const MALLOC_ALIGN_BYTES: u64 = 16;

/// Pools of single objects.
pub struct Pools;

impl FixKind for Pools {
    fn name(&self) -> KindName {
        POOL
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        let mut edits: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
        let mut types = Vec::new();
        let refused = |owner: &str, because: Binding| Refusal {
            owner: owner.to_owned(),
            constraints: vec![because],
            lines: Vec::new(),
        };
        for wanted in &task.options.pools {
            match plan(task.sources, task.options, wanted) {
                Ok(PoolText { edits: own, pooled }) => {
                    for (path, own) in own {
                        let all = edits.entry(path).or_default();
                        // Two pools in one file include the same header.
                        for edit in own {
                            if !all.contains(&edit) {
                                all.push(edit);
                            }
                        }
                    }
                    types.push(pooled);
                }
                Err(because) => advice.refusals.push(refused(&wanted.type_name, because)),
            }
        }
        if types.is_empty() {
            return Ok(());
        }
        let owner = types.iter().map(|one| one.type_name.clone()).collect::<Vec<_>>().join(", ");
        let mut edited = BTreeMap::new();
        for (path, edits) in edits {
            let text = task.sources.get(&path).filter(|_| !advice.edited.contains_key(&path));
            let Some(text) = text.and_then(|text| apply(text, edits)) else {
                let why = "another change edits the file, or two edits meet in one place";
                let because = Binding::new(Constraint::UnclearSource).because(format!("{path}: {why}"));
                advice.refusals.push(refused(&owner, because));
                return Ok(());
            };
            edited.insert(path, text);
        }
        let mut all = advice.edited.clone();
        all.extend(edited.clone());
        if let Err(error) = task.judge.compile(&all) {
            let because = Binding::new(Constraint::CompilerDisagrees).because(error.into_first_words()?);
            advice.refusals.push(refused(&owner, because));
            return Ok(());
        }
        advice.edited = all;
        advice.pools.push(PoolProposal { types, edited });
        Ok(())
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.pools.iter().map(describe).collect()
    }
}

fn describe(one: &PoolProposal) -> Description {
    let target: Vec<&str> = one.types.iter().map(|ty| ty.type_name.as_str()).collect();
    let summary = "Objects come from blocks, side by side and without headers.";
    let reasons = one.types.iter().map(PooledType::in_words).collect();
    Description { reasons, is_in_patch: true, ..Description::told(POOL, target.join(", "), summary) }
}

/// The reason why a type gets no pool; `None` where it may.
pub fn refusal(sources: &Sources, options: &Options, wanted: &WantedPool) -> Option<Binding> {
    plan(sources, options, wanted).err()
}

fn refused(why: impl Into<String>) -> Binding {
    Binding::new(Constraint::NotInBlocks).because(why)
}

fn plan(sources: &Sources, options: &Options, wanted: &WantedPool) -> Result<PoolText, Binding> {
    let meaning = &options.meaning;
    let split = meaning.split_of(std::slice::from_ref(&wanted.type_name));
    let split = split.ok_or_else(|| refused("no one struct of the sources has this name"))?;
    if split.seen_by != SeenBy::C {
        return Err(refused("units of C++ use it"));
    }
    if let Some(why) = meaning.unread() {
        return Err(refused(why));
    }
    match &split.threads {
        Threads::One => {}
        Threads::Several(ThreadStart { name, path, line }) => {
            let why = format!("`{name}` may start a thread, and a pool has no lock");
            return Err(refused(why).at(path, *line));
        }
        Threads::Unknown => {
            return Err(refused("the program may have several threads, and a pool has no lock"));
        }
    }
    if let Some(hold) = split.out_of_blocks.first() {
        return Err(Binding { constraint: Constraint::NotInBlocks, names: Vec::new(), ..hold.clone() });
    }
    if let Some(hold) = leaves_program(meaning, &split.names) {
        return Err(hold);
    }
    if options.keeps.iter().any(|kept| split.names.contains(kept)) {
        return Err(Binding::new(Constraint::Kept));
    }
    let calls = Calls::read(sources, &split.heap_calls)?;
    if calls.making.iter().all(|(.., call)| call.count.is_some()) {
        return Err(refused("no call of malloc or calloc makes a single object of it"));
    }
    if calls.makes.several && !calls.ending.is_empty() {
        return Err(refused("calls make several objects at once, and others end objects"));
    }
    if let Some((path, line)) = left_out_code::that_ends_scopes(sources).filter(|_| !calls.ending.is_empty())
    {
        return Err(
            refused("variables end by functions of their own, which may end its objects").at(&path, line)
        );
    }
    if let Some((path, line)) = left_out_code::that_ends_memory(sources, &split.heap_calls) {
        return Err(refused("code that other settings compile may end its objects").at(&path, line));
    }
    let slot_bytes = text::slot_bytes(wanted, !calls.ending.is_empty());
    let is_packed = !slot_bytes.is_multiple_of(MALLOC_ALIGN_BYTES);
    if let Some(hold) = needs_multiple(meaning, split).filter(|_| is_packed) {
        return Err(hold);
    }
    text::write(sources, split, &calls, wanted)
}

/// A use that may need objects at the multiples at which `malloc` puts them: wide loads fault elsewhere, and the low bits
/// of an address may hold something.
fn needs_multiple(meaning: &Meaning, split: &SplitMeaning) -> Option<Binding> {
    const UNLIKE_OBJECTS: [Constraint; 4] =
        [Constraint::UsedAsOtherType, Constraint::MemorySpan, Constraint::ReadAsBytes, Constraint::Assembly];
    let holds = holds_of(meaning, &split.names);
    let mut holds = holds.filter(|hold| UNLIKE_OBJECTS.contains(&hold.constraint)).chain(&split.of_addresses);
    let hold = holds.next()?;
    let detail = hold.detail.as_deref().unwrap_or_default();
    let because = format!("malloc puts objects at multiples of 16 bytes, and this may need it: {detail}");
    Some(Binding { constraint: Constraint::NotInBlocks, names: Vec::new(), ..hold.clone().because(because) })
}

/// A use by which other programs know the type: they may end its objects.
fn leaves_program(meaning: &Meaning, names: &[String]) -> Option<Binding> {
    let leads_out = [Constraint::CrossesAbi, Constraint::Assembly];
    holds_of(meaning, names).find(|hold| leads_out.contains(&hold.constraint)).cloned()
}

/// The uses that hold members of the type with one of these names.
fn holds_of<'m>(meaning: &'m Meaning, names: &'m [String]) -> impl Iterator<Item = &'m Binding> {
    let types = meaning.types.iter().filter(|ty| ty.names.iter().any(|name| names.contains(name)));
    types.flat_map(|ty| &ty.holds).map(|hold| &hold.binding)
}
