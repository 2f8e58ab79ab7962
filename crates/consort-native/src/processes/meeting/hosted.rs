//! Processes of one machine that meet at a place that all know.
//!
//! The place is that of a socket: a name, or an address. It is not a file, and is free again when
//! the process that has it ends. The first process takes the place and becomes the *host*; the
//! others are its *guests*. In each exchange, a guest sends its bytes, and the host replies to all
//! guests with the bytes of all processes. If it cannot, it replies to all with the reason.
//!
//! The host keeps the place until its part of the job ends, so a later job there waits, or is
//! refused, instead of mixing with this one. If a guest is turned away, or its host ends before it
//! has welcomed the guest, the guest tries again until its time is over.

use std::{
    io::{self, Read as _, Write as _},
    os::fd::{AsFd, BorrowedFd},
    thread,
    time::{Duration, Instant},
};

use consort_fabric::Rank;
use consort_machine::{advice::of_call, permissions::effective_user};

use super::{
    exchange::Exchange,
    greeting::{Greeting, Roll},
    hold::{Hold, IN_USE},
    meet_error::MeetError,
    place::MeetingPlace,
};
use crate::system::{
    socket::{self, Peer, Stream, TimedStream},
    watch::wait_readable,
};

/// How long a process waits before it tries again to reach the host.
const RETRY: Duration = Duration::from_millis(5);
/// How much longer a guest waits than the host, because the host's error says more.
const GUEST: Duration = Duration::from_secs(2);
/// A stand-in for times later than clocks can represent.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// The most bytes that a process sends in one exchange.
const MOST_FRAME: usize = 1 << 20;

/// The kinds of a host's messages, in addition to [`IN_USE`].
const WELCOME: u8 = 1;
const ALL: u8 = 2;
const FAILED: u8 = 3;
const OTHER_USER: u8 = 5;

/// Processes of one machine that exchange bytes because they know the same place.
pub struct HostedExchange {
    place: MeetingPlace,
    limit: Duration,
    until: Instant,
    role: Role,
}

enum Role {
    /// No exchange has begun.
    New,
    Host {
        taken: Hold,
        guests: Vec<Guest>,
    },
    Guest {
        host: Stream,
        /// The host's process. `None` if it had closed the connection before it was looked up.
        peer: Option<Peer>,
    },
    /// An exchange has failed.
    Ended,
}

/// A guest, as its host sees it.
struct Guest {
    stream: Stream,
    /// Its rank and its number, once it has sent them.
    named: Option<(Rank, u32)>,
    /// The bytes that have arrived and are in no frame yet.
    received: Vec<u8>,
    /// Its frame of the current exchange, once it is complete.
    frame: Option<Vec<u8>>,
}

/// The result of an attempt to reach a host.
enum Reached {
    Welcome(Stream, Option<Peer>),
    /// A process of another user has the place.
    OtherUser(Option<Peer>),
    /// Another job has the place.
    InUse(Option<Peer>),
    /// There is no host, or it has gone.
    Nobody,
}

impl HostedExchange {
    /// Returns an exchange of the processes that know this place. They wait for each other for at
    /// most `limit`.
    #[must_use]
    pub fn new(place: MeetingPlace, limit: Duration) -> Self {
        Self { place, limit, until: Instant::now() + limit.min(FOREVER), role: Role::New }
    }

    /// Becomes the host, or the guest of the process that is.
    fn begin(&mut self, own: &[u8]) -> Result<Role, MeetError> {
        let place = &self.place;
        let failed =
            |what: &str, error: &io::Error| MeetError::Exchange(format!("{what} {place}: {error}"));
        loop {
            match Hold::take(place.address()) {
                Ok(taken) => return Ok(Role::Host { taken, guests: Vec::new() }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                    return Err(place.elsewhere_error());
                }
                Err(error) => return Err(failed("cannot take", &error)),
            }
            let reached = self.reach(own);
            let reached = reached
                .map_err(|error| failed("cannot connect to the process that has", &error))?;
            let late = match reached {
                Reached::Welcome(host, peer) => return Ok(Role::Guest { host, peer }),
                Reached::OtherUser(peer) => {
                    let owner = peer.and_then(|peer| Some((peer.process?, peer.user)));
                    return Err(MeetError::OtherUser { place: place.to_string(), owner });
                }
                Reached::InUse(peer) => {
                    let process = peer.and_then(|peer| peer.process);
                    MeetError::InUse { place: place.to_string(), process, limit: self.limit }
                }
                Reached::Nobody => self.host_is_silent(),
            };
            if Instant::now() >= self.until {
                return Err(late);
            }
            thread::sleep(RETRY);
        }
    }

