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
/// | have inherited a file from the process that has forked them | [`Rendezvous::descriptor`] |
/// | know a free TCP port of this machine | [`Rendezvous::address`] |
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
    Descriptor(i32),
    Address(String),
    #[cfg_attr(
        not(all(target_os = "linux", not(any(miri, consort_portable)))),
        expect(dead_code, reason = "processes meet only on Linux")
    )]
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

    /// Returns the rendezvous of the processes that have inherited the file of this descriptor from
    /// the process that has forked them. No process of another job has this file open.
    ///
    /// Any pipe, socket or file will do, such as a new pipe. The processes do not read it or write
    /// it. They meet by a name made of the file's device and inode numbers, so the program need not
    /// choose one. The limits of a [name](Self::name) apply. The descriptor may differ between
    /// processes. It must be open until the job is launched in all of them, and the file must exist
    /// while the job runs. After an `exec`, it is open only if it was not marked as `FD_CLOEXEC`. A
    /// terminal and other devices are refused, because processes of other jobs have them open, too.
    ///
    /// ```
    /// use std::os::fd::AsRawFd;
    ///
    /// use consort::{Job, Rank, Rendezvous, ops::Sum};
    ///
    /// // Here one process; usually it forks others, each of which then has its own rank.
    /// let (pipe, _other_end) = std::io::pipe()?;
    /// let rendezvous = Rendezvous::descriptor(pipe.as_raw_fd());
    /// let sums = Job::processes(Rank(0), 1, rendezvous).run(|pe| pe.world().all_reduce(7, Sum))?;
    /// assert_eq!(sums[Rank(0)], 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn descriptor(number: i32) -> Self {
        Self { way: Way::Descriptor(number), timeout: TIMEOUT }
    }

    /// Returns the rendezvous of the processes that know this TCP address of their machine, as
    /// `HOST:PORT`: `127.0.0.1:29500`, `[::1]:29500` or `localhost:29500`.
    ///
    /// The first process listens there, and the others connect to it. All processes must be on one
    /// machine, and in one network namespace. The port is in use until the job ends. While a job
    /// has it, processes of another job wait for it, for at most [the timeout](Self::timeout). If
    /// another program has it, the launch fails when the timeout is over.
    ///
    /// The first process closes connections of other users and machines without reading from them.
    /// A process that connects sends its identity before it can check the user of the first
    /// process. The processes look up users in `/proc/net/tcp`, which must be readable. Prefer an
    /// address that other machines cannot reach, such as `127.0.0.1`. The timeout does not limit
    /// the time in which the system looks up the name of a host.
    ///
    /// ```
    /// use consort::{Job, Rank, Rendezvous, ops::Sum};
    ///
    /// # let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    /// # let address = free;
    /// # /*
    /// let address = "127.0.0.1:29500";
    /// # */
    /// let job = Job::processes(Rank(0), 1, Rendezvous::address(address));
    /// let sums = job.run(|pe| pe.world().all_reduce(7, Sum))?;
    /// assert_eq!(sums[Rank(0)], 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn address(address: impl Into<String>) -> Self {
        Self { way: Way::Address(address.into()), timeout: TIMEOUT }
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
        match &self.way {
            Way::Name(name) => shown.field("name", name),
            Way::Descriptor(number) => shown.field("descriptor", number),
            Way::Address(address) => shown.field("address", address),
            Way::AllGather(_) => &mut shown,
        };
        shown.field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod linux {
    use std::sync::PoisonError;

    use consort_native::{Exchange, HostedExchange, MeetError, MeetingPlace};

    use super::{AllGather, Arc, Mutex, Rendezvous, Way};

    impl Rendezvous {
        /// Returns the exchange of the processes, whose time begins now.
        pub(crate) fn exchange(&self) -> Result<Box<dyn Exchange>, MeetError> {
            let place = match &self.way {
                Way::Name(name) => MeetingPlace::of_name(name),
                Way::Descriptor(number) => MeetingPlace::of_file(*number),
                Way::Address(address) => MeetingPlace::of_address(address),
                Way::AllGather(all_gather) => {
                    return Ok(Box::new(OfProgram(Arc::clone(all_gather))));
                }
            };
            Ok(Box::new(HostedExchange::new(place?, self.timeout)))
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
