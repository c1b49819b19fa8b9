//! Functions inside Linux that take `void *` and whose effect on their arguments is known.

use super::Rule;

/// The rule for a function of a kernel, by name.
pub(crate) fn rule(name: &str) -> Option<Rule> {
    Some(match name {
        "__memcpy" | "__memmove" | "memcpy_flushcache" => Rule::Copies { to: 0, from: 1, size: 2 },
        "__memset" => Rule::Fills { to: 0, size: 2 },
        "memzero_explicit" => Rule::Fills { to: 0, size: 1 },
        "kthread_create_on_node" => Rule::CallsBack { function: 0, passes: &[(1, 0)], gives: None },
        "stop_machine" | "stop_machine_cpuslocked" | "on_each_cpu" => {
            Rule::CallsBack { function: 0, passes: &[(1, 0)], gives: None }
        }
        "smp_call_function" => Rule::CallsBack { function: 0, passes: &[(1, 0)], gives: None },
        "stop_one_cpu"
        | "stop_one_cpu_nowait"
        | "smp_call_function_single"
        | "smp_call_function_many"
        | "on_each_cpu_mask"
        | "on_each_cpu_cond_mask" => Rule::CallsBack { function: 1, passes: &[(2, 0)], gives: None },
        "request_irq" => Rule::CallsBack { function: 1, passes: &[(4, 1)], gives: None },
        "request_threaded_irq" => Rule::CallsBack { function: 1, passes: &[(5, 1)], gives: None },
        "panic" | "dump_page" => Rule::Harmless,
        // An error's number in place of a pointer is no object.
        "ERR_CAST" | "ERR_PTR" | "PTR_ERR" | "PTR_ERR_OR_ZERO" | "IS_ERR" | "IS_ERR_OR_NULL" => {
            Rule::Harmless
        }
        _ if is_harmless(name) => Rule::Harmless,
        _ => return None,
    })
}

/// True for functions that look up or change one bit by its number: `test_bit(3, &x->flags)`. They step to the word
/// that the bit is in, and of one word that is the word.
pub(crate) fn is_of_one_bit(name: &str) -> bool {
    let has = |wanted: &str| name.split('_').any(|word| word == wanted);
    has("bitop") || (has("bit") && ["test", "set", "clear", "change"].into_iter().any(has))
}

/// True for the type that all functions have which BPF programs call, or which are such programs: five numbers. The
/// verifier knows the type of each.
pub(crate) fn is_bpf(signature: &str) -> bool {
    signature
        == "unsigned long long (unsigned long long, unsigned long long, unsigned long long, unsigned long long, unsigned long long)"
}

/// Families that look at the place of an object, not into it, or print it.
fn is_harmless(name: &str) -> bool {
    const FAMILIES: [&str; 9] = [
        "kasan_",
        "__kasan_",
        "kmsan_",
        "kcsan_",
        "__kcsan_",
        "__asan_",
        "__tsan_",
        "kmemleak_",
        // BPF programs find members by their names when they are loaded.
        "bpf_trace_run",
    ];
    const PLACES: [&str; 14] = [
        // Their 64 bits are hashed directly, a pointer's as well; `siphash` reads the target of a pointer.
        "siphash_1u64",
        "siphash_2u64",
        "siphash_3u64",
        "siphash_4u64",
        // Takes a pointer's value into the hash of a name.
        "full_name_hash",
        // Declared without lockdep as well, and linked only with it.
        "lockdep_is_held",
        "__virt_addr_valid",
        "is_vmalloc_addr",
        "vmalloc_to_page",
        "object_is_on_stack",
        "__check_object_size",
        "__list_add_valid",
        "prefetch",
        "kmem_cache_destroy",
    ];
    let prints = ["printf", "printk"].iter().any(|end| name.ends_with(end));
    prints || FAMILIES.iter().any(|family| name.starts_with(family)) || PLACES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_the_kernel_has_no_rule() {
        let leaving = ["_copy_to_user", "_copy_from_user", "csum_partial", "nla_put", "dma_map_page_attrs"];
        let reading = ["siphash", "__siphash_aligned", "__siphash_unaligned", "jhash", "crc32_le"];
        for name in leaving.into_iter().chain(reading) {
            assert_eq!(rule(name), None, "{name}");
            assert_eq!(super::super::rule(name), None, "{name}");
        }
    }
}
