//! Accesses of the instructions that save the processor's state to memory, or load it (`xsave`, `xsavec`, `xrstor`).
//!
//! They depend on a mask in registers, on the parts of the state in use and on the area's content, by the rules of
//! Intel's manual (volume 1, chapter 13). They also depend on the processor's own description of the area (`cpuid`).
//! The unit is 32 bytes.

use crate::machine::x86_64::registers::Registers;
use crate::shared::Shared;
use crate::system;
use crate::system::lock::Lock;
use crate::threads::slots::{STATE_WORDS, Slots};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use std::arch::x86_64::{__cpuid_count, _xgetbv};
use std::ops::Range;
use std::sync::atomic::AtomicU8;

/// Bytes of one bit.
pub(crate) const UNIT: u32 = 32;
/// Bytes of one word.
pub(crate) const HALF: u32 = 64 * UNIT;

/// Offsets of the area's parts that all processors have.
const POINTERS: Range<u32> = 0..24;
const CONTROL: Range<u32> = 24..32;
const X87: Range<u32> = 32..160;
const SSE: Range<u32> = 160..416;
const IN_USE: u32 = 512;
const FORMAT: u32 = 520;
const OTHERS: u32 = 576;

const X87_BIT: u64 = 1;
const SSE_BIT: u64 = 2;
const AVX_BIT: u64 = 4;
/// The control register's initial value.
const FIRST_CONTROL: u32 = 0x1f80;
/// Set in the word at [`FORMAT`] when parts lie one behind the other.
const IS_COMPACT: u64 = 1 << 63;
/// Parts that the gate keeps, so that its memory shows whether they are in use.
const KEPT: u64 = 0xff;

/// Set once the user was warned that an instruction accesses more than is recorded.
static IS_CUT: AtomicU8 = AtomicU8::new(0);
static LAYOUT: Lock<Option<Layout>> = Lock::new(None);

/// The effect of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Stores each part at its own place.
    Save,
    /// Stores the parts in use, one after the other.
    SaveCompact,
    /// Loads either.
    Restore,
}

impl Kind {
    /// `None` for other instructions. The parts that `xsaveopt` leaves out cannot be known.
    pub(crate) fn of(instruction: &Instruction) -> Option<Kind> {
        match instruction.mnemonic() {
            Mnemonic::Xsave | Mnemonic::Xsave64 => Some(Kind::Save),
            Mnemonic::Xsavec | Mnemonic::Xsavec64 => Some(Kind::SaveCompact),
            Mnemonic::Xrstor | Mnemonic::Xrstor64 => Some(Kind::Restore),
            _ => None,
        }
    }
}

/// A part of the state after those that all processors have.
#[derive(Clone, Copy, Default)]
struct Part {
    bytes: u32,
    /// Its offset unless the area is compact.
    at: u32,
    /// In a compact area it lies at a multiple of 64 bytes.
    is_aligned: bool,
}

/// The processor's description of the area.
#[derive(Clone, Copy)]
struct Layout {
    /// Parts that the system allows, a bit each.
    allowed: u64,
    parts: [Part; 63],
    /// The processor reports the parts in use.
    tells_use: bool,
}

impl Layout {
    fn read() -> Layout {
        const STATE: u32 = 0xd;
        // SAFETY: the system allows these, or the instructions that are asked about would not run.
        let allowed = unsafe { _xgetbv(0) };
        let mut parts = [Part::default(); 63];
        for (number, part) in
            parts.iter_mut().enumerate().skip(2).filter(|(number, _)| allowed >> number & 1 != 0)
        {
            let told = __cpuid_count(STATE, number as u32);
            *part = Part { bytes: told.eax, at: told.ebx, is_aligned: told.ecx & 2 != 0 };
        }
        let tells_use = __cpuid_count(STATE, 1).eax & 4 != 0;
        Layout { allowed, parts, tells_use }
    }

    /// Offsets of the parts in a mask.
    fn places(&self, mask: u64, is_compact: bool) -> impl Iterator<Item = (u64, Range<u32>)> {
        let mut end = OTHERS;
        let parts = self.parts.iter().enumerate().skip(2).filter(move |(number, _)| mask >> number & 1 != 0);
        parts.map(move |(number, part)| {
            let behind = if part.is_aligned { end.next_multiple_of(64) } else { end };
            let at = if is_compact { behind } else { part.at };
            end = at + part.bytes;
            (1 << number, at..end)
        })
    }
}

