//! The claims, one in each row: as long as they are many.

use super::claim::{Claim, Place};
use crate::figures::{
    applications, barrier,
    counting::{self, MACHINE as XEON},
    crossover, dissemination, flat, gasnet,
    hotpar::{BARCELONA, CLOVERTOWN, NIAGARA2},
    locks::{
        self,
        machines::{OPTERON, TILE, XEON as WESTMERE},
    },
    mixture, modes,
    networks::{BLUE_GENE, CRAY, RANGER},
    quantity::{at_least, at_most, bound},
    radix, scaling,
    scc::{self, machine::MACHINE as SCC},
    transfers, tuning,
};

const HOTPAR: &str = "Nishtala and Yelick 2009";
const THESIS: &str = "Petrović 2015";
const GASNET: &str = "Nishtala, Zheng, Hargrove and Yelick 2011";
const BUNDLED: &str = "Dinan et al. 2014";
const NOBODY: &str = "none";

/// Finds a claim by its name, in upper or lower case.
pub fn find(id: &str) -> Option<&'static Claim> {
    CLAIMS.iter().find(|claim| claim.id.eq_ignore_ascii_case(id))
}

/// All claims.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "H1",
        paper: HOTPAR,
        about: "Barriers by flags, flat and as trees, are far below the thread library's",
        says: "barriers: flat 100x pthread's, trees 10x flat",
        // Section 2.2: "almost two orders of magnitude" from the thread library's barrier to a flat
        // one, and "another order of magnitude" to the best tree on 256 threads.
        bounds: &[
            bound(NIAGARA2, "barrier, pthread over flat", 100.0),
            bound(NIAGARA2, "barrier, flat over best tree", 10.0),
        ],
        least_pes: 2,
        place: Place::BesideSimulated(barrier::simulated),
        judge: barrier::judge,
    },
    Claim {
        id: "H3",
        paper: HOTPAR,
        about: "Loose reductions in a row are about three times as fast as Strict ones",
        says: "reduce: Loose 3.1x Strict in the median, at most 4x",
        // Section 3: over the sizes of figure 3.
        bounds: &[
            bound(NIAGARA2, "reduce strict over loose, 8 B to 64 kB, median, knomial_get", 3.1),
            bound(NIAGARA2, "reduce strict over loose, 8 B to 64 kB, most, knomial_get", 4.0),
        ],
        least_pes: 2,
        place: Place::BesideSimulated(modes::simulated),
        judge: modes::judge,
    },
    Claim {
        id: "H4",
        paper: HOTPAR,
        about: "From which size on trees beat the flat reduction depends on the mode",
        says: "reduce: trees from 8 doubles (Loose), 32 (Strict)",
        // Section 4: the first size at which the best tree beats flat, and the loss with the other
        // mode's crossover.
        bounds: &[
            bound(BARCELONA, "reduce, crossover loose, direct and knomial_get", 8.0),
            bound(BARCELONA, "reduce, crossover strict, direct and knomial_get", 32.0),
            bound(BARCELONA, "reduce, strict with loose's crossover, direct and knomial_get", 2.0),
            bound(BARCELONA, "reduce, loose with strict's crossover, direct and knomial_get", 3.0),
            // Figure 5: trees are best "at all vector sizes".
            bound(
                NIAGARA2,
                "reduce loose, share where a tree is best, direct and knomial_get",
                1.0,
            ),
            bound(
                NIAGARA2,
                "reduce strict, share where a tree is best, direct and knomial_get",
                1.0,
            ),
        ],
        least_pes: 3,
        place: Place::BesideSimulated(crossover::simulated),
        judge: crossover::judge,
    },
    Claim {
        id: "H5",
        paper: HOTPAR,
        about: "With 8 threads the flat reduction is best at every size",
        says: "reduce: with 8 threads flat is always best",
        bounds: &[
            bound(
                CLOVERTOWN,
                "reduce loose, share where flat is best, direct and knomial_get",
                1.0,
            ),
            bound(
                CLOVERTOWN,
                "reduce strict, share where flat is best, direct and knomial_get",
                1.0,
            ),
        ],
        least_pes: 3,
        place: Place::BesideSimulated(flat::simulated),
        judge: flat::judge,
    },
    Claim {
        id: "H6",
        paper: HOTPAR,
        about: "A chain wins the Loose reductions of 8 kB, a tree of a higher radix the Strict \
                ones",
        says: "8 kB reduce: chain wins Loose, radix 2, 4 Strict",
        // Table 2.
        bounds: &[
            bound(BARCELONA, "reduce 8 kB loose radix 1, knomial_get", 46.4),
            bound(BARCELONA, "reduce 8 kB loose radix 2, knomial_get", 52.9),
            bound(BARCELONA, "reduce 8 kB loose radix 4, knomial_get", 60.1),
            bound(BARCELONA, "reduce 8 kB loose radix 8, knomial_get", 73.8),
            bound(BARCELONA, "reduce 8 kB loose radix 16, knomial_get", 110.0),
            bound(BARCELONA, "reduce 8 kB strict radix 1, knomial_get", 306.0),
            bound(BARCELONA, "reduce 8 kB strict radix 2, knomial_get", 110.0),
            bound(BARCELONA, "reduce 8 kB strict radix 4, knomial_get", 119.0),
            bound(BARCELONA, "reduce 8 kB strict radix 8, knomial_get", 130.0),
            bound(BARCELONA, "reduce 8 kB strict radix 16, knomial_get", 213.0),
            bound(NIAGARA2, "reduce 8 kB loose radix 1, knomial_get", 576.0),
            bound(NIAGARA2, "reduce 8 kB loose radix 2, knomial_get", 621.0),
            bound(NIAGARA2, "reduce 8 kB loose radix 4, knomial_get", 710.0),
            bound(NIAGARA2, "reduce 8 kB loose radix 8, knomial_get", 1316.0),
            bound(NIAGARA2, "reduce 8 kB loose radix 16, knomial_get", 2240.0),
            bound(NIAGARA2, "reduce 8 kB strict radix 1, knomial_get", 3103.0),
            bound(NIAGARA2, "reduce 8 kB strict radix 2, knomial_get", 2115.0),
            bound(NIAGARA2, "reduce 8 kB strict radix 4, knomial_get", 1774.0),
            bound(NIAGARA2, "reduce 8 kB strict radix 8, knomial_get", 2471.0),
            bound(NIAGARA2, "reduce 8 kB strict radix 16, knomial_get", 3998.0),
        ],
        least_pes: 3,
        place: Place::BesideSimulated(radix::simulated),
        judge: radix::judge,
    },
    Claim {
        id: "T2",
        paper: THESIS,
        about: "OC-BCAST has a lower latency than the two-sided binomial broadcast",
        says: "OC-BCAST: a line in 16.6 us, binomial in 21.6",
        bounds: &[
            bound(SCC, "1 line, k=7", 16.6),
            bound(SCC, "1 line, binomial", 21.6),
            bound(SCC, "96 lines, k=7 / k=2", 0.75),
            bound(SCC, "144 lines, k=7 / k=2", 0.75),
            bound(SCC, "192 lines, k=7 / k=2", 0.75),
            bound(SCC, "96 lines, k=47 / k=7", 1.0),
            bound(SCC, "192 lines, k=47 / k=7", 1.0),
            bound(SCC, "3.2a k=47 and k=7, farthest apart from 32 lines on", 1.0),
        ],
        least_pes: 2,
        place: Place::Simulated,
        judge: scc::latency::judge,
    },
    Claim {
        id: "T3",
        paper: THESIS,
        about: "OC-BCAST has almost three times the throughput of the two-sided scatter-allgather",
        says: "OC-BCAST: almost 3x scatter-allgather's MB/s",
        // The measurements lie within 10 % of the formulas; that for k = 47 is 16 % below.
        bounds: &[
            bound(SCC, "1 MB, k=2", 35.22),
            bound(SCC, "1 MB, k=7", 34.30),
            bound(SCC, "1 MB, k=47", 35.88 * 0.84),
            bound(SCC, "1 MB, scatter-allgather", 13.38),
            bound(SCC, "1 MB, k=2 and 7 / scatter-allgather", 2.6),
        ],
        least_pes: 2,
        place: Place::Simulated,
        judge: scc::throughput::judge,
    },
    Claim {
        id: "T4",
        paper: THESIS,
        about: "Interrupts make OC-BCAST asynchronous at no cost in latency, and let many \
                broadcast at once",
        says: "interrupts: as fast; 48 sources 68 % of 55 MB/s",
        // Table 3.1.
        bounds: &[
            bound(SCC, "1 line, synchronous", 44.1),
            bound(SCC, "32 lines, synchronous", 75.8),
            bound(SCC, "64 lines, synchronous", 112.7),
            bound(SCC, "128 lines, synchronous", 198.6),
            bound(SCC, "1 line, asynchronous", 40.2),
            bound(SCC, "32 lines, asynchronous", 75.5),
            bound(SCC, "64 lines, asynchronous", 118.0),
            bound(SCC, "128 lines, asynchronous", 196.7),
            bound(SCC, "48 sources, k=47", scc::sources::SATURATED_MBPS),
            bound(SCC, "48 sources, k=47, fair", scc::sources::SATURATED_MBPS),
            // Figure 3.3: "from about 2000 to almost 6000", "about 3 times more expensive than" one
            // alone; "barely noticeable for less than 20 cores". The fastest is a parameter, and
            // without the registers beside the mesh nothing could differ (figure 3.3b).
            bound(SCC, "3.3a 48 cores, slowest", 6000.0),
            bound(SCC, "3.3a 48 cores, slowest / one alone", 3.0),
            bound(SCC, "3.3a 16 cores, slowest / fastest", 1.0),
            // Figure 3.4: "with a single source, the throughput decreases as k increases"; with
            // many "the trend is opposite"; "with more than one source, the throughput increases";
            // the difference between 5 and 48 sources "is not significant".
            at_most(SCC, "3.4 1 source, k=7 / k=2", 1.0),
            at_most(SCC, "3.4 1 source, k=47 / k=7", 1.0),
            at_least(SCC, "3.4 48 sources, k=7 / k=2", 1.0),
            at_least(SCC, "3.4 48 sources, k=47 / k=7", 1.0),
            at_least(SCC, "3.4 5 sources / 1, k=2", 1.0),
            at_least(SCC, "3.4 5 sources / 1, k=7", 1.0),
            at_least(SCC, "3.4 5 sources / 1, k=47", 1.0),
            bound(SCC, "3.4 48 sources / 5, k=47", 1.0),
            at_most(SCC, "3.4 1 source, k=7 / k=2, fair", 1.0),
            at_most(SCC, "3.4 1 source, k=47 / k=7, fair", 1.0),
            at_least(SCC, "3.4 48 sources, k=3 / k=2, fair", 1.0),
            at_least(SCC, "3.4 48 sources, k=4 / k=3, fair", 1.0),
            at_least(SCC, "3.4 48 sources, k=7 / k=4, fair", 1.0),
            at_least(SCC, "3.4 48 sources, k=47 / k=7, fair", 1.0),
            at_least(SCC, "3.4 5 sources / 1, k=2, fair", 1.0),
            at_least(SCC, "3.4 5 sources / 1, k=7, fair", 1.0),
            at_least(SCC, "3.4 5 sources / 1, k=47, fair", 1.0),
            bound(SCC, "3.4 48 sources / 5, k=47, fair", 1.0),
        ],
        least_pes: 2,
        place: Place::Simulated,
        judge: scc::asynchronous::judge,
    },
    Claim {
        id: "T5",
        paper: THESIS,
        about: "The throughput of each broadcast follows from the costs of a line",
        says: "SCC: throughputs follow from the costs of a line",
        // Table 4.2.
        bounds: &[
            bound(SCC, "throughput, k=2", 35.22),
            bound(SCC, "throughput, k=7", 34.30),
            bound(SCC, "throughput, k=47", 35.88),
            bound(SCC, "throughput, scatter-allgather", 13.38),
            // Section 4.1.2, figure 4.2: from the least to the greatest distance "only 30%".
            bound(SCC, "4.2 get, 128 lines, 9 routers / 1", 1.3),
            bound(SCC, "4.2 put, 128 lines, 9 routers / 1", 1.3),
        ],
        least_pes: 2,
        place: Place::Simulated,
        judge: scc::formulas::judge,
    },
    Claim {
        id: "T7",
        paper: THESIS,
        about: "Up to 24 cores at one message buffer do not disturb each other, 48 do",
        says: "SCC: 24 cores at a buffer free, 48 contend 2x, 4x",
        bounds: &[
            bound(SCC, "gets of 128 lines, 24 cores, mean / one's", 1.0),
            bound(SCC, "gets of 128 lines, 48 cores, slowest / least", 2.0),
            bound(SCC, "puts of 1 line, 24 cores, mean / one's", 1.0),
            bound(SCC, "puts of 1 line, 48 cores, slowest / least", 4.0),
            // "did not show any performance drop".
            bound(SCC, "mesh, get over the loaded link / alone", 1.0),
        ],
        least_pes: 2,
        place: Place::Simulated,
        judge: scc::pressure::judge,
    },
    Claim {
        id: "T8",
        paper: THESIS,
        about: "A lock that is handed over by messages is faster than queue locks",
        says: "HYBLOCK 1.35x MCS and CLH; 2x empty, 1.18x long",
        // Section 6.2.3, figure 6.4, with 36 threads unless said otherwise.
        bounds: &[
            bound(TILE, "6.4a counter, HYBLOCK / MCS", 1.35),
            bound(TILE, "6.4a counter, HYBLOCK / CLH", 1.35),
            at_least(TILE, "6.4a HYBLOCK / queue locks, 2 to 5 threads", 1.0),
            at_least(TILE, "6.4a HYBLOCK / TAS, 30 threads and more", 1.0),
            at_most(TILE, "6.4a TAS, 36 threads / 1", 1.0),
            at_most(TILE, "6.4b HYBLOCK / MCS, 1 thread", 1.0),
            at_most(TILE, "6.4b HYBLOCK / CLH, 1 thread", 1.0),
            at_most(TILE, "6.4b TAS / HYBLOCK, 1 thread", 1.0),
            at_least(TILE, "6.4b MCS / CLH, 2 to 4 threads, most", 1.0),
            bound(TILE, "6.4b MCS / CLH, 5 threads and more, most", 1.0),
            bound(TILE, "6.4c empty, HYBLOCK / MCS", 2.0),
            bound(TILE, "6.4c empty, HYBLOCK / CLH", 2.0),
            bound(TILE, "6.4c 25, HYBLOCK / MCS", 1.18),
            bound(TILE, "6.4c 25, HYBLOCK / CLH", 1.18),
        ],
        least_pes: 1,
        place: Place::Simulated,
        judge: locks::queue_locks::judge,
    },
    Claim {
        id: "T9",
        paper: THESIS,
        about: "Delegation by messages is several times as fast as over shared memory",
        says: "MP-SERVER 4.3x SHM-SERVER, HYBCOMB 2.5x CC-SYNCH",
        // Sections 6.2.2 and 6.2.3, with 36 threads unless said otherwise. CC-SYNCH and
        // SHM-SERVER: "very similar"; 15 increments: "about 10%"; MAX_OPS: "nearly as high".
        bounds: &[
            bound(TILE, "6.5a MP-SERVER / SHM-SERVER", 4.3),
            bound(TILE, "6.5a HYBCOMB / CC-SYNCH", 2.5),
            bound(TILE, "6.5a CC-SYNCH / SHM-SERVER", 1.0),
            at_least(TILE, "6.5a MP-SERVER / next best, least", 1.0),
            at_least(TILE, "6.5a HYBCOMB / CC-SYNCH, least", 1.0),
            at_most(TILE, "6.5b MP-SERVER / next best, most", 1.0),
            at_most(TILE, "6.5b HYBCOMB / CC-SYNCH, most", 1.0),
            at_most(TILE, "6.5b CC-SYNCH, 17 threads / 14", 1.0),
            at_most(TILE, "6.5b HYBCOMB, 24 threads / 14", 1.0),
            bound(TILE, "6.5c 15, MP-SERVER / SHM-SERVER", 1.1),
            bound(TILE, "6.5c 15, MP-SERVER / slowest", 1.1),
            at_least(TILE, "6.6a HYBCOMB, MAX_OPS 1000 / 200", 1.0),
            bound(TILE, "6.6a CC-SYNCH, MAX_OPS 5000 / 200", 1.0),
            bound(TILE, "6.6a HYBCOMB, MAX_OPS 5000", 88.0),
            bound(TILE, "6.6a HYBCOMB, MAX_OPS 5000 / MP-SERVER", 1.0),
            at_most(TILE, "6.7 MP-SERVER / next best, 1 thread", 1.0),
            at_most(TILE, "6.7 MP-SERVER / TAS, 1 thread", 1.0),
            at_least(TILE, "6.7 HYBCOMB / CC-SYNCH, 1 thread", 1.0),
            at_most(TILE, "6.7 slowest scheme / best lock, 5 threads", 1.0),
            at_least(TILE, "6.2.2 schemes that gain by numbers", 3.0),
            at_least(TILE, "6.2.2 by pointer, by messages / next", 1.0),
        ],
        least_pes: 1,
        place: Place::Simulated,
        judge: locks::delegation::judge,
    },
    Claim {
        id: "T10",
        paper: THESIS,
        about: "The servicing thread waits for coherence, and with messages for nothing",
        says: "stalls: over half by shared memory, else none",
        // Section 6.2.3, figure 6.6b: "virtually never"; "more than 50%".
        bounds: &[
            bound(TILE, "MP-SERVER, time stalled", 0.0),
            bound(TILE, "HYBCOMB, time stalled", 0.0),
            at_least(TILE, "SHM-SERVER, time stalled", 50.0),
            at_least(TILE, "CC-SYNCH, time stalled", 50.0),
        ],
        least_pes: 1,
        place: Place::Simulated,
        judge: locks::stalls::judge,
    },
    Claim {
        id: "T11",
        paper: THESIS,
        about: "HYBCOMB seldom compares and exchanges, and is fair",
        says: "HYBCOMB: 0.1 CAS an operation; fair within 1.2",
        // Section 6.2.3.
        bounds: &[
            bound(TILE, "HYBCOMB, CAS an operation, 1 thread", 1.0),
            bound(TILE, "HYBCOMB, CAS an operation, 36 threads", 0.1),
            at_most(TILE, "HYBCOMB, CAS an operation, most", 0.7),
            at_most(TILE, "HYBCOMB, most / least operations", 1.2),
            bound(TILE, "MP-SERVER, most / least operations", 1.1),
            // Figure 6.6c: "reaches the desired combining rate".
            bound(TILE, "6.6c CC-SYNCH, combined, 36 threads", 200.0),
        ],
        least_pes: 1,
        place: Place::Simulated,
        judge: locks::combining::judge,
    },
    Claim {
        id: "T12",
        paper: THESIS,
        about: "Queues and stacks under one server or combiner with messages are the fastest",
        says: "queues: MP-SERVER 2x, HYBCOMB 1.5x the third best",
        // Section 6.2.4, figure 6.8: "almost twofold"; "similar to that of the HYBLOCK queue";
        // "the numbers nearly match".
        bounds: &[
            bound(TILE, "6.8a MP-SERVER-1 / best over shared memory", 2.0),
            bound(TILE, "6.8a HYBCOMB-1 / best over shared memory", 1.5),
            bound(TILE, "6.8a HYBLOCK-2 / HYBLOCK-1", 2.0),
            bound(TILE, "6.8a LCRQ / HYBLOCK-2", 1.0),
            bound(TILE, "6.8b MP-SERVER, stack / queue", 1.0),
            bound(TILE, "6.8b HYBCOMB, stack / queue", 1.0),
            at_most(TILE, "6.8b Treiber / slowest other", 1.0),
            // Sections 6.2.5 and 7.2.3, figures 7.9 to 7.11.
            at_least(WESTMERE, "7.9 optimized / best other, all clients", 1.0),
            at_least(WESTMERE, "7.9 optimized / best other, half the clients", 1.0),
            bound(WESTMERE, "7.9 CC-SYNCH / srv-base", 1.0),
            at_least(WESTMERE, "7.9 H-SYNCH / CC-SYNCH", 1.0),
            at_least(WESTMERE, "7.9 fetch-and-add, 158 clients / 79", 1.0),
            at_least(WESTMERE, "7.10 optimized / best other, all clients", 1.0),
            at_least(WESTMERE, "7.10 optimized / best other, half the clients", 1.0),
            at_most(WESTMERE, "7.10 srv-B, stack / counter", 1.0),
            bound(WESTMERE, "7.10 CC-SYNCH, stack / counter", 1.0),
            at_least(WESTMERE, "7.11 srv-base, two locks / one", 1.0),
            at_least(WESTMERE, "7.11 CC-SYNCH, two locks / one", 1.0),
            at_least(WESTMERE, "7.11 H-SYNCH, two locks / one", 1.0),
            at_most(WESTMERE, "7.11 the same, srv-B's / srv-base's", 1.0),
            at_least(WESTMERE, "7.11 optimized / best other but LCRQ+H", 1.0),
            at_least(WESTMERE, "7.11 LCRQ+H / optimized", 1.0),
            bound(WESTMERE, "7.11 LCRQ+H, most / least operations", 1.4),
            bound(WESTMERE, "7.11 srv-B, most / least operations", 1.0),
            at_most(WESTMERE, "6.2.5 MCS, a die / tile-gx36", 1.0),
            at_most(WESTMERE, "6.2.5 CC-SYNCH, a die / tile-gx36", 1.0),
            at_most(WESTMERE, "6.2.5 SHM-SERVER, a die / tile-gx36", 1.0),
            at_least(WESTMERE, "6.2.5 LCRQ, a die / tile-gx36", 1.0),
            at_least(WESTMERE, "6.2.5 CC-SYNCH on a die, two locks / one", 1.0),
            at_least(OPTERON, "7.9 optimized / best other, all clients", 1.0),
            at_least(OPTERON, "7.9 optimized / best other, half the clients", 1.0),
            bound(OPTERON, "7.9 CC-SYNCH / srv-base", 1.0),
            at_least(OPTERON, "7.10 optimized / best other, all clients", 1.0),
            at_least(OPTERON, "7.10 optimized / best other, half the clients", 1.0),
            at_most(OPTERON, "7.10 srv-B, stack / counter", 1.0),
            bound(OPTERON, "7.10 CC-SYNCH, stack / counter", 1.0),
            at_most(OPTERON, "7.10 stack / counter, over the Xeon's", 1.0),
            at_least(OPTERON, "7.11 srv-base, two locks / one", 1.0),
            at_least(OPTERON, "7.11 CC-SYNCH, two locks / one", 1.0),
            bound(OPTERON, "7.11 srv-B, two locks / one", 1.0),
            at_most(OPTERON, "7.11 the same, srv-B's / srv-base's", 1.0),
            at_least(OPTERON, "7.11 optimized / best other", 1.0),
            bound(OPTERON, "7.11 srv-B, most / least operations", 1.0),
            at_most(OPTERON, "6.2.5 MCS, a die / tile-gx36", 1.0),
            at_most(OPTERON, "6.2.5 CC-SYNCH, a die / tile-gx36", 1.0),
            at_most(OPTERON, "6.2.5 SHM-SERVER, a die / tile-gx36", 1.0),
            at_least(OPTERON, "6.2.5 LCRQ, a die / tile-gx36", 1.0),
            at_least(OPTERON, "6.2.5 CC-SYNCH on a die, two locks / one", 1.0),
        ],
        least_pes: 1,
        place: Place::Simulated,
        judge: locks::objects::judge,
    },
    Claim {
        id: "T13",
        paper: THESIS,
        about: "Backoff and streaming stores speed delegation up where there are no messages",
        says: "x86: backoff 6x and 2x, streaming 3.5x and 1.7x",
        // Sections 7.2.1 and 7.2.2, figures 7.5 to 7.7; section 7.3: "about 20 Mops/sec on both".
        bounds: &[
            bound(WESTMERE, "7.5 streaming, backoff", 20.0),
            bound(WESTMERE, "7.5 backoff / base", 6.0),
            bound(WESTMERE, "7.5 base, shuffled / base", 1.0),
            bound(WESTMERE, "7.6 streaming / base", 3.5),
            at_least(WESTMERE, "7.6 streaming, backoff / streaming", 1.0),
            at_least(WESTMERE, "7.7 fastest optimized / base, 1 client", 1.0),
            at_least(WESTMERE, "7.7 B5000 / base, 1 client", 1.6),
            at_most(WESTMERE, "7.7 slowest streaming / base, 1 client", 1.6),
            at_least(WESTMERE, "7.2.1 every second line / every line", 1.0),
            bound(WESTMERE, "7.2.1 base, by number / by pointer", 1.0),
            bound(WESTMERE, "7.2.1 backoff, by number / by pointer", 1.0),
            at_most(WESTMERE, "7.2.1 client beside the server / none", 1.0),
            bound(OPTERON, "7.5 streaming", 20.0),
            bound(OPTERON, "7.5 backoff / base", 2.0),
            bound(OPTERON, "7.5 base, shuffled / base", 1.0),
            bound(OPTERON, "7.6 streaming / base", 1.7),
            bound(OPTERON, "7.6 streaming, backoff / streaming", 1.0),
            at_least(OPTERON, "7.7 fastest optimized / base, 1 client", 1.0),
            at_most(OPTERON, "7.7 B1500 / base, 1 client", 1.6),
            at_most(OPTERON, "7.7 slowest streaming / base, 1 client", 1.6),
            at_most(OPTERON, "7.2.1 every second line / every line", 1.0),
            bound(OPTERON, "7.2.1 base, by number / by pointer", 1.0),
            bound(OPTERON, "7.2.1 backoff, by number / by pointer", 1.0),
        ],
        least_pes: 1,
        place: Place::Simulated,
        judge: locks::optimizations::judge,
    },
    Claim {
        id: "T14",
        paper: THESIS,
        about: "An operation or hand-over takes two remote references, or none by messages",
        says: "remote references: two, none by messages",
        // Sections 5.3, 6.1.
        bounds: &[
            bound(TILE, "MP-SERVER, an operation", 0.0),
            bound(TILE, "HYBCOMB, an operation", 0.0),
            bound(TILE, "SHM-SERVER, an operation", 2.0),
            bound(TILE, "CC-SYNCH, an operation", 2.0),
            bound(TILE, "MCS, a hand-over", 2.0),
            bound(TILE, "CLH, a hand-over", 2.0),
            bound(TILE, "HYBLOCK, a hand-over", 0.0),
        ],
        least_pes: 1,
        place: Place::Simulated,
        judge: locks::references::judge,
    },
    Claim {
        id: "T15",
        paper: THESIS,
        about: "With long sections the optimizations gain less, but they do",
        says: "200 increments: streaming still 1.84x and 1.19x",
        // Section 7.2.2, figure 7.8.
        bounds: &[
            bound(WESTMERE, "7.8 200 increments, streaming / base", 1.84),
            bound(OPTERON, "7.8 200 increments, streaming / base", 1.19),
        ],
        least_pes: 1,
        place: Place::Simulated,
        judge: locks::sections::judge,
    },
    Claim {
        id: "G1",
        paper: GASNET,
        about: "The loosest modes are sometimes nearly ten times as fast as the strictest",
        says: "the loosest modes nearly 10x the strictest",
        // Section 7: "sometimes nearly an order of magnitude".
        bounds: &[bound(CRAY, "strictest over loosest, most", 10.0)],
        least_pes: 2,
        place: Place::BesideSimulated(gasnet::simulated_modes),
        judge: gasnet::modes,
    },
    Claim {
        id: "G4",
        paper: GASNET,
        about: "Where all addresses are known, collectives are faster at small and at large sizes",
        says: "all addresses known (Single) beats Local",
        // Section 5.1: "can consistently realize better performance".
        bounds: &[
            at_least(CRAY, "broadcast of 8 B, Local over Single", 1.0),
            at_least(CRAY, "broadcast of 8192 B, Local over Single", 1.0),
            at_least(CRAY, "broadcast of 131072 B, Local over Single", 1.0),
            at_least(RANGER, "broadcast of 8 B, Local over Single", 1.0),
            at_least(RANGER, "broadcast of 8192 B, Local over Single", 1.0),
            at_least(RANGER, "broadcast of 131072 B, Local over Single", 1.0),
        ],
        least_pes: 2,
        place: Place::BesideSimulated(transfers::addresses),
        judge: gasnet::addresses,
    },
    Claim {
        id: "G5",
        paper: GASNET,
        about: "Data put with their notification are ahead of data that the receiver gets",
        says: "a put that signals beats a rendezvous",
        // Section 5.2: "The Put mechanism consistently outperforms the Rendez-Vous mechanism".
        bounds: &[
            at_least(CRAY, "broadcast of 8 B, rendezvous over put", 1.0),
            at_least(CRAY, "broadcast of 64 B, rendezvous over put", 1.0),
            at_least(CRAY, "broadcast of 512 B, rendezvous over put", 1.0),
            at_least(CRAY, "broadcast of 4096 B, rendezvous over put", 1.0),
            at_least(CRAY, "broadcast of 32768 B, rendezvous over put", 1.0),
            at_least(CRAY, "broadcast of 262144 B, rendezvous over put", 1.0),
            at_least(RANGER, "broadcast of 8 B, rendezvous over put", 1.0),
            at_least(RANGER, "broadcast of 64 B, rendezvous over put", 1.0),
            at_least(RANGER, "broadcast of 512 B, rendezvous over put", 1.0),
            at_least(RANGER, "broadcast of 4096 B, rendezvous over put", 1.0),
            at_least(RANGER, "broadcast of 32768 B, rendezvous over put", 1.0),
            at_least(RANGER, "broadcast of 262144 B, rendezvous over put", 1.0),
        ],
        least_pes: 2,
        place: Place::BesideSimulated(transfers::simulated),
        judge: transfers::judge,
    },
    Claim {
        id: "G6",
        paper: GASNET,
        about: "Dissemination takes N(k-1)log_k N messages; which radix is best depends on the \
                machine",
        says: "dissemination: N(k-1)log_k N; best radix varies",
        // The formula gives the number for each operation. Section 5.3: on the first two machines
        // dissemination is best at small sizes and flat at large ones, on the third flat is best
        // throughout.
        bounds: &[
            at_most(CRAY, "exchange of 8 B, dissemination over flat", 1.0),
            at_least(CRAY, "exchange of 8192 B, dissemination over flat", 1.0),
            at_most(RANGER, "exchange of 8 B, dissemination over flat", 1.0),
            at_least(RANGER, "exchange of 8192 B, dissemination over flat", 1.0),
            at_least(BLUE_GENE, "exchange of 8 B, dissemination over flat", 1.0),
            at_least(BLUE_GENE, "exchange of 64 B, dissemination over flat", 1.0),
            at_least(BLUE_GENE, "exchange of 512 B, dissemination over flat", 1.0),
            at_least(BLUE_GENE, "exchange of 8192 B, dissemination over flat", 1.0),
        ],
        least_pes: 3,
        place: Place::BesideSimulated(dissemination::simulated),
        judge: dissemination::judge,
    },
    Claim {
        id: "G7",
        paper: GASNET,
        about: "One PE of each node speaks for it through the network",
        says: "two levels, in nodes and between, beat one",
        bounds: &[],
        least_pes: 4,
        place: Place::Here,
        judge: gasnet::levels,
    },
    Claim {
        id: "G9",
        paper: GASNET,
        about: "Tuning one size of a broadcast takes up to a tenth of a second, a look-up little",
        says: "tuning a size: 12 to 109 ms; look-ups: negligible",
        // Table 2, whose first size is 4 B and whose last one is printed as 32 769; section 5.4:
        // "negligible", which is taken as at most a tenth; "about 48 bytes".
        bounds: &[
            bound(RANGER, "tuning a broadcast of 8 B", 12.165),
            bound(RANGER, "tuning a broadcast of 128 B", 13.965),
            bound(RANGER, "tuning a broadcast of 2048 B", 17.625),
            bound(RANGER, "tuning a broadcast of 32768 B", 87.345),
            bound(RANGER, "tuning a broadcast of 32768 B over one of 8 B", 7.18),
            bound(CRAY, "tuning a broadcast of 8 B", 36.255),
            bound(CRAY, "tuning a broadcast of 128 B", 37.965),
            bound(CRAY, "tuning a broadcast of 2048 B", 47.925),
            bound(CRAY, "tuning a broadcast of 32768 B", 108.84),
            bound(CRAY, "tuning a broadcast of 32768 B over one of 8 B", 3.002),
            at_most(RANGER, "look-up over a broadcast of 8 B", 0.1),
            bound(RANGER, "an entry of the table", 48.0),
        ],
        least_pes: 2,
        place: Place::Here,
        judge: tuning::judge,
    },
    Claim {
        id: "G10",
        paper: GASNET,
        about: "Applications gain by nonblocking collectives of teams",
        says: "SUMMA beats ScaLAPACK, Cholesky equals, FT +17 %",
        // Sections 6.1 to 6.3: the matrix multiplication "significantly outperforms" ScaLAPACK;
        // Cholesky "performs better than or equally well"; "17% at 32,768 cores".
        bounds: &[
            at_least(CRAY, "summa, pdgemm over overlap", 1.0),
            at_least(CRAY, "cholesky, pdpotrf over overlap", 1.0),
            bound(BLUE_GENE, "ft, blocking over overlap", 1.17),
            at_least(CRAY, "summa, blocking over overlap", 1.0),
            at_least(CRAY, "summa, binomial messages over overlap", 1.0),
            at_least(CRAY, "cholesky, binomial messages over blocking", 1.0),
            at_least(BLUE_GENE, "summa, blocking over overlap", 1.0),
            at_least(BLUE_GENE, "summa, binomial messages over overlap", 1.0),
            at_least(BLUE_GENE, "cholesky, binomial messages over blocking", 1.0),
        ],
        least_pes: 2,
        place: Place::BesideSimulated(scaling::simulated),
        judge: applications::judge,
    },
    Claim {
        id: "F7",
        paper: NOBODY,
        about: "A program runs on threads, on processes and on many machines, or some of each",
        says: "threads, processes and machines in one team",
        bounds: &[],
        least_pes: 2,
        place: Place::Here,
        judge: mixture::judge,
    },
    Claim {
        id: "P3",
        paper: BUNDLED,
        about: "A counted put takes half the latency of put, fence and flag",
        says: "counting puts: half the latency of put and flag",
        // Section 3.1: "the latency is approximately halved for small messages".
        bounds: &[
            bound(XEON, "ping-pong, put, fence, flag over counted put, 8 B", 2.0),
            bound(XEON, "ping-pong, put, fence, flag over counted put, 56 B", 2.0),
            bound(XEON, "ping-pong, put, fence, flag over counted put, 64 B", 2.0),
        ],
        least_pes: 2,
        place: Place::BesideSimulated(counting::simulated_ping_pong),
        judge: counting::ping_pong,
    },
    Claim {
        id: "P4",
        paper: BUNDLED,
        about: "An all-to-all is fastest by counting puts and slowest with a barrier",
        says: "all-to-all: counting puts best, barrier worst",
        // Section 3.2: "The barrier implementation achieves the lowest bandwidth"; "the CT version
        // of the benchmark provides the best performance".
        bounds: &[
            at_least(XEON, "all-to-all, put, fence, flag over counted put, 8 B", 1.0),
            at_least(XEON, "all-to-all, put, barrier over put, fence, flag, 8 B", 1.0),
            at_least(XEON, "all-to-all, put, fence, flag over counted put, 64 B", 1.0),
            at_least(XEON, "all-to-all, put, barrier over put, fence, flag, 64 B", 1.0),
            at_least(XEON, "all-to-all, put, fence, flag over counted put, 512 B", 1.0),
            at_least(XEON, "all-to-all, put, barrier over put, fence, flag, 512 B", 1.0),
            at_least(XEON, "all-to-all, put, fence, flag over counted put, 4096 B", 1.0),
            at_least(XEON, "all-to-all, put, barrier over put, fence, flag, 4096 B", 1.0),
            at_least(XEON, "all-to-all, put, fence, flag over counted put, 32768 B", 1.0),
            at_least(XEON, "all-to-all, put, barrier over put, fence, flag, 32768 B", 1.0),
        ],
        least_pes: 2,
        place: Place::BesideSimulated(counting::simulated_all_to_all),
        judge: counting::all_to_all,
    },
    Claim {
        id: "P5",
        paper: BUNDLED,
        about: "A pipelined stencil scales by counting puts",
        says: "Synch_p2p: counting puts scale, flags do not",
        // Section 3.3: the cost of synchronization by flags is high, "resulting in poor scaling.
        // Counting puts eliminate the overhead"; section 3.4: "the performance difference between
        // the two implementations decreases with an increase in problem size".
        bounds: &[
            at_least(XEON, "12800 x 1280, put, fence, flag over counted put", 1.0),
            at_most(XEON, "204800 x 1280 over 12800 x 1280, gain of counted put", 1.0),
        ],
        least_pes: 2,
        place: Place::BesideSimulated(counting::stencils),
        judge: counting::stencil,
    },
];

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicBool, time::Duration};

    use consort_sim::machines::Machine;

    use super::*;
    use crate::figures::quantity::Bound;

    /// An MPI would not start its processes in the time for all claims in brief.
    #[test]
    fn what_needs_an_mpi_is_not_done_in_brief() {
        for id in ["G7", "G10", "F7"] {
            let never = AtomicBool::new(false);
            let evaluated =
                find(id).unwrap().evaluate(None, Duration::ZERO, false, false, &never, &|_| ());
            let (outcome, _) = evaluated.unwrap().unwrap();
            let says = format!("`consort-lab reproduce {id}` does it");
            assert!(outcome.verdict.ends_with(&says), "{}", outcome.verdict);
        }
    }

    /// All claims fit one screen, one in each line.
    #[test]
    fn what_a_claim_says_is_short() {
        assert!(CLAIMS.iter().all(|claim| claim.says.chars().count() <= 52));
    }

    #[test]
    fn claims_and_bounds_have_names_of_their_own() {
        for claim in CLAIMS {
            assert_eq!(find(&claim.id.to_lowercase()).unwrap().says, claim.says);
            for (index, one) in claim.bounds.iter().enumerate() {
                let same =
                    |other: &&Bound| (one.machine, one.quantity) == (other.machine, other.quantity);
                assert_eq!(claim.bounds[index..].iter().filter(same).count(), 1, "{one:?}");
            }
        }
        assert!(find("H9").is_none());
    }

    /// Table 2: the chain when Loose, radix 2 on Barcelona and 4 on Niagara 2 when Strict.
    #[test]
    fn the_papers_winners_are_found() {
        let columns = find("H6").unwrap().bounds.chunks(5);
        let best = |column: &[Bound]| {
            column.iter().min_by(|one, other| one.value.total_cmp(&other.value)).unwrap().quantity
        };
        let winners: Vec<&str> = columns.map(best).collect();
        let by_radix = ["radix 1,", "radix 2,", "radix 1,", "radix 4,"];
        assert!(winners.iter().zip(by_radix).all(|(one, by)| one.contains(by)), "{winners:?}");
    }

    /// A name that is none of a claim's figures would mark nothing as fitted.
    #[test]
    fn what_descriptions_are_fitted_to_are_figures_of_the_papers() {
        for name in Machine::shipped() {
            let machine = Machine::find(name).unwrap();
            for figure in machine.provenance.fitted.values().flatten() {
                let (id, quantity) = figure.split_once(": ").unwrap();
                let claim = find(id).unwrap_or_else(|| panic!("{name}: {figure}"));
                // With the effects that are fitted, a figure has that in its name.
                let quantity = quantity.strip_suffix(", fitted").unwrap_or(quantity);
                let is = |bound: &Bound| (bound.machine, bound.quantity) == (name, quantity);
                assert!(claim.bounds.iter().any(is), "{name}: {figure}");
            }
        }
    }
}
