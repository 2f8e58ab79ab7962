//! Sockets at which processes of this machine meet: in the abstract namespace, or at a TCP address.
//!
//! Abstract names are not files, and the system forgets one when its process ends. The system says
//! who is at the other end of a connection. For a name, a call on the socket reports this
//! (`SO_PEERCRED`). For an address, the table of all connections of the network namespace shows the
//! user.

#![expect(unsafe_code, reason = "makes system calls")]

use std::{
    fs,
    io::{self, Read, Write},
    mem::MaybeUninit,
    net::{self, IpAddr, TcpListener, TcpStream},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    time::{Duration, Instant},
};

/// How long to wait for a TCP connection: it hangs if the queue of the listener is full.
const CONNECT: Duration = Duration::from_secs(1);

/// Where one process listens, and others connect.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// A name in the abstract namespace.
    Name(String),
    /// An address of this machine.
    Tcp(net::SocketAddr),
}

/// A socket that listens.
pub(crate) enum Listener {
    Name(UnixListener),
    Tcp(TcpListener),
}

/// A connection.
pub(crate) enum Stream {
    Name(UnixStream),
    Tcp(TcpStream),
}

/// The process at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// Its number; `None` if the connection is to an address.
    pub(crate) process: Option<u32>,
    pub(crate) user: u32,
}

impl Address {
    /// Takes the address, and listens there. Fails with `AddrInUse` if another process has it.
    pub(crate) fn listen(&self) -> io::Result<Listener> {
        Ok(match self {
            Self::Name(name) => {
                let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
                listener.set_nonblocking(true)?;
                Listener::Name(listener)
            }
            Self::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Listener::Tcp(listener)
            }
        })
    }

    /// Connects to the process that has the address. Fails with `ConnectionRefused` if there is
    /// none, and with `WouldBlock` or `TimedOut` if too many others wait for that process to accept
    /// them.
    pub(crate) fn connect(&self) -> io::Result<Stream> {
        Ok(match self {
            Self::Name(name) => Stream::Name(connect_to_name(name)?),
            Self::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, CONNECT)?;
                // If nobody listens, the system may choose this port for this end, and the socket
                // connects to itself.
                if stream.local_addr()? == stream.peer_addr()? {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
        })
    }
}

impl Listener {
    /// Accepts a connection, or fails with `WouldBlock` if there is none.
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Self::Name(listener) => Stream::Name(listener.accept()?.0),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Name(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Stream {
    /// Returns the process at the other end; `None` if no process of this network namespace has
    /// that end, yet or any more.
    pub(crate) fn peer(&self) -> io::Result<Option<Peer>> {
        match self {
            Self::Name(stream) => peer_of(stream).map(Some),
            Self::Tcp(stream) => match stream.peer_addr() {
                // The other end has closed the connection.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(None),
                end => {
                    let user = user_of(end?, stream.local_addr()?)?;
                    Ok(user.map(|user| Peer { process: None, user }))
                }
            },
        }
    }

    fn set_timeouts(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Name(stream) => {
                stream.set_read_timeout(Some(limit))?;
                stream.set_write_timeout(Some(limit))
            }
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(limit))?;
                stream.set_write_timeout(Some(limit))
            }
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Name(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for &Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Name(stream) => (&*stream).read(bytes),
            Stream::Tcp(stream) => (&*stream).read(bytes),
        }
    }
}

/// Connects to the process that has a name, without waiting for it.
fn connect_to_name(name: &str) -> io::Result<UnixStream> {
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

/// Returns the process at the other end, when the connection began.
fn peer_of(stream: &UnixStream) -> io::Result<Peer> {
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
    Ok(Peer { process: Some(found.pid.cast_unsigned()), user: found.uid })
}

/// Returns the user of a process that has this end of a connection; `None` if no process has it.
fn user_of(end: net::SocketAddr, other: net::SocketAddr) -> io::Result<Option<u32>> {
    let file = if end.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    let table = fs::read_to_string(file)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot read {file}: {error}")))?;
    let (end, other) = (in_table(end), in_table(other));
    Ok(table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // A connection that no process has accepted yet, or whose process has closed it, has no
        // file, and belongs to user 0.
        let [_, own, far, _, _, _, _, user, _, file, ..] = fields[..] else { return None };
        let is_it = own == end && far == other && file != "0";
        is_it.then(|| user.parse().ok())?
    }))
}

