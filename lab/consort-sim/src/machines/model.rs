//! Converts a described machine into a [`MachineModel`], the parameters of the algorithms' cost
//! functions.

use consort_fabric::{LINE_PAYLOAD_BYTES, MachineModel, Nodes};

use super::{Cluster, Coherent, Inside, Kind, Machine, MessageBuffers, State};
use crate::costs::CALL_CYCLES;

impl Machine {
    /// Returns the parameters for estimates on the machine's first `pes` PEs. Distances are means
    /// over the distances from PE 0 to the others, and every cost that depends on a distance uses
    /// that mean.
    ///
    /// # Panics
    /// When it has fewer PEs, or `pes` is 0.
    #[must_use]
    pub fn model(&self, pes: u32) -> MachineModel {
        assert!((1..=self.pes()).contains(&pes), "{} has {} PEs, not {pes}", self.name, self.pes());
        match &self.kind {
            Kind::Coherent(machine) => coherent(machine, pes),
            Kind::MessageBuffers(machine) => message_buffers(machine, pes),
            Kind::Cluster(machine) => cluster(machine, pes),
        }
    }
}

/// Returns the mean over the peers of PE 0 among `pes`. A single PE is its own peer.
fn mean(pes: u32, of: impl Fn(u32) -> f64) -> f64 {
    let others = 1.min(pes - 1)..pes;
    let count = others.len() as f64;
    others.map(of).sum::<f64>() / count
}

fn coherent(machine: &Coherent, pes: u32) -> MachineModel {
    let line_bytes = machine.line_bytes as f64;
    let reordered =
        machine.reorder_bytes.map_or(f64::INFINITY, |bytes| (bytes / line_bytes).ceil());
    let in_flight = machine.lines_in_flight.min(reordered).max(1.0);
    let load_ns = mean(pes, |other| machine.load_ns(State::Modified, machine.distance(0, other)));
    let store_ns = mean(pes, |other| machine.store_ns(State::Shared, machine.distance(0, other)));
    let pulled_ns = load_ns / in_flight;
    MachineModel {
        transfer_ns: store_ns + load_ns,
        next_line_ns: (store_ns / in_flight).max(pulled_ns),
        overhead_ns: CALL_CYCLES / machine.ghz,
        copy_gbps: machine.copy_gbps,
        pull_gbps: machine.copy_gbps.min(line_bytes / pulled_ns),
        get_ns: 0.0,
        switch_ns: 0.0,
        serve_gbps: line_bytes / machine.line_serve_ns.max(f64::MIN_POSITIVE),
        cores: pes,
        inside: match machine.layout.dies(pes) {
            Nodes::Blocks(die) => Some((Nodes::Blocks(die), Box::new(coherent(machine, die)))),
            _ => None,
        },
        around: match machine.layout.levels(pes).of_leaders() {
            (Nodes::One, _) => Vec::new(),
            (packages, _) => {
                let package = machine.layout.package(pes).unwrap_or(pes);
                vec![(packages, MachineModel { inside: None, ..coherent(machine, package) })]
            }
        },
    }
}

/// Returns the parameters as in formulas 4.1 to 4.12 of the thesis: a core moves one line at a
/// time.
fn message_buffers(machine: &MessageBuffers, pes: u32) -> MachineModel {
    let there_ns = machine.mpb_ns
        + 2.0 * mean(pes, |other| f64::from(machine.distance(0, other))) * machine.hop_ns;
    let here_ns = machine.mpb_ns + 2.0 * machine.hop_ns;
    let memory_hops =
        2.0 * mean(pes, |core| f64::from(machine.memory_distance(core))) * machine.hop_ns;
    let (read_ns, write_ns) =
        (machine.memory_read_ns + memory_hops, machine.memory_write_ns + memory_hops);
    let line_bytes = machine.line_bytes as f64;
    MachineModel {
        // A flag is put. The waiting core gets it, which is that core's own work.
        transfer_ns: machine.put_ns + here_ns + there_ns,
        // From memory to the other core's buffer, and from there to its memory.
        next_line_ns: (read_ns + there_ns + here_ns + write_ns) * LINE_PAYLOAD_BYTES as f64
            / line_bytes,
        overhead_ns: machine.get_ns + here_ns,
        // From memory to the core's own buffer, or back.
        copy_gbps: line_bytes / (here_ns + f64::midpoint(read_ns, write_ns)),
        // From another core's buffer to the core's own.
        pull_gbps: line_bytes / (there_ns + here_ns),
        get_ns: 0.0,
        switch_ns: 0.0,
        serve_gbps: line_bytes / machine.serve_ns.max(f64::MIN_POSITIVE),
        cores: pes,
        inside: None,
        around: Vec::new(),
    }
}

