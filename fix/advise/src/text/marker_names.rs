//! Names of members that hold no data: they mark groups, or make room.

/// The name that the kernel's macros give to the member without a size with which a group begins.
pub(crate) const BEGIN: &str = "__cacheline_group_begin";

/// The same where it ends.
pub(crate) const END: &str = "__cacheline_group_end";

/// The beginning of both names, and of the names of the members that they declare.
pub(crate) const MARKER: &str = "__cacheline_group_";

/// True for the members without a size, and the paddings, that the kernel's macros make.
pub(crate) fn is_marker(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.starts_with(MARKER))
}

/// Names of members that only make room.
pub(crate) const ROOM_STEMS: [&str; 4] = ["__pad", "_pad", "padding", "pad"];

/// Whether a member's name says that it only makes room.
pub(crate) fn is_room(name: &str) -> bool {
    ROOM_STEMS.iter().any(|stem| {
        let rest = name.strip_prefix(stem);
        rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
    })
}
