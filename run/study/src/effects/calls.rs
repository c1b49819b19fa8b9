//! The system calls through which effects leave a process, and the meaning of their arguments.
//!
//! The list is the same on every machine except for numbers and calls that only old machines have. A new machine adds
//! the latter in its own list, as `x86_64` does here.

/// A call's effect, with the positions of its arguments, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// Bytes to a file: file 0, bytes 1, size 2.
    Write,
    /// Bytes from several places to a file: file 0, list 1, length of the list 2.
    WriteVector,
    /// A message: socket 0, bytes 1, size 2, flags 3, address 4, its size 5.
    SendTo,
    /// A message: socket 0, header 1.
    SendMessage,
    /// Messages: socket 0, headers 1, how many 2.
    SendMessages,
    /// Bytes that the kernel moves to the file in this place.
    Transfer(usize),
    /// Bytes of a file that the kernel moves to another: file 0, from file 1, address of the offset 2.
    SendFile,
    /// A connection that a client made.
    Accept,
    /// Bytes from a file: file 0, bytes 1.
    Read,
    /// Bytes from a file to several places: file 0, list 1, length of the list 2.
    ReadVector,
    /// A message that came in: socket 0, header 1.
    ReceiveMessage,
    /// Messages that came in: socket 0, headers 1.
    ReceiveMessages,
    /// File 0, request 1, argument 2.
    Ioctl,
    /// Socket 0, level 1, option 2, value 3, its size 4.
    SocketOption,
    /// Socket 0, address 1, its size 2.
    Address,
    /// Opens or makes a file.
    Open(PathArgument),
    /// Changes the files at one path or two.
    Paths(PathArgument, Option<PathArgument>),
    /// Changes the file in place 0.
    ChangeFile,
    /// Maps the file in place 4, shared and writable.
    MapShared,
    /// Runs another program: path, list of arguments.
    Execute(PathArgument, usize),
    /// Sends a signal to the process in the first place; the signal is in the second.
    Signal(usize, usize),
    /// Hands bytes to the kernel, in addition to plain numbers.
    Argument(Argument),
    /// Gives the process a way out that is not observed.
    NotObserved(&'static str),
}

/// A path, and the place of the open folder that it is relative to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PathArgument {
    pub(super) folder: Option<usize>,
    pub(super) path: usize,
}

/// Bytes that are handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Argument {
    /// The place of the file that the call acts on.
    pub(super) file: Option<usize>,
    /// The place of their address.
    pub(super) address: usize,
    pub(super) size: ArgumentSize,
    /// Positions of plain numbers that describe the request.
    pub(super) numbers: &'static [usize],
}

/// The source of an argument's size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ArgumentSize {
    /// In the argument in this place.
    Place(usize),
    /// In the bytes themselves: a 32-bit number at this offset.
    Inside(u64),
}

/// A system call of this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SystemCall {
    pub(super) number: i64,
    pub(super) name: &'static str,
    pub(super) meaning: Meaning,
}

const fn at(folder: usize, path: usize) -> PathArgument {
    PathArgument { folder: Some(folder), path }
}

const fn bytes(address: usize, size: ArgumentSize, numbers: &'static [usize]) -> Meaning {
    Meaning::Argument(Argument { file: None, address, size, numbers })
}

macro_rules! calls {
    ($($name:ident = $number:ident: $meaning:expr;)*) => {
        &[$(SystemCall { number: libc::$number, name: stringify!($name), meaning: $meaning }),*]
    };
}

