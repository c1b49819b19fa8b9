//! Instructions that save the processor's state to memory, or load it: `xsave`, `xsavec` and `xrstor`. The engine works
//! out the accessed parts of their area before each, see [`crate::machine::Translation::see_state`].

use crate::machine::x86_64::processor_state::{HALF, Kind};
use crate::machine::x86_64::translate::accesses::{AddressForm, Planned, Plans, place};
use crate::machine::x86_64::translate::elements::Elements;
use iced_x86::{CodeSize, Instruction, InstructionInfoFactory, Register};

/// The accesses of such an instruction; `None` for others, and where they cannot be determined.
pub(crate) fn plan(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> Option<Plans> {
    let kind = Kind::of(instruction)?;
    let memory = factory.info(instruction).used_memory().first()?;
    let is_plain = memory.segment() != Register::GS && memory.address_size() != CodeSize::Code32;
    let place = place(instruction, memory, memory.segment() == Register::FS).filter(|_| is_plain)?;
    let words: &[u8] = match kind {
        // It reads the area's old header.
        Kind::Save => &[0, 2, 3],
        Kind::SaveCompact => &[2, 3],
        Kind::Restore => &[0, 1],
    };
    let access = |word: &u8| {
        let is_store = *word >= 2;
        Some(Planned {
            place: further(place, if word.is_multiple_of(2) { 0 } else { HALF as i32 })?,
            size_bytes: HALF,
            is_load: !is_store,
            is_store,
            is_valued: false,
            elements: Some(Elements::of_state(*word)),
        })
    };
    let all = words.iter().map(access).collect::<Option<Vec<_>>>()?;
    Some(Plans { all, misses: false, is_timed: false })
}

/// A place so far behind another.
fn further(place: AddressForm, bytes: i32) -> Option<AddressForm> {
    Some(match place {
        AddressForm::Constant(address) => AddressForm::Constant(address.wrapping_add_signed(bytes.into())),
        AddressForm::OfThread(distance) => AddressForm::OfThread(distance.checked_add(bytes.into())?),
        AddressForm::Computed(mut address, is_of_thread) => {
            address.distance = address.distance.checked_add(bytes)?;
            AddressForm::Computed(address, is_of_thread)
        }
        AddressForm::Repeated(_) => return None,
    })
}
