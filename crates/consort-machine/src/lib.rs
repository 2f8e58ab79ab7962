//! One machine: its topology and limits, waiting and waking, and the shared words and messages on
//! which locks and delegation are built.
//!
//! | module | contents |
//! | --- | --- |
//! | [`machine`] | the interface that locks and delegation use; [`native`]: this machine |
//! | [`topology`], [`affinity`], [`cores`] | processors, caches and quotas; the processors that threads use |
//! | [`limits`], [`permissions`], [`advice`] | limits and rights of this process; advice on errors |
//! | [`threads`], [`usage`] | how many threads may start; statistics that the system keeps |
//! | [`wait`], [`sync`] | waiting and waking; atomics and futexes, or loom's; a biased lock |
//! | [`system`] | functions that only Linux has, and their substitutes elsewhere |
//! | [`token`], [`fork_safe`] | tokens that forked children do not share; locks that they find free |
//! | [`mod@panic`] | payloads of panics |
//!
//! Nothing here knows about PEs or jobs.

#[cfg(test)]
use consort_sandbox as _;

pub mod advice;
pub mod affinity;
pub mod cores;
pub mod fork_safe;
pub mod limits;
pub mod machine;
#[cfg(not(loom))]
pub mod native;
pub mod panic;
pub mod permissions;
pub mod sync;
pub mod system;
pub mod threads;
pub mod token;
pub mod topology;
pub mod usage;
pub mod wait;

pub use cores::Cores;
pub use machine::{Line, Machine, Mailbox, Pair, Queue, Thread, UniqueNumbers, Until, Word};
#[cfg(not(loom))]
pub use native::{NativeMachine, at_once, block_on, block_on_yielding};
pub use panic::{Panic, discard, panic_reason};
pub use sync::{
    biased_mutex::{BiasedGuard, BiasedMutex, ThreadToken},
    futex::Scope,
};
pub use system::fork::{ForkHold, hold_forks, in_children, stay_loaded};
pub use token::ProcessToken;
pub use wait::{
    parker::{Epoch, Parker},
    policy::{UnknownWaiting, Waiting},
    sleepers::{Sleeper, Sleepers},
    spin_budget::nap_after,
};
