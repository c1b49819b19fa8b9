//! The regions of a kernel: functions by name, and sets of them.

use crate::{Error, KernelSymbols};
use lineup_debuginfo::nearest;
use lineup_model::region::{Region, Regions};

/// The region that is no function: spans with interrupts off.
pub const INTERRUPTS_OFF: &str = "irqs-off";

/// The second region that is no function: all accesses in the kernel, in windows of the run.
pub const KERNEL: &str = "kernel";

/// Functions named at most when the one wanted does not exist.
const NEAREST: usize = 5;

/// A named set.
struct Set {
    /// Its name on the command line.
    name: &'static str,
    /// Its description.
    about: &'static str,
    /// Its functions, outermost first; functions that a kernel lacks are left out.
    functions: &'static [&'static str],
}

/// All sets.
const SETS: &[Set] = &[
    Set {
        name: "timer",
        about: "the local timer interrupt down to the tick",
        functions: &[
            "sysvec_apic_timer_interrupt",
            "arch_timer_handler_virt",
            "arch_timer_handler_phys",
            "twd_handler",
            "hrtimer_interrupt",
            "tick_sched_timer",
            "tick_nohz_handler",
            "update_process_times",
            "scheduler_tick",
            "sched_tick",
        ],
    },
    Set {
        name: "sched-clock",
        about: "the scheduler's clock",
        functions: &["sched_clock", "sched_clock_cpu", "sched_clock_noinstr"],
    },
    Set {
        name: "clockevents",
        about: "programming the next timer event",
        functions: &[
            "clockevents_program_event",
            "tick_program_event",
            "tick_handle_periodic",
            "lapic_next_event",
            "lapic_next_deadline",
            "tick_broadcast_oneshot_control",
        ],
    },
    Set { name: "wakeup", about: "waking a task", functions: &["try_to_wake_up", "ttwu_do_activate"] },
    Set {
        name: "switch",
        about: "choosing the next task and changing to it",
        functions: &["__schedule", "pick_next_task_fair", "finish_task_switch"],
    },
    Set {
        name: "syscall-entry",
        about: "system calls, from the common entry to the return",
        functions: &["do_syscall_64", "el0_svc", "invoke_syscall", "syscall_enter_from_user_mode"],
    },
    Set { name: INTERRUPTS_OFF, about: "every span with interrupts off", functions: &[] },
    Set {
        name: KERNEL,
        about: "all that the CPUs access in the kernel, in windows of the run, for lineup threads",
        functions: &[],
    },
    Set {
        name: "net-rx",
        about: "receiving over the loopback",
        functions: &["net_rx_action", "process_backlog", "__netif_receive_skb", "ip_rcv", "tcp_v4_rcv"],
    },
    Set {
        name: "tcp",
        about: "a TCP connection's data: sent, received, acknowledged",
        functions: &[
            "tcp_sendmsg",
            "tcp_write_xmit",
            "__tcp_transmit_skb",
            "tcp_rcv_established",
            "tcp_ack",
            "tcp_recvmsg",
        ],
    },
];

/// Name and description of each set.
pub fn sets() -> impl Iterator<Item = (&'static str, &'static str)> {
    SETS.iter().map(|set| (set.name, set.about))
}

/// The regions that the user's words mean, each once, in their order.
///
/// # Errors
/// When the kernel has no such function, or none of a set.
pub fn find(wanted: &Regions, symbols: &KernelSymbols, image: &str) -> Result<Regions, Error> {
    let mut regions = Regions::default();
    for (_, Region { name: word, weight, .. }) in wanted.iter() {
        let found = match SETS.iter().find(|set| set.name == word) {
            Some(set) => of_set(set, symbols)?,
            None => vec![function(word, symbols)?],
        };
        for (name, entries) in found {
            if regions.id_of(&name).is_none() {
                regions.push(Region { name, weight: *weight, image: image.to_owned(), entries });
            }
        }
    }
    Ok(regions)
}

/// The prefix of the kernel's name for a compiled program; a digest and the program's name follow.
const BPF_PROGRAM: &str = "bpf_prog_";

type FunctionAddresses = (String, Vec<u64>);

fn of_set(set: &Set, symbols: &KernelSymbols) -> Result<Vec<FunctionAddresses>, Error> {
    if [INTERRUPTS_OFF, KERNEL].contains(&set.name) {
        return Ok(vec![(set.name.to_owned(), Vec::new())]);
    }
    let found: Vec<FunctionAddresses> = set
        .functions
        .iter()
        .map(|name| ((*name).to_owned(), entries(name, symbols)))
        .filter(|(_, entries)| !entries.is_empty())
        .collect();
    if found.is_empty() {
        return Err(Error::NoneOfSet { set: set.name, functions: set.functions.join(", ") });
    }
    Ok(found)
}

