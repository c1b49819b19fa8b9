//! The interrupt flag of a virtual CPU, derived from the instruction stream. Independent of any emulator.
//!
//! Some instructions set the flag to a fixed value. Where Arm writes it from a register, the value is that of the
//! innermost save on the same level that was not restored yet. A level is a task's own code, or one interrupt's. Saves
//! nest in time, or the kernel's own flag would be wrong. Where a kernel turns interrupts off only if the saved flag
//! was on, that shows the flag's real value.

use lineup_recording::{Counts, FlagCounts};

/// Saves remembered at most on one level: kernels nest a few.
const MAX_SAVES: usize = 64;

/// Start of a span with interrupts off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) sequence: u64,
    pub(crate) from_pc: u64,
    pub(crate) totals: Counts,
}

/// Knowledge of the flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    On,
    /// With the span, if it is measured and its beginning was seen.
    Off(Option<Span>),
    /// Until an instruction shows it.
    Unknown,
}

/// The flag.
#[derive(Debug)]
pub(crate) struct Flag {
    state: State,
    pub(crate) counts: FlagCounts,
}

impl Flag {
    /// A kernel that calls its marker has interrupts on.
    pub(crate) fn new() -> Flag {
        Flag { state: State::On, counts: FlagCounts::default() }
    }

    /// Whether interrupts are on; `None` when that is not known.
    pub(crate) fn is_on(&self) -> Option<bool> {
        match self.state {
            State::On => Some(true),
            State::Off(_) => Some(false),
            State::Unknown => None,
        }
    }

    /// Interrupts are turned off here, if they were on; `span` begins a span.
    pub(crate) fn turn_off(&mut self, span: impl FnOnce() -> Option<Span>) {
        match self.state {
            State::On => self.state = State::Off(span()),
            // It may have been off for a long time.
            State::Unknown => self.state = State::Off(None),
            State::Off(_) => {}
        }
    }

    /// Interrupts are turned on here; returns the span that ends.
    pub(crate) fn turn_on(&mut self) -> Option<Span> {
        match std::mem::replace(&mut self.state, State::On) {
            State::Off(span) => span,
            State::On | State::Unknown => None,
        }
    }

    /// The flag's value cannot be determined.
    pub(crate) fn lose(&mut self) {
        self.counts.lost += 1;
        self.state = State::Unknown;
    }

    /// A hardware interrupt came, so the flag is on; true when it was tracked as off. The assumed span is discarded.
    pub(crate) fn interrupted(&mut self) -> bool {
        let was_off = matches!(self.state, State::Off(_));
        self.state = State::On;
        was_off
    }

    /// The kernel read the flag, and its next step shows the value.
    fn shown(&mut self, is_on: bool) {
        self.counts.checks += 1;
        self.counts.failed_checks += u64::from(self.is_on() == Some(!is_on));
        if self.is_on() != Some(is_on) {
            self.state = if is_on { State::On } else { State::Off(None) };
        }
    }
}

/// A flag to be restored.
#[derive(Clone, Copy, Debug)]
struct Saved {
    /// `None` when it is not known.
    is_on: Option<bool>,
    /// The state before interrupts were turned off without a save. Code that has restored a flag, turns interrupts off
    /// and restores it again finds it here. Other code turns interrupts on.
    is_tentative: bool,
}

/// An instruction that turns interrupts off as a part of a save.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Mask {
    pub(crate) pc: u64,
    /// The instruction is executed only if the save found interrupts on.
    pub(crate) is_conditional: bool,
}

/// The flags that one level has saved and not restored.
#[derive(Default, Debug)]
pub(crate) struct Saves {
    flags: Vec<Saved>,
    /// The flag's value that the last save implies.
    awaited: Option<Mask>,
}

impl Saves {
    /// A flag is saved, and interrupts are turned off by `mask`.
    pub(crate) fn save(&mut self, flag: &mut Flag, mask: Mask) {
        self.pass(flag, None);
        self.push(flag, false);
        self.awaited = Some(mask);
    }

    /// The instruction at `pc` turns interrupts off.
    pub(crate) fn mask(&mut self, flag: &mut Flag, pc: u64) {
        if !self.pass(flag, Some(pc)) {
            self.push(flag, true);
        }
    }

    /// Turns interrupts on, from any state.
    pub(crate) fn unmask(&mut self, flag: &mut Flag) {
        self.pass(flag, None);
        while self.flags.last().is_some_and(|saved| saved.is_tentative) {
            self.flags.pop();
        }
    }

    /// A saved flag is restored: whether it is on, if that is known.
    pub(crate) fn restore(&mut self, flag: &mut Flag) -> Option<bool> {
        self.pass(flag, None);
        self.flags.pop()?.is_on
    }

    fn push(&mut self, flag: &Flag, is_tentative: bool) {
        if self.flags.len() >= MAX_SAVES {
            self.flags.remove(0);
        }
        self.flags.push(Saved { is_on: flag.is_on(), is_tentative });
    }

