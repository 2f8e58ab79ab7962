//! The claims, one in each row.

use super::claim::{Claim, Place};
use crate::figures::{
    applications, barrier, counting, crossover, dissemination, figure::Figure, flat, gasnet, locks,
    mixture, modes, radix, scaling, scc, transfers, tuning,
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

/// Finds a figure by its id.
pub fn figure(id: &str) -> Option<&'static Figure> {
    CLAIMS.iter().flat_map(Claim::figures).find(|figure| figure.id == id)
}

/// All claims.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "H1",
        paper: HOTPAR,
        about: "Barriers by flags, flat or as trees, are far faster than the thread library's",
        says: "barriers: flat 100x pthread's, trees 10x flat",
        mechanism: "Each flag moves a line between two cores, so a flat barrier makes the root \
                    wait for all PEs in turn, and a tree lets its subtrees work at the same time.",
        figures: &[barrier::FIGURES],
        least_pes: 2,
        place: Place::HereAndSimulated(barrier::judge, barrier::simulated),
    },
    Claim {
        id: "H3",
        paper: HOTPAR,
        about: "Loose reductions in a row are about three times as fast as Strict ones",
        says: "reduce: Loose 3.1x Strict in the median, at most 4x",
        mechanism: "No barrier separates Loose calls, so while a PE waits for its subtree in one \
                    call, other PEs already work on the next ones.",
        figures: &[modes::FIGURES],
        least_pes: 2,
        place: Place::HereAndSimulated(modes::judge, modes::simulated),
    },
    Claim {
        id: "H4",
        paper: HOTPAR,
        about: "The size from which trees beat the flat reduction depends on the mode",
        says: "reduce: trees from 8 doubles (Loose), 32 (Strict)",
        mechanism: "The root of a flat reduction adds all vectors alone, and a tree pays for flags \
                    to share this work; Loose calls overlap the flags of several calls, so trees \
                    pay off earlier.",
        figures: &[crossover::FIGURES],
        least_pes: 3,
        place: Place::HereAndSimulated(crossover::judge, crossover::simulated),
    },
    Claim {
        id: "H5",
        paper: HOTPAR,
        about: "With 8 threads the flat reduction is best at every size",
        says: "reduce: with 8 threads flat is always best",
        mechanism: "With 8 threads the root has only seven vectors to add, which takes less time \
                    than the flags of a tree.",
        figures: &[flat::FIGURES],
        least_pes: 3,
        place: Place::HereAndSimulated(flat::judge, flat::simulated),
    },
    Claim {
        id: "H6",
        paper: HOTPAR,
        about: "A chain wins the Loose reductions of 8 kB, a tree of a higher radix the Strict \
                ones",
        says: "8 kB reduce: chain wins Loose, radix 2, 4 Strict",
        mechanism: "In Loose calls the busiest PE decides, and in a chain each PE reads only one \
                    vector; in Strict calls the depth of the tree and the children of a PE decide \
                    together.",
        figures: &[radix::FIGURES],
        least_pes: 3,
        place: Place::HereAndSimulated(radix::judge, radix::simulated),
    },
    Claim {
        id: "T2",
        paper: THESIS,
        about: "OC-BCAST has a lower latency than the two-sided binomial broadcast",
        says: "OC-BCAST: a line in 16.6 us, binomial in 21.6",
        mechanism: "OC-BCAST passes chunks from buffer to buffer and copies them to memory \
                    meanwhile; the binomial tree goes through memory at each of its levels.",
        figures: &[scc::latency::FIGURES],
        least_pes: 2,
        place: Place::Simulated(scc::latency::judge),
    },
    Claim {
        id: "T3",
        paper: THESIS,
        about: "OC-BCAST has almost three times the throughput of the two-sided scatter-allgather",
        says: "OC-BCAST: almost 3x scatter-allgather's MB/s",
        mechanism: "OC-BCAST keeps chunks at all levels of the tree in motion and each core reads \
                    or writes memory once for each line; scatter-allgather does so in each of its \
                    steps.",
        figures: &[scc::throughput::FIGURES],
        least_pes: 2,
        place: Place::Simulated(scc::throughput::judge),
    },
    Claim {
        id: "T4",
        paper: THESIS,
        about: "Interrupts make OC-BCAST asynchronous at no cost in latency, and let many \
                broadcast at once",
        says: "interrupts: as fast; 48 sources 68 % of 55 MB/s",
        mechanism: "An interrupt reaches all cores at once, although their status registers are \
                    read in turn, and other sources fill the time in which a core would wait for \
                    one.",
        figures: &[scc::asynchronous::FIGURES, scc::sources::FIGURES, scc::interrupts::FIGURES],
        least_pes: 2,
        place: Place::Simulated(scc::asynchronous::judge),
    },
    Claim {
        id: "T5",
        paper: THESIS,
        about: "The throughput of each broadcast follows from the costs of a line",
        says: "SCC: throughputs follow from the costs of a line",
        mechanism: "The throughput is a chunk over the time in which a core fetches it, copies it \
                    to memory and sets its flags, and each of these times follows from the costs \
                    of a line.",
        figures: &[scc::formulas::FIGURES, scc::primitives::FIGURES],
        least_pes: 2,
        place: Place::Simulated(scc::formulas::judge),
    },
    Claim {
        id: "T7",
        paper: THESIS,
        about: "Up to 24 cores at one message buffer do not disturb each other, 48 do",
        says: "SCC: 24 cores at a buffer free, 48 contend 2x, 4x",
        mechanism: "A tile serves one line at a time and routers serve their sides in turn, so if \
                    the tile is saturated, cores that share a side with many others wait longest.",
        figures: &[scc::pressure::FIGURES],
        least_pes: 2,
        place: Place::Simulated(scc::pressure::judge),
    },
    Claim {
        id: "T8",
        paper: THESIS,
        about: "A lock that is passed on by messages is faster than queue locks",
        says: "HYBLOCK 1.35x MCS and CLH; 2x empty, 1.18x long",
        mechanism: "HYBLOCK passes the lock on with a message, and a queue lock with a flag whose \
                    line must first be invalidated and then fetched by the next holder.",
        figures: &[locks::queue_locks::FIGURES],
        least_pes: 1,
        place: Place::Simulated(locks::queue_locks::judge),
    },
    Claim {
        id: "T9",
        paper: THESIS,
        about: "Delegation by messages is several times as fast as over shared memory",
        says: "MP-SERVER 4.3x SHM-SERVER, HYBCOMB 2.5x CC-SYNCH",
        mechanism: "A request in a message reaches the servicing thread without a cache miss, and \
                    over shared memory the thread waits for the lines of the request and of the \
                    reply.",
        figures: &[locks::delegation::FIGURES],
        least_pes: 1,
        place: Place::Simulated(locks::delegation::judge),
    },
    Claim {
        id: "T10",
        paper: THESIS,
        about: "The servicing thread waits for coherence; with messages it never waits",
        says: "stalls: over half by shared memory, else none",
        mechanism: "Receiving a message never waits for coherence, and each request over shared \
                    memory costs the servicing thread a miss for the request and one for the \
                    reply.",
        figures: &[locks::stalls::FIGURES],
        least_pes: 1,
        place: Place::Simulated(locks::stalls::judge),
    },
    Claim {
        id: "T11",
        paper: THESIS,
        about: "HYBCOMB rarely uses compare-and-swap, and is fair",
        says: "HYBCOMB: 0.1 CAS an operation; fair within 1.2",
        mechanism: "A thread sends its request to the registered combiner, and needs a \
                    compare-and-swap only if that one has as many requests as it may take.",
        figures: &[locks::combining::FIGURES],
        least_pes: 1,
        place: Place::Simulated(locks::combining::judge),
    },
    Claim {
        id: "T12",
        paper: THESIS,
        about: "Queues and stacks under one server or combiner with messages are the fastest",
        says: "queues: MP-SERVER 2x, HYBCOMB 1.5x the third best",
        mechanism: "The operations are short, so the cost of passing requests on decides: it is \
                    lowest with messages, and highest where many threads compete for one line.",
        figures: &[locks::objects::FIGURES, locks::x86_objects::FIGURES],
        least_pes: 1,
        place: Place::Simulated(locks::objects::judge),
    },
    Claim {
        id: "T13",
        paper: THESIS,
        about: "Backoff and streaming stores speed up delegation without messages",
        says: "x86: backoff 6x and 2x, streaming 3.5x and 1.7x",
        mechanism: "A client that polls takes the reply's line from the server before the reply is \
                    written; backoff leaves the prefetched line there, and a streaming store does \
                    not need it.",
        figures: &[locks::optimizations::FIGURES],
        least_pes: 1,
        place: Place::Simulated(locks::optimizations::judge),
    },
    Claim {
        id: "T14",
        paper: THESIS,
        about: "An operation or hand-over takes two remote references, or none by messages",
        says: "remote references: two, none by messages",
        mechanism: "A server over shared memory fetches the request's line and takes back the \
                    reply's line, as a queue lock does with its flag; a message moves no line.",
        figures: &[locks::references::FIGURES],
        least_pes: 1,
        place: Place::Simulated(locks::references::judge),
    },
    Claim {
        id: "T15",
        paper: THESIS,
        about: "With long sections the optimizations still gain, but less",
        says: "200 increments: streaming still 1.84x and 1.19x",
        mechanism: "Streaming stores save the same time for each operation, whatever its length, \
                    so their share of a long section is small.",
        figures: &[locks::sections::FIGURES],
        least_pes: 1,
        place: Place::Simulated(locks::sections::judge),
    },
    Claim {
        id: "G1",
        paper: GASNET,
        about: "The loosest modes are sometimes nearly ten times as fast as the strictest",
        says: "the loosest modes nearly 10x the strictest",
        mechanism: "Without barriers, the messages of successive calls are under way at the same \
                    time; with a barrier after each call, its whole latency counts.",
        figures: &[gasnet::FIGURES],
        least_pes: 2,
        place: Place::HereAndSimulated(gasnet::modes, gasnet::simulated_modes),
    },
    Claim {
        id: "G4",
        paper: GASNET,
        about: "If all addresses are known, collectives are faster at small and at large sizes",
        says: "all addresses known (Single) beats Local",
        mechanism: "In Local mode a PE first tells its parent where the data goes, and this \
                    message comes before the data.",
        figures: &[transfers::ADDRESS_FIGURES],
        least_pes: 2,
        place: Place::HereAndSimulated(gasnet::addresses, transfers::addresses),
    },
    Claim {
        id: "G5",
        paper: GASNET,
        about: "Data put with a notification arrives earlier than data that the receiver gets",
        says: "a put that signals beats a rendezvous",
        mechanism: "A put carries its signal in the same message; a rendezvous needs a \
                    notification, a request for the data, the data, and an acknowledgement.",
        figures: &[transfers::FIGURES],
        least_pes: 2,
        place: Place::HereAndSimulated(transfers::judge, transfers::simulated),
    },
    Claim {
        id: "G6",
        paper: GASNET,
        about: "Dissemination takes N(k-1)log_k N messages; which radix is best depends on the \
                machine",
        says: "dissemination: N(k-1)log_k N; best radix varies",
        mechanism: "Dissemination sends fewer messages but each block several times, so it saves \
                    overhead for short blocks and costs bandwidth for long ones.",
        figures: &[dissemination::FIGURES],
        least_pes: 3,
        place: Place::HereAndSimulated(dissemination::judge, dissemination::simulated),
    },
    Claim {
        id: "G7",
        paper: GASNET,
        about: "One PE of each node communicates for it over the network",
        says: "two levels, in nodes and between, beat one",
        mechanism: "One PE of each node sends the data of all, so there are fewer messages in the \
                    network, and the PEs of a node share memory.",
        figures: &[],
        least_pes: 4,
        place: Place::Here(gasnet::levels),
    },
    Claim {
        id: "G9",
        paper: GASNET,
        about: "Tuning one size of a broadcast takes up to a tenth of a second; a look-up is fast",
        says: "tuning a size: 12 to 109 ms; look-ups: negligible",
        mechanism: "The tuner measures each candidate once, which takes milliseconds; a \
                    look-up reads a table that was compiled beforehand.",
        figures: &[tuning::FIGURES],
        least_pes: 2,
        place: Place::Here(tuning::judge),
    },
    Claim {
        id: "G10",
        paper: GASNET,
        about: "Applications gain from nonblocking collectives of teams",
        says: "SUMMA beats ScaLAPACK, Cholesky equals, FT +17 %",
        mechanism: "While an application computes with one panel or slab, a nonblocking call moves \
                    the next one.",
        figures: &[applications::FIGURES],
        least_pes: 2,
        place: Place::HereAndSimulated(applications::judge, scaling::simulated),
    },
    Claim {
        id: "F7",
        paper: NOBODY,
        about: "A program runs on threads, on processes, on many machines, or on a mix",
        says: "threads, processes and machines in one team",
        mechanism: "Threads, processes and machines implement the same few operations, on which \
                    all algorithms run.",
        figures: &[],
        least_pes: 2,
        place: Place::Here(mixture::judge),
    },
    Claim {
        id: "F8",
        paper: NOBODY,
        about: "On several sockets, the fastest lock depends on the number of threads",
        says: "several sockets: CNA over the other locks",
        mechanism: "A lock that stays on a socket passes its lines between neighbouring cores, as \
                    long as several threads of that socket wait.",
        figures: &[],
        least_pes: 1,
        place: Place::Simulated(locks::sockets::judge),
    },
    Claim {
        id: "P3",
        paper: BUNDLED,
        about: "A counted put takes half the latency of put, fence and flag",
        says: "counting puts: half the latency of put and flag",
        mechanism: "A counted put is one message; put, fence and flag need the put, its \
                    acknowledgement and the flag, one after the other.",
        figures: &[counting::PING_PONG_FIGURES],
        least_pes: 2,
        place: Place::HereAndSimulated(counting::ping_pong, counting::simulated_ping_pong),
    },
    Claim {
        id: "P4",
        paper: BUNDLED,
        about: "An all-to-all is fastest with counting puts and slowest with a barrier",
        says: "all-to-all: counting puts best, barrier worst",
        mechanism: "Counting puts need no message besides the data; flags need one more for each \
                    PE, and a barrier needs its rounds, which are fewer than the flags.",
        figures: &[counting::ALL_TO_ALL_FIGURES],
        least_pes: 2,
        place: Place::HereAndSimulated(counting::all_to_all, counting::simulated_all_to_all),
    },
    Claim {
        id: "P5",
        paper: BUNDLED,
        about: "A pipelined stencil scales with counting puts",
        says: "Synch_p2p: counting puts scale, flags do not",
        mechanism: "Each row waits for the row of the left neighbour; with flags, the neighbour \
                    also waits for an acknowledgement before it can send the flag.",
        figures: &[counting::STENCIL_FIGURES],
        least_pes: 2,
        place: Place::HereAndSimulated(counting::stencil, counting::stencils),
    },
];

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::atomic::AtomicBool, time::Duration};

    use consort_sim::machines::Machine;

    use super::*;

    /// An MPI cannot start its processes in the time for all claims in brief.
    #[test]
    fn mpi_claims_are_skipped_in_brief() {
        for id in ["G7", "G10", "F7"] {
            let never = AtomicBool::new(false);
            let evaluated =
                find(id).unwrap().evaluate(None, Duration::ZERO, false, false, &never, &|_| ());
            let (outcome, _) = evaluated.unwrap().unwrap();
            let says = format!("run `consort-lab reproduce {id}`");
            assert!(outcome.verdict.ends_with(&says), "{}", outcome.verdict);
        }
    }

    /// All claims fit on one screen, one per line.
    #[test]
    fn claim_text_is_short() {
        assert!(CLAIMS.iter().all(|claim| claim.says.chars().count() <= 52));
    }

    #[test]
    fn mechanism_is_one_sentence() {
        for Claim { id, mechanism, .. } in CLAIMS {
            let ends = mechanism.matches(['.', '!', '?']).count();
            assert_eq!(ends, 1, "{id}: {mechanism}");
            assert!(mechanism.ends_with('.') && mechanism.chars().count() <= 190, "{id}");
            assert!(mechanism.starts_with(char::is_uppercase), "{id}: {mechanism}");
        }
    }

    #[test]
    fn claims_and_figures_have_unique_names() {
        for claim in CLAIMS {
            assert_eq!(find(&claim.id.to_lowercase()).unwrap().says, claim.says);
            let (mut ids, mut quantities) = (BTreeSet::new(), BTreeSet::new());
            for one in claim.figures() {
                assert!(one.id.starts_with(&format!("{}.", claim.id)), "{one:?}");
                assert!(ids.insert(one.id) && quantities.insert(one.quantity), "{one:?}");
            }
        }
        assert!(find("H9").is_none() && figure("H6.LOOSE.3").is_none());
    }

    #[test]
    fn descriptions_of_machines_name_figures_of_the_papers() {
        for name in Machine::shipped() {
            for id in Machine::find(name).unwrap().provenance.fitted.values().flatten() {
                let paper = figure(id).and_then(|figure| figure.paper(name));
                assert!(paper.is_some(), "{name}.toml: unknown figure {id} of this machine");
            }
        }
    }
}
