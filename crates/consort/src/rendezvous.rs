//! Ways for existing processes to find each other, so that they become the PEs of a job.

mod environment;

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

/// The default time for which processes wait for each other.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How the processes of a job find each other: for
/// [`Job::processes`](crate::Job::processes).
///
/// | the processes | the rendezvous |
/// | --- | --- |
/// | know the name of their job | [`Rendezvous::name`] |
/// | can exchange bytes by a library that they use already | [`Rendezvous::all_gather`] |
/// | have been started by `torchrun` or `srun`, on one machine | [`Rendezvous::environment`] |
#[derive(Clone)]
pub struct Rendezvous {
    way: Way,
    timeout: Duration,
}

#[derive(Clone)]
enum Way {
    Name(String),
    AllGather(Arc<Mutex<AllGather>>),
}

type AllGather = dyn FnMut(&[u8]) -> Result<Vec<Vec<u8>>, String> + Send;

impl Rendezvous {
    /// Returns the rendezvous of the processes that know this name, of 1 to 90 bytes.
    ///
    /// The name is not a file, but that of a socket in the abstract namespace of the machine (of
    /// its network namespace, to be precise). It is free again when the job ends or its process
    /// dies. While a job has it, processes of another job of this name wait for it, for at most
    /// [the timeout](Self::timeout). All users share these names, so include the name of your
    /// program or user.
    ///
    /// If a process dies before the others have joined, it counts as missing.
    #[must_use]
    pub fn name(name: impl Into<String>) -> Self {
        Self { way: Way::Name(name.into()), timeout: TIMEOUT }
    }

    /// Returns a rendezvous of processes that exchange bytes by `all_gather`: it sends the bytes of
    /// this process to all processes, and returns those of all processes, including this one, in
    /// any order. Each launch of the job calls it once or twice, on all processes alike. Some
    /// kilobytes of each process are exchanged.
    ///
    /// [The timeout](Self::timeout) does not apply: the closure limits its own time, and returns an
    /// error when a process does not join.
    #[must_use]
    pub fn all_gather<E: fmt::Display>(
        mut all_gather: impl FnMut(&[u8]) -> Result<Vec<Vec<u8>>, E> + Send + 'static,
    ) -> Self {
        let all_gather = move |bytes: &[u8]| all_gather(bytes).map_err(|error| error.to_string());
        Self { way: Way::AllGather(Arc::new(Mutex::new(all_gather))), timeout: TIMEOUT }
    }

    /// Sets how long the processes wait until all have joined; the default is 60 s. Then the launch
    /// fails in each of them, with an error that names the missing ranks.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }
}

impl fmt::Debug for Rendezvous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Rendezvous");
        if let Way::Name(name) = &self.way {
            shown.field("name", name);
        }
        shown.field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod linux {
    use std::sync::PoisonError;

    use consort_native::{Exchange, MeetError, NamedExchange};

    use super::{AllGather, Arc, Mutex, Rendezvous, Way};

    impl Rendezvous {
        /// Returns the exchange of the processes, whose time begins now.
        pub(crate) fn exchange(&self) -> Result<Box<dyn Exchange>, MeetError> {
            Ok(match &self.way {
                Way::Name(name) => Box::new(NamedExchange::new(name, self.timeout)?),
                Way::AllGather(all_gather) => Box::new(OfProgram(Arc::clone(all_gather))),
            })
        }
    }

    /// The exchange of a program.
    struct OfProgram(Arc<Mutex<AllGather>>);

    impl Exchange for OfProgram {
        fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, MeetError> {
            let mut all_gather = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all_gather(own).map_err(MeetError::Exchange)
        }
    }
}
