//! Sockets in the abstract namespace: their names are not files, and the system forgets a name when
//! its process ends.

#![expect(unsafe_code, reason = "makes system calls")]

use std::{
    io::{self, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, FromRawFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    time::{Duration, Instant},
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

/// Connects to the process that has a name. Fails with `ConnectionRefused` if there is none, and with
/// `WouldBlock` if too many others wait for that process to accept them.
pub(crate) fn connect(name: &str) -> io::Result<UnixStream> {
    // SAFETY: it consists of integers, for which 0 is valid.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or_default();
    // A name in the abstract namespace begins with a 0.
    let place = address.sun_path.get_mut(1..=name.len()).ok_or(io::ErrorKind::InvalidInput)?;
    for (to, from) in place.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    let bytes = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    let bytes = libc::socklen_t::try_from(bytes).unwrap_or_default();
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes numbers, and opens a descriptor.
    let number = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it has just been opened, and nothing else knows it.
    let stream = unsafe { UnixStream::from_raw_fd(number) };
    // SAFETY: the address is a local variable of at least this many bytes.
    let result = unsafe { libc::connect(number, (&raw const address).cast(), bytes) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    stream.set_nonblocking(false)?;
    Ok(stream)
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

/// Sends bytes, and returns how many. No signal is raised if the other end is closed.
pub(crate) fn send(stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL;
    // SAFETY: the descriptor is open, and the bytes are a slice.
    let sent = unsafe { libc::send(stream.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// A connection that sends and receives until a time. After it, each send and each receive fails
/// with `TimedOut` or `WouldBlock`, however slowly bytes have come before.
pub(crate) struct TimedStream<'s> {
    pub(crate) stream: &'s UnixStream,
    pub(crate) until: Instant,
}

impl TimedStream<'_> {
    /// Returns the time that is left.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        send(self.stream, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Closes a socket's descriptor, while the value still exists.
///
/// # Safety
/// Nothing uses the socket, or drops it, any more.
pub(crate) unsafe fn close(listener: &UnixListener) {
    // SAFETY: the descriptor is open, and nothing uses it later, by the caller's promise.
    unsafe { libc::close(listener.as_raw_fd()) };
}

#[cfg(all(test, not(any(miri, loom))))]
mod tests {
    use std::thread;

    use consort_sandbox::children;

    use super::*;

    /// Programs in C do not ignore the signal of a broken pipe, as this one does.
    #[test]
    fn send_to_a_closed_end_raises_no_signal() {
        children::run("a send", || {
            // SAFETY: this child has one thread, and ends soon.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
            let (one, other) = UnixStream::pair().expect("a pair");
            drop(other);
            let error = send(&one, &[0]).expect_err("nobody receives");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        });
    }

    /// A peer that sends or receives a little now and then does not extend the time.
    #[test]
    fn time_of_a_stream_is_over_although_bytes_come() {
        let (one, mut other) = UnixStream::pair().expect("a pair");
        let slow = thread::spawn(move || {
            let mut bytes = [0; 100];
            while other.write_all(&[1]).is_ok() && other.read(&mut bytes).is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });
        let is_over = |transfer: &dyn Fn(TimedStream<'_>) -> io::Result<()>| {
            let begun = Instant::now();
            let until = begun + Duration::from_millis(200);
            let error = transfer(TimedStream { stream: &one, until }).expect_err("it takes long");
            let is_late =
                matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock);
            assert!(is_late && begun.elapsed() < Duration::from_secs(5), "{error}");
        };
        is_over(&|mut stream| stream.write_all(&vec![0; 1 << 22]));
        is_over(&|mut stream| stream.read_exact(&mut [0; 1000]));
        drop(one);
        slow.join().expect("no panic");
    }

    /// A process that never accepts does not hold up those that come.
    #[test]
    fn connection_to_a_full_socket_fails_at_once() {
        let name = format!("consort-test-{}", std::process::id());
        let absent = connect(&name).expect_err("nobody has the name");
        assert_eq!(absent.kind(), io::ErrorKind::ConnectionRefused);
        let listener = listen(&name).expect("a free name");
        // SAFETY: takes two numbers. The queue has room for one connection then.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let first = connect(&name).expect("room for one");
        let full = (0..3).find_map(|_| connect(&name).err()).expect("the queue is full");
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(peer_of(&first).expect("a peer").process, std::process::id());
        let long = connect(&"n".repeat(200)).expect_err("a name that is too long");
        assert_eq!(long.kind(), io::ErrorKind::InvalidInput);
    }
}
