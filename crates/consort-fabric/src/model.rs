//! What a cost function may ask of a machine.

use crate::LINE_PAYLOAD_BYTES;

/// The costs of a machine, in the few numbers that cost functions are written over.
///
/// Times in nanoseconds, bandwidths in bytes a nanosecond (that is, GB/s).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineModel {
    /// One cache line from one core's cache to another's, one way.
    pub transfer_ns: f64,
    /// The further cost of each line after the first of a message.
    pub next_line_ns: f64,
    /// A call's own work, and that of each message it sends or receives.
    pub overhead_ns: f64,
    /// Copying within one core's reach.
    pub copy_gbps: f64,
    /// Copying a buffer that another core has just written.
    pub pull_gbps: f64,
    /// Giving the core to the next PE, where PEs outnumber cores.
    pub switch_ns: f64,
    /// How fast one core's data are served to all that read them at once, in all.
    pub serve_gbps: f64,
    /// Cores that the job may use.
    pub cores: u32,
}

impl MachineModel {
    /// A multicore of the 2020s of which nothing is measured.
    #[must_use]
    pub const fn typical(cores: u32) -> Self {
        Self {
            transfer_ns: 100.0,
            next_line_ns: 15.0,
            overhead_ns: 10.0,
            copy_gbps: 15.0,
            pull_gbps: 12.0,
            switch_ns: 700.0,
            serve_gbps: f64::INFINITY,
            cores,
        }
    }

    /// How many PEs of a team of `pes` work on each core, one after the other.
    #[must_use]
    pub fn pes_a_core(&self, pes: u32) -> f64 {
        f64::from(pes) / self.cores_of(pes)
    }

    /// How many cores work for a team of `pes`.
    #[must_use]
    pub fn cores_of(&self, pes: u32) -> f64 {
        f64::from(self.cores.min(pes).max(1))
    }

    /// Whether PEs of a team of `pes` share cores.
    #[must_use]
    pub const fn is_shared(&self, pes: u32) -> bool {
        pes > self.cores
    }

    /// What writing, or reading, the cache lines of a message of `bytes` costs.
    #[must_use]
    pub fn lines_ns(&self, bytes: f64) -> f64 {
        lines(bytes) * self.next_line_ns
    }

    /// The same of the lines after the first.
    #[must_use]
    pub fn later_lines_ns(&self, bytes: f64) -> f64 {
        (lines(bytes) - 1.0) * self.next_line_ns
    }

    /// What a message of `bytes` costs in a row of calls that overlap. A word shares its line with
    /// those of the next calls. Of a longer one the first lines follow each other at a third of a
    /// transfer, until the processors foresee the rest. (Measured, two PEs far apart, in transfers
    /// a call: 8 B 0.39, 64 B 1.5, 256 B 2.5.)
    #[must_use]
    pub fn streamed_ns(&self, bytes: f64) -> f64 {
        if bytes <= 8.0 {
            return self.transfer_ns / 4.0;
        }
        let lines = lines(bytes);
        self.transfer_ns * (0.5 + lines.min(8.0) / 3.0) + (lines - 8.0).max(0.0) * self.next_line_ns
    }

    /// How long it takes `readers` to pull `bytes` from one core each, at once: as long as one of
    /// them needs, or as the data can be served to all.
    #[must_use]
    pub fn pulled_ns(&self, bytes: f64, readers: f64) -> f64 {
        (bytes / self.pull_gbps).max(readers * bytes / self.serve_gbps)
    }

    /// How long a chain of `hops` dependent messages takes among `pes` PEs: transfers, or, where
    /// PEs outnumber cores, the turns of the scheduler that it takes to run every PE once a hop.
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

/// The cache lines of a message.
fn lines(bytes: f64) -> f64 {
    (bytes / LINE_PAYLOAD_BYTES as f64).ceil().max(1.0)
}
