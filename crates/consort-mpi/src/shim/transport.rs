//! Frames over MPI's messages, and transfers.
//!
//! A frame is a message. Transfers are messages too, from the memory of one process to that of
//! another, with a posted receive for each.

#![expect(unsafe_code, reason = "passes on the callers' promise about their memory")]

use std::fmt;

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        OnceLock,
        atomic::{
            AtomicBool,
            Ordering::{AcqRel, Release},
        },
    },
};

use consort_fabric::VendorCall;
use consort_machine::ProcessToken;
use consort_native::{Frame, Transfer, TransferBuffer, Transport, TransportError};

use super::{
    library::{FrameRequest, Request, Shim},
    prepare,
    shim_error::ShimError,
    watch::WatchedWait,
};
use crate::environment::MpiProcess;

/// The reason why there is no transport.
#[derive(Debug)]
pub enum MpiError {
    /// There is no shim for the MPI.
    Shim(ShimError),
    /// The MPI has failed.
    Failed(String),
    /// The launcher has started more processes than the library knows of.
    Mixed {
        /// The processes that the launcher has started.
        started: u32,
        /// The processes that the library knows of.
        known: u32,
    },
    /// Another job of this process is in progress.
    Busy,
    /// This process was forked from one that has begun a job.
    Forked,
    /// A setting is not the same in all processes.
    Differs {
        /// The setting.
        what: &'static str,
        /// The first process whose setting differs from that of process 0, and both settings.
        how: String,
    },
}

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shim(error) => fmt::Display::fmt(error, f),
            Self::Failed(text) => write!(f, "MPI failed: {text}"),
            Self::Mixed { started, known } => write!(
                f,
                "the launcher has started {started} processes, but the MPI that was \
                 loaded knows of {known}: `mpirun` and `mpicc` are of different MPIs; \
                 put those of one first in PATH"
            ),
            Self::Busy => {
                f.write_str("this process already runs a job, and an MPI supports one at a time")
            }
            Self::Forked => f.write_str(
                "this process was forked from an MPI process, and is not an MPI process: launch a \
                 job of threads here (Job::threads)",
            ),
            Self::Differs { what, how } => {
                write!(f, "the {what} must be the same in all processes, but it differs: {how}")
            }
        }
    }
}

impl std::error::Error for MpiError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Shim(error) => error.source(),
            _ => None,
        }
    }
}

impl From<ShimError> for MpiError {
    fn from(error: ShimError) -> Self {
        Self::Shim(error)
    }
}

/// A process's end of the transport.
pub struct Mpi {
    shim: Shim,
    warning: Option<String>,
    rank: u32,
    processes: u32,
    /// Frames that MPI may still read.
    sent: VecDeque<FrameRequest>,
    /// Frames that are being received, and their senders, in the order of delivery.
    coming: VecDeque<(u32, FrameRequest)>,
    /// Frames that have arrived.
    come: VecDeque<(u32, Frame)>,
    /// The transfers in progress.
    transfers: HashMap<Transfer, TransferProgress>,
    /// By process, the messages that are pushed to it.
    pushes: Vec<PushQueue>,
    /// The processes to which messages are pushed.
    pushing: Vec<u32>,
    /// The number of the next transfer.
    next: Transfer,
}

/// The size in words of a text that processes exchange. A longer text is cut.
const TEXT_WORDS: usize = 128;

/// Returns a text as words, padded with zeros.
fn words(text: &str) -> Vec<u64> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(TEXT_WORDS * size_of::<u64>(), 0);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    bytes.chunks(size_of::<u64>()).map(word).collect()
}

/// The process that began the first job.
static PROCESS: OnceLock<ProcessToken> = OnceLock::new();
/// Whether a job of this process is in progress: the shim serves one at a time.
static IN_PROGRESS: AtomicBool = AtomicBool::new(false);

/// If more frames than this are in flight, each receive frees those that were sent.
const MANY_SENT: usize = 16;
/// If more frames than this are in flight, a send waits.
const MOST_SENT: usize = 256;
/// A longer transfer is split into messages short enough that MPIs send them over TCP without
/// asking the receiver (below 64 KiB). The answers to longer messages queue behind the data that
/// the receiver sends, so two processes that send to each other would take turns.
const MOST_BYTES: usize = 60 << 10;
/// The largest number of transfer messages in flight to a process. Frames overtake messages that
/// are not in flight yet. They must, because the process may send nothing more until it has
/// received a frame.
const MOST_PUSHED: usize = 4;

/// The remaining part of a transfer.
enum TransferProgress {
    /// Messages to be sent to a process, and how many are left.
    Pushes { to: u32, left: usize },
    /// Messages to be received, or a collective.
    Requests(Vec<Request>),
}

/// The messages that are pushed to a process.
#[derive(Default)]
struct PushQueue {
    /// Waiting messages: their transfer, its tag, and the memory.
    waiting: VecDeque<(Transfer, u32, TransferBuffer)>,
    /// Messages in flight.
    begun: VecDeque<(Transfer, Request)>,
}

