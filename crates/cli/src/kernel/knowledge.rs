//! What the recorder must know of a kernel, from its symbols.

use anyhow::{Result, bail};
use lineup_kernel::KernelSymbols;
use lineup_model::abi::Machine;
use lineup_recording::{Arm, Latency, SystemPlan};
use std::ops::Range;

/// Nanoseconds of the guest's time per instruction, as a power of two: the emulator's `-icount shift`.
pub(crate) const TIME_SHIFT: u32 = 1;

/// Names that matter on one machine. A name that ends in `*` stands for all that begin so.
struct Names {
    /// The first that exists: run by `hostname NAME`.
    markers: &'static [&'static str],
    kernel_start: u64,
    stack_bytes: u64,
    interrupts: &'static [&'static str],
    exceptions: &'static [&'static str],
    system_calls: &'static [&'static str],
    task_switch: &'static str,
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
    spins: &["osq_lock", "mutex_spin_on_owner"],
};

/// What the user chooses of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Virtual CPUs.
    pub(crate) cpus: u32,
    /// What misses cost.
    pub(crate) latency: Latency,
    /// What is done before calls.
    pub(crate) arms: Vec<Arm>,
}

/// The plan but for the region of interrupt-off spans and where the interrupt flag is saved.
///
/// # Errors
/// When the kernel lacks a function without which nothing can be told apart.
pub(crate) fn system_plan(machine: Machine, symbols: &KernelSymbols, choice: &Choice) -> Result<SystemPlan> {
    let names = match machine {
        Machine::X86_64 => &X86_64,
        Machine::AArch64 => &AARCH64,
        Machine::Arm => &ARM,
        Machine::I386 => bail!("kernels for i386 are not recorded; x86_64, aarch64 and arm are"),
    };
    let Some(marker) = names.markers.iter().find_map(|name| one(symbols, name)) else {
        bail!("the kernel has none of {}, which marks the begin of a recording", names.markers.join(", "));
    };
    let Some(task_switch) = one(symbols, names.task_switch) else {
        bail!("the kernel has no {}, which tells tasks apart", names.task_switch);
    };
    Ok(SystemPlan {
        marker: marker.start,
        kernel_start: names.kernel_start,
        stack_bytes: names.stack_bytes,
        interrupts: starts(symbols, names.interrupts),
        exceptions: starts(symbols, names.exceptions),
        system_calls: starts(symbols, names.system_calls),
        task_switch,
        flag_saves: Vec::new(),
        spins: names.spins.iter().flat_map(|name| one(symbols, name)).collect(),
        cpus: choice.cpus,
        time_shift: TIME_SHIFT,
        latency: choice.latency,
        arms: choice.arms.clone(),
        interrupts_off: None,
        stream_steps: 0,
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
    use lineup_kernel::KernelSymbol;

    fn symbols(names: &[&str]) -> KernelSymbols {
        let symbol = |(index, name): (usize, &&str)| KernelSymbol {
            address: 0xffff_ffff_8100_0000 + 0x100 * index as u64,
            kind: 't',
            name: (*name).to_owned(),
        };
        KernelSymbols::new(names.iter().enumerate().map(symbol).collect())
    }

    fn choice() -> Choice {
        Choice { cpus: 1, latency: Latency::default(), arms: vec![Arm::Untouched] }
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
        let plan = system_plan(Machine::X86_64, &symbols, &choice()).unwrap();
        assert_eq!(plan.marker, 0xffff_ffff_8100_0000);
        assert_eq!(plan.task_switch, 0xffff_ffff_8100_0100..0xffff_ffff_8100_0200);
        assert_eq!(plan.interrupts, [0xffff_ffff_8100_0200]);
        assert_eq!(plan.exceptions, [0xffff_ffff_8100_0300]);
        assert_eq!(
            (plan.spins.len(), plan.spins[0].clone()),
            (1, 0xffff_ffff_8100_0500..0xffff_ffff_8100_0600)
        );
    }

    #[test]
    fn a_kernel_without_the_marker_is_refused() {
        let error = system_plan(Machine::X86_64, &symbols(&["__switch_to_asm"]), &choice()).unwrap_err();
        assert!(error.to_string().contains("sethostname"), "{error}");
    }
}
