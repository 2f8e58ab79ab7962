//! The algorithms of the registry with all values of their parameters.

use consort_collectives::{
    Algorithm, Parameter, Setting, Vendor, Visitor, describe, names, of_parts, serves, visit,
};
use consort_fabric::{Candidate, Capabilities, Collective, OperatorClass, Query, SyncModes};

/// Values that the tuner does not try, if a range allows them.
const ODD_RADIX: u64 = 3;
const ODD_BYTES: u64 = 1000;

struct Values;

impl Visitor for Values {
    type Output = Vec<Candidate>;

    fn visit<A: Algorithm>(self) -> Vec<Candidate> {
        of_algorithm::<A>()
    }
}

/// Returns an algorithm with all values of its parameters that the tuner tries, and one odd value
/// of each.
pub(crate) fn of_algorithm<A: Algorithm>() -> Vec<Candidate> {
    if A::PARTS.iter().any(Option::is_some) {
        return of_parts(&A::DESCRIPTION, [0; 2]);
    }
    let mut all = vec![Candidate::new(A::NAME)];
    for Parameter { name, values, range: (least, most) } in A::PARAMETERS {
        let odd = if name.ends_with("_bytes") { ODD_BYTES } else { ODD_RADIX };
        let odd = Some(odd).filter(|odd| (least..=most).contains(&odd));
        let with_each = |candidate: &Candidate| -> Vec<_> {
            let values = values.iter().copied().chain(odd);
            values.map(|value| candidate.clone().with(name, value)).collect()
        };
        all = all.iter().flat_map(with_each).collect();
    }
    all
}

/// Returns every candidate of a collective, including those for several nodes and the fabric's own.
///
/// # Panics
/// When a name of the registry is not in it.
#[must_use]
pub fn on_nodes(collective: Collective) -> Vec<Candidate> {
    let of = |name: &&str| visit(collective, name, Values).expect("a name of the registry");
    names(collective).iter().flat_map(of).collect()
}

/// Returns the candidates of a collective for several levels: those whose parts are divided again.
/// `depths` is how often the parts inside nodes and the part between nodes can be divided again.
#[must_use]
pub fn on_levels(collective: Collective, depths: [usize; 2]) -> Vec<Candidate> {
    let divided = describe(collective, TWO_LEVELS).map(|one| of_parts(&one, depths));
    let is_deep = |one: &Candidate| one.parts.iter().any(|part| part.algorithm == TWO_LEVELS);
    divided.into_iter().flatten().filter(is_deep).collect()
}

/// The algorithms that need several nodes.
const TWO_LEVELS: &str = "two_level";

/// Returns every candidate of a collective that serves PEs of one node.
///
/// # Panics
/// As [`on_nodes`].
#[must_use]
pub fn everything(collective: Collective) -> Vec<Candidate> {
    let mut all = on_nodes(collective);
    all.retain(|one| one.algorithm != TWO_LEVELS && one.algorithm != Vendor::NAME);
    all
}

/// Returns one candidate of each algorithm of a collective that serves PEs of one node.
#[must_use]
pub fn one_each(collective: Collective) -> Vec<Candidate> {
    let mut all = everything(collective);
    all.dedup_by(|later, earlier| later.algorithm == earlier.algorithm);
    all
}

/// Returns those that serve calls on slices: others need memory that peers know.
#[must_use]
pub fn one_each_on_slices(collective: Collective) -> Vec<Candidate> {
    let mut all = one_each(collective);
    let setting = Setting::of(&long_query(collective), CAPABILITIES);
    all.retain(|one| serves(&setting, one));
    all
}

/// Returns a call on slices, with blocks so long that every algorithm has something to divide.
const fn long_query(collective: Collective) -> Query {
    Query {
        collective,
        sync: SyncModes::MINE,
        pes: 4,
        bytes: 1 << 17,
        operator: OperatorClass::Commutative,
        symmetric: false,
    }
}

/// The capabilities of a fabric with everything except its own collectives.
const CAPABILITIES: Capabilities = Capabilities::with_memory(1 << 20, 1 << 30, 1 << 20);

#[test]
fn list_has_all_candidates() {
    use consort_collectives::candidates;

    for collective in Collective::EVERY {
        let all = on_nodes(collective);
        let query = Query { bytes: 1 << 20, ..long_query(collective) };
        for candidate in candidates(&query, CAPABILITIES) {
            assert!(all.contains(&candidate), "{collective}: {candidate}");
        }
        let mut each: Vec<_> = all.into_iter().map(|one| one.algorithm).collect();
        each.dedup();
        assert_eq!(each, names(collective));
    }
}