fn function(name: &str, symbols: &KernelSymbols) -> Result<FunctionAddresses, Error> {
    let entries = entries(name, symbols);
    if !entries.is_empty() {
        return Ok((name.to_owned(), entries));
    }
    if name.starts_with(BPF_PROGRAM) {
        return Err(Error::BpfProgram { name: name.to_owned() });
    }
    let functions = symbols.all().iter().filter(|symbol| symbol.is_code());
    let like = nearest(name, functions.map(|symbol| symbol.name.as_str()), NEAREST);
    let sets: Vec<&str> = SETS.iter().map(|set| set.name).collect();
    Err(Error::NoFunction {
        name: name.to_owned(),
        like: if like.is_empty() { String::new() } else { format!(", but {}", like.join(", ")) },
        sets: sets.join(", "),
    })
}

/// The beginnings of a function: under its own name, and of copies that the compiler named with a suffix.
fn entries(name: &str, symbols: &KernelSymbols) -> Vec<u64> {
    const COPIES: [&str; 4] = [".isra.", ".constprop.", ".part.", ".llvm."];
    let is_copy = |symbol: &str| {
        let suffix = symbol.strip_prefix(name).unwrap_or_default();
        COPIES.iter().any(|copy| suffix.starts_with(copy)) && !suffix.contains(".cold")
    };
    let mut own: Vec<u64> =
        symbols.named(name).filter(|symbol| symbol.is_code()).map(|symbol| symbol.address).collect();
    let copies = symbols.all().iter().filter(|symbol| symbol.is_code() && is_copy(&symbol.name));
    own.extend(copies.map(|symbol| symbol.address));
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelSymbol;

    fn symbols() -> KernelSymbols {
        let symbol =
            |(name, address): (&str, u64)| KernelSymbol { address, kind: 't', name: name.to_owned() };
        let names = [
            ("hrtimer_interrupt", 0x1000),
            ("scheduler_tick", 0x1100),
            ("finish_task_switch.isra.0", 0x1200),
            ("finish_task_switch.isra.0.cold", 0x1300),
        ];
        KernelSymbols::new(names.map(symbol).into())
    }

    fn names(words: &[&str]) -> Result<Vec<(String, Vec<u64>)>, Error> {
        let wanted = words.iter().map(|word| Region::named(*word)).collect();
        let regions = find(&wanted, &symbols(), "vmlinux")?;
        Ok(regions.iter().map(|(_, region)| (region.name.clone(), region.entries.clone())).collect())
    }

    #[test]
    fn a_set_is_the_functions_that_the_kernel_has() {
        let found = names(&["timer", "hrtimer_interrupt"]).unwrap();
        let expected =
            [("hrtimer_interrupt".to_owned(), vec![0x1000]), ("scheduler_tick".to_owned(), vec![0x1100])];
        assert_eq!(found, expected);
        for name in ["irqs-off", "kernel"] {
            assert_eq!(names(&[name]).unwrap(), [(name.to_owned(), vec![])]);
        }
    }

    #[test]
    fn a_compilers_copy_is_the_function_and_its_cold_part_is_not() {
        assert_eq!(names(&["switch"]).unwrap(), [("finish_task_switch".to_owned(), vec![0x1200])]);
    }

    #[test]
    fn a_missing_function_is_refused_with_what_is_like_it() {
        let error = names(&["hrtimer"]).unwrap_err().to_string();
        assert!(error.contains("hrtimer_interrupt"), "{error}");
        let error = names(&["shceduler_tick"]).unwrap_err().to_string();
        assert!(error.contains("scheduler_tick"), "{error}");
        // A module's function is missing because it is in the module.
        assert!(error.contains("when --module names the module"), "{error}");
        // A BPF program's code is nowhere.
        let error = names(&["bpf_prog_6deef7357e7b4530_sd_fw_egress"]).unwrap_err().to_string();
        assert!(error.contains("BPF program, which is not supported"), "{error}");
        assert!(names(&["net-rx"]).unwrap_err().to_string().contains("net_rx_action"));
        assert!(names(&["tcp"]).unwrap_err().to_string().contains("tcp_sendmsg"));
    }
}
