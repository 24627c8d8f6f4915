//! The credentials of a socket's peer. Wraps the one system call that the standard library does not have, without judging the result.

use std::{io, os::fd::RawFd};

/// Returns the user id of the process that connected to the socket, as the kernel recorded it at that time.
///
/// # Errors
/// When the descriptor is not a connected UNIX socket.
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
