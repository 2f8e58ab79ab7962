//! P3, P4, P5 on the paper's machine, simulated.

use anyhow::Result;
use consort_sim::machines::Machine;

use super::{
    BARRIER, BARRIER_OVER_FLAG, FLAG, GROWTH, LARGE_BALL, MACHINE, PING_PONG, STRONG, WEAK, name,
    of_size, strong,
};
use crate::{
    figures::quantity::Quantity,
    simulation::counting::{
        Grid, Notification, all_to_all_ns, half_trip_ns, stencil_ns, with_pes_per_node,
    },
};
use consort_bench::workloads::counting::{METHODS, Workload};

/// Section 3.2: a PE on each core.
const PES: u32 = 180;
/// Longer messages use fewer nodes, because the buffers would take too much memory.
const LONG_BYTES: usize = 1 << 10;
const PES_OF_LONG: u32 = 48;
const PES_PER_NODE: f64 = 12.0;
/// Section 3.3: "4 PEs per node".
const STENCIL_PES_PER_NODE: u32 = 4;
const STENCIL_PES: [u32; 5] = [4, 8, 16, 32, 48];
/// Section 3.4: 48 PEs, and longer first dimensions.
const GROWING_PES: u32 = 48;
const GROWING_COLUMNS: [usize; 3] = [12_800, 51_200, 204_800];

/// Simulates P3.
///
/// # Errors
/// When a simulation fails.
pub fn ping_pong() -> Result<Vec<Quantity>> {
    let machine = Machine::find(MACHINE)?;
    let (mut all, mut ratios) = (Vec::new(), Vec::new());
    for figure in &PING_PONG {
        let bytes = figure.at as usize;
        let [counted_ns, flag_ns] = [Notification::Counted, Notification::Flag]
            .map(|notification| half_trip_ns(&machine, notification, bytes));
        let [counted_ns, flag_ns] = [counted_ns?, flag_ns?];
        let what = format!("{}, {}, {bytes} B", name(Workload::PingPong), METHODS[0]);
        let counted = Quantity::new(MACHINE, what, "us").with_pes(2);
        all.push(counted.simulated(counted_ns / 1e3));
        ratios.push(flag_ns / counted_ns);
        all.push(figure.on(MACHINE).with_pes(2).simulated(flag_ns / counted_ns));
    }
    let falls = ratios[ratios.len() - 1] / ratios[0];
    all.push(LARGE_BALL.on(MACHINE).with_pes(2).simulated(falls));
    Ok(all)
}

/// Simulates P4.
///
/// # Errors
/// When a simulation fails.
pub fn all_to_all() -> Result<Vec<Quantity>> {
    let machine = Machine::find(MACHINE)?;
    let mut all = Vec::new();
    for ((flag, barrier), barrier_over_flag) in FLAG.iter().zip(&BARRIER).zip(&BARRIER_OVER_FLAG) {
        let bytes = flag.at as usize;
        let pes = if bytes > LONG_BYTES { PES_OF_LONG } else { PES };
        let ns = Notification::EVERY
            .map(|notification| all_to_all_ns(&machine, pes, notification, bytes));
        let [counted_ns, flag_ns, barrier_ns] = ns;
        let ns = [counted_ns?, flag_ns?, barrier_ns?];
        let mut push = |figure: Quantity, value| {
            all.push(figure.with_pes(pes).simulated(value));
        };
        for (method, ns) in METHODS.iter().zip(ns) {
            let what = format!("{}, {method}, {bytes} B", name(Workload::AllToAll));
            let bytes_a_ns = PES_PER_NODE * f64::from(pes) * bytes as f64 / ns;
            push(Quantity::new(MACHINE, what, "MB/s a node"), 1e3 * bytes_a_ns);
        }
        push(flag.on(MACHINE), ns[1] / ns[0]);
        push(barrier.on(MACHINE), ns[2] / ns[0]);
        push(barrier_over_flag.on(MACHINE), ns[2] / ns[1]);
    }
    Ok(all)
}

/// Returns the times of an iteration with counting puts and with flags.
fn stencil(machine: &Machine, pes: u32, grid: Grid) -> Result<[f64; 2]> {
    let ns = |notification| stencil_ns(machine, pes, notification, grid);
    Ok([ns(Notification::Counted)?, ns(Notification::Flag)?])
}