/// The known state when an instruction is about to be executed.
struct Now {
    kind: Kind,
    /// The parts that are asked for.
    mask: u64,
    in_use: u64,
    /// The area's head, when it is to be loaded.
    head: [u64; 2],
}

/// The accesses: a bit for each unit, for loads and for stores.
#[derive(Default)]
struct Accessed {
    words: [u64; STATE_WORDS],
    is_cut: bool,
}

impl Accessed {
    fn add(&mut self, is_store: bool, bytes: Range<u32>) {
        for unit in bytes.start / UNIT..bytes.end.div_ceil(UNIT) {
            match self
                .words
                .get_mut(2 * usize::from(is_store)..)
                .and_then(|own| own[..2].get_mut(unit as usize / 64))
            {
                Some(word) => *word |= 1 << (unit % 64),
                None => self.is_cut = true,
            }
        }
    }
}

impl Now {
    fn accessed(&self, layout: &Layout) -> Accessed {
        let asked = self.mask & layout.allowed;
        let is_store = self.kind != Kind::Restore;
        let is_compact = match self.kind {
            Kind::Save => false,
            Kind::SaveCompact => true,
            Kind::Restore => self.head[1] & IS_COMPACT != 0,
        };
        let parts = match self.kind {
            Kind::Save => asked,
            Kind::SaveCompact => asked & self.in_use,
            Kind::Restore => asked & self.head[0],
        };
        // Offsets of parts in a compact area depend on all parts that it was made for.
        let laid_out =
            if self.kind == Kind::Restore && is_compact { self.head[1] & !IS_COMPACT } else { asked };
        // In a compact area the control register belongs to the first vectors alone.
        let controls = if is_compact { parts & SSE_BIT } else { asked & (SSE_BIT | AVX_BIT) };
        let mut all = Accessed::default();
        let mut add = |is_there: bool, bytes: Range<u32>| {
            if is_there {
                all.add(is_store, bytes);
            }
        };
        add(parts & X87_BIT != 0, POINTERS);
        add(parts & X87_BIT != 0, X87);
        add(parts & SSE_BIT != 0, SSE);
        add(controls != 0, CONTROL);
        let head = match (self.kind, is_compact) {
            (Kind::Save, _) => IN_USE..FORMAT,
            (Kind::SaveCompact, _) => IN_USE..FORMAT + 8,
            // The processor checks that these bytes are zero.
            (Kind::Restore, false) => IN_USE..FORMAT + 16,
            (Kind::Restore, true) => IN_USE..OTHERS,
        };
        add(true, head.clone());
        layout.places(laid_out, is_compact).for_each(|(part, bytes)| add(parts & part != 0, bytes));
        if self.kind == Kind::Save {
            all.add(false, head);
        }
        all
    }
}

/// See [`crate::machine::Translation::see_state`].
pub(crate) fn see(shared: &Shared, distance: i32, slots: &mut Slots, registers: &Registers) {
    const MOST_BYTES: usize = 15;
    let mut bytes = [0; MOST_BYTES];
    let read = system::read_memory(slots.pc, &mut bytes);
    let instruction = Decoder::with_ip(64, &bytes[..read], slots.pc, DecoderOptions::NONE).decode();
    slots.state = [0; STATE_WORDS];
    let Some(kind) = Kind::of(&instruction) else { return };
    let base = (&raw const *slots as u64).wrapping_sub(i64::from(distance) as u64);
    let value = |register| register_value(registers, slots.stack, base, register);
    let address = instruction.virtual_address(0, 0, |register, _, _| value(register)).unwrap_or(0);
    let word = |at: u32| system::read_word(address.wrapping_add(at.into())).unwrap_or(0);
    let head = if kind == Kind::Restore { [word(IN_USE), word(FORMAT)] } else { [0; 2] };
    let mask = registers.rax & 0xffff_ffff | registers.rdx << 32;
    let signals = system::block_signals();
    let layout = LAYOUT.with(|layout| *layout.get_or_insert_with(Layout::read));
    system::restore_signals(signals);
    // SAFETY: the gate has just kept the state there.
    let in_use = unsafe { in_use(slots.vectors, &layout) };
    let accessed = Now { kind, mask, in_use, head }.accessed(&layout);
    slots.state = accessed.words;
    if accessed.is_cut {
        let text = format!("{:x} {:?} has accesses that are not recorded", slots.pc, instruction.mnemonic());
        shared.note_once(&IS_CUT, &text.to_lowercase());
    }
}

