//! What Nishtala and Yelick (HotPar 2009) say, section by section.

/// Machines of the paper: threads and sockets in its table 1.
pub(super) const NIAGARA2: &str = "niagara2-x4";
pub(super) const BARCELONA: &str = "barcelona-x8";
pub(super) const CLOVERTOWN: &str = "clovertown-x2";

/// Section 2.2: "almost two orders of magnitude" from the thread library's barrier to a flat one,
/// and "another order of magnitude" to the best tree on 256 threads.
pub(super) const FLAT_BARRIER_GAIN: f64 = 100.0;
pub(super) const TREE_BARRIER_GAIN: f64 = 10.0;

/// Section 3: how many times longer Strict reductions take, over the sizes of figure 3.
pub(super) const STRICT_OVER_LOOSE_MEDIAN: f64 = 3.1;
pub(super) const STRICT_OVER_LOOSE_MOST: f64 = 4.0;

/// Section 4, on Barcelona: the first size, in doubles, at which the best tree beats flat.
pub(super) const CROSSOVER_LOOSE: f64 = 8.0;
pub(super) const CROSSOVER_STRICT: f64 = 32.0;
/// What the other mode's crossover costs: Strict calls with Loose's, Loose calls with Strict's.
pub(super) const STRICT_PENALTY: f64 = 2.0;
pub(super) const LOOSE_PENALTY: f64 = 3.0;

/// Table 2: microseconds of an 8 kB reduction by radix.
pub(super) const RADICES: [u64; 5] = [1, 2, 4, 8, 16];

/// A column of table 2.
pub(super) struct Column {
    pub(super) machine: &'static str,
    /// What the column is called in a narrow table.
    pub(super) short: &'static str,
    pub(super) strict: bool,
    /// In the order of [`RADICES`].
    pub(super) us: [f64; 5],
}

/// Table 2.
pub(super) const TABLE_2: [Column; 4] = [
    Column {
        machine: BARCELONA,
        short: "Barc. Loose",
        strict: false,
        us: [46.4, 52.9, 60.1, 73.8, 110.0],
    },
    Column {
        machine: BARCELONA,
        short: "Barc. Strict",
        strict: true,
        us: [306.0, 110.0, 119.0, 130.0, 213.0],
    },
    Column {
        machine: NIAGARA2,
        short: "Niag. Loose",
        strict: false,
        us: [576.0, 621.0, 710.0, 1316.0, 2240.0],
    },
    Column {
        machine: NIAGARA2,
        short: "Niag. Strict",
        strict: true,
        us: [3103.0, 2115.0, 1774.0, 2471.0, 3998.0],
    },
];
