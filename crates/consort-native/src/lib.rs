//! The threads fabric: one runtime for PEs that share memory.
//!
//! A [`Job`] is the state that the PEs of a launch share. A [`Group`] is the state that the PEs of
//! a team share. An [`Endpoint`] is one PE's handle to a team. A [`CallView`] is one PE's view of
//! one collective call: the shared-memory implementation of [`consort_fabric::Fabric`]. A
//! [`StartedCall`] is a nonblocking call, which an [`Engine`] polls while its PE does something
//! else. [`OneSided`] operations need no call. A [`NotificationBuffers`] is a PE's part in
//! asynchronous broadcasts.
//!
//! | folder | what |
//! | --- | --- |
//! | `launch` | a job: its configuration, the segment's layout, failure |
//! | `segment`, `state` | shared memory, and the state of the job and of each PE in it |
//! | `directory` | shared tables on which PEs agree without a message |
//! | `team` | groups |
//! | `inbox` | the memory in which messages arrive |
//! | `call` | the fabric |
//! | `endpoint` | a PE's handle to a team: numbering calls, waiting |
//! | `processes` | PEs that are processes, and their launcher's part |
//! | `far` | PEs of processes that share no memory |
//! | `progress` | the drivers of calls |
//! | `heap` | symmetric memory |
//! | `memory` | copies and combinations |
//! | `system` | memory and file descriptors: Linux system calls, and their substitutes elsewhere |

#[cfg(test)]
use consort_sandbox as _;

mod call;
mod directory;
mod endpoint;
mod far;
#[cfg(not(loom))]
#[doc(hidden)]
pub mod fuzzing;
mod heap;
mod inbox;
mod launch;
mod memory;
mod notifications;
mod processes;
mod progress;
mod roster;
mod segment;
mod state;
mod system;
mod tally;
mod team;

pub use call::{
    operands::{Buffer, Operands},
    remote::Remote,
    started::StartedCall,
    view::CallView,
};
pub use directory::{
    blocks::{BLOCK_ALIGN, HeapError},
    call_names::NumbersExhausted,
    group_error::GroupError,
};
pub use endpoint::{identity::Endpoint, wait_counts::Waits};
pub use far::{
    loopback::Loopback,
    transport::{Frame, TAGS, Transfer, TransferBuffer, Transport, TransportError},
};
pub use heap::{block::Block, one_sided::OneSided, word::Width};
pub use inbox::{doorbell, geometry::SEQUENCE_BITS, line};
pub use launch::{
    call_number::CallNumber,
    config::Config,
    config_error::ConfigError,
    ending::WaitSnapshot,
    failure::{Failure, Members},
    heap_size::{default_heap_bytes, heap_bytes_of},
    job::{Job, JobError},
    memory::{FileLocation, JobMemory, SharedFile},
    sites::Site,
};
pub use notifications::NotificationBuffers;
pub use processes::{
    binding::Binding,
    launcher::Launcher,
    meeting::meet_error::MeetError,
    pe_process::{JoinError, PeProcess},
    process_end::ProcessEnd,
    rank_list::list_of_ranks,
};
#[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
pub use processes::{
    meeting::{
        assembly::Meeting, exchange::Exchange, hold::Hold, hosted::HostedExchange,
        place::MeetingPlace,
    },
    statics::Statics,
};
pub use progress::{engine::Engine, event::Event};
pub use segment::{large_page::obtains_large_page, memory_error::MemoryError, origin::Origin};
pub use state::{
    access_flag::{AccessFlag, AccessGuard},
    heartbeat::{Awaited, CallWait, Heartbeat, HeartbeatRecord, WaitReason},
    poison::{Poison, PoisonFlag},
};
pub use tally::{Counted, Tally};
pub use team::{group::Group, message::message_name};
