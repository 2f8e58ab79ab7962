//! Frames over MPI's messages.
//!
//! A frame is one message. MPI keeps the order of the messages of a pair, and so does this: a long
//! message may be complete after a short one that came later, which then waits for it.

use std::collections::VecDeque;

use consort_native::{Frame, Lost, Transport};

use super::{
    environment::Started,
    library::{Request, Shim},
    prepare::{NoShim, find},
};

/// Why there is no transport.
#[derive(Debug, thiserror::Error)]
pub enum NoMpi {
    /// There is no shim for the MPI.
    #[error(transparent)]
    Shim(#[from] NoShim),
    /// The MPI has failed.
    #[error("MPI failed: {0}")]
    Failed(String),
    /// The launcher has started more processes than the library knows of.
    #[error(
        "the launcher has started {started} processes, but the MPI that was loaded knows of \
         {known}: `mpirun` and `mpicc` are of different MPIs; put those of one first in PATH"
    )]
    Mixed {
        /// The processes that the launcher has started.
        started: u32,
        /// Those that the library knows.
        known: u32,
    },
}

/// A process's end.
pub(crate) struct Mpi {
    shim: Shim,
    rank: u32,
    processes: u32,
    /// Frames that MPI may still read.
    sent: VecDeque<Request>,
    /// Frames that MPI still writes, and those behind one, in the order in which they have come.
    come: VecDeque<(u32, State)>,
}

/// A frame that has come.
enum State {
    /// It is not complete.
    Begun(Request),
    Done(Frame),
}

/// More than so many words that are on their way are waited for.
const MOST_SENT: usize = 256;

impl Mpi {
    /// Begins a job of all processes.
    pub(crate) fn begin(started: &Started) -> Result<Self, NoMpi> {
        let shim = find(started.flavor)?;
        let shim = Shim::load(&shim).map_err(NoShim::Load)?;
        let [rank, processes] = shim.begin().map_err(NoMpi::Failed)?;
        if processes != started.processes {
            return Err(NoMpi::Mixed { started: started.processes, known: processes });
        }
        shim.open().map_err(NoMpi::Failed)?;
        Ok(Self { shim, rank, processes, sent: VecDeque::new(), come: VecDeque::new() })
    }

    /// Frees the frames that MPI has sent.
    fn clear(&mut self) -> Result<(), Lost> {
        while let Some(request) = self.sent.pop_front() {
            if let Err(request) = self.shim.test(request).map_err(Lost)? {
                self.sent.push_front(request);
                break;
            }
        }
        Ok(())
    }

    /// Takes what has come.
    fn look(&mut self) -> Result<(), Lost> {
        while let Some((from, request)) = self.shim.receive().map_err(Lost)? {
            self.come.push_back((from, State::Begun(request)));
        }
        Ok(())
    }

    /// The next frame that is complete, and before which none of its sender is not.
    fn next(&mut self) -> Result<Option<(u32, Frame)>, Lost> {
        let mut behind = Vec::new();
        for at in 0..self.come.len() {
            let (from, state) = self.come.remove(at).ok_or_else(|| Lost("a frame".to_owned()))?;
            let state = match state {
                State::Begun(request) => match self.shim.test(request).map_err(Lost)? {
                    Ok(frame) => State::Done(frame),
                    Err(request) => State::Begun(request),
                },
                done @ State::Done(_) => done,
            };
            match state {
                State::Done(frame) if !behind.contains(&from) => return Ok(Some((from, frame))),
                other => {
                    behind.push(from);
                    self.come.insert(at, (from, other));
                }
            }
        }
        Ok(None)
    }
}

impl Transport for Mpi {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn processes(&self) -> u32 {
        self.processes
    }

    fn send(&mut self, to: u32, frame: Frame) -> Result<(), Lost> {
        self.sent.push_back(self.shim.send(to, frame).map_err(Lost)?);
        // Peers that wait for each other still take what has come.
        while self.sent.len() > MOST_SENT {
            self.clear()?;
            self.look()?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<(u32, Frame)>, Lost> {
        self.clear()?;
        self.look()?;
        self.next()
    }

    fn is_flushed(&mut self) -> Result<bool, Lost> {
        self.clear()?;
        Ok(self.sent.is_empty())
    }

    fn close(&mut self, all_end: bool) {
        self.shim.close(all_end);
    }
}
