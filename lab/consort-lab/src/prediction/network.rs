//! Predicts calls of processes of an MPI, with one PE each, on the machines where the MPI starts
//! them.
//!
//! The times of messages between PEs 0 and 1 give the parameters of the LogGP model (Alexandrov et
//! al. 1995). No collective contributes to them. With these parameters, collectives with fixed
//! algorithms are predicted in closed form, and simulated on a cluster whose nodes have one PE and
//! one network interface each. All are measured in the same launches.
//!
//! | parameter | measured as |
//! | --- | --- |
//! | `L + 2 o` | half the round trip of a put of 8 bytes with a signal |
//! | `g` | a put among 64 of 8 bytes, minus the round trip of the quiet after them |
//! | `G` | a byte of 16 large puts, in the same way |
//! | `o` | `g`, or half the message if that is less: the processor's part cannot be measured |
//!
//! The PEs have no common clock, so calls are timed in a row. Each ends with a barrier, so that it
//! does not overlap with the next.

use std::time::Instant;

use anyhow::{Context, Result};
use consort::{
    launch::{Fabric, ProcessShape},
    sync_modes::{SyncMode, SyncModes},
    tune::{Candidate, Collective, Query},
};
use consort_fabric::statistics::median;
use consort_sim::{
    Simulation,
    analytic::loggp::LogGp,
    machines::{Cluster, Inside, Kind, Machine, Network, Placement, Provenance},
};
use serde::Serialize;

use super::{Basis, Call, Predicted, Prediction, simulate, times};
use crate::simulation::program;
use consort_bench::{
    harness::{Pattern, Work},
    limits::copy_gbps,
    query_json::sums,
};

/// Bytes in a large message.
const LARGE_BYTES: usize = 1 << 20;
/// The number of bytes that a PE copies in its own memory, and the time to measure that.
const COPIED_BYTES: usize = 256 << 10;
const COPYING: std::time::Duration = std::time::Duration::from_millis(10);
/// Each call ends with a barrier.
const SYNC: SyncModes = SyncModes { entry: SyncMode::Mine, exit: SyncMode::All };
/// The radix of trees, of dissemination and of recursive doubling.
const RADIX: u64 = 2;

/// The parameters that follow from messages between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parameters {
    /// The parameters of the model.
    #[serde(flatten)]
    pub loggp: LogGp,
    /// The bandwidth with which a PE copies and combines in its own memory, in bytes per
    /// nanosecond.
    pub copy_gbps: f64,
}

/// The times of the patterns between PEs 0 and 1, in nanoseconds.
#[derive(Clone, Copy)]
struct Messages {
    round_trip_ns: f64,
    small_ns: f64,
    large_ns: f64,
}

impl Messages {
    /// The messages of the patterns, in the order of the fields.
    const WORK: [Work; 3] = [
        Work::PointToPoint(Pattern::PutSignal, size_of::<u64>()),
        Work::PointToPoint(Pattern::PutRate, size_of::<u64>()),
        Work::PointToPoint(Pattern::PutBandwidth, LARGE_BYTES),
    ];

    /// Returns the parameters that give these times.
    fn loggp(self) -> LogGp {
        let each = |ns: f64, pattern: Pattern| {
            (ns - self.round_trip_ns).max(0.0) / f64::from(pattern.messages().unwrap_or(1))
        };
        let gap_ns = each(self.small_ns, Pattern::PutRate);
        let gap_per_byte_ns = each(self.large_ns, Pattern::PutBandwidth) / LARGE_BYTES as f64;
        let stream_ns = (size_of::<u64>() - 1) as f64 * gap_per_byte_ns;
        let message_ns = (self.round_trip_ns / 2.0 - stream_ns).max(0.0);
        let overhead_ns = gap_ns.min(message_ns / 2.0);
        LogGp { latency_ns: message_ns - 2.0 * overhead_ns, overhead_ns, gap_ns, gap_per_byte_ns }
    }
}

