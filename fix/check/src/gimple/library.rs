//! Functions of the C library whose use of an address is known.

/// Functions that give new memory, with the arguments whose product is its size.
const ALLOCATORS: [(&str, &[usize]); 9] = [
    ("malloc", &[0]),
    ("calloc", &[0, 1]),
    ("realloc", &[1]),
    ("reallocarray", &[1, 2]),
    ("aligned_alloc", &[1]),
    ("memalign", &[1]),
    ("valloc", &[0]),
    ("alloca", &[0]),
    ("alloca_with_align", &[0]),
];

/// Functions that do not look at what an address of theirs points at.
pub const OPAQUE: [&str; 9] = [
    "free",
    "realloc",
    "__builtin_free",
    "__builtin_prefetch",
    "__builtin_object_size",
    "reallocarray",
    "__builtin_realloc",
    "__builtin_unreachable",
    "madvise",
];

/// Functions with an address and a number of bytes: name, arguments that are addresses, argument of the size.
const SIZED: [(&str, &[usize], usize); 18] = [
    ("memcpy", &[0, 1], 2),
    ("memmove", &[0, 1], 2),
    ("memset", &[0], 2),
    ("memcmp", &[0, 1], 2),
    ("memchr", &[0], 2),
    ("bzero", &[0], 1),
    ("strncpy", &[0, 1], 2),
    ("strncmp", &[0, 1], 2),
    ("strncasecmp", &[0, 1], 2),
    ("strnlen", &[0], 1),
    ("snprintf", &[0], 1),
    ("vsnprintf", &[0], 1),
    ("fgets", &[0], 1),
    ("read", &[1], 2),
    ("write", &[1], 2),
    ("recv", &[1], 2),
    ("send", &[1], 2),
    ("getrandom", &[0], 1),
];

/// Functions that read or write one text, up to its zero.
const TEXTS: [&str; 20] = [
    "strlen",
    "strcmp",
    "strcasecmp",
    "strcpy",
    "strcat",
    "strchr",
    "strrchr",
    "strstr",
    "strdup",
    "strtol",
    "strtoul",
    "strtod",
    "atoi",
    "puts",
    "fputs",
    "printf",
    "fprintf",
    "open",
    "fopen",
    "strpbrk",
];

fn bare(name: &str) -> &str {
    let name = name.strip_prefix("__builtin_").unwrap_or(name);
    name.strip_prefix("__").and_then(|rest| rest.strip_suffix("_chk")).unwrap_or(name)
}

/// The argument that holds the size of what the argument `index` points at.
pub fn size_argument(name: &str, index: usize) -> Option<usize> {
    let (_, addresses, size) = SIZED.iter().find(|(sized, ..)| *sized == bare(name))?;
    addresses.contains(&index).then_some(*size)
}

/// True when the function treats an argument as a text.
pub fn is_text(name: &str) -> bool {
    TEXTS.contains(&bare(name))
}

/// True when it sets all bytes to one value.
pub fn is_fill(name: &str) -> bool {
    matches!(bare(name), "memset" | "bzero")
}

/// True when it copies bytes.
pub fn is_copy(name: &str) -> bool {
    matches!(bare(name), "memcpy" | "memmove")
}

/// The arguments whose product is the size of the memory that it gives; none when it gives none.
pub fn allocated(name: &str) -> Option<&'static [usize]> {
    ALLOCATORS.iter().find(|(known, _)| *known == bare(name)).map(|(_, sizes)| *sizes)
}

/// True when its new memory has the content of the memory that it gets.
pub fn keeps_content(name: &str) -> bool {
    matches!(bare(name), "realloc" | "reallocarray")
}

/// True when it does not look at what it gets the address of.
pub fn is_opaque(name: &str) -> bool {
    OPAQUE.contains(&name)
}

/// True when it loads code or makes it.
pub fn is_loader(name: &str) -> bool {
    matches!(name, "dlopen" | "dlsym" | "dlvsym" | "mprotect" | "pkey_mprotect")
}
