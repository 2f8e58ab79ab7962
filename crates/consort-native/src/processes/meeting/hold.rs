//! Holds the place at which the processes of a job meet: only one process listens there. When the
//! job is complete, that process turns others away.
//!
//! Forked children close their copies of the socket. Otherwise the place would be taken as long as
//! one of them lives.

#![expect(unsafe_code, reason = "closes sockets in a forked child")]

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Once,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use crate::{
    roster::{Entry, Roster},
    system::socket::{self, Address, Listener, Stream},
};
use consort_machine::system::fork::{hold_forks, in_children_once};

/// The message to a process that connects when the job is complete.
pub(super) const IN_USE: u8 = 4;
/// The largest number of processes that are turned away at once.
const AT_ONCE: usize = 16;

static HELD: Roster<Held> = Roster::new();

struct Held {
    listener: Listener,
    /// Whether this process, a forked child, has closed its copy. Its own children must not close
    /// the descriptor again, which may then be that of another file.
    is_closed: AtomicBool,
}

/// A place, until this is dropped.
pub struct Hold(Entry<Held>);

impl Hold {
    /// Takes an address. Fails with `AddrInUse` if another process has it.
    pub(super) fn take(address: &Address) -> io::Result<Self> {
        static REGISTERED: Once = Once::new();
        in_children_once(&REGISTERED, close_all);
        // A child that is forked before the socket is in the list would not close its copy.
        let _held = hold_forks();
        let listener = address.listen()?;
        Ok(Self(HELD.enter(Held { listener, is_closed: AtomicBool::new(false) })))
    }

    /// Returns the descriptor that becomes readable when a process connects.
    pub(in super::super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.listener.as_fd()
    }

    /// Accepts a connection; `None` if there is none.
    ///
    /// # Errors
    /// When the system refuses the connection.
    pub(super) fn accept(&self) -> io::Result<Option<Stream>> {
        use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
        match self.0.listener.accept() {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Turns away some of the processes that have connected.
    ///
    /// # Errors
    /// Same as [`Self::accept`].
    pub(in super::super) fn turn_away(&self) -> io::Result<()> {
        // The others wait until the next time, so that this process can go on with its work.
        for _ in 0..AT_ONCE {
            let Some(stream) = self.accept()? else { break };
            // A process that has gone needs no reply.
            let _ = socket::send(&stream, &[IN_USE]);
        }
        Ok(())
    }
}

/// Closes all sockets in a child that has just been forked.
fn close_all() {
    // SAFETY: this is the child's only thread, and it drops nothing here.
    for held in unsafe { HELD.all() } {
        if held.is_closed.swap(true, Relaxed) {
            continue;
        }
        // SAFETY: the thread that would use or drop the socket does not exist in the child.
        unsafe { socket::close(&held.listener) };
    }
}
