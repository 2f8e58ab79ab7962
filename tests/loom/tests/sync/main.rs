//! Models of the locks and of delegation: loom runs each in every interleaving with a bounded number
//! of preemptions, and lets every load return each value that the memory model allows.
//!
//! The algorithms are the real ones, on a machine of loom's atomics. Each model also runs with each
//! ordering and each operation removed in turn, and must then fail; those that it does not need are
//! listed, with the reason why they exist.
//!
//! ```sh
//! CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 \
//!     cargo nextest run --release -p consort-loom NAME
//! ```
#![cfg(loom)]

mod backlog;
mod changes;
mod containers;
mod delegation;
mod locks;
mod machine;
mod messages;
mod rw_locks;
mod semaphores;
mod shared;
mod wait_queues;
