//! Functions of the C library whose effect on the objects they are given is known. A call of any other function that is
//! not compiled with the program counts as a crossing.

pub(crate) mod kernel;
mod texts;
pub(crate) mod vectors;

pub(crate) use texts::{TextRule, text_rule};

/// The effect of a function on its arguments, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// Nothing that depends on the order of members.
    Harmless,
    /// Gives fresh memory.
    Allocates,
    /// Gives back this argument.
    Returns(usize),
    /// Copies `size` bytes from `from` to `to`.
    Copies { to: usize, from: usize, size: usize },
    /// Fills `size` bytes.
    Fills { to: usize, size: usize },
    /// Compares bytes of both.
    Compares { size: usize },
    /// Calls a function with some of the arguments: (argument, parameter of that function). Its own result is one of
    /// the arguments, or unrelated to them: a thread's data is not the thread.
    CallsBack { function: usize, passes: &'static [(usize, usize)], gives: Option<usize> },
    /// Keeps a pointer for [`Rule::Recalls`].
    Keeps(usize),
    /// Gives back the pointer that was kept.
    Recalls,
}

/// The rule for a function, by name.
pub(crate) fn rule(name: &str) -> Option<Rule> {
    let plain = plain_spelling(name);
    Some(match plain {
        "memcpy" | "memmove" | "mempcpy" => Rule::Copies { to: 0, from: 1, size: 2 },
        "bcopy" => Rule::Copies { to: 1, from: 0, size: 2 },
        "memset" => Rule::Fills { to: 0, size: 2 },
        "bzero" | "explicit_bzero" => Rule::Fills { to: 0, size: 1 },
        "memcmp" | "bcmp" => Rule::Compares { size: 2 },
        "malloc" | "calloc" | "aligned_alloc" | "memalign" | "valloc" | "alloca" | "alloca_with_align"
        | "operator new" | "operator new[]" | "strdup" | "strndup" => Rule::Allocates,
        "strchr" | "strrchr" | "strstr" | "strpbrk" | "memchr" => Rule::Returns(0),
        // They write text, as `sprintf` does.
        "strcpy" | "strncpy" | "stpcpy" | "stpncpy" | "strcat" | "strncat" => Rule::Returns(0),
        "realloc" | "reallocarray" | "assume_aligned" | "launder" => Rule::Returns(0),
        "qsort" => Rule::CallsBack { function: 3, passes: &[(0, 0), (0, 1)], gives: None },
        "qsort_r" => Rule::CallsBack { function: 3, passes: &[(0, 0), (0, 1), (4, 2)], gives: None },
        "bsearch" => Rule::CallsBack { function: 4, passes: &[(0, 0), (1, 1)], gives: Some(1) },
        "pthread_create" => Rule::CallsBack { function: 2, passes: &[(3, 0)], gives: None },
        "thrd_create" => Rule::CallsBack { function: 1, passes: &[(2, 0)], gives: None },
        "posix_memalign" | "pthread_join" | "pthread_exit" => Rule::Harmless,
        "pthread_cleanup_push" | "__pthread_register_cancel" => Rule::Harmless,
        "pthread_setspecific" | "tss_set" => Rule::Keeps(1),
        "pthread_getspecific" | "tss_get" => Rule::Recalls,
        // The mapped memory came from `mmap`, which is judged for itself.
        "munmap" | "madvise" | "mprotect" | "msync" | "mlock" | "munlock" => Rule::Harmless,
        "free" | "cfree" | "malloc_usable_size" | "operator delete" | "operator delete[]" => Rule::Harmless,
        _ if is_harmless(name, plain) || counts_lowest_bits(name) => Rule::Harmless,
        _ => return None,
    })
}

/// A function's name without what the compiler puts around it.
pub(crate) fn plain_spelling(name: &str) -> &str {
    let plain = name.strip_prefix("__builtin_").unwrap_or(name);
    plain.strip_prefix("__").and_then(|name| name.strip_suffix("_chk")).unwrap_or(plain)
}