    fn host_is_silent(&self) -> MeetError {
        let (place, limit) = (&self.place, self.limit);
        MeetError::Exchange(format!(
            "the process that has {place} did not reply within {limit:?}: end it, or choose another place to meet"
        ))
    }

    /// Tries to become a guest, and to send the first frame.
    fn reach(&self, own: &[u8]) -> io::Result<Reached> {
        let host = match self.place.address().connect() {
            Ok(host) => host,
            Err(error) if is_gone(&error) || is_late(&error) => return Ok(Reached::Nobody),
            Err(error) => return Err(error),
        };
        let is_foreign = |peer: &Peer| peer.user != effective_user();
        if let Some(peer) = host.peer()?.filter(is_foreign) {
            return Ok(Reached::OtherUser(Some(peer)));
        }
        let mut timed = TimedStream { stream: &host, until: self.until + GUEST };
        // A host that turns this process away may have closed the connection already, after its
        // reply.
        let sent = send_frame(&mut timed, own)
            .or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) });
        let reply = sent.and_then(|()| read_exact::<1>(&mut timed));
        // At an address, the host is known only when it has accepted the connection.
        let peer = host.peer()?;
        if let Some(peer) = peer.filter(is_foreign) {
            return Ok(Reached::OtherUser(Some(peer)));
        }
        match (reply, peer) {
            (Ok([WELCOME]), peer) => Ok(Reached::Welcome(host, peer)),
            (Ok([OTHER_USER]), _) => Ok(Reached::OtherUser(None)),
            (Ok([IN_USE]), peer) => Ok(Reached::InUse(peer)),
            (Ok(_), _) => Ok(Reached::Nobody),
            (Err(error), _) if is_gone(&error) || is_late(&error) => Ok(Reached::Nobody),
            (Err(error), _) => Err(error),
        }
    }
}

impl Exchange for HostedExchange {
    fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, MeetError> {
        if own.len() > MOST_FRAME {
            return Err(MeetError::Exchange(format!(
                "this process has {} bytes for the others, and at most {MOST_FRAME} are allowed: \
                 shorten the settings of the job",
                own.len()
            )));
        }
        let mut is_first = false;
        if matches!(self.role, Role::New) {
            is_first = true;
            self.role = self.begin(own)?;
        }
        let (limit, until) = (self.limit, self.until);
        let silent = self.host_is_silent();
        let gathered = match &mut self.role {
            Role::Host { taken, guests } => {
                let host = Host { place: &self.place, limit, until, taken };
                host.gather(own, guests, is_first)
            }
            Role::Guest { host, peer } => {
                let process = peer.and_then(|peer| peer.process);
                let lost = MeetError::Lost { rank: None, process };
                let mut host = TimedStream { stream: host, until: until + GUEST };
                let sent = if is_first { Ok(()) } else { send_frame(&mut host, own) };
                match sent.and_then(|()| receive_all(&mut host)) {
                    // A process that may be of another user can only report a failure.
                    Ok(Ok(_)) if peer.is_none() => Err(lost),
                    Ok(received) => received,
                    Err(error) if is_late(&error) => Err(silent),
                    Err(_) => Err(lost),
                }
            }
            Role::New | Role::Ended => Err(MeetError::Exchange(
                "an earlier exchange has failed: launch the job again".to_owned(),
            )),
        };
        if gathered.is_err() {
            self.role = Role::Ended;
        }
        gathered
    }

