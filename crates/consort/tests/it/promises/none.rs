//! Mode None: which PEs do not wait.

use consort::{
    Rank, Result,
    sync_modes::{SyncMode, SyncModes},
    tune::{Collective, Query},
};
use consort_fabric::{LINE_PAYLOAD_BYTES, OperatorClass};

use super::{APART, PATIENCE, ROOT, Scene, Step, each_call, waits_until};

/// Returns whether the PE that is apart leaves, with exit mode None, before any other has entered.
/// It does if it needs nothing from the others, or accesses their memory without a request.
fn leaves_alone(scene: &Scene<'_>) -> bool {
    use Collective::{Broadcast, ExclusiveScan, Gather, Reduce, Scan, Scatter};
    let Query { collective, sync, pes, bytes, operator, .. } = scene.query;
    let (first, candidate) = (scene.apart, scene.candidate);
    let needs_nothing = match collective {
        Broadcast | Scatter => first == ROOT,
        Gather | Reduce => first != ROOT,
        Scan | ExclusiveScan => first == Rank(0),
        _ => false,
    };
    match (candidate.algorithm.as_str(), collective) {
        // A PE with data that is exposed or in its message buffer does not leave.
        _ if collective.is_vector() => false,
        ("knomial_get" | "knomial_rendezvous" | "oc_bcast" | "shared", _) => false,
        // A send waits for its receiver.
        ("two_sided_binomial" | "two_sided_scatter_allgather", _) => false,
        // A put waits until its target has entered, if the mode requires that.
        ("knomial_put", _) => needs_nothing && sync.entry == SyncMode::None,
        // Mode None leaves out the entry barrier.
        ("barrier_get", _) => sync.entry == SyncMode::None,
        // The root announces its entry in every mode, and does nothing else.
        ("direct", Broadcast) => needs_nothing,
        ("direct", _) if sync.entry == SyncMode::None => true,
        // The others put when the root has announced its entry; it does not wait for that.
        ("direct", Gather) => first == ROOT,
        ("direct", _) => needs_nothing,
        // Data that exceeds the inbox waits for each chunk.
        _ if bytes > LINE_PAYLOAD_BYTES as u64 => false,
        // A PE with children in the tree waits for them.
        (algorithm, Reduce) => {
            let is_flat = algorithm == "flat" || operator == OperatorClass::Commutative || pes == 2;
            let top = if is_flat { ROOT } else { Rank(0) };
            let node = first.plus((pes - top.0) as usize, pes as usize).0;
            let is_chain = algorithm == "chain" || candidate.parameter("radix") == Some(1);
            needs_nothing && if is_chain { node == pes - 1 } else { node > 0 }
        }
        _ => needs_nothing,
    }
}

/// The PE that is apart enters first, and the others once they have observed whether it leaves.
fn enters_first(scene: &Scene<'_>, sync: SyncModes) -> Result<()> {
    let (me, first) = (scene.me(), scene.apart);
    scene.contribute_for(sync)?;
    if me != first {
        assert!(waits_until(PATIENCE, || scene.has(Step::Enters, first)), "{scene}");
        let expected = leaves_alone(scene);
        let patience = if expected { PATIENCE } else { APART };
        let leaves = waits_until(patience, || scene.has(Step::Leaves, first));
        assert_eq!(leaves, expected, "whether it leaves: {scene}");
        // A PE that needs the others has fetched its result; but at a gather's root, others put.
        if leaves && (scene.query.collective, first) != (Collective::Gather, ROOT) {
            assert!(scene.has_result(first)?, "{scene}");
        }
        scene.mark(Step::Sees);
        scene.waits_for_others(Step::Sees);
    }
    scene.call(sync)?;
    scene.ends()
}

/// Data may move when one PE has entered, so a PE that can access it does not wait.
#[test]
fn entry_none_waits_for_no_pe() {
    each_call(|sync| sync == SyncModes::LOOSE, enters_first);
}

/// A PE that is not needed any more leaves, even before others have entered.
#[test]
fn exit_none_leaves_early() {
    each_call(|sync| (sync.entry, sync.exit) == (SyncMode::Mine, SyncMode::None), enters_first);
}
