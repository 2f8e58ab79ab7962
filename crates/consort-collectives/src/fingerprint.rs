//! Fingerprints: they show whether two candidates are the same algorithm under two names.
//!
//! For two PEs, trees of radix 2, 4 and 8 are the same tree, and a ring is a pairwise exchange. The
//! schedule of a PE, with the barriers around it, determines the PE's actions in a call. One
//! protocol runs all schedules of a type, so equal schedules on every PE mean equal calls.

use std::hash::{DefaultHasher, Hash, Hasher};

use consort_fabric::{CallSpec, Candidate, Capabilities, Rank};

use crate::{Setting, registry::erased};

/// The largest teams whose schedules are compared: the time is proportional to all schedules.
const MOST_PES: u32 = 32;

/// Returns a number for the actions of `candidate` on all PEs in `call`. Candidates of one
/// collective with equal numbers differ only in their names. Returns `None` for teams of more than
/// 32 PEs, or if the candidate cannot serve the call.
#[must_use]
pub fn fingerprint(
    call: &CallSpec,
    candidate: &Candidate,
    capabilities: Capabilities,
) -> Option<u64> {
    if call.pes > MOST_PES {
        return None;
    }
    let algorithm = erased(call.collective, &candidate.algorithm).ok()?;
    let mut hasher = DefaultHasher::new();
    (algorithm.schedule_type)().hash(&mut hasher);
    (algorithm.direction, algorithm.root_access_is_unordered).hash(&mut hasher);
    let setting = Setting::of(*call, capabilities);
    for rank in (0..call.pes).map(Rank) {
        (algorithm.hash)(&setting.at(rank), candidate, &mut hasher).ok()?;
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use consort_fabric::{Collective, OperatorClass, Query, SyncModes};

    use super::*;

    const CAPABILITIES: Capabilities = Capabilities::with_memory(512, 16 << 10, 64 << 10);

    fn print(collective: Collective, pes: u32, candidate: &str) -> Option<u64> {
        let query = Query {
            collective,
            sync: SyncModes::MINE,
            pes,
            bytes: 64,
            operator: OperatorClass::Commutative,
            symmetric: true,
        };
        let candidate = candidate.parse().expect("a candidate");
        fingerprint(&CallSpec::from(&query), &candidate, CAPABILITIES)
    }

    #[test]
    fn trees_of_two_pes_are_one_tree() {
        for collective in [Collective::Reduce, Collective::Broadcast, Collective::Gather] {
            let of = |pes, radix: u32| print(collective, pes, &format!("knomial(radix={radix})"));
            assert!(of(2, 2).is_some(), "{collective}");
            assert_eq!(of(2, 2), of(2, 8), "{collective}");
            assert_eq!(of(4, 4), of(4, 8), "{collective}: both are flat");
            assert_ne!(of(8, 2), of(8, 8), "{collective}");
        }
    }

    #[test]
    fn irrelevant_parameters_make_no_difference() {
        for (collective, of) in [
            (Collective::Reduce, ["direct(block_bytes=16384)", "direct(block_bytes=1048576)"]),
            (Collective::AllReduce, ["direct(block_bytes=16384)", "direct(block_bytes=1048576)"]),
            (Collective::AllReduce, ["shared(block_bytes=4096)", "shared(block_bytes=16384)"]),
            (Collective::Broadcast, ["flat", "pipelined(chunk_bytes=1024,radix=4)"]),
        ] {
            let [one, other] = of.map(|candidate| print(collective, 2, candidate));
            assert!(one.is_some() && one == other, "{collective} {of:?}");
        }
    }

    #[test]
    fn rounds_of_several_algorithms_may_be_the_same() {
        let of = |pes, candidate| print(Collective::AllGather, pes, candidate);
        assert_eq!(of(2, "ring"), of(2, "recursive_doubling"));
        assert_ne!(of(4, "ring"), of(4, "recursive_doubling"));
        assert_ne!(of(2, "ring"), of(2, "direct"), "one sends, the other copies");
        assert_eq!(of(64, "ring"), None, "too many to compare");
        assert_eq!(of(3, "recursive_doubling"), None, "it cannot serve three");
    }
}