    fn into_hold(self: Box<Self>) -> Option<Hold> {
        match self.role {
            Role::Host { taken, .. } => Some(taken),
            _ => None,
        }
    }
}

/// The host's data about the job of its guests.
struct Host<'h> {
    place: &'h MeetingPlace,
    limit: Duration,
    until: Instant,
    taken: &'h Hold,
}

impl Host<'_> {
    /// Gathers the frames of all guests, and sends them to all. If that fails, sends the reason.
    fn gather(
        &self,
        own: &[u8],
        guests: &mut Vec<Guest>,
        is_first: bool,
    ) -> Result<Vec<Vec<u8>>, MeetError> {
        let gathered = match is_first {
            true => self.welcome(own, guests),
            false => self.frames(guests, false, |guests, _| Ok(guests.iter().all(Guest::is_ready))),
        };
        let (kind, frames) = match gathered {
            Ok(()) => {
                let others = guests.iter_mut().filter_map(|guest| guest.frame.take());
                (ALL, [own.to_vec()].into_iter().chain(others).collect())
            }
            Err(ref error) => (FAILED, vec![error.to_string().into_bytes()]),
        };
        let mut message = vec![kind];
        message.extend(length_of(&frames).to_le_bytes());
        for frame in &frames {
            message.extend(length_of(frame).to_le_bytes());
            message.extend(frame);
        }
        let until = self.until.max(Instant::now()) + GUEST;
        for guest in guests {
            let sent = TimedStream { stream: &guest.stream, until }.write_all(&message);
            if sent.is_err() && gathered.is_ok() {
                // The guest's process has ended. The others notice that when they begin the job.
                return Err(guest.lost());
            }
        }
        gathered.map(|()| frames)
    }

    /// Waits until all processes of the job are guests and have greeted.
    fn welcome(&self, own: &[u8], guests: &mut Vec<Guest>) -> Result<(), MeetError> {
        let own = Greeting::decode(own).ok_or(MeetError::Garbled)?;
        let mut roll = Roll::default();
        roll.add(&own)?;
        let welcomed = self.frames(guests, true, |guests, left| {
            let mut come = Vec::new();
            guests.retain_mut(|guest| {
                let (Some(frame), None) = (&guest.frame, guest.named) else { return true };
                let greeting = Greeting::decode(frame);
                let is_sent = socket::send(&guest.stream, &[WELCOME]).is_ok();
                guest.named = greeting.as_ref().map(Greeting::named);
                // Others than Consort's processes may connect.
                come.extend(greeting.filter(|_| is_sent));
                is_sent && guest.named.is_some()
            });
            come.iter().try_for_each(|greeting| roll.add(greeting))?;
            let have_all_come = roll.count() == own.pes as usize;
            if left.is_none() && !have_all_come {
                roll.ensure_able()?;
                let (place, missing) = (self.place.to_string(), roll.missing(own.pes));
                return Err(MeetError::Late { place, missing, limit: self.limit });
            }
            Ok(have_all_come)
        });
        // Those that have said nothing yet may try again.
        guests.retain(|guest| guest.named.is_some());
        welcomed
    }

    /// Receives frames until `is_complete` returns true. It is called after each event, with the
    /// time that is left, and at the end of the time, with `None`. Processes that come meanwhile
    /// become guests, or are turned away.
    fn frames(
        &self,
        guests: &mut Vec<Guest>,
        takes_guests: bool,
        mut is_complete: impl FnMut(&mut Vec<Guest>, Option<Duration>) -> Result<bool, MeetError>,
    ) -> Result<(), MeetError> {
        loop {
            let left = self.until.checked_duration_since(Instant::now());
            if is_complete(guests, left)? {
                return Ok(());
            }
            let failed = |error: io::Error| {
                let place = self.place;
                MeetError::Exchange(format!("cannot wait for the others at {place}: {error}"))
            };
            let Some(left) = left else {
                let late = guests.iter().find(|guest| !guest.is_ready());
                return Err(late.map_or(MeetError::Garbled, |guest| {
                    let reason = format!("its process did not reply within {:?}", self.limit);
                    let rank = guest.named.map_or(Rank(0), |(rank, _)| rank);
                    MeetError::Refused { rank, reason }
                }));
            };
            let all: Vec<BorrowedFd<'_>> = [self.taken.descriptor()]
                .into_iter()
                .chain(guests.iter().map(|guest| guest.stream.as_fd()))
                .collect();
            let ready = wait_readable(&all, Some(left)).map_err(failed)?;
            let mut readable = ready[1..].iter();
            let mut lost = None;
            guests.retain_mut(|guest| {
                if readable.next() != Some(&true) || guest.receive().is_ok() {
                    return true;
                }
                // A process that has not been welcomed yet may try again.
                if guest.named.is_some() {
                    lost = Some(guest.lost());
                }
                false
            });
            if let Some(lost) = lost {
                return Err(lost);
            }
            if ready[0] && takes_guests {
                self.accept(guests).map_err(failed)?;
            } else if ready[0] {
                self.taken.turn_away().map_err(failed)?;
            }
        }
    }

    /// Accepts a connection, if there is one, of a process of this user.
    fn accept(&self, guests: &mut Vec<Guest>) -> io::Result<()> {
        let accepted = self.taken.accept().map_err(|error| of_call("accept", &error))?;
        let Some(stream) = accepted else { return Ok(()) };
        if stream.peer()?.is_some_and(|peer| peer.user == effective_user()) {
            guests.push(Guest { stream, named: None, received: Vec::new(), frame: None });
        } else {
            // A process that has gone needs no reply.
            let _ = socket::send(&stream, &[OTHER_USER]);
        }
        Ok(())
    }
}

