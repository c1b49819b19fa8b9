//! The first pass: facts about memory from the accesses to it.

use crate::code::abstract_value::{Origin, Pointer};
use crate::code::access_sites::AccessTarget;
use crate::error::ExplainError;
use crate::images::image::Image;
use crate::memory::live_times::Moment;
use crate::memory::sightings::Sighting;
use crate::naming::access_context::AccessContext;
use crate::naming::namer::Namer;
use crate::types::catalog::{Catalog, Ty};
use crate::types::congruence::Congruence;
use lineup_model::access::{Access, AccessKind, Call};

impl Namer<'_> {
    /// First pass: learns from one access of a call that began at `at`.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub fn observe(
        &mut self,
        access: &Access,
        context: &mut AccessContext,
        at: u64,
    ) -> Result<(), ExplainError> {
        let at = context.next(at);
        self.copied.observe(access.pc, access.address);
        let seen = self.seen(access, context)?;
        if let AccessTarget::Thread(offset) = seen.place {
            let offset = offset.wrapping_add(seen.into as i64);
            self.percpu.see(offset, access.address);
            self.blocks.see(access.address.wrapping_sub_signed(offset));
        }
        if let (AccessKind::Load, Some(value)) = (access.kind, access.value) {
            self.blocks.see_load(access.address, value);
        }
        if let Some(spot) = self.blocks.at(access.address) {
            if let Some(global) = self.thread_local_at(spot) {
                self.see_value(access, global.ty, spot.offset - global.start, at);
            }
            return Ok(());
        }
        if let Some((image, link)) = self.data_at(access.address) {
            if let Some(global) = self.globals.get(image).and_then(|globals| globals.at(link)).copied() {
                self.see_value(access, global.ty, link - global.start, at);
            }
            if !self.is_pool(image, link) {
                return Ok(());
            }
        }
        match seen.place {
            AccessTarget::Object(pointer) => self.see_object(access, pointer, seen.into, at),
            AccessTarget::Stack(Some(local)) => self.see_value(access, local.ty, local.offset, at),
            _ => {}
        }
        Ok(())
    }

    /// First pass: learns from the pointers that a call was given. Debug info gives the parameter of each, and a
    /// function's copies that have others are not described.
    pub fn observe_arguments(&mut self, call: &Call) {
        let Some(arguments) = &call.arguments else { return };
        let Some((image, link)) = self.images.at(arguments.entry) else { return };
        let registers = self.images.get(image).and_then(Image::abi).map(|abi| abi.machine.description());
        let registers = registers.map_or(&[][..], |machine| machine.argument_registers);
        let at = Moment { call: call.entered_at, access: 0, process: call.process };
        for parameter in self.callees.parameters(image, link).to_vec() {
            let number = registers.iter().position(|register| *register == parameter.register.0);
            if let Some(value) = number.and_then(|number| arguments.values().get(number)) {
                self.see_pointer(*value, parameter.target, (parameter.origin, Sighting::Argument), at);
            }
        }
    }

    fn see_object(&mut self, access: &Access, pointer: Pointer, into: u64, at: Moment) {
        let distance = pointer.offset.plus(Congruence::exactly(into as i64));
        let size = u64::from(access.size_bytes);
        let Some(spot) = self.catalog.spot(pointer.target, distance, size) else {
            self.behind.see(&self.catalog, pointer.target, distance, access.address, at);
            return;
        };
        let is_on_stack = self.is_on_stack(access.address);
        if !self.catalog.is_aggregate(pointer.target) {
            if !is_on_stack {
                let home = self.lifetimes.at(at.process, access.address, at.call);
                self.objects.see_buffer(home, pointer.target, pointer.origin);
                if access.kind == AccessKind::Store {
                    let catalog = &mut self.catalog;
                    let is_member = |ty, offset| {
                        is_beyond(catalog, ty, offset)
                            || catalog.holds_scalar((ty, offset), size, pointer.target)
                    };
                    let bytes = access.address..access.address.saturating_add(size);
                    self.objects.see_scalar(home, bytes, at, is_member);
                }
            }
            if spot.is_certain {
                self.see_value(access, pointer.target, spot.offset, at);
            }
            return;
        }
        if !spot.is_certain {
            return;
        }
        if !is_on_stack
            && let Some(start) = access.address.checked_sub(spot.offset)
            && self.may_lie_at(start, pointer.target)
        {
            let home = self.lifetimes.at(at.process, start, at.call);
            let link = self.links.at(&mut self.catalog, pointer.target, spot.offset, size);
            let sighting =
                Sighting::Access { kind: access.kind, offset: spot.offset, size_bytes: size, link };
            self.objects.see(home, start, pointer.target, sighting, at);
        }
        self.see_value(access, pointer.target, spot.offset, at);
    }

    /// Learns from the pointer that an access moved.
    fn see_value(&mut self, access: &Access, ty: Ty, offset: u64, at: Moment) {
        let Some(value) = access.value.filter(|value| *value != 0) else { return };
        let size = u64::from(access.size_bytes);
        let Some(target) = self.catalog.pointee_at(ty, offset, size) else { return };
        self.see_pointer(value, target, (Origin::Member(ty, offset), Sighting::Pointer), at);
    }

    /// Learns from a pointer to a type.
    fn see_pointer(&mut self, value: u64, target: Ty, (origin, how): (Origin, Sighting), at: Moment) {
        if value == 0 || !self.may_lie_at(value, target) || self.is_on_stack(value) {
            return;
        }
        let home = self.lifetimes.at(at.process, value, at.call);
        if self.catalog.is_aggregate(target) {
            self.objects.see(home, value, target, how, at);
        } else if home.1.is_some_and(|block| block.start == value) {
            self.objects.see_buffer(home, target, origin);
        }
    }
}

/// True when a type ends before an offset.
fn is_beyond(catalog: &Catalog<'_>, ty: Ty, offset: u64) -> bool {
    !catalog.has_open_end(ty) && catalog.size_bytes(ty).is_some_and(|size| offset >= size)
}
