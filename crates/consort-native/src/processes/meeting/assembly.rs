//! Existing processes meet and become the PEs of a job.

use std::{
    io, process,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use consort_fabric::Rank;

use super::{
    exchange::Exchange,
    greeting::{Facts, Greeting, Roll},
    meet_error::MeetError,
};
use crate::{
    launch::memory::{FileLocation, SharedFile},
    processes::{
        binding::Binding,
        control::LAYOUT,
        control_file::ControlFile,
        pe_process::PeProcess,
        process_end::ProcessEnd,
        watch::{Identity, Watch},
    },
    system::{process as system, watch::own_start},
};

/// Processes that have greeted each other.
pub struct Meeting {
    exchange: Box<dyn Exchange>,
    /// The control file, in the process of PE 0.
    created: Option<ControlFile>,
    own: Rank,
    /// The greetings of all, in the order of the ranks.
    greetings: Vec<Greeting>,
}

/// The data that a process collects before it meets the others.
#[derive(Default)]
struct Ready {
    started: u64,
    place: Facts,
    created: Option<ControlFile>,
}

impl Ready {
    /// Prepares this process, which becomes PE `own`. Fails with the reason why it cannot.
    fn new(own: Rank, pes: u32) -> Result<Self, String> {
        let unread = |error: io::Error| format!("cannot read /proc: {error}");
        let started = own_start().map_err(unread)?;
        let [user, machine, processes, users] = system::place().map_err(unread)?;
        let place = [user, machine, processes, users, system::time_namespace()];
        let create = |_| ControlFile::create(pes, 1, Binding::default());
        let created = Some(own).filter(|own| own.0 == 0).map(create).transpose();
        Ok(Self { started, place, created: created.map_err(|error| error.to_string())? })
    }
}

impl Meeting {
    /// Greets the other processes of a job of `pes` PEs. This one becomes PE `own`, which must be
    /// less than `pes`. The others find its static variables in the file `statics`, if that is
    /// given. All processes get the `payload` of each; if a process has a reason why it
    /// cannot take part instead, all fail with this reason.
    ///
    /// # Errors
    /// When the exchange fails, or the processes cannot be one job: then all get this error.
    pub fn begin(
        own: Rank,
        pes: u32,
        payload: Result<Vec<u8>, String>,
        statics: Option<&SharedFile>,
        mut exchange: Box<dyn Exchange>,
    ) -> Result<Self, MeetError> {
        let able = payload.and_then(|payload| Ok((Ready::new(own, pes)?, payload, String::new())));
        // A process that cannot take part says so, because the others would wait for it.
        let (ready, payload, refusal) =
            able.unwrap_or_else(|reason| (Ready::default(), Vec::new(), reason));
        let Ready { started, place, created } = ready;
        let number = created.as_ref().map_or(0, |created| system::number_of(&created.file));
        let greeting = Greeting {
            layout: LAYOUT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rank: own,
            pes,
            process: process::id(),
            started,
            place,
            descriptor: number.unsigned_abs(),
            statics: statics.map_or(0, |file| file.at().descriptor),
            refusal,
            payload,
        };
        let all = exchange.all_gather(&greeting.encode())?;
        let decoded: Option<Vec<Greeting>> =
            all.iter().map(|bytes| Greeting::decode(bytes)).collect();
        let mut greetings = decoded.ok_or(MeetError::Garbled)?;
        greetings.sort_unstable_by_key(|greeting| (greeting.rank, greeting.process));
        let mut roll = Roll::default();
        greetings.iter().try_for_each(|greeting| roll.add(greeting))?;
        roll.ensure_able()?;
        let (got, pes) = (greetings.len(), pes as usize);
        if got != pes {
            return Err(MeetError::Count { got, pes });
        }
        // The sizes are equal, and no rank is there twice.
        let is_own = |(rank, one): (u32, &Greeting)| one.rank.0 == rank;
        match (0..).zip(&greetings).all(is_own) && greetings[own.index()] == greeting {
            true => Ok(Self { exchange, created, own, greetings }),
            false => Err(MeetError::Garbled),
        }
    }

    /// Returns the payloads of all processes, in the order of the ranks.
    pub fn payloads(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.greetings.iter().map(|greeting| &*greeting.payload)
    }

    /// Becomes a PE of the job. All processes give the same number of processors that they may
    /// use together, and the same placement.
    ///
    /// # Errors
    /// When a process cannot take part, or the exchange fails.
    pub fn join(mut self, processors: u32, binding: Binding) -> Result<Arc<PeProcess>, MeetError> {
        let (control, statics) = match self.find() {
            Ok((control, statics)) => (Arc::new(control), statics),
            Err(reason) => {
                self.agree(&reason)?;
                return Err(MeetError::Refused { rank: self.own, reason });
            }
        };
        // All processes store the same number.
        control.processors.store(processors, Relaxed);
        control.binding.store(binding.word(), Relaxed);
        let own = self.own;
        let joined = self.agree("").and_then(|()| self.enter(&control, statics));
        joined.inspect_err(|_| {
            // Others may have agreed, and wait for this process.
            control.lose(own, ProcessEnd::Withdrawn);
        })
    }

    /// Returns the control file, and the files with the static variables of all processes that
    /// have such a file; or the reason why this process cannot open them.
    fn find(&mut self) -> Result<(ControlFile, Vec<(Rank, SharedFile)>), String> {
        let of = |&Greeting { rank, process, statics: descriptor, .. }: &Greeting| {
            let file = SharedFile::find(FileLocation { process, descriptor });
            Ok((rank, file.map_err(|error| error.to_string())?))
        };
        let statics = self.greetings.iter().filter(|one| one.statics != 0).map(of);
        let statics = statics.collect::<Result<_, String>>()?;
        Ok((self.find_control()?, statics))
    }

    /// Returns the control file, or the reason why this process cannot open it.
    fn find_control(&mut self) -> Result<ControlFile, String> {
        if let Some(created) = self.created.take() {
            return Ok(created);
        }
        let Greeting { process, descriptor, .. } = self.greetings[0];
        let file = system::file_of(process, descriptor).map_err(|error| error.to_string())?;
        let control = ControlFile::open(file).map_err(|error| error.to_string())?;
        let pes = self.greetings[0].pes;
        control.filter(|control| control.pes == pes).ok_or_else(|| {
            format!("descriptor {descriptor} of process {process} is not the job's control block")
        })
    }

    /// Sends all processes the reason why this one cannot take part; the reason is empty if it can.
    /// Fails if any process cannot.
    fn agree(&mut self, reason: &str) -> Result<(), MeetError> {
        let mut said = self.own.0.to_le_bytes().to_vec();
        said.extend(reason.as_bytes());
        let mut refused = None;
        for bytes in self.exchange.all_gather(&said)? {
            let (rank, reason) = bytes.split_first_chunk().ok_or(MeetError::Garbled)?;
            let rank = Rank(u32::from_le_bytes(*rank));
            if !reason.is_empty() && refused.as_ref().is_none_or(|(first, _)| rank < *first) {
                refused = Some((rank, String::from_utf8_lossy(reason).into_owned()));
            }
        }
        refused.map_or(Ok(()), |(rank, reason)| Err(MeetError::Refused { rank, reason }))
    }

    /// Begins to watch the other processes.
    fn enter(
        self,
        control: &Arc<ControlFile>,
        statics: Vec<(Rank, SharedFile)>,
    ) -> Result<Arc<PeProcess>, MeetError> {
        let Self { exchange, own, greetings, .. } = self;
        let identity = |one: &Greeting| Identity { process: one.process, started: one.started };
        let all = greetings.iter().map(identity).collect();
        let watch = Watch::start(control, own, all, exchange.into_hold());
        let watch = watch.map_err(|reason| MeetError::Refused { rank: own, reason })?;
        Ok(PeProcess::met(Arc::clone(control), own, statics, Box::new(watch)))
    }
}