impl Parameters {
    /// Returns a cluster of such processes.
    fn machine(&self, pes: u32) -> Machine {
        let LogGp { latency_ns, overhead_ns, gap_ns, gap_per_byte_ns } = self.loggp;
        let copy_gbps = self.copy_gbps;
        Machine {
            name: "mpi".to_owned(),
            title: format!("{pes} processes of an MPI"),
            source: "messages between two of them".to_owned(),
            provenance: Provenance::default(),
            kind: Kind::Cluster(Cluster {
                nodes: pes,
                pes_per_node: 1,
                latency_ns,
                overhead_ns,
                call_ns: 0.0,
                interfaces_per_node: 1,
                placement: Placement::Blocks,
                gap_ns,
                gap_per_byte_ns,
                hop_ns: 0.0,
                network: Network::FatTree { arity: pes.max(2) },
                // No PE has a peer on its own node.
                inside: Inside {
                    transfer_ns: latency_ns,
                    overhead_ns: 0.0,
                    copy_gbps,
                    groups: Vec::new(),
                },
                compute: None,
            }),
        }
    }

    /// Returns a simulation of such processes, with symmetric memory for blocks of these sizes.
    fn simulation(&self, pes: u32, sizes_bytes: &[usize]) -> Simulation {
        let most = sizes_bytes.iter().copied().max().unwrap_or(0);
        Simulation::on(self.machine(pes), pes).heap_bytes(2 * most)
    }

    /// Returns the time of a call in the model, with the barrier at its end.
    fn call_ns(&self, query: &Query) -> f64 {
        let (loggp, pes, bytes) = (&self.loggp, u64::from(query.pes), query.bytes);
        let combine_ns = bytes as f64 / self.copy_gbps;
        let barrier_ns = loggp.barrier_ns(pes, RADIX);
        match query.collective {
            Collective::Broadcast => barrier_ns + loggp.broadcast_ns(pes, RADIX, bytes),
            Collective::Reduce => barrier_ns + loggp.reduce_ns(pes, RADIX, bytes, combine_ns),
            Collective::AllReduce => barrier_ns + loggp.all_reduce_ns(pes, bytes, combine_ns),
            _ => barrier_ns,
        }
    }
}