impl Mpi {
    /// Begins a job of the processes that an MPI has started. All must call this equally often.
    ///
    /// # Errors
    /// When there is no shim for that MPI, or it fails, or another job is in progress; in a forked
    /// child of a process that has called this.
    pub fn begin(started: &MpiProcess) -> Result<Self, MpiError> {
        if !PROCESS.get_or_init(ProcessToken::current).is_current() {
            return Err(MpiError::Forked);
        }
        if IN_PROGRESS.swap(true, AcqRel) {
            return Err(MpiError::Busy);
        }
        Self::begin_alone(started).inspect_err(|_| IN_PROGRESS.store(false, Release))
    }

    fn begin_alone(started: &MpiProcess) -> Result<Self, MpiError> {
        let (shim, warning) = prepare::load(started.flavor)?;
        let watched = WatchedWait::wait(started);
        let [rank, processes] = shim.begin().map_err(MpiError::Failed)?;
        if processes != started.processes {
            return Err(MpiError::Mixed { started: started.processes, known: processes });
        }
        shim.open().map_err(MpiError::Failed)?;
        drop(watched);
        Ok(Self {
            shim,
            warning,
            rank,
            processes,
            sent: VecDeque::new(),
            coming: VecDeque::new(),
            come: VecDeque::new(),
            transfers: HashMap::new(),
            pushes: (0..processes).map(|_| PushQueue::default()).collect(),
            pushing: Vec::new(),
            next: 0,
        })
    }

    /// Returns the number of this process.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns why the stored shim is not used, if so; usually alike in all processes.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Gathers words of all processes, in rank order. Each process passes the same number of words.
    ///
    /// # Errors
    /// When MPI fails.
    pub fn gather(&self, words: &[u64]) -> Result<Vec<u64>, MpiError> {
        self.shim.gather(words, self.processes).map_err(MpiError::Failed)
    }

    /// Declares whether this process is the first of those that share memory. The first ones take
    /// part in the MPI's own collectives between nodes. All processes must call this, once.
    ///
    /// # Errors
    /// When MPI fails.
    pub fn lead(&self, leads: bool) -> Result<(), MpiError> {
        self.shim.lead(leads).map_err(MpiError::Failed)
    }

