//! Figures of MPI libraries, or the reasons why there are none.
//!
//! The MPI program times calls in a row on one reused buffer, whatever the options for Consort, in
//! processes of its own. It is a separate run: its class is that of the transfer before it, if the
//! transfer after it is still the same.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use consort::Collective;
use consort_native::topology::Topology;
use consort_tuner::TransferClass;

use super::program;
use crate::{
    harness::{Figure, Mode, hundredths},
    limits::{readings_agree, transfer_ns},
};

/// The time of a reading of the transfer before and after.
const TRANSFER_SLICE: Duration = Duration::from_millis(5);

/// The figures of each library and size; a barrier has no size. A library that cannot be used has
/// one figure without times. If no `mpirun` is named, the one in `PATH` is used.
pub fn figures(
    what: Collective,
    pes: u32,
    sizes_bytes: &[usize],
    mpiruns: &[PathBuf],
) -> Vec<Figure> {
    let in_path = [PathBuf::from("mpirun")];
    let mpiruns = if mpiruns.is_empty() { &in_path } else { mpiruns };
    mpiruns.iter().flat_map(|mpirun| of_library(what, pes, sizes_bytes, mpirun)).collect()
}

fn of_library(what: Collective, pes: u32, sizes_bytes: &[usize], mpirun: &Path) -> Vec<Figure> {
    let blank = Figure {
        fabric: "processes".into(),
        // When a call returns, its buffers belong to the caller again.
        sync: Some(if what == Collective::Barrier { "strict" } else { "mine" }.to_owned()),
        placement: if transfer_is_known(pes) { "bound to cores" } else { "unbound" }.to_owned(),
        ..Figure::of(what.name(), pes, Mode::Throughput)
    };
    let sizes: Vec<u64> = sizes_bytes.iter().map(|&bytes| bytes as u64).collect();
    let before = transfer(pes);
    let measured = program::bench(mpirun, what.name(), pes, &sizes);
    let after = transfer(pes);
    let same = before.zip(after).filter(|&(a, b)| readings_agree(a, b));
    let c2c_ns = same.map(|(a, b)| f64::midpoint(a, b));
    match measured {
        Ok(measured) => measured
            .into_iter()
            .map(|one| {
                let bytes = usize::try_from(one.bytes).ok().filter(|&bytes| bytes > 0);
                Figure {
                    bytes,
                    peer: Some(one.library),
                    ratio_to_limit: c2c_ns.map(|c2c_ns| hundredths(one.times.median / c2c_ns)),
                    c2c_ns: c2c_ns.map(hundredths),
                    c2c_class: c2c_ns.map(TransferClass::of),
                    ..blank.clone().with(&one.times)
                }
            })
            .collect(),
        Err(error) => vec![Figure {
            peer: Some(mpirun.display().to_string()),
            absent: Some(format!("{error:#}")),
            ..blank
        }],
    }
}

fn transfer_is_known(pes: u32) -> bool {
    pes > 1 && Topology::discover().placement(pes as usize).is_some()
}

/// The transfer between the first two cores, if PEs have cores of their own.
fn transfer(pes: u32) -> Option<f64> {
    let cpus = Topology::discover().placement(2).filter(|_| transfer_is_known(pes))?;
    transfer_ns(cpus[0], cpus[1], TRANSFER_SLICE).ok()
}
