//! The machine model: the parameters of cost functions.

use crate::{LINE_PAYLOAD_BYTES, Levels, Nodes};

/// The costs of a machine, as the few numbers that cost functions use.
///
/// Times are in nanoseconds, bandwidths in bytes per nanosecond (that is, GB/s).
#[derive(Clone, Debug, PartialEq)]
pub struct MachineModel {
    /// The transfer of one cache line from one core's cache to another's, one way.
    pub transfer_ns: f64,
    /// The additional time for each line of a message after the first.
    pub next_line_ns: f64,
    /// The overhead of a call, and of each message that it sends or receives.
    pub overhead_ns: f64,
    /// The bandwidth of a copy within a core's own caches.
    pub copy_gbps: f64,
    /// The bandwidth of a copy of a buffer that another core has just written.
    pub pull_gbps: f64,
    /// The cost of a get in addition to a transfer and the bandwidth: if memory is not shared, the
    /// owner answers it.
    pub get_ns: f64,
    /// The time to switch a core to the next PE, where PEs outnumber cores.
    pub switch_ns: f64,
    /// The total bandwidth at which many cores at once read the data of one core.
    pub serve_gbps: f64,
    /// The number of cores that the job may use.
    pub cores: u32,
    /// If PEs are on several nodes, or on several caches of one node: their placement, and the
    /// model within one of them. This model then describes the costs between them.
    pub inside: Option<(Nodes, Box<Self>)>,
    /// If nodes are grouped: their placement in groups, from the innermost, each with the model
    /// between the nodes of one group.
    pub around: Vec<(Nodes, Self)>,
}

impl MachineModel {
    /// Returns a typical multicore of the 2020s, without measurements.
    #[must_use]
    pub const fn typical(cores: u32) -> Self {
        Self {
            transfer_ns: 100.0,
            next_line_ns: 15.0,
            overhead_ns: 10.0,
            copy_gbps: 15.0,
            pull_gbps: 12.0,
            get_ns: 0.0,
            switch_ns: 700.0,
            serve_gbps: f64::INFINITY,
            cores,
            inside: None,
            around: Vec::new(),
        }
    }

    /// Returns a model of several such multicores with a typical network between them, without
    /// measurements: about 10 us per message, and 20 Gbit/s, of which messages in lines reach a
    /// part. (Measured over Open MPI and TCP.) `nodes` is the placement of the PEs.
    #[must_use]
    pub fn between(self, nodes: Nodes) -> Self {
        Self {
            transfer_ns: 8000.0,
            next_line_ns: 100.0,
            overhead_ns: 2000.0,
            pull_gbps: 2.4,
            get_ns: 20_000.0,
            serve_gbps: 2.4,
            cores: u32::MAX,
            inside: Some((nodes, Box::new(self.clone()))),
            around: Vec::new(),
            ..self
        }
    }

    /// Returns a multicore of this model whose PEs are placed on last-level caches as in `caches`,
    /// and these as in `levels`. Transfers within a cache take half as long. (Assumed; on
    /// processors of both vendors the ratio is 2 to 4.) Transfers within a group of caches take two
    /// thirds. (Assumed; in a package of the machine `epyc-9654-x2`: 365 cycles, and 541 on average
    /// over both packages.)
    #[must_use]
    pub fn between_caches(self, caches: Nodes, levels: Levels) -> Self {
        let within = |part: f64| Self { transfer_ns: self.transfer_ns * part, ..self.clone() };
        let inside = Some((caches, Box::new(within(0.5))));
        let groups = levels.around.into_iter().take_while(|&groups| groups != Nodes::One);
        let around = groups.map(|groups| (groups, within(2.0 / 3.0))).collect();
        Self { inside, around, ..self }
    }

    /// Returns the model of one PE of each node.
    #[must_use]
    pub fn of_leaders(&self) -> Self {
        let mut around = self.around.clone().into_iter();
        let inside = around.next().map(|(nodes, group)| (nodes, Box::new(group)));
        Self { inside, around: around.collect(), ..self.clone() }
    }

    /// Returns how many PEs of a team of `pes` share each core.
    #[must_use]
    pub fn pes_a_core(&self, pes: u32) -> f64 {
        f64::from(pes) / self.cores_of(pes)
    }

    /// Returns how many cores a team of `pes` uses.
    #[must_use]
    pub fn cores_of(&self, pes: u32) -> f64 {
        f64::from(self.cores.min(pes).max(1))
    }

    /// Returns whether PEs of a team of `pes` share cores.
    #[must_use]
    pub const fn is_shared(&self, pes: u32) -> bool {
        pes > self.cores
    }

    /// Returns the time to write, or read, the cache lines of a message of `bytes`.
    #[must_use]
    pub fn lines_ns(&self, bytes: f64) -> f64 {
        lines(bytes) * self.next_line_ns
    }

    /// Returns the same for the lines after the first.
    #[must_use]
    pub fn later_lines_ns(&self, bytes: f64) -> f64 {
        (lines(bytes) - 1.0) * self.next_line_ns
    }

    /// Returns the time per message of `bytes` in a series of overlapping calls. A word shares its
    /// line with those of the next calls. The first lines of a longer message follow each other at
    /// a third of a transfer, until the processors prefetch the rest. (Measured, two PEs far apart,
    /// in transfers per call: 8 B 0.39, 64 B 1.5, 256 B 2.5.)
    #[must_use]
    pub fn streamed_ns(&self, bytes: f64) -> f64 {
        if bytes <= 8.0 {
            return self.transfer_ns / 4.0;
        }
        let lines = lines(bytes);
        self.transfer_ns * (0.5 + lines.min(8.0) / 3.0) + (lines - 8.0).max(0.0) * self.next_line_ns
    }

    /// Returns the time in which `readers` each pull `bytes` from one core at once. It is limited
    /// by the bandwidth of one reader, or by the total bandwidth of the core's data.
    #[must_use]
    pub fn pulled_ns(&self, bytes: f64, readers: f64) -> f64 {
        self.get_ns + (bytes / self.pull_gbps).max(readers * bytes / self.serve_gbps)
    }

    /// Returns the time of a chain of `hops` dependent messages among `pes` PEs. A hop is a
    /// transfer or, if PEs outnumber cores, a turn of the scheduler that runs every PE once.
    #[must_use]
    pub fn hops_ns(&self, hops: f64, pes: u32) -> f64 {
        if self.is_shared(pes) {
            let turn = f64::from(pes) / f64::from(self.cores.max(1)) * self.switch_ns;
            hops * turn
        } else {
            hops * (self.transfer_ns + self.overhead_ns)
        }
    }
}

/// Returns the number of cache lines of a message.
fn lines(bytes: f64) -> f64 {
    (bytes / LINE_PAYLOAD_BYTES as f64).ceil().max(1.0)
}
