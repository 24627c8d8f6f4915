//! Who is at the other end of a socket: the one system call that the standard library lacks.

use std::{io, os::fd::RawFd};

/// The user id of whoever connected to the socket, as the kernel noted it then.
///
/// # Errors
/// When the descriptor is no connected UNIX socket.
pub fn user_id(socket: RawFd) -> io::Result<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or_default();
    // SAFETY: `peer` and `length` live until the call returns, and `length` is the size of `peer`.
    let result = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(peer.uid)
    } else {
        Err(io::Error::last_os_error())
    }
}
