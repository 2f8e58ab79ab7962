//! T5: puts and gets by distance and size, compared with their formulas (section 4.1.2, figure
//! 4.2).
//!
//! The thesis took the parameters of table 4.1 from these measurements, so simulations with them
//! count as fitted.

use anyhow::Result;
use consort::Rank;
use consort_sim::analytic::scc::Scc;

use super::{
    super::figure::Figure,
    machine::{LINE_BYTES, MACHINE, UNCONTENDED, buffers, simulation},
    row::Row,
};
use crate::simulation::{Transfer, transfer_ns};
use consort_bench::{page::Curves, units::counted};

figures! { pub FIGURES of "T5", "section 4.1.2, figure 4.2": "x":
    // From the smallest to the largest distance "only 30%".
    FAR_GET("4.2 get, 128 lines, 9 routers / 1", MACHINE == 1.3)
    FAR_PUT("4.2 put, 128 lines, 9 routers / 1", MACHINE == 1.3)
    FAR_GET_TO_MEMORY("4.2 get to memory, 128 lines, 9 routers / 1")
    FAR_PUT_FROM_MEMORY("4.2 put from memory, 128 lines, 9 routers / 1")
}

/// The kinds of transfers, with their names and the figures of the farthest over the nearest.
const TRANSFERS: [(&str, Transfer, &Figure); 4] = [
    ("get", Transfer::Get, &FAR_GET),
    ("put", Transfer::Put, &FAR_PUT),
    ("get to memory", Transfer::GetToMemory, &FAR_GET_TO_MEMORY),
    ("put from memory", Transfer::PutFromMemory, &FAR_PUT_FROM_MEMORY),
];
/// The numbers of lines in a transfer.
const LINES: [usize; 3] = [1, 16, 128];
/// The largest number of routers on the way.
const FARTHEST: u32 = 9;

/// Returns the formula of a transfer of core 0, in nanoseconds.
fn formula_ns(scc: &Scc, transfer: Transfer, lines: u64, hops: u32) -> f64 {
    match transfer {
        Transfer::Get => scc.get_to_buffer_ns(lines, hops),
        Transfer::Put => scc.put_from_buffer_ns(lines, hops),
        Transfer::GetToMemory => scc.get_to_memory_ns(lines, hops),
        Transfer::PutFromMemory => scc.put_from_memory_ns(lines, hops),
    }
}

/// Returns the rows of the figure, and the curves of its two panels.
///
/// # Errors
/// When a simulation fails.
pub(super) fn rows() -> Result<(Vec<Row>, Vec<Curves>)> {
    let (machine, simulation) = (buffers()?, simulation(UNCONTENDED)?);
    let scc = Scc { memory_hops: machine.memory_distance(0), ..Scc::table_4_1() };
    // The first core at each distance from core 0.
    let peer = |hops| {
        let mut others = 1..machine.cores();
        Rank(others.find(|&other| machine.distance(0, other) == hops).unwrap_or(0))
    };
    let (mut rows, mut pictures, mut farthest) = (Vec::new(), Vec::new(), 1.0_f64);
    for (name, transfer, far_over_near) in TRANSFERS {
        let mut ways = Vec::new();
        for lines in LINES {
            let mut us = Vec::new();
            for hops in 1..=FARTHEST {
                let ns = transfer_ns(&simulation, transfer, peer(hops), lines * LINE_BYTES)?;
                let model_ns = formula_ns(&scc, transfer, lines as u64, hops);
                farthest = farthest.max((ns / model_ns).max(model_ns / ns));
                us.push(ns / 1e3);
                if [1, FARTHEST].contains(&hops) {
                    let (lines, hops) = (counted(lines, "line"), counted(hops, "router"));
                    let what = format!("4.2 {name}, {lines}, {hops}");
                    let row = Row::other(what, "us", ns / 1e3).of_parameters();
                    rows.push(row.model(model_ns / 1e3));
                }
            }
            if let (128, [near, .., far]) = (lines, &us[..]) {
                let model = |hops| formula_ns(&scc, transfer, 128, hops);
                let row = Row::of(far_over_near, far / near).of_parameters();
                rows.push(row.model(model(FARTHEST) / model(1)));
            }
            ways.push((counted(lines, "line"), us));
        }
        pictures.push(Curves {
            values: format!("{name}, us"),
            by: "routers".to_owned(),
            numbers: (1..=FARTHEST).map(f64::from).collect(),
            ways,
        });
    }
    let what = "4.2 simulated and formulas, farthest apart";
    rows.push(Row::other(what, "x", farthest));
    Ok((rows, pictures))
}