fn cluster(machine: &Cluster, pes: u32) -> MachineModel {
    // The sender's overhead and the latency. The receiver's overhead is its own work.
    let between_ns = |other| {
        if machine.node(other) == machine.node(0) {
            let place = machine.placed().place(other);
            machine.inside.transfer_between_ns(0, place) + machine.inside.overhead_ns
        } else {
            let latency_ns = machine.latency_between_ns(machine.node(0), machine.node(other));
            latency_ns + machine.overhead_ns
        }
    };
    let transfer_ns = mean(pes, between_ns);
    // The network's bandwidth applies if most of the other PEs are on other nodes.
    let crosses = pes > machine.pes_per_node;
    let gbps = if crosses { 1.0 / machine.gap_per_byte_ns } else { machine.inside.copy_gbps };
    let (gap_ns, overhead_ns) = (machine.gap_ns, machine.overhead_ns);
    MachineModel {
        transfer_ns,
        next_line_ns: LINE_PAYLOAD_BYTES as f64 / gbps,
        overhead_ns: if crosses { gap_ns.max(overhead_ns) } else { machine.inside.overhead_ns },
        copy_gbps: machine.inside.copy_gbps,
        pull_gbps: gbps,
        get_ns: 0.0,
        switch_ns: 0.0,
        serve_gbps: gbps,
        cores: pes,
        inside: crosses
            .then(|| (machine.placed(), Box::new(inside(machine, machine.pes_per_node)))),
        around: if crosses { switches(machine, pes) } else { Vec::new() },
    }
}

/// Returns the parameters of some PEs of one node of a cluster.
fn inside(machine: &Cluster, pes: u32) -> MachineModel {
    let Inside { overhead_ns, copy_gbps, groups, .. } = &machine.inside;
    let transfer_ns = mean(pes, |other| machine.inside.transfer_between_ns(0, other) + overhead_ns);
    let largest = groups.iter().rev().find(|group| group.pes < pes);
    MachineModel {
        transfer_ns,
        next_line_ns: LINE_PAYLOAD_BYTES as f64 / copy_gbps,
        overhead_ns: *overhead_ns,
        copy_gbps: *copy_gbps,
        pull_gbps: *copy_gbps,
        get_ns: 0.0,
        switch_ns: 0.0,
        serve_gbps: *copy_gbps,
        cores: pes,
        inside: largest
            .map(|group| (Nodes::Blocks(group.pes), Box::new(inside(machine, group.pes)))),
        around: Vec::new(),
    }
}

/// Returns the groups of nodes below one switch, each with the model of such a group.
fn switches(machine: &Cluster, pes: u32) -> Vec<(Nodes, MachineModel)> {
    let levels =
        std::iter::successors(Some(machine.levels()), |levels| Some(levels.of_leaders().1));
    let mut below = machine.pes_per_node;
    let mut around = Vec::new();
    for levels in levels {
        let (Nodes::Blocks(arity), _) = levels.of_leaders() else { break };
        below *= arity;
        if below >= pes {
            break;
        }
        around.push((Nodes::Blocks(arity), cluster(machine, below)));
    }
    around
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str, pes: u32) -> MachineModel {
        Machine::find(name).unwrap().model(pes)
    }

    #[track_caller]
    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
    }

    /// Two cores of a tile of the SCC, one router apart: a flag is put in 69 + 136 + 136 ns, and
    /// got in 330 + 136 ns. A line is moved from buffer to buffer in 272 ns.
    #[test]
    fn model_adds_the_operations_of_a_tile() {
        let model = model("scc", 2);
        near(model.transfer_ns, 69.0 + 136.0 + 136.0);
        near(model.pull_gbps, 32.0 / 272.0);
        near(model.overhead_ns, 466.0);
    }

    /// Two cores of a die of a Barcelona: 252 cycles to load and 296 to store, at 2.3 GHz. The 96
    /// bytes that a core works on at a time span two lines, so two accesses overlap.
    #[test]
    fn model_adds_the_load_and_the_store_of_a_die() {
        let model = model("barcelona-x8", 2);
        near(model.transfer_ns, (252.0 + 296.0) / 2.3);
        near(model.next_line_ns, 296.0 / 2.0 / 2.3);
        near(model.serve_gbps, 64.0 / 17.4);
    }

    /// The PEs of one node; and two nodes, where PE 0 has 15 near and 16 far peers.
    #[test]
    fn model_weighs_near_and_far_peers() {
        near(model("cluster", 16).transfer_ns, 120.0);
        near(model("cluster", 32).transfer_ns, (15.0 * 120.0 + 16.0 * 4000.0) / 31.0);
        near(model("cluster", 32).pull_gbps, 1.0 / 6.0);
    }

    #[test]
    #[should_panic(expected = "scc has 48 PEs, not 49")]
    fn too_many_pes_panic() {
        let _ = model("scc", 49);
    }
}
