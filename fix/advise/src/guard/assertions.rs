//! The promises of a guard, as assertions in the language of the code: a build that breaks a promise then fails by
//! itself.

use crate::guard::lock::{Group, Lock, find_member, member_place};
use lineup_model::types::{Language, TypeId, TypeKind, Types};
use std::fmt::Write as _;

/// In whose terms assertions are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// C11 and C++11: `static_assert` of `offsetof`.
    C,
    /// Rust 1.82: `assert!` of `offset_of!` in constants.
    Rust,
    /// Linux: `CACHELINE_ASSERT_GROUP_MEMBER` where a promised member lies in a group that the type declares,
    /// `static_assert` else.
    Kernel,
}

impl Dialect {
    /// The dialect of the code that declares the first promised type of the table.
    pub fn of(lock: &Lock, types: &Types) -> Dialect {
        let declared = lock.groups.iter().find_map(|group| types.get(complete(types, &group.type_name)?));
        match declared.map(|ty| ty.language) {
            Some(Language::Rust) => Dialect::Rust,
            _ => Dialect::C,
        }
    }
}

/// Assertions for all groups of the lock, guarded by data model. `types` gives the spelling of types, and the
/// bit-fields among the members: these have no offset that can be asserted, and a comment names them.
pub fn assertions(lock: &Lock, types: &Types, dialect: Dialect) -> String {
    match dialect {
        Dialect::C => c(lock, types),
        Dialect::Rust => rust(lock, types),
        Dialect::Kernel => kernel(lock, types),
    }
}

fn c(lock: &Lock, types: &Types) -> String {
    let mut text = String::from(
        "/* Held by lineup.lock as well; include after the types. */\n#include <stddef.h>\n\
         #ifndef LINEUP_ASSERT\n# ifdef __cplusplus\n#  define LINEUP_ASSERT static_assert\n# else\n\
         #  define LINEUP_ASSERT _Static_assert\n# endif\n#endif\n",
    );
    for (number, group) in lock.groups.iter().enumerate() {
        let pointer = if group.data_model == "LP64" { 8 } else { 4 };
        let _ = writeln!(
            text,
            "#if __SIZEOF_POINTER__ == {pointer} && (!defined(LINEUP_LINE_SIZE) || LINEUP_LINE_SIZE == {})",
            group.line_bytes
        );
        let mut spelled = c_spelling(types, &group.type_name);
        if spelled.contains(',') {
            // The preprocessor would take a comma of a template for the end of an argument.
            let short = format!("lineup_asserted_{number}");
            let _ = writeln!(text, "typedef {spelled} {short};");
            spelled = short;
        }
        text += &group_in_c(group, types, (&spelled, "LINEUP_ASSERT"));
        text.push_str("#endif\n");
    }
    text
}

fn group_in_c(group: &Group, types: &Types, (spelled, word): (&str, &str)) -> String {
    let (plain, bits) = asserted(group, types);
    let line = group.line_bytes;
    let mut text = String::new();
    let Some(first) = plain.first() else { return text };
    let at = |member: &str| format!("offsetof({spelled}, {member})");
    let end = |member: &str| match is_open_array(types, &group.type_name, member) {
        true => at(member),
        false => format!("({} + sizeof((({spelled} *)0)->{member}) - 1)", at(member)),
    };
    for member in plain.iter().filter(|member| !group.apart.contains(member)) {
        let _ = writeln!(
            text,
            "{word}({home} / {line} == {} / {line} && {home} / {line} == {} / {line}, \"{first} and {member} share a line\");",
            at(member),
            end(member),
            home = at(first),
        );
    }
    for member in plain.iter().filter(|member| group.apart.contains(member)) {
        let _ = writeln!(
            text,
            "{word}({} / {line} < {home} / {line} || {} / {line} > {home} / {line}, \"{member} stays off the line of {first}\");",
            end(member),
            at(member),
            home = at(first),
        );
    }
    for member in bits {
        let _ = writeln!(text, "/* bit-field {member} {} */", belongs(group, member));
    }
    text
}

fn rust(lock: &Lock, types: &Types) -> String {
    let mut text = String::from(
        "// Held by lineup.lock as well; put it where the types and their fields are visible. Packed types have no\n\
         // references to their fields, so this cannot hold them.\n",
    );
    for group in &lock.groups {
        let (plain, _) = asserted(group, types);
        let Some(first) = plain.first() else { continue };
        let ty = group.type_name.rsplit_once("::").map_or(group.type_name.as_str(), |(_, last)| last);
        let (line, width) = (group.line_bytes, if group.data_model == "LP64" { 64 } else { 32 });
        let _ = writeln!(
            text,
            "#[cfg(target_pointer_width = \"{width}\")]\nconst _: () = {{\n    use core::mem::{{offset_of, size_of}};\n    \
             const fn size<T, M>(_: fn(&T) -> &M) -> usize {{\n        size_of::<M>()\n    }}\n    \
             const HOME: usize = offset_of!({ty}, {first}) / {line};"
        );
        for member in &plain {
            let begin = format!("offset_of!({ty}, {member})");
            let end = format!("({begin} + size(|t: &{ty}| &t.{member}) - 1)");
            let _ = match group.apart.contains(member) {
                false => writeln!(
                    text,
                    "    assert!({begin} / {line} == HOME && {end} / {line} == HOME, \"{first} and {member} share a line\");"
                ),
                true => writeln!(
                    text,
                    "    assert!({end} / {line} < HOME || {begin} / {line} > HOME, \"{member} stays off the line of {first}\");"
                ),
            };
        }
        text.push_str("};\n");
    }
    text
}

