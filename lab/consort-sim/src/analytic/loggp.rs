//! LogGP: a model of messages between the processors of a cluster, with four parameters.
//!
//! Source: Alexandrov, Ionescu, Schauser and Scheiman, "LogGP: Incorporating Long Messages into the
//! LogP Model" (SPAA 1995), after Culler et al. 1993. A message of `b` bytes keeps its sender busy
//! for `o`, goes into the network with `G` for each byte, arrives `L` after its last byte, and
//! keeps its receiver busy for `o`. The sender's next message may follow `g` after the last byte.
//!
//! All times are closed formulas, so a million processors take as long to compute as two. Trees and
//! barriers are exact if the number of processors is a power of the radix. Otherwise they are upper
//! bounds, as if the last level were full.
//!
//! Left out on purpose: contention in the network, and the time of operators except in reductions.

use serde::Serialize;

/// The parameters, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LogGp {
    /// The network's part of a message, `L`.
    pub latency_ns: f64,
    /// A processor's part of sending or of receiving a message, `o`.
    pub overhead_ns: f64,
    /// The minimum time between two messages of a processor, `g`.
    pub gap_ns: f64,
    /// The additional time of each byte after the first, `G`.
    pub gap_per_byte_ns: f64,
}

impl LogGp {
    /// Returns the time of one message, `o + (b - 1) G + L + o`. A message without bytes takes as
    /// long as a message of one byte.
    #[must_use]
    pub fn message_ns(&self, bytes: u64) -> f64 {
        2.0 * self.overhead_ns + self.latency_ns + self.stream_ns(bytes as f64)
    }

    /// Returns the time from the start of a message to the start of the sender's next,
    /// `max(g, o) + (b - 1) G`.
    #[must_use]
    pub fn interval_ns(&self, bytes: u64) -> f64 {
        self.start_ns() + self.stream_ns(bytes as f64)
    }

    /// Returns the time of a broadcast by the k-nomial tree: in each level every processor that has
    /// the message sends it to `radix - 1` others. The level ends when the last of them has the
    /// message, or when the sender is free again.
    ///
    /// # Panics
    /// When there is no processor, or the radix is below 2.
    #[must_use]
    pub fn broadcast_ns(&self, pes: u64, radix: u64, bytes: u64) -> f64 {
        let interval_ns = self.interval_ns(bytes);
        let others = (radix - 1) as f64;
        let last_ns = (others - 1.0) * interval_ns + self.message_ns(bytes);
        f64::from(rounds(pes, radix)) * last_ns.max(others * interval_ns)
    }

    /// Returns the time of a reduction by the k-nomial tree: in each level all processors but one
    /// in `radix` send their data. That one receives and combines the data of the others in turn,
    /// in `combine_ns` each.
    ///
    /// # Panics
    /// When there is no processor, or the radix is below 2.
    #[must_use]
    pub fn reduce_ns(&self, pes: u64, radix: u64, bytes: u64, combine_ns: f64) -> f64 {
        let turn_ns = self.interval_ns(bytes).max(self.overhead_ns + combine_ns);
        let level_ns = self.message_ns(bytes) + (radix - 2) as f64 * turn_ns + combine_ns;
        f64::from(rounds(pes, radix)) * level_ns
    }

    /// Returns the time of an all-reduce by recursive doubling (Thakur, Rabenseifner and Gropp
    /// 2005): in each round, pairs of processors exchange their data and combine it, in
    /// `combine_ns` each time. The processors above the last power of two give their data to others
    /// before, and get the result afterwards.
    ///
    /// # Panics
    /// When there is no processor.
    #[must_use]
    pub fn all_reduce_ns(&self, pes: u64, bytes: u64, combine_ns: f64) -> f64 {
        let exchanges = f64::from(rounds(pes, 2) - u32::from(!pes.is_power_of_two()));
        let exchange_ns = self.message_ns(bytes).max(self.interval_ns(bytes)) + combine_ns;
        let around_ns = 2.0 * self.message_ns(bytes) + combine_ns;
        exchanges * exchange_ns + if pes.is_power_of_two() { 0.0 } else { around_ns }
    }

    /// Returns the time of a dissemination barrier: in each round every processor sends a byte to
    /// `radix - 1` others, and then receives as many.
    ///
    /// # Panics
    /// When there is no processor, or the radix is below 2.
    #[must_use]
    pub fn barrier_ns(&self, pes: u64, radix: u64) -> f64 {
        let after_first = (radix - 2) as f64;
        // The last signal arrives, or is received after all signals that arrived during the sends.
        let last_ns = after_first * self.start_ns()
            + 2.0 * self.overhead_ns
            + self.latency_ns.max(after_first * self.overhead_ns);
        f64::from(rounds(pes, radix)) * last_ns.max((after_first + 1.0) * self.start_ns())
    }

    /// Returns the time of a broadcast down a chain, or a reduction up one, in `chunks` equal
    /// chunks. The first chunk passes all processors. Each other chunk follows after the time in
    /// which a processor receives and sends one chunk.
    ///
    /// # Panics
    /// When there is no processor, or no chunk.
    #[must_use]
    pub fn chain_ns(&self, pes: u64, bytes: u64, chunks: u64) -> f64 {
        assert!(pes > 0 && chunks > 0, "{chunks} chunks along {pes} processors");
        if pes == 1 {
            return 0.0;
        }
        let stream_ns = self.stream_ns(bytes as f64 / chunks as f64);
        let hop_ns = 2.0 * self.overhead_ns + self.latency_ns + stream_ns;
        let passing_ns = if pes > 2 { 2.0 * self.overhead_ns } else { 0.0 };
        let step_ns = (self.start_ns() + stream_ns).max(passing_ns);
        (pes - 1) as f64 * hop_ns + (chunks - 1) as f64 * step_ns
    }

