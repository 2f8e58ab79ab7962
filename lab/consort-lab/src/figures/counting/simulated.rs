//! P3, P4, P5 on the paper's machine, simulated.

use anyhow::Result;
use consort_sim::machines::Machine;

use super::{MACHINE, STRONG, counted_over, name, strong};
use crate::{
    figures::quantity::{Quantity, Source},
    simulation::counting::{
        Grid, Notification, all_to_all_ns, half_trip_ns, stencil_ns, with_pes_per_node,
    },
};
use consort_bench::workloads::counting::{METHODS, Workload};

/// Section 3.2: a PE on each core.
const PES: u32 = 180;
/// Longer messages are of fewer nodes, whose buffers would take too much memory.
const LONG_BYTES: usize = 1 << 10;
const PES_OF_LONG: u32 = 48;
const PES_PER_NODE: f64 = 12.0;
/// Section 3.3: "4 PEs per node".
const STENCIL_PES_PER_NODE: u32 = 4;
const STENCIL_PES: [u32; 5] = [4, 8, 16, 32, 48];
/// Section 3.4: 48 PEs, and longer first dimensions.
const GROWING_PES: u32 = 48;
const GROWING_COLUMNS: [usize; 3] = [12_800, 51_200, 204_800];

/// P3.
///
/// # Errors
/// When a simulation fails.
pub fn ping_pong(source: Source) -> Result<Vec<Quantity>> {
    let machine = Machine::find(MACHINE)?;
    let mut all = Vec::new();
    for &bytes in Workload::PingPong.sizes_bytes() {
        let [counted_ns, flag_ns, _] = Notification::EVERY.map(|notification| {
            if notification == Notification::Barrier {
                Ok(0.0)
            } else {
                half_trip_ns(&machine, notification, bytes)
            }
        });
        let [counted_ns, flag_ns] = [counted_ns?, flag_ns?];
        let what = format!("{}, {}, {bytes} B", name(Workload::PingPong), METHODS[0]);
        all.push(source.quantity(MACHINE, what, "us").with_pes(2).simulated(counted_ns / 1e3));
        let what = counted_over(Workload::PingPong, 1, bytes);
        let figure = source.quantity(MACHINE, what, "ratio").with_pes(2);
        all.push(figure.simulated(flag_ns / counted_ns));
    }
    Ok(all)
}

/// P4.
///
/// # Errors
/// When a simulation fails.
pub fn all_to_all(source: Source) -> Result<Vec<Quantity>> {
    let machine = Machine::find(MACHINE)?;
    let mut all = Vec::new();
    for &bytes in Workload::AllToAll.sizes_bytes() {
        let pes = if bytes > LONG_BYTES { PES_OF_LONG } else { PES };
        let ns = Notification::EVERY
            .map(|notification| all_to_all_ns(&machine, pes, notification, bytes));
        let [counted_ns, flag_ns, barrier_ns] = ns;
        let ns = [counted_ns?, flag_ns?, barrier_ns?];
        let mut push = |what: String, unit, value| {
            all.push(source.quantity(MACHINE, what, unit).with_pes(pes).simulated(value));
        };
        for (method, ns) in METHODS.iter().zip(ns) {
            let what = format!("{}, {method}, {bytes} B", name(Workload::AllToAll));
            let bytes_a_ns = PES_PER_NODE * f64::from(pes) * bytes as f64 / ns;
            push(what, "MB/s a node", 1e3 * bytes_a_ns);
        }
        for method in [1, 2] {
            let what = counted_over(Workload::AllToAll, method, bytes);
            push(what, "ratio", ns[method] / ns[0]);
        }
        push(super::barrier_over_flag(bytes), "ratio", ns[2] / ns[1]);
    }
    Ok(all)
}

/// The times of an iteration by counting puts and by flags.
fn stencil(machine: &Machine, pes: u32, grid: Grid) -> Result<[f64; 2]> {
    let ns = |notification| stencil_ns(machine, pes, notification, grid);
    Ok([ns(Notification::Counted)?, ns(Notification::Flag)?])
}