/// System calls that every machine has.
const EVERYWHERE: &[SystemCall] = {
    use ArgumentSize::{Inside, Place};
    use Meaning::*;
    calls! {
        write = SYS_write: Write;
        pwrite64 = SYS_pwrite64: Write;
        writev = SYS_writev: WriteVector;
        pwritev = SYS_pwritev: WriteVector;
        pwritev2 = SYS_pwritev2: WriteVector;
        sendto = SYS_sendto: SendTo;
        sendmsg = SYS_sendmsg: SendMessage;
        sendmmsg = SYS_sendmmsg: SendMessages;
        sendfile = SYS_sendfile: SendFile;
        splice = SYS_splice: Transfer(2);
        tee = SYS_tee: Transfer(1);
        copy_file_range = SYS_copy_file_range: Transfer(2);
        ioctl = SYS_ioctl: Ioctl;
        setsockopt = SYS_setsockopt: SocketOption;
        bind = SYS_bind: Address;
        connect = SYS_connect: Address;
        openat = SYS_openat: Open(at(0, 1));
        openat2 = SYS_openat2: Open(at(0, 1));
        mkdirat = SYS_mkdirat: Paths(at(0, 1), None);
        mknodat = SYS_mknodat: Paths(at(0, 1), None);
        unlinkat = SYS_unlinkat: Paths(at(0, 1), None);
        renameat2 = SYS_renameat2: Paths(at(0, 1), Some(at(2, 3)));
        linkat = SYS_linkat: Paths(at(2, 3), None);
        symlinkat = SYS_symlinkat: Paths(at(1, 2), None);
        fchmodat = SYS_fchmodat: Paths(at(0, 1), None);
        truncate = SYS_truncate: Paths(PathArgument { folder: None, path: 0 }, None);
        fchmod = SYS_fchmod: ChangeFile;
        ftruncate = SYS_ftruncate: ChangeFile;
        fallocate = SYS_fallocate: ChangeFile;
        mmap = SYS_mmap: MapShared;
        execve = SYS_execve: Execute(PathArgument { folder: None, path: 0 }, 1);
        execveat = SYS_execveat: Execute(at(0, 1), 2);
        kill = SYS_kill: Signal(0, 1);
        tkill = SYS_tkill: Signal(0, 1);
        tgkill = SYS_tgkill: Signal(0, 2);
        rt_sigqueueinfo = SYS_rt_sigqueueinfo: Signal(0, 1);
        rt_tgsigqueueinfo = SYS_rt_tgsigqueueinfo: Signal(0, 2);
        mq_timedsend = SYS_mq_timedsend: Argument(self::Argument {
            file: Some(0), address: 1, size: Place(2), numbers: &[3],
        });
        fsetxattr = SYS_fsetxattr: Argument(self::Argument {
            file: Some(0), address: 2, size: Place(3), numbers: &[4],
        });
        setxattr = SYS_setxattr: bytes(2, Place(3), &[4]);
        add_key = SYS_add_key: bytes(2, Place(3), &[]);
        bpf = SYS_bpf: bytes(1, Place(2), &[0]);
        perf_event_open = SYS_perf_event_open: bytes(0, Inside(4), &[2, 4]);
        sched_setattr = SYS_sched_setattr: bytes(1, Inside(0), &[]);
        sched_setaffinity = SYS_sched_setaffinity: bytes(2, Place(1), &[]);
        io_uring_setup = SYS_io_uring_setup: NotObserved("what goes through io_uring");
        vmsplice = SYS_vmsplice: NotObserved("memory given away by vmsplice");
        process_vm_writev = SYS_process_vm_writev: NotObserved("memory of other processes written by process_vm_writev");
        shmat = SYS_shmat: NotObserved("shared memory attached by shmat");
        msgsnd = SYS_msgsnd: NotObserved("messages sent by msgsnd");
        pidfd_send_signal = SYS_pidfd_send_signal: NotObserved("signals sent by pidfd_send_signal");
    }
};

/// The calls through which a client's bytes come in. They are observed where a client drives the program.
const FROM_CLIENTS: &[SystemCall] = {
    use Meaning::*;
    calls! {
        accept = SYS_accept: Accept;
        accept4 = SYS_accept4: Accept;
        read = SYS_read: Read;
        readv = SYS_readv: ReadVector;
        recvfrom = SYS_recvfrom: Read;
        recvmsg = SYS_recvmsg: ReceiveMessage;
        recvmmsg = SYS_recvmmsg: ReceiveMessages;
    }
};

/// Older forms of the same calls that only this machine has.
#[cfg(target_arch = "x86_64")]
const ONLY_HERE: &[SystemCall] = {
    use Meaning::*;
    const fn path(path: usize) -> PathArgument {
        PathArgument { folder: None, path }
    }
    calls! {
        open = SYS_open: Open(path(0));
        creat = SYS_creat: Open(path(0));
        mkdir = SYS_mkdir: Paths(path(0), None);
        mknod = SYS_mknod: Paths(path(0), None);
        rmdir = SYS_rmdir: Paths(path(0), None);
        unlink = SYS_unlink: Paths(path(0), None);
        rename = SYS_rename: Paths(path(0), Some(path(1)));
        renameat = SYS_renameat: Paths(at(0, 1), Some(at(2, 3)));
        link = SYS_link: Paths(path(1), None);
        symlink = SYS_symlink: Paths(path(1), None);
        chmod = SYS_chmod: Paths(path(0), None);
    }
};

/// Older forms of the same calls that only this machine has.
#[cfg(target_arch = "aarch64")]
const ONLY_HERE: &[SystemCall] = calls! {
    renameat = SYS_renameat: Meaning::Paths(at(0, 1), Some(at(2, 3)));
};

/// The extent of an observation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// Everything that leaves the processes.
    Effects,
    /// The same, and the bytes that a client sends them.
    WithClient,
}

/// All that are observed.
pub(super) fn all(scope: Scope) -> impl Iterator<Item = &'static SystemCall> {
    let from_clients = FROM_CLIENTS.iter().filter(move |_| scope == Scope::WithClient);
    EVERYWHERE.iter().chain(ONLY_HERE).chain(from_clients)
}

/// The call with this number, when it is observed.
pub(super) fn by_number(number: i64) -> Option<&'static SystemCall> {
    all(Scope::WithClient).find(|call| call.number == number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_number_and_name_stands_for_one_call() {
        let all = || all(Scope::WithClient);
        let numbers: BTreeSet<i64> = all().map(|call| call.number).collect();
        let names: BTreeSet<&str> = all().map(|call| call.name).collect();
        assert_eq!((numbers.len(), names.len()), (all().count(), all().count()));
    }
}
