//! Models of the protocols between PEs and between threads: loom runs each in every interleaving
//! with a bounded number of preemptions, and lets every load return each value that the memory
//! model allows.
//!
//! The primitives are the real ones, compiled with loom's atomics; the algorithms' use of them is
//! written out in short form. Each model also runs with one thing removed on which it depends, and
//! must then fail, which shows that the model can find the fault.
//!
//! ```sh
//! CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 \
//!     cargo nextest run --release -p consort-loom NAME
//! ```
#![cfg(loom)]

mod access_flag;
mod biased_mutex;
mod credits;
mod doorbell;
mod heartbeat;
mod message;
mod pair;
mod parking;
mod poison;
mod stream;

/// Waits like an executor that never parks.
fn until(arrived: impl Fn() -> bool) {
    while !arrived() {
        loom::thread::yield_now();
    }
}