/// P5: weak scaling, strong scaling, and a problem that grows.
///
/// # Errors
/// When a simulation fails.
pub fn stencils(source: Source) -> Result<Vec<Quantity>> {
    let machine = with_pes_per_node(Machine::find(MACHINE)?, STENCIL_PES_PER_NODE)?;
    let mut all = Vec::new();
    for pes in STENCIL_PES {
        let columns = super::WEAK_BYTES / size_of::<f64>() * pes as usize;
        let [counted_ns, flag_ns] = stencil(&machine, pes, Grid { columns, rows: STRONG.rows })?;
        let what = counted_over(Workload::Stencil, 1, super::WEAK_BYTES);
        let figure = source.quantity(MACHINE, what, "ratio").with_pes(pes);
        all.push(figure.simulated(flag_ns / counted_ns));
    }
    for pes in STENCIL_PES {
        let figures = strong(source, pes, stencil(&machine, pes, STRONG)?);
        all.extend(figures.into_iter().map(|(figure, value)| figure.simulated(value)));
    }
    let mut gains = Vec::new();
    for columns in GROWING_COLUMNS {
        let grid = Grid { columns, rows: STRONG.rows };
        let [counted_ns, flag_ns] = stencil(&machine, GROWING_PES, grid)?;
        let what = format!("{columns} x {}, {} over {}", grid.rows, METHODS[1], METHODS[0]);
        // The first is that of strong scaling.
        if columns != STRONG.columns {
            let figure = source.quantity(MACHINE, what, "ratio").with_pes(GROWING_PES);
            all.push(figure.simulated(flag_ns / counted_ns));
        }
        gains.push(flag_ns / counted_ns);
    }
    let figure = source.quantity(MACHINE, super::GAIN_OF_GROWTH, "ratio").with_pes(GROWING_PES);
    all.push(figure.simulated(gains[gains.len() - 1] / gains[0]));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims;

    /// The values of figures by their names, without the number of PEs.
    fn simulated(claim: &str, run: fn(Source) -> Result<Vec<Quantity>>) -> Vec<Quantity> {
        let claim = claims::find(claim).unwrap();
        run(Source { claim: claim.id, bounds: claim.bounds }).unwrap()
    }

    fn value(all: &[Quantity], name: &str) -> f64 {
        let found = all.iter().find(|one| one.quantity == name);
        found.and_then(|one| one.simulated).unwrap_or_else(|| panic!("{name}: {all:?}"))
    }

    /// Figure 3: "the latency is approximately halved", and "a decreasing speedup".
    #[test]
    fn a_counted_put_saves_the_way_of_the_receipt_and_that_of_the_flag() {
        let all = simulated("P3", ping_pong);
        let over =
            |bytes| value(&all, &format!("{}, 2 PEs", counted_over(Workload::PingPong, 1, bytes)));
        assert!((1.5..=3.0).contains(&over(8)), "{all:?}");
        assert!(over(8) > over(1024) && over(1024) > over(4096), "{all:?}");
        // o + L, and what it takes to see the count.
        let half_trip = value(&all, "ping-pong, counted put, 8 B, 2 PEs");
        assert!((half_trip - 1.322).abs() < 0.003, "{half_trip}");
    }

    /// Figure 4.
    #[test]
    fn an_all_to_all_is_fastest_by_counting_puts() {
        let machine = Machine::find(MACHINE).unwrap();
        for bytes in [8, 4096] {
            let ns = Notification::EVERY
                .map(|notification| all_to_all_ns(&machine, 48, notification, bytes).unwrap());
            assert!(ns[0] < ns[1] && ns[0] < ns[2], "{bytes} B: {ns:?}");
        }
    }

    /// Figures 5 and 6: a row waits for a receipt if there is a flag, and only then.
    #[test]
    fn the_stencil_scales_by_counting_puts() {
        let all = simulated("P5", stencils);
        let gflops = |method: usize, pes| {
            value(&all, &format!("12800 x 1280, {}, {pes} PEs", METHODS[method]))
        };
        let scales = |method| gflops(method, 48) / gflops(method, 4);
        assert!(scales(0) > 6.0 && scales(1) < 3.0, "{} and {}", scales(0), scales(1));
        let growth = value(&all, &format!("{}, 48 PEs", super::super::GAIN_OF_GROWTH));
        assert!(growth < 0.5, "{growth}");
    }
}