/// Parts of the program's state that are in use.
///
/// # Safety
/// The gate must have kept the state there.
unsafe fn in_use(kept: u64, layout: &Layout) -> u64 {
    // SAFETY: the caller's promise.
    let (head, control) = unsafe {
        (
            (kept as *const u64).add(IN_USE as usize / 8).read(),
            (kept as *const u32).add(CONTROL.start as usize / 4).read(),
        )
    };
    // SAFETY: the processor has said that it can.
    let others = if layout.tells_use { unsafe { _xgetbv(1) } } else { u64::MAX };
    let control = if control == FIRST_CONTROL { 0 } else { SSE_BIT };
    head & KEPT | others & !KEPT | control
}

fn register_value(r: &Registers, stack: u64, base: u64, register: Register) -> Option<u64> {
    Some(match register {
        Register::RAX => r.rax,
        Register::RCX => r.rcx,
        Register::RDX => r.rdx,
        Register::RBX => r.rbx,
        Register::RSP => stack,
        Register::RBP => r.rbp,
        Register::RSI => r.rsi,
        Register::RDI => r.rdi,
        Register::R8 => r.r8,
        Register::R9 => r.r9,
        Register::R10 => r.r10,
        Register::R11 => r.r11,
        Register::R12 => r.r12,
        Register::R13 => r.r13,
        Register::R14 => r.r14,
        Register::R15 => r.r15,
        Register::FS => base,
        // Other segments begin at 0.
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A processor with AVX at 576 and a part of 8 bytes at 2688, in that order.
    fn layout() -> Layout {
        let mut parts = [Part::default(); 63];
        parts[2] = Part { bytes: 256, at: 576, is_aligned: false };
        parts[9] = Part { bytes: 8, at: 2688, is_aligned: true };
        Layout { allowed: 0b10_0000_0111, parts, tells_use: true }
    }

    fn accessed(kind: Kind, mask: u64, in_use: u64, head: [u64; 2]) -> [u64; STATE_WORDS] {
        let accessed = Now { kind, mask, in_use, head }.accessed(&layout());
        assert!(!accessed.is_cut);
        accessed.words
    }

    fn units(range: Range<u32>) -> u64 {
        range.fold(0, |all, unit| all | 1 << unit)
    }

    #[test]
    fn parts_lie_where_the_form_of_the_area_says() {
        let all = u64::MAX;
        let second = 1 << ((2688 - HALF) / UNIT);
        let saved = [units(16..17), 0, units(0..13) | units(16..17) | units(18..26), second];
        assert_eq!(accessed(Kind::Save, all, 0, [0; 2]), saved);
        // The part that is not in use still has its place.
        let compact = [0, 0, units(16..17) | units(26..27), 0];
        assert_eq!(accessed(Kind::SaveCompact, all, 1 << 9, [0; 2]), compact);
        let restored = [units(16..18) | units(26..27), 0, 0, 0];
        assert_eq!(accessed(Kind::Restore, all, 0, [1 << 9, IS_COMPACT | 0b10_0000_0100]), restored);
        // The control register is loaded with the vectors that use it, even when they are absent.
        assert_eq!(accessed(Kind::Restore, 0b110, 0, [0, 0]), [units(0..1) | units(16..17), 0, 0, 0]);
    }

    #[test]
    fn what_lies_too_far_is_told() {
        let mut layout = layout();
        layout.allowed |= 1 << 18;
        layout.parts[18] = Part { bytes: 8192, at: 2816, is_aligned: true };
        let now = Now { kind: Kind::Save, mask: 1 << 18, in_use: 0, head: [0; 2] };
        assert!(now.accessed(&layout).is_cut);
    }
}