/// Returns an address as the system's tables show it.
fn in_table(address: net::SocketAddr) -> String {
    let hex = |bytes: &[u8]| {
        let words = bytes.as_chunks().0.iter();
        words.map(|word| format!("{:08X}", u32::from_ne_bytes(*word))).collect::<String>()
    };
    let ip = match address.ip() {
        IpAddr::V4(ip) => hex(&ip.octets()),
        IpAddr::V6(ip) => hex(&ip.octets()),
    };
    format!("{ip}:{:04X}", address.port())
}

/// Sends bytes, and returns how many. No signal is raised if the other end is closed.
pub(crate) fn send(stream: &impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    let (socket, flags) = (stream.as_fd().as_raw_fd(), libc::MSG_NOSIGNAL);
    // SAFETY: the descriptor is open, and the bytes are a slice.
    let sent = unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// A connection that sends and receives until a time. After it, each send and each receive fails
/// with `TimedOut` or `WouldBlock`, however slowly bytes have come before.
pub(crate) struct TimedStream<'s> {
    pub(crate) stream: &'s Stream,
    pub(crate) until: Instant,
}

impl TimedStream<'_> {
    /// Limits the next transfer to the time that is left.
    fn limit(&self) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_timeouts(left)
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.read(bytes)
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit()?;
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
pub(crate) unsafe fn close(listener: &Listener) {
    // SAFETY: the descriptor is open, and nothing uses it later, by the caller's promise.
    unsafe { libc::close(listener.as_fd().as_raw_fd()) };
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
        let one = Stream::Name(one);
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
        let name = Address::Name(format!("consort-test-{}", std::process::id()));
        let error = |address: &Address| address.connect().err().map(|error| error.kind());
        assert_eq!(error(&name), Some(io::ErrorKind::ConnectionRefused), "nobody has the name");
        let listener = name.listen().expect("a free name");
        // SAFETY: takes two numbers. The queue has room for one connection then.
        assert_eq!(unsafe { libc::listen(listener.as_fd().as_raw_fd(), 0) }, 0);
        let first = name.connect().expect("room for one");
        let full = (0..3).find_map(|_| error(&name)).expect("the queue is full");
        assert_eq!(full, io::ErrorKind::WouldBlock);
        let peer = first.peer().expect("its identity").expect("a peer");
        assert_eq!(peer.process, Some(std::process::id()));
        let long = Address::Name("n".repeat(200));
        assert_eq!(error(&long), Some(io::ErrorKind::InvalidInput), "a name that is too long");
    }

    /// Before it is accepted, and when it is closed, a connection belongs to no process.
    #[test]
    fn user_at_an_address_is_known_while_a_process_has_the_connection() {
        for free in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(probe) = TcpListener::bind(free) else { continue }; // there may be no IPv6
            let address = Address::Tcp(probe.local_addr().expect("an address"));
            assert!(address.listen().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse));
            drop(probe);
            assert!(address.connect().is_err(), "nobody listens");
            let listener = address.listen().expect("a free address");
            let user =
                |stream: &Stream| stream.peer().expect("a table").map(|Peer { user, .. }| user);
            let none = listener.accept().err().map(|error| error.kind());
            assert_eq!(none, Some(io::ErrorKind::WouldBlock));
            let guest = address.connect().expect("it listens");
            assert_eq!(user(&guest), None);
            let host = listener.accept().expect("a connection");
            let own = consort_machine::permissions::effective_user();
            assert_eq!([user(&guest), user(&host)], [Some(own); 2]);
            drop(guest);
            assert_eq!(user(&host), None);
        }
    }
}