    fn start_ns(&self) -> f64 {
        self.gap_ns.max(self.overhead_ns)
    }

    fn stream_ns(&self, bytes: f64) -> f64 {
        (bytes - 1.0).max(0.0) * self.gap_per_byte_ns
    }
}

/// Returns `ceil(log_radix pes)`.
fn rounds(pes: u64, radix: u64) -> u32 {
    assert!(pes > 0 && radix > 1, "{pes} processors, radix {radix}");
    if pes == 1 { 0 } else { (pes - 1).ilog(radix) + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters whose digits identify each term of a sum.
    const DIGITS: LogGp =
        LogGp { latency_ns: 1000.0, overhead_ns: 10.0, gap_ns: 100.0, gap_per_byte_ns: 1.0 };

    #[test]
    fn rounds_cover_the_processors() {
        let two = [1, 2, 3, 4, 5, 1 << 20].map(|pes| rounds(pes, 2));
        assert_eq!(two, [0, 1, 2, 2, 3, 20]);
        assert_eq!([8, 9, 10].map(|pes| rounds(pes, 3)), [2, 2, 3]);
    }

    #[test]
    fn message_time_follows_the_formula() {
        assert_eq!(DIGITS.message_ns(5), 10.0 + 4.0 + 1000.0 + 10.0);
        assert_eq!([0, 1].map(|bytes| DIGITS.message_ns(bytes)), [1020.0; 2]);
        assert_eq!(DIGITS.interval_ns(5), 104.0);
        let busy = LogGp { overhead_ns: 300.0, ..DIGITS };
        assert_eq!(busy.interval_ns(5), 304.0);
    }

    /// Nine processors with radix 3 take an interval and a message, twice. Four with radix 4 are
    /// one flat level.
    #[test]
    fn broadcast_time_follows_the_formula() {
        assert_eq!(DIGITS.broadcast_ns(9, 3, 1), 2.0 * (100.0 + 1020.0));
        assert_eq!(DIGITS.broadcast_ns(4, 4, 1), 2.0 * 100.0 + 1020.0);
        assert_eq!(DIGITS.broadcast_ns(8, 2, 5), 3.0 * 1024.0);
        // Messages that arrive before their sender may send again.
        let narrow = LogGp { gap_ns: 5000.0, ..DIGITS };
        assert_eq!(narrow.broadcast_ns(8, 2, 1), 3.0 * 5000.0);
    }

    /// If combining is free, a reduction takes as long as a broadcast. Otherwise the last
    /// combination is added, and so is each other one that takes longer than the interval between
    /// messages.
    #[test]
    fn reduction_time_follows_the_formula() {
        assert_eq!(DIGITS.reduce_ns(9, 3, 1, 0.0), DIGITS.broadcast_ns(9, 3, 1));
        assert_eq!(DIGITS.reduce_ns(9, 3, 1, 50.0), 2.0 * (100.0 + 1020.0 + 50.0));
        assert_eq!(DIGITS.reduce_ns(3, 3, 1, 400.0), 1020.0 + 410.0 + 400.0);
    }

    /// Four processors exchange twice. Of six, two give their data to others first.
    #[test]
    fn all_reduce_time_follows_the_formula() {
        assert_eq!(DIGITS.all_reduce_ns(1, 5, 50.0), 0.0);
        assert_eq!(DIGITS.all_reduce_ns(4, 5, 50.0), 2.0 * (1024.0 + 50.0));
        assert_eq!(DIGITS.all_reduce_ns(6, 5, 50.0), 2.0 * 1074.0 + 2.0 * 1024.0 + 50.0);
    }

    #[test]
    fn barrier_time_follows_the_formula() {
        assert_eq!(DIGITS.barrier_ns(8, 2), 3.0 * 1020.0);
        assert_eq!(DIGITS.barrier_ns(9, 3), 2.0 * (100.0 + 1020.0));
        // Radix 5 without latency and gap: four sends and four receptions of 10 each.
        let close = LogGp { latency_ns: 0.0, gap_ns: 0.0, ..DIGITS };
        assert_eq!(close.barrier_ns(5, 5), 80.0);
    }

    /// 9 bytes in 3 chunks along 4 processors: 3 hops of 1022, then 2 chunks 102 apart.
    #[test]
    fn chain_time_follows_the_formula() {
        assert_eq!(DIGITS.chain_ns(4, 9, 3), 3.0 * 1022.0 + 2.0 * 102.0);
        assert_eq!(DIGITS.chain_ns(2, 9, 1), DIGITS.message_ns(9));
        // Two overheads for each chunk are longer than the interval. They determine the time only
        // if a processor passes chunks on, so not between two processors.
        let busy = LogGp { overhead_ns: 300.0, ..DIGITS };
        assert_eq!(busy.chain_ns(3, 2, 2), 2.0 * 1600.0 + 600.0);
        assert_eq!(busy.chain_ns(2, 2, 2), 1600.0 + 300.0);
        assert_eq!(DIGITS.chain_ns(1, 9, 3), 0.0);
    }

    /// The time comes from a formula, so the largest team takes as long to compute as the smallest.
    #[test]
    fn largest_team_has_a_time() {
        assert_eq!(DIGITS.broadcast_ns(1_000_000, 10, 1), 6.0 * (8.0 * 100.0 + 1020.0));
        assert_eq!(DIGITS.barrier_ns(1 << 40, 2), 40.0 * 1020.0);
        assert_eq!(DIGITS.chain_ns(1_000_001, 1, 1), 1e6 * 1020.0);
        assert_eq!(DIGITS.broadcast_ns(u64::MAX, 2, 1), 64.0 * 1020.0);
    }
}
