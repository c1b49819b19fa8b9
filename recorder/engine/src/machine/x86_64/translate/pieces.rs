//! Whole programs: accesses of a block that lie close together, with no other between, are looked up as one *piece* at
//! the first of them.
//!
//! An instruction whose accesses are known only afterwards, such as a repeated one, stands alone: it is a block of its
//! own, and the log has a record for each execution.

use super::accesses::{AddressForm, Planned, Plans};
use super::step::{Piece, Step};
use crate::machine::Task;
use crate::threads::slots::RECORD_WORDS;
use crate::whole_program::level::Level;
use iced_x86::{Instruction, Mnemonic, RflagsBits};
use lineup_profile::{Access, Accesses, Follower, Origin};
use lineup_recording::native::{DefinedAccess, Form, noted};

/// The most bytes from the first of a piece to its last, so that it lies on two lines at most.
const MOST_BYTES: i64 = 64;

/// Whether an instruction must be a block of its own.
pub(crate) fn stands_alone(task: &Task<'_>, plans: &Plans) -> bool {
    let most = task.whole.map_or(0, |whole| most_bytes(whole.levels.data));
    let is_odd = |plan: &Planned| {
        matches!(plan.place, AddressForm::Repeated(_))
            || plan.elements.is_some()
            || !plan.size_bytes.is_power_of_two()
            || i64::from(plan.size_bytes) > most
    };
    plans.misses || plans.all.iter().any(is_odd)
}

/// Whether the record of an instruction that stands alone has room.
pub(crate) fn has_room(plans: &Plans) -> bool {
    plans.words() < RECORD_WORDS
}

fn most_bytes(data: Level) -> i64 {
    MOST_BYTES.min(data.line_bytes() as i64)
}

/// The piece that may continue.
struct Open {
    step: usize,
    origin: Option<Origin>,
    /// From the origin to its first access.
    distance: i64,
}

/// Puts the accesses of a block into pieces, at the steps that begin them. Returns the accesses for the definition.
pub(crate) fn plan(steps: &mut [Step], data: Level) -> Vec<DefinedAccess> {
    let mut defined = Vec::new();
    let mut follower = Follower::native();
    let mut open: Option<Open> = None;
    let mut pieces = 0;
    for number in 0..steps.len() {
        let certain = match follower.follow(&steps[number].instruction) {
            Accesses::Certain(all) => all,
            Accesses::Nothing | Accesses::Unknown => Vec::new(),
        };
        let plans = std::mem::take(&mut steps[number].plans.all);
        for plan in &plans {
            for is_store in sides(plan) {
                let own = certain.iter().find(|access| access.is_store == is_store);
                let is_same_place = is_store && plan.is_load;
                let open_piece = open.as_ref().filter(|_| is_same_place || data.parts_neighbours());
                let joined = open_piece.and_then(|open| {
                    join(steps, open, own, is_same_place, plan.size_bytes, most_bytes(data))
                });
                defined.push(DefinedAccess {
                    instruction: number as u8,
                    is_store,
                    form: if joined.is_some() { Form::Again } else { Form::Address },
                    size_bytes: plan.size_bytes,
                    element_bytes: 0,
                    distance: joined.as_ref().map_or(0, |(distance, _)| *distance as i8),
                    is_timed: false,
                });
                if let (Some((_, piece)), Some(open)) = (joined, &open) {
                    steps[open.step].pieces.pop();
                    steps[open.step].pieces.push(piece);
                    continue;
                }
                pieces += 1;
                let span = plan.size_bytes as u16 - 1;
                steps[number].pieces.push(Piece { number: pieces, place: plan.place, low: 0, span });
                open = Some(Open {
                    step: number,
                    origin: own.map(|own| own.origin),
                    distance: own.map_or(0, |own| own.distance),
                });
            }
        }
        debug_assert!(pieces < noted::ALONE);
    }
    defined
}

/// A load before a store.
fn sides(plan: &Planned) -> impl Iterator<Item = bool> + use<> {
    [(plan.is_load, false), (plan.is_store, true)].into_iter().filter(|(is, _)| *is).map(|(_, side)| side)
}

/// The piece with one more access, and that access's distance from its first; `None` when they cannot be joined.
fn join(
    steps: &[Step],
    open: &Open,
    own: Option<&Access>,
    is_same_place: bool,
    size_bytes: u32,
    most_bytes: i64,
) -> Option<(i64, Piece)> {
    let piece = *steps[open.step].pieces.last()?;
    let distance = match own.zip(open.origin) {
        Some((own, origin)) if own.origin == origin => own.distance.checked_sub(open.distance)?,
        _ if is_same_place && own.is_none() && open.origin.is_none() => 0,
        _ => return None,
    };
    let (low, high) = (i64::from(piece.low), i64::from(piece.low) + i64::from(piece.span));
    let (low, high) = (low.min(distance), high.max(distance.checked_add(i64::from(size_bytes) - 1)?));
    let (fits, span) = (high - low < most_bytes, u16::try_from(high - low).ok()?);
    let low = i8::try_from(low).ok()?;
    i8::try_from(distance).ok()?;
    fits.then_some((distance, Piece { low, span, ..piece }))
}

/// The instructions before which no flag's value matters, since all flags are set before any is read.
pub(crate) fn mark_idle_flags(steps: &mut [Step]) {
    let mut are_idle = false;
    for step in steps.iter_mut().rev() {
        let instruction = &step.instruction;
        are_idle = match (instruction.rflags_read() & STATUS, sets_all(instruction)) {
            (0, true) => true,
            (0, false) => are_idle,
            _ => false,
        };
        step.has_idle_flags = are_idle;
    }
}

pub(crate) const STATUS: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// Whether it sets all flags, for any operands.
pub(crate) fn sets_all(instruction: &Instruction) -> bool {
    use Mnemonic::{Add, And, Cmp, Neg, Or, Sub, Test, Xor};
    matches!(instruction.mnemonic(), Add | And | Cmp | Neg | Or | Sub | Test | Xor)
}
