//! The memory accesses of system calls, by their numbers on this machine: an audited program is of the machine that it
//! runs on.

/// A call's memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Takes bytes: places of address and size.
    Takes(usize, usize),
    /// Takes bytes from parts (`struct iovec`): places of list and length.
    TakesParts(usize, usize),
    /// Takes the memory that a message's header (`struct msghdr`) names: the argument's index.
    TakesMessage(usize),
    /// Takes or fills by the request's number: request in place 1, argument in 2.
    Request,
    /// Fills bytes, as many as it returns: place of the address.
    Fills(usize),
    /// Takes pages away: places of address and size.
    Unmaps(usize, usize),
    /// Sets the end of the heap: memory beyond it is gone.
    EndsHeap,
    /// Maps pages: address 0, size 1, flags 3, file 4.
    Maps,
    /// Writes no memory that matters here.
    Nothing,
    /// The process becomes another program, ends, or may be about to.
    Ends,
}

/// A call by number and name.
pub(super) struct SystemCall {
    number: libc::c_long,
    pub(super) name: &'static str,
    pub(super) effect: Effect,
}

macro_rules! calls {
    ($($name:ident = $number:ident: $effect:expr;)*) => {
        &[$(SystemCall { number: libc::$number, name: stringify!($name), effect: $effect }),*]
    };
}

const CALLS: &[SystemCall] = {
    use Effect::*;
    calls! {
        write = SYS_write: Takes(1, 2);
        pwrite64 = SYS_pwrite64: Takes(1, 2);
        sendto = SYS_sendto: Takes(1, 2);
        setsockopt = SYS_setsockopt: Takes(3, 4);
        mq_timedsend = SYS_mq_timedsend: Takes(1, 2);
        writev = SYS_writev: TakesParts(1, 2);
        pwritev = SYS_pwritev: TakesParts(1, 2);
        pwritev2 = SYS_pwritev2: TakesParts(1, 2);
        sendmsg = SYS_sendmsg: TakesMessage(1);
        ioctl = SYS_ioctl: Request;
        read = SYS_read: Fills(1);
        pread64 = SYS_pread64: Fills(1);
        recvfrom = SYS_recvfrom: Fills(1);
        munmap = SYS_munmap: Unmaps(0, 1);
        mremap = SYS_mremap: Unmaps(0, 1);
        madvise = SYS_madvise: Unmaps(0, 1);
        brk = SYS_brk: EndsHeap;
        mmap = SYS_mmap: Maps;
        mprotect = SYS_mprotect: Nothing;
        futex = SYS_futex: Nothing;
        close = SYS_close: Nothing;
        lseek = SYS_lseek: Nothing;
        fsync = SYS_fsync: Nothing;
        openat = SYS_openat: Nothing;
        connect = SYS_connect: Nothing;
        bind = SYS_bind: Nothing;
        kill = SYS_kill: Ends;
        tgkill = SYS_tgkill: Ends;
        execve = SYS_execve: Ends;
        exit_group = SYS_exit_group: Ends;
    }
};

/// The call with this number, and its place in the list.
pub(super) fn by_number(number: i64) -> Option<(u8, &'static SystemCall)> {
    (0u8..).zip(CALLS).find(|(_, call)| call.number == number)
}

/// The name of the call in this place of the list.
pub(super) fn name(index: u8) -> &'static str {
    CALLS.get(usize::from(index)).map_or("a system call", |call| call.name)
}

/// The sizes in a request's number: the bytes that the kernel takes and gives.
pub(super) fn request_bytes(request: u64) -> (u64, u64) {
    let (size_bytes, direction) = (request >> 16 & 0x3fff, request >> 30 & 3);
    let bytes = |bit: u64| if direction & bit != 0 { size_bytes } else { 0 };
    (bytes(1), bytes(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_known_by_its_number_and_its_place() {
        let (index, call) = by_number(libc::SYS_writev).expect("known");
        assert_eq!((call.name, name(index), call.effect), ("writev", "writev", Effect::TakesParts(1, 2)));
        assert!(by_number(-1).is_none());
    }

    #[test]
    fn a_requests_number_tells_what_is_taken_and_given() {
        assert_eq!(request_bytes(0x4010_5401), (16, 0));
        assert_eq!(request_bytes(0x8010_5401), (0, 16));
        assert_eq!(request_bytes(0x5401), (0, 0));
    }
}