    /// Ends the job if a setting differs between processes. All processes have settings of the same
    /// names. `shown` returns the text of this process's setting with this index, for the error.
    ///
    /// # Errors
    /// When a setting differs, or MPI fails.
    pub fn ensure_same(
        &mut self,
        settings: &[(&'static str, u64)],
        shown: impl Fn(usize) -> String,
    ) -> Result<(), MpiError> {
        let own: Vec<u64> = settings.iter().map(|&(_, value)| value).collect();
        let all = self.gather(&own)?;
        let first = |at: usize| all.chunks(own.len()).position(|one| one[at] != all[at]);
        let Some((at, process)) = (0..own.len()).find_map(|at| Some((at, first(at)?))) else {
            return Ok(());
        };
        let texts = self.gather(&words(&shown(at)))?;
        let text = |process: usize| {
            let words = texts.chunks(TEXT_WORDS).nth(process).unwrap_or_default();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
        };
        let how = format!("process {process} has {}, and process 0 {}", text(process), text(0));
        self.close(None);
        Err(MpiError::Differs { what: settings[at].0, how })
    }

    /// Returns the transport of the job, which begins now.
    pub fn into_transport(self) -> Box<dyn Transport> {
        Box::new(self)
    }

    /// Ends a job that has not begun on all processes.
    pub fn end(mut self) {
        self.close(None);
    }

    /// Frees frames that MPI has sent: all of them, or those before the first unsent one.
    fn clear(&mut self, all: bool) -> Result<(), TransportError> {
        for _ in 0..self.sent.len() {
            let Some(request) = self.sent.pop_front() else { break };
            let Err(request) = self.shim.words(request).map_err(TransportError)? else { continue };
            if !all {
                self.sent.push_front(request);
                break;
            }
            self.sent.push_back(request);
        }
        Ok(())
    }

    /// Takes the next frame that has arrived, if any.
    fn look(&mut self) -> Result<(), TransportError> {
        self.coming.extend(self.shim.receive().map_err(TransportError)?);
        if let Some((from, request)) = self.coming.pop_front() {
            match self.shim.words(request).map_err(TransportError)? {
                Ok(frame) => self.come.push_back((from, frame)),
                Err(request) => self.coming.push_front((from, request)),
            }
        }
        Ok(())
    }

    /// Ends all processes after a failed transfer, because MPI may still access its memory. Returns
    /// the error.
    fn fails(&self, error: String) -> TransportError {
        self.shim.close(Some(&format!("process {}: {error}", self.rank)));
        TransportError(error)
    }

    /// Registers a transfer and returns its number.
    fn begin_transfer(&mut self, left: TransferProgress) -> Transfer {
        self.next += 1;
        self.transfers.insert(self.next, left);
        self.next
    }

    /// Sends waiting messages, as long as not too many are in flight.
    fn push_all(&mut self) -> Result<(), TransportError> {
        let mut pushing = std::mem::take(&mut self.pushing);
        let mut lost = Ok(());
        pushing.retain(|&to| {
            lost = lost.clone().and_then(|()| self.push_to(to));
            lost.is_err() || !self.pushes[to as usize].begun.is_empty()
        });
        self.pushing = pushing;
        lost
    }

    fn push_to(&mut self, to: u32) -> Result<(), TransportError> {
        while let Some((transfer, request)) = self.pushes[to as usize].begun.pop_front() {
            if let Some(request) = self.shim.is_done(request).map_err(|error| self.fails(error))? {
                self.pushes[to as usize].begun.push_front((transfer, request));
                break;
            }
            if let Some(TransferProgress::Pushes { left, .. }) = self.transfers.get_mut(&transfer) {
                *left -= 1;
            }
        }
        let PushQueue { waiting, begun } = &mut self.pushes[to as usize];
        while begun.len() < MOST_PUSHED
            && let Some((transfer, tag, region)) = waiting.pop_front()
        {
            let memory = (region.at().cast_const(), region.bytes());
            // SAFETY: the transfer's caller promises that its memory stays until it is done.
            match unsafe { self.shim.push(to, tag, memory) } {
                Ok(request) => begun.push_back((transfer, request)),
                Err(error) => return Err(self.fails(error)),
            }
        }
        Ok(())
    }
}

impl Transport for Mpi {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn processes(&self) -> u32 {
        self.processes
    }

    fn send(&mut self, to: u32, frame: Frame) -> Result<(), TransportError> {
        self.sent.push_back(self.shim.send(to, frame).map_err(TransportError)?);
        // Peers that wait for each other must still take frames that have arrived.
        while self.sent.len() > MOST_SENT {
            self.clear(true)?;
            self.push_all()?;
            self.look()?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<(u32, Frame)>, TransportError> {
        if self.sent.len() > MANY_SENT {
            self.clear(false)?;
        }
        if !self.pushing.is_empty() {
            self.push_all()?;
        }
        if self.come.is_empty() {
            self.look()?;
        }
        Ok(self.come.pop_front())
    }

    unsafe fn push(
        &mut self,
        to: u32,
        tag: u32,
        source: TransferBuffer,
    ) -> Result<Transfer, TransportError> {
        let messages = source.pieces(MOST_BYTES);
        let transfer = self.begin_transfer(TransferProgress::Pushes { to, left: messages.len() });
        let pushes = &mut self.pushes[to as usize];
        pushes.waiting.extend(messages.map(|message| (transfer, tag, message)));
        if pushes.begun.is_empty() {
            self.pushing.push(to);
        }
        self.push_to(to)?;
        Ok(transfer)
    }

    unsafe fn pull(
        &mut self,
        from: u32,
        tag: u32,
        target: TransferBuffer,
    ) -> Result<Transfer, TransportError> {
        let mut requests = Vec::new();
        for message in target.pieces(MOST_BYTES) {
            // SAFETY: the caller promises that the region stays, and may be written.
            let begun = unsafe { self.shim.pull(from, tag, (message.at(), message.bytes())) };
            requests.push(begun.map_err(|error| self.fails(error))?);
        }
        Ok(self.begin_transfer(TransferProgress::Requests(requests)))
    }

    unsafe fn collect(
        &mut self,
        call: &VendorCall,
        source: TransferBuffer,
        target: TransferBuffer,
    ) -> Result<Transfer, TransportError> {
        // SAFETY: the caller promises that both regions stay.
        let begun = unsafe { self.shim.collect(call, [source, target]) };
        let request = begun.map_err(|error| self.fails(error))?;
        Ok(self.begin_transfer(TransferProgress::Requests(vec![request])))
    }

    fn is_done(&mut self, transfer: Transfer) -> Result<bool, TransportError> {
        if let Some(&TransferProgress::Pushes { to, .. }) = self.transfers.get(&transfer) {
            self.push_to(to)?;
        }
        let left = match self.transfers.remove(&transfer) {
            Some(TransferProgress::Requests(mut requests)) => {
                while let Some(request) = requests.pop() {
                    let left = self.shim.is_done(request).map_err(|error| self.fails(error))?;
                    if let Some(request) = left {
                        requests.push(request);
                        break;
                    }
                }
                Some(requests).filter(|left| !left.is_empty()).map(TransferProgress::Requests)
            }
            Some(TransferProgress::Pushes { left: 0, .. }) | None => None,
            pushes => pushes,
        };
        let is_done = left.is_none();
        self.transfers.extend(left.map(|left| (transfer, left)));
        Ok(is_done)
    }

    fn is_moving(&self) -> bool {
        !self.transfers.is_empty()
    }

    fn cancel(&mut self, transfer: Transfer) {
        if let Some(TransferProgress::Requests(requests)) = self.transfers.remove(&transfer) {
            requests.into_iter().for_each(|request| self.shim.cancel(request));
        }
    }

    fn is_flushed(&mut self) -> Result<bool, TransportError> {
        self.clear(true)?;
        Ok(self.sent.is_empty())
    }

    fn close(&mut self, failed: Option<&str>) {
        self.shim.close(failed);
        IN_PROGRESS.store(false, Release);
    }

    fn abort(&mut self, status: u8) {
        self.shim.abort(status);
    }
}
