//! Sends and receives as in RCCE, and RCCE_comm's broadcasts, which consist of them.
//!
//! Source: Petrović 2015, sections 4.2 and 4.3. A send puts the message into the sender's buffer.
//! The receiver gets it into its memory. Each signals the other with a flag; here a flag is one
//! line, as in the thesis. If a core forwards a message that it has just received, it reads the
//! message from its cache. No third core accesses the buffer, so there is no contention.

use super::{Scc, levels};

impl Scc {
    /// `C_sr_chunk`: sending and receiving a message that fits in the buffer; 0 for no lines.
    #[must_use]
    pub fn send_receive_chunk_ns(&self, lines: u64) -> f64 {
        if lines == 0 {
            return 0.0;
        }
        self.put_from_memory_ns(lines, 1)
            + self.get_to_memory_ns(lines, self.buffer_hops)
            + self.synchronize_ns()
    }

    /// `C_sr`: a message in as many pieces as necessary.
    #[must_use]
    pub fn send_receive_ns(&self, lines: u64) -> f64 {
        self.in_pieces_ns(lines, Self::send_receive_chunk_ns)
    }

    /// `C_sr_chunk_cache`: the same with the message in the sender's cache.
    #[must_use]
    pub fn send_receive_chunk_cached_ns(&self, lines: u64) -> f64 {
        self.send_receive_chunk_ns(lines) - lines as f64 * self.read_memory_ns(self.memory_hops)
    }

    /// `C_sr_cache`: a message from the cache in as many pieces as necessary.
    #[must_use]
    pub fn send_receive_cached_ns(&self, lines: u64) -> f64 {
        self.in_pieces_ns(lines, Self::send_receive_chunk_cached_ns)
    }

    /// (4.22) The latency of a broadcast by the binomial tree.
    #[must_use]
    pub fn binomial_ns(&self, lines: u64) -> f64 {
        self.send_receive_ns(lines)
            + f64::from(levels(self.pes) - 1) * self.send_receive_cached_ns(lines)
    }

    /// `C_scat`: each core gets its slice. The root sends half of the slices that it still has, and
    /// so on.
    #[must_use]
    pub fn scatter_ns(&self, slice_lines: u64) -> f64 {
        let (mut group, mut ns) = (u64::from(self.pes), 0.0);
        while group > 1 {
            ns += self.send_receive_ns(group / 2 * slice_lines);
            group = group.div_ceil(2);
        }
        ns
    }

    /// `C_allgath`: each core sends a slice and receives one, `P - 1` times. All slices but the
    /// root's own are in the cache.
    #[must_use]
    pub fn allgather_ns(&self, slice_lines: u64) -> f64 {
        self.send_receive_ns(slice_lines)
            + f64::from(2 * self.pes - 3) * self.send_receive_cached_ns(slice_lines)
    }

    /// (4.24) The latency of a broadcast by scatter and all-gather. Slices are whole lines.
    #[must_use]
    pub fn scatter_allgather_ns(&self, lines: u64) -> f64 {
        let slice_lines = lines.div_ceil(u64::from(self.pes));
        self.scatter_ns(slice_lines) + self.allgather_ns(slice_lines)
    }

    /// Returns the throughput of (4.24) for slices of one chunk of OC-BCAST, in 10^6 B/s.
    #[must_use]
    pub fn scatter_allgather_mbps(&self) -> f64 {
        let lines = u64::from(self.pes) * self.chunk_lines;
        self.mbps(lines, self.scatter_allgather_ns(lines))
    }

    /// Returns the time in which each of two cores sets a flag, reads the other's, and resets it.
    fn synchronize_ns(&self) -> f64 {
        2.0 * (self.write_buffer_latency_ns(self.buffer_hops)
            + self.read_buffer_ns(1)
            + self.write_buffer_ns(1))
    }

    fn in_pieces_ns(&self, lines: u64, piece_ns: fn(&Self, u64) -> f64) -> f64 {
        let (whole, rest) = (lines / self.payload_lines, lines % self.payload_lines);
        whole as f64 * piece_ns(self, self.payload_lines) + piece_ns(self, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::digits;
    use super::*;

    /// In `digits` the flags take 2 (11 + 12 + 12) = 70. A line is put in 114, from the cache in
    /// 12, and got in 214. Two lines fit in the buffer.
    #[test]
    fn messages_take_the_sums_worked_out_by_hand() {
        let scc = digits();
        let one_ns = 10_114.0 + 20_214.0 + 70.0;
        let two_ns = one_ns + 114.0 + 214.0;
        assert_eq!([1, 2, 3].map(|m| scc.send_receive_ns(m)), [one_ns, two_ns, two_ns + one_ns]);
        assert_eq!(scc.send_receive_cached_ns(3), two_ns + one_ns - 3.0 * 102.0);
        assert_eq!([scc.send_receive_ns(0), scc.send_receive_cached_ns(0)], [0.0, 0.0]);
    }

    /// Four cores: two levels. The root sends two slices, then one. Three rounds of two messages.
    #[test]
    fn broadcasts_take_the_sums_worked_out_by_hand() {
        let scc = digits();
        let (one_ns, cached_ns) = (30_398.0, 30_296.0);
        assert_eq!(scc.binomial_ns(1), one_ns + cached_ns);
        assert_eq!(scc.scatter_ns(1), (one_ns + 328.0) + one_ns);
        assert_eq!(scc.allgather_ns(1), one_ns + 5.0 * cached_ns);
        let sum_ns = scc.scatter_ns(1) + scc.allgather_ns(1);
        assert_eq!([1, 3, 4].map(|m| scc.scatter_allgather_ns(m)), [sum_ns; 3]);
        // Five cores: 2 slices, then 1 of three cores, then 1 of two cores.
        let five = Scc { pes: 5, ..digits() };
        assert_eq!(five.scatter_ns(1), (one_ns + 328.0) + 2.0 * one_ns);
        assert_eq!(five.binomial_ns(1), one_ns + 2.0 * cached_ns);
    }

    /// Table 4.2 has 13.38, the formula gives 13.18: the thesis does not say how it rounded.
    #[test]
    fn formulas_match_table_4_2() {
        let scc = Scc::table_4_1();
        let mbps = scc.scatter_allgather_mbps();
        assert!((mbps / 13.38 - 1.0).abs() < 0.02, "{mbps}");
    }

    /// Section 4.4: one-sided broadcasts have the lower latency from the first lines, and three
    /// times the throughput.
    #[test]
    fn two_sided_is_slower() {
        let scc = Scc::table_4_1();
        for lines in [16, 96, 192] {
            assert!(scc.latency_ns(lines, 7) < 0.85 * scc.binomial_ns(lines), "{lines}");
        }
        let ratio = scc.throughput_mbps(2) / scc.scatter_allgather_mbps();
        assert!((2.5..3.0).contains(&ratio), "{ratio}");
    }
}