/// Simulates P5: weak scaling, strong scaling, and a growing problem.
///
/// # Errors
/// When a simulation fails.
pub fn stencils() -> Result<Vec<Quantity>> {
    let machine = with_pes_per_node(Machine::find(MACHINE)?, STENCIL_PES_PER_NODE)?;
    let mut all = Vec::new();
    for pes in STENCIL_PES {
        let columns = super::WEAK_BYTES / size_of::<f64>() * pes as usize;
        let [counted_ns, flag_ns] = stencil(&machine, pes, Grid { columns, rows: STRONG.rows })?;
        let figures = of_size(&WEAK, super::WEAK_BYTES).map(|figure| figure.with_pes(pes));
        all.extend(figures.map(|figure| figure.simulated(flag_ns / counted_ns)));
    }
    for pes in STENCIL_PES {
        let figures = strong(pes, stencil(&machine, pes, STRONG)?);
        all.extend(figures.into_iter().map(|(figure, value)| figure.simulated(value)));
    }
    let mut gains = Vec::new();
    for columns in GROWING_COLUMNS {
        let grid = Grid { columns, rows: STRONG.rows };
        let [counted_ns, flag_ns] = stencil(&machine, GROWING_PES, grid)?;
        let what = format!("{columns} x {}, {} over {}", grid.rows, METHODS[1], METHODS[0]);
        // The first one belongs to strong scaling.
        if columns != STRONG.columns {
            let figure = Quantity::new(MACHINE, what, "ratio").with_pes(GROWING_PES);
            all.push(figure.simulated(flag_ns / counted_ns));
        }
        gains.push(flag_ns / counted_ns);
    }
    let figure = GROWTH.on(MACHINE).with_pes(GROWING_PES);
    all.push(figure.simulated(gains[gains.len() - 1] / gains[0]));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::figure::Figure;

    fn value(all: &[Quantity], name: &str) -> f64 {
        let found = all.iter().find(|one| one.quantity == name);
        found.and_then(|one| one.simulated).unwrap_or_else(|| panic!("{name}: {all:?}"))
    }

    #[test]
    fn figures_have_the_sizes_that_are_measured() {
        let sizes =
            |figures: &[Figure]| figures.iter().map(|one| one.at as usize).collect::<Vec<_>>();
        assert_eq!(sizes(&PING_PONG), Workload::PingPong.sizes_bytes());
        for figures in [&FLAG, &BARRIER, &BARRIER_OVER_FLAG] {
            assert_eq!(sizes(figures), Workload::AllToAll.sizes_bytes());
        }
        assert_eq!(sizes(&WEAK), Workload::Stencil.sizes_bytes());
    }

    /// Figure 3: "the latency is approximately halved", and "a decreasing speedup".
    #[test]
    fn counted_put_saves_the_receipt_and_the_flag() {
        let all = ping_pong().unwrap();
        let over = |bytes| {
            let figure = of_size(&PING_PONG, bytes).next().unwrap();
            value(&all, &figure.with_pes(2).quantity)
        };
        assert!((1.5..=3.0).contains(&over(8)), "{all:?}");
        assert!(over(8) > over(1024) && over(1024) > over(4096), "{all:?}");
        // o + L, and the time to see the count.
        let half_trip = value(&all, "ping-pong, counted put, 8 B, 2 PEs");
        assert!((half_trip - 1.322).abs() < 0.003, "{half_trip}");
    }

    /// Figure 4.
    #[test]
    fn all_to_all_is_fastest_with_counting_puts() {
        let machine = Machine::find(MACHINE).unwrap();
        for bytes in [8, 4096] {
            let ns = Notification::EVERY
                .map(|notification| all_to_all_ns(&machine, 48, notification, bytes).unwrap());
            assert!(ns[0] < ns[1] && ns[0] < ns[2], "{bytes} B: {ns:?}");
        }
    }

    /// Figures 5 and 6: with a flag, a row waits for a receipt. Otherwise it does not.
    #[test]
    fn stencil_scales_with_counting_puts() {
        let all = stencils().unwrap();
        let gflops = |method: usize, pes| {
            value(&all, &format!("12800 x 1280, {}, {pes} PEs", METHODS[method]))
        };
        let scales = |method| gflops(method, 48) / gflops(method, 4);
        assert!(scales(0) > 6.0 && scales(1) < 3.0, "{} and {}", scales(0), scales(1));
        let growth = value(&all, &GROWTH.on(MACHINE).with_pes(48).quantity);
        assert!(growth < 0.5, "{growth}");
    }
}
