//! The rows of OpenMP's collectives: each library, with active and with passive waiting.
//!
//! OpenMP has a barrier. Its sums are loops with the clause `reduction(+ : ...)`, and with one
//! iteration per thread. The sum is one array for all threads. In a reduction the root reads it
//! there; in an all-reduction every thread copies it to its own array. A launch has a few blocks of
//! calls in a row. They are as long as Consort's blocks, and run on the launch's own threads, on
//! the cores of Consort's PEs.

use std::{rc::Rc, sync::atomic::AtomicBool, time::Duration};

use consort::tune::Collective;
use consort_machine::topology::Topology;

use super::program::{Library, OpenMp, OpenMpLaunch};
use crate::{
    harness::{Communication, block_time},
    peers::{
        printed::PrintedOutput,
        programs::{PeerRow, blank},
    },
    units::in_a_line,
};

/// The values of `OMP_WAIT_POLICY`.
const WAITING: [&str; 2] = ["active", "passive"];
/// The largest number of blocks in a launch: with their warm-up they take less than 10 ms.
const BLOCKS: u32 = 5;
/// A launch that takes longer is considered hanging.
const LIMIT: Duration = Duration::from_secs(2);

/// Returns whether OpenMP has an equivalent of this collective.
pub const fn serves(what: Collective) -> bool {
    matches!(what, Collective::Barrier | Collective::Reduce | Collective::AllReduce)
}

/// Returns the rows of a library, one for each way to wait and each size; a barrier has no size. A
/// missing library has one row with the reason. `stop` interrupts the compiler.
pub fn rows(
    library: Library,
    what: Collective,
    pes: u32,
    sizes_bytes: &[usize],
    stop: &AtomicBool,
) -> Vec<PeerRow> {
    let blank = |name| blank(Communication::Collective(what), pes, "threads", name);
    let absent = |why| vec![PeerRow::absent(blank(library.name().to_owned()), &[], why)];
    if !serves(what) {
        return absent(format!("OpenMP has no {what}: it has barrier, reduce and all_reduce"));
    }
    let openmp = match OpenMp::compile(library, stop) {
        Ok(openmp) => Rc::new(openmp),
        Err(error) => return absent(in_a_line(&error)),
    };
    let cpus = Topology::discover().placement(pes as usize);
    let sizes = if what == Collective::Barrier { &[0] } else { sizes_bytes };
    let mut rows = Vec::new();
    for waiting in WAITING {
        let mut blank = blank(format!("{} {waiting}, {}", library.name(), openmp.compiler()));
        blank.waiting = Some(waiting.to_owned());
        for &bytes in sizes {
            let (openmp, cpus, bytes) = (Rc::clone(&openmp), cpus.clone(), bytes as u64);
            rows.push(PeerRow::new(blank.clone(), &[bytes], move |_, stop| {
                let samples = openmp.samples_ns(&OpenMpLaunch {
                    work: what.name(),
                    pes,
                    cpus: cpus.as_deref(),
                    waiting: Some(waiting),
                    bytes,
                    block: block_time(cpus.is_some()),
                    blocks: BLOCKS,
                    limit: LIMIT,
                    stop,
                })?;
                Ok(PrintedOutput { library: None, figures: vec![(bytes, samples)] })
            }));
        }
    }
    rows
}
