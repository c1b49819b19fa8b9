//! Code that may start threads: functions of libraries, and OpenMP.

use crate::libclang::Cursor;
use crate::read::reader::Reader;
use clang_sys::*;
use lineup_model::object_uses::ThreadStart;

/// Headers whose functions start no threads in which they call the program's own.
const HEADERS: [&str; 97] = [
    "alloca.h",
    "argp.h",
    "arpa/inet.h",
    "assert.h",
    "byteswap.h",
    "complex.h",
    "crypt.h",
    "ctype.h",
    "dirent.h",
    "endian.h",
    "err.h",
    "errno.h",
    "error.h",
    "execinfo.h",
    "fcntl.h",
    "features.h",
    "fenv.h",
    "float.h",
    "fnmatch.h",
    "fts.h",
    "ftw.h",
    "getopt.h",
    "glob.h",
    "grp.h",
    "iconv.h",
    "inttypes.h",
    "iso646.h",
    "langinfo.h",
    "libgen.h",
    "libintl.h",
    "limits.h",
    "locale.h",
    "malloc.h",
    "math.h",
    "memory.h",
    "mntent.h",
    "monetary.h",
    "net/if.h",
    "netdb.h",
    "netinet/in.h",
    "netinet/tcp.h",
    "nl_types.h",
    "obstack.h",
    "paths.h",
    "poll.h",
    "pthread.h",
    "pty.h",
    "pwd.h",
    "regex.h",
    "sched.h",
    "search.h",
    "semaphore.h",
    "setjmp.h",
    "signal.h",
    "spawn.h",
    "stdalign.h",
    "stdarg.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdio_ext.h",
    "stdlib.h",
    "stdnoreturn.h",
    "string.h",
    "strings.h",
    "sys/file.h",
    "sys/ioctl.h",
    "sys/mman.h",
    "sys/param.h",
    "sys/resource.h",
    "sys/select.h",
    "sys/socket.h",
    "sys/stat.h",
    "sys/statvfs.h",
    "sys/sysinfo.h",
    "sys/sysmacros.h",
    "sys/time.h",
    "sys/times.h",
    "sys/types.h",
    "sys/uio.h",
    "sys/un.h",
    "sys/utsname.h",
    "sys/vfs.h",
    "sys/wait.h",
    "syslog.h",
    "termios.h",
    "tgmath.h",
    "threads.h",
    "time.h",
    "uchar.h",
    "ucontext.h",
    "unistd.h",
    "utime.h",
    "wchar.h",
    "wctype.h",
    "wordexp.h",
];

/// Functions of these headers that may.
const STARTERS: [&str; 6] =
    ["clone", "getaddrinfo_a", "pthread_create", "syscall", "thrd_create", "timer_create"];

/// How functions begin that compilers have by themselves. They are declared where they are used first.
const OF_THE_COMPILER: [&str; 3] = ["__builtin_", "__sync_", "__atomic_"];

