//! Sockets with names that no file has: the system forgets a name when its process ends.

#![expect(unsafe_code, reason = "makes system calls")]

use std::{
    io,
    mem::MaybeUninit,
    os::{
        fd::AsRawFd,
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
};

/// The process at the other end of a connection, when it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) process: u32,
    pub(crate) user: u32,
}

/// Takes a name, and listens there. Fails with `AddrInUse` if another process has it.
pub(crate) fn listen(name: &str) -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects to the process that has a name. Fails with `ConnectionRefused` if there is none.
pub(crate) fn connect(name: &str) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Returns the process at the other end.
pub(crate) fn peer_of(stream: &UnixStream) -> io::Result<Peer> {
    let mut found = MaybeUninit::<libc::ucred>::uninit();
    let mut bytes = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: the descriptor is open, and the local variables have room for what is written.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            found.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded, so it has filled the structure.
    let found = unsafe { found.assume_init() };
    Ok(Peer { process: found.pid.cast_unsigned(), user: found.uid })
}

/// Sends all bytes. No signal is raised if the other end is closed.
pub(crate) fn send(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let flags = libc::MSG_NOSIGNAL;
        // SAFETY: the descriptor is open, and the bytes are a slice.
        let sent =
            unsafe { libc::send(stream.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
        match usize::try_from(sent) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Closes a socket's descriptor, while the value still exists.
///
/// # Safety
/// Nothing uses the socket, or drops it, any more.
pub(crate) unsafe fn close(listener: &UnixListener) {
    // SAFETY: the descriptor is open, and nothing uses it later, by the caller's promise.
    unsafe { libc::close(listener.as_raw_fd()) };
}