/// Families that take pointers to members or print addresses.
fn is_harmless(name: &str, plain: &str) -> bool {
    const FAMILIES: [&str; 12] = [
        "pthread_mutex_",
        "pthread_cond_",
        "pthread_rwlock_",
        "pthread_spin_",
        "pthread_barrier_",
        "pthread_once",
        "sem_",
        "mtx_",
        "cnd_",
        "atomic_",
        "__atomic_",
        "__sync_",
    ];
    const PRINTS: [&str; 10] = [
        "printf",
        "fprintf",
        "sprintf",
        "snprintf",
        "dprintf",
        "vprintf",
        "vfprintf",
        "vsnprintf",
        "perror",
        "assert",
    ];
    const BUILTINS: [&str; 9] = [
        "prefetch",
        "expect",
        "object_size",
        "dynamic_object_size",
        "unreachable",
        "constant_p",
        "va_start",
        "va_end",
        "va_copy",
    ];
    FAMILIES.iter().any(|family| name.starts_with(family))
        || PRINTS.contains(&plain)
        || TEXT.contains(&plain)
        || (name.starts_with("__builtin_") && BUILTINS.contains(&plain))
        || name.starts_with("__assert")
}

/// They take text, which ends in a zero byte: an object is no text.
const TEXT: [&str; 21] = [
    "atof",
    "atoi",
    "atol",
    "atoll",
    "fputs",
    "puts",
    "strspn",
    "strcspn",
    "strlen",
    "strnlen",
    "strcmp",
    "strncmp",
    "strcasecmp",
    "strncasecmp",
    "strcoll",
    "strtol",
    "strtoul",
    "strtoll",
    "strtoull",
    "strtod",
    "strtof",
];

/// True for functions that take text.
pub(crate) fn reads_text(name: &str) -> bool {
    TEXT.contains(&plain_spelling(name))
}

/// The index of the function that a new thread runs.
pub(crate) fn thread_function(name: &str) -> Option<usize> {
    (name == "pthread_create").then_some(2)
}

/// True for functions that are given the number of bytes as an `int`.
pub(crate) fn takes_int_size(name: &str) -> bool {
    const NAMES: [&str; 8] =
        ["fgets", "fgets_unlocked", "inet_ntop", "gzread", "gzwrite", "gzgets", "SSL_read", "SSL_write"];
    NAMES.contains(&plain_spelling(name))
}

/// True for functions that are given a number of wide characters.
pub(crate) fn takes_wide_size(name: &str) -> bool {
    const FAMILIES: [&str; 6] = ["wmem", "wcsn", "fgetws", "swprintf", "vswprintf", "mbsrtowcs"];
    FAMILIES.iter().any(|family| name.starts_with(family)) || name == "mbstowcs"
}

/// True for functions that give fresh memory, by the usual ways to name them.
pub(crate) fn gives_fresh_memory(name: &str) -> bool {
    rule(name) == Some(Rule::Allocates) || name.to_ascii_lowercase().contains("alloc")
}

/// True for functions of the C library that use one number at the address of a floating-point number.
pub(crate) fn takes_one_number(name: &str) -> bool {
    name.contains("scanf") || ["modf", "sincos", "frexp", "strto"].iter().any(|start| name.starts_with(start))
}

/// True for functions of the C++ library, by the compiler's name, that may use what lies behind the target of a pointer.
pub(crate) fn may_step(usr: &str, name: &str) -> bool {
    const OF_ONE_OBJECT: [&str; 5] =
        ["launder", "construct_at", "destroy_at", "to_address", "assume_aligned"];
    usr.starts_with("c:@N@std@")
        && !OF_ONE_OBJECT.contains(&name)
        && !name.starts_with("atomic_")
        && !takes_one_number(name)
        && name != "remquo"
}