/// Functions of the C library that old programs declare by themselves, or call without a declaration.
const OF_THE_C_LIBRARY: [&str; 172] = [
    "abort",
    "abs",
    "acos",
    "aligned_alloc",
    "asin",
    "atan",
    "atan2",
    "atexit",
    "atof",
    "atoi",
    "atol",
    "bcmp",
    "bcopy",
    "bsearch",
    "bzero",
    "calloc",
    "cbrt",
    "ceil",
    "clearerr",
    "clock",
    "close",
    "cos",
    "cosh",
    "creat",
    "ctime",
    "difftime",
    "drand48",
    "dup",
    "dup2",
    "erand48",
    "exit",
    "exp",
    "exp2",
    "fabs",
    "fclose",
    "fdopen",
    "feof",
    "ferror",
    "fflush",
    "fgetc",
    "fgets",
    "fileno",
    "floor",
    "fmod",
    "fopen",
    "fprintf",
    "fputc",
    "fputs",
    "fread",
    "free",
    "freopen",
    "frexp",
    "fscanf",
    "fseek",
    "ftell",
    "fwrite",
    "getc",
    "getchar",
    "getcwd",
    "getenv",
    "getopt",
    "getpagesize",
    "getpid",
    "getrusage",
    "gets",
    "gettimeofday",
    "gmtime",
    "hypot",
    "index",
    "isalnum",
    "isalpha",
    "iscntrl",
    "isdigit",
    "islower",
    "isprint",
    "ispunct",
    "isspace",
    "isupper",
    "isxdigit",
    "jrand48",
    "labs",
    "ldexp",
    "localtime",
    "log",
    "log10",
    "log2",
    "longjmp",
    "lrand48",
    "lseek",
    "malloc",
    "memalign",
    "memccpy",
    "memchr",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "mkstemp",
    "mktemp",
    "mktime",
    "modf",
    "mrand48",
    "nrand48",
    "open",
    "perror",
    "posix_memalign",
    "pow",
    "printf",
    "putc",
    "putchar",
    "puts",
    "qsort",
    "rand",
    "random",
    "read",
    "realloc",
    "remove",
    "rename",
    "rewind",
    "rindex",
    "sbrk",
    "scanf",
    "setbuf",
    "setjmp",
    "setlinebuf",
    "setvbuf",
    "sin",
    "sinh",
    "sleep",
    "snprintf",
    "sprintf",
    "sqrt",
    "srand",
    "srand48",
    "srandom",
    "sscanf",
    "strcat",
    "strchr",
    "strcmp",
    "strcoll",
    "strcpy",
    "strcspn",
    "strdup",
    "strerror",
    "strftime",
    "strlen",
    "strncat",
    "strncmp",
    "strncpy",
    "strpbrk",
    "strrchr",
    "strspn",
    "strstr",
    "strtod",
    "strtok",
    "strtol",
    "strtoul",
    "tan",
    "tanh",
    "time",
    "times",
    "tolower",
    "toupper",
    "ungetc",
    "unlink",
    "usleep",
    "valloc",
    "vfprintf",
    "vprintf",
    "vsnprintf",
    "vsprintf",
    "write",
];

impl<'u> Reader<'u, '_> {
    pub(super) fn note_thread_start(&mut self, cursor: Cursor<'u>) {
        let is_openmp = cursor.is_openmp();
        let function = cursor.referenced().filter(|function| {
            cursor.kind() == CXCursor_DeclRefExpr && function.kind() == CXCursor_FunctionDecl
        });
        let at = self.site(cursor);
        let start = |reader: &Self, name: &str| ThreadStart {
            name: name.to_owned(),
            path: reader.tree.files[at.file].to_string(),
            line: at.line,
        };
        let Some(function) = function.filter(|function| function.definition().is_none()) else {
            if is_openmp {
                self.splitting.facts.thread_start = Some(start(self, "OpenMP"));
            }
            return;
        };
        let (site, name) = (self.site(function), function.spelling());
        if OF_THE_C_LIBRARY.contains(&&*name) || OF_THE_COMPILER.iter().any(|start| name.starts_with(start)) {
            return;
        }
        if !self.is_foreign_file[site.file] {
            let start = start(self, &name);
            self.splitting.facts.own_declarations.entry(function.usr()).or_insert(start);
        } else if !is_quiet_header(&self.tree.files[site.file]) || STARTERS.contains(&&*name) {
            self.splitting.facts.thread_start = Some(start(self, &name));
        }
    }
}

/// True of a header of the C library, and of a function that the compiler knows by itself.
fn is_quiet_header(path: &str) -> bool {
    let is_system = |folder: &str| {
        folder.ends_with("/include") || folder.rsplit('/').next().is_some_and(|last| last.contains("linux"))
    };
    path.is_empty()
        || path.contains("/bits/")
        || HEADERS.iter().any(|header| {
            let folder = path.strip_suffix(header).and_then(|folder| folder.strip_suffix('/'));
            folder.is_some_and(is_system)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_the_c_librarys_by_their_folder() {
        for path in
            ["", "/usr/include/stdio.h", "/usr/include/utime.h", "/usr/include/x86_64-linux-gnu/sys/time.h"]
        {
            assert!(is_quiet_header(path), "{path}");
        }
        for path in ["/usr/include/aio.h", "/usr/include/other/signal.h", "/usr/include/glib-2.0/glib.h"] {
            assert!(!is_quiet_header(path), "{path}");
        }
    }
}
