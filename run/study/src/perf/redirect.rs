//! Events that share one buffer.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;

/// `PERF_EVENT_IOC_SET_OUTPUT`.
const SET_OUTPUT: libc::c_ulong = 0x2405;

/// Has an event write into another one's buffer, of the same CPU.
pub(super) fn into_buffer_of(event: &impl AsRawFd, buffer: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the request takes a descriptor as a number and accesses no memory of this process. Both descriptors are
    // open while their owners are borrowed, and the kernel refuses anything but an event of the same CPU.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT as _, buffer.as_raw_fd()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