/// True for the C++ library's function that gives the address of its argument.
pub(crate) fn is_address_of(usr: &str, name: &str) -> bool {
    usr.starts_with("c:@N@std@") && name == "addressof"
}

/// True for functions of text that are given the number of its bytes.
fn takes_size_of_text(name: &str) -> bool {
    const NAMES: [&str; 7] = ["snprintf", "vsnprintf", "strncpy", "stpncpy", "strncat", "strnlen", "memchr"];
    NAMES.contains(&name)
}

/// The same, by any of the compiler's spellings.
pub(crate) fn takes_size(name: &str) -> bool {
    takes_size_of_text(plain_spelling(name))
}

/// True for functions that hand an object to the kernel, which follows the pointers in it.
pub(crate) fn is_kernels(name: &str) -> bool {
    matches!(
        name,
        "ioctl" | "syscall" | "fcntl" | "prctl" | "ptrace" | "bpf" | "setsockopt" | "getsockopt" | "keyctl"
    )
}

/// The index of the file argument, for functions that map a file, or fresh memory without one.
pub(crate) fn file_of_mapping(name: &str) -> Option<usize> {
    matches!(name, "mmap" | "mmap64").then_some(4)
}

/// Stands for an alignment that is not known.
pub(crate) const MOST_ALIGNMENT: u64 = 4096;

/// True for functions that state the alignment of an address.
pub(crate) fn assumes_alignment(name: &str) -> bool {
    matches!(name, "__builtin_assume_aligned" | "assume_aligned")
}

/// True for functions that fail on an address that is no multiple of a page.
pub(crate) fn takes_pages(name: &str) -> bool {
    matches!(name, "munmap" | "madvise" | "mprotect" | "msync")
}

/// The arguments with the first element, the number of elements and the size of one, for functions that sort or search
/// an array.
pub(crate) fn array_given(name: &str) -> Option<[usize; 3]> {
    match name {
        "qsort" | "qsort_r" => Some([0, 1, 2]),
        "bsearch" => Some([1, 2, 3]),
        _ => None,
    }
}

/// True for operations that are atomic only on an operand aligned to its size.
pub(crate) fn is_atomic(name: &str) -> bool {
    ["__atomic_", "__sync_"].iter().any(|family| name.starts_with(family))
}

/// True for functions whose result is the position of a number's lowest bit.
pub(crate) fn counts_lowest_bits(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "ctz",
        "ctzl",
        "ctzll",
        "ctzg",
        "ffs",
        "ffsl",
        "ffsll",
        "countr_zero",
        "countr_one",
        "_tzcnt_u64",
        "__tzcnt_u64",
        "stdc_trailing_zeros",
    ];
    NAMES.contains(&plain_spelling(name))
}

/// The flag of a file whose reads and writes go to the device at once.
pub(crate) const O_DIRECT: i64 = 0x4000;

/// The index of the flags argument, for functions that open a file or change an open one.
pub(crate) fn flags_of_file(name: &str) -> Option<usize> {
    match name {
        "open" | "open64" => Some(1),
        "openat" | "openat64" | "fcntl" | "fcntl64" => Some(2),
        _ => None,
    }
}

/// The size in bytes of which a device's blocks are multiples.
pub(crate) const BLOCK_BYTES: u64 = 512;

/// True for functions that read a file's bytes into memory, or write them from there.
pub(crate) fn moves_file(name: &str) -> bool {
    matches!(
        name,
        "read" | "write" | "pread" | "pwrite" | "pread64" | "pwrite64" | "io_prep_pread" | "io_prep_pwrite"
    )
}

/// The index of the offset argument, for functions that read a file there or go there. In the file of a process's
/// memory an offset is an address.
pub(crate) fn offset_in_file(name: &str) -> Option<usize> {
    match name {
        "pread" | "pwrite" | "pread64" | "pwrite64" | "preadv" | "pwritev" => Some(3),
        "lseek" | "lseek64" | "fseek" | "fseeko" => Some(1),
        _ => None,
    }
}

