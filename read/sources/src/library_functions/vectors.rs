//! Intrinsics that load or store whole vectors: they reach beyond the member whose address they are given.

/// An intrinsic's access at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VectorAccess {
    /// Reads or writes this many bytes there.
    Bytes(u64),
    /// Reads or writes at distances that the program works out.
    Scattered,
}

/// Intrinsics that move a cache line and read nothing.
const LINE_ONLY: [&str; 4] = ["_clflush", "_clwb", "_cldemote", "_mm_prefetch"];

/// Intrinsics that save or load the state of the processor's vectors, and the bytes of which its address is a multiple.
/// The state is at least as long.
const STATES: [(&str, u64); 4] = [("_fxsave", 16), ("_fxrstor", 16), ("_xsave", 64), ("_xrstor", 64)];

/// The access of a function of this name at an address that it is given, if it is an intrinsic of x86 or of Arm.
pub(crate) fn access(name: &str) -> Option<VectorAccess> {
    if LINE_ONLY.iter().any(|word| name.contains(word)) {
        return None;
    }
    if let Some((_, bytes)) = STATES.iter().find(|(start, _)| name.starts_with(start)) {
        return Some(VectorAccess::Bytes(*bytes));
    }
    let of_x86 = [("_mm512_", 64), ("_mm256_", 32), ("_mm_", 16), ("_m_", 8), ("__builtin_ia32_", 64)];
    let bytes = of_x86.iter().find(|(start, _)| name.starts_with(start)).map(|(_, bytes)| *bytes);
    let bytes = bytes.or_else(|| of_arm(name))?;
    let is_scattered = ["gather", "scatter"].iter().any(|word| name.contains(word));
    Some(if is_scattered { VectorAccess::Scattered } else { VectorAccess::Bytes(bytes) })
}

/// True when an intrinsic requires an address that is a multiple of its access's size.
pub(crate) fn is_aligned(name: &str) -> bool {
    const ALIGNED: [&str; 5] = ["_load_", "_store_", "_stream_", "_loadr_", "_storer_"];
    const PARTS: [&str; 6] = ["_ss", "_sd", "_sh", "_si16", "_si32", "_si64"];
    const WHOLE: [&str; 4] = ["_mm_store1_ps", "_mm_store_ps1", "_mm_store1_pd", "_mm_store_pd1"];
    let is_of_x86 = name.starts_with("_mm");
    let is_broadcast = matches!(name, "_mm_load_ps1" | "_mm_load_pd1");
    let is_part = PARTS.iter().any(|end| name.ends_with(end)) || is_broadcast;
    let is_state = STATES.iter().any(|(start, _)| name.starts_with(start));
    is_state
        || WHOLE.contains(&name)
        || (is_of_x86 && !is_part && ALIGNED.iter().any(|word| name.contains(word)))
}

/// `vld1q_f32`, `vst3_u8`, `vld1q_s32_x4`: registers of 8 bytes, with `q` of 16.
fn of_arm(name: &str) -> Option<u64> {
    let rest = name.strip_prefix("vld").or_else(|| name.strip_prefix("vst"))?;
    let registers = u64::from(rest.chars().next()?.to_digit(10)?);
    let further = name.rsplit_once("_x").and_then(|(_, count)| count.parse::<u64>().ok());
    let bytes = if rest[1..].starts_with('q') { 16 } else { 8 };
    Some(registers.max(further.unwrap_or(1)) * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_how_far_an_intrinsic_reaches() {
        for (name, bytes) in [
            ("_mm_loadu_ps", 16),
            ("_mm256_store_si256", 32),
            ("_mm512_loadu_si512", 64),
            ("vld1q_f32", 16),
            ("vst3_u8", 24),
            ("vld1q_s32_x4", 64),
        ] {
            assert_eq!(access(name), Some(VectorAccess::Bytes(bytes)), "{name}");
        }
        assert_eq!(access("__builtin_ia32_gatherd_d"), Some(VectorAccess::Scattered));
        for name in ["_mm_load_ps", "_mm256_store_si256", "_mm_stream_si128", "_mm512_mask_load_ps"] {
            assert!(is_aligned(name), "{name}");
        }
        for name in [
            "_mm_loadu_ps",
            "_mm_load_ss",
            "_mm_load1_ps",
            "_mm_storel_epi64",
            "_mm_stream_si64",
            "vld1q_f32",
        ] {
            assert!(!is_aligned(name), "{name}");
        }
        for name in ["memcpy", "vldr", "mm_load", "valid"] {
            assert_eq!(access(name), None, "{name}");
        }
    }
}
