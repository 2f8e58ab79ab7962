//! Times the standard library's barrier and Consort's, with two threads.
//!
//! ```sh
//! cargo run --release -p consort --example barriers
//! ```

use std::{
    thread,
    time::{Duration, Instant},
};

const STEPS: u32 = 100_000;

/// Returns the time of a step in which two threads wait for each other.
fn step(wait: impl Fn() + Sync) -> Duration {
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..STEPS).for_each(|_| wait()));
        }
    });
    start.elapsed() / STEPS
}

fn main() {
    let (old, new) = (std::sync::Barrier::new(2), consort::Barrier::new(2));
    println!("std::sync::Barrier: {:?}", step(|| _ = old.wait()));
    println!("consort::Barrier: {:?}", step(|| _ = new.wait()));
}