impl Prediction<'_> {
    /// Measures processes of an MPI, and predicts their collectives from the messages between two
    /// of them. Passes the present step and the completed share to `show`.
    ///
    /// # Errors
    /// When there is no MPI, or measuring or simulating fails.
    pub fn between_processes(&self, show: &dyn Fn(&str, f64)) -> Result<Predicted> {
        let planned = self.fixed();
        let calls = planned.iter().map(|(query, candidate)| Work::of(query, candidate));
        let work: Vec<Work> = Messages::WORK.into_iter().chain(calls).collect();
        let fabric = Fabric::Mpi(ProcessShape::SINGLE);
        let taken =
            self.measure(fabric, &work, None, self.budget, &|share| show("measuring", share))?;
        let (messages, timings) = taken.timings.split_at(Messages::WORK.len());
        let mut medians = messages.iter().map(|timing| {
            let mut times = times(timing, None);
            (!times.is_empty()).then(|| median(&mut times))
        });
        let mut next = || medians.next().flatten();
        let messages = Some(()).and_then(|()| {
            Some(Messages { round_trip_ns: next()?, small_ns: next()?, large_ns: next()? })
        });
        self.ensure_measured(&[])?;
        let loggp = messages.context("messages between PEs 0 and 1 could not be timed")?.loggp();
        let parameters = Parameters { loggp, copy_gbps: copy_gbps(COPIED_BYTES, COPYING) };
        let begun = Instant::now();
        let simulation = parameters.simulation(self.pes, self.sizes_bytes);
        let (count, mut calls) = (planned.len(), Vec::new());
        for (index, ((query, candidate), timing)) in planned.into_iter().zip(timings).enumerate() {
            show("simulating", index as f64 / count as f64);
            let predicted =
                (simulate(&simulation, &query, &candidate)?, Some(parameters.call_ns(&query)));
            calls.extend(Call::new((query, candidate), predicted, &mut times(timing, None)));
        }
        let basis = Basis::Network(parameters);
        Ok(Predicted {
            missing: count - calls.len(),
            simulating: begun.elapsed(),
            longest_launch: taken.longest_launch,
            ..Predicted::new((fabric.to_string(), self.pes), basis, calls)
        })
    }

    /// Returns the calls, each with an algorithm that the model knows.
    fn fixed(&self) -> Vec<(Query, Candidate)> {
        // In memory that others can access. On a PE's own buffers, no barrier would be needed.
        let call = |collective, bytes| sums(collective, SYNC, self.pes, bytes, true);
        let barrier = sums(Collective::Barrier, SyncModes::STRICT, self.pes, 0, false);
        let tree = || Candidate::new("knomial").with("radix", RADIX);
        let mut calls = vec![(barrier, program::barrier())];
        for (collective, candidate) in [
            (Collective::Broadcast, tree()),
            (Collective::Reduce, tree()),
            (Collective::AllReduce, Candidate::new("recursive_doubling").with("radix", RADIX)),
        ] {
            let of_size = |&bytes| (call(collective, bytes), candidate.clone());
            calls.extend(self.sizes_bytes.iter().map(of_size));
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicBool, time::Duration};

    use super::*;

    /// Returns a network that takes 20 us for a message, 1 us between two messages, and 2 ns per
    /// byte.
    fn messages() -> Messages {
        let round_trip_ns = 2.0 * (20_000.0 + 14.0);
        Messages {
            round_trip_ns,
            small_ns: 64.0 * 1000.0 + round_trip_ns,
            large_ns: 16.0 * 2.0 * LARGE_BYTES as f64 + round_trip_ns,
        }
    }

    #[test]
    fn parameters_follow_from_message_times() {
        let expected = LogGp {
            latency_ns: 18_000.0,
            overhead_ns: 1000.0,
            gap_ns: 1000.0,
            gap_per_byte_ns: 2.0,
        };
        assert_eq!(messages().loggp(), expected);
        assert_eq!(messages().loggp().message_ns(8), 20_014.0);
        // The gap is longer than the messages: the processor is always busy.
        let busy = Messages { small_ns: 64.0 * 90_000.0, ..messages() }.loggp();
        assert_eq!((busy.latency_ns, busy.overhead_ns), (0.0, 10_000.0));
        // Puts that take less than the round trip, as on a disturbed machine.
        let odd = Messages { small_ns: 1.0, large_ns: 1.0, ..messages() }.loggp();
        assert_eq!((odd.gap_ns, odd.overhead_ns, odd.gap_per_byte_ns), (0.0, 0.0, 0.0));
    }

    /// The formulas and the simulator do not use each other. In both, two PEs take about the same
    /// time: a message and the barrier at the end.
    #[test]
    fn model_and_simulation_agree_on_two_pes() {
        let parameters = Parameters { loggp: messages().loggp(), copy_gbps: 1e6 };
        let never = AtomicBool::new(false);
        let prediction = Prediction {
            pes: 2,
            sizes_bytes: &[8, 8 << 10],
            syncs: &[],
            budget: Duration::ZERO,
            stop: &never,
        };
        let simulation = parameters.simulation(2, prediction.sizes_bytes);
        let calls = prediction.fixed();
        assert_eq!(calls.len(), 1 + 3 * 2);
        for (query, candidate) in calls {
            let model_ns = parameters.call_ns(&query);
            let simulated_ns = simulate(&simulation, &query, &candidate).unwrap();
            let error = simulated_ns / model_ns - 1.0;
            assert!(error.abs() < 0.1, "{query:?}: {simulated_ns}, and {model_ns} in the model");
        }
    }
}