fn kernel(lock: &Lock, types: &Types) -> String {
    let mut text = String::from(
        "/* Held by lineup.lock as well. The first kind goes into a function that is compiled, the second anywhere behind\n\
         \x20* the types; they include <linux/cache.h>, <linux/build_bug.h> and <linux/stddef.h>. */\n",
    );
    for group in &lock.groups {
        let spelled = c_spelling(types, &group.type_name);
        let (plain, _) = asserted(group, types);
        let in_group = |member: &&String| kernel_group(types, &group.type_name, member);
        for (member, name) in plain.iter().filter_map(|member| Some((member, in_group(member)?))) {
            let _ = writeln!(text, "CACHELINE_ASSERT_GROUP_MEMBER({spelled}, {name}, {member});");
        }
        let config = if group.data_model == "LP64" { "CONFIG_64BIT" } else { "!CONFIG_64BIT" };
        let negated = config.strip_prefix('!');
        let _ = match negated {
            None => writeln!(text, "#if defined({config}) && SMP_CACHE_BYTES == {}", group.line_bytes),
            Some(config) => {
                writeln!(text, "#if !defined({config}) && SMP_CACHE_BYTES == {}", group.line_bytes)
            }
        };
        text += &group_in_c(group, types, (&spelled, "static_assert"));
        text.push_str("#endif\n");
    }
    text
}

/// The group that the type itself declares around a member, as kernels since 6.8 do.
fn kernel_group(types: &Types, type_name: &str, member: &str) -> Option<String> {
    let id = complete(types, type_name)?;
    let (offset, size) = find_member(types, id, member)?;
    let (_, aggregate) = types.aggregate(id)?;
    let names = aggregate.members.iter().filter_map(|known| known.name.as_deref());
    let mut begun = names.filter_map(|name| name.strip_prefix("__cacheline_group_begin__"));
    let holds = |name: &&str| {
        let place = |end: &str| find_member(types, id, &format!("__cacheline_group_{end}__{name}"));
        let (Some((begin, _)), Some((end, _))) = (place("begin"), place("end")) else { return false };
        begin <= offset && offset.saturating_add(size) <= end
    };
    begun.find(holds).map(str::to_owned)
}

/// The members that can be asserted, those that share the line first; and bit-fields, which cannot.
fn asserted<'g>(group: &'g Group, types: &Types) -> (Vec<&'g String>, Vec<&'g String>) {
    let (bits, plain): (Vec<&String>, Vec<&String>) = group
        .members
        .iter()
        .chain(&group.apart)
        .partition(|member| is_bit_field(types, &group.type_name, member));
    // Without a member that marks the line, nothing can be asserted to stay off it.
    let has_home = group.members.iter().any(|member| plain.contains(&member));
    (if has_home { plain } else { Vec::new() }, bits)
}

fn belongs(group: &Group, member: &String) -> &'static str {
    if group.apart.contains(member) { "stays off that line" } else { "belongs to the same line" }
}

fn complete(types: &Types, name: &str) -> Option<TypeId> {
    let named = types.by_name();
    named
        .get(name)?
        .iter()
        .copied()
        .find(|&id| types.aggregate(id).is_some_and(|(_, aggregate)| !aggregate.is_declaration))
}

/// True when the named member is a bit-field, whose offset no language gives.
fn is_bit_field(types: &Types, type_name: &str, member: &str) -> bool {
    let named = types.by_name();
    let ids = named.get(type_name).into_iter().flatten();
    ids.filter_map(|&id| member_place(types, id, member)).any(|place| place.is_bit_field)
}

/// True when the named member is an array without a length, of which C gives no size.
fn is_open_array(types: &Types, type_name: &str, member: &str) -> bool {
    let place = complete(types, type_name).and_then(|id| member_place(types, id, member));
    place.is_some_and(|place| place.size == 0)
}

/// The C spelling of a type that debug info calls `type_name`: `struct name`, or the typedef's own name. C++ knows
/// both.
fn c_spelling(types: &Types, type_name: &str) -> String {
    let tagged = types.iter().any(|(_, ty)| {
        ty.name.as_deref() == Some(type_name)
            && ty.language != Language::Cpp
            && matches!(ty.kind, TypeKind::Aggregate(_))
            && ty.size_bytes.is_some()
    });
    if tagged { format!("struct {type_name}") } else { type_name.to_string() }
}
