//! What there is to test: every algorithm of the registry with all values of its parameters.

use consort::{Candidate, Collective};
use consort_collectives::{Algorithm, Parameter, Visitor, names, visit};

/// Values off the grid of those that are tried, where a range allows them.
const ODD_RADIX: u64 = 3;
const ODD_BYTES: u64 = 1000;

/// All values of all parameters: what the tuner tries, and one that it does not.
struct Values;

impl Visitor for Values {
    type Output = Vec<Candidate>;

    fn visit<A: Algorithm>(self) -> Vec<Candidate> {
        let mut all = vec![Candidate::new(A::NAME)];
        for Parameter { name, values, range: (least, most) } in A::PARAMETERS {
            let odd = if name.ends_with("_bytes") { ODD_BYTES } else { ODD_RADIX };
            let odd = Some(odd).filter(|odd| (least..=most).contains(&odd));
            all = all
                .iter()
                .flat_map(|candidate| {
                    let values = values.iter().copied().chain(odd);
                    values.map(|value| candidate.clone().with(name, value))
                })
                .collect();
        }
        all
    }
}

/// Every candidate of a collective, whatever it can serve.
pub(crate) fn everything(collective: Collective) -> Vec<Candidate> {
    let of = |name: &&str| visit(collective, name, Values).expect("a name of the registry");
    names(collective).iter().flat_map(of).collect()
}

/// One candidate of each algorithm of a collective.
pub(crate) fn one_each(collective: Collective) -> Vec<Candidate> {
    let mut all = everything(collective);
    all.dedup_by(|later, earlier| later.algorithm == earlier.algorithm);
    all
}

#[test]
fn nothing_is_left_out() {
    use consort_collectives::candidates;
    use consort_fabric::{Capabilities, OperatorClass, Query};

    let capabilities = Capabilities {
        inbox_channels: 1 << 20,
        scratch_bytes: 1 << 30,
        buffer_bytes: 1 << 20,
        exposes: true,
        buffered: true,
    };
    for collective in Collective::EVERY {
        let all = everything(collective);
        let query = Query {
            collective,
            sync: consort::SyncModes::MINE,
            pes: 4,
            bytes: 1 << 20,
            operator: OperatorClass::Commutative,
            symmetric: false,
        };
        for candidate in candidates(&query, capabilities) {
            assert!(all.contains(&candidate), "{collective}: {candidate}");
        }
        let each: Vec<_> = one_each(collective).into_iter().map(|one| one.algorithm).collect();
        assert_eq!(each, names(collective));
    }
}