    /// Control is at an instruction that concerns the flag, at `pc` if it turns interrupts off. True when it belongs to
    /// the save before. A save that did not lead to its own found interrupts off.
    fn pass(&mut self, flag: &mut Flag, pc: Option<u64>) -> bool {
        let Some(mask) = self.awaited.take() else { return false };
        let is_its = pc == Some(mask.pc);
        if mask.is_conditional {
            flag.shown(is_its);
            if let Some(saved) = self.flags.last_mut() {
                saved.is_on = Some(is_its);
            }
        }
        is_its
    }

    /// No kernel code is under way.
    pub(crate) fn clear(&mut self) {
        *self = Saves::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from_pc: u64) -> Option<Span> {
        Some(Span { sequence: 0, from_pc, totals: Counts::default() })
    }

    /// Restores, and applies the value.
    fn restore(saves: &mut Saves, flag: &mut Flag) -> Option<Span> {
        match saves.restore(flag) {
            Some(true) => flag.turn_on(),
            Some(false) => {
                flag.turn_off(|| None);
                None
            }
            None => {
                flag.lose();
                None
            }
        }
    }

    const fn mask(pc: u64) -> Mask {
        Mask { pc, is_conditional: false }
    }

    const fn mask_if_on(pc: u64) -> Mask {
        Mask { pc, is_conditional: true }
    }

    /// Interrupts are turned off.
    fn turn_off(saves: &mut Saves, flag: &mut Flag, pc: u64) {
        saves.mask(flag, pc);
        flag.turn_off(|| span(pc));
    }

    /// Interrupts are turned on.
    fn turn_on(saves: &mut Saves, flag: &mut Flag) -> Option<Span> {
        saves.unmask(flag);
        flag.turn_on()
    }

    #[test]
    fn the_outermost_restore_turns_interrupts_on() {
        let (mut flag, mut saves) = (Flag::new(), Saves::default());
        for pc in [0x10, 0x20] {
            saves.save(&mut flag, mask(pc));
            turn_off(&mut saves, &mut flag, pc);
        }
        assert_eq!((restore(&mut saves, &mut flag), flag.is_on()), (None, Some(false)));
        assert_eq!((restore(&mut saves, &mut flag), flag.is_on()), (span(0x10), Some(true)));
        assert_eq!(flag.counts, FlagCounts::default());
    }

    #[test]
    fn what_the_kernel_does_after_a_save_shows_the_flag() {
        let (mut flag, mut saves) = (Flag::new(), Saves::default());
        saves.save(&mut flag, mask_if_on(0x14));
        turn_off(&mut saves, &mut flag, 0x14);
        saves.save(&mut flag, mask_if_on(0x24));
        assert_eq!(restore(&mut saves, &mut flag), None);
        assert_eq!((flag.counts.checks, flag.counts.failed_checks, flag.is_on()), (2, 0, Some(false)));
        assert_eq!(restore(&mut saves, &mut flag), span(0x14));
    }

    #[test]
    fn a_flag_restored_twice_is_the_one_before_interrupts_went_off_again() {
        for is_on in [true, false] {
            let (mut flag, mut saves) = (Flag::new(), Saves::default());
            saves.save(&mut flag, mask(0x10));
            turn_off(&mut saves, &mut flag, 0x10);
            if is_on {
                assert_eq!(restore(&mut saves, &mut flag), span(0x10));
            }
            saves.save(&mut flag, mask(0x20));
            turn_off(&mut saves, &mut flag, 0x20);
            restore(&mut saves, &mut flag);
            turn_off(&mut saves, &mut flag, 0x30);
            restore(&mut saves, &mut flag);
            assert_eq!(flag.is_on(), Some(is_on));
        }
    }

    #[test]
    fn interrupts_turned_off_and_on_need_no_save() {
        let (mut flag, mut saves) = (Flag::new(), Saves::default());
        turn_off(&mut saves, &mut flag, 0x10);
        assert_eq!(turn_on(&mut saves, &mut flag), span(0x10));
        assert_eq!((restore(&mut saves, &mut flag), flag.is_on()), (None, None));
    }

    #[test]
    fn a_wrong_flag_is_found_out_and_what_was_no_span_is_dropped() {
        let (mut flag, mut saves) = (Flag::new(), Saves::default());
        flag.turn_off(|| span(0x10));
        saves.save(&mut flag, mask_if_on(0x14));
        turn_off(&mut saves, &mut flag, 0x14);
        assert_eq!(restore(&mut saves, &mut flag), span(0x14));
        assert_eq!((flag.counts.checks, flag.counts.failed_checks), (1, 1));
        saves.save(&mut flag, mask_if_on(0x24));
        assert_eq!(turn_on(&mut saves, &mut flag), None, "nobody saw where it began");
        assert_eq!(flag.counts.failed_checks, 2);
    }

    #[test]
    fn a_restore_without_its_save_leaves_the_flag_unknown_until_something_tells() {
        let (mut flag, mut saves) = (Flag::new(), Saves::default());
        flag.turn_off(|| span(0x10));
        assert_eq!((restore(&mut saves, &mut flag), flag.is_on()), (None, None));
        assert!(!flag.interrupted(), "nothing was said that this contradicts");
        flag.turn_off(|| span(0x20));
        assert!(flag.interrupted());
        assert_eq!((flag.turn_on(), flag.counts.lost), (None, 1));
    }
}