impl Guest {
    fn is_ready(&self) -> bool {
        self.frame.is_some()
    }

    fn lost(&self) -> MeetError {
        let (rank, process) = self.named.unzip();
        MeetError::Lost { rank, process }
    }

    /// Receives bytes that have arrived.
    fn receive(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        let count = (&self.stream).read(&mut bytes)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.received.extend(&bytes[..count]);
        let Some((length, rest)) = self.received.split_first_chunk() else { return Ok(()) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MOST_FRAME {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // A guest sends one frame, and then waits for the host.
        if rest.len() >= length {
            self.frame = Some(rest[..length].to_vec());
            self.received.clear();
        }
        Ok(())
    }
}

/// Returns the length of a list, as it is sent.
fn length_of<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

fn send_frame(host: &mut TimedStream<'_>, frame: &[u8]) -> io::Result<()> {
    let mut message = length_of(frame).to_le_bytes().to_vec();
    message.extend(frame);
    host.write_all(&message)
}

/// Receives the host's reply to a frame.
fn receive_all(host: &mut TimedStream<'_>) -> io::Result<Result<Vec<Vec<u8>>, MeetError>> {
    let [kind] = read_exact(host)?;
    let count = u32::from_le_bytes(read_exact(host)?);
    let mut frames = Vec::new();
    for _ in 0..count {
        let length = u32::from_le_bytes(read_exact(host)?) as usize;
        if length > MOST_FRAME {
            return Ok(Err(MeetError::Garbled));
        }
        let mut frame = vec![0; length];
        host.read_exact(&mut frame)?;
        frames.push(frame);
    }
    Ok(match (kind, &frames[..]) {
        (ALL, _) => Ok(frames),
        (FAILED, [reason]) => {
            Err(MeetError::Reported(String::from_utf8_lossy(reason).into_owned()))
        }
        _ => Err(MeetError::Garbled),
    })
}

fn read_exact<const COUNT: usize>(stream: &mut TimedStream<'_>) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Returns whether the other end is not there any more.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionRefused, ConnectionReset, NotConnected, UnexpectedEof,
    };
    matches!(
        error.kind(),
        BrokenPipe | ConnectionRefused | ConnectionReset | NotConnected | UnexpectedEof
    )
}

/// Returns whether the time of a connection is over.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
