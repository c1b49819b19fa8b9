//! A kernel's entry points, task switches and spin locks: found among its symbols, from a table of names by machine.

use crate::{Error, KernelSymbols};
use lineup_model::entry_points::{EntryPoints, TaskStruct};
use lineup_model::machine::{CodeMachine, Machine};
use lineup_model::types::{TypeId, Types};
use std::ops::Range;

/// Names that matter on one machine. A name that ends in `*` stands for all names with that beginning.
struct Names {
    /// The first that exists: run by `hostname NAME`.
    markers: &'static [&'static str],
    kernel_start: u64,
    stack_bytes: u64,
    interrupts: &'static [&'static str],
    exceptions: &'static [&'static str],
    system_calls: &'static [&'static str],
    task_switch: &'static str,
    /// The member of `thread_struct` that it stores of one task and loads of the other first; none where it begins
    /// elsewhere.
    stack_pointer: Option<&'static str>,
    spins: &'static [&'static str],
}

const X86_64: Names = Names {
    markers: &["__x64_sys_sethostname", "__se_sys_sethostname", "sys_sethostname"],
    kernel_start: 0xffff_8000_0000_0000,
    stack_bytes: 16 << 10,
    interrupts: &["asm_sysvec_*", "asm_common_interrupt", "asm_spurious_interrupt"],
    exceptions: &["asm_exc_*"],
    system_calls: &["entry_SYSCALL_64", "entry_SYSENTER_compat", "entry_SYSCALL_compat"],
    task_switch: "__switch_to_asm",
    stack_pointer: Some("sp"),
    spins: &[
        "native_queued_spin_lock_slowpath",
        "__pv_queued_spin_lock_slowpath",
        "queued_read_lock_slowpath",
        "queued_write_lock_slowpath",
        "osq_lock",
        "mutex_spin_on_owner",
        "rwsem_spin_on_owner",
    ],
};

const AARCH64: Names = Names {
    markers: &["__arm64_sys_sethostname", "sys_sethostname"],
    kernel_start: 0xffff_0000_0000_0000,
    stack_bytes: 16 << 10,
    interrupts: &["el1h_64_irq", "el0t_64_irq", "el0t_32_irq", "el1h_64_fiq", "el0t_64_fiq"],
    exceptions: &["el1h_64_sync", "el0t_64_sync", "el0t_32_sync", "el1h_64_error", "el0t_64_error"],
    system_calls: &[],
    task_switch: "cpu_switch_to",
    stack_pointer: Some("cpu_context"),
    spins: &[
        "queued_spin_lock_slowpath",
        "queued_read_lock_slowpath",
        "queued_write_lock_slowpath",
        "osq_lock",
    ],
};

const ARM: Names = Names {
    markers: &["sys_sethostname", "__se_sys_sethostname"],
    kernel_start: 0xbf00_0000,
    stack_bytes: 8 << 10,
    interrupts: &["__irq_svc", "__irq_usr"],
    exceptions: &["__dabt_svc", "__dabt_usr", "__pabt_svc", "__pabt_usr", "__und_svc", "__und_usr"],
    system_calls: &["vector_swi", "vector_bhb_loop8_swi", "vector_bhb_bpiall_swi"],
    task_switch: "__switch_to",
    stack_pointer: None,
    spins: &["osq_lock", "mutex_spin_on_owner"],
};

/// Finds a kernel's entry points by name.
///
/// # Errors
/// When kernels for the machine are not recorded, or this kernel lacks a function that is needed to distinguish its
/// calls, interrupts and tasks.
pub fn find(machine: Machine, symbols: &KernelSymbols) -> Result<EntryPoints, Error> {
    let names = names(machine).ok_or(Error::NotRecordable { machine })?;
    let marker = names.markers.iter().find_map(|name| one(symbols, name));
    let marker = marker.ok_or_else(|| Error::NoMarker { names: names.markers.join(", ") })?;
    let task_switch =
        one(symbols, names.task_switch).ok_or(Error::NoTaskSwitch { name: names.task_switch })?;
    Ok(EntryPoints {
        marker: marker.start,
        kernel_start: names.kernel_start,
        stack_bytes: names.stack_bytes,
        interrupts: starts(symbols, names.interrupts),
        exceptions: starts(symbols, names.exceptions),
        system_calls: starts(symbols, names.system_calls),
        task_switch,
        spins: names.spins.iter().flat_map(|name| one(symbols, name)).collect(),
    })
}

