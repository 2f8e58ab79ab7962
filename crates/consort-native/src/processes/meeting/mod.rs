//! Processes that exist already become the PEs of one job.
//!
//! They need a way to exchange bytes, such as a name, and use it twice. First each process sends
//! its identity: its rank, the size of the job, its version, where it runs. All decide by the same
//! data whether they can be one job. The process of PE 0 has already created the control file, and
//! the others open it in `/proc`. In the second exchange, each process says whether it takes part.
//! From then on the processes are like those of a launcher, but watch each other.
//!
//! | file | what |
//! | --- | --- |
//! | `exchange` | the way to exchange bytes |
//! | `place` | where processes of one machine meet: a name, a file, an address |
//! | `hosted`, `hold` | the exchange of processes that know the place; the place of a complete job |
//! | `greeting` | the identity of a process |
//! | `assembly` | how the processes meet |
//! | `meet_error` | why they do not |

#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
pub(crate) mod assembly;
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
pub(crate) mod exchange;
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
mod greeting;
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
pub(crate) mod hold;
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
pub(crate) mod hosted;
pub(crate) mod meet_error;
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
pub(crate) mod place;
