//! A message from every PE to every PE, in three ways: with a barrier, with a fence and flags, and
//! with counting puts.
//!
//! Source: Dinan et al., "Reducing Synchronization Overhead Through Bundled Communication" (2014),
//! sections 1.2, 2 and 3.2, Listings 1.1 to 1.5. `consort bench counting counted-all-to-all` times
//! it.
//!
//! ```sh
//! cargo run --release -p consort --example all_to_all             # four PEs
//! ```

use std::env;

use consort::{
    Job, Pe, Rank, Result,
    symmetric::{Signal, Until},
};

const ROUNDS: usize = 100;

#[derive(Clone, Copy, Debug)]
enum Way {
    Barrier,
    Flags,
    CountingPuts,
}

/// Runs all rounds in one way; in each, every PE's number reaches every PE.
fn run(pe: &Pe, way: Way) -> Result<()> {
    let world = pe.world();
    let (me, pes) = (world.rank().index(), world.size());
    // Each PE begins with itself, so that they do not all put to the same PE.
    let everyone = || (0..pes).map(|distance| Rank::new((me + distance) % pes));
    // Two of each, used alternately: a PE that receives a message of the next round knows that its
    // sender has read this round's messages and reset its flag or counter.
    let inboxes = [world.symmetric(pes)?, world.symmetric(pes)?];
    let flags = [world.symmetric::<u64>(1)?, world.symmetric(1)?];
    let counters = [world.completion_counter()?, world.completion_counter()?];
    for round in 0..ROUNDS {
        let turn = round % 2;
        let (inbox, flag, counter) = (&inboxes[turn], &flags[turn], &counters[turn]);
        let message = [round * pes + me];
        for to in everyone() {
            match way {
                Way::CountingPuts => inbox.put_counted(to, me, &message, counter)?,
                Way::Barrier | Way::Flags => inbox.put(to, me, &message)?,
            }
        }
        match way {
            Way::Barrier => {
                inbox.quiet()?;
                world.barrier()?;
            }
            Way::Flags => {
                inbox.fence()?;
                for to in everyone() {
                    flag.signal(to, 0, Signal::Add(1))?;
                }
                flag.wait_until(0, Until::AtLeast(pes as u64))?;
                flag.store(0, 0)?;
            }
            Way::CountingPuts => {
                counter.wait(pes as u64)?;
                counter.set(0)?;
            }
        }
        let received = inbox.to_vec()?;
        assert!(received.into_iter().eq(round * pes..(round + 1) * pes), "{way:?}, round {round}");
    }
    Ok(())
}

fn main() -> Result<()> {
    let pes = env::args().nth(1).map_or(Ok(4), |text| text.parse());
    let pes = pes.expect("usage: all_to_all [PES]");
    for way in [Way::Barrier, Way::Flags, Way::CountingPuts] {
        Job::threads(pes).run(|pe| run(pe, way))?;
        println!("{way:?}: {ROUNDS} rounds, everyone had everyone's number in each");
    }
    Ok(())
}