fn names(machine: Machine) -> Option<&'static Names> {
    match machine.description().code? {
        CodeMachine::X86_64 => Some(&X86_64),
        CodeMachine::AArch64 => Some(&AARCH64),
        CodeMachine::Arm => Some(&ARM),
        CodeMachine::I386 => None,
    }
}

/// The offsets for finding the names of tasks, from a kernel's types; `None` where the types lack them.
pub fn task_struct(machine: Machine, types: &Types) -> Option<TaskStruct> {
    let stack_pointer = names(machine)?.stack_pointer?;
    let named = types.by_name();
    let of = |name: &str| {
        named.get(name)?.iter().copied().find(|id| types.size_bytes(*id).is_some_and(|size| size > 0))
    };
    let task = of("task_struct")?;
    Some(TaskStruct {
        stack_pointer: offset_of(types, task, "thread")?.checked_add(offset_of(
            types,
            of("thread_struct")?,
            stack_pointer,
        )?)?,
        pid: offset_of(types, task, "pid")?,
        name: offset_of(types, task, "comm")?,
        memory: machine.description().board?.memory.clone(),
    })
}

/// Structs without names that may lie in each other.
const MOST_NESTED: u32 = 8;

/// The offset of a member of a struct, or of a member of an unnamed struct inside it.
fn offset_of(types: &Types, id: TypeId, member: &str) -> Option<u64> {
    offset_within(types, id, member, MOST_NESTED)
}

fn offset_within(types: &Types, id: TypeId, member: &str, nested: u32) -> Option<u64> {
    let (_, aggregate) = types.aggregate(id)?;
    aggregate.members.iter().find_map(|one| match one.name.as_deref() {
        Some(name) => one.offset_bytes().filter(|_| name == member),
        None => {
            one.offset_bytes()?.checked_add(offset_within(types, one.ty, member, nested.checked_sub(1)?)?)
        }
    })
}

fn one(symbols: &KernelSymbols, name: &str) -> Option<Range<u64>> {
    symbols.named(name).find(|symbol| symbol.is_code()).map(|symbol| symbols.range_of(symbol))
}

fn starts(symbols: &KernelSymbols, names: &[&str]) -> Vec<u64> {
    let is_wanted = |name: &str| {
        names
            .iter()
            .any(|wanted| wanted.strip_suffix('*').map_or(name == *wanted, |stem| name.starts_with(stem)))
    };
    let wanted = symbols.all().iter().filter(|symbol| symbol.is_code() && is_wanted(&symbol.name));
    wanted.map(|symbol| symbol.address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelSymbol;

    fn symbols(names: &[&str]) -> KernelSymbols {
        let symbol = |(index, name): (usize, &&str)| KernelSymbol {
            address: 0xffff_ffff_8100_0000 + 0x100 * index as u64,
            kind: 't',
            name: (*name).to_owned(),
        };
        KernelSymbols::new(names.iter().enumerate().map(symbol).collect())
    }

    #[test]
    fn the_entries_of_a_kernel_are_found_by_name() {
        let symbols = symbols(&[
            "__x64_sys_sethostname",
            "__switch_to_asm",
            "asm_sysvec_reschedule_ipi",
            "asm_exc_page_fault",
            "sysvec_reschedule_ipi",
            "osq_lock",
            "last",
        ]);
        let found = find(Machine::X86_64, &symbols).unwrap();
        assert_eq!(found.marker, 0xffff_ffff_8100_0000);
        assert_eq!(found.task_switch, 0xffff_ffff_8100_0100..0xffff_ffff_8100_0200);
        assert_eq!(found.interrupts, [0xffff_ffff_8100_0200]);
        assert_eq!(found.exceptions, [0xffff_ffff_8100_0300]);
        assert_eq!(
            (found.spins.len(), found.spins[0].clone()),
            (1, 0xffff_ffff_8100_0500..0xffff_ffff_8100_0600)
        );
    }

    #[test]
    fn a_kernel_without_the_marker_is_refused() {
        let error = find(Machine::X86_64, &symbols(&["__switch_to_asm"])).unwrap_err();
        assert!(error.to_string().contains("sethostname"), "{error}");
    }
}