/// True for functions that show a number that they are given, also by its position in a file: the name is libclang's
/// and the plain one.
pub(crate) fn shows_numbers(usr: &str, name: &str) -> bool {
    const OF_C: [&str; 11] = [
        "putc",
        "fputc",
        "putchar",
        "putw",
        "exit",
        "_exit",
        "quick_exit",
        "fseek",
        "fseeko",
        "lseek",
        "lseek64",
    ];
    const OF_CPP: [&str; 6] = ["operator<<", "to_string", "to_chars", "format", "print", "println"];
    OF_C.contains(&plain_spelling(name)) || (usr.starts_with("c:@N@std@") && OF_CPP.contains(&name))
}

/// True for functions whose result is the number of bytes from an address to the end of the object there.
pub(crate) fn measures_object(name: &str) -> bool {
    matches!(plain_spelling(name), "object_size" | "dynamic_object_size")
}

/// True for functions that send bytes out of the program.
pub(crate) fn sends_bytes(name: &str) -> bool {
    matches!(name, "write" | "pwrite" | "pwrite64" | "fwrite" | "send" | "sendto")
}

/// The bit in a protection that lets memory be executed.
pub(crate) const PROT_EXEC: i64 = 4;

/// The index of the protection argument, for functions that map memory or change its protection.
pub(crate) fn protection(name: &str) -> Option<usize> {
    matches!(name, "mmap" | "mmap64" | "mprotect").then_some(2)
}

/// True for functions that end an object's life: their use of its bytes matters to nobody any more.
pub(crate) fn ends_life(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["free", "dealloc", "release", "delete"].iter().any(|part| name.contains(part))
}

/// True for the C library's functions that end an object's life and give its bytes a new place.
pub(crate) fn resizes(name: &str) -> bool {
    matches!(name, "realloc" | "reallocarray")
}

/// The same, for functions of the program: one that releases or deletes may only count, or look up what it is given.
pub(crate) fn frees(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["free", "dealloc"].iter().any(|part| name.contains(part))
}

/// True for a function, by libclang's name, that gives memory or takes it back: the use that such functions make of
/// free memory is theirs alone.
pub(crate) fn keeps_memory(usr: &str) -> bool {
    let name = plain_name(usr);
    gives_fresh_memory(name) || frees(name)
}

/// The function in libclang's name of it.
pub(crate) fn plain_name(usr: &str) -> &str {
    usr.rsplit("@F@").next().unwrap_or(usr).split('#').next().unwrap_or(usr)
}

/// Names of members of the system's and of libraries' types that hold a pointer for the program.
pub(crate) fn is_cookie(member: &str) -> bool {
    const NAMES: [&str; 12] = [
        "arg",
        "closure",
        "context",
        "cookie",
        "data",
        "opaque",
        "ptr",
        "sival_ptr",
        "udata",
        "user",
        "user_data",
        "userdata",
    ];
    NAMES.contains(&member)
}

/// The argument that a library's function carries, where neighbouring numbers are no lengths.
pub(crate) fn carries(function: &str) -> Option<usize> {
    matches!(function, "evconnlistener_new" | "evconnlistener_new_bind").then_some(2)
}

/// True for functions that take an option's number, which decides the argument's meaning.
pub(crate) fn takes_options(function: &str) -> bool {
    matches!(function, "curl_easy_setopt" | "curl_multi_setopt" | "curl_share_setopt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_and_builtin_spellings_follow_the_plain_function() {
        assert_eq!(rule("__memcpy_chk"), rule("memcpy"));
        assert_eq!(rule("__builtin___memset_chk"), rule("memset"));
        assert_eq!(rule("__builtin_memcmp"), rule("memcmp"));
    }

    #[test]
    fn what_is_not_known_has_no_rule() {
        for name in ["write", "ioctl", "sendmsg", "lib_register", "setsockopt", "fwrite"] {
            assert_eq!(rule(name), None, "{name}");
        }
    }
}
